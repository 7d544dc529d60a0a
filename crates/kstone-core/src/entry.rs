//! One version of one record, as every layer of a stripe (log, memtable, SST) passes it on.
//!
//! Entries are ordered by key bytes, then by sequence number *descending*: the newest version of
//! a key comes first.

use std::cmp::Ordering;

/// The sequence number of a commit's record. They start at 1 and never repeat.
pub type Seq = u64;

/// The last sequence number: an SST keeps three more bits beside it. No database gets there by writing, so
/// a higher one in a file is damage.
pub(crate) const SEQ_MAX: Seq = u64::MAX >> 3;

/// What an entry says about its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The key has this value.
    Put = 1,
    /// The key has no value.
    Delete = 2,
    /// Every older record of the partition is gone. Its key is the partition's mark key
    /// (see `key::internal`), which sorts in front of the partition's records.
    DropPartition = 3,
}

impl Kind {
    pub(crate) fn from_u8(byte: u8) -> Option<Kind> {
        match byte {
            1 => Some(Kind::Put),
            2 => Some(Kind::Delete),
            3 => Some(Kind::DropPartition),
            _ => None,
        }
    }
}

/// A borrowed entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryRef<'a> {
    /// The internal key: table, partition key, sort key (`key::internal`).
    pub(crate) key: &'a [u8],
    pub(crate) seq: Seq,
    pub(crate) kind: Kind,
    /// Milliseconds since 1970 (UTC) from which the record counts as absent; 0 = never.
    pub(crate) expires_at_ms: u64,
    pub(crate) value: &'a [u8],
}

/// What a forward walk looks for: entries as of a moment, in front of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    /// Newer versions do not show.
    pub(crate) seq: Seq,
    /// What has expired by now does not show.
    pub(crate) now_ms: u64,
    /// Where the walk ends, if not with the last entry.
    pub(crate) high: Option<&'a [u8]>,
}

impl View<'_> {
    /// Whether the newest version at or below [`View::seq`] is a record that shows.
    #[inline]
    pub(crate) fn shows(&self, kind: Kind, expires_at_ms: u64) -> bool {
        kind == Kind::Put && !is_expired(expires_at_ms, self.now_ms)
    }

    /// Whether the walk ends in front of this key.
    #[inline]
    pub(crate) fn ends_before(&self, key: &[u8]) -> bool {
        self.high.is_some_and(|high| key >= high)
    }
}

/// Whether a record with this expiry counts as absent.
#[inline]
pub(crate) fn is_expired(expires_at_ms: u64, now_ms: u64) -> bool {
    expires_at_ms != 0 && expires_at_ms <= now_ms
}

/// The order of entries inside a stripe: key ascending, newest first.
#[inline]
pub(crate) fn entry_order(a_key: &[u8], a_seq: Seq, b_key: &[u8], b_seq: Seq) -> Ordering {
    a_key.cmp(b_key).then_with(|| b_seq.cmp(&a_seq))
}
