//! Days and moments as they stand in keys: in one form each, whose order as bytes is their order in
//! time.

use std::fmt;
use std::str::FromStr;

/// A day of the calendar in a key: `2026-01-14`, from 1970 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// Milliseconds since 1970 in a key: always 13 digits, which last until the year 2286.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(u64);

/// How many digits [`Millis`] has in a key.
pub(crate) const MILLIS_DIGITS: usize = 13;
/// The last moment that [`Millis`] can say.
pub(crate) const MILLIS_MAX: u64 = 9_999_999_999_999;

/// It is no day, or no moment, that a key can say.
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

impl Date {
    /// This day, if there is one.
    pub fn new(year: u16, month: u8, day: u8) -> Result<Date, TimeError> {
        let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        let days = match month {
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => 31,
        };
        let exists =
            (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=days).contains(&day);
        match exists {
            true => Ok(Date { year, month, day }),
            false => Err(TimeError::DATE),
        }
    }

    /// The UTC day in which this millisecond since 1970 lies.
    pub fn from_epoch_ms(ms: u64) -> Result<Date, TimeError> {
        const DAY_MS: u64 = 86_400_000;
        // Counted in years that begin in March, so that the day that some years lack is the last.
        let days = ms / DAY_MS + 719_468;
        let era = days / 146_097;
        let day_of_era = days % 146_097;
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let (month, later) = match march_month {
            0..=9 => (march_month + 3, 0),
            _ => (march_month - 9, 1),
        };
        let year = u16::try_from(era * 400 + year_of_era + later).map_err(|_| TimeError::DATE)?;
        Date::new(year, month as u8, day as u8)
    }

    /// Year, month and day.
    pub fn parts(self) -> (u16, u8, u8) {
        (self.year, self.month, self.day)
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
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
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
