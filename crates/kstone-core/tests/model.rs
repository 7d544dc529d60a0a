//! Random operations, options and reopenings against a plain in-memory model.
//!
//! Hundreds of sequences here; tens of thousands with
//! `cargo run --release -p kstone-torture -- model --sequences 20000`.

use kstone_torture::run::Mode;
use kstone_torture::sequence::check;

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
    check_seeds(1000..1040, Mode::Threads);
}

#[test]
fn random_sequences_in_memory_give_the_same_answers() {
    check_seeds(2000..2040, Mode::Memory);
}
