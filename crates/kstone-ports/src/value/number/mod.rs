//! Decimal numbers: exact, up to 38 significant digits, from 1E-130 to 9.99…E+125.
//!
//! A number is held as its ordered bytes, in memory as on disk, so that comparing, hashing and
//! storing it are copies and comparisons of at most 22 bytes. The digits are in base 100, aligned
//! on the decimal point, without zero pairs at either end:
//!
//! ```text
//! zero        80
//! positive    head, pairs      head = C1 + exponent of the first pair in base 100 (-63 … 62)
//!             81, 00 or 01, pairs               the two smallest exponents, -65 and -64
//!             each pair is 2 × its value, plus 1 if another pair follows
//! negative    the bytes of the positive number, each inverted
//! ```
//!
//! The last pair marks itself, so the bytes end by themselves and no number is a prefix of
//! another; that is what makes byte order numeric order, and equal bytes equal numbers.
//! A terminator byte and an exponent byte of its own would do as well and cost two bytes more in
//! every number: most are small integers, which take two to four bytes.

mod sum;
mod text;

pub use text::DecimalText;

use std::fmt;

/// The most significant digits that a number has.
const DIGITS_MAX: usize = 38;
/// 38 digits that do not start on a pair boundary touch twenty pairs.
const PAIRS_MAX: usize = 20;
const LEN_MAX: usize = 2 + PAIRS_MAX;
const EXPONENT_MIN: i32 = -65;
const EXPONENT_MAX: i32 = 62;

const ZERO: u8 = 0x80;
/// The head of the positive numbers whose exponent does not fit in the head.
const TINY: u8 = 0x81;
/// What is added to an exponent to give the head of a positive number.
const HEAD_BIAS: i32 = 0xC1;
/// The smallest exponent that fits in the head.
const HEAD_EXPONENT_MIN: i32 = -63;

/// An exact decimal number of up to 38 significant digits: DynamoDB's type N.
///
/// Its magnitude is from 1E-130 to 9.9999999999999999999999999999999999999E+125, or it is zero.
/// There is no negative zero and no NaN, so equality and order are those of arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    /// The ordered bytes, then zeros. No number's bytes are a prefix of another's, so the derived
    /// comparison of the padded array never gets to the padding.
    bytes: [u8; LEN_MAX],
    len: u8,
}

/// Why a number was refused. The messages are Amazon DynamoDB's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// The text is empty.
    #[error("The parameter cannot be converted to a numeric value")]
    Empty,
    /// The text is not a decimal number.
    #[error("The parameter cannot be converted to a numeric value: {0}")]
    NotNumeric(String),
    /// The number is not zero, and nearer to it than 1E-130.
    #[error(
        "Number underflow. Attempting to store a number with magnitude smaller than supported range"
    )]
    Underflow,
    /// The magnitude is 1E+126 or more.
    #[error(
        "Number overflow. Attempting to store a number with magnitude larger than supported range"
    )]
    Overflow,
    /// Exactness would take more than 38 digits; nothing is rounded in silence.
    #[error("Attempting to store more than 38 significant digits in a Number")]
    TooManyDigits,
}

impl Number {
    /// Zero.
    pub const ZERO: Number = {
        let mut bytes = [0; LEN_MAX];
        bytes[0] = ZERO;
        Number { bytes, len: 1 }
    };

    /// The number's ordered bytes: compared as bytes, they compare as numbers.
    pub fn ordered(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// Appends the ordered bytes.
    pub fn write_ordered(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.ordered());
    }

    /// Reads a number off the front of `bytes`, with how many bytes it took; `None` if there is
    /// none in its one valid form.
    pub fn read_ordered(bytes: &[u8]) -> Option<(Number, usize)> {
        let number = NumberRef::read(bytes)?;
        Some((number.to_number(), number.bytes.len()))
    }

    /// The same number, borrowed.
    pub fn as_number_ref(&self) -> NumberRef<'_> {
        NumberRef { bytes: self.ordered() }
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.bytes[0] < ZERO
    }

    /// As an integer, if it is one that fits.
    pub fn to_i64(&self) -> Option<i64> {
        self.as_number_ref().to_i64()
    }

    /// As an integer, if it is one that fits.
    pub fn to_u64(&self) -> Option<u64> {
        self.as_number_ref().to_u64()
    }

    /// The nearest floating-point number.
    pub fn to_f64(&self) -> f64 {
        self.as_number_ref().decimal().as_str().parse().unwrap_or(f64::NAN)
    }

    /// The text that DynamoDB gives for it, without allocating.
    pub fn decimal(&self) -> DecimalText {
        self.as_number_ref().decimal()
    }

    /// How many bytes it counts for in the size of an item.
    pub fn size(&self) -> usize {
        self.as_number_ref().size()
    }

    /// From base-100 digits, the first of them worth `100^exponent`, with no zero at either end.
    fn from_pairs(negative: bool, exponent: i32, pairs: &[u8]) -> Result<Number, NumberError> {
        let (Some(&first), Some(&last)) = (pairs.first(), pairs.last()) else {
            return Ok(Number::ZERO);
        };
        debug_assert!(first != 0 && last != 0 && pairs.iter().all(|&pair| pair < 100));
        if exponent > EXPONENT_MAX {
            return Err(NumberError::Overflow);
        }
        if exponent < EXPONENT_MIN {
            return Err(NumberError::Underflow);
        }
        if digits(pairs.len(), first, last) > DIGITS_MAX {
            return Err(NumberError::TooManyDigits);
        }
        let mut number = Number { bytes: [0; LEN_MAX], len: 0 };
        let flip = if negative { 0xFF } else { 0 };
        if exponent < HEAD_EXPONENT_MIN {
            number.push(TINY ^ flip);
            number.push((exponent - EXPONENT_MIN) as u8 ^ flip);
        } else {
            number.push((exponent + HEAD_BIAS) as u8 ^ flip);
        }
        for &pair in &pairs[..pairs.len() - 1] {
            number.push((pair * 2 + 1) ^ flip);
        }
        number.push((last * 2) ^ flip);
        Ok(number)
    }

    fn push(&mut self, byte: u8) {
        self.bytes[usize::from(self.len)] = byte;
        self.len += 1;
    }

    fn from_magnitude(negative: bool, mut magnitude: u64) -> Number {
        // Twenty digits at most.
        let mut pairs = [0u8; 10];
        let mut start = pairs.len();
        while magnitude > 0 {
            start -= 1;
            pairs[start] = (magnitude % 100) as u8;
            magnitude /= 100;
        }
        let pairs = &pairs[start..];
        let exponent = pairs.len() as i32 - 1;
        let end = pairs.iter().rposition(|&pair| pair != 0).map_or(0, |last| last + 1);
        Number::from_pairs(negative, exponent, &pairs[..end]).unwrap_or(Number::ZERO)
    }
}

/// How many significant digits so many pairs hold.
fn digits(pairs: usize, first: u8, last: u8) -> usize {
    pairs * 2 - usize::from(first < 10) - usize::from(last.is_multiple_of(10))
}

impl Default for Number {
    fn default() -> Self {
        Number::ZERO
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.decimal().as_str())
    }
}

impl fmt::Display for Number {
    /// Plain decimal digits, never an exponent, without needless zeros: as DynamoDB returns it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.decimal().as_str())
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Number::from_magnitude(false, value)
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Number::from_magnitude(value < 0, value.unsigned_abs())
    }
}

impl From<u32> for Number {
    fn from(value: u32) -> Self {
        Number::from(u64::from(value))
    }
}

impl From<i32> for Number {
    fn from(value: i32) -> Self {
        Number::from(i64::from(value))
    }
}

impl TryFrom<f64> for Number {
    type Error = NumberError;

    /// The shortest decimal that reads back as the same floating-point number.
    fn try_from(value: f64) -> Result<Self, NumberError> {
        format!("{value:e}").parse()
    }
}

/// A number inside stored bytes, already checked to be one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NumberRef<'a> {
    bytes: &'a [u8],
}

impl<'a> NumberRef<'a> {
    /// Reads a number off the front of `bytes`.
    pub fn read(bytes: &'a [u8]) -> Option<NumberRef<'a>> {
        let (&head, rest) = bytes.split_first()?;
        if head == ZERO {
            return Some(NumberRef { bytes: bytes.get(..1)? });
        }
        let flip = if head < ZERO { 0xFF } else { 0 };
        let mut pairs_at = 1;
        match head ^ flip {
            // The inverse of zero.
            ZERO => return None,
            TINY => {
                if rest.first()? ^ flip > 1 {
                    return None;
                }
                pairs_at = 2;
            }
            _ => {}
        }
        let first = (bytes.get(pairs_at)? ^ flip) >> 1;
        for (at, &byte) in bytes.iter().enumerate().skip(pairs_at).take(PAIRS_MAX) {
            let byte = byte ^ flip;
            if byte >= 200 {
                return None;
            }
            if byte & 1 == 0 {
                let (last, pairs) = (byte >> 1, at + 1 - pairs_at);
                let canonical = first != 0 && last != 0 && digits(pairs, first, last) <= DIGITS_MAX;
                return if canonical { Some(NumberRef { bytes: bytes.get(..=at)? }) } else { None };
            }
        }
        None
    }

    /// How long the number at the front of `bytes` is, without checking more than its end.
    pub(crate) fn skip(bytes: &[u8]) -> Option<usize> {
        let (&head, rest) = bytes.split_first()?;
        if head == ZERO {
            return Some(1);
        }
        let flip = if head < ZERO { 0xFF } else { 0 };
        // The second byte of a tiny number may look like a last pair.
        let skipped = usize::from(head ^ flip == TINY);
        let pairs = rest.get(skipped..)?.iter().take(PAIRS_MAX);
        let last = pairs.map(|byte| byte ^ flip).position(|byte| byte & 1 == 0)?;
        Some(skipped + last + 2)
    }

    /// The ordered bytes: compared as bytes, they compare as numbers.
    pub fn ordered(self) -> &'a [u8] {
        self.bytes
    }

    /// An owned number.
    pub fn to_number(self) -> Number {
        let mut bytes = [0; LEN_MAX];
        match bytes.get_mut(..self.bytes.len()) {
            Some(start) => start.copy_from_slice(self.bytes),
            // Not reached: `read` and `Number` give at most that many.
            None => return Number::ZERO,
        }
        Number { bytes, len: self.bytes.len() as u8 }
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.bytes.first().is_some_and(|&head| head < ZERO)
    }

    /// As an integer, if it is one that fits.
    pub fn to_i64(self) -> Option<i64> {
        i64::try_from(self.to_integer()?).ok()
    }

    /// As an integer, if it is one that fits.
    pub fn to_u64(self) -> Option<u64> {
        u64::try_from(self.to_integer()?).ok()
    }

    /// As an integer, if it is one below 10^20, which no integer of 64 bits is beyond.
    fn to_integer(self) -> Option<i128> {
        let parts = self.parts();
        if parts.exponent > 9 || parts.exponent_last() < 0 {
            return None;
        }
        let mut value = 0i128;
        for at in 0..=parts.exponent as usize {
            value = value * 100 + i128::from(parts.pair(at));
        }
        Some(if parts.negative { -value } else { value })
    }

    /// How many bytes it counts for in the size of an item: one for each pair of digits, one for
    /// the exponent and one for a minus sign.
    pub fn size(self) -> usize {
        NumberRef::size_of(self.bytes)
    }

    /// The same for bytes that [`skip`](NumberRef::skip) took for a number.
    pub(crate) fn size_of(bytes: &[u8]) -> usize {
        let head = bytes.first().copied().unwrap_or(ZERO);
        let tiny = head == TINY || head == !TINY;
        bytes.len() + usize::from(head < ZERO) - usize::from(tiny)
    }

    fn parts(self) -> Parts<'a> {
        let zero = Parts { negative: false, exponent: 0, flip: 0, pairs: &[] };
        let Some((&head, rest)) = self.bytes.split_first() else { return zero };
        if head == ZERO {
            return zero;
        }
        let negative = head < ZERO;
        let flip = if negative { 0xFF } else { 0 };
        match (head ^ flip, rest.split_first()) {
            (TINY, Some((&exponent, pairs))) => {
                Parts { negative, exponent: EXPONENT_MIN + i32::from(exponent ^ flip), flip, pairs }
            }
            (head, _) => {
                Parts { negative, exponent: i32::from(head) - HEAD_BIAS, flip, pairs: rest }
            }
        }
    }
}

impl fmt::Debug for NumberRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.decimal().as_str())
    }
}

impl<'a> From<&'a Number> for NumberRef<'a> {
    fn from(number: &'a Number) -> Self {
        number.as_number_ref()
    }
}

/// A number taken apart: its sign and its base-100 digits, the first worth `100^exponent`.
struct Parts<'a> {
    negative: bool,
    exponent: i32,
    flip: u8,
    pairs: &'a [u8],
}

impl Parts<'_> {
    fn len(&self) -> usize {
        self.pairs.len()
    }

    /// The pair at this place; zero behind the last.
    fn pair(&self, at: usize) -> u8 {
        self.pairs.get(at).map_or(0, |byte| (byte ^ self.flip) >> 1)
    }

    /// The exponent of the last pair.
    fn exponent_last(&self) -> i32 {
        self.exponent - self.pairs.len() as i32 + 1
    }
}
