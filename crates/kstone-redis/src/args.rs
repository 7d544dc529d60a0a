//! Reading a command's arguments, with the errors that Redis gives.

use crate::fault::{Fault, Result};
use crate::float::LongDouble;

/// A 64-bit integer: no spaces, no plus, no leading zeros.
pub(crate) fn parse_integer(bytes: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (!digits.starts_with('0') || (digits.len() == 1 && text.len() == 1));
    if is_plain { text.parse().ok() } else { None }
}

/// A 64-bit integer.
pub(crate) fn integer(bytes: &[u8]) -> Result<i64> {
    parse_integer(bytes).ok_or(Fault::NOT_INTEGER)
}

/// A floating-point number as C's `strtod` reads it, all of it: not NaN, and neither too large nor
/// too small for a double.
pub(crate) fn parse_float(bytes: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(bytes).ok()?;
    if text.is_empty() || text.starts_with(char::is_whitespace) {
        return None;
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = match unsigned.to_ascii_lowercase().as_str() {
        "inf" | "infinity" if text.starts_with('-') => return Some(f64::NEG_INFINITY),
        "inf" | "infinity" => return Some(f64::INFINITY),
        hex if hex.starts_with("0x") => LongDouble::parse(bytes)?.to_f64(),
        _ if unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') => text.parse().ok()?,
        _ => return None,
    };
    // A zero that was not written as one.
    let is_too_small = number == 0.0
        && unsigned
            .bytes()
            .take_while(|byte| !b"eEpP".contains(byte))
            .any(|byte| byte != b'0' && byte.is_ascii_hexdigit());
    (number.is_finite() && !is_too_small).then_some(number)
}

/// A floating-point number.
pub(crate) fn float(bytes: &[u8]) -> Result<f64> {
    parse_float(bytes).ok_or(Fault::NOT_FLOAT)
}

/// Until when to wait, in milliseconds since 1970, given in seconds from now; `None` is for ever.
pub(crate) fn timeout(bytes: &[u8], now_ms: u64) -> Result<Option<u64>> {
    let ms = (parse_float(bytes).ok_or(Fault::BAD_TIMEOUT)? * 1000.0).ceil();
    if ms < 0.0 {
        return Err(Fault::NEGATIVE_TIMEOUT);
    }
    if ms >= i64::MAX as f64 {
        return Err(Fault::BAD_TIMEOUT);
    }
    Ok((ms > 0.0).then(|| now_ms.saturating_add(ms as u64)))
}

/// An integer that is not negative.
pub(crate) fn not_negative(arg: &[u8], fault: Fault) -> Result<u64> {
    parse_integer(arg).and_then(|number| u64::try_from(number).ok()).ok_or(fault)
}

/// An integer above zero.
fn positive(arg: &[u8], fault: Fault) -> Result<u64> {
    let number = parse_integer(arg).and_then(|number| u64::try_from(number).ok());
    number.filter(|number| *number > 0).ok_or(fault)
}

/// Reads `numkeys key [key …] END [COUNT count]` of LMPOP and ZMPOP: the keys, the end that
/// elements are taken from, and how many.
pub(crate) fn keys_end_and_count<'a, 'k, E>(
    args: &'a [&'k [u8]],
    read_end: impl FnOnce(&[u8]) -> Result<E>,
) -> Result<(&'a [&'k [u8]], E, u64)> {
    const NO_KEYS: Fault = Fault::fixed("ERR numkeys should be greater than 0");
    const NO_COUNT: Fault = Fault::fixed("ERR count should be greater than 0");
    let [numkeys, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let numkeys = usize::try_from(positive(numkeys, NO_KEYS)?).unwrap_or(usize::MAX);
    let (keys, rest) = rest.split_at_checked(numkeys).ok_or(Fault::SYNTAX)?;
    let [end, options @ ..] = rest else { return Err(Fault::SYNTAX) };
    let end = read_end(end)?;
    let count = match options {
        [] => 1,
        [option, count, rest @ ..] if is(option, "count") => {
            let count = positive(count, NO_COUNT)?;
            if !rest.is_empty() {
                return Err(Fault::SYNTAX);
            }
            count
        }
        _ => return Err(Fault::SYNTAX),
    };
    Ok((keys, end, count))
}

/// Whether an argument is this option, in any case.
pub(crate) fn is(arg: &[u8], option: &str) -> bool {
    arg.eq_ignore_ascii_case(option.as_bytes())
}

/// An argument as text for a message.
pub(crate) fn shown(arg: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(arg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_strictly() {
        for (text, number) in [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX)] {
            assert_eq!(parse_integer(text.as_bytes()), Some(number));
        }
        for text in ["", "-", "+1", " 1", "1 ", "01", "-0", "9223372036854775808", "1.0", "0x1"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_time_to_wait_is_rounded_up_and_none_is_for_ever() {
        assert_eq!(timeout(b"0", 5), Ok(None));
        assert_eq!(timeout(b"0.0001", 5), Ok(Some(6)));
        assert_eq!(timeout(b"1.5", 5), Ok(Some(1505)));
        assert_eq!(timeout(b"-1", 5), Err(Fault::NEGATIVE_TIMEOUT));
        for text in ["a", "", "1e30", "inf"] {
            assert_eq!(timeout(text.as_bytes(), 5), Err(Fault::BAD_TIMEOUT), "{text}");
        }
    }

    #[test]
    fn floats_are_read_as_clients_write_them() {
        for (text, number) in [("1.5", 1.5), ("-inf", f64::NEG_INFINITY), ("+INF", f64::INFINITY)] {
            assert_eq!(parse_float(text.as_bytes()), Some(number));
        }
        assert_eq!(parse_float(b"0x1F.8p1"), Some(63.0));
        assert_eq!(parse_float(b"-0.0e400"), Some(0.0));
        for text in ["", "nan", "1.5 ", " 1", "abc", "1e", "--1", "1e400", "-1e-400", "0x", "."] {
            assert_eq!(parse_float(text.as_bytes()), None, "{text}");
        }
    }
}
