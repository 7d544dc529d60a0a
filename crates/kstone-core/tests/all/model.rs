//! Random operations, options and reopenings against a plain in-memory model.
//!
//! Hundreds of sequences here; tens of thousands with
//! `cargo run --release -p kstone-torture -- model --sequences 20000`.

use kstone_torture::run::Mode;
use kstone_torture::sequence::{check, check_crowd};

fn check_seeds(seeds: std::ops::Range<u64>, mode: Mode) {
    for seed in seeds {
        if let Err(failure) = check(seed, mode) {
            panic!("{mode:?}: {failure}");
        }
    }
}

#[test]
fn random_sequences_give_the_answers_of_a_plain_map() {
    check_seeds(0..300, Mode::Inline);
}

#[test]
fn random_sequences_with_background_threads_give_the_same_answers() {
    check_seeds(1000..1050, Mode::Threads);
}

#[test]
fn random_sequences_in_memory_give_the_same_answers() {
    check_seeds(2000..2050, Mode::Memory);
}

#[test]
fn random_sequences_at_the_same_time_give_each_thread_the_answers_of_its_own_map() {
    for seed in 3000..3030 {
        if let Err(failure) = check_crowd(seed, 4, Mode::Threads) {
            panic!("{failure}");
        }
    }
}

/// The bugs that a crash needs to show are left to the crash tests; these show in plain use, or in
/// a crash after everything was synced.
#[cfg(feature = "deliberate-bugs")]
#[test]
fn the_model_notices_deliberate_bugs() {
    use kstone_core::bugs::{Bug, switch};
    use kstone_torture::run::run;
    use kstone_torture::sequence::draw;
    for bug in [
        Bug::SstSyncSkipped,
        Bug::SstDirSyncSkipped,
        Bug::LogReleasedTooEarly,
        Bug::TombstoneLost,
        Bug::SnapshotIgnoredByCompaction,
        Bug::FlushedSeqTooHigh,
        Bug::SequenceRestarts,
    ] {
        switch(Some(bug));
        let caught = (0..300).find(|&seed| {
            let (settings, ops) = draw(seed);
            std::panic::catch_unwind(|| run(&ops, settings, Mode::Inline, false))
                .is_ok_and(|ran| ran.is_err())
        });
        switch(None);
        assert!(caught.is_some(), "300 sequences did not notice {bug:?}");
        println!("{bug:?}: caught by sequence {}", caught.unwrap());
    }
}
