//! Times and durations as text: `90s`, `7d`, `2024-01-15T10:00:00Z`.

use anyhow::{Result, anyhow, bail};

const DAY_MS: i64 = 86_400_000;

/// Milliseconds of a duration: a whole number and `ms`, `s`, `m`, `h` or `d`.
pub fn duration_ms(text: &str) -> Result<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => DAY_MS as u64,
        _ => bail!("`{text}` is no duration: give a number and a unit, as in 60s, 5m, 2h or 7d"),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| anyhow!("`{text}` is no duration: give a number and a unit, as in 60s"))?;
    number.checked_mul(unit_ms).ok_or_else(|| anyhow!("{text} is too long"))
}

/// Milliseconds since 1970 of a moment: `2024-01-15T10:00:00Z` (also with milliseconds), or
/// seconds since 1970.
pub fn moment_ms(text: &str) -> Result<u64> {
    if let Ok(seconds) = text.parse::<u64>() {
        if seconds >= 100_000_000_000 {
            bail!(
                "{text} looks like milliseconds: give seconds since 1970, or 2024-01-15T10:00:00Z"
            );
        }
        return Ok(seconds * 1000);
    }
    rfc3339_ms(text).ok_or_else(|| {
        anyhow!("`{text}` is no moment: write it as 2024-01-15T10:00:00Z, or as seconds since 1970")
    })
}

/// A moment as `2024-01-15T10:00:00.000Z`.
pub fn moment(ms: u64) -> String {
    let (days, in_day) = (ms / DAY_MS as u64, ms % DAY_MS as u64);
    let (year, month, day) = civil_from_days(days as i64);
    let (seconds, millis) = (in_day / 1000, in_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

fn rfc3339_ms(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix(['Z', 'z'])?.split_once(['T', 't'])?;
    let number = |text: &str, len: usize| {
        (text.len() == len && text.bytes().all(|b| b.is_ascii_digit()))
            .then(|| text.parse::<i64>().ok())?
    };
    let mut date = date.splitn(3, '-');
    let year = number(date.next()?, 4)?;
    let (month, day) = (number(date.next()?, 2)?, number(date.next()?, 2)?);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.splitn(3, ':');
    let (hour, minute, second) =
        (number(time.next()?, 2)?, number(time.next()?, 2)?, number(time.next()?, 2)?);
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let millis = number(format!("{fraction:0<3}").get(..3)?, 3)?;
    let days = days_from_civil(year, month, day);
    let is_real = civil_from_days(days) == (year, month, day);
    if !is_real || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    u64::try_from(days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + millis).ok()
}

/// Days since 1970 of a date of the Gregorian calendar. Years are counted from March, so that the
/// leap day is the last of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 719 468 days lie between 0000-03-01 and 1970-01-01.
    year * 365 + leap_days + (month_from_march * 153 + 2) / 5 + day - 1 - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // Off by a day at most, at the turn of a year; the exact count puts it right.
    let mut year = (days * 400 + 719_468 * 400).div_euclid(146_097);
    while days_from_civil(year, 3, 1) > days {
        year -= 1;
    }
    while days_from_civil(year + 1, 3, 1) <= days {
        year += 1;
    }
    let day_of_year = days - days_from_civil(year, 3, 1);
    let month_from_march = (day_of_year * 5 + 2) / 153;
    let day = day_of_year - (month_from_march * 153 + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration_ms("250ms").unwrap(), 250);
        assert_eq!(duration_ms("60s").unwrap(), 60_000);
        assert_eq!(duration_ms("7d").unwrap(), 7 * 86_400_000);
        for bad in
            ["", "60", "s", "-1s", "1w", "1.5h", "99999999999999999999d", "18446744073709551615d"]
        {
            assert!(duration_ms(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn moments_turn_into_text_and_back() {
        assert_eq!(moment(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(moment(1_705_312_800_123), "2024-01-15T10:00:00.123Z");
        assert_eq!(moment_ms("2024-01-15T10:00:00Z").unwrap(), 1_705_312_800_000);
        assert_eq!(moment_ms("1705312800").unwrap(), 1_705_312_800_000);
        assert_eq!(moment_ms("2024-01-15T10:00:00.5Z").unwrap(), 1_705_312_800_500);
        assert_eq!(moment_ms("2024-01-15T10:00:00.123456Z").unwrap(), 1_705_312_800_123);
        for day in 0..80_000u64 {
            let ms = day * 86_400_000 + 12_345;
            assert_eq!(moment_ms(&moment(ms)).unwrap(), ms);
        }
    }

    #[test]
    fn moments_that_do_not_exist_are_refused() {
        for bad in [
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-15",
            "2024-01-15T24:00:00Z",
            "2024-01-15T10:00:00",
            "2024-01-15T10:00:00.Z",
            "2024-01-15T10:00:00.xZ",
            "soon",
            "1969-12-31T23:59:59Z",
            "1705312800000",
            "2024-00-01T00:00:00Z",
        ] {
            assert!(moment_ms(bad).is_err(), "{bad}");
        }
        assert!(moment_ms("2024-02-29T00:00:00Z").is_ok());
    }
}
