//! A histogram of expiry times: how many keys expire in each five minutes.

use std::collections::BTreeMap;

/// The width of a bucket.
const BUCKET_MS: u64 = 5 * 60 * 1000;
const HOUR_BUCKETS: u64 = 12;
const DAY_BUCKETS: u64 = 288;

/// The five minutes in which a key ends.
pub(super) fn bucket_of(expires_at_ms: u64) -> u64 {
    expires_at_ms / BUCKET_MS
}

/// How many keys end within the next hour. Those of whole five minutes are exact; the hour begins
/// and ends in the middle of two others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expiring {
    /// Not fewer than this.
    pub at_least: u64,
    /// As many as this if keys end evenly within five minutes.
    pub likely: u64,
    /// Not more than this.
    pub at_most: u64,
}

impl std::ops::AddAssign for Expiring {
    fn add_assign(&mut self, other: Expiring) {
        self.at_least += other.at_least;
        self.likely += other.likely;
        self.at_most += other.at_most;
    }
}

/// The counts, a day in one piece, so that what is saved is the days that changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Expiries {
    days: BTreeMap<u64, Day>,
}

#[derive(Debug, Clone)]
struct Day {
    counts: Box<[i32; DAY_BUCKETS as usize]>,
    is_changed: bool,
}

impl Expiries {
    pub(super) fn add(&mut self, expires_at_ms: u64, keys: i32) {
        let bucket = bucket_of(expires_at_ms);
        let fresh = || Day { counts: Box::new([0; DAY_BUCKETS as usize]), is_changed: true };
        let day = self.days.entry(bucket / DAY_BUCKETS).or_insert_with(fresh);
        day.is_changed = true;
        if let Some(count) = day.counts.get_mut((bucket % DAY_BUCKETS) as usize) {
            *count = count.saturating_add(keys);
        }
    }

    fn count(&self, bucket: u64) -> u64 {
        let day = self.days.get(&(bucket / DAY_BUCKETS));
        let count = day.and_then(|day| day.counts.get((bucket % DAY_BUCKETS) as usize));
        u64::try_from(count.copied().unwrap_or(0)).unwrap_or(0)
    }

    pub(super) fn next_hour(&self, now_ms: u64) -> Expiring {
        let first = now_ms / BUCKET_MS;
        let at_least: u64 = (first + 1..first + HOUR_BUCKETS).map(|at| self.count(at)).sum();
        let (begun, last) = (self.count(first), self.count(first + HOUR_BUCKETS));
        let over_ms = now_ms % BUCKET_MS;
        let part = |count: u64, ms: u64| (count * ms + BUCKET_MS / 2) / BUCKET_MS;
        Expiring {
            at_least,
            likely: at_least + part(begun, BUCKET_MS - over_ms) + part(last, over_ms),
            at_most: at_least + begun + last,
        }
    }

    /// How many have ended for sure and are still counted, because nobody has removed them yet.
    pub(super) fn over(&self, now_ms: u64) -> u64 {
        let first = now_ms / BUCKET_MS;
        let (today, before) = (first / DAY_BUCKETS, first % DAY_BUCKETS);
        let sum = |counts: &[i32]| counts.iter().map(|it| i64::from(*it)).sum::<i64>();
        let mut over = 0;
        for (day, counts) in self.days.range(..=today) {
            let all = if *day < today { DAY_BUCKETS } else { before };
            over += sum(counts.counts.get(..all as usize).unwrap_or_default());
        }
        u64::try_from(over).unwrap_or(0)
    }

    /// The days that changed since this was last asked, as they are to be kept; `None` for a day of
    /// which nothing is left.
    pub(super) fn take_changed(&mut self) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut changed = Vec::new();
        self.days.retain(|number, day| {
            let is_empty = day.counts.iter().all(|count| *count == 0);
            if day.is_changed {
                changed.push((*number, (!is_empty).then(|| encode(&day.counts[..]))));
                day.is_changed = false;
            }
            !is_empty
        });
        changed
    }

    /// All days, whether they changed or not, count as changed.
    pub(super) fn touch(&mut self) {
        self.days.values_mut().for_each(|day| day.is_changed = true);
    }

    /// The days that these and the others have, of which these have nothing.
    pub(super) fn forget(&mut self, others: &Expiries) {
        for day in others.days.keys() {
            self.days.entry(*day).or_insert_with(|| Day {
                counts: Box::new([0; DAY_BUCKETS as usize]),
                is_changed: true,
            });
        }
    }

    /// Takes in a day as it was kept; `None` if it is no day.
    pub(super) fn load(&mut self, number: u64, kept: &[u8]) -> Option<()> {
        let counts = Box::new(decode(kept)?);
        self.days.insert(number, Day { counts, is_changed: false });
        Some(())
    }
}

/// Bucket and count, each in as few bytes as it takes, for the buckets that have any.
fn encode(counts: &[i32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, count) in (0_u16..).zip(counts).filter(|(_, count)| **count != 0) {
        bytes.extend(at.to_le_bytes());
        bytes.extend(count.to_le_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<[i32; DAY_BUCKETS as usize]> {
    let mut counts = [0; DAY_BUCKETS as usize];
    let (pairs, rest) = bytes.as_chunks::<6>();
    for [a, b, c, d, e, f] in pairs {
        let at = usize::from(u16::from_le_bytes([*a, *b]));
        *counts.get_mut(at)? = i32::from_le_bytes([*c, *d, *e, *f]);
    }
    rest.is_empty().then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;

    #[test]
    fn the_next_hour_is_exact_but_for_its_two_ends() {
        let mut expiries = Expiries::default();
        let now = 1_768_386_600_000 + 2 * MINUTE;
        for (minutes, keys) in [(0, 10), (4, 1), (30, 5), (59, 20), (61, 7), (90, 100)] {
            expiries.add(now + minutes * MINUTE, keys);
        }
        let hour = expiries.next_hour(now);
        // 0 is in the first five minutes, which began two minutes ago; 59 and 61 are in the last.
        assert_eq!((hour.at_least, hour.at_most), (6, 43));
        assert_eq!(hour.likely, 6 + 6 + 11);
        let truth = 10 + 1 + 5 + 20;
        assert!(hour.at_least <= truth && truth <= hour.at_most);
    }

    #[test]
    fn keys_leave_the_count_as_they_came_into_it() {
        let mut expiries = Expiries::default();
        expiries.add(5 * MINUTE, 3);
        expiries.add(5 * MINUTE, -3);
        assert_eq!(expiries.next_hour(0), Expiring::default());
        assert_eq!(expiries.take_changed(), [(0, None)]);
        assert_eq!(expiries.take_changed(), []);
    }

    #[test]
    fn what_is_over_and_still_there_is_known() {
        let mut expiries = Expiries::default();
        let day = DAY_BUCKETS * BUCKET_MS;
        expiries.add(day, 1);
        expiries.add(2 * day - 1, 2);
        expiries.add(2 * day + 1, 4);
        assert_eq!(expiries.over(0), 0);
        assert_eq!(expiries.over(2 * day), 3);
        assert_eq!(expiries.over(2 * day + BUCKET_MS), 7);
    }

    #[test]
    fn a_day_reads_back_as_it_was_kept() {
        let mut expiries = Expiries::default();
        for at in [0, 7, 287] {
            expiries.add(at * BUCKET_MS, at as i32 + 1);
        }
        let (number, kept) = expiries.take_changed().pop().unwrap();
        let kept = kept.unwrap();
        assert_eq!(number, 0);
        let mut loaded = Expiries::default();
        loaded.load(0, &kept).unwrap();
        assert_eq!(loaded.next_hour(0), expiries.next_hour(0));
        assert_eq!(loaded.over(DAY_BUCKETS * BUCKET_MS), 1 + 8 + 288);
        assert_eq!(loaded.load(1, &kept[1..]), None);
        assert_eq!(loaded.load(1, &[0xff, 0xff, 0, 0, 0, 0]), None);
    }
}
