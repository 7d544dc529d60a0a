//! The fault test: one call of a workload fails; which one is a number, and every number is tried.
//!
//! After the failure, either the engine goes on, and the step that failed succeeds when it is tried
//! again; or it is poisoned: writes are refused, reads go on, and reopening recovers everything
//! that was promised.

use kstone_core::Error;
use kstone_sim::{CrashPolicy, Fault, FaultPlan, SimDisk};

use crate::Violation;
use crate::image::{CheckDepth, Checker, told};
use crate::recording_disk::{Image, ImageDensity, RecordingDisk};
use crate::run::{Failure, Run};
use crate::workload::{Step, Workload};

const NO_IMAGES: ImageDensity = ImageDensity { randoms: 0, sync_stride: u64::MAX, op_stride: 0 };

/// How often each kind of call happens in a workload: how many faults there are to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls {
    /// Changes of the disk, syncs included.
    pub ops: u64,
    /// Reads of data.
    pub reads: u64,
}

/// Runs the workload without a fault and counts.
pub fn count(workload: &Workload) -> Result<Calls, Violation> {
    let disk = SimDisk::new(workload.seed);
    let mut run =
        Run::new(RecordingDisk::new(disk.clone(), NO_IMAGES, 0), workload.options.clone());
    for (n, step) in workload.steps.iter().enumerate() {
        let place = |failure| format!("seed {}, step {n}: {}", workload.seed, told(failure));
        run.step(step).map_err(place)?;
    }
    run.close();
    Ok(Calls { ops: disk.ops(), reads: disk.reads() })
}

/// How a workload with a fault ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No step failed: the fault struck something that can do without.
    Unnoticed,
    /// A step failed, and succeeded when it was tried again.
    WentOn,
    /// Writes were refused until the database was opened again.
    Poisoned,
}

/// Runs the workload with one fault and checks what follows.
pub fn explore(workload: &Workload, fault: Fault, at: u64) -> Result<Outcome, Violation> {
    let place = |what| format!("seed {}, {fault:?} at {at}: {what}", workload.seed);
    let disk = SimDisk::new(workload.seed);
    disk.fail(FaultPlan::once(fault, at));
    let watched = RecordingDisk::new(disk.clone(), NO_IMAGES, 0);
    let mut run = Run::new(watched.clone(), workload.options.clone());
    run.reads_may_fail = fault == Fault::ReadError;
    let mut outcome = Outcome::Unnoticed;
    for (n, step) in workload.steps.iter().enumerate() {
        let begun = run.history.len();
        let Err(failure) = run.step(step) else { continue };
        let failed = |what| place(format!("step {n} ({}): {what}", name(step)));
        outcome = recover(&mut run, step, begun, failure).map_err(failed)?;
        if outcome == Outcome::Poisoned {
            break;
        }
    }
    run.close();
    disk.heal();
    // Whatever happened: what was promised is there, for a kill and for a power loss.
    for policy in [
        CrashPolicy::KeepAll,
        CrashPolicy::LoseAll,
        CrashPolicy::Random(at),
        CrashPolicy::Random(at + 1_000_000),
    ] {
        let image = Image {
            moment: "at the end".to_owned(),
            policy,
            disk: disk.crash(policy),
            promises: watched.promises(),
        };
        let mut recoveries = 0;
        let (options, history) = (&workload.options, &run.history);
        let mut checker = Checker { options, history, recoveries: &mut recoveries };
        checker.check(&image, CheckDepth { verify: true, again: false }).map_err(place)?;
    }
    Ok(outcome)
}

/// A step failed. Judges the error, and goes on if that is possible.
fn recover(
    run: &mut Run,
    step: &Step,
    begun: usize,
    failure: Failure,
) -> Result<Outcome, Violation> {
    let error = match failure {
        Failure::Error(error) => error,
        Failure::Wrong(what) => return Err(what),
    };
    if !matches!(error, Error::Io { .. } | Error::DiskFull { .. } | Error::Poisoned { .. }) {
        return Err(format!("the wrong kind of error: {error}"));
    }
    if run.is_poisoned() {
        // Reads go on, and see the commit that failed or do not see it.
        let after = run.look();
        if after.is_err() && run.history.len() > begun {
            let last = run.history.pop();
            let before = run.look();
            run.history.extend(last);
            before.or(after).map_err(|f| format!("after {error}, poisoned: {}", told(f)))?;
        } else {
            after.map_err(|f| format!("after {error}, poisoned: {}", told(f)))?;
        }
        return Ok(Outcome::Poisoned);
    }
    run.settle().map_err(|f| format!("after {error}: {}", told(f)))?;
    let applied = run.history.len() > begun && run.history.get(begun - 1) != run.history.get(begun);
    if applied && matches!(step, Step::Commit { .. }) {
        return Err(format!("the commit failed with {error}, and is there"));
    }
    // A step that is there although something of it failed (a purge, say) is asked for again too.
    run.take_back(if applied { run.history.len() } else { begun.min(run.history.len()) });
    run.step(step).map_err(|f| format!("after {error}, tried again: {}", told(f)))?;
    Ok(Outcome::WentOn)
}

/// Limits the disk, runs the workload as far as it gets, then lifts the limit: every step that
/// failed must have failed for want of room, and must succeed afterwards.
pub fn fill(workload: &Workload, capacity_bytes: u64) -> Result<u64, Violation> {
    let place = |what| format!("seed {}, {capacity_bytes} bytes: {what}", workload.seed);
    let disk = SimDisk::new(workload.seed);
    disk.set_capacity(Some(capacity_bytes));
    let watched = RecordingDisk::new(disk.clone(), NO_IMAGES, 0);
    let mut run = Run::new(watched.clone(), workload.options.clone());
    let mut full = 0;
    for (n, step) in workload.steps.iter().enumerate() {
        let begun = run.history.len();
        match run.step(step) {
            Ok(()) => continue,
            Err(Failure::Error(Error::DiskFull { .. })) => full += 1,
            Err(failure) => {
                return Err(place(format!("step {n} ({}): {}", name(step), told(failure))));
            }
        }
        disk.set_capacity(None);
        let error = Failure::Error(Error::invalid("the disk is full"));
        run.settle()
            .and_then(|()| {
                run.take_back(begun.min(run.history.len()));
                run.step(step)
            })
            .map_err(|f| {
                place(format!(
                    "step {n} ({}), with room again: {} after {error:?}",
                    name(step),
                    told(f)
                ))
            })?;
        // Full again, a little later.
        disk.set_capacity(Some(disk.used_bytes() + 4096));
    }
    run.close();
    Ok(full)
}

fn name(step: &Step) -> String {
    let told = format!("{step:?}");
    told.split([' ', '{']).next().unwrap_or_default().to_owned()
}
