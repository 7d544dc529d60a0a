//! Sets of stripes, as a bitmap.

/// Which of the 256 stripes something touches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StripeSet {
    words: [u64; 4],
}

impl StripeSet {
    /// No stripe.
    pub const EMPTY: StripeSet = StripeSet { words: [0; 4] };
    /// Every stripe.
    pub const ALL: StripeSet = StripeSet { words: [u64::MAX; 4] };

    /// Adds a stripe.
    pub fn insert(&mut self, stripe: u8) {
        self.words[usize::from(stripe >> 6)] |= 1 << (stripe & 63);
    }

    /// Whether it holds the stripe.
    pub fn contains(&self, stripe: u8) -> bool {
        self.words[usize::from(stripe >> 6)] & (1 << (stripe & 63)) != 0
    }

    /// The stripes of `self` that `other` lacks.
    pub fn without(&self, other: &StripeSet) -> StripeSet {
        StripeSet { words: std::array::from_fn(|i| self.words[i] & !other.words[i]) }
    }

    /// Adds all stripes of `other`.
    pub fn extend_with(&mut self, other: &StripeSet) {
        for (word, more) in self.words.iter_mut().zip(other.words) {
            *word |= more;
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words == [0; 4]
    }

    /// The stripes in ascending order: the order in which locks are taken.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        let words = self.words;
        (0..4u8).flat_map(move |w| {
            let mut rest = words[usize::from(w)];
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros() as u8;
                rest &= rest - 1;
                Some(w * 64 + bit)
            })
        })
    }
}

impl FromIterator<u8> for StripeSet {
    fn from_iter<I: IntoIterator<Item = u8>>(stripes: I) -> Self {
        let mut set = StripeSet::EMPTY;
        for stripe in stripes {
            set.insert(stripe);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_lists_its_stripes_in_ascending_order() {
        let set: StripeSet = [255, 0, 63, 64, 128, 64].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 128, 255]);
        assert_eq!(set.len(), 5);
        assert!(set.contains(63) && !set.contains(62));
        assert_eq!(StripeSet::ALL.iter().count(), 256);
        assert_eq!(StripeSet::ALL.without(&set).len(), 251);
    }
}
