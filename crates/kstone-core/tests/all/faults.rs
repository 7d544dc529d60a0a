//! The disk fills up, fails, or changes a bit. Errors are typed, answers are right, nothing
//! promised is lost. `kstone_crash` is the harness; `cargo run --release -p kstone-crash` tries
//! every call and every byte.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::support::{get, put, sim_env, tiny};
use kstone_core::env::ManualClock;
use kstone_core::{Engine, Error, Key, Options};
use kstone_crash::damage::{DamageOutcome, Files};
use kstone_crash::fault::{self, Outcome};
use kstone_crash::{Violation, Workload};
use kstone_sim::{Fault, FaultPlan, SimDisk};

/// Tries every `stride`-th call; answers how often each outcome was seen.
fn outcomes(fault: Fault, seed: u64, stride: usize) -> Result<BTreeMap<String, u64>, Violation> {
    let workload = Workload::draw(seed, 40);
    let calls = fault::count(&workload)?;
    let count = if fault == Fault::ReadError { calls.reads } else { calls.ops };
    let mut seen = BTreeMap::new();
    for at in (0..count).step_by(stride) {
        let outcome = fault::explore(&workload, fault, at)?;
        *seen.entry(format!("{outcome:?}")).or_default() += 1;
    }
    Ok(seen)
}

fn saw(seen: &BTreeMap<String, u64>, outcome: Outcome) -> bool {
    seen.contains_key(&format!("{outcome:?}"))
}

#[test]
fn after_a_full_disk_the_step_that_failed_can_be_tried_again() {
    let seen = outcomes(Fault::NoSpace, 3, 5).unwrap_or_else(|violation| panic!("{violation}"));
    assert!(saw(&seen, Outcome::WentOn), "{seen:?}");
    assert!(!saw(&seen, Outcome::Poisoned), "a full disk is no reason to refuse writes: {seen:?}");
}

#[test]
fn an_io_error_is_reported_and_loses_nothing() {
    let seen = outcomes(Fault::OpError, 3, 5).unwrap_or_else(|violation| panic!("{violation}"));
    assert!(saw(&seen, Outcome::WentOn) && saw(&seen, Outcome::Poisoned), "{seen:?}");
}

#[test]
fn a_failed_read_is_reported_and_the_next_one_answers() {
    let seen = outcomes(Fault::ReadError, 3, 3).unwrap_or_else(|violation| panic!("{violation}"));
    assert!(saw(&seen, Outcome::WentOn), "{seen:?}");
    assert!(!saw(&seen, Outcome::Poisoned), "a failed read changes nothing: {seen:?}");
}

#[test]
fn a_failed_sync_of_the_log_poisons() {
    let workload = Workload::draw(3, 12);
    let calls = fault::count(&workload).unwrap_or_else(|violation| panic!("{violation}"));
    let poisoned = (0..calls.ops).any(|at| {
        let outcome = fault::explore(&workload, Fault::SyncError, at);
        outcome.unwrap_or_else(|violation| panic!("{violation}")) == Outcome::Poisoned
    });
    assert!(poisoned, "a failed sync must not be tried again");
}

#[test]
fn with_room_again_everything_that_failed_on_a_full_disk_succeeds() {
    let workload = Workload::draw(1, 40);
    let mut full = 0;
    for capacity_bytes in (0..60_000).step_by(4_900) {
        full += fault::fill(&workload, capacity_bytes)
            .unwrap_or_else(|violation| panic!("{violation}"));
    }
    assert!(full > 10, "the disk was full only {full} times");
}

/// The running database removes what it has written of a file that there will not be; it does not leave that to
/// the next open.
#[test]
fn a_flush_or_merge_that_meets_a_full_disk_leaves_neither_files_nor_memory_behind() {
    let disk = SimDisk::new(1);
    let env = sim_env(&disk, &Arc::new(ManualClock::default()));
    let options = Options { memory_budget_bytes: 16 << 20, ..tiny() };
    let engine = Engine::open_with(env, "db", options).unwrap_or_else(|error| panic!("{error}"));
    let key = |n: u32| Key::with_sk("user#1", n.to_be_bytes().to_vec());
    let put_all = |version: u8| (0..60).for_each(|n| put(&engine, &key(n), &[version; 90]));
    let get_all = |version: u8| {
        (0..60).for_each(|n| assert_eq!(get(&engine, &key(n)), Some(vec![version; 90])));
    };
    let ssts = || -> Vec<PathBuf> {
        let is_sst = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "sst");
        disk.paths().into_iter().filter(is_sst).collect()
    };
    put_all(0);
    engine.flush().unwrap_or_else(|error| panic!("{error}"));
    for version in 1..4 {
        get_all(version - 1);
        get_all(version - 1);
        put_all(version);
        let mut failures = 0;
        for work in [Engine::flush, Engine::compact] {
            for calls in 0.. {
                let before = (ssts(), engine.stats().cache_bytes);
                disk.fail(FaultPlan::onwards(Fault::NoSpace, calls));
                let done = work(&engine);
                disk.heal();
                match done {
                    Ok(()) => break,
                    Err(Error::DiskFull { .. }) => failures += 1,
                    Err(other) => panic!("{other}"),
                }
                let after = (ssts(), engine.stats().cache_bytes);
                assert_eq!(after, before, "after {calls} calls");
                get_all(version);
            }
        }
        assert!(failures > 4, "{failures}");
        get_all(version);
    }
}

#[test]
fn a_changed_byte_is_noticed_or_harmless() {
    for seed in [1, 4] {
        let closed = Files::closed(Workload::draw(seed, 40)).unwrap_or_else(|v| panic!("{v}"));
        let mut seen = Vec::new();
        for (path, len) in closed.list() {
            for offset in (0..len).step_by(71) {
                let noticed = closed.flip(&path, offset, 1 << (offset % 8));
                seen.push(noticed.unwrap_or_else(|violation| panic!("{violation}")));
            }
        }
        for expected in [DamageOutcome::AtOpen, DamageOutcome::AtRead] {
            assert!(seen.contains(&expected), "{expected:?} was never seen");
        }
    }
}

#[test]
fn a_changed_byte_of_the_log_costs_at_most_the_last_commit_of_a_killed_process() {
    for seed in [1, 4] {
        let killed = Files::killed(Workload::draw(seed, 20)).unwrap_or_else(|v| panic!("{v}"));
        let logs = killed.list().into_iter();
        let mut refused = 0;
        for (path, len) in logs.filter(|(path, _)| path.extension().is_some_and(|e| e == "log")) {
            for offset in (0..len).step_by(29) {
                let noticed = killed.flip(&path, offset, 0x20);
                let noticed = noticed.unwrap_or_else(|violation| panic!("{violation}"));
                refused += u64::from(noticed == DamageOutcome::AtOpen);
            }
        }
        assert!(refused > 5, "the log of seed {seed} holds nothing that matters");
    }
}
