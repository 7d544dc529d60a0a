//! Reads the parts of a pattern that describe the key: segments, table, partition and tenant.

use toml::de::DeTable;

use super::Shared;
use super::declaration::Declaration;
use super::reader::{Reader, Text, did_you_mean};
use crate::pattern::{Pattern, Store};
use crate::placeholder::{Kind, Placeholder};
use crate::segment::{self, Segment};

pub(super) fn read_segments<'t>(
    reader: &mut Reader<'t>,
    shared: &Shared,
    declaration: &Declaration<'_, 't>,
) -> Option<Vec<Segment>> {
    let Declaration { of, at, table, .. } = declaration;
    let help = "write pattern = \"student:{student_id}:profile\"";
    let text = reader.required(table, at, of, "pattern", help)?;
    parse_segments(reader, shared, &text)
}

fn parse_segments(
    reader: &mut Reader<'_>,
    shared: &Shared,
    text: &Text<'_>,
) -> Option<Vec<Segment>> {
    let mut broken = false;
    let parsed = segment::parse(text.value, |name| {
        if shared.broken_placeholders.iter().any(|it| it == name) {
            broken = true;
            return Ok(Placeholder { name: name.to_owned(), kind: Kind::Id, except: Vec::new() });
        }
        let found = shared.placeholders.iter().find(|placeholder| placeholder.name == name);
        found.cloned().ok_or_else(|| {
            let known: Vec<&str> = shared.placeholders.iter().map(|it| it.name.as_str()).collect();
            let near = did_you_mean(name, known);
            match near.starts_with("did") {
                true => near,
                false => format!("declare it: {name} = \"id\" under [placeholders]"),
            }
        })
    });
    match parsed {
        Ok(segments) => (!broken).then_some(segments),
        Err(errors) => {
            for error in errors {
                let span = reader.within(text, &error.span);
                reader.problem(&span, error.what, error.help);
            }
            None
        }
    }
}

pub(super) fn read_table<'t>(
    reader: &mut Reader<'t>,
    shared: &Shared,
    declaration: &Declaration<'_, 't>,
) -> Option<Store> {
    let Declaration { of, at, table, .. } = declaration;
    let named = reader.text(table, "table");
    let text = match (&named, &shared.table) {
        (Some(named), _) => named.clone(),
        (None, Some(table)) => Text { value: table, span: at.clone() },
        (None, None) => {
            let help = "write table = \"state\" here, or once at the top of the file";
            reader.problem(at, format!("{of} is in no table"), help);
            return None;
        }
    };
    let segments = parse_segments(reader, shared, &text)?;
    match <[Segment; 1]>::try_from(segments) {
        Ok([name]) => Some(Store::Table(name)),
        Err(_) => {
            let what = format!("`{}` cannot be a table's name", text.value);
            reader.problem(&text.span, what, "a table's name has no `:`");
            None
        }
    }
}

/// How many segments the partition has.
pub(super) fn read_partition<'t>(
    reader: &mut Reader<'t>,
    declaration: &Declaration<'_, 't>,
    segments: &[Segment],
) -> Option<usize> {
    let Declaration { of, at, table, .. } = declaration;
    let help = "write the first segments of the pattern, which all keys of one partition share";
    let text = reader.required(table, at, of, "partition", help)?;
    let starts: Vec<String> = (1..=segments.len())
        .map(|count| Pattern::text_of(segments.get(..count).unwrap_or_default()))
        .collect();
    let found = starts.iter().position(|start| start == text.value);
    if found.is_none() {
        let what = format!("`{}` is not how the pattern begins", text.value);
        let choices: Vec<String> = starts.iter().map(|start| format!("`{start}`")).collect();
        reader.problem(&text.span, what, format!("write {}", choices.join(" or ")));
    }
    found.map(|at| at + 1)
}

/// The segment that names the tenant.
pub(super) fn read_tenant<'t>(
    reader: &mut Reader<'t>,
    table: &DeTable<'t>,
    segments: &[Segment],
) -> Option<usize> {
    let text = reader.text(table, "tenant")?;
    let slots: Vec<(usize, &str)> = (segments.iter().enumerate())
        .filter_map(|(at, segment)| Some((at, segment.slot()?.placeholder.name.as_str())))
        .collect();
    let Some((at, _)) = slots.iter().find(|(_, name)| *name == text.value) else {
        let what = format!("the pattern has no placeholder `{}`", text.value);
        let names: Vec<&str> = slots.iter().map(|(_, name)| *name).collect();
        reader.problem(&text.span, what, did_you_mean(text.value, names));
        return None;
    };
    if slots.first().is_some_and(|(first, _)| first != at) {
        let help = "so that all keys of a tenant begin alike";
        reader.problem(&text.span, "the tenant must be the first placeholder", help);
    }
    Some(*at)
}
