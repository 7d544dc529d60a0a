//! Exact sums and differences.

use super::{EXPONENT_MAX, EXPONENT_MIN, Number, NumberError, PAIRS_MAX, Parts};

/// From one pair above the largest number, for the carry, down to the last pair of the smallest.
const CELLS: usize = (EXPONENT_MAX + 1 - EXPONENT_MIN) as usize + PAIRS_MAX;

impl Number {
    /// The exact sum; an error if it does not fit in 38 digits or in the range of numbers.
    pub fn checked_add(self, other: Number) -> Result<Number, NumberError> {
        sum(&self.as_number_ref().parts(), &other.as_number_ref().parts(), other.is_negative())
    }

    /// The exact difference; an error if it does not fit in 38 digits or in the range of numbers.
    pub fn checked_sub(self, other: Number) -> Result<Number, NumberError> {
        sum(&self.as_number_ref().parts(), &other.as_number_ref().parts(), !other.is_negative())
    }
}

/// `a + b`, where `b` takes the sign that is given.
fn sum(a: &Parts<'_>, b: &Parts<'_>, b_negative: bool) -> Result<Number, NumberError> {
    // One base-100 digit a cell, the highest first; they may leave 0 … 99 until they are carried.
    let top = a.exponent.max(b.exponent) + 1;
    let bottom = a.exponent_last().min(b.exponent_last()).min(top);
    let width = (top - bottom + 1) as usize;
    let mut cells = [0i16; CELLS];
    let Some(cells) = cells.get_mut(..width) else { return Err(NumberError::TooManyDigits) };
    for (parts, negative) in [(a, a.negative), (b, b_negative)] {
        let start = (top - parts.exponent) as usize;
        for (at, cell) in cells.iter_mut().skip(start).take(parts.len()).enumerate() {
            let pair = i16::from(parts.pair(at));
            *cell += if negative { -pair } else { pair };
        }
    }
    let negative = carry(cells) < 0;
    if negative {
        // What is there is 100^width minus the magnitude: take it from 100^width again.
        cells.iter_mut().for_each(|cell| *cell = -*cell);
        carry(cells);
    }
    let Some(first) = cells.iter().position(|&cell| cell != 0) else { return Ok(Number::ZERO) };
    let last = cells.iter().rposition(|&cell| cell != 0).unwrap_or(first);
    let exponent = top - first as i32;
    if last - first >= PAIRS_MAX {
        // Too long in any case; but a magnitude out of range is what DynamoDB names first.
        return Err(if exponent > EXPONENT_MAX {
            NumberError::Overflow
        } else {
            NumberError::TooManyDigits
        });
    }
    let mut pairs = [0u8; PAIRS_MAX];
    for (pair, &cell) in pairs.iter_mut().zip(&cells[first..=last]) {
        *pair = cell as u8;
    }
    Number::from_pairs(negative, exponent, &pairs[..=last - first])
}

/// Brings every cell into 0 … 99 and gives what is left over above the highest: 0, or -1 if the
/// whole is negative.
fn carry(cells: &mut [i16]) -> i16 {
    let mut over = 0;
    for cell in cells.iter_mut().rev() {
        // From -199 to 199: two pairs and what was carried. Cheaper than a division.
        let value = *cell + over;
        over = i16::from(value >= 100) - i16::from(value < 0) - i16::from(value < -100);
        *cell = value - 100 * over;
    }
    over
}
