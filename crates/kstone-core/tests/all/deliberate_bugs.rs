//! The crash harness detects every deliberate bug, and reports nothing without one.

use kstone_core::bugs::{self, Bug};
use kstone_crash::crash::{self, Plan};
use kstone_crash::damage::Files;
use kstone_crash::{Violation, Workload};

/// Off again when the test ends, however it ends.
struct Switched;

impl Switched {
    fn on(bug: Bug) -> Self {
        bugs::switch(Some(bug));
        Switched
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        bugs::switch(None);
    }
}

/// Changes every 37th byte of the log that a killed process left.
fn damage_log(seed: u64) -> Result<(), Violation> {
    let killed = Files::killed(Workload::draw(seed, 40))?;
    for (path, len) in killed.list() {
        if path.extension().is_some_and(|ext| ext == "log") {
            for offset in (0..len).step_by(37) {
                killed.flip(&path, offset, 0x10)?;
            }
        }
    }
    Ok(())
}

/// The first violation that any of the seeds finds.
fn find(bug: Bug) -> Option<Violation> {
    let _switched = Switched::on(bug);
    (0..40).find_map(|seed| {
        let found = match bug {
            Bug::DamageTakenForTornTail => damage_log(seed),
            _ => crash::explore(&Workload::draw(seed, 60), &Plan::QUICK).map(drop),
        };
        found.err()
    })
}

macro_rules! each_is_caught {
    ($($name:ident => $bug:ident,)*) => {
        $(#[test]
        fn $name() {
            match find(Bug::$bug) {
                Some(violation) => println!("{:?}: {violation}", Bug::$bug),
                None => panic!("no seed finds {:?}", Bug::$bug),
            }
        })*

        #[test]
        fn every_bug_has_a_test() {
            let tested = [$(Bug::$bug),*];
            let untested: Vec<_> = Bug::ALL.iter().filter(|bug| !tested.contains(bug)).collect();
            assert!(untested.is_empty(), "{untested:?}");
        }
    };
}

each_is_caught! {
    a_log_that_is_not_synced_is_caught => LogSyncSkipped,
    a_flush_ahead_of_the_log_is_caught => FlushAheadOfLog,
    an_sst_that_is_not_synced_is_caught => SstSyncSkipped,
    an_sst_whose_name_is_not_synced_is_caught => SstDirSyncSkipped,
    a_manifest_ahead_of_its_sst_is_caught => ManifestBeforeSst,
    a_manifest_that_is_not_synced_is_caught => ManifestSyncSkipped,
    a_rename_of_current_that_is_not_synced_is_caught => CurrentRenameNotSynced,
    a_stale_chunk_that_is_accepted_is_caught => StaleChunkAccepted,
    a_log_segment_whose_name_is_not_synced_is_caught => SegmentDirSyncSkipped,
    a_recovered_tail_that_is_not_synced_is_caught => RecoveredTailNotSynced,
    damage_taken_for_a_torn_tail_is_caught => DamageTakenForTornTail,
    a_log_released_too_early_is_caught => LogReleasedTooEarly,
    a_lost_tombstone_is_caught => TombstoneLost,
    a_snapshot_ignored_by_compaction_is_caught => SnapshotIgnoredByCompaction,
    a_batch_split_in_the_log_is_caught => BatchSplitInLog,
    a_flushed_number_that_is_too_high_is_caught => FlushedSeqTooHigh,
    sequence_numbers_that_start_over_are_caught => SequenceRestarts,
}

#[test]
fn without_a_bug_nothing_is_reported() {
    for seed in 0..2 {
        let explored = crash::explore(&Workload::draw(seed, 60), &Plan::QUICK);
        assert_eq!(explored.err(), None);
        assert_eq!(damage_log(seed).err(), None);
    }
}
