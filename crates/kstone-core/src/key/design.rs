//! Encodes parts of keys so that they sort as they should: numbers padded, time inverted, prices rounded, text
//! escaped.
//!
//! Keys compare byte by byte, so `10` sorts before `9`, and a name that holds a separator can pass
//! for two parts. These functions make text that has neither fault. They are for callers; the
//! engine itself takes any bytes. `examples/key_design.rs` shows them in the five usual patterns.

use crate::error::{Error, Result};

/// A number as 20 digits, so that text order is number order.
///
/// ```
/// use kstone_core::key_design::padded;
///
/// assert_eq!(padded(42), "00000000000000000042");
/// assert!(padded(9) < padded(10));
/// ```
pub fn padded(n: u64) -> String {
    format!("{n:020}")
}

/// A time in milliseconds since 1970, turned round: the later the time, the earlier it sorts. A
/// partition with such sort keys reads newest first.
///
/// ```
/// use kstone_core::key_design::inverted_ms;
///
/// assert_eq!(inverted_ms(1_705_312_800_000), "09223370331541975807");
/// assert!(inverted_ms(2000) < inverted_ms(1000));
/// ```
pub fn inverted_ms(time_ms: i64) -> String {
    // From i64::MAX down to i64::MIN this is 0 up to u64::MAX: never negative, never too large.
    padded(i64::MAX.abs_diff(time_ms))
}

/// A price in hundredths, rounded and padded to `digits`.
///
/// Rounded, because most prices are not exact in binary: `19.99 * 100.0` is just under 1999, and
/// cutting it off would give 1998.
///
/// An error if the price is negative or no number, or does not fit: such a key would sort in the
/// wrong place.
///
/// ```
/// use kstone_core::key_design::price_cents;
///
/// assert_eq!(price_cents(19.99, 10)?, "0000001999");
/// assert!(price_cents(9.5, 10)? < price_cents(10.0, 10)?);
/// assert!(price_cents(-1.0, 10).is_err());
/// assert!(price_cents(10_000.0, 6).is_err());
/// # Ok::<(), kstone_core::Error>(())
/// ```
pub fn price_cents(price: f64, digits: usize) -> Result<String> {
    let cents = (price * 100.0).round();
    // Above 2^53 not every whole number of cents exists.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if !(0.0..=EXACT_MAX).contains(&cents) || price.is_sign_negative() && price != 0.0 {
        return Err(Error::invalid(format!("{price} cannot be a price in a key")));
    }
    let text = format!("{:0digits$}", cents as u64);
    if text.len() > digits {
        return Err(Error::invalid(format!("{price} in cents does not fit into {digits} digits")));
    }
    Ok(text)
}

/// Text for use between the separators `#` and `:`, so that whatever a user typed stays one part.
///
/// Every byte up to `%` (among them blanks, `#` and `%` itself), and `:`, becomes `%` and two
/// hexadecimal digits. So a part never holds a separator, two different texts never give the same
/// part, and parts joined by `#` sort part by part: `a` before `a b`, whatever follows. Texts sort
/// as before, except that a colon now comes before letters and digits.
///
/// ```
/// use kstone_core::key_design::{escaped, unescaped};
///
/// let part = escaped("acme:admin#1");
/// assert_eq!(part, "acme%3Aadmin%231");
/// assert_eq!(unescaped(&part).as_deref(), Some("acme:admin#1"));
/// ```
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c <= '%' || c == ':' {
            out.push_str(&format!("%{:02X}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// The text that [`escaped`] was given; `None` if it never gave `part`.
pub fn unescaped(part: &str) -> Option<String> {
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let digits = after.get(..2)?;
        out.push(char::from(u8::from_str_radix(digits, 16).ok()?));
        rest = after.get(2..)?;
    }
    out.push_str(rest);
    (escaped(&out) == part).then_some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_price_in_cents_up_to_a_thousand_comes_out_as_it_is_written() {
        for cents in 0..100_000u64 {
            let price: f64 = format!("{}.{:02}", cents / 100, cents % 100).parse().unwrap();
            assert_eq!(price_cents(price, 10).unwrap(), format!("{cents:010}"));
        }
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for bad in [-0.01, -0.001, -5.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            assert!(price_cents(bad, 20).is_err(), "{bad}");
        }
        assert_eq!(price_cents(0.0, 3).unwrap(), "000");
        assert_eq!(price_cents(-0.0, 3).unwrap(), "000");
        assert_eq!(price_cents(9.99, 3).unwrap(), "999");
        assert!(price_cents(9.996, 3).is_err(), "it rounds to 1000");
    }

    #[test]
    fn what_was_never_escaped_is_not_unescaped() {
        for bad in ["#", "a:b", "%", "%4", "%zz", "%41", "%3a", "%+1", "%é"] {
            assert_eq!(unescaped(bad), None, "{bad}");
        }
    }

    /// Short texts of few characters, so that common prefixes and separators are frequent.
    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec(
            proptest::sample::select(vec!['\0', ' ', '!', '#', '$', '%', '&', '0', 'a', 'z', 'é']),
            0..5,
        )
        .prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn padded_and_inverted_numbers_sort_as_numbers(a: u64, b: u64, s: i64, t: i64) {
            prop_assert_eq!(padded(a).cmp(&padded(b)), a.cmp(&b));
            prop_assert_eq!(inverted_ms(s).cmp(&inverted_ms(t)), t.cmp(&s));
        }

        #[test]
        fn escaping_can_be_undone_and_hides_every_separator(text: String) {
            let part = escaped(&text);
            prop_assert!(!part.contains(['#', ':']));
            prop_assert_eq!(unescaped(&part), Some(text));
        }

        #[test]
        fn joined_parts_sort_part_by_part(a in text(), b in text(), c in text(), d in text()) {
            let joined = |x: &str, y: &str| format!("{}#{}", escaped(x), escaped(y));
            prop_assert_eq!(joined(&a, &b).cmp(&joined(&c, &d)), (&a, &b).cmp(&(&c, &d)));
        }
    }
}
