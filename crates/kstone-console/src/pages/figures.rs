//! Formats numbers, sizes and times for people.

use kstone_keyspace::Date;
use maud::{Markup, html};

/// What stands between a number and its unit: a space at which no line ends.
const TIGHT: char = '\u{a0}';

/// `12345678` as `12,345,678`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 key`, `2 keys`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A size with three digits: `1.21 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    let unit_name = UNITS.get(unit).copied().unwrap_or_default();
    if unit == 0 {
        format!("{bytes}{TIGHT}B")
    } else {
        format!("{}{TIGHT}{unit_name}", digits(size))
    }
}

/// How long something took: `128 µs`, `1.05 ms`.
pub(crate) fn micros(us: u64) -> String {
    match us {
        0..1000 => format!("{us}{TIGHT}µs"),
        1000..1_000_000 => format!("{}{TIGHT}ms", digits(us as f64 / 1e3)),
        _ => format!("{}{TIGHT}s", digits(us as f64 / 1e6)),
    }
}

/// A rate: whole from ten on.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate >= 9.95 => count(rate.round() as u64),
        rate if rate > 0.0 => format!("{rate:.1}"),
        _ => "0".to_owned(),
    }
}

/// A share of 1: `86 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}{TIGHT}%", (share * 100.0).clamp(0.0, 100.0))
}

/// Three digits that mean something.
fn digits(number: f64) -> String {
    match number {
        n if n < 9.995 => format!("{n:.2}"),
        n if n < 99.95 => format!("{n:.1}"),
        n => format!("{n:.0}"),
    }
}

/// A moment, to the second, in UTC.
pub(crate) fn moment(ms: u64) -> Markup {
    let text = moment_text(ms);
    html! { time datetime=(text.replace(' ', "T") + "Z") { (text) " UTC" } }
}

/// `2026-01-14 10:30:00`, in UTC.
pub(crate) fn moment_text(ms: u64) -> String {
    let second = ms / 1000 % 86_400;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let date = Date::from_epoch_ms(ms).map_or_else(|_| "?".to_owned(), |date| date.to_string());
    format!("{date} {hour:02}:{minute:02}:{second:02}")
}

/// How long ago a moment was, with the moment itself as a tooltip.
pub(crate) fn ago(ms: u64, now_ms: u64) -> Markup {
    let text = moment_text(ms);
    let said = match now_ms.checked_sub(ms) {
        Some(past) if past < 5000 => "just now".to_owned(),
        Some(past) => format!("{} ago", span(past)),
        None => format!("in {}", span(ms.saturating_sub(now_ms))),
    };
    html! {
        time datetime=(text.replace(' ', "T") + "Z") title={ (text) " UTC" } { (said) }
    }
}

/// A length of time in its largest unit, whole.
pub(crate) fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..120 => format!("{seconds}{TIGHT}s"),
        120..7200 => format!("{}{TIGHT}min", seconds / 60),
        7200..172_800 => format!("{}{TIGHT}h", seconds / 3600),
        _ => format!("{}{TIGHT}days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With spaces of the usual kind.
    fn plain(text: &str) -> String {
        text.replace(TIGHT, " ")
    }

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "key", "keys"), "1 key");
        assert_eq!(counted(0, "key", "keys"), "0 keys");
        assert_eq!(
            [0, 1023, 1024, 1536, 10 << 30].map(|it| plain(&bytes(it))),
            ["0 B", "1023 B", "1.00 KiB", "1.50 KiB", "10.0 GiB"]
        );
        assert_eq!(plain(&bytes(u64::MAX)), "16384 PiB");
        assert_eq!(
            [999, 1000, 2_500_000].map(|it| plain(&micros(it))),
            ["999 µs", "1.00 ms", "2.50 s"]
        );
        assert_eq!([0.0, 0.25, 12.4].map(rate), ["0", "0.2", "12"]);
        assert_eq!(plain(&percent(0.862)), "86 %");
    }

    #[test]
    fn a_moment_says_how_long_ago_it_was_and_when() {
        let now = 1_768_386_600_000;
        assert_eq!(moment_text(now), "2026-01-14 10:30:00");
        let shown = plain(&ago(now - 3 * 60_000, now).into_string());
        assert!(
            shown.contains("3 min ago") && shown.contains("2026-01-14 10:27:00 UTC"),
            "{shown}"
        );
        assert!(ago(now, now).into_string().contains("just now"));
        assert!(plain(&ago(now + 86_400_000, now).into_string()).contains("in 24 h"));
    }
}
