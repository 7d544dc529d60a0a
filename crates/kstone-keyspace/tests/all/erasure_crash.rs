//! An erasure that is interrupted anywhere goes on after a restart: a receipt, or something to go on
//! with, never half.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Fixture, SECRET, fill, now, sightings};
use kstone_core::Compression;
use kstone_keyspace::erasure::ErasureState;
use kstone_sim::{CrashPolicy, SimDisk, Trigger};

/// Refusing, found, deleting, purging, a checkpoint, purging the index, sealing.
const STEPS: u64 = 7;

/// A disk with a database in which there is a person, and a checkpoint of it.
fn filled() -> SimDisk {
    let disk = SimDisk::new(1);
    let fixture = Fixture::open(&disk, Compression::None);
    fill(&fixture);
    fixture.db.engine().checkpoint("copy").unwrap();
    fixture.redis(&format!("DEL anticheat:{SECRET}"));
    drop(fixture);
    disk
}

/// When the power goes.
#[derive(Debug, Clone, Copy)]
enum Stop {
    /// At the n-th sync.
    AtSync(u64),
    /// At the first sync of the n-th step.
    InStep(u64),
}

/// Erases on a copy of the disk that stops. Answers whether the erasure was over before, after having
/// looked at what a restart makes of it.
fn interrupted(filled: &SimDisk, stop_at: Stop, policy: CrashPolicy) -> bool {
    let disk = filled.crash(CrashPolicy::KeepAll);
    let is_done = {
        let fixture = Fixture::open(&disk, Compression::None);
        if let Stop::AtSync(sync) = stop_at {
            disk.arm(Trigger::BeforeSync(sync));
        }
        let steps = AtomicU64::new(0);
        let progress = |_| {
            let step = steps.fetch_add(1, Ordering::Relaxed) + 1;
            if matches!(stop_at, Stop::InStep(at) if at == step) {
                disk.arm(Trigger::BeforeSync(1));
            }
        };
        now(fixture.eraser.erase(&fixture.subject(), &progress)).is_ok()
    };
    let disk = disk.crash(policy);
    let fixture = Fixture::open(&disk, Compression::None);
    let known = now(fixture.eraser.erasures()).unwrap();
    let receipts = now(fixture.eraser.resume(&|_| {})).unwrap();
    match &known[..] {
        // It stopped before anything was remembered, so nothing was done either.
        [] => {
            assert!(fixture.get_state(&format!("student:{SECRET}"), "mastery:2026-01-14").is_some())
        }
        [one] => {
            let was_done = matches!(one.state, ErasureState::Done(_));
            assert_eq!(receipts.len(), usize::from(!was_done), "{stop_at:?}");
            assert_eq!(sightings(&disk), Vec::<String>::new(), "{stop_at:?} {policy:?}");
            let all = now(fixture.eraser.erasures()).unwrap();
            assert!(all.iter().all(|it| matches!(it.state, ErasureState::Done(_))), "{stop_at:?}");
            let refused = fixture.try_redis(&format!("SET mastery:{SECRET} {{}}"));
            assert!(refused.unwrap_err().contains("was erased"), "{stop_at:?}");
            fixture.check_others();
        }
        more => panic!("{more:?}"),
    }
    is_done
}

#[test]
fn an_erasure_that_is_interrupted_in_any_step_goes_on_after_a_restart() {
    let filled = filled();
    let mut step = 1;
    while !interrupted(&filled, Stop::InStep(step), CrashPolicy::LoseAll) {
        step += 1;
    }
    assert_eq!(step, STEPS + 1);
}

#[test]
#[ignore = "takes many minutes: every sync, and three ways to lose power"]
fn an_erasure_that_is_interrupted_at_any_sync_goes_on_after_a_restart() {
    let filled = filled();
    for policy in [CrashPolicy::LoseAll, CrashPolicy::KeepAll, CrashPolicy::Random(7)] {
        let mut sync = 1;
        while !interrupted(&filled, Stop::AtSync(sync), policy) {
            sync += 1;
        }
        assert!(sync > 100, "{sync}");
    }
}
