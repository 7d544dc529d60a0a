//! Times and durations as text: `90s`, `7d`, `2024-01-15T10:00:00Z`.

use anyhow::{Result, anyhow, bail};
use jiff::SignedDuration;
use jiff::civil::{DateTime, date};

/// The moments that can be named are those of the calendar up to the end of 9999, which is a little
/// more than `jiff::Timestamp` has.
const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// Milliseconds of a duration: a whole number and `ms`, `s`, `m`, `h` or `d`.
pub fn duration_ms(text: &str) -> Result<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
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
    let since = i64::try_from(ms).map(SignedDuration::from_millis);
    let moment = since.ok().and_then(|since| EPOCH.checked_add(since).ok());
    format!("{:.3}Z", moment.unwrap_or(DateTime::MAX))
}

fn rfc3339_ms(text: &str) -> Option<u64> {
    let moment: DateTime = text.strip_suffix(['Z', 'z'])?.parse().ok()?;
    u64::try_from(moment.duration_since(EPOCH).as_millis()).ok()
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
        let last = 253_402_300_799_000;
        assert_eq!(moment_ms("9999-12-31T23:59:59Z").unwrap(), last);
        assert_eq!(moment(last), "9999-12-31T23:59:59.000Z");
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
