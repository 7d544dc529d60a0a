//! The write-ahead log on disk: what its bytes mean, which file holds which part, and how it is
//! read back after a crash.
//!
//! The log is one endless sequence of bytes; a *position* counts from its very beginning. Each
//! *segment* file holds a stretch of it, as *chunks*: one chunk per group of commits. See
//! [`format`] for the bytes.
//!
//! ```text
//! position   0 ─────────────▶ start_pos of B ───────▶ start_pos of C ───▶ end
//! file       wal-000000.log   wal-000002.log          wal-000001.log (used a second time)
//! generation 1                2                       3
//! ```
//!
//! Invariants that the rest of the engine stands on:
//!
//! 1. **Claims are true.** A durable position written into any header (segment or chunk) had been
//!    synced before that header was written. So a claim beyond a bad chunk proves that the bad
//!    chunk is damage, not the torn end of a crashed write ([`recover`]).
//! 2. **Only the last segment can be torn.** A segment is synced to its end before the header of
//!    the next is written, and that header is synced before the next segment's first chunk.
//! 3. **The header of the highest generation is never overwritten.** A file is reused only after a
//!    newer header is on disk, so a chunk newer than every readable header proves a lost header.
//! 4. **Nothing is appended to a segment that was recovered.** What follows the end of a crashed
//!    log goes to a new segment of a higher generation that starts at that end; later bytes of the
//!    old one are void from then on.
//!
//! This module calls `env` and `codec`; `commit` is its only caller. It does not know what a
//! commit's operations mean.

pub(crate) mod format;
mod reader;
mod recover;
mod segments;
pub(crate) mod version1;
mod writer;

#[cfg(test)]
mod old_version_tests;
#[cfg(test)]
pub(crate) mod test_vfs;
#[cfg(test)]
mod tests;

pub(crate) use recover::{Recovered, RecoveryStart, ReplayedCommit, inspect, recover};
pub(crate) use segments::{LiveSegments, Prepared, Segments};
pub(crate) use writer::{AfterChunk, LogWriter, SyncRequest};

/// Tells databases apart; drawn at random when one is created.
pub(crate) type DbId = [u8; 16];

/// Whether a file of that name is, or was, a part of some log.
pub(crate) fn is_segment_name(name: &str) -> bool {
    segments::parse_file_name(name).is_some()
}
