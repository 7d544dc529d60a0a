//! Times to live: how long keys of a pattern live, and what a write may ask for instead.

use std::fmt;

pub use kstone::policy::{Effect, Expiry, RequestedTtl};

/// How long keys of a pattern live, and what a write may ask for instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// Until they are deleted.
    None,
    /// So long from the write that made the key; a write that changes it does not renew it.
    Fixed(Span),
    /// So long from the last write.
    Sliding(Span),
}

/// A time to live with its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// What a write that names none gets.
    pub seconds: u64,
    /// The least that a write may ask for.
    pub seconds_min: u64,
    /// The most that a write may ask for; `None` when there is no bound, and then it may also ask
    /// to stay for good.
    pub seconds_max: Option<u64>,
}

impl Span {
    /// A TTL of this many seconds; writes may ask for less.
    pub const fn seconds(seconds: u64) -> Span {
        Span { seconds, seconds_min: 1, seconds_max: Some(seconds) }
    }
}

impl Ttl {
    /// What a write that names none gets; `None` when it stays for good.
    pub const fn seconds(&self) -> Option<u64> {
        match self {
            Ttl::None => None,
            Ttl::Fixed(span) | Ttl::Sliding(span) => Some(span.seconds),
        }
    }

    /// The expiry that a write gets; the error says what a write may ask for.
    #[inline]
    pub(crate) fn answer(&self, asked: RequestedTtl, effect: Effect) -> Result<Expiry, &Span> {
        let (Ttl::Fixed(span) | Ttl::Sliding(span)) = self else {
            return Ok(match asked {
                RequestedTtl::Ms(ms) => Expiry::InMs(ms),
                RequestedTtl::Keep => Expiry::Keep,
                RequestedTtl::Unsaid if effect == Effect::Changes => Expiry::Keep,
                RequestedTtl::Unsaid | RequestedTtl::Never => Expiry::Never,
            });
        };
        let usual = Expiry::InMs(span.seconds.saturating_mul(1000));
        match (asked, effect) {
            (RequestedTtl::Keep | RequestedTtl::Unsaid, Effect::Makes) => Ok(usual),
            (RequestedTtl::Keep, Effect::Changes) => Ok(Expiry::Keep),
            (RequestedTtl::Unsaid, Effect::Changes) => match self {
                Ttl::Sliding(_) => Ok(usual),
                _ => Ok(Expiry::Keep),
            },
            (RequestedTtl::Ms(ms), _) => {
                let most = span.seconds_max.map_or(u64::MAX, |most| most.saturating_mul(1000));
                // A second is the least that most doors can say; a lock may well ask for less.
                let least = match span.seconds_min {
                    1 => 0,
                    least => least.saturating_mul(1000),
                };
                match (least..=most).contains(&ms) {
                    true => Ok(Expiry::InMs(ms)),
                    false => Err(span),
                }
            }
            (RequestedTtl::Never, _) => match span.seconds_max {
                None => Ok(Expiry::Never),
                Some(_) => Err(span),
            },
        }
    }
}

impl Span {
    /// What a write may ask for, in words.
    pub(crate) fn bounds(&self) -> String {
        match (self.seconds_min, self.seconds_max) {
            (1, Some(most)) => format!("at most {most} s"),
            (least, Some(most)) => format!("{least} to {most} s"),
            (least, None) => format!("at least {least} s"),
        }
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (span, rule) = match self {
            Ttl::None => return f.write_str("none"),
            Ttl::Fixed(span) => (span, ""),
            Ttl::Sliding(span) => (span, " since the last write"),
        };
        f.write_str(&duration(span.seconds))?;
        if span.seconds_max != Some(span.seconds) || span.seconds_min != 1 {
            match span.seconds_max {
                Some(most) => {
                    write!(f, " ({} to {})", duration(span.seconds_min), duration(most))?;
                }
                None => write!(f, " (or more than {})", duration(span.seconds_min))?,
            }
        }
        f.write_str(rule)
    }
}

const UNITS: [(&str, u64); 4] = [("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)];

/// A duration such as `90 days`, in the largest unit without remainder.
pub(crate) fn duration(seconds: u64) -> String {
    let fits = |unit: &&(&str, u64)| seconds >= unit.1 && seconds.is_multiple_of(unit.1);
    let (name, length) = UNITS.iter().find(fits).unwrap_or(&UNITS[3]);
    let count = seconds / length;
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {name}{plural}")
}

/// Reads `90 days`, `1 hour`, `30 seconds`.
pub(crate) fn parse_duration(text: &str) -> Option<u64> {
    let (count, unit) = text.trim().split_once(' ')?;
    let count: u64 = count.parse().ok()?;
    let unit = unit.trim_start();
    let unit = unit.strip_suffix('s').unwrap_or(unit);
    let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
    count.checked_mul(*length).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    #[test]
    fn durations_are_read_and_said_in_words() {
        let cases =
            [("90 days", 7_776_000), ("1 hour", 3600), ("30 seconds", 30), ("90 minutes", 5400)];
        for (text, seconds) in cases {
            assert_eq!(parse_duration(text), Some(seconds));
            assert_eq!(duration(seconds), text);
        }
        for wrong in [
            "90",
            "90d",
            "days",
            "-1 days",
            "0 days",
            "1 fortnight",
            "",
            "99999999999999999999 days",
        ] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_fixed_time_begins_when_the_key_is_made_and_a_sliding_one_with_each_write() {
        let (fixed, sliding) = (Ttl::Fixed(Span::seconds(3600)), Ttl::Sliding(Span::seconds(3600)));
        let unsaid = |ttl: Ttl, effect| ttl.answer(RequestedTtl::Unsaid, effect).unwrap();
        assert_eq!(unsaid(fixed, Effect::Makes), Expiry::InMs(HOUR_MS));
        assert_eq!(unsaid(fixed, Effect::Changes), Expiry::Keep);
        assert_eq!(unsaid(sliding, Effect::Makes), Expiry::InMs(HOUR_MS));
        assert_eq!(unsaid(sliding, Effect::Changes), Expiry::InMs(HOUR_MS));
        assert_eq!(unsaid(Ttl::None, Effect::Makes), Expiry::Never);
        assert_eq!(unsaid(Ttl::None, Effect::Changes), Expiry::Keep);
    }

    #[test]
    fn a_write_may_ask_for_less_but_not_for_more() {
        let ttl = Ttl::Fixed(Span::seconds(3600));
        let ask = |asked| ttl.answer(asked, Effect::Makes).map_err(Span::bounds);
        assert_eq!(ask(RequestedTtl::Ms(500)), Ok(Expiry::InMs(500)));
        assert_eq!(ask(RequestedTtl::Ms(HOUR_MS)), Ok(Expiry::InMs(HOUR_MS)));
        assert_eq!(ask(RequestedTtl::Ms(HOUR_MS + 1)), Err("at most 3600 s".to_owned()));
        assert_eq!(ask(RequestedTtl::Never), Err("at most 3600 s".to_owned()));
        assert_eq!(ask(RequestedTtl::Keep), Ok(Expiry::InMs(HOUR_MS)));
    }

    #[test]
    fn bounds_are_kept_where_a_pattern_names_them() {
        let block = Ttl::Fixed(Span { seconds: 900, seconds_min: 900, seconds_max: Some(86_400) });
        let ask = |ttl: Ttl, asked| ttl.answer(asked, Effect::Makes).map_err(Span::bounds);
        assert_eq!(ask(block, RequestedTtl::Ms(HOUR_MS)), Ok(Expiry::InMs(HOUR_MS)));
        assert_eq!(ask(block, RequestedTtl::Ms(899_999)), Err("900 to 86400 s".to_owned()));
        let task = Ttl::Fixed(Span { seconds: 300, seconds_min: 300, seconds_max: None });
        assert_eq!(ask(task, RequestedTtl::Never), Ok(Expiry::Never));
        assert_eq!(ask(task, RequestedTtl::Ms(1000)), Err("at least 300 s".to_owned()));
        assert_eq!(block.to_string(), "15 minutes (15 minutes to 1 day)");
        assert_eq!(task.to_string(), "5 minutes (or more than 5 minutes)");
    }

    #[test]
    fn a_key_that_stays_may_be_given_a_time_by_who_writes_it() {
        let ask = |asked| Ttl::None.answer(asked, Effect::Makes).unwrap();
        assert_eq!(ask(RequestedTtl::Ms(5)), Expiry::InMs(5));
        assert_eq!(ask(RequestedTtl::Never), Expiry::Never);
    }
}
