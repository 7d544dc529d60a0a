//! Reads `subject` of a pattern: whose data its keys hold.

use toml::de::DeValue;

use super::declaration::Declaration;
use super::reader::{Reader, did_you_mean};
use crate::pattern::{Pattern, SubjectSource, ValueType};
use crate::segment::Segment;

const FORMS: &str = "whose data is it? write \"none\", a placeholder's name, \
    { field = \"user_id\" }, { members = true } or { through = \"another_pattern\" }";

/// Says beside `field` that a value goes with any of the persons whom it names.
const DELETED: &str = "deleted_with_any";

/// Whether a value goes with any of the persons whom it names.
pub(super) fn read_is_deleted_with_any<'t>(
    reader: &mut Reader<'t>,
    declaration: &Declaration<'_, 't>,
) -> bool {
    let subject = declaration.table.get("subject").map(|value| value.get_ref());
    let Some(DeValue::Table(choice)) = subject else { return false };
    let Some(said) = choice.get(DELETED) else { return false };
    if !choice.contains_key("field") {
        let what = format!("`{DELETED}` is about a field that names several persons");
        reader.problem(&said.span(), what, "write it beside `field`");
    }
    reader.boolean(choice, DELETED).unwrap_or_default()
}

pub(super) fn read_subject<'t>(
    reader: &mut Reader<'t>,
    declaration: &Declaration<'_, 't>,
    segments: Option<&[Segment]>,
    value_type: Option<ValueType>,
) -> Option<SubjectSource> {
    let Declaration { of, at, table, .. } = declaration;
    let Some(value) = table.get("subject") else {
        reader.problem(at, format!("{of} has no `subject`"), FORMS);
        return None;
    };
    let DeValue::Table(choice) = value.get_ref() else {
        let text = reader.as_text(value, "`subject`")?;
        if text.value == "none" {
            return Some(SubjectSource::Nobody);
        }
        let names: Vec<&str> = (segments?.iter().filter_map(Segment::slot))
            .map(|slot| slot.placeholder.name.as_str())
            .collect();
        if !names.contains(&text.value) {
            let what = format!("the pattern has no placeholder `{}`", text.value);
            reader.problem(&text.span, what, did_you_mean(text.value, names));
        }
        return Some(SubjectSource::Placeholder(text.value.to_owned()));
    };
    reader.reject_unknown(choice, "`subject`", &["field", "members", "through", DELETED]);
    if choice.keys().filter(|key| key.get_ref() != DELETED).count() != 1 {
        reader.problem(&value.span(), "`subject` must say one thing", FORMS);
        return None;
    }
    if let Some(field) = reader.text(choice, "field") {
        if value_type.is_some_and(|it| !it.has_fields()) {
            reader.problem(&field.span, "there are no fields to look into", FORMS);
        }
        return Some(SubjectSource::Field(field.value.to_owned()));
    }
    if let Some(through) = reader.text(choice, "through") {
        return Some(SubjectSource::Through(through.value.to_owned()));
    }
    let members = reader.boolean(choice, "members")?;
    if value_type == Some(ValueType::Stream) {
        let hint = "name the field of an entry that does: { field = \"user_id\" }";
        reader.problem(&value.span(), "an entry of a stream names no person by itself", hint);
    } else if !members || value_type.is_some_and(|it| !it.has_members()) {
        reader.problem(&value.span(), "there are no members that could be persons", FORMS);
    }
    Some(SubjectSource::Members)
}

/// Checks the subjects that are found through a key of another pattern.
pub(super) fn check_subjects<'t>(
    reader: &mut Reader<'t>,
    patterns: &[Pattern],
    declarations: &[Declaration<'_, 't>],
) {
    for pattern in patterns {
        let SubjectSource::Through(other) = &pattern.subject else { continue };
        let declared = declarations.iter().find(|it| it.name == pattern.name);
        let subject = declared.and_then(|it| it.table.get("subject"));
        let span = subject.map(|value| value.span()).unwrap_or_default();
        if !declarations.iter().any(|it| it.name == other) {
            let what = format!("there is no pattern `{other}`");
            let names: Vec<&str> = declarations.iter().map(|it| it.name).collect();
            reader.problem(&span, what, did_you_mean(other, names));
        }
        let Some(target) = patterns.iter().find(|it| it.name == *other) else { continue };
        if let SubjectSource::Through(_) | SubjectSource::Nobody = target.subject {
            let what = format!("`{other}` does not say itself whose data it is");
            reader.problem(&span, what, "name the pattern that does");
        }
        for missing in target.placeholders().filter(|it| pattern.segment_of(&it.name).is_none()) {
            let what = format!("`{{{}}}` of `{target}` is not known here", missing.name);
            reader.problem(&span, what, "the other key must follow from this one");
        }
    }
}
