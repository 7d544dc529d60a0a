//! The filter: rules out most keys that are not in the file (a Bloom-type filter).
//!
//! A Bloom filter in lines of 512 bits. All probes of a key fall into one line, so a check costs
//! one cache miss; 14 bits per key give about 0.2 % false positives (a test measures it).
//!
//! ```text
//! line   64 bytes, as often as needed: bit b of the line is bit b % 8 of byte b / 8
//! probes u8: how many bits of a line each key sets, 1..=16
//! ```
//!
//! The line of hash `h` is `(h >> 32) * lines >> 32`. Its probes come from `m = (h ^ (h >> 32)) *
//! P0`: nine bits at a time from the top, seven to a word; then from `m * P1` likewise, and so on.
//!
//! Built by the writer, asked by the reader. Rejected: a binary-fuse filter (a third smaller at
//! this rate) takes three cache misses per check and must know all keys before it can start.

use std::sync::Arc;

use super::slots::{EvictedPart, Part, Uses, plain_part};
use crate::prefetch;
use xxhash_rust::xxh3::xxh3_64;

pub(super) const LINE_LEN: usize = 64;
const LINE_BITS: u64 = 512;
pub(super) const PROBES_MAX: u32 = 16;
const P0: u64 = 0x9e37_79b9_7f4a_7c15;
const P1: u64 = 0xd6e8_feb8_6659_fd93;
const PROBE_BITS: u32 = 9;
const PROBES_PER_WORD: u32 = 7;

/// The hash that filters use; the caller computes it once for all files it asks.
#[inline]
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// One line, aligned so that it never lies on two cache lines.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Line([u64; 8]);

impl Line {
    /// It may be of any key.
    pub(super) const FULL: Line = Line([u64::MAX; 8]);

    pub(super) fn decode(bytes: &[u8; LINE_LEN]) -> Self {
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Line(words)
    }

    /// `false` if no key with this hash has set its bits here.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64, probes: u32) -> bool {
        let mut hit = 1;
        // No early way out: eight loads from one cache line are cheaper than a mispredicted branch.
        probe(hash, probes, |word, bit| hit &= self.0[word] >> bit);
        hit & 1 == 1
    }
}

/// The line of a hash, of so many lines.
#[inline]
pub(super) fn line_of(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

/// A filter, ready to be asked.
#[derive(Debug)]
pub(super) struct Filter {
    lines: Box<[Line]>,
    probes: u32,
    uses: Uses,
}

impl Part for Filter {
    fn weight(&self) -> usize {
        self.lines.len() * LINE_LEN
    }

    plain_part!();
}

impl Filter {
    /// How long a filter of so many keys is.
    pub(super) fn encoded_len(keys: usize, bits_per_key: u32) -> usize {
        line_count(keys, bits_per_key, 1) as usize * LINE_LEN + 1
    }

    /// A filter of the keys with these hashes, whose lines are a multiple of `multiple`.
    pub(super) fn build(hashes: &[u64], bits_per_key: u32, multiple: usize) -> Self {
        let lines = line_count(hashes.len(), bits_per_key, multiple as u64);
        // ln 2 × bits per key would be best in one large line; crowded small lines want fewer.
        let probes = ((bits_per_key * 4).div_ceil(7)).clamp(1, PROBES_MAX);
        let lines = vec![Line([0; 8]); lines as usize].into();
        let mut filter = Filter { lines, probes, uses: Uses::default() };
        for &hash in hashes {
            let at = line_of(hash, filter.lines.len());
            if let Some(line) = filter.lines.get_mut(at) {
                probe(hash, probes, |word, bit| line.0[word] |= 1 << bit);
            }
        }
        filter
    }

    /// Reads an encoded filter.
    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let (&probes, bytes) = payload.split_last()?;
        let probes = u32::from(probes);
        let (chunks, rest) = bytes.as_chunks::<LINE_LEN>();
        if chunks.is_empty() || !rest.is_empty() || !(1..=PROBES_MAX).contains(&probes) {
            return None;
        }
        Some(Self::of_lines(chunks.iter().map(Line::decode).collect(), probes))
    }

    pub(super) fn of_lines(lines: Box<[Line]>, probes: u32) -> Self {
        Filter { lines, probes, uses: Uses::default() }
    }

    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub(super) fn probes(&self) -> u32 {
        self.probes
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.lines.len() * LINE_LEN + 1);
        encode_lines(&self.lines, &mut out);
        out.push(self.probes as u8);
        out
    }

    /// Asks for what [`may_contain`](Self::may_contain) looks at.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        if let Some(line) = self.lines.get(line_of(hash, self.lines.len())) {
            prefetch::soon(line);
        }
    }

    /// `false` if no key with this hash is in the file.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let Some(line) = self.lines.get(line_of(hash, self.lines.len())) else { return true };
        line.may_contain(hash, self.probes)
    }
}

fn line_count(keys: usize, bits_per_key: u32, multiple: u64) -> u64 {
    let bits = (keys as u64).saturating_mul(u64::from(bits_per_key));
    let lines = bits.div_ceil(LINE_BITS).max(1).next_multiple_of(multiple);
    // A line's number is computed from 32 bits of the hash.
    lines.min(u64::from(u32::MAX) / multiple * multiple)
}

/// Appends the bytes of the lines.
pub(super) fn encode_lines(lines: &[Line], out: &mut Vec<u8>) {
    for word in lines.iter().flat_map(|line| line.0) {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

/// Calls `each` with the word and the bit in it for every probe of `hash`.
#[inline]
fn probe(hash: u64, probes: u32, mut each: impl FnMut(usize, u32)) {
    let mut source = (hash ^ (hash >> 32)).wrapping_mul(P0);
    let mut bits = source;
    for i in 0..probes {
        if i > 0 && i % PROBES_PER_WORD == 0 {
            source = source.wrapping_mul(P1);
            bits = source;
        }
        let position = (bits >> (64 - PROBE_BITS)) as u32;
        each(((position >> 6) & 7) as usize, position & 63);
        bits <<= PROBE_BITS;
    }
}

/// Decodes any bytes as a filter and asks it. For fuzzing.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_filter(bytes: &[u8]) -> bool {
    Filter::decode(bytes).is_some_and(|filter| filter.may_contain(key_hash(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(i: u64) -> u64 {
        key_hash(format!("user#{i}").as_bytes())
    }

    fn false_positive_rate(keys: u64, bits_per_key: u32) -> f64 {
        let hashes: Vec<u64> = (0..keys).map(hash).collect();
        let filter = Filter::decode(&Filter::build(&hashes, bits_per_key, 1).encode()).unwrap();
        assert!(hashes.iter().all(|&h| filter.may_contain(h)), "a filter must never deny a key");
        let asked = 1_000_000;
        (keys..keys + asked).filter(|&i| filter.may_contain(hash(i))).count() as f64 / asked as f64
    }

    #[test]
    fn the_default_filter_is_wrong_for_at_most_three_keys_in_a_thousand() {
        for keys in [1000, 20_000, 300_000] {
            let rate = false_positive_rate(keys, 14);
            assert!(rate <= 0.003, "{keys} keys: {rate}");
        }
    }

    #[test]
    fn fewer_bits_still_make_a_filter() {
        let rate = false_positive_rate(20_000, 10);
        assert!(rate <= 0.015, "{rate}");
        assert!(false_positive_rate(1, 1) < 0.1);
    }

    #[test]
    fn bytes_that_are_no_filter_are_refused() {
        for bytes in [&[][..], &[8], &[0; 64], &[0; 66], &[17; 65]] {
            assert!(Filter::decode(bytes).is_none(), "{} bytes", bytes.len());
        }
    }
}
