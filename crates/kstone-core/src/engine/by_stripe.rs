//! Inserts a large batch into the memtables stripe by stripe.
//!
//! A record on its way into a memtable waits for memory more than for anything else: the stripe, its lock,
//! its counters, and the place where the record will lie. In the order of the batch, each record has all of that to
//! wait for. The second one of a stripe finds it in the processor's cache if it comes right after the first, and
//! needs no lock of its own.
//!
//! Nobody can tell the difference: the writer has the locks of all stripes of its batch, the batch is seen as
//! a whole or not at all, and the records of one stripe stay in their order.
//!
//! Called by `write`, and not for deferred inserts, however large: their caller knows only their bytes.

use std::sync::atomic::Ordering;

use crate::batch::{Op, Ops, WriteBatch};
use crate::engine::Inner;
use crate::engine::write::malformed;
use crate::entry::{EntryRef, Seq};
use crate::error::Result;
use crate::key::STRIPES;

/// A batch with fewer records has hardly two for a stripe.
pub(super) const RECORDS_MIN: u32 = 64;
/// So many records are put in order at once: what is known of them stays in the processor's cache, and of a
/// large batch little memory is needed.
const WINDOW: usize = 1024;
/// So many are inserted at once at most, or so many bytes: a reader of the stripe waits for them.
const TOGETHER_MAX: usize = 16;
const TOGETHER_BYTES_MAX: usize = 32 << 10;
/// What a record takes beside its key and value, about.
const RECORD_OVERHEAD: usize = 16;
/// The latest record's stripe, when those before it were of others.
const NO_STRIPE: usize = STRIPES;

const _: () = assert!(WINDOW <= u16::MAX as usize, "places in a window are 16 bits long");

/// Some records of a batch, and their order.
struct Window<'a> {
    found: Vec<(u8, EntryRef<'a>)>,
    /// Which of those found comes when: first those of the lowest stripe.
    order: Vec<u16>,
}

/// Neighbours of one stripe that are inserted at once.
struct Group<'w> {
    stripe: u8,
    records: &'w [u16],
    bytes: usize,
}

impl<'a> Window<'a> {
    fn new(records: usize) -> Self {
        let len = records.min(WINDOW);
        Window { found: Vec::with_capacity(len), order: Vec::with_capacity(len) }
    }

    /// Goes on to the next records; answers whether there are any.
    fn fill(&mut self, ops: &mut Ops<'a>) -> Result<bool> {
        self.found.clear();
        while self.found.len() < WINDOW
            && let Some((_, op)) = ops.next().map_err(malformed)?
        {
            if let Op::Entry { stripe, entry } = op {
                self.found.push((stripe, entry));
            }
        }
        self.sort();
        Ok(!self.found.is_empty())
    }

    /// Counts the records of each stripe, so that each one's place is known when it is met.
    fn sort(&mut self) {
        let mut places = [0u16; STRIPES];
        for (stripe, _) in &self.found {
            places[usize::from(*stripe)] += 1;
        }
        let mut total = 0;
        for place in &mut places {
            (*place, total) = (total, total + *place);
        }
        self.order.clear();
        self.order.resize(self.found.len(), 0);
        for (nth, (stripe, _)) in self.found.iter().enumerate() {
            let place = &mut places[usize::from(*stripe)];
            self.order[usize::from(*place)] = nth as u16;
            *place += 1;
        }
    }

    fn stripe(&self, nth: u16) -> u8 {
        self.found[usize::from(nth)].0
    }

    fn entry(&self, nth: u16) -> EntryRef<'a> {
        self.found[usize::from(nth)].1
    }

    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let mut left = self.order.as_slice();
        std::iter::from_fn(move || {
            let stripe = self.stripe(*left.first()?);
            let (mut len, mut bytes) = (0, 0);
            while let Some(&nth) = left.get(len)
                && self.stripe(nth) == stripe
                && len < TOGETHER_MAX
            {
                let entry = self.entry(nth);
                let more = entry.key.len() + entry.value.len() + RECORD_OVERHEAD;
                if len > 0 && bytes + more > TOGETHER_BYTES_MAX {
                    break;
                }
                (len, bytes) = (len + 1, bytes + more);
            }
            let (records, rest) = left.split_at(len);
            left = rest;
            Some(Group { stripe, records, bytes })
        })
    }
}

impl Inner {
    /// Inserts the records of a batch, which has nothing else.
    pub(super) fn apply_by_stripe(&self, batch: &WriteBatch, first_seq: Seq) -> Result<()> {
        let warm = self.latest_stripe.load(Ordering::Relaxed);
        let mut latest = None;
        let mut ops = Ops::new(batch.ops(), first_seq);
        let mut window = Window::new(batch.count() as usize);
        let mut entries = Vec::with_capacity(TOGETHER_MAX);
        while window.fill(&mut ops)? {
            let mut ahead = window.groups().skip(1);
            self.prefetch_group(ahead.next());
            for Group { stripe, records, .. } in window.groups() {
                self.prefetch_group(ahead.next());
                entries.clear();
                entries.extend(records.iter().map(|&nth| window.entry(nth)));
                self.apply_entries(stripe, &entries, usize::from(stripe) == warm);
                let stripe = usize::from(stripe);
                latest = Some(latest.map_or(stripe, |l| if l == stripe { l } else { NO_STRIPE }));
            }
        }
        self.latest_stripe.store(latest.unwrap_or(NO_STRIPE), Ordering::Relaxed);
        Ok(())
    }

    /// Prefetches the memory that a group will need.
    fn prefetch_group(&self, group: Option<Group<'_>>) {
        if let Some(Group { stripe, bytes, .. }) = group {
            self.stripe(stripe).prefetch_insert(bytes);
        }
    }

    fn apply_entries(&self, stripe: u8, entries: &[EntryRef<'_>], is_warm: bool) {
        if entries.iter().any(|entry| entry.expires_at_ms != 0) {
            for &entry in entries {
                self.apply_entry(stripe, entry, is_warm);
            }
            return;
        }
        let tree = self.stripe(stripe);
        tree.insert_all(entries, is_warm, &self.chunk_pool, |before, after| {
            self.recount_memtables(before, after);
        });
        let bytes = entries.iter().map(|entry| (entry.key.len() + entry.value.len()) as u64).sum();
        tree.stats.writes.fetch_add(entries.len() as u64, Ordering::Relaxed);
        tree.stats.bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::{Durability, Engine, Key, Options, TableId};

    const TABLE: TableId = TableId::DEFAULT;

    fn key(n: u64) -> Key {
        Key::with_sk(format!("user#{}", n % 300), format!("post#{n}"))
    }

    #[test]
    fn a_window_has_each_record_once_by_stripe_and_in_its_order() {
        let mut batch = WriteBatch::new();
        for n in 0..2500u64 {
            batch.put(TABLE, &key(n), b"").unwrap();
            if n % 7 == 0 {
                batch.push_nop();
            }
        }
        let mut ops = Ops::new(batch.ops(), 1000);
        let mut window = Window::new(2500);
        let mut windows = Vec::new();
        let mut seqs = Vec::new();
        while window.fill(&mut ops).unwrap() {
            windows.push(window.found.len());
            let mut before = None;
            for Group { stripe, records, .. } in window.groups() {
                assert!(!records.is_empty() && records.len() <= TOGETHER_MAX);
                for &nth in records {
                    assert_eq!(window.stripe(nth), stripe);
                    let here = (stripe, window.entry(nth).seq);
                    assert!(before < Some(here), "{before:?} {here:?}");
                    before = Some(here);
                    seqs.push(here.1);
                }
            }
        }
        assert_eq!(windows, [1024, 1024, 452]);
        seqs.sort_unstable();
        seqs.dedup();
        assert_eq!(seqs.len(), 2500);
    }

    /// Nobody waits for many long ones.
    #[test]
    fn long_records_go_one_by_one() {
        let mut batch = WriteBatch::new();
        for (n, len) in [100, 30_000, 100, 40_000, 40_000, 100, 100].into_iter().enumerate() {
            let key = Key::with_sk("a", format!("{n}"));
            batch.put(TABLE, &key, &vec![7; len]).unwrap();
        }
        let mut window = Window::new(7);
        assert!(window.fill(&mut Ops::new(batch.ops(), 1)).unwrap());
        let lens: Vec<usize> = window.groups().map(|group| group.records.len()).collect();
        assert_eq!(lens, [3, 1, 1, 2]);
    }

    #[test]
    fn bytes_that_are_no_batch_are_refused() {
        let mut window = Window::new(1);
        assert!(window.fill(&mut Ops::new(&[255], 1)).is_err());
    }

    /// The same records in one large batch and in small ones, which go in as they come.
    #[test]
    fn a_large_batch_leaves_what_small_ones_leave() {
        let engine = || Engine::open_with(Env::memory(), "memory", Options::default()).unwrap();
        let (large, small) = (engine(), engine());
        let record = |batch: &mut WriteBatch, n: u64| {
            let value = format!("value {n}");
            match n % 11 {
                3 => batch.delete(TABLE, &key(n / 2)).unwrap(),
                5 => batch.drop_partition(TABLE, format!("user#{}", n % 300).as_bytes()).unwrap(),
                7 => batch.put_expiring(TABLE, &key(n), value.as_bytes(), u64::MAX / 2).unwrap(),
                // Often one that was just written: the later one wins.
                _ => batch.put(TABLE, &key(n / 3), value.as_bytes()).unwrap(),
            }
        };
        let mut all = WriteBatch::new();
        for n in 0..3000 {
            record(&mut all, n);
            let mut one = WriteBatch::new();
            record(&mut one, n);
            small.write(&one, Durability::Os).unwrap().wait().unwrap();
        }
        large.write(&all, Durability::Os).unwrap().wait().unwrap();
        let contents = |engine: &Engine| {
            let mut found = Vec::new();
            for n in 0..3000 {
                found.push(engine.get(TABLE, &key(n)).unwrap());
            }
            found
        };
        let expected = contents(&small);
        assert!(expected.iter().flatten().count() > 100);
        assert_eq!(contents(&large), expected);
        let stats = |engine: &Engine| {
            let stripes = (0..=255u8).map(|n| &engine.inner().stripe(n).stats);
            stripes
                .map(|s| {
                    (s.writes.load(Ordering::Relaxed), s.bytes_written.load(Ordering::Relaxed))
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(stats(&large), stats(&small));
        for engine in [&large, &small] {
            engine.flush().unwrap();
            assert_eq!(contents(engine), expected);
        }
    }
}
