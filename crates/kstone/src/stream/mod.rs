//! Change streams: the changes of a table's items, in order, for 24 hours.
//!
//! A record is written in the commit that makes the change, into the stripe of the item itself, so
//! that a stream costs no further lock. Reading a shard merges the stripes that belong to it by
//! sequence number.
//!
//! Sequence numbers are given out under the stripe's lock and grow with every record of the
//! database, but commits to different stripes become visible in any order. So a reader stops before
//! the first number that was given out and is not visible yet (`StreamClock::readable_below`): it
//! can be slow by the length of a commit, but never passes a record by.

mod describe;
mod iterator;
mod number;
mod read;
pub(crate) mod record;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use kstone_core::sync::Mutex;
use kstone_core::{Engine, Key, TableId, WriteBatch, stripe_of};

use crate::error::Result;
use crate::staging::Cause;
use crate::table::StreamView;
use crate::table::catalog::Catalog;
use crate::value::ItemBytes;

pub use describe::{Shard, StreamDescription, StreamName};
pub use read::{ShardPosition, StreamPage, StreamRecord};
pub use record::ChangeKind;

/// How far back a stream can be read.
pub(crate) const RETENTION_MS: u64 = 24 * 3600 * 1000;
/// How long a record is kept: while an iterator that could read it when it was given out can still
/// be used. So a consumer at the far end never misses a record between two calls.
pub(crate) const KEPT_MS: u64 = RETENTION_MS + iterator::LIFE_MS;
/// Shards of a stream: so many consumers can read it in parallel. Why not more: each is polled, and
/// one consumer reads more than one machine writes. Why not fewer: consumers do slow work.
pub(crate) const SHARDS: u8 = 4;

/// Gives out sequence numbers and knows which of them readers may pass.
#[derive(Debug)]
pub(crate) struct StreamClock {
    state: Mutex<ClockState>,
    /// The last number given out in each stripe, whatever the stream.
    stripes: Vec<AtomicU64>,
}

#[derive(Debug)]
struct ClockState {
    last: u64,
    /// The first number of each commit that is under way.
    under_way: BTreeSet<u64>,
}

/// The numbers of one commit. Dropped when the commit is visible, or was given up.
#[derive(Debug)]
pub(crate) struct StreamTicket<'a> {
    clock: &'a StreamClock,
    now_ms: u64,
    first: Option<u64>,
}

/// A change to tell of.
pub(crate) struct Change<'a> {
    pub keys: &'a ItemBytes,
    pub old: Option<&'a ItemBytes>,
    pub new: Option<&'a ItemBytes>,
    pub cause: Cause,
    pub now_ms: u64,
}

impl StreamClock {
    /// Begins after `last`, the largest number that any stream holds.
    pub fn new(last: u64, now_ms: u64) -> Self {
        let last = last.max(number::first_of(now_ms));
        let stripes = (0..256).map(|_| AtomicU64::new(last)).collect();
        StreamClock { state: Mutex::new(ClockState { last, under_way: BTreeSet::new() }), stripes }
    }

    /// For a commit at `now_ms`; takes no number until one is needed.
    pub fn ticket(&self, now_ms: u64) -> StreamTicket<'_> {
        StreamTicket { clock: self, now_ms, first: None }
    }

    /// Every record with a smaller number is visible, or will never be.
    ///
    /// Ask before taking the snapshot that is read.
    pub fn readable_below(&self, now_ms: u64) -> u64 {
        let mut state = self.state.lock();
        state.follow(now_ms);
        state.under_way.first().copied().unwrap_or(state.last + 1)
    }

    /// Whether no stream has a readable record in this stripe from `position` on.
    ///
    /// Ask after [`StreamClock::readable_below`]: what is given out in between is not readable yet.
    pub fn nothing_from(&self, stripe: u8, position: u64) -> bool {
        let last = self.stripes.get(usize::from(stripe));
        last.is_some_and(|last| last.load(Ordering::Acquire) < position)
    }

    /// No number up to this one will be given out any more.
    pub fn end(&self, now_ms: u64) -> u64 {
        let mut state = self.state.lock();
        state.follow(now_ms);
        state.last
    }
}

impl ClockState {
    /// Follows the clock also when nobody writes, so that the position of a reader who has read
    /// everything never looks older than what is kept.
    fn follow(&mut self, now_ms: u64) {
        self.last = self.last.max(number::first_of(now_ms).saturating_sub(1));
    }
}

/// A stream's label: when it was opened, as ISO time.
pub(crate) fn label(created_ms: u64) -> String {
    let created =
        i64::try_from(created_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    created.unwrap_or(Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%S%.3f").to_string()
}

impl StreamTicket<'_> {
    /// The next number, for a record in this stripe. Numbers follow the clock, so that they tell
    /// how old a record is.
    fn next(&mut self, stripe: u8) -> u64 {
        let mut state = self.clock.state.lock();
        let number = (state.last + 1).max(number::first_of(self.now_ms));
        state.last = number;
        if let Some(last) = self.clock.stripes.get(usize::from(stripe)) {
            last.store(number, Ordering::Release);
        }
        if self.first.is_none() {
            self.first = Some(number);
            state.under_way.insert(number);
        }
        number
    }

    /// Adds a record to the commit.
    pub fn append(
        &mut self,
        batch: &mut WriteBatch,
        stream: TableId,
        view: StreamView,
        stripe: u8,
        change: &Change<'_>,
    ) -> Result<()> {
        let key = record_key(stripe, self.next(stripe));
        let value = record::encode(change, view);
        batch.put_expiring(stream, &key, &value, change.now_ms + KEPT_MS)?;
        Ok(())
    }
}

impl Drop for StreamTicket<'_> {
    fn drop(&mut self) {
        if let Some(first) = self.first {
            self.clock.state.lock().under_way.remove(&first);
        }
    }
}

/// The key of a stream record: in the item's own stripe, ordered by number.
fn record_key(stripe: u8, number: u64) -> Key {
    Key::with_sk(&partition_of(stripe)[..], number.to_be_bytes().to_vec())
}

/// The partition key of a stream's records in a stripe: two bytes that hash to that stripe.
pub(crate) fn partition_of(stripe: u8) -> &'static [u8; 2] {
    static PARTITIONS: OnceLock<[[u8; 2]; 256]> = OnceLock::new();
    let partitions = PARTITIONS.get_or_init(|| {
        let mut found = [None; 256];
        for candidate in (0..=u16::MAX).map(u16::to_be_bytes) {
            found[usize::from(stripe_of(&candidate))].get_or_insert(candidate);
        }
        found.map(Option::unwrap_or_default)
    });
    &partitions[usize::from(stripe)]
}

/// The stripes whose records belong to a shard.
pub(crate) fn stripes_of(shard: u8) -> RangeInclusive<u8> {
    let each = u8::MAX / SHARDS;
    let first = shard * (each + 1);
    first..=first + each
}

/// The largest sequence number that any stream holds.
pub(crate) fn last_number(engine: &Engine, catalog: &Catalog) -> Result<u64> {
    let snapshot = engine.snapshot();
    let mut last = 0;
    for table in catalog.all() {
        for stream in &table.record.streams {
            for stripe in 0..=u8::MAX {
                let newest = describe::last_of_stripe(&snapshot, TableId(stream.id), stripe)?;
                last = last.max(newest.unwrap_or(0));
            }
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stripe_has_a_partition_of_its_own_that_hashes_to_it() {
        for stripe in 0..=255 {
            assert_eq!(stripe_of(partition_of(stripe)), stripe);
        }
    }

    #[test]
    fn a_reader_never_passes_a_number_whose_commit_is_under_way() {
        let clock = StreamClock::new(0, 0);
        let (mut slow, mut quick) = (clock.ticket(5), clock.ticket(5));
        let first = slow.next(1);
        let second = quick.next(2);
        assert!(second > first);
        drop(quick);
        assert_eq!(clock.readable_below(5), first);
        drop(slow);
        assert!(clock.readable_below(5) > second);
    }
    #[test]
    fn every_stripe_belongs_to_one_shard() {
        let stripes: Vec<u8> = (0..SHARDS).flat_map(stripes_of).collect();
        assert_eq!(stripes, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn a_stripe_is_passed_over_only_when_it_has_nothing_from_the_position_on() {
        let clock = StreamClock::new(100, 0);
        assert!(!clock.nothing_from(7, 100), "a record from before the restart may be there");
        assert!(clock.nothing_from(7, 101));
        let number = clock.ticket(0).next(7);
        assert!(!clock.nothing_from(7, number));
        assert!(clock.nothing_from(7, number + 1) && clock.nothing_from(8, number));
    }

    #[test]
    fn numbers_go_on_growing_after_a_restart_whatever_the_clock_says() {
        let before = StreamClock::new(0, 5).ticket(5).next(0);
        let after = StreamClock::new(before, 5).ticket(5).next(0);
        assert!(after > before);
        let set_back = StreamClock::new(after, 3).ticket(3).next(0);
        assert!(set_back > after);
    }
}
