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

/// So many steps at a time are counted: a short walk is counted when it begins.
const STEPS_TOLD: u64 = 256;

/// A lazy walk over `[low, high)` of one stripe. It holds the version it started with and no lock.
#[derive(Debug)]
pub(crate) struct Walk {
    snapshot: Snapshot,
    version: Arc<Version>,
    /// The only source, if there is nothing to merge and no drop to look for: it knows itself which
    /// entries are versions of one key, so no key is kept and compared. Then `merge` is empty.
    one: Option<Cursor>,
    merge: Merge,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    forward: bool,
    started: bool,
    /// Whether the source still stands on the current record, which a forward walk lends from there.
    lends: bool,
    current: Current,
    /// The partition whose drop mark was looked up last, and the mark.
    partition: Vec<u8>,
    partition_mark: Seq,
    has_marks: bool,
    stripe: u8,
    /// Steps in the merge that the stripe has not been told of.
    steps: u64,
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

impl<'a> From<EntryRef<'a>> for Found<'a> {
    #[inline]
    fn from(entry: EntryRef<'a>) -> Self {
        let EntryRef { key, value, seq, expires_at_ms, .. } = entry;
        Found { key, value, seq, expires_at_ms }
    }
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
        let has_marks = version.max_mark_seq() > 0;
        let one = match forward && !has_marks {
            true => version.only_cursor(&low, high.as_deref()),
            false => None,
        };
        let sources = match &one {
            Some(_) => Vec::new(),
            None => version.cursors(&low, high.as_deref()),
        };
        let (seq, now_ms) = (snapshot.seq(), snapshot.now_ms());
        Walk {
            snapshot,
            version,
            one,
            merge: Merge::new(sources),
            low,
            high,
            forward,
            started: false,
            lends: false,
            current: Current::default(),
            partition: Vec::new(),
            partition_mark: 0,
            has_marks,
            stripe,
            steps: 0,
            seq,
            now_ms,
        }
    }

    /// The next visible record.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Found<'_>>> {
        Ok(if self.advance()? { self.current() } else { None })
    }

    /// Goes to the next visible record; `false` if there is none.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> Result<bool> {
        self.snapshot.check_live()?;
        if self.lends
            && let Some(Cursor::File { cursor, .. }) = &mut self.one
        {
            let view = View { seq: self.seq, now_ms: self.now_ms, high: self.high.as_deref() };
            if let Some(is_visible) = cursor.next_plain(&view) {
                self.lends = is_visible;
                return Ok(is_visible);
            }
        }
        self.step()
    }

    /// The same, whatever comes next.
    #[inline(never)]
    fn step(&mut self) -> Result<bool> {
        if self.one.is_some() {
            return self.step_one();
        }
        self.count_step();
        if self.forward { self.step_forward() } else { self.step_backward() }
    }

    /// A long walk tells the stripe now and then what it costs that there are files to merge.
    fn count_step(&mut self) {
        self.steps += 1;
        if self.steps == STEPS_TOLD {
            self.steps = 0;
            let stripe = self.snapshot.inner().stripe(self.stripe);
            // What has been merged meanwhile does not have to be paid for again.
            if Arc::ptr_eq(&self.version.levels, &stripe.version().levels) {
                stripe.count_extra_files(&self.version, STEPS_TOLD * Stripe::STEP);
            }
        }
    }

    /// The record that the walk has gone to, until it moves on.
    #[inline(always)]
    pub(crate) fn current(&self) -> Option<Found<'_>> {
        match &self.one {
            Some(Cursor::File { cursor, .. }) if self.lends => cursor.entry().map(Found::from),
            _ => self.current_elsewhere(),
        }
    }

    #[inline(never)]
    fn current_elsewhere(&self) -> Option<Found<'_>> {
        if self.lends {
            return self.entry().map(Found::from);
        }
        let Current { key, value, seq, expires_at_ms } = &self.current;
        Some(Found { key, value, seq: *seq, expires_at_ms: *expires_at_ms })
    }

    /// The current record's value as something that can be kept; shared, not copied, where its
    /// source allows.
    pub(crate) fn value_bytes(&self) -> Bytes {
        match &self.one {
            _ if !self.lends => self.current.value.clone(),
            Some(one) => one.value_bytes(),
            None => self.merge.value_bytes(),
        }
    }

    /// The last key that was looked at; `None` before the first.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        if self.lends {
            return self.current().map(|found| found.key);
        }
        (!self.current.key.is_empty()).then_some(self.current.key.as_slice())
    }

    /// The entry that the source stands on.
    fn entry(&self) -> Option<EntryRef<'_>> {
        match &self.one {
            Some(one) => one.entry(),
            None => self.merge.entry(),
        }
    }

    /// Jumps forward to the first record at or behind `key`.
    pub(crate) fn skip_to(&mut self, key: &[u8]) -> Result<()> {
        self.started = true;
        if self.lends
            && let Some(entry) = match &self.one {
                Some(one) => one.entry(),
                None => self.merge.entry(),
            }
        {
            self.current.key.clear();
            self.current.key.extend_from_slice(entry.key);
        }
        self.lends = false;
        match &mut self.one {
            Some(one) => one.seek(key, Seq::MAX),
            None => self.merge.seek(key, Seq::MAX),
        }
    }

    fn step_one(&mut self) -> Result<bool> {
        let Some(one) = &mut self.one else { return Ok(false) };
        let view = View { seq: self.seq, now_ms: self.now_ms, high: self.high.as_deref() };
        // Whatever comes of it: after an error the source is on no entry.
        let lent = std::mem::take(&mut self.lends);
        if !std::mem::replace(&mut self.started, true) {
            one.seek(&self.low, Seq::MAX)?;
        }
        self.lends = if lent { one.next_visible(&view)? } else { one.find_visible(&view)? };
        Ok(self.lends)
    }

    fn step_forward(&mut self) -> Result<bool> {
        if !self.started {
            self.started = true;
            self.merge.seek(&self.low, Seq::MAX)?;
        } else if std::mem::take(&mut self.lends) {
            self.merge.next()?;
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

#[cfg(test)]
mod tests {
    use crate::{Durability, Engine, KeyRef, Options, Record, TableId, WriteBatch};

    const TABLE: TableId = TableId::DEFAULT;

    fn key(n: u32) -> ([u8; 2], Vec<u8>) {
        // Zeros in partition keys, sort keys that share much and little.
        let sk = format!("sort#{:04}{}", n / 3, "x".repeat((n / 3 % 5) as usize * 9));
        ([(n % 3) as u8, 0], sk.into_bytes())
    }

    /// Every range, prefix and scan answers what single gets do.
    fn check(engine: &Engine, count: u32) {
        let snapshot = engine.snapshot();
        let mut all: Vec<(Vec<u8>, Vec<u8>, Record)> = Vec::new();
        for n in 0..count {
            let (pk, sk) = key(n);
            if let Some(record) = snapshot.get(TABLE, KeyRef::with_sk(&pk, &sk)).unwrap() {
                all.push((pk.to_vec(), sk, record));
            }
        }
        all.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        let mut scanned = Vec::new();
        let mut scan = snapshot.scan(TABLE, crate::ScanCursor::start());
        while let Some(found) = scan.next_ref().unwrap() {
            let value = bytes::Bytes::copy_from_slice(found.value);
            let (expires_at_ms, version) = (found.expires_at_ms, found.version);
            let record = Record { value, expires_at_ms, version };
            scanned.push((found.pk.to_vec(), found.sk.unwrap().to_vec(), record));
        }
        scanned.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        assert_eq!(scanned, all);
        for (from, to) in (0..count).step_by(17).flat_map(|a| [5, 40, 200].map(|len| (a, a + len)))
        {
            let ((pk, low), (_, high)) = (key(from), key(to));
            let expected: Vec<_> = all
                .iter()
                .filter(|(p, sk, _)| p[..] == pk && (&low..&high).contains(&sk))
                .map(|(_, sk, record)| (sk.clone(), record.clone()))
                .collect();
            for is_reverse in [false, true] {
                let query = snapshot.partition(TABLE, pk.to_vec()).range(low.clone()..high.clone());
                let query = if is_reverse { query.reverse() } else { query };
                let mut found: Vec<_> = query
                    .iter()
                    .unwrap()
                    .map(|found| found.map(|found| (found.key.sk.unwrap().to_vec(), found.record)))
                    .collect::<Result<_, _>>()
                    .unwrap();
                if is_reverse {
                    found.reverse();
                }
                assert_eq!(found, expected, "{from} {to}");
            }
        }
    }

    #[test]
    fn a_walk_shows_what_gets_do_whatever_it_has_to_merge() {
        const COUNT: u32 = 900;
        let engine = Engine::memory(Options::default()).unwrap();
        let write = |step: usize, round: u32| {
            let mut batch = WriteBatch::new();
            for n in (0..COUNT).step_by(step) {
                let (pk, sk) = key(n);
                let key = KeyRef::with_sk(&pk, &sk);
                let value = vec![n as u8; 30 + (n % 100) as usize];
                match (n + round) % 11 {
                    0 => batch.delete(TABLE, key).unwrap(),
                    // One that is over, one that never will be.
                    1 => batch.put_expiring(TABLE, key, &value, 1).unwrap(),
                    2 => batch.put_expiring(TABLE, key, &value, u64::MAX >> 4).unwrap(),
                    _ => batch.put(TABLE, key, &value).unwrap(),
                }
            }
            engine.write(&batch, Durability::Os).unwrap().wait().unwrap();
        };
        // A memtable, a file, both, files and a run, one run; versions that a snapshot keeps.
        write(1, 0);
        check(&engine, COUNT);
        engine.flush().unwrap();
        check(&engine, COUNT);
        let kept = engine.snapshot();
        write(2, 1);
        check(&engine, COUNT);
        engine.flush().unwrap();
        write(3, 2);
        check(&engine, COUNT);
        engine.compact().unwrap();
        check(&engine, COUNT);
        drop(kept);
        let mut batch = WriteBatch::new();
        batch.drop_partition(TABLE, &key(1).0).unwrap();
        engine.write(&batch, Durability::Os).unwrap().wait().unwrap();
        write(9, 3);
        check(&engine, COUNT);
        engine.compact().unwrap();
        check(&engine, COUNT);
    }

    #[test]
    fn a_walk_has_one_source_where_other_files_hold_other_partitions() {
        let engine = Engine::memory(Options::default()).unwrap();
        let ours = [1u8, 1];
        let stripe = crate::key::stripe_of(&ours);
        let theirs = (2..=u8::MAX)
            .flat_map(|a| (0..=u8::MAX).map(move |b| [a, b]))
            .find(|pk| crate::key::stripe_of(pk) == stripe)
            .unwrap();
        let write = |pk: &[u8]| {
            let mut batch = WriteBatch::new();
            for n in 0..50u8 {
                batch.put(TABLE, KeyRef::with_sk(pk, &[n]), b"value").unwrap();
            }
            engine.write(&batch, Durability::Os).unwrap().wait().unwrap();
        };
        write(&ours);
        engine.compact().unwrap();
        write(&theirs);
        engine.flush().unwrap();
        let walk = |pk: &[u8]| {
            let (low, high) = crate::key::internal::PartitionBounds::new(TABLE, pk).finish(None);
            super::Walk::new(engine.snapshot(), stripe, low, Some(high), true)
        };
        for pk in [ours, theirs] {
            let mut walk = walk(&pk);
            assert!(walk.one.is_some(), "{pk:?}");
            let mut count = 0;
            while walk.next().unwrap().is_some() {
                count += 1;
            }
            assert_eq!(count, 50);
        }
    }
}
