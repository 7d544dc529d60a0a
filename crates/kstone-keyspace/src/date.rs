//! Dates and timestamps in keys. Each has one textual form, whose byte order is chronological.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, civil};
use kstone::Value;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A day of the calendar in a key: `2026-01-14`, from 1970 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(civil::Date);

/// Milliseconds since 1970 in a key: always 13 digits, which last until the year 2286.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(u64);

const DAY_SECONDS: u64 = 86_400;
const DAY_MS: u64 = DAY_SECONDS * 1000;
const FIRST: civil::Date = civil::date(1970, 1, 1);

/// How many digits [`Millis`] has in a key.
pub(crate) const MILLIS_DIGITS: usize = 13;
/// The last moment that [`Millis`] can say.
pub(crate) const MILLIS_MAX: u64 = 9_999_999_999_999;

/// An invalid date or timestamp for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be {expected}")]
pub struct TimeError {
    /// The form that it must have.
    pub expected: &'static str,
}

impl TimeError {
    const DATE: TimeError = TimeError { expected: "a day such as 2026-01-14, from 1970 to 9999" };
    const MILLIS: TimeError =
        TimeError { expected: "milliseconds since 1970 in 13 digits, before the year 2286" };
}

impl Default for Date {
    /// 1970-01-01.
    fn default() -> Date {
        Date(FIRST)
    }
}

impl Date {
    /// This date, if it exists.
    pub fn new(year: u16, month: u8, day: u8) -> Result<Date, TimeError> {
        let day = match (i16::try_from(year), i8::try_from(month), i8::try_from(day)) {
            (Ok(year @ 1970..), Ok(month), Ok(day)) => civil::Date::new(year, month, day).ok(),
            _ => None,
        };
        day.map(Date).ok_or(TimeError::DATE)
    }

    /// The UTC day in which this millisecond since 1970 lies.
    pub fn from_epoch_ms(ms: u64) -> Result<Date, TimeError> {
        Date::from_epoch_days(ms / DAY_MS)
    }

    /// The day this many days after 1970-01-01.
    pub fn from_epoch_days(days: u64) -> Result<Date, TimeError> {
        let seconds = days.checked_mul(DAY_SECONDS).and_then(|it| i64::try_from(it).ok());
        let after = SignedDuration::from_secs(seconds.ok_or(TimeError::DATE)?);
        FIRST.checked_add(after).map(Date).map_err(|_| TimeError::DATE)
    }

    /// How many days after 1970-01-01 it is.
    pub fn epoch_days(self) -> u64 {
        self.days_since(Date(FIRST)).unsigned_abs()
    }

    /// The first millisecond of the day in UTC, since 1970.
    pub fn epoch_ms(self) -> u64 {
        self.epoch_days() * DAY_MS
    }

    /// The date this many days later, or earlier if negative; clamped to 1970-01-01 and 9999-12-31.
    #[must_use]
    pub fn plus_days(self, days: i64) -> Date {
        let days = self.epoch_days().saturating_add_signed(days);
        Date::from_epoch_days(days).unwrap_or(Date(civil::Date::MAX))
    }

    /// How many days this day is after `earlier`; negative if it is before.
    pub fn days_since(self, earlier: Date) -> i64 {
        self.0.duration_since(earlier.0).as_hours() / 24
    }

    /// Year, month and day.
    pub fn parts(self) -> (u16, u8, u8) {
        (self.0.year() as u16, self.0.month() as u8, self.0.day() as u8)
    }

    /// The text, formatted without `core::fmt`, which is slower: dates stand in many keys and
    /// values.
    pub fn ascii(self) -> [u8; 10] {
        let digit = |number: u16| b'0' + (number % 10) as u8;
        let (year, month, day) = self.parts();
        let (month, day) = (u16::from(month), u16::from(day));
        let mut text = *b"0000-00-00";
        let digits =
            [year / 1000, year / 100, year / 10, year, 0, month / 10, month, 0, day / 10, day];
        for (place, number) in text.iter_mut().zip(digits).filter(|(place, _)| **place != b'-') {
            *place = digit(number);
        }
        text
    }

    pub(crate) fn from_bytes(text: &[u8]) -> Option<Date> {
        let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return None };
        let year = number(&[*y1, *y2, *y3, *y4])?;
        let (month, day) = (number(&[*m1, *m2])?, number(&[*d1, *d2])?);
        Date::new(year as u16, month as u8, day as u8).ok()
    }
}

impl Millis {
    /// This many milliseconds since 1970.
    pub fn new(ms: u64) -> Result<Millis, TimeError> {
        match ms <= MILLIS_MAX {
            true => Ok(Millis(ms)),
            false => Err(TimeError::MILLIS),
        }
    }

    /// This many milliseconds since 1970, or the last moment that a key can say.
    pub fn clamped(ms: u64) -> Millis {
        Millis(ms.min(MILLIS_MAX))
    }

    /// Milliseconds since 1970.
    pub fn get(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bytes(text: &[u8]) -> Option<Millis> {
        (text.len() == MILLIS_DIGITS).then(|| number(text))?.map(Millis)
    }
}

/// Only digits, few enough that no overflow is possible.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |sum, digit| match digit {
        b'0'..=b'9' => Some(sum * 10 + u64::from(digit - b'0')),
        _ => None,
    })
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.ascii()).unwrap_or_default())
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:013}", self.0)
    }
}

impl FromStr for Date {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Date, TimeError> {
        Date::from_bytes(text.as_bytes()).ok_or(TimeError::DATE)
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(str::from_utf8(&self.ascii()).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Date, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Date;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(TimeError::DATE.expected)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Date, E> {
                text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl From<Date> for Value {
    fn from(day: Date) -> Value {
        Value::S(day.to_string())
    }
}

impl FromStr for Millis {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Millis, TimeError> {
        Millis::from_bytes(text.as_bytes()).ok_or(TimeError::MILLIS)
    }
}

/// Whether it is a moment in UTC: `2026-01-14T10:30:00Z`, with or without a fraction of a second.
pub(crate) fn is_utc_time(text: &[u8]) -> bool {
    let Some((date, [b'T', h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..])) =
        text.split_at_checked(10)
    else {
        return false;
    };
    let below = |digits: &[u8], limit| number(digits).is_some_and(|value| value < limit);
    let fraction = match rest {
        [b'Z'] => true,
        [b'.', digits @ .., b'Z'] => {
            (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    };
    Date::from_bytes(date).is_some()
        && below(&[*h1, *h2], 24)
        && below(&[*m1, *m2], 60)
        && below(&[*s1, *s2], 60)
        && fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_days_of_the_calendar_in_one_form_are_dates() {
        for right in ["1970-01-01", "2024-02-29", "2000-02-29", "9999-12-31"] {
            assert_eq!(right.parse::<Date>().unwrap().to_string(), right);
        }
        let wrong = [
            "1969-12-31",
            "2025-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-01-00",
            "2026-04-31",
            "2026-1-14",
            "26-01-14",
            "2026-01-14T",
            "2026/01/14",
            "+026-01-14",
            "",
        ];
        for wrong in wrong {
            assert!(wrong.parse::<Date>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_moment_lies_in_its_utc_day() {
        let day = |ms| Date::from_epoch_ms(ms).unwrap().to_string();
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_400_000), "2000-02-29");
        assert_eq!(day(1_768_348_799_999), "2026-01-13");
        assert_eq!(day(1_768_348_800_000), "2026-01-14");
        assert_eq!(day(253_402_300_799_999), "9999-12-31");
        assert!(Date::from_epoch_ms(253_402_300_800_000).is_err());
        assert!(Date::from_epoch_ms(u64::MAX).is_err());
    }

    #[test]
    fn every_day_has_its_number_and_its_text_and_both_lead_back() {
        let mut before = String::new();
        for days in 0..=2_932_896 {
            let day = Date::from_epoch_days(days).unwrap();
            assert_eq!(day.epoch_days(), days);
            let text = day.to_string();
            assert!(before < text, "{before} before {text}");
            assert_eq!(text.parse(), Ok(day));
            before = text;
        }
        assert_eq!(before, "9999-12-31");
        assert!(Date::from_epoch_days(2_932_897).is_err());
        assert!(Date::from_epoch_days(u64::MAX).is_err());
    }

    #[test]
    fn days_are_added_across_months_and_end_at_the_ends_of_time() {
        let day = |text: &str| text.parse::<Date>().unwrap();
        assert_eq!(day("2024-02-28").plus_days(2), day("2024-03-01"));
        assert_eq!(day("2026-01-01").plus_days(-1), day("2025-12-31"));
        assert_eq!(day("2026-03-01").days_since(day("2026-02-27")), 2);
        assert_eq!(day("2026-02-27").days_since(day("2026-03-01")), -2);
        assert_eq!(day("1970-01-02").plus_days(-5), day("1970-01-01"));
        assert_eq!(day("9999-12-30").plus_days(i64::MAX), day("9999-12-31"));
    }

    #[test]
    fn a_day_is_text_in_json() {
        let day: Date = "2026-01-14".parse().unwrap();
        assert_eq!(serde_json::to_string(&day).unwrap(), "\"2026-01-14\"");
        assert_eq!(serde_json::from_str::<Date>("\"2026-01-14\"").unwrap(), day);
        let problem = serde_json::from_str::<Date>("\"2026-02-30\"").unwrap_err().to_string();
        assert!(problem.contains("a day such as 2026-01-14"), "{problem}");
    }

    #[test]
    fn moments_in_keys_sort_by_time_because_all_have_13_digits() {
        assert_eq!(Millis::new(7).unwrap().to_string(), "0000000000007");
        assert!(Millis::new(MILLIS_MAX).is_ok() && Millis::new(MILLIS_MAX + 1).is_err());
        assert!("1768348800000".parse::<Millis>().is_ok());
        assert!("768348800000".parse::<Millis>().is_err());
        assert!("176834880000x".parse::<Millis>().is_err());
    }

    #[test]
    fn a_moment_in_a_value_is_utc() {
        for right in ["2026-01-14T10:30:00Z", "2026-01-14T23:59:59.123456Z"] {
            assert!(is_utc_time(right.as_bytes()), "{right}");
        }
        for wrong in
            ["2026-01-14", "2026-01-14T24:00:00Z", "2026-01-14T10:30:00", "2026-01-14T10:30:00.Z"]
        {
            assert!(!is_utc_time(wrong.as_bytes()), "{wrong}");
        }
    }
}
