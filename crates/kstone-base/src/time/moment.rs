//! [`Moment`]: a UTC timestamp with milliseconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kstone_keyspace::Millis;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Date, TimeError, civil_seconds, millis};

/// A moment in UTC to the millisecond, from 1970 to 2286, which is as far as keys can say.
///
/// As text and in JSON it is RFC 3339: `2026-01-14T10:30:00Z`, with three digits of a fraction only
/// when there is one: `2026-01-14T10:30:00.250Z`. Other offsets and finer fractions are read too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "openapi",
    schema(value_type = String, format = DateTime, example = "2026-01-14T10:30:00Z")
)]
pub struct Moment(u64);

const FORM: TimeError = TimeError { form: "2026-01-14T10:30:00Z", last_year: 2286 };

impl Moment {
    /// The moment this many milliseconds after 1970 began, as a
    /// [`Clock`](kstone_core::env::Clock) tells them; the last moment there is, if that is later.
    pub fn from_epoch_ms(ms: u64) -> Moment {
        Moment(Millis::clamped(ms).get())
    }

    /// The first moment of a day in UTC.
    pub fn start_of(day: Date) -> Moment {
        Moment::from_epoch_ms(day.epoch_ms())
    }

    /// Milliseconds since 1970 began.
    pub fn epoch_ms(self) -> u64 {
        self.0
    }

    /// Its form in keys.
    pub fn millis(self) -> Millis {
        Millis::clamped(self.0)
    }

    /// The day in UTC.
    pub fn date(self) -> Date {
        Date::default().plus_days((self.0 / 86_400_000) as i64)
    }

    /// Formats without `core::fmt`, which is slower: states and events are full of moments.
    fn text(self, space: &mut [u8; 24]) -> &str {
        let (of_day, ms) = (self.0 / 1000 % 86_400, self.0 % 1000);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        *space = *b"0000-00-00T00:00:00.000Z";
        let digits = [
            (11, hour / 10),
            (12, hour),
            (14, minute / 10),
            (15, minute),
            (17, second / 10),
            (18, second),
            (20, ms / 100),
            (21, ms / 10),
            (22, ms),
        ];
        space[..10].copy_from_slice(&self.date().ascii());
        for (place, number) in digits {
            space[place] = b'0' + (number % 10) as u8;
        }
        let length = match ms {
            0 => {
                space[19] = b'Z';
                20
            }
            _ => 24,
        };
        str::from_utf8(&space[..length]).unwrap_or_default()
    }

    /// The moment so much later, or the last there is.
    #[must_use]
    pub fn plus(self, time: Duration) -> Moment {
        Moment::from_epoch_ms(self.0.saturating_add(millis(time)))
    }

    /// The moment so much earlier, or the first there is.
    #[must_use]
    pub fn minus(self, time: Duration) -> Moment {
        Moment(self.0.saturating_sub(millis(time)))
    }

    /// The time from `earlier` to this moment; nothing if it is not earlier.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl From<Millis> for Moment {
    fn from(ms: Millis) -> Moment {
        Moment(ms.get())
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(&mut [0; 24]))
    }
}

impl FromStr for Moment {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Moment, TimeError> {
        parse(text).ok_or(FORM)
    }
}

fn parse(text: &str) -> Option<Moment> {
    let (civil, rest) = text.split_at_checked(19)?;
    let mut ms = civil_seconds(civil)? * 1000;
    let mut rest = rest;
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction.find(|c: char| !c.is_ascii_digit())?;
        let (digits, offset) = fraction.split_at_checked(end)?;
        if !(1..=9).contains(&digits.len()) {
            return None;
        }
        for (digit, worth) in digits.bytes().zip([100, 10, 1]) {
            ms += u64::from(digit - b'0') * worth;
        }
        rest = offset;
    }
    let offset_ms = match rest {
        "Z" => 0,
        other => {
            let (sign, other) = match other.split_at_checked(1)? {
                ("+", other) => (-1, other),
                ("-", other) => (1, other),
                _ => return None,
            };
            let [hours, minutes] = super::digits(other, "dd:dd")?;
            let exists = hours < 24 && minutes < 60;
            exists.then_some(sign * (hours * 60 + minutes) as i64 * 60_000)?
        }
    };
    let ms = ms.checked_add_signed(offset_ms)?;
    Millis::new(ms).ok().map(Moment::from)
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text(&mut [0; 24]))
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Moment;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a moment such as 2026-01-14T10:30:00Z, from 1970 to 2286")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Moment, E> {
                parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_text_of_a_moment_leads_back_to_it(ms in 0..=9_999_999_999_999_u64) {
            let moment = Moment::from_epoch_ms(ms);
            prop_assert_eq!(moment.to_string().parse(), Ok(moment));
            let json = serde_json::to_string(&moment).unwrap();
            prop_assert_eq!(serde_json::from_str::<Moment>(&json).unwrap(), moment);
        }
    }

    #[test]
    fn a_fraction_is_written_only_when_there_is_one() {
        assert_eq!(Moment::from_epoch_ms(1_768_386_600_000).to_string(), "2026-01-14T10:30:00Z");
        assert_eq!(
            Moment::from_epoch_ms(1_768_386_600_007).to_string(),
            "2026-01-14T10:30:00.007Z"
        );
    }

    #[test]
    fn other_offsets_and_finer_fractions_are_read() {
        for (text, same) in [
            ("2026-01-14T11:30:00+01:00", "2026-01-14T10:30:00Z"),
            ("2026-01-14T05:00:00-05:30", "2026-01-14T10:30:00Z"),
            ("2026-01-14T10:30:00.5Z", "2026-01-14T10:30:00.500Z"),
            ("2026-01-14T10:30:00.123456789Z", "2026-01-14T10:30:00.123Z"),
        ] {
            assert_eq!(text.parse::<Moment>().unwrap().to_string(), same, "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "2026-01-14",
            "2026-01-14T10:30:00",
            "2026-01-14T10:30:00.Z",
            "2026-01-14T10:30:00.5",
            "2026-01-14T10:30:00+0100",
            "2026-01-14T10:30:00+24:00",
            "2026-02-30T10:30:00Z",
            "2287-01-01T00:00:00Z",
            "1970-01-01T00:00:00+01:00",
            "2026-01-14T10:30:0äZ",
            "",
        ] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }

    #[test]
    fn moments_beyond_the_last_are_the_last() {
        let last = Moment::from_epoch_ms(u64::MAX);
        assert_eq!(last.epoch_ms(), 9_999_999_999_999);
        assert_eq!(last.plus(Duration::MAX), last);
        assert_eq!(last.minus(Duration::MAX), Moment::default());
    }
}
