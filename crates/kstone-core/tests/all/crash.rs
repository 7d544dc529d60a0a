//! The power goes, or the process is killed, at any moment; the database opens again with a
//! prefix of the commits that holds everything it promised. `kstone_crash` is the harness;
//! `cargo run --release -p kstone-crash` tries more seeds, and every operation.

use kstone_crash::Workload;
use kstone_crash::crash::{Plan, Report, explore};

/// Every sync of each workload is crashed at; of the other operations, every 7th.
fn crash(seeds: std::ops::Range<u64>) {
    let mut total = Report::default();
    for seed in seeds {
        match explore(&Workload::draw(seed, 60), &Plan::QUICK) {
            Ok(report) => total += report,
            Err(violation) => panic!("{violation}"),
        }
    }
    // A workload that never syncs would be an easy one.
    assert!(total.commits > 40 && total.images > 500, "{total:?}");
}

#[test]
fn a_crash_at_any_moment_leaves_a_prefix_with_everything_promised() {
    crash(0..3);
}

#[test]
fn a_crash_at_any_moment_leaves_a_prefix_under_other_options() {
    crash(3..6);
}
