//! The short run of `kstone-door-tests redis-model`.

use kstone::Database;
use kstone_door_tests::redis::model::{Pair, Plan, run};
use kstone_door_tests::redis::server::Process;
use kstone_door_tests::server::Door;

#[track_caller]
fn check(pair: &mut Pair, commands: usize) {
    let plan = Plan { commands, seed: 1, differences_max: 3 };
    let report = run(&plan, pair).unwrap();
    assert!(report.found.is_empty(), "{report}");
}

#[test]
fn random_commands_are_answered_as_redis_answers_them() {
    let Some(theirs) = Process::redis_server().unwrap() else {
        eprintln!("skipped: redis-server is not installed");
        return;
    };
    let door = Door::redis(&Database::memory().unwrap()).unwrap();
    check(&mut Pair::with_server(&door, &theirs).unwrap(), 20_000);
}

#[test]
fn random_commands_are_answered_as_a_plain_model_answers_them_while_time_passes() {
    check(&mut Pair::with_model().unwrap(), 20_000);
}
