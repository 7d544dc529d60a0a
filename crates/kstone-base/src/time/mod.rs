//! Dates, moments and time zones.
//!
//! | type | what it is |
//! |---|---|
//! | [`Moment`] | a millisecond in UTC; most of the platform counts with it |
//! | [`Date`] | a day of the calendar: of UTC, or of a learner's time zone |
//! | [`Zone`] | a time zone: says in which day a moment lies for somebody |
//! | [`Timestamp`] | a moment to the second in one fixed form, for keys whose text sorts by time |

mod moment;
mod timestamp;
mod zone;

use std::time::Duration;

pub use kstone_keyspace::Date;
pub use moment::Moment;
pub use timestamp::Timestamp;
pub use zone::{UnknownZone, Zone};

/// An invalid date or moment: the text has another form, or the number is beyond the last year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be of the form {form}, from 1970 to {last_year}")]
pub struct TimeError {
    /// An example of the right form.
    pub form: &'static str,
    /// The last year that is allowed.
    pub last_year: u16,
}

/// A duration in milliseconds, or as many as there can be.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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

/// Seconds since 1970 of a moment of the form `2025-01-15T10:30:00`.
fn civil_seconds(text: &str) -> Option<u64> {
    let [year, month, day, hour, minute, second] = digits(text, "dddd-dd-ddTdd:dd:dd")?;
    let day = Date::new(year as u16, month as u8, day as u8).ok()?;
    let exists = hour < 24 && minute < 60 && second < 60;
    exists.then(|| day.epoch_ms() / 1000 + (hour * 60 + minute) * 60 + second)
}
