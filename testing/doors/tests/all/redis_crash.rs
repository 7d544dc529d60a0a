//! The short run of `kstone-door-tests redis-crash`.

use std::path::Path;

use kstone::Durability;
use kstone_door_tests::redis::{crash, kill};

fn crash_everywhere(durability: Durability) {
    let plan = crash::Plan { seed: 1, workloads: 2, steps: 40, op_stride: 7, durability };
    match crash::explore(&plan) {
        Ok(report) => {
            assert!(report.crashes > 50, "{report}");
            assert!(report.shorter > 0, "{report}");
        }
        Err(what) => panic!("{what}"),
    }
}

#[test]
fn with_sync_every_acknowledged_command_is_whole_after_a_crash_at_any_moment() {
    crash_everywhere(Durability::Sync);
}

#[test]
fn with_interval_a_crash_leaves_a_beginning_of_what_was_acknowledged() {
    crash_everywhere(Durability::Interval);
}

fn kill_again_and_again(durability: Durability) {
    let folder = std::env::temp_dir()
        .join(format!("kstone-redis-kill-{durability:?}-{}", std::process::id()));
    let plan = kill::Plan {
        clients: 8,
        rounds: 4,
        replies_max: 600,
        seed: 1,
        durability,
        folder: Some(folder.clone()),
    };
    let done = kill::run(&plan, Path::new(env!("CARGO_BIN_EXE_kstone-door-tests")));
    let _ = std::fs::remove_dir_all(folder);
    if let Err(what) = done {
        panic!("{what}");
    }
}

#[test]
fn a_killed_door_with_sync_has_lost_nothing_that_it_acknowledged() {
    kill_again_and_again(Durability::Sync);
}

#[test]
fn a_killed_door_with_interval_has_a_beginning_of_what_it_acknowledged() {
    kill_again_and_again(Durability::Interval);
}
