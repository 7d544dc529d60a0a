//! [`Zone`]: a time zone. The time zone database is built in, so a moment lies in the same day on
//! every machine.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Date, Moment};

/// A time zone by its IANA name, such as `Europe/Berlin`. It says in which day a moment lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    zone: TimeZone,
}

/// There is no time zone of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be the name of a time zone such as Europe/Berlin, not `{name}`")]
pub struct UnknownZone {
    /// The name that was asked for.
    pub name: String,
}

impl Zone {
    /// The zone of those of whom none is known.
    pub const UTC: Zone = Zone { zone: TimeZone::UTC };

    /// The zone of this name.
    pub fn named(name: &str) -> Result<Zone, UnknownZone> {
        let unknown = || UnknownZone { name: name.to_owned() };
        if name == "UTC" {
            return Ok(Zone::UTC);
        }
        let zone = TimeZone::get(name).map_err(|_| unknown())?;
        match zone.is_unknown() {
            true => Err(unknown()),
            false => Ok(Zone { zone }),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The day in which a moment lies here.
    pub fn date(&self, moment: Moment) -> Date {
        if *self == Zone::UTC {
            return moment.date();
        }
        let ms = i64::try_from(moment.epoch_ms()).unwrap_or(i64::MAX);
        let local = match Timestamp::from_millisecond(ms) {
            Ok(moment) => self.zone.to_datetime(moment).date(),
            Err(_) => return moment.date(),
        };
        // A year before 1970 is possible only in the first hours of 1970, west of Greenwich.
        let day = Date::new(local.year() as u16, local.month() as u8, local.day() as u8);
        day.unwrap_or_default()
    }
}

impl FromStr for Zone {
    type Err = UnknownZone;

    fn from_str(name: &str) -> Result<Zone, UnknownZone> {
        Zone::named(name)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(zone: &str, moment: &str) -> String {
        Zone::named(zone).unwrap().date(moment.parse().unwrap()).to_string()
    }

    #[test]
    fn the_same_moment_lies_in_different_days() {
        let moment = "2026-01-14T23:30:00Z";
        assert_eq!(day("UTC", moment), "2026-01-14");
        assert_eq!(day("Europe/Berlin", moment), "2026-01-15");
        assert_eq!(day("America/New_York", moment), "2026-01-14");
        assert_eq!(day("Pacific/Kiritimati", moment), "2026-01-15");
        assert_eq!(day("Asia/Kathmandu", moment), "2026-01-15");
    }

    #[test]
    fn days_of_23_and_of_25_hours_begin_and_end_at_local_midnight() {
        // Clocks go forward on 29 March 2026 and back on 25 October.
        assert_eq!(day("Europe/Berlin", "2026-03-28T22:59:59.999Z"), "2026-03-28");
        assert_eq!(day("Europe/Berlin", "2026-03-28T23:00:00Z"), "2026-03-29");
        assert_eq!(day("Europe/Berlin", "2026-03-29T21:59:59.999Z"), "2026-03-29");
        assert_eq!(day("Europe/Berlin", "2026-03-29T22:00:00Z"), "2026-03-30");
        assert_eq!(day("Europe/Berlin", "2026-10-24T22:00:00Z"), "2026-10-25");
        assert_eq!(day("Europe/Berlin", "2026-10-25T22:59:59.999Z"), "2026-10-25");
        assert_eq!(day("Europe/Berlin", "2026-10-25T23:00:00Z"), "2026-10-26");
    }

    #[test]
    fn a_name_is_known_in_any_case_and_given_back_in_its_own() {
        assert_eq!(Zone::named("europe/berlin").unwrap().name(), "Europe/Berlin");
        assert_eq!(Zone::named("UTC").unwrap().name(), "UTC");
    }

    #[test]
    fn what_is_no_zone_is_refused_by_name() {
        for name in ["Europe/Atlantis", "", "Etc/Unknown", "../etc/passwd"] {
            let problem = Zone::named(name).unwrap_err().to_string();
            assert!(problem.contains(&format!("`{name}`")), "{problem}");
        }
    }

    #[test]
    fn the_first_and_the_last_moment_lie_in_a_day_everywhere() {
        for zone in ["UTC", "Pacific/Honolulu", "Pacific/Kiritimati"] {
            assert_eq!(day(zone, "1970-01-01T00:00:00Z"), "1970-01-01");
            let last = Zone::named(zone).unwrap().date(Moment::from_epoch_ms(u64::MAX));
            assert_eq!(last.parts().0, 2286);
        }
    }
}
