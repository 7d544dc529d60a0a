//! Reads the `[pattern.…]` tables of a catalogue.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::fields::{read_fields, read_value};
use super::keys::{read_partition, read_segments, read_table, read_tenant};
use super::lifetime::{read_limits, read_ttl};
use super::reader::{Reader, Text, did_you_mean, in_order};
use super::subject::{check_subjects, read_is_deleted_with_any, read_subject};
use super::{NAME_FORM, Shared, is_name};
use crate::pattern::{Example, Pattern, Store, ValueType};
use crate::placeholder::Placeholder;

/// One `[pattern.name]` table.
pub(super) struct Declaration<'a, 't> {
    pub(super) name: &'a str,
    /// How problems call it.
    pub(super) of: String,
    /// Where its name stands.
    pub(super) at: Range<usize>,
    pub(super) table: &'a DeTable<'t>,
}

const KEYS: [&str; 16] = [
    "pattern",
    "partition",
    "store",
    "table",
    "type",
    "ttl",
    "subject",
    "tenant",
    "fields",
    "value",
    "limits",
    "description",
    "short_form_of",
    "written",
    "metric",
    "examples",
];
/// What a short form says for itself; everything else it takes from the long one.
const SHORT_KEYS: [&str; 7] =
    ["pattern", "partition", "description", "short_form_of", "written", "metric", "examples"];

pub(super) fn read_patterns<'t>(
    reader: &mut Reader<'t>,
    shared: &Shared,
    table: &DeTable<'t>,
) -> Vec<Pattern> {
    let mut declarations = Vec::new();
    for (key, value) in in_order(table) {
        let of = format!("pattern `{}`", key.get_ref());
        if let DeValue::Table(table) = value.get_ref() {
            declarations.push(Declaration { name: key.get_ref(), of, at: key.span(), table });
        } else {
            reader.mistyped::<()>(value, &of, "a table, as in [pattern.name]");
        }
    }
    let (short, long): (Vec<_>, Vec<_>) =
        declarations.iter().partition(|it| it.table.contains_key("short_form_of"));
    let mut patterns: Vec<Pattern> =
        long.iter().filter_map(|it| read_long(reader, shared, it)).collect();
    check_subjects(reader, &patterns, &declarations);
    for declaration in &short {
        patterns.extend(read_short(reader, shared, &patterns, &declarations, declaration));
    }
    patterns.sort_by_key(|pattern| (pattern.at.line, pattern.at.column));
    patterns
}

fn read_long<'t>(
    reader: &mut Reader<'t>,
    shared: &Shared,
    declaration: &Declaration<'_, 't>,
) -> Option<Pattern> {
    let before = reader.problems.len();
    let Declaration { name, of, at, table } = declaration;
    reader.reject_unknown(table, of, &KEYS);
    check_name(reader, declaration);
    let segments = read_segments(reader, shared, declaration);
    let is_item = read_is_item(reader, declaration);
    let value_type = read_value_type(reader, declaration, is_item);
    if !table.contains_key("ttl") {
        let help = "write ttl = \"none\" if its keys are to stay";
        reader.problem(at, format!("{of} has no `ttl`"), help);
    }
    let ttl = read_ttl(reader, table);
    let subject = read_subject(reader, declaration, segments.as_deref(), value_type);
    let is_deleted_with_any = read_is_deleted_with_any(reader, declaration);
    let store = match is_item {
        Some(true) => read_table(reader, shared, declaration),
        _ => Some(Store::Redis),
    };
    let partition_segments = match (is_item, &segments) {
        (Some(true), Some(segments)) => read_partition(reader, declaration, segments),
        (_, segments) => segments.as_ref().map(Vec::len),
    };
    let tenant = segments.as_ref().and_then(|segments| read_tenant(reader, table, segments));
    let (fields, other_fields) = match value_type {
        Some(value_type) => read_fields(reader, table, value_type),
        None => (Vec::new(), None),
    };
    let value = value_type.and_then(|value_type| read_value(reader, table, value_type));
    let limits = value_type.map(|it| read_limits(reader, table, it, is_item == Some(true)));
    let description = reader.required(table, at, of, "description", "say what it is for");
    let written = reader.boolean(table, "written").unwrap_or(true);
    let metric = read_metric(reader, declaration);
    let examples = read_examples(reader, table);
    if reader.problems.len() > before {
        return None;
    }
    Some(Pattern {
        application: shared.application.clone(),
        name: (*name).to_owned(),
        segments: segments?,
        partition_segments: partition_segments?,
        store: store?,
        value_type: value_type?,
        ttl: ttl?,
        fields,
        other_fields,
        value,
        tenant,
        subject: subject?,
        is_deleted_with_any,
        limits: limits?,
        description: description?.value.to_owned(),
        short_form_of: None,
        written,
        metric,
        examples,
        at: reader.position(at),
    })
}

fn read_short<'t>(
    reader: &mut Reader<'t>,
    shared: &Shared,
    patterns: &[Pattern],
    declarations: &[Declaration<'_, 't>],
    declaration: &Declaration<'_, 't>,
) -> Option<Pattern> {
    let before = reader.problems.len();
    let Declaration { name, of, at, table } = declaration;
    check_name(reader, declaration);
    let stands_for = reader.text(table, "short_form_of")?;
    for (key, _) in in_order(table) {
        let said = key.get_ref().as_ref();
        if SHORT_KEYS.contains(&said) {
            continue;
        }
        let (what, help) = match KEYS.contains(&said) {
            true => (
                format!("a short form takes its `{said}` from `{}`", stands_for.value),
                "leave it out".to_owned(),
            ),
            false => (format!("unknown key `{said}` in {of}"), did_you_mean(said, SHORT_KEYS)),
        };
        reader.problem(&key.span(), what, help);
    }
    let segments = read_segments(reader, shared, declaration);
    let long = find_long(reader, patterns, declarations, &stands_for)?;
    let segments = segments?;
    let has = |wanted: &Placeholder| {
        segments.iter().any(|it| it.slot().is_some_and(|slot| slot.placeholder == *wanted))
    };
    for missing in long.placeholders().filter(|placeholder| !has(placeholder)) {
        let pattern = reader.text(table, "pattern")?;
        let what = format!("`{{{}}}` of `{long}` is missing", missing.name);
        reader.problem(&pattern.span, what, "a short form says all that the long one says");
    }
    let partition_segments = match long.store {
        Store::Table(_) => read_partition(reader, declaration, &segments),
        Store::Redis => Some(segments.len()),
    };
    let tenant = long.tenant.and_then(|tenant| {
        let name = &long.segments.get(tenant)?.slot()?.placeholder.name;
        segments.iter().position(|it| it.slot().is_some_and(|slot| slot.placeholder.name == *name))
    });
    let description = match reader.text(table, "description") {
        Some(description) => description.value.to_owned(),
        None => format!("Short for `{long}`"),
    };
    let written = reader.boolean(table, "written").unwrap_or(false);
    let metric = read_metric(reader, declaration);
    let examples = read_examples(reader, table);
    if reader.problems.len() > before {
        return None;
    }
    Some(Pattern {
        name: (*name).to_owned(),
        segments,
        partition_segments: partition_segments?,
        tenant,
        description,
        short_form_of: Some(long.name.clone()),
        written,
        metric,
        examples,
        at: reader.position(at),
        ..long.clone()
    })
}

fn find_long<'p>(
    reader: &mut Reader<'_>,
    patterns: &'p [Pattern],
    declarations: &[Declaration<'_, '_>],
    stands_for: &Text<'_>,
) -> Option<&'p Pattern> {
    let declared = declarations.iter().find(|it| it.name == stands_for.value);
    if declared.is_some_and(|it| it.table.contains_key("short_form_of")) {
        let what = format!("`{}` is a short form itself", stands_for.value);
        reader.problem(&stands_for.span, what, "name the long form");
        return None;
    }
    if declared.is_none() {
        let what = format!("there is no pattern `{}`", stands_for.value);
        let names: Vec<&str> = declarations.iter().map(|it| it.name).collect();
        reader.problem(&stands_for.span, what, did_you_mean(stands_for.value, names));
    }
    // A long form with problems of its own is not here, and has been complained about.
    patterns.iter().find(|pattern| pattern.name == stands_for.value)
}

fn check_name(reader: &mut Reader<'_>, declaration: &Declaration<'_, '_>) {
    if !is_name(declaration.name) {
        let what = format!("`{}` cannot be a pattern's name", declaration.name);
        reader.problem(&declaration.at, what, NAME_FORM);
    }
}

fn read_is_item<'t>(reader: &mut Reader<'t>, declaration: &Declaration<'_, 't>) -> Option<bool> {
    const HELP: &str = "write \"item\" or \"redis\"";
    let Declaration { of, at, table, .. } = declaration;
    let store = reader.required(table, at, of, "store", HELP)?;
    match store.value {
        "item" => Some(true),
        "redis" => {
            for key in ["partition", "table"] {
                if let Some(value) = table.get(key) {
                    let what = format!("a key of Redis has no `{key}`");
                    reader.problem(&value.span(), what, "leave it out, or write store = \"item\"");
                }
            }
            Some(false)
        }
        other => {
            reader.problem(&store.span, format!("`{other}` is no store"), HELP);
            None
        }
    }
}

fn read_value_type<'t>(
    reader: &mut Reader<'t>,
    declaration: &Declaration<'_, 't>,
    is_item: Option<bool>,
) -> Option<ValueType> {
    let Declaration { of, at, table, .. } = declaration;
    let names = ValueType::ALL.map(ValueType::name);
    let help = format!("write one of {}", names.join(", "));
    let text = reader.required(table, at, of, "type", &help)?;
    let Some(value_type) = ValueType::ALL.into_iter().find(|it| it.name() == text.value) else {
        let what = format!("`{}` is no type", text.value);
        reader.problem(&text.span, what, did_you_mean(text.value, names));
        return None;
    };
    use ValueType::{Counter, Item, Json, String};
    match (is_item, value_type) {
        (Some(true), Json | String | Counter | Item) => {}
        (Some(true), other) => {
            let help = "write json, string, counter or item, or store = \"redis\"";
            reader.problem(&text.span, format!("an item cannot be a {other}"), help);
        }
        (Some(false), Item) => {
            reader.problem(&text.span, "Redis has no items", "write hash, or store = \"item\"");
        }
        (_, _) => {}
    }
    Some(value_type)
}

fn read_metric<'t>(reader: &mut Reader<'t>, declaration: &Declaration<'_, 't>) -> String {
    let Some(metric) = reader.text(declaration.table, "metric") else {
        return declaration.name.to_owned();
    };
    if !is_name(metric.value) {
        let what = format!("`{}` cannot be a metric's name", metric.value);
        reader.problem(&metric.span, what, NAME_FORM);
    }
    metric.value.to_owned()
}

fn read_examples<'t>(reader: &mut Reader<'t>, table: &DeTable<'t>) -> Vec<Example> {
    let texts = reader.texts(table, "examples");
    let example =
        |text: &Text<'_>| Example { key: text.value.to_owned(), at: reader.position(&text.span) };
    texts.iter().map(example).collect()
}
