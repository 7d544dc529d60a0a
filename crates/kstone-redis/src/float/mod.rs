//! Floating-point numbers as Redis 7.0 writes and adds them: for the commands of strings, hashes,
//! sorted sets and geo, and for the door.

mod big;
mod long_double;

pub(crate) use long_double::LongDouble;

/// More digits than these do not fit a double, and all of them are needed to tell any two apart.
const SIGNIFICANT_DIGITS: i32 = 17;

/// As Redis 7.0 writes a score: up to 17 significant digits (C's `%.17g`), `inf`, `-inf`, `nan`.
pub fn double_text(number: f64) -> String {
    /// Whole numbers below this have no more digits than are written.
    const WHOLE_MAX: f64 = (1_i64 << 52) as f64;

    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    if number.abs() < WHOLE_MAX && number.fract() == 0.0 {
        return (number as i64).to_string();
    }
    let scientific = format!("{number:.*e}", SIGNIFICANT_DIGITS as usize - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    if !(-4..SIGNIFICANT_DIGITS).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        let mantissa = without_trailing_zeros(mantissa);
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let decimals = (SIGNIFICANT_DIGITS - 1 - exponent) as usize;
    without_trailing_zeros(&format!("{number:.decimals$}")).to_owned()
}

/// A number in the form without an exponent, 17 digits after the point at most: how
/// INCRBYFLOAT, HINCRBYFLOAT and coordinates are written.
pub(crate) fn plain_text(number: f64) -> String {
    LongDouble::from(number).to_string()
}

/// Without the zeros that end a fraction.
fn without_trailing_zeros(text: &str) -> &str {
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_with_seventeen_digits() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (-17179869184.0, "-17179869184"),
            (1.1, "1.1000000000000001"),
            (0.1, "0.10000000000000001"),
            (0.5, "0.5"),
            (1.0 / 3.0, "0.33333333333333331"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (1.5e300, "1.5000000000000001e+300"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (9007199254740993.5, "9007199254740994"),
            (123456789012345678.0, "1.2345678901234568e+17"),
            (12345678901234567.0, "12345678901234568"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(double_text(number), text);
        }
    }

    #[test]
    fn a_double_in_plain_form_has_no_exponent() {
        for (number, text) in [
            (0.1, "0.10000000000000001"),
            (13.361389338970184, "13.36138933897018433"),
            (1e20, "100000000000000000000"),
            (-0.0, "0"),
            (1e-20, "0"),
        ] {
            assert_eq!(plain_text(number), text);
        }
    }
}
