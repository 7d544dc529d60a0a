//! Deliberate bugs, for proving that the tests would notice.
//!
//! Each [`Bug`] leaves out or reorders one step that crash-safety hangs on. They exist only with
//! the feature `deliberate-bugs`, are switched on per thread (the crash tests run the engine
//! inline, on one thread), and `tests/all/deliberate_bugs.rs` shows that the harness catches each.

/// A step done wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each name says what is done wrong")]
pub enum Bug {
    /// The log is written but not synced before a commit is acknowledged.
    LogSyncSkipped,
    /// A flush installs its files before the log is synced through their records.
    FlushAheadOfLog,
    /// The manifest names SST files that were not synced.
    SstSyncSkipped,
    /// The manifest names SST files whose directory entries were not synced.
    SstDirSyncSkipped,
    /// The manifest edit is written before the SST's data.
    ManifestBeforeSst,
    /// A manifest edit is not synced.
    ManifestSyncSkipped,
    /// CURRENT is renamed but the folder is not synced before the old manifest goes.
    CurrentRenameNotSynced,
    /// Recovery takes chunks of other generations than the segment's, so the stale chunks of a
    /// recycled segment look valid.
    StaleChunkAccepted,
    /// A new log segment's directory entry is not synced before it is used.
    SegmentDirSyncSkipped,
    /// Recovery does not sync what it read before acknowledging on top of it.
    RecoveredTailNotSynced,
    /// Recovery stops at damage in synced data as if it were a torn tail.
    DamageTakenForTornTail,
    /// The log is released although a stripe still needs it.
    LogReleasedTooEarly,
    /// Compaction drops tombstones that still hide older versions below.
    TombstoneLost,
    /// Compaction ignores the registered snapshots.
    SnapshotIgnoredByCompaction,
    /// A batch goes into the log record by record, each synced on its own.
    BatchSplitInLog,
    /// Flush records a flushed sequence number one too high.
    FlushedSeqTooHigh,
    /// Sequence numbers start over after a restart.
    SequenceRestarts,
}

impl Bug {
    /// All of them.
    #[cfg(feature = "deliberate-bugs")]
    pub const ALL: &[Bug] = &[
        Bug::LogSyncSkipped,
        Bug::FlushAheadOfLog,
        Bug::SstSyncSkipped,
        Bug::SstDirSyncSkipped,
        Bug::ManifestBeforeSst,
        Bug::ManifestSyncSkipped,
        Bug::CurrentRenameNotSynced,
        Bug::StaleChunkAccepted,
        Bug::SegmentDirSyncSkipped,
        Bug::RecoveredTailNotSynced,
        Bug::DamageTakenForTornTail,
        Bug::LogReleasedTooEarly,
        Bug::TombstoneLost,
        Bug::SnapshotIgnoredByCompaction,
        Bug::BatchSplitInLog,
        Bug::FlushedSeqTooHigh,
        Bug::SequenceRestarts,
    ];
}

#[cfg(feature = "deliberate-bugs")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Switches a bug on (or all off) for the calling thread.
#[cfg(feature = "deliberate-bugs")]
pub fn switch(bug: Option<Bug>) {
    ACTIVE.set(bug);
}

/// Whether the step is to be done wrong.
#[cfg(feature = "deliberate-bugs")]
pub(crate) fn on(bug: Bug) -> bool {
    ACTIVE.get() == Some(bug)
}

/// Whether the step is to be done wrong: never, in this build.
#[cfg(not(feature = "deliberate-bugs"))]
#[inline(always)]
pub(crate) fn on(_: Bug) -> bool {
    false
}
