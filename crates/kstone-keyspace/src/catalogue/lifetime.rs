//! Reads `ttl` and `limits` of a pattern.

use toml::de::{DeTable, DeValue};

use super::reader::{Reader, Text};
use crate::pattern::{Limits, OverflowAction, ValueType};
use crate::ttl::{Span, Ttl, parse_duration};

const TTL_FORM: &str = "write \"90 days\", \"none\", or { time = \"1 hour\", rule = \"sliding\" }";

/// Enough for twelve segments of common length; half of what DynamoDB allows for a partition key.
const KEY_BYTES: u64 = 1024;
/// What DynamoDB allows for an item.
const ITEM_BYTES: u64 = 400 * 1024;

pub(super) fn read_ttl<'t>(reader: &mut Reader<'t>, pattern: &DeTable<'t>) -> Option<Ttl> {
    let value = pattern.get("ttl")?;
    let table = match value.get_ref() {
        DeValue::Table(table) => table,
        DeValue::String(text) if text == "none" => return Some(Ttl::None),
        DeValue::String(text) => {
            let text = Text { value: text, span: value.span() };
            return seconds(reader, &text).map(|seconds| Ttl::Fixed(Span::seconds(seconds)));
        }
        _ => {
            reader.problem(&value.span(), "`ttl` must be a time in words", TTL_FORM);
            return None;
        }
    };
    reader.reject_unknown(table, "`ttl`", &["time", "rule", "min", "max"]);
    let time = reader.required(table, &value.span(), "`ttl`", "time", "write time = \"1 hour\"")?;
    let seconds_usual = seconds(reader, &time)?;
    let mut span = Span::seconds(seconds_usual);
    if let Some(least) = reader.text(table, "min") {
        span.seconds_min = seconds(reader, &least)?;
        if span.seconds_min > seconds_usual {
            reader.problem(&least.span, "`min` is more than `time`", "it is at most that");
        }
    }
    if let Some(most) = reader.text(table, "max") {
        span.seconds_max = match most.value {
            "none" => None,
            _ => Some(seconds(reader, &most)?),
        };
        if span.seconds_max.is_some_and(|most| most < seconds_usual) {
            reader.problem(&most.span, "`max` is less than `time`", "it is at least that");
        }
    }
    match reader.text(table, "rule") {
        None => Some(Ttl::Fixed(span)),
        Some(rule) => match rule.value {
            "fixed" => Some(Ttl::Fixed(span)),
            "sliding" => Some(Ttl::Sliding(span)),
            other => {
                let help = "write \"fixed\" (from the key's making) or \"sliding\" (from its \
                    last write)";
                reader.problem(&rule.span, format!("`{other}` is no rule"), help);
                None
            }
        },
    }
}

fn seconds(reader: &mut Reader<'_>, text: &Text<'_>) -> Option<u64> {
    let seconds = parse_duration(text.value);
    if seconds.is_none() {
        let help = "write a number and seconds, minutes, hours or days, as in \"90 days\"";
        reader.problem(&text.span, format!("`{}` is no time", text.value), help);
    }
    seconds
}

pub(super) fn read_limits<'t>(
    reader: &mut Reader<'t>,
    pattern: &DeTable<'t>,
    value_type: ValueType,
    is_item: bool,
) -> Limits {
    let mut limits = Limits {
        key_bytes: KEY_BYTES,
        value_bytes: is_item.then_some(ITEM_BYTES),
        members: None,
        over: OverflowAction::Refuse,
    };
    let Some(table) = reader.table(pattern, "limits") else { return limits };
    reader.reject_unknown(table, "`limits`", &["key_bytes", "value_bytes", "members", "over"]);
    if let Some(bytes) = reader.whole_number(table, "key_bytes") {
        limits.key_bytes = bytes;
    }
    if let Some(bytes) = reader.whole_number(table, "value_bytes") {
        limits.value_bytes = Some(bytes);
    }
    limits.members = reader.whole_number(table, "members");
    if let Some(members) = table.get("members").filter(|_| !value_type.has_members()) {
        let what = format!("a {value_type} has no members to limit");
        reader.problem(&members.span(), what, "leave `members` out, or use `value_bytes`");
    }
    if let Some(over) = reader.text(table, "over") {
        match over.value {
            "refuse" => {}
            "trim" if limits.members.is_some() => limits.over = OverflowAction::Trim,
            "trim" => {
                reader.problem(&over.span, "`over` without `members`", "say how many may be there");
            }
            other => {
                let help = "write \"refuse\", or \"trim\" to let the oldest go";
                reader.problem(&over.span, format!("`{other}` is no rule"), help);
            }
        }
    }
    limits
}
