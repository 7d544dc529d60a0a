//! Parses and prints the dates of signatures: `20150830T123600Z`, and HTTP's `Date` header.

use std::borrow::Cow;

/// Seconds since 1970 of a date in ISO-8601 basic format.
pub(super) fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() != 16 || bytes[8] != b'T' || bytes[15] != b'Z' {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = hour < 24 && minute < 60 && second <= 60;
    (is_date && is_time)
        .then(|| days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// The date in ISO-8601 basic format.
pub(super) fn print(seconds: i64) -> String {
    let (days, time) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date_of(days);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Converts the `Date` header, `Sun, 30 Aug 2015 12:36:00 GMT`, on which a signature without
/// `X-Amz-Date` relies, to ISO-8601 basic format. Text in another form is returned as it is.
pub(super) fn to_basic(text: &str) -> Cow<'_, str> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let read = || {
        let (_, rest) = text.split_once(", ")?;
        let mut words = rest.split(' ');
        let (day, month, year) = (words.next()?, words.next()?, words.next()?);
        let time = words.next()?.replace(':', "");
        let month = MONTHS.find(month).filter(|at| month.len() == 3 && at % 3 == 0)? / 3 + 1;
        Some(format!("{year}{month:02}{day:0>2}T{time}Z"))
    };
    read().map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The days from 1970-01-01 to a date of the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years are counted from March, so that a leap day is the last of its year.
    let year = if month > 2 { year } else { year - 1 };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date that is this many days after 1970-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_printed_back() {
        for (text, seconds) in [
            ("19700101T000000Z", 0),
            ("20150830T123600Z", 1_440_938_160),
            ("20000229T235959Z", 951_868_799),
            ("20261116T004440Z", 1_794_789_880),
        ] {
            assert_eq!(parse(text), Some(seconds), "{text}");
            assert_eq!(print(seconds), text);
        }
    }

    #[test]
    fn every_day_of_four_centuries_survives() {
        for days in 0..146_097 {
            let (year, month, day) = date_of(days);
            assert_eq!(days_since_1970(year, month, day), days);
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in
            ["", "201", "20150830", "20151330T123600Z", "2015083aT123600Z", "20150830T12360éZ"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_date_of_http_is_taken_too() {
        assert_eq!(to_basic("Sun, 30 Aug 2015 12:36:00 GMT"), "20150830T123600Z");
        assert_eq!(to_basic("20150830T123600Z"), "20150830T123600Z");
        assert_eq!(to_basic("whenever"), "whenever");
    }
}
