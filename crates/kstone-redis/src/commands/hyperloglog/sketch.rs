//! The bytes of a HyperLogLog counter, which are those of Redis.
//!
//! A header of 16 bytes: `HYLL`, the layout (0 dense, 1 sparse), three zeros, and the last count
//! (little-endian; its highest bit says that it is no longer right). Then 16384 registers:
//!
//! - dense: 6 bits each, the lowest bits of a byte first;
//! - sparse: runs. `00nnnnnn` is n + 1 zeros, `01nnnnnn nnnnnnnn` as many as 16384 zeros,
//!   `1vvvvvnn` is n + 1 times the value v + 1.
//!
//! A counter begins sparse and becomes dense when that is too long, or when a value is too large
//! for a run. What is stored may be anything, because a counter is a string that anybody can write
//! to: whatever does not add up is refused.

use crate::fault::{Fault, Result};

const HEADER_LEN: usize = 16;
const REGISTERS: usize = 1 << INDEX_BITS;
/// How many bits of an element's hash choose its register.
const INDEX_BITS: u32 = 14;
/// The largest value that a hash can give.
const VALUE_MAX: usize = 64 - INDEX_BITS as usize + 1;
const REGISTER_BITS: usize = 6;
const DENSE_LEN: usize = HEADER_LEN + REGISTERS * REGISTER_BITS / 8;

const DENSE: u8 = 0;
const SPARSE: u8 = 1;

/// Runs of zeros that take one byte.
const ZEROS_MAX: usize = 64;
/// Values that fit a run, and how many of them do.
const RUN_VALUE_MAX: u8 = 32;
const RUN_LEN_MAX: usize = 4;

const NOT_A_COUNTER: Fault = Fault::fixed("WRONGTYPE Key is not a valid HyperLogLog string value.");
const CORRUPT: Fault = Fault::fixed("INVALIDOBJ Corrupted HLL object detected");

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sketch {
    bytes: Vec<u8>,
}

/// A run of equal registers in the sparse layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    Zeros { len: usize, is_long: bool },
    Values { value: u8, len: usize },
}

impl Run {
    /// The run that begins here. One that is cut off is what zeros would make of it.
    fn parse(bytes: &[u8]) -> Option<Run> {
        let (&first, rest) = bytes.split_first()?;
        let low = usize::from(first & 0x3F);
        Some(match first >> 6 {
            0 => Run::Zeros { len: low + 1, is_long: false },
            1 => {
                let second = usize::from(rest.first().copied().unwrap_or(0));
                Run::Zeros { len: (low << 8 | second) + 1, is_long: true }
            }
            _ => Run::Values { value: (first >> 2 & 0x1F) + 1, len: usize::from(first & 3) + 1 },
        })
    }

    fn zeros(len: usize) -> Run {
        Run::Zeros { len, is_long: len > ZEROS_MAX }
    }

    /// How many registers it is about.
    fn len(self) -> usize {
        match self {
            Run::Zeros { len, .. } | Run::Values { len, .. } => len,
        }
    }

    fn bytes_len(self) -> usize {
        if let Run::Zeros { is_long: true, .. } = self { 2 } else { 1 }
    }

    /// A run of no registers is nothing.
    fn write(self, out: &mut Vec<u8>) {
        let Some(more) = self.len().checked_sub(1) else { return };
        match self {
            Run::Zeros { is_long: false, .. } => out.push(more as u8),
            Run::Zeros { is_long: true, .. } => out.extend([0x40 | (more >> 8) as u8, more as u8]),
            Run::Values { value, .. } => {
                out.push(0x80 | value.saturating_sub(1) << 2 | more as u8);
            }
        }
    }
}

impl Sketch {
    /// Nothing was added yet.
    pub(super) fn new() -> Sketch {
        let mut bytes = header(SPARSE).to_vec();
        Run::zeros(REGISTERS).write(&mut bytes);
        Sketch { bytes }
    }

    /// What was stored.
    ///
    /// # Errors
    /// If it cannot be a counter.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Result<Sketch> {
        let layout = bytes.get(4).copied();
        let is_counter = bytes.starts_with(b"HYLL")
            && match layout {
                Some(DENSE) => bytes.len() == DENSE_LEN,
                Some(SPARSE) => bytes.len() >= HEADER_LEN,
                _ => false,
            };
        if is_counter { Ok(Sketch { bytes }) } else { Err(NOT_A_COUNTER) }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn is_dense(&self) -> bool {
        self.bytes.get(4) == Some(&DENSE)
    }

    /// The last count, if nothing was added since.
    pub(super) fn known_count(&self) -> Option<u64> {
        let count = self.bytes.get(8..HEADER_LEN)?.try_into().ok()?;
        Some(u64::from_le_bytes(count)).filter(|count| count >> 63 == 0)
    }

    pub(super) fn note_count(&mut self, count: u64) {
        if let Some(bytes) = self.bytes.get_mut(8..HEADER_LEN) {
            bytes.copy_from_slice(&count.to_le_bytes());
        }
    }

    pub(super) fn forget_count(&mut self) {
        if let Some(highest) = self.bytes.get_mut(HEADER_LEN - 1) {
            *highest |= 0x80;
        }
    }

    /// Adds an element; whether that changed anything.
    pub(super) fn add(&mut self, element: &[u8], sparse_len_max: usize) -> Result<bool> {
        let hash = murmur64(element, 0xADC8_3B19);
        let index = hash as usize & (REGISTERS - 1);
        // The bit beyond the highest ends the search.
        let rest = hash >> INDEX_BITS | 1 << (64 - INDEX_BITS);
        self.raise(index, rest.trailing_zeros() as u8 + 1, sparse_len_max)
    }

    /// Makes a register this value, if it is less; whether it was.
    pub(super) fn raise(&mut self, index: usize, value: u8, sparse_len_max: usize) -> Result<bool> {
        if self.is_dense() {
            let registers = self.bytes.get_mut(HEADER_LEN..).unwrap_or_default();
            let is_less = dense_get(registers, index) < value;
            if is_less {
                dense_set(registers, index, value);
            }
            return Ok(is_less);
        }
        if value > RUN_VALUE_MAX {
            self.make_dense()?;
            return self.raise(index, value, sparse_len_max);
        }
        self.raise_sparse(index, value, sparse_len_max)
    }

    fn raise_sparse(&mut self, index: usize, value: u8, sparse_len_max: usize) -> Result<bool> {
        let (before, at, first) = self.find_run(index).ok_or(CORRUPT)?;
        let run = Run::parse(self.bytes.get(at..).unwrap_or_default()).ok_or(CORRUPT)?;
        if matches!(run, Run::Values { value: old, .. } if old >= value) {
            return Ok(false);
        }
        let (left, right) = (index - first, first + run.len() - index - 1);
        let part = |len| match run {
            Run::Zeros { .. } => Run::zeros(len),
            Run::Values { value, .. } => Run::Values { value, len },
        };
        let mut split = Vec::with_capacity(5);
        part(left).write(&mut split);
        Run::Values { value, len: 1 }.write(&mut split);
        part(right).write(&mut split);
        let old_len = run.bytes_len().min(self.bytes.len() - at);
        let is_longer = split.len() > old_len;
        if is_longer && self.bytes.len() - old_len + split.len() > sparse_len_max {
            self.make_dense()?;
            return self.raise(index, value, sparse_len_max);
        }
        let changed_end = at + split.len();
        self.bytes.splice(at..at + old_len, split);
        self.join(before, changed_end);
        self.forget_count();
        Ok(true)
    }

    /// Where the run of a register begins, where the one before it does, and which register is the
    /// run's first. Adding to a sparse counter takes as long as this.
    fn find_run(&self, index: usize) -> Option<(usize, usize, usize)> {
        let (mut before, mut at, mut first) = (HEADER_LEN, HEADER_LEN, 0);
        let mut rest = self.bytes.get(HEADER_LEN..)?;
        loop {
            let (&byte, after) = rest.split_first()?;
            let (len, after) = match byte >> 6 {
                0 => (usize::from(byte & 0x3F) + 1, after),
                1 => {
                    let (second, after) = after.split_first().unwrap_or((&0, after));
                    (usize::from(byte & 0x3F) * 256 + usize::from(*second) + 1, after)
                }
                _ => (usize::from(byte & 3) + 1, after),
            };
            if index < first + len {
                return Some((before, at, first));
            }
            before = at;
            at = self.bytes.len() - after.len();
            first += len;
            rest = after;
        }
    }

    /// Joins runs of the same value that begin between two positions.
    fn join(&mut self, mut at: usize, mut end: usize) {
        while at <= end {
            let Some(run) = Run::parse(self.bytes.get(at..).unwrap_or_default()) else { return };
            let next = at + run.bytes_len();
            let following = Run::parse(self.bytes.get(next..).unwrap_or_default());
            if let Run::Values { value, len } = run
                && let Some(Run::Values { value: next_value, len: next_len }) = following
                && value == next_value
                && len + next_len <= RUN_LEN_MAX
            {
                let mut joined = Vec::with_capacity(1);
                Run::Values { value, len: len + next_len }.write(&mut joined);
                self.bytes.splice(at..next + 1, joined);
                end = end.saturating_sub(1);
            } else {
                at = next;
            }
        }
    }

    /// The runs of the sparse layout.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        let mut rest = self.bytes.get(HEADER_LEN..).unwrap_or_default();
        std::iter::from_fn(move || {
            let run = Run::parse(rest)?;
            rest = rest.get(run.bytes_len()..).unwrap_or_default();
            Some(run)
        })
    }

    /// # Errors
    /// If there are not as many registers as there should be.
    pub(super) fn registers(&self) -> Result<Registers> {
        let mut values = Vec::with_capacity(REGISTERS);
        if self.is_dense() {
            let bytes = self.bytes.get(HEADER_LEN..).unwrap_or_default();
            values.extend((0..REGISTERS).map(|index| dense_get(bytes, index)));
            return Ok(Registers { values });
        }
        for run in self.runs() {
            let value = match run {
                Run::Zeros { .. } => 0,
                Run::Values { value, .. } => value,
            };
            if values.len() + run.len() > REGISTERS {
                return Err(CORRUPT);
            }
            values.resize(values.len() + run.len(), value);
        }
        if values.len() == REGISTERS { Ok(Registers { values }) } else { Err(CORRUPT) }
    }

    pub(super) fn make_dense(&mut self) -> Result<()> {
        if self.is_dense() {
            return Ok(());
        }
        let registers = self.registers()?;
        self.bytes.truncate(HEADER_LEN);
        if let Some(layout) = self.bytes.get_mut(4) {
            *layout = DENSE;
        }
        self.bytes.resize(DENSE_LEN, 0);
        let bytes = self.bytes.get_mut(HEADER_LEN..).unwrap_or_default();
        for (index, value) in registers.iter() {
            dense_set(bytes, index, value);
        }
        Ok(())
    }
}

fn header(layout: u8) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    for (into, byte) in header.iter_mut().zip(*b"HYLL") {
        *into = byte;
    }
    header[4] = layout;
    header
}

/// The byte that a register begins in, and its lowest bit there.
fn dense_place(index: usize) -> (usize, usize) {
    (index * REGISTER_BITS / 8, index * REGISTER_BITS % 8)
}

fn dense_get(registers: &[u8], index: usize) -> u8 {
    let (at, shift) = dense_place(index);
    let byte = |at| u16::from(registers.get(at).copied().unwrap_or(0));
    ((byte(at) | byte(at + 1) << 8) >> shift & 0x3F) as u8
}

fn dense_set(registers: &mut [u8], index: usize, value: u8) {
    let (at, shift) = dense_place(index);
    let (mask, value) = (0x3F_u16 << shift, u16::from(value) << shift);
    for (at, mask, value) in [(at, mask, value), (at + 1, mask >> 8, value >> 8)] {
        if let Some(byte) = registers.get_mut(at) {
            *byte = *byte & !(mask as u8) | value as u8;
        }
    }
}

/// All registers of a counter, one after the other.
#[derive(Debug)]
pub(super) struct Registers {
    values: Vec<u8>,
}

impl Registers {
    pub(super) fn new() -> Registers {
        Registers { values: vec![0; REGISTERS] }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u8)> {
        self.values.iter().copied().enumerate()
    }

    /// What both together have counted.
    pub(super) fn merge(&mut self, other: &Registers) {
        for (value, other) in self.values.iter_mut().zip(&other.values) {
            *value = (*value).max(*other);
        }
    }

    /// How many different elements were added, by the estimator of Otmar Ertl's "New cardinality
    /// estimation algorithms for HyperLogLog sketches" (arXiv:1702.01284).
    pub(super) fn count(&self) -> u64 {
        const ALPHA: f64 = 0.721_347_520_444_481_7;
        let mut histogram = [0_u32; 64];
        for value in &self.values {
            if let Some(count) = histogram.get_mut(usize::from(*value)) {
                *count += 1;
            }
        }
        let of = |value: usize| f64::from(histogram.get(value).copied().unwrap_or(0));
        let registers = REGISTERS as f64;
        let mut z = registers * tau((registers - of(VALUE_MAX)) / registers);
        for value in (1..VALUE_MAX).rev() {
            z = (z + of(value)) * 0.5;
        }
        z += registers * sigma(of(0) / registers);
        (ALPHA * registers * registers / z).round() as u64
    }
}

/// The share of the registers that are still zero, weighed.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let last = z;
        z += x * y;
        y += y;
        if z == last {
            return z;
        }
    }
}

/// The share of the registers that are not full, weighed.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let last = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z == last {
            return z / 3.0;
        }
    }
}

/// MurmurHash2 of 64 bits, which tells an element's register and value.
fn murmur64(bytes: &[u8], seed: u64) -> u64 {
    const FACTOR: u64 = 0xC6A4_A793_5BD1_E995;
    let mix = |word: u64| {
        let word = word.wrapping_mul(FACTOR);
        (word ^ word >> 47).wrapping_mul(FACTOR)
    };
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks();
    for word in words {
        hash = (hash ^ mix(u64::from_le_bytes(*word))).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ last).wrapping_mul(FACTOR);
    }
    let hash = (hash ^ hash >> 47).wrapping_mul(FACTOR);
    hash ^ hash >> 47
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_hold_the_same_registers() {
        let (mut sketch, mut dense) = (Sketch::new(), Sketch::new());
        dense.make_dense().unwrap();
        let mut element = 1_u64;
        while !sketch.is_dense() {
            for sketch in [&mut sketch, &mut dense] {
                sketch.add(&element.to_le_bytes(), 3000).unwrap();
            }
            if element.is_multiple_of(50) {
                let (left, right) = (sketch.registers().unwrap(), dense.registers().unwrap());
                assert_eq!(left.values, right.values, "{element}");
            }
            element += 1;
        }
        assert!(element > 1000, "sparse for long enough: {element}");
        dense.forget_count();
        assert_eq!(sketch, dense);
    }

    #[test]
    fn registers_do_not_disturb_their_neighbours() {
        let mut bytes = vec![0; REGISTERS * REGISTER_BITS / 8];
        let value = |index: usize| (index * 37 % 64) as u8;
        for index in (0..REGISTERS).rev() {
            dense_set(&mut bytes, index, 63);
            dense_set(&mut bytes, index, value(index));
        }
        for index in 0..REGISTERS {
            assert_eq!(dense_get(&bytes, index), value(index));
        }
    }

    #[test]
    fn neighbours_of_the_same_value_become_one_run() {
        let mut sketch = Sketch::new();
        for index in [100, 102, 101, 103, 104] {
            assert!(sketch.raise(index, 7, 3000).unwrap());
            assert!(!sketch.raise(index, 7, 3000).unwrap());
        }
        let runs: Vec<Run> = sketch.runs().collect();
        let values = [Run::Values { value: 7, len: 4 }, Run::Values { value: 7, len: 1 }];
        assert_eq!(runs, [Run::zeros(100), values[0], values[1], Run::zeros(REGISTERS - 105)]);
    }

    #[test]
    fn counts_are_within_the_promised_error() {
        let mut sketch = Sketch::new();
        let mut checkpoint = 10;
        for element in 1..=50_000_u64 {
            sketch.add(format!("element {element}").as_bytes(), 3000).unwrap();
            if element == checkpoint {
                let count = sketch.registers().unwrap().count();
                let off = count.abs_diff(element) as f64 / element as f64;
                assert!(off < 0.03, "{count} for {element}");
                checkpoint *= 5;
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut seed = 7_u64;
        let mut byte = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as u8
        };
        for len in 0..200 {
            let mut bytes = header(SPARSE).to_vec();
            bytes.extend((0..len).map(|_| byte()));
            let mut sketch = Sketch::from_bytes(bytes).unwrap();
            let _ = sketch.registers();
            for index in [0, 1, 500, REGISTERS - 1] {
                let _ = sketch.raise(index, byte() % 52, 3000);
            }
            let _ = sketch.make_dense();
        }
        assert!(Sketch::from_bytes(b"HYLL".to_vec()).is_err());
        assert!(Sketch::from_bytes(header(2).to_vec()).is_err());
        assert!(Sketch::from_bytes(header(DENSE).to_vec()).is_err());
    }
}
