//! C's `long double` as x86 has it, with 64 bits of mantissa.
//!
//! Redis adds in it and writes the sum with 17 digits after the point, so that 0.1 + 0.2 shows as
//! 0.3. Clients see every bit of that, so it is computed here the same on every machine.

use std::fmt;

use super::big::BigUint;

/// A number that is not NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LongDouble {
    is_negative: bool,
    size: Size,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Size {
    /// `mantissa` times two to the `exponent`. The mantissa's highest bit is set, unless the number
    /// is zero or has the least exponent.
    Finite {
        mantissa: u64,
        exponent: i32,
    },
    Infinite,
}

/// The exponents of the least and the greatest numbers.
const EXPONENT_MIN: i32 = -16_445;
const EXPONENT_MAX: i32 = 16_320;

/// Longer texts are not numbers to Redis.
const TEXT_LEN_MAX: usize = 5 * 1024;

/// Digits after the point.
const DECIMALS: u32 = 17;

impl LongDouble {
    /// A number as C's `strtold` reads it, all of the text. None if it is no number, if it is NaN,
    /// or too large or too small.
    pub(crate) fn parse(text: &[u8]) -> Option<LongDouble> {
        if text.len() >= TEXT_LEN_MAX {
            return None;
        }
        let (is_negative, unsigned) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if unsigned.eq_ignore_ascii_case(b"inf") || unsigned.eq_ignore_ascii_case(b"infinity") {
            return Some(LongDouble { is_negative, size: Size::Infinite });
        }
        let size = match unsigned {
            [b'0', b'x' | b'X', rest @ ..] => ParsedDigits::parse(rest, 16, 4, b'p')?.hex()?,
            _ => ParsedDigits::parse(unsigned, 10, 1, b'e')?.decimal()?,
        };
        matches!(size, Size::Finite { .. }).then_some(LongDouble { is_negative, size })
    }

    /// The sum; none if that is not a finite number.
    pub(crate) fn plus(self, other: LongDouble) -> Option<LongDouble> {
        let (
            Size::Finite { mantissa: own, exponent: own_exponent },
            Size::Finite { mantissa: others, exponent: others_exponent },
        ) = (self.size, other.size)
        else {
            return None;
        };
        if own == 0 || others == 0 {
            let is_negative = self.is_negative && other.is_negative;
            return Some(match (own, others) {
                (0, 0) => LongDouble { is_negative, ..self },
                (0, _) => other,
                _ => self,
            });
        }
        let (larger, smaller) = if (own_exponent, own) >= (others_exponent, others) {
            ((own, own_exponent, self.is_negative), (others, others_exponent, other.is_negative))
        } else {
            ((others, others_exponent, other.is_negative), (own, own_exponent, self.is_negative))
        };
        // Room below for what the smaller one has beyond the larger one's last bit, and above for
        // a carry.
        const ROOM: u32 = 62;
        let apart = larger.1.abs_diff(smaller.1);
        let high = u128::from(larger.0) << ROOM;
        let low = u128::from(smaller.0) << ROOM;
        let shifted = low.checked_shr(apart).unwrap_or(0);
        let lost = apart > ROOM && shifted.checked_shl(apart).unwrap_or(0) != low;
        let sum = if larger.2 == smaller.2 {
            high + shifted
        } else if lost {
            // What was lost is taken away too: one less, and something left.
            high - shifted - 1
        } else {
            high - shifted
        };
        let size = round(sum, larger.1 - ROOM as i32, lost);
        // Equal numbers of opposite sign leave a zero without one.
        let is_negative = larger.2 && sum != 0;
        matches!(size, Size::Finite { .. }).then_some(LongDouble { is_negative, size })
    }

    /// The nearest double.
    pub(crate) fn to_f64(self) -> f64 {
        let size = match self.size {
            Size::Infinite => f64::INFINITY,
            // Twice, because the power alone may be too small for a double.
            Size::Finite { mantissa, exponent } => {
                let half = exponent / 2;
                mantissa as f64 * 2_f64.powi(half) * 2_f64.powi(exponent - half)
            }
        };
        if self.is_negative { -size } else { size }
    }
}

impl From<f64> for LongDouble {
    fn from(number: f64) -> Self {
        const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
        let is_negative = number.is_sign_negative();
        if !number.is_finite() {
            return LongDouble { is_negative, size: Size::Infinite };
        }
        let bits = number.to_bits();
        let fraction = bits & ((1 << FRACTION_BITS) - 1);
        let biased = (bits >> FRACTION_BITS) as i32 & 0x7FF;
        let mantissa = if biased == 0 { fraction } else { fraction | 1 << FRACTION_BITS };
        let size = round(u128::from(mantissa), biased.max(1) - 1075, false);
        LongDouble { is_negative, size }
    }
}

impl From<i64> for LongDouble {
    fn from(number: i64) -> Self {
        let size = round(u128::from(number.unsigned_abs()), 0, false);
        LongDouble { is_negative: number < 0, size }
    }
}

/// Without exponent, 17 digits after the point at most.
impl fmt::Display for LongDouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        let (mantissa, exponent) = match self.size {
            Size::Infinite => return write!(out, "{sign}inf"),
            Size::Finite { mantissa, exponent } => (mantissa, exponent),
        };
        if exponent >= 0 {
            let mut whole = BigUint::from_u64(mantissa);
            whole.shift_left(exponent.unsigned_abs());
            let sign = if mantissa == 0 { "" } else { sign };
            return write!(out, "{sign}{}", whole.into_text());
        }
        // 121 bits at most.
        let scale = 10_u128.pow(DECIMALS);
        let scaled = u128::from(mantissa) * scale;
        let down = exponent.unsigned_abs();
        let kept = scaled.checked_shr(down).unwrap_or(0);
        let rest = scaled - kept.checked_shl(down).unwrap_or(0);
        let half = 1_u128.checked_shl(down - 1).unwrap_or(u128::MAX);
        let kept = kept + u128::from(rest > half || (rest == half && kept % 2 == 1));
        let (whole, fraction) = (kept / scale, kept % scale);
        let sign = if kept == 0 { "" } else { sign };
        if fraction == 0 {
            return write!(out, "{sign}{whole}");
        }
        let fraction = format!("{fraction:0width$}", width = DECIMALS as usize);
        write!(out, "{sign}{whole}.{}", fraction.trim_end_matches('0'))
    }
}

/// The number nearest to `value` times two to the `exponent`, the even one if two are.
/// `more` says that the value is a little larger than that.
fn round(value: u128, exponent: i32, more: bool) -> Size {
    if value == 0 {
        return Size::Finite { mantissa: 0, exponent: 0 };
    }
    let bits = (128 - value.leading_zeros()) as i32;
    // How far to shift to the right, so that 64 bits are left, or fewer at the least exponent.
    let down = (bits - 64).max(EXPONENT_MIN - exponent);
    let mut exponent = exponent + down;
    let mut mantissa = if down <= 0 {
        value << down.unsigned_abs()
    } else {
        let down = down.unsigned_abs();
        let kept = value.checked_shr(down).unwrap_or(0);
        let rest = value - kept.checked_shl(down).unwrap_or(0);
        let half = 1_u128.checked_shl(down - 1).unwrap_or(u128::MAX);
        let is_up = rest > half || (rest == half && (more || kept % 2 == 1));
        kept + u128::from(is_up)
    };
    if mantissa >> 64 != 0 {
        mantissa >>= 1;
        exponent += 1;
    }
    if exponent > EXPONENT_MAX {
        return Size::Infinite;
    }
    Size::Finite { mantissa: mantissa as u64, exponent }
}

/// Digits without the point, and the power of the base they are to be multiplied with.
struct ParsedDigits {
    digits: Vec<u8>,
    power: i64,
}

impl ParsedDigits {
    /// `weight` is how much one digit after the point takes from the exponent.
    fn parse(text: &[u8], radix: u32, weight: i64, exponent_mark: u8) -> Option<ParsedDigits> {
        let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
        let whole = text.iter().take_while(|byte| is_digit(byte)).count();
        let (mut digits, rest) = (text.get(..whole)?.to_vec(), text.get(whole..)?);
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => {
                let len = rest.iter().take_while(|byte| is_digit(byte)).count();
                rest.split_at_checked(len)?
            }
            _ => (&rest[..0], rest),
        };
        digits.extend_from_slice(fraction);
        if digits.is_empty() {
            return None;
        }
        let exponent = match rest {
            [] => 0,
            [mark, exponent @ ..] if mark.eq_ignore_ascii_case(&exponent_mark) => {
                let digits = match exponent {
                    [b'+' | b'-', digits @ ..] => digits,
                    digits => digits,
                };
                if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                    return None;
                }
                // One beyond all bounds is as good as the bound.
                let size = std::str::from_utf8(digits).ok()?.parse().unwrap_or(i64::MAX);
                let size = size.min(1_000_000);
                if exponent.starts_with(b"-") { -size } else { size }
            }
            _ => return None,
        };
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..zeros);
        Some(ParsedDigits { digits, power: exponent - fraction.len() as i64 * weight })
    }

    /// None if it is too small.
    fn decimal(self) -> Option<Size> {
        /// Beyond these even one digit, or as many as a text may have, is too much or too little.
        const POWER_MAX: i64 = 5_000;
        const POWER_MIN: i64 = -(5_000 + TEXT_LEN_MAX as i64);

        let mut number = BigUint::from_digits(&self.digits);
        if number.is_zero() {
            return Some(Size::Finite { mantissa: 0, exponent: 0 });
        }
        if self.power > POWER_MAX {
            return Some(Size::Infinite);
        }
        if self.power < POWER_MIN {
            return None;
        }
        let power = self.power.unsigned_abs() as u32;
        if self.power >= 0 {
            number.scale(power);
            return Some(round_big(&number, 0));
        }
        let mut by = BigUint::from_u64(1);
        by.scale(power);
        // Enough bits for the mantissa and for rounding.
        let up = (by.bits() + 67).saturating_sub(number.bits());
        number.shift_left(up);
        // A quotient of a very long number is cut first: it needs no more than its first bits.
        let over = number.bits().saturating_sub(by.bits() + 67);
        let (quotient, has_rest) = if over > 0 {
            by.shift_left(over);
            number.divide(&by)
        } else {
            number.divide(&by)
        };
        let exponent = over as i32 - up as i32;
        nonzero(round(quotient << 1 | u128::from(has_rest), exponent - 1, false))
    }

    /// None if it is too small.
    fn hex(self) -> Option<Size> {
        let mut number = BigUint::default();
        for digit in &self.digits {
            number.multiply_add(16, char::from(*digit).to_digit(16)?);
        }
        if number.is_zero() {
            return Some(Size::Finite { mantissa: 0, exponent: 0 });
        }
        nonzero(round_big(&number, self.power as i32))
    }
}

fn nonzero(size: Size) -> Option<Size> {
    (!matches!(size, Size::Finite { mantissa: 0, .. })).then_some(size)
}

fn round_big(number: &BigUint, exponent: i32) -> Size {
    let down = number.bits().saturating_sub(126);
    let (value, lost) = number.shift_right(down);
    round(value << 1 | u128::from(lost), exponent + down as i32 - 1, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(one: &str, other: &str) -> Option<String> {
        let one = LongDouble::parse(one.as_bytes()).unwrap();
        let other = LongDouble::parse(other.as_bytes()).unwrap();
        one.plus(other).map(|sum| sum.to_string())
    }

    #[test]
    fn sums_are_those_of_a_server_on_x86() {
        for (one, other, expected) in [
            ("0.1", "0.2", "0.3"),
            ("1", "0.25", "1.25"),
            ("1.5", "1.5", "3"),
            ("3.0e3", "200", "3200"),
            ("5.0e3", "2.0e2", "5200"),
            ("17179869184", "1.5", "17179869185.5"),
            ("1", "1.23456789012345678", "2.23456789012345678"),
            ("10.5", "0.1", "10.6"),
            ("-1.1", "0.1", "-1"),
            ("-5.5", "5.5", "0"),
            ("9223372036854775807", "0.5", "9223372036854775807.5"),
            ("9223372036854775807", "1.5", "9223372036854775808"),
            ("1e20", "-1", "100000000000000000000"),
            ("1e19", "0.5", "10000000000000000000"),
            ("1e-18", "0", "0"),
            ("-1e-18", "0", "0"),
            ("1e-17", "0", "0.00000000000000001"),
            ("0x10", "0x.8", "16.5"),
            ("0x1p-4", "0", "0.0625"),
            ("123456789.123456789123456789", "0", "123456789.12345678912242875"),
        ] {
            assert_eq!(sum(one, other).as_deref(), Some(expected), "{one} + {other}");
        }
    }

    #[test]
    fn what_is_no_finite_number_is_no_sum() {
        assert_eq!(sum("1", "+inf"), None);
        assert_eq!(sum("-Infinity", "inf"), None);
        assert_eq!(sum("1e4932", "1e4932"), None);
    }

    #[test]
    fn only_numbers_are_read() {
        for text in ["", "-", "+", ".", "e5", "1e", "1e+", "1 ", " 1", "nan", "0x", "1.2.3", "--1"]
        {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text:?}");
        }
        for text in ["1e5000", "1e-5000", "1e99999999999999999999", "1e-99999999999999999999"] {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(LongDouble::parse(b"0e99999999999"), Some(LongDouble::from(0)));
        assert_eq!(LongDouble::parse(&[b'1'; 5120]), None);
    }

    #[test]
    fn the_largest_and_the_least_are_exact() {
        let largest = LongDouble::parse(b"1.18973149535723176502e4932").unwrap().to_string();
        assert_eq!(largest.len(), 4933);
        assert!(largest.starts_with("118973149535723176502126385303097020516906332229462420"));
        let tiny = LongDouble::parse(b"4e-4951").unwrap();
        assert_eq!(tiny.size, Size::Finite { mantissa: 1, exponent: EXPONENT_MIN });
        let long = format!("0.{}1", "0".repeat(4900));
        assert_eq!(LongDouble::parse(long.as_bytes()), LongDouble::parse(b"1e-4901"));
        let nines = "9".repeat(4000);
        assert_eq!(LongDouble::parse(nines.as_bytes()), LongDouble::parse(b"1e4000"));
    }

    #[test]
    fn doubles_go_there_and_back() {
        for number in [0.1, -2.5, 1e300, 5e-324, f64::MAX, 0.0, 13.361389338970184] {
            assert_eq!(LongDouble::from(number).to_f64(), number);
        }
        assert_eq!(LongDouble::from(i64::MIN).to_string(), i64::MIN.to_string());
    }
}
