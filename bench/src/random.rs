//! Random numbers that are a function of a seed, so that every run can be repeated.

/// Every record number below `records`, in an order that depends on the seed.
pub fn shuffled(records: u32, seed: u64) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..records).collect();
    let mut rng = Rng::new(seed);
    for last in (1..ids.len()).rev() {
        ids.swap(last, rng.below(last as u32 + 1) as usize);
    }
    ids
}

/// A small generator (splitmix64): as fast as a benchmark's own cost has to be.
pub struct Rng(u64);

impl Rng {
    /// A generator that always gives the same numbers for a seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, close enough to uniform for a bound of 32 bits.
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_keeps_every_number() {
        let mut ids = shuffled(1000, 3);
        assert_ne!(ids, (0..1000).collect::<Vec<_>>());
        ids.sort_unstable();
        assert_eq!(ids, (0..1000).collect::<Vec<_>>());
    }
}
