//! Parses and shows the values of parameters.

use crate::args::parse_integer;
use crate::server::config::table::Kind;
use crate::server::notify;

/// A value, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Number(i64),
    Text(String),
}

/// Reads a value, or says what is wrong with it.
pub(super) fn parse(kind: Kind, given: &[u8]) -> Result<Value, String> {
    let text = || String::from_utf8_lossy(given).into_owned();
    Ok(match kind {
        Kind::Bool => match &*given.to_ascii_lowercase() {
            b"yes" => Value::Number(1),
            b"no" => Value::Number(0),
            _ => return Err("argument must be 'yes' or 'no'".to_owned()),
        },
        Kind::Number(least, most) => {
            let Some(number) = parse_integer(given) else {
                return Err("argument couldn't be parsed into an integer".to_owned());
            };
            Value::Number(within(number, least, most)?)
        }
        Kind::Memory(least, most) => {
            let Some(bytes) = bytes(given) else {
                return Err("argument must be a memory value".to_owned());
            };
            Value::Number(within(bytes, least, most)?)
        }
        Kind::MemoryOrPercent => match given.strip_suffix(b"%") {
            Some(percent) => match parse_integer(percent) {
                Some(percent @ 0..=100) => Value::Number(-percent),
                Some(101..) => {
                    return Err("percentage argument must be less or equal to 100".to_owned());
                }
                _ => return Err("argument must be a memory or percent value".to_owned()),
            },
            None => match bytes(given) {
                Some(bytes) => Value::Number(bytes),
                None => return Err("argument must be a memory or percent value".to_owned()),
            },
        },
        Kind::Choice(names) => {
            let place = names.iter().position(|name| crate::args::is(given, name));
            let Some(place) = place else {
                let names = names.join(", ");
                return Err(format!("argument(s) must be one of the following: {names}"));
            };
            Value::Number(place as i64)
        }
        Kind::Text => Value::Text(text()),
        Kind::Save => Value::Text(parse_save(&text())?),
        Kind::OutputLimits => Value::Text(text()),
        Kind::Events => match notify::parse(given) {
            Some(mask) => Value::Number(mask.into()),
            None => return Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned()),
        },
        Kind::Percentiles => {
            for word in text().split_whitespace() {
                match word.parse::<f64>() {
                    Ok(0.0..=100.0) => {}
                    _ => {
                        return Err("latency-tracking-info-percentiles must be between 0.0 and \
                                     100.0 and the number of percentiles must be between 1 and 100"
                            .to_owned());
                    }
                }
            }
            Value::Text(text())
        }
    })
}

/// A value as CONFIG GET shows it.
pub(super) fn show(kind: Kind, value: &Value) -> String {
    match (kind, value) {
        (_, Value::Text(text)) => text.clone(),
        (Kind::Bool, Value::Number(number)) => if *number == 0 { "no" } else { "yes" }.to_owned(),
        (Kind::Choice(names), Value::Number(place)) => {
            let place = usize::try_from(*place).unwrap_or_default();
            names.get(place).copied().unwrap_or_default().to_owned()
        }
        (Kind::Events, Value::Number(mask)) => notify::show(u32::try_from(*mask).unwrap_or(0)),
        (Kind::MemoryOrPercent, Value::Number(number @ ..0)) => format!("{}%", -number),
        (_, Value::Number(number)) => number.to_string(),
    }
}

fn within(number: i64, least: i64, most: i64) -> Result<i64, String> {
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(format!("argument must be between {least} and {most} inclusive"))
}

/// A number of bytes: `100`, `10mb`, `1G`.
pub(crate) fn bytes(given: &[u8]) -> Option<i64> {
    let digits = given.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(given.len());
    let (number, unit) = given.split_at_checked(digits)?;
    let unit: i64 = match &*unit.to_ascii_lowercase() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    std::str::from_utf8(number).ok()?.parse::<i64>().ok()?.checked_mul(unit)
}

/// Pairs of seconds and changes; nothing is also right.
fn parse_save(text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_right = words.len().is_multiple_of(2)
        && words.chunks(2).all(|pair| match pair {
            [seconds, changes] => {
                seconds.parse::<i64>().is_ok_and(|seconds| seconds >= 1)
                    && changes.parse::<i64>().is_ok_and(|changes| changes >= 0)
            }
            _ => false,
        });
    if is_right { Ok(words.join(" ")) } else { Err("Invalid save parameters".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_memory_are_understood() {
        for (text, number) in
            [("10", 10), ("1k", 1000), ("1kb", 1024), ("10m", 10_000_000), ("2GB", 2 << 30)]
        {
            assert_eq!(bytes(text.as_bytes()), Some(number), "{text}");
        }
        for text in ["", "m", "-1", "1x", "1.5g", "99999999999gb"] {
            assert_eq!(bytes(text.as_bytes()), None, "{text}");
        }
    }
}
