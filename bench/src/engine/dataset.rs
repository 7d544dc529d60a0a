//! The records every engine is given: their keys, their values, and the orders they are drawn in.
//!
//! Everything is a function of a seed and a record number, so any answer of any engine can be
//! checked without keeping a copy of the data. Used by the workloads and the checks.

use crate::random::{Rng, shuffled};

/// Bytes of a value where nothing else is said.
pub const VALUE_LEN: usize = 100;
/// Bytes of a value in the rows that say so.
pub const LONG_VALUE_LEN: usize = 1024;

/// Records in one partition. Ranges of 20 start anywhere that leaves 20 to read.
pub const POSTS_PER_USER: u32 = 100;

const PART_LEN: usize = 13;
/// Bytes of a key as an engine of plain bytes stores it.
pub const JOINED_LEN: usize = PART_LEN * 2 + 1;

/// A key in both shapes: a partition key and a sort key for an engine that has them, and the two
/// joined by a zero byte for an engine whose keys are plain bytes. No engine pays for building it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BenchKey([u8; JOINED_LEN]);

impl BenchKey {
    /// The key of a stored record.
    pub fn of(id: u32) -> Self {
        // Stored sort keys are even, so that an absent key lies between two stored ones and only
        // a filter, never a file's key bounds, can tell that it is absent.
        Self::build(id / POSTS_PER_USER, (id % POSTS_PER_USER) * 2)
    }

    /// A key right after that of a stored record, which no record has.
    pub fn absent(id: u32) -> Self {
        Self::build(id / POSTS_PER_USER, (id % POSTS_PER_USER) * 2 + 1)
    }

    fn build(user: u32, post: u32) -> Self {
        let mut bytes = *b"user#00000000\0post#00000000";
        digits(&mut bytes[5..PART_LEN], user);
        digits(&mut bytes[PART_LEN + 6..], post);
        BenchKey(bytes)
    }

    /// `user#{:08}`.
    pub fn pk(&self) -> &[u8] {
        &self.0[..PART_LEN]
    }

    /// `post#{:08}`.
    pub fn sk(&self) -> &[u8] {
        &self.0[PART_LEN + 1..]
    }

    /// Partition key, a zero byte, sort key: sorts as the pair does.
    pub fn joined(&self) -> &[u8] {
        &self.0
    }
}

fn digits(slot: &mut [u8], mut number: u32) {
    for digit in slot.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// One record, as the workloads hand it to an engine.
#[derive(Clone, Copy)]
pub struct Record<'v> {
    /// Its key.
    pub key: BenchKey,
    /// Its value.
    pub value: &'v [u8],
}

/// Room for the values that are written next, made once: the timed loops allocate nothing of
/// their own for a single put.
pub struct Values {
    bytes: Vec<u8>,
    value_len: usize,
}

impl Values {
    /// Room for `count` values of `value_len` bytes.
    pub fn new(count: usize, value_len: usize) -> Self {
        Values { bytes: vec![b'='; count * value_len], value_len }
    }

    /// Record `id`, written for the `version`th time.
    pub fn record(&mut self, id: u32, version: u32) -> Record<'_> {
        let value = &mut self.bytes[..self.value_len];
        write_value(value, id, version);
        Record { key: BenchKey::of(id), value }
    }

    /// Records `ids`, all at `version`; no more of them than there is room for.
    pub fn records(&mut self, ids: &[u32], version: u32) -> Vec<Record<'_>> {
        let slots = self.bytes.chunks_exact_mut(self.value_len);
        let make = |(&id, value): (&u32, &mut [u8])| write_value(value, id, version);
        ids.iter().zip(slots).for_each(make);
        let values = self.bytes.chunks_exact(self.value_len);
        let pair = |(&id, value)| Record { key: BenchKey::of(id), value };
        ids.iter().zip(values).map(pair).collect()
    }
}

/// Makes `value` that of record `id` at `version`: both numbers, noise up to half the length, and
/// text that repeats, so that about half of it compresses.
fn write_value(value: &mut [u8], id: u32, version: u32) {
    value[..4].copy_from_slice(&id.to_le_bytes());
    value[4..8].copy_from_slice(&version.to_le_bytes());
    let noise_end = value.len() / 2;
    let mut rng = Rng::new(u64::from(id) << 32 | u64::from(version));
    for chunk in value[8..noise_end].chunks_mut(8) {
        chunk.copy_from_slice(&rng.next().to_le_bytes()[..chunk.len()]);
    }
}

/// The value of record `id` at `version`, for the checks.
pub fn value_of(id: u32, version: u32, value_len: usize) -> Vec<u8> {
    Values::new(1, value_len).record(id, version).value.to_vec()
}

/// Whether `value` is one that record `id` has had. Cheap enough for the timed loops: it reads
/// the length and the number; the untimed checks compare every byte.
pub fn looks_like(value: &[u8], id: u32, value_len: usize) -> bool {
    value.len() == value_len && value[..4] == id.to_le_bytes()
}

/// A number that a set of records has whatever order they are visited in.
pub fn fingerprint(key: &[u8], value: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in key.iter().chain(value) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

/// Draws record numbers so that the k-th most popular comes up in proportion to k^-0.99, with
/// the popular ones spread over the whole key space.
pub struct Zipf {
    cumulative: Vec<f64>,
    by_rank: Vec<u32>,
}

impl Zipf {
    /// Popularity over `records` records. The table costs 12 bytes a record and is built before
    /// the clock starts.
    pub fn new(records: u32, seed: u64) -> Self {
        let mut total = 0.0;
        let cumulative = (1..=records)
            .map(|rank| {
                total += f64::from(rank).powf(-0.99);
                total
            })
            .collect();
        Zipf { cumulative, by_rank: shuffled(records, seed) }
    }

    /// The next record number.
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        let total = self.cumulative.last().copied().unwrap_or(0.0);
        let target = rng.unit() * total;
        let rank = self.cumulative.partition_point(|&sum| sum <= target);
        self.by_rank[rank.min(self.by_rank.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joined_key_is_the_text_of_its_parts_around_a_zero_byte() {
        let key = BenchKey::of(1234);
        assert_eq!(key.pk(), b"user#00000012");
        assert_eq!(key.sk(), b"post#00000068");
        assert_eq!(key.joined(), b"user#00000012\0post#00000068");
    }

    #[test]
    fn an_absent_key_lies_between_two_stored_ones() {
        assert!(BenchKey::of(7) < BenchKey::absent(7));
        assert!(BenchKey::absent(7) < BenchKey::of(8));
    }

    #[test]
    fn the_most_popular_record_is_drawn_as_often_as_zipf_says() {
        let zipf = Zipf::new(10_000, 1);
        let mut rng = Rng::new(2);
        let first = zipf.by_rank[0];
        let draws = 100_000;
        let hits = (0..draws).filter(|_| zipf.draw(&mut rng) == first).count() as f64;
        let expected = f64::from(draws) / zipf.cumulative[9_999];
        assert!((hits / expected - 1.0).abs() < 0.05, "{hits} draws, {expected} expected");
    }

    #[test]
    fn values_of_two_versions_differ_and_both_look_like_their_record() {
        for len in [VALUE_LEN, LONG_VALUE_LEN] {
            let (old, new) = (value_of(9, 1, len), value_of(9, 2, len));
            assert_ne!(old, new);
            assert!(looks_like(&old, 9, len) && looks_like(&new, 9, len));
            assert!(!looks_like(&old, 10, len));
        }
    }

    #[test]
    fn records_of_a_batch_have_the_values_that_they_have_alone() {
        let mut values = Values::new(3, VALUE_LEN);
        for record in values.records(&[5, 900, 7], 2) {
            let id = [5, 900, 7].into_iter().find(|&id| BenchKey::of(id) == record.key);
            assert_eq!(Some(record.value), id.map(|id| value_of(id, 2, VALUE_LEN)).as_deref());
        }
    }
}
