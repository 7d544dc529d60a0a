//! Random sequences by number: each one from a seed of its own, shrunk when it fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::ops::{Op, ops};
use crate::run::{Crowd, Mode, run, run_crowd};
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
pub const OPS_MAX: usize = 150;

/// How many simpler sequences are tried.
const SHRINKS_MAX: usize = 10_000;

/// Runs the sequence of a seed against the model.
pub fn check(seed: u64, mode: Mode) -> Result<(), Box<Shrunk>> {
    check_with(seed, |settings, ops| {
        run(ops, settings, mode, false).map(drop).map_err(|failure| failure.to_string())
    })
}

/// Runs the sequences of several seeds at the same time on one engine. What fails here depends on
/// how threads meet, so it is reported as it is, not shrunk.
pub fn check_crowd(seed: u64, threads: u64, mode: Mode) -> Result<(), String> {
    let (settings, _) = draw(seed);
    let sequences: Vec<_> = (0..threads).map(|n| draw(seed.wrapping_add(n)).1).collect();
    let crowd = if seed.is_multiple_of(2) { Crowd::Checkpoints } else { Crowd::Purges };
    run_crowd(&sequences, settings, mode, crowd)
        .map_err(|failure| format!("crowd of seed {seed} with {settings:?}: {failure}"))
}

/// The sequence of a seed.
pub fn draw(seed: u64) -> (Settings, Vec<Op>) {
    tree(seed).current()
}

/// Draws the sequence of a seed and, if `test` fails (or panics), shrinks it.
pub fn check_with(
    seed: u64,
    test: impl Fn(Settings, &[Op]) -> Result<(), String>,
) -> Result<(), Box<Shrunk>> {
    let test = |(settings, ops): &(Settings, Vec<Op>)| {
        catch_unwind(AssertUnwindSafe(|| test(*settings, ops))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("panicked: {}", text.unwrap_or("(no message)")))
        })
    };
    let mut tree = tree(seed);
    let mut failing = tree.current();
    let Err(mut reason) = test(&failing) else { return Ok(()) };
    let mut may_go_on = tree.simplify();
    for _ in 0..SHRINKS_MAX {
        if !may_go_on {
            break;
        }
        let simpler = tree.current();
        may_go_on = match test(&simpler) {
            Ok(()) => tree.complicate(),
            Err(what) => {
                (failing, reason) = (simpler, what);
                tree.simplify()
            }
        };
    }
    let (settings, ops) = failing;
    Err(Box::new(Shrunk { seed, reason, settings, ops }))
}

/// What a seed stands for, and the ways to make it simpler.
fn tree(seed: u64) -> impl ValueTree<Value = (Settings, Vec<Op>)> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    match (settings(), ops(OPS_MAX)).new_tree(&mut runner) {
        Ok(tree) => tree,
        // Only a strategy that filters can refuse, and none here does.
        Err(reason) => unreachable!("no sequence from seed {seed}: {reason}"),
    }
}
