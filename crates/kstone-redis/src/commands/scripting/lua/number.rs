//! Formats numbers as C's `printf` does.

use mlua::Value;

/// A number with so many significant digits, as `%.*g` writes it.
pub(super) fn general(number: f64, digits: usize) -> String {
    if number.is_nan() {
        return if number.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let digits = digits.max(1);
    // Rust's own `{:e}` rounds to the digits asked for and gives the exponent after rounding.
    let scientific = format!("{:.*e}", digits - 1, number);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let mantissa = without_trailing_zeros(mantissa);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    without_trailing_zeros(&format!("{number:.decimals$}")).to_owned()
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// A Lua number, however it was handed over.
pub(super) fn of(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// A number as C converts it to a 64-bit integer: what does not fit is the lowest one.
pub(super) fn to_i64(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_printf_does() {
        for (number, digits, text) in [
            (0.1, 17, "0.10000000000000001"),
            (9_007_199_254_740_991.0, 17, "9007199254740991"),
            (1e20, 17, "1e+20"),
            (0.0003, 14, "0.0003"),
            (0.00001, 14, "1e-05"),
            (-5000.0, 14, "-5000"),
            (123_456_789.125, 3, "1.23e+08"),
            (0.0, 14, "0"),
            (99.99, 2, "1e+02"),
            (f64::INFINITY, 14, "inf"),
        ] {
            assert_eq!(general(number, digits), text);
        }
    }
}
