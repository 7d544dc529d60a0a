//! Time to live: Dapr's `ttlInSeconds`, and the second of expiry that an item stores.

use std::collections::HashMap;

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use kstone_keyspace::RequestedTtl;

use crate::error::{Error, Result};

/// The name of the setting in a request's metadata.
const TTL: &str = "ttlInSeconds";

/// The time to live that a request's metadata asks for. As in Dapr's own stores, `-1` and `0` mean
/// that the key never expires.
pub(crate) fn requested(metadata: &HashMap<String, String>) -> Result<RequestedTtl> {
    // Not all clients write it in the same case.
    let given = metadata.iter().find(|(name, _)| name.eq_ignore_ascii_case(TTL));
    let Some((_, text)) = given else { return Ok(RequestedTtl::Unsaid) };
    match text.trim().parse::<i64>() {
        Ok(-1 | 0) => Ok(RequestedTtl::Never),
        Ok(seconds @ 1..=2_147_483_647) => Ok(RequestedTtl::Ms(seconds.unsigned_abs() * 1000)),
        _ => Err(Error::malformed(format!(
            "incorrect value for metadata 'ttlInSeconds': `{text}` is not -1 or a number of seconds"
        ))),
    }
}

/// The second of expiry for a time to live: rounded, so at most half a second early or late. Rounding
/// up would be too late for Dapr's conformance suite, which expects two seconds to be over within
/// three; rounding down could leave nothing of a short time.
pub(crate) fn second_of_expiry(now_ms: u64, ttl_ms: u64) -> u64 {
    now_ms.saturating_add(ttl_ms).saturating_add(500) / 1000
}

/// A second since 1970 as `2026-01-14T09:00:00Z`.
pub(crate) fn rfc3339(second: u64) -> String {
    let since = i64::try_from(second).map(SignedDuration::from_secs);
    let moment =
        since.ok().and_then(|since| date(1970, 1, 1).at(0, 0, 0, 0).checked_add(since).ok());
    format!("{:.0}Z", moment.unwrap_or(DateTime::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> Result<RequestedTtl> {
        requested(&HashMap::from([(TTL.to_owned(), text.to_owned())]))
    }

    #[test]
    fn a_life_is_a_number_of_seconds_or_without_end() {
        assert_eq!(ask("120").unwrap(), RequestedTtl::Ms(120_000));
        assert_eq!(ask("-1").unwrap(), RequestedTtl::Never);
        assert_eq!(ask("0").unwrap(), RequestedTtl::Never);
        assert_eq!(requested(&HashMap::new()).unwrap(), RequestedTtl::Unsaid);
        for wrong in ["", "-2", "1.5", "ten", "1s", "2147483648", "99999999999999999999"] {
            assert!(matches!(ask(wrong), Err(Error::Malformed(_))), "{wrong}");
        }
    }

    #[test]
    fn a_life_ends_with_the_nearest_second() {
        assert_eq!(second_of_expiry(5_000, 2_000), 7);
        assert_eq!(second_of_expiry(5_499, 2_000), 7);
        assert_eq!(second_of_expiry(5_500, 2_000), 8);
        assert_eq!(second_of_expiry(5_999, 2_000), 8);
    }

    #[test]
    fn seconds_are_written_as_dates_leap_days_included() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_704_067_199, "2023-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ];
        for (second, text) in cases {
            assert_eq!(rfc3339(second), text);
        }
    }
}
