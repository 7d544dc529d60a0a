//! Numbers as text: what DynamoDB accepts, and what it gives back.

use std::fmt;
use std::str::FromStr;

use super::{DIGITS_MAX, Number, NumberError, NumberRef, PAIRS_MAX};

const SCIENTIFIC_MAX: i64 = 125;
const SCIENTIFIC_MIN: i64 = -130;

impl FromStr for Number {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Self, NumberError> {
        if text.is_empty() {
            return Err(NumberError::Empty);
        }
        Scan::of(text.as_bytes()).ok_or_else(|| NumberError::NotNumeric(text.to_owned()))?.number()
    }
}

/// A number read from text, before its limits are checked: `0.d1 d2 d3 … × 10^point`, where d1
/// and the last digit are not zero.
struct Scan {
    negative: bool,
    digits: [u8; DIGITS_MAX],
    len: usize,
    /// More digits than fit.
    too_many: bool,
    point: i64,
    /// As written.
    exponent: i64,
}

impl Scan {
    /// `None` if the text is not a number.
    fn of(text: &[u8]) -> Option<Scan> {
        let mut scan = Scan {
            negative: false,
            digits: [0; DIGITS_MAX],
            len: 0,
            too_many: false,
            point: 0,
            exponent: 0,
        };
        let mut rest = text;
        if let [sign @ (b'+' | b'-'), tail @ ..] = rest {
            scan.negative = *sign == b'-';
            rest = tail;
        }
        let (mut any, mut in_fraction) = (false, false);
        let mut zeros = 0;
        while let [byte, tail @ ..] = rest {
            match byte {
                b'0'..=b'9' => {
                    any = true;
                    let started = scan.len > 0;
                    let digit = byte - b'0';
                    if digit == 0 {
                        zeros += usize::from(started);
                        scan.point += match (started, in_fraction) {
                            (true, false) => 1,
                            (false, true) => -1,
                            _ => 0,
                        };
                    } else {
                        scan.point += i64::from(!in_fraction);
                        scan.push(zeros, digit);
                        zeros = 0;
                    }
                }
                b'.' if !in_fraction => in_fraction = true,
                b'e' | b'E' if any => {
                    scan.exponent = exponent(tail)?;
                    return Some(scan);
                }
                _ => return None,
            }
            rest = tail;
        }
        any.then_some(scan)
    }

    fn push(&mut self, zeros: usize, digit: u8) {
        // The zeros are in place already: the array starts as zeros.
        match self.digits.get_mut(self.len + zeros) {
            Some(place) => {
                *place = digit;
                self.len += zeros + 1;
            }
            None => self.too_many = true,
        }
    }

    fn number(&self) -> Result<Number, NumberError> {
        // DynamoDB looks at the exponent of a zero, too: a large one counts from its last digit.
        let scientific = match (self.len, self.exponent > 0) {
            (0, true) => self.exponent.saturating_add(self.point),
            (0, false) => self.exponent,
            _ => self.exponent.saturating_add(self.point - 1),
        };
        if scientific > SCIENTIFIC_MAX {
            return Err(NumberError::Overflow);
        }
        if scientific < SCIENTIFIC_MIN {
            return Err(NumberError::Underflow);
        }
        if self.too_many {
            return Err(NumberError::TooManyDigits);
        }
        if self.len == 0 {
            return Ok(Number::ZERO);
        }
        // A first digit worth an even power of ten is a pair of its own.
        let alone = usize::from(scientific.rem_euclid(2) == 0);
        let mut pairs = [0u8; PAIRS_MAX];
        for (at, digit) in self.digits.iter().take(self.len).enumerate() {
            let place = at + alone;
            pairs[place / 2] += if place.is_multiple_of(2) { digit * 10 } else { *digit };
        }
        let count = (self.len + alone).div_ceil(2);
        Number::from_pairs(self.negative, scientific.div_euclid(2) as i32, &pairs[..count])
    }
}

/// What stands behind the `e`. An exponent that is itself beyond 64 bits is no number at all.
fn exponent(text: &[u8]) -> Option<i64> {
    // `i64::from_str` takes a sign and digits, and nothing else.
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Room for a sign, `0.` and 167 decimals: 1E-130 with 38 digits is the longest.
const TEXT_MAX: usize = 176;

/// A number's digits, held without allocating.
#[derive(Clone, Copy)]
pub struct DecimalText {
    bytes: [u8; TEXT_MAX],
    len: usize,
}

impl DecimalText {
    /// The digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The digits, as ASCII.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    fn push_pair(&mut self, pair: u8) {
        self.push(b'0' + pair / 10);
        self.push(b'0' + pair % 10);
    }
}

impl fmt::Debug for DecimalText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl NumberRef<'_> {
    /// Appends the text that DynamoDB gives for the number.
    pub fn write_decimal(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.decimal().as_bytes());
    }

    /// The text that DynamoDB gives for the number: plain digits, without allocating.
    pub fn decimal(self) -> DecimalText {
        let parts = self.parts();
        let mut text = DecimalText { bytes: [0; TEXT_MAX], len: 0 };
        if parts.len() == 0 {
            text.push(b'0');
            return text;
        }
        if parts.negative {
            text.push(b'-');
        }
        // How many pairs stand before the point.
        let whole = usize::try_from(parts.exponent + 1).unwrap_or(0);
        if whole == 0 {
            text.push(b'0');
        } else {
            let first = parts.pair(0);
            if first >= 10 {
                text.push(b'0' + first / 10);
            }
            text.push(b'0' + first % 10);
            for at in 1..whole {
                text.push_pair(parts.pair(at));
            }
        }
        if parts.len() > whole {
            text.push(b'.');
            for _ in parts.exponent + 1..0 {
                text.push_pair(0);
            }
            for at in whole..parts.len() {
                text.push_pair(parts.pair(at));
            }
            if parts.pair(parts.len() - 1).is_multiple_of(10) {
                text.len -= 1;
            }
        }
        text
    }
}
