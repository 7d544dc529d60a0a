//! [`Timestamp`]: a UTC timestamp in seconds, for keys. Each moment has one textual form, so keys
//! sort by time.

use std::fmt;
use std::str::FromStr;

use super::{Date, TimeError, civil_seconds};

const DAY_SECONDS: u64 = 86_400;
/// The last second of the year 9999.
const SECONDS_MAX: u64 = 253_402_300_799;

/// A moment in UTC to the second: `2025-01-15T10:30:00Z`, from 1970 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: u64,
}

const FORM: TimeError = TimeError { form: "2025-01-15T10:30:00Z", last_year: 9999 };

impl Timestamp {
    /// The moment this many seconds after 1970 began.
    pub fn from_epoch_seconds(seconds: u64) -> Result<Timestamp, TimeError> {
        match seconds <= SECONDS_MAX {
            true => Ok(Timestamp { seconds }),
            false => Err(FORM),
        }
    }

    /// The second in which this millisecond of a [`Clock`](kstone_core::env::Clock) lies.
    pub fn from_epoch_ms(ms: u64) -> Result<Timestamp, TimeError> {
        Timestamp::from_epoch_seconds(ms / 1000)
    }

    /// The first moment of a day.
    pub fn start_of(day: Date) -> Timestamp {
        Timestamp { seconds: day.epoch_days() * DAY_SECONDS }
    }

    /// The last second of a day.
    pub fn end_of(day: Date) -> Timestamp {
        Timestamp { seconds: day.epoch_days() * DAY_SECONDS + DAY_SECONDS - 1 }
    }

    /// Seconds since 1970 began.
    pub fn epoch_seconds(self) -> u64 {
        self.seconds
    }

    /// The day.
    pub fn date(self) -> Date {
        Date::default().plus_days((self.seconds / DAY_SECONDS) as i64)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_day = self.seconds % DAY_SECONDS;
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{}T{hour:02}:{minute:02}:{second:02}Z", self.date())
    }
}

impl FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Timestamp, TimeError> {
        let seconds = text.strip_suffix('Z').and_then(civil_seconds).ok_or(FORM)?;
        Ok(Timestamp { seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(Timestamp::start_of(day).to_string(), "2025-01-15T00:00:00Z");
        assert_eq!(Timestamp::end_of(day).to_string(), "2025-01-15T23:59:59Z");
        assert_eq!(Timestamp::end_of(day).date(), day);
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
            assert_eq!(text.parse::<Timestamp>(), Err(FORM), "{text}");
        }
        for text in ["2025-01-15T10:30:00Z", "2025-13-01", "2025-04-31", "20250115", ""] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
        assert!(Timestamp::from_epoch_seconds(253_402_300_799).is_ok());
        assert!(Timestamp::from_epoch_seconds(253_402_300_800).is_err());
    }
}
