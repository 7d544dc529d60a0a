//! Random sequences by number: each one from a seed of its own, shrunk when it fails.

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::ops::{Op, ops};
use crate::run::{Mode, run};
use crate::settings::{Settings, settings};

/// The shortest sequence found that fails, and how.
#[derive(Debug)]
pub struct Shrunk {
    /// Gives the same sequence again.
    pub seed: u64,
    /// How it failed.
    pub reason: String,
    /// The settings it started with.
    pub settings: Settings,
    /// The steps.
    pub ops: Vec<Op>,
}

impl std::fmt::Display for Shrunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}\n\nseed {}, shrunk to {:?}", self.reason, self.seed, self.settings)?;
        for (step, op) in self.ops.iter().enumerate() {
            writeln!(f, "  {step}: {op:?}")?;
        }
        write!(f, "repeat with: kstone-torture model --sequences 1 --seed {}", self.seed)
    }
}

/// How long a sequence may be.
pub const OPS_MAX: usize = 100;

/// Runs the sequence of a seed against the model.
pub fn check(seed: u64, mode: Mode) -> Result<(), Box<Shrunk>> {
    check_with(seed, |settings, ops| {
        run(ops, settings, mode, false).map(drop).map_err(|failure| failure.to_string())
    })
}

/// Draws the sequence of a seed and, if `test` fails, shrinks it.
pub fn check_with(
    seed: u64,
    test: impl Fn(Settings, &[Op]) -> Result<(), String>,
) -> Result<(), Box<Shrunk>> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config =
        Config { cases: 1, failure_persistence: None, max_shrink_iters: 5000, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&(settings(), ops(OPS_MAX)), |(settings, ops)| {
        test(settings, &ops).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, (settings, ops))) => {
            Err(Box::new(Shrunk { seed, reason: reason.to_string(), settings, ops }))
        }
        Err(TestError::Abort(reason)) => Err(Box::new(Shrunk {
            seed,
            reason: reason.to_string(),
            settings: Settings::tiny(),
            ops: Vec::new(),
        })),
    }
}
