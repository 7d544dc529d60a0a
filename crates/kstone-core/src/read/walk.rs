//! Walks the visible records of a key range of one stripe, forward or backward.
//!
//! The raw merge has every version, tombstone and mark; a walk shows each key once, as the
//! snapshot sees it.

use bytes::Bytes;

use crate::entry::{EntryRef, Kind, Seq, View, is_expired};
use crate::error::Result;
use crate::key::internal;
use crate::read::snapshot::Snapshot;
use crate::sync::Arc;
use crate::tree::cursor::Cursor;
use crate::tree::merge::Merge;
use crate::tree::stripe::{Stripe, Version};

/// A lazy walk over `[low, high)` of one stripe. It holds the version it started with and no lock.
#[derive(Debug)]
pub(crate) struct Walk {
    snapshot: Snapshot,
    version: Arc<Version>,
    merge: Merge,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    forward: bool,
    started: bool,
    /// Whether the merge still stands on the current record, which a forward walk lends from there.
    lends: bool,
    current: Current,
    /// The partition whose drop mark was looked up last, and the mark.
    partition: Vec<u8>,
    partition_mark: Seq,
    has_marks: bool,
    /// What the snapshot shows, at hand for every step.
    seq: Seq,
    now_ms: u64,
}

/// The record that the walk stands on. Backward walks meet versions oldest first and know the
/// right one only when the key changes, so they keep its value here; for forward walks it stays in
/// the merge.
#[derive(Debug, Default)]
struct Current {
    key: Vec<u8>,
    value: Bytes,
    seq: Seq,
    expires_at_ms: u64,
}

/// One visible record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) seq: Seq,
    pub(crate) expires_at_ms: u64,
}

impl Walk {
    pub(crate) fn new(
        snapshot: Snapshot,
        stripe: u8,
        low: Vec<u8>,
        high: Option<Vec<u8>>,
        forward: bool,
    ) -> Walk {
        let version = snapshot.inner().stripe(stripe).version_to_read(Stripe::WALK);
        let merge = Merge::new(version.cursors(&low, high.as_deref()));
        let has_marks = version.max_mark_seq() > 0;
        let (seq, now_ms) = (snapshot.seq(), snapshot.now_ms());
        Walk {
            snapshot,
            version,
            merge,
            low,
            high,
            forward,
            started: false,
            lends: false,
            current: Current::default(),
            partition: Vec::new(),
            partition_mark: 0,
            has_marks,
            seq,
            now_ms,
        }
    }

    /// The next visible record.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Found<'_>>> {
        self.snapshot.check_live()?;
        let found = if self.forward { self.step_forward()? } else { self.step_backward()? };
        Ok(if found { self.current() } else { None })
    }

    /// The record that `next` answered last, until the walk moves on.
    #[inline]
    pub(crate) fn current(&self) -> Option<Found<'_>> {
        if self.lends {
            let EntryRef { key, value, seq, expires_at_ms, .. } = self.merge.entry()?;
            return Some(Found { key, value, seq, expires_at_ms });
        }
        let Current { key, value, seq, expires_at_ms } = &self.current;
        Some(Found { key, value, seq: *seq, expires_at_ms: *expires_at_ms })
    }

    /// The current record's value as something that can be kept; shared, not copied, where its
    /// source allows.
    pub(crate) fn value_bytes(&self) -> Bytes {
        if self.lends { self.merge.value_bytes() } else { self.current.value.clone() }
    }

    /// The last key that was looked at; `None` before the first.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        if self.lends {
            return self.merge.entry().map(|entry| entry.key);
        }
        (!self.current.key.is_empty()).then_some(self.current.key.as_slice())
    }

    /// Jumps forward to the first record at or behind `key`.
    pub(crate) fn skip_to(&mut self, key: &[u8]) -> Result<()> {
        self.started = true;
        if std::mem::take(&mut self.lends)
            && let Some(entry) = self.merge.entry()
        {
            self.current.key.clear();
            self.current.key.extend_from_slice(entry.key);
        }
        self.merge.seek(key, Seq::MAX)
    }

    /// The only source, if there is nothing to merge and no drop to look for: it knows itself which
    /// entries are versions of one key, so no key is kept and compared.
    #[inline]
    fn only_source(&mut self) -> Option<(&mut Cursor, View<'_>)> {
        if self.has_marks {
            return None;
        }
        let view = View { seq: self.seq, now_ms: self.now_ms, high: self.high.as_deref() };
        Some((self.merge.single()?, view))
    }

    #[inline]
    fn step_forward(&mut self) -> Result<bool> {
        if self.lends
            && let Some((source, view)) = self.only_source()
        {
            self.lends = source.next_visible(&view)?;
            return Ok(self.lends);
        }
        self.step_in_merge()
    }

    fn step_in_merge(&mut self) -> Result<bool> {
        if !self.started {
            self.started = true;
            self.merge.seek(&self.low, Seq::MAX)?;
        } else if std::mem::take(&mut self.lends) {
            self.merge.next()?;
        }
        if let Some((source, view)) = self.only_source() {
            self.lends = source.find_visible(&view)?;
            return Ok(self.lends);
        }
        loop {
            let Some(entry) = self.merge.entry() else { return Ok(false) };
            if self.high.as_ref().is_some_and(|high| entry.key >= high.as_slice()) {
                return Ok(false);
            }
            // The newest version at or below the snapshot decides; older ones are skipped, because
            // their key is the current one.
            let decides = entry.seq <= self.seq && entry.key != self.current.key;
            if !decides {
                self.merge.next()?;
                continue;
            }
            let shows = entry.kind == Kind::Put && !is_expired(entry.expires_at_ms, self.now_ms);
            self.current.key.clear();
            self.current.key.extend_from_slice(entry.key);
            (self.current.seq, self.current.expires_at_ms) = (entry.seq, entry.expires_at_ms);
            if shows && !self.is_dropped()? {
                self.lends = true;
                return Ok(true);
            }
            self.merge.next()?;
        }
    }

    fn step_backward(&mut self) -> Result<bool> {
        if !self.started {
            self.started = true;
            match &self.high {
                Some(high) => self.merge.seek_before(high, Seq::MAX)?,
                None => self.merge.seek_before(&[0xff; 16], 0)?,
            }
        }
        loop {
            // Versions of one key come oldest first; the last one at or below the snapshot counts.
            let Some(first) = self.merge.entry() else { return Ok(false) };
            if first.key < self.low.as_slice() {
                return Ok(false);
            }
            self.current.key.clear();
            self.current.key.extend_from_slice(first.key);
            let mut shows = false;
            while let Some(entry) = self.merge.entry() {
                if entry.key != self.current.key {
                    break;
                }
                if entry.seq <= self.seq {
                    shows =
                        entry.kind == Kind::Put && !is_expired(entry.expires_at_ms, self.now_ms);
                    (self.current.seq, self.current.expires_at_ms) =
                        (entry.seq, entry.expires_at_ms);
                    if shows {
                        self.current.value = self.merge.value_bytes();
                    }
                }
                self.merge.prev()?;
            }
            if shows && !self.is_dropped()? {
                return Ok(true);
            }
        }
    }

    /// Whether the current record went with its partition.
    fn is_dropped(&mut self) -> Result<bool> {
        if !self.has_marks {
            return Ok(false);
        }
        let key = self.current.key.as_slice();
        if self.partition.is_empty() || !internal::is_in_partition(key, &self.partition) {
            let Some(end) = internal::partition_len(key) else { return Ok(false) };
            self.partition.clear();
            self.partition.extend_from_slice(key.get(..end).unwrap_or_default());
            let mut mark = Vec::with_capacity(end + 1);
            self.partition_mark = match internal::mark_of_into(key, &mut mark) {
                Some(()) => self.version.lookup(&mark, self.seq)?.map_or(0, |hit| hit.seq),
                None => 0,
            };
        }
        Ok(self.current.seq < self.partition_mark)
    }
}
