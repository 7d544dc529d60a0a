//! The crash test: one workload is crashed at all of its moments.

use kstone_sim::{CrashPolicy, SimDisk};

use crate::Violation;
use crate::image::{CheckDepth, Checker, told};
use crate::recording_disk::RecordingDisk;
use crate::run::Run;
use crate::workload::Workload;

pub use crate::recording_disk::ImageDensity;

/// How a workload is crashed.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// At which moments, and how often at each.
    pub density: ImageDensity,
    /// Of the images, every n-th is verified, with its checkpoints and its expiry index.
    pub verify_stride: u64,
    /// Of the images, every n-th is crashed again: during recovery and after writing on.
    pub again_stride: u64,
}

impl Plan {
    /// Every sync, each operation of a sample; for the default tests.
    pub const QUICK: Plan = Plan {
        density: ImageDensity { randoms: 2, sync_stride: 1, op_stride: 7 },
        verify_stride: 7,
        again_stride: 31,
    };

    /// Every sync and every operation.
    pub const FULL: Plan = Plan {
        density: ImageDensity { randoms: 6, sync_stride: 1, op_stride: 1 },
        verify_stride: 3,
        again_stride: 11,
    };
}

/// What was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Commits of the workload.
    pub commits: u64,
    /// Disks that a crash left.
    pub images: u64,
    /// How many times a database was opened on one.
    pub recoveries: u64,
}

impl std::ops::AddAssign for Report {
    fn add_assign(&mut self, other: Report) {
        self.commits += other.commits;
        self.images += other.images;
        self.recoveries += other.recoveries;
    }
}

/// Runs the workload and checks every crash of it.
pub fn explore(workload: &Workload, plan: &Plan) -> Result<Report, Violation> {
    let mut report = Report::default();
    let watched =
        RecordingDisk::new(SimDisk::new(workload.seed), plan.density, workload.seed << 20);
    let mut run = Run::new(watched.clone(), workload.options.clone());
    for (n, step) in workload.steps.iter().enumerate() {
        let place = |what: Violation| format!("seed {}, step {n}: {what}", workload.seed);
        let stepped = run.step(step).map_err(|failure| format!("{step:?}: {}", told(failure)));
        // What was promised by the step is at its most fragile now.
        watched.take_image("after the step", CrashPolicy::LoseAll);
        for image in watched.take_images() {
            report.images += 1;
            let due = |stride: u64| stride != 0 && report.images.is_multiple_of(stride);
            let depth =
                CheckDepth { verify: due(plan.verify_stride), again: due(plan.again_stride) };
            let recoveries = &mut report.recoveries;
            let mut checker =
                Checker { options: &workload.options, history: &run.history, recoveries };
            checker.check(&image, depth).map_err(place)?;
        }
        stepped.map_err(place)?;
    }
    run.close();
    report.commits = run.history.len() as u64 - 1;
    Ok(report)
}
