//! The same operations under other options give the same answers.
//!
//! The model is not asked here for what is right (though it runs along): the transcripts of all
//! answers are compared with each other.

use kstone_torture::run::{Mode, Transcript, run};
use kstone_torture::sequence::check_with;
use kstone_torture::settings::Settings;

fn first_difference(a: &Transcript, b: &Transcript) -> Option<String> {
    if a == b {
        return None;
    }
    let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or_else(|| a.len().min(b.len()));
    Some(format!("answer {at} differs: {:#?}\n{:#?}", a.get(at), b.get(at)))
}

/// Runs sequences both ways and compares their transcripts.
fn compare(seeds: std::ops::Range<u64>, other: Settings, mode: Mode) {
    let mut answers = 0;
    for seed in seeds {
        let counted = std::cell::Cell::new(0);
        let checked = check_with(seed, |_, ops| {
            let reference = run(ops, Settings::ordinary(), Mode::Inline, true)
                .map_err(|failure| format!("as users have it: {failure}"))?;
            let transcript = run(ops, other, mode, true).map_err(|f| format!("{other:?}: {f}"))?;
            counted.set(reference.len());
            first_difference(&reference, &transcript).map_or(Ok(()), Err)
        });
        if let Err(failure) = checked {
            panic!("{mode:?} {other:?}: {failure}");
        }
        answers += counted.get();
    }
    assert!(answers > 100, "only {answers} answers were compared");
}

#[test]
fn tiny_blocks_and_tiny_files_change_no_answer() {
    let tiny_files = Settings { stripe_records_max: Some(5), ..Settings::tiny() };
    compare(5000..5060, tiny_files, Mode::Inline);
}

#[test]
fn a_flush_at_every_write_changes_no_answer() {
    let tiny_memtables = Settings { stripe_records_max: Some(1), ..Settings::ordinary() };
    compare(5100..5160, tiny_memtables, Mode::Inline);
}

#[test]
fn one_compaction_thread_changes_no_answer() {
    let one_thread = Settings { background_threads: 1, ..Settings::tiny() };
    compare(5200..5230, one_thread, Mode::Threads);
}

#[test]
fn several_compaction_threads_change_no_answer() {
    let threads = Settings { background_threads: 4, ..Settings::tiny() };
    compare(5300..5330, threads, Mode::Threads);
}

#[test]
fn files_in_memory_change_no_answer() {
    compare(5400..5430, Settings::tiny(), Mode::Memory);
}

#[test]
fn two_transcripts_that_differ_are_told_apart() {
    let a: Transcript = vec![Err(kstone_torture::model::Refusal::NoSuchTable)];
    let b = Transcript::new();
    assert!(first_difference(&a, &a).is_none());
    assert!(first_difference(&a, &b).unwrap().contains("answer 0"));
}
