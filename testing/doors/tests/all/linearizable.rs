//! The short run of `kstone-door-tests linearizable`, which is also what the full run uses.

use kstone_door_tests::linear::{Plan, run};
use kstone_door_tests::server::Program;

#[test]
fn clients_of_a_door_that_is_killed_are_told_what_one_order_explains() {
    let program = Program::proofs(env!("CARGO_BIN_EXE_kstone-door-tests").into());
    let plan = Plan { clients: 32, rounds: 4, answers_max: 400, seed: 1, folder: None };
    if let Err(what) = run(&plan, &program) {
        panic!("{what}");
    }
}
