//! Days and moments as ISO 8601 text of one fixed form, from 1970 to 9999. They are parts of keys:
//! only because there is one form for each moment is the order of the text the order in time.

use std::fmt;
use std::str::FromStr;

const DAY_SECONDS: u64 = 86_400;
/// 9999-12-31.
const DAY_MAX: u64 = 2_932_896;

/// A day in UTC: `2025-01-15`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    days: u64,
}

/// A moment in UTC to the second: `2025-01-15T10:30:00Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: u64,
}

/// The text is no day or moment of the form that keys need, or the number is beyond the year 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be of the form {form}, from 1970 to 9999")]
pub struct TimeError {
    /// An example of the right form.
    pub form: &'static str,
}

impl TimeError {
    const DATE: TimeError = TimeError { form: "2025-01-15" };
    const TIMESTAMP: TimeError = TimeError { form: "2025-01-15T10:30:00Z" };
}

impl Date {
    /// The first moment of the day.
    pub fn start(self) -> Timestamp {
        Timestamp { seconds: self.days * DAY_SECONDS }
    }

    /// The last second of the day.
    pub fn end(self) -> Timestamp {
        Timestamp { seconds: self.days * DAY_SECONDS + DAY_SECONDS - 1 }
    }

    fn from_civil(year: u64, month: u64, day: u64) -> Option<Date> {
        if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
            return None;
        }
        let days = days_from_civil(year, month, day);
        (civil_from_days(days) == (year, month, day)).then_some(Date { days })
    }
}

impl Timestamp {
    /// The moment this many seconds after 1970 began.
    pub fn from_epoch_seconds(seconds: u64) -> Result<Timestamp, TimeError> {
        match seconds / DAY_SECONDS <= DAY_MAX {
            true => Ok(Timestamp { seconds }),
            false => Err(TimeError::TIMESTAMP),
        }
    }

    /// The second in which this millisecond of a [`Clock`](kstone_core::env::Clock) lies.
    pub fn from_epoch_ms(ms: u64) -> Result<Timestamp, TimeError> {
        Timestamp::from_epoch_seconds(ms / 1000)
    }

    /// Seconds since 1970 began.
    pub fn epoch_seconds(self) -> u64 {
        self.seconds
    }

    /// The day.
    pub fn date(self) -> Date {
        Date { days: self.seconds / DAY_SECONDS }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.days);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_day = self.seconds % DAY_SECONDS;
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{}T{hour:02}:{minute:02}:{second:02}Z", self.date())
    }
}

impl FromStr for Date {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Date, TimeError> {
        let [year, month, day] = digits(text, "dddd-dd-dd").ok_or(TimeError::DATE)?;
        Date::from_civil(year, month, day).ok_or(TimeError::DATE)
    }
}

impl FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Timestamp, TimeError> {
        let [year, month, day, hour, minute, second] =
            digits(text, "dddd-dd-ddTdd:dd:ddZ").ok_or(TimeError::TIMESTAMP)?;
        let date = Date::from_civil(year, month, day).ok_or(TimeError::TIMESTAMP)?;
        if hour > 23 || minute > 59 || second > 59 {
            return Err(TimeError::TIMESTAMP);
        }
        let seconds = (hour * 60 + minute) * 60 + second;
        Ok(Timestamp { seconds: date.start().seconds + seconds })
    }
}

/// The numbers in a text of this form, in which `d` is a digit and the rest stands for itself.
fn digits<const N: usize>(text: &str, form: &str) -> Option<[u64; N]> {
    if text.len() != form.len() {
        return None;
    }
    let (mut numbers, mut at, mut in_number) = ([0; N], 0, false);
    for (byte, expected) in text.bytes().zip(form.bytes()) {
        if expected == b'd' {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            let number = numbers.get_mut(at)?;
            *number = *number * 10 + digit;
            in_number = true;
        } else if byte != expected {
            return None;
        } else if in_number {
            (at, in_number) = (at + 1, false);
        }
    }
    Some(numbers)
}

/// Days since 1970. Years are counted from March, so that the leap day is the last of its year.
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let leap_days = year / 4 - year / 100 + year / 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day;
    // The day before 1970-01-01, counted the same way, is 719 468.
    (year * 365 + leap_days + day_of_year).saturating_sub(719_469)
}

/// The inverse of [`days_from_civil`], by cycles of 400 years.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (cycle, of_cycle) = (days / 146_097, days % 146_097);
    let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (cycle * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_has_one_text_and_the_texts_sort_by_time() {
        let mut before = String::new();
        for days in 0..=DAY_MAX {
            let text = Date { days }.to_string();
            assert!(before < text, "{before} before {text}");
            assert_eq!(text.parse(), Ok(Date { days }));
            before = text;
        }
        assert_eq!(before, "9999-12-31");
    }

    #[test]
    fn known_moments_have_their_known_seconds() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2025-01-15T10:30:00Z", 1_736_937_000),
        ] {
            let moment: Timestamp = text.parse().unwrap();
            assert_eq!(moment.epoch_seconds(), seconds);
            assert_eq!(moment.to_string(), text);
            assert_eq!(Timestamp::from_epoch_ms(seconds * 1000 + 999), Ok(moment));
        }
        let day: Date = "2025-01-15".parse().unwrap();
        assert_eq!(day.start().to_string(), "2025-01-15T00:00:00Z");
        assert_eq!(day.end().to_string(), "2025-01-15T23:59:59Z");
        assert_eq!(day.end().date(), day);
    }

    #[test]
    fn what_would_sort_out_of_place_is_refused() {
        for text in [
            "2025-01-15T10:30:00.000Z",
            "2025-01-15T10:30:00+00:00",
            "2025-01-15t10:30:00z",
            "2025-1-15T10:30:00Z",
            "2025-02-29T10:30:00Z",
            "2025-00-10T10:30:00Z",
            "2025-01-00T10:30:00Z",
            "2025-01-15T24:00:00Z",
            "1969-12-31T23:59:59Z",
            "2025-01-15",
            "",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(TimeError::TIMESTAMP), "{text}");
        }
        for text in ["2025-01-15T10:30:00Z", "2025-13-01", "2025-04-31", "20250115", ""] {
            assert_eq!(text.parse::<Date>(), Err(TimeError::DATE), "{text}");
        }
        assert!(Timestamp::from_epoch_seconds(253_402_300_799).is_ok());
        assert!(Timestamp::from_epoch_seconds(253_402_300_800).is_err());
    }
}
