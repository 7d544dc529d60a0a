//! The number of keys in each slot, so that DBSIZE does not count them.
//!
//! Every commit adds its difference. The numbers are stored when the database is closed properly;
//! after a crash the keys are counted in the background, in a snapshot of the moment of opening,
//! while keys come and go.

use std::sync::atomic::{AtomicI64, Ordering};

use kstone_core::sync::Mutex;
use kstone_core::{Durability, Engine, Key, ScanCursor, ScanIter, Snapshot, TableId, WriteBatch};

use crate::store::databases::{DATABASES, Layout};

/// The record of the layer's catalogue that has the numbers. It is there only while the database
/// is closed.
const RECORD: &[u8] = b"counts";
/// The form of that record.
const VERSION: u8 = 1;
/// Not known before they are counted.
const UNKNOWN: i64 = i64::MIN;
/// How many records are looked at before others have their turn in the background.
const STEP: usize = 10_000;

/// See the module.
#[derive(Debug)]
pub(crate) struct Counts {
    /// How many keys each slot had when the database was opened.
    at_open: [AtomicI64; DATABASES],
    /// How many came since then, less those that went.
    since: [AtomicI64; DATABASES],
    counting: Mutex<Option<CountInProgress>>,
}

/// A count that is under way.
#[derive(Debug)]
struct CountInProgress {
    /// The moment at which the database was opened.
    snapshot: Snapshot,
    /// What is left to count.
    slots: Vec<(u8, TableId)>,
    scan: Option<ScanIter>,
    keys: i64,
}

impl Counts {
    /// Finds out what is known. Nothing was written since the database was opened.
    pub(crate) fn open(
        engine: &Engine,
        catalog: TableId,
        layout: &Layout,
    ) -> kstone_core::Result<Counts> {
        let key = Key::new(RECORD);
        let stored = engine.get(catalog, &key)?;
        let known = stored.as_ref().and_then(|record| decode(&record.value));
        if stored.is_some() {
            // From now on it would be wrong.
            let mut batch = WriteBatch::new();
            batch.delete(catalog, &key)?;
            engine.write(&batch, Durability::Sync)?.wait()?;
        }
        let mut slots = Vec::new();
        let at_open = std::array::from_fn(|slot| {
            let table = layout.table(slot as u8);
            let known = known.as_ref().and_then(|known| known.get(slot)).copied();
            let count = match (table, known.filter(|count| *count != UNKNOWN)) {
                (None, _) => 0,
                (Some(_), Some(known)) => known,
                (Some(table), None) => {
                    slots.push((slot as u8, table));
                    UNKNOWN
                }
            };
            AtomicI64::new(count)
        });
        let counting = (!slots.is_empty()).then(|| {
            // What has expired and was not removed is still a key that will go.
            let snapshot = engine.snapshot_even_expired();
            CountInProgress { snapshot, slots, scan: None, keys: 0 }
        });
        let since = std::array::from_fn(|_| AtomicI64::new(0));
        Ok(Counts { at_open, since, counting: Mutex::new(counting) })
    }

    /// The number of keys of a slot, if it is known.
    pub(crate) fn get(&self, slot: u8) -> Option<i64> {
        let at_open = self.at_open.get(usize::from(slot))?.load(Ordering::Acquire);
        let since = self.since.get(usize::from(slot))?.load(Ordering::Acquire);
        (at_open != UNKNOWN).then(|| (at_open + since).max(0))
    }

    /// Keys came or went.
    pub(crate) fn add(&self, slot: u8, keys: i64) {
        if let Some(since) = self.since.get(usize::from(slot)) {
            since.fetch_add(keys, Ordering::AcqRel);
        }
    }

    /// A slot was emptied. Its keys are not counted any more, if they were about to be.
    pub(crate) fn clear(&self, slot: u8) {
        let at = usize::from(slot);
        if let (Some(at_open), Some(since)) = (self.at_open.get(at), self.since.get(at)) {
            at_open.store(0, Ordering::Release);
            since.store(0, Ordering::Release);
        }
    }

    /// Counts some of what is not known; returns whether there is more.
    pub(crate) fn step(&self) -> kstone_core::Result<bool> {
        let mut counting = self.counting.lock();
        let Some(now) = &mut *counting else { return Ok(false) };
        let Some((slot, table)) = now.slots.last().copied() else {
            *counting = None;
            return Ok(false);
        };
        let at_open = self.at_open.get(usize::from(slot));
        let is_wanted = at_open.is_some_and(|count| count.load(Ordering::Acquire) == UNKNOWN);
        if is_wanted && !now.count_some(table)? {
            return Ok(true);
        }
        if let Some(at_open) = at_open {
            // Unless it was emptied meanwhile.
            let (old, new) = (UNKNOWN, now.keys);
            let _ = at_open.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire);
        }
        now.slots.pop();
        (now.scan, now.keys) = (None, 0);
        Ok(true)
    }

    /// Writes down what is known, because the database is about to be closed.
    pub(crate) fn save(&self, engine: &Engine, catalog: TableId) -> kstone_core::Result<()> {
        let mut value = vec![VERSION];
        for slot in 0..DATABASES {
            let count = self.get(slot as u8).unwrap_or(UNKNOWN);
            value.extend_from_slice(&count.to_le_bytes());
        }
        let mut batch = WriteBatch::new();
        batch.put(catalog, &Key::new(RECORD), &value)?;
        drop(engine.write(&batch, Durability::Os)?);
        Ok(())
    }
}

impl CountInProgress {
    /// Counts on; returns whether the table is done.
    fn count_some(&mut self, table: TableId) -> kstone_core::Result<bool> {
        let scan = match &mut self.scan {
            Some(scan) => scan,
            none => none.insert(self.snapshot.scan(table, ScanCursor::start())),
        };
        for _ in 0..STEP {
            let Some(record) = scan.next_ref()? else { return Ok(true) };
            if record.sk.is_none() {
                self.keys += 1;
            } else {
                scan.skip_partition()?;
            }
        }
        Ok(false)
    }
}

fn decode(value: &[u8]) -> Option<[i64; DATABASES]> {
    let (&version, counts) = value.split_first()?;
    let (counts, []) = counts.as_chunks::<8>() else { return None };
    if version != VERSION || counts.len() != DATABASES {
        return None;
    }
    let mut counts = counts.iter().map(|count| i64::from_le_bytes(*count));
    Some(std::array::from_fn(|_| counts.next().unwrap_or(UNKNOWN)))
}
