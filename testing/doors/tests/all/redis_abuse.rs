//! The short run of `kstone-door-tests redis-abuse`.

use std::path::Path;

use kstone::Durability;
use kstone_door_tests::redis::abuse::{self, Finding};
use kstone_door_tests::redis::server::Process;

/// Does it to doors of their own: memory is measured.
#[track_caller]
fn check(name: &str, abuse: impl FnOnce(&Process) -> Finding) {
    let folder = std::env::temp_dir().join(format!("kstone-redis-{name}-{}", std::process::id()));
    let program = Path::new(env!("CARGO_BIN_EXE_kstone-door-tests"));
    let seen = match Process::doors(program, &folder, Durability::Interval) {
        Ok(process) => abuse(&process),
        Err(error) => Err(error.to_string()),
    };
    let _ = std::fs::remove_dir_all(folder);
    if let Err(what) = seen {
        panic!("{what}");
    }
}

#[test]
fn a_client_that_does_not_read_takes_bounded_memory_and_gets_everything_later() {
    check("reader", |process| abuse::slow_reader(process, 300));
}

#[test]
fn a_subscriber_that_does_not_read_is_cut_off() {
    check("subscriber", |process| abuse::slow_subscriber(process, 200));
}

#[test]
fn an_argument_that_is_only_announced_takes_no_memory() {
    check("announced", |process| abuse::announced_arguments(process, 100));
}

#[test]
fn many_clients_at_once_are_all_served() {
    check("clients", |process| abuse::many_connections(process, 500));
}

#[test]
fn a_script_without_end_can_be_killed_and_the_other_door_goes_on() {
    check("endless", abuse::endless_script);
}

#[test]
fn a_script_that_takes_memory_without_end_is_stopped() {
    check("hungry", abuse::hungry_script);
}
