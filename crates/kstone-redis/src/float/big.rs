//! Unsigned integers of any size: just enough arithmetic to convert decimals to binary and back.

use std::cmp::Ordering;

/// A whole number: 32 bits in each limb, the least first, none of the last ones zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BigUint {
    limbs: Vec<u32>,
}

impl BigUint {
    /// From decimal digits.
    pub(super) fn from_digits(digits: &[u8]) -> BigUint {
        let mut number = BigUint::default();
        // As many digits at once as a limb has room for.
        for chunk in digits.chunks(9) {
            let value = chunk.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
            number.multiply_add(10_u32.pow(chunk.len() as u32), value);
        }
        number
    }

    pub(super) fn from_u64(value: u64) -> BigUint {
        let mut number = BigUint { limbs: vec![value as u32, (value >> 32) as u32] };
        number.trim();
        number
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    /// How many bits it takes.
    pub(super) fn bits(&self) -> u32 {
        match self.limbs.last() {
            Some(last) => self.limbs.len() as u32 * 32 - last.leading_zeros(),
            None => 0,
        }
    }

    pub(super) fn multiply_add(&mut self, by: u32, plus: u32) {
        let mut carry = u64::from(plus);
        for limb in &mut self.limbs {
            let product = u64::from(*limb) * u64::from(by) + carry;
            *limb = product as u32;
            carry = product >> 32;
        }
        if carry > 0 {
            self.limbs.push(carry as u32);
        }
    }

    /// Times 10 to a power.
    pub(super) fn scale(&mut self, power: u32) {
        for _ in 0..power / 9 {
            self.multiply_add(1_000_000_000, 0);
        }
        self.multiply_add(10_u32.pow(power % 9), 0);
    }

    pub(super) fn shift_left(&mut self, bits: u32) {
        if self.is_zero() {
            return;
        }
        self.multiply_add(1 << (bits % 32), 0);
        self.limbs.splice(0..0, std::iter::repeat_n(0, (bits / 32) as usize));
    }

    /// The highest 128 bits after a shift to the right, and whether any bit was lost. The shift
    /// leaves no more than that.
    pub(super) fn shift_right(&self, bits: u32) -> (u128, bool) {
        let (whole, part) = ((bits / 32) as usize, bits % 32);
        let mut value = 0_u128;
        for (at, limb) in self.limbs.iter().enumerate().skip(whole).take(5) {
            let limb = u128::from(*limb);
            let up = (at - whole) as u32 * 32;
            value |= if up >= part {
                limb.checked_shl(up - part).unwrap_or(0)
            } else {
                limb >> (part - up)
            };
        }
        let lost = self.limbs.iter().take(whole).any(|limb| *limb != 0)
            || self.limbs.get(whole).is_some_and(|limb| limb & ((1 << part) - 1) != 0);
        (value, lost)
    }

    fn compare(&self, other: &BigUint) -> Ordering {
        let by_size = self.limbs.len().cmp(&other.limbs.len());
        by_size.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }

    /// Takes away one that is not larger.
    fn subtract(&mut self, other: &BigUint) {
        let mut borrow = 0;
        for (at, limb) in self.limbs.iter_mut().enumerate() {
            let less = other.limbs.get(at).copied().unwrap_or(0);
            let difference = i64::from(*limb) - i64::from(less) - borrow;
            *limb = difference as u32;
            borrow = i64::from(difference < 0);
        }
        self.trim();
    }

    /// The quotient, if it has no more than 128 bits, and whether there is a remainder.
    pub(super) fn divide(mut self, by: &BigUint) -> (u128, bool) {
        let mut quotient = 0;
        let Some(steps) = self.bits().checked_sub(by.bits()) else {
            return (0, !self.is_zero());
        };
        for step in (0..=steps).rev() {
            let mut part = by.clone();
            part.shift_left(step);
            quotient <<= 1;
            if self.compare(&part).is_ge() {
                self.subtract(&part);
                quotient |= 1;
            }
        }
        (quotient, !self.is_zero())
    }

    /// In decimal digits.
    pub(super) fn into_text(mut self) -> String {
        let mut chunks = Vec::new();
        while !self.is_zero() {
            let mut rest = 0_u64;
            for limb in self.limbs.iter_mut().rev() {
                let value = rest << 32 | u64::from(*limb);
                *limb = (value / 1_000_000_000) as u32;
                rest = value % 1_000_000_000;
            }
            self.trim();
            chunks.push(rest);
        }
        let mut text = chunks.pop().unwrap_or(0).to_string();
        for chunk in chunks.into_iter().rev() {
            text.push_str(&format!("{chunk:09}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_back_after_arithmetic() {
        let digits = "123456789012345678901234567890123456789";
        let mut number = BigUint::from_digits(digits.as_bytes());
        assert_eq!(number.clone().into_text(), digits);
        number.scale(20);
        assert_eq!(number.clone().into_text(), format!("{digits}{}", "0".repeat(20)));
        let mut by = BigUint::from_u64(1);
        by.scale(30);
        let (quotient, has_rest) = number.divide(&by);
        assert_eq!((quotient, has_rest), (12345678901234567890123456789, true));
    }

    #[test]
    fn shifts_say_what_they_lose() {
        let mut number = BigUint::from_u64(5);
        number.shift_left(100);
        assert_eq!(number.bits(), 103);
        assert_eq!(number.shift_right(100), (5, false));
        assert_eq!(number.shift_right(101), (2, true));
    }
}
