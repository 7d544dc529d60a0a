//! Reads `fields` and `value` of a pattern: which types its values may have.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::{Reader, did_you_mean, in_order};
use crate::field::{Choice, Field, FieldType};
use crate::pattern::ValueType;

/// The name that stands for all fields that have none of their own.
const OTHERS: &str = "*";

/// The declared fields, and what the others may hold. Where no field is declared, any may be there.
pub(super) fn read_fields<'t>(
    reader: &mut Reader<'t>,
    pattern: &DeTable<'t>,
    value_type: ValueType,
) -> (Vec<Field>, Option<FieldType>) {
    let Some(table) = reader.table(pattern, "fields") else {
        return (Vec::new(), Some(FieldType::Any));
    };
    if let Some(fields) = pattern.get("fields").filter(|_| !value_type.has_fields()) {
        let what = format!("a {value_type} has no fields");
        reader.problem(&fields.span(), what, "fields are of json, hash, stream and item");
    }
    let (mut fields, mut others) = (Vec::new(), None);
    for (key, value) in in_order(table) {
        let name = key.get_ref().as_ref();
        match read_field_type(reader, value, &format!("field `{name}`")) {
            Some((kind, _)) if name == OTHERS => others = Some(kind),
            Some((kind, optional)) => {
                fields.push(Field { name: name.to_owned(), kind, optional });
            }
            None => {}
        }
    }
    (fields, others)
}

pub(super) fn read_value<'t>(
    reader: &mut Reader<'t>,
    pattern: &DeTable<'t>,
    value_type: ValueType,
) -> Option<FieldType> {
    let value = pattern.get("value")?;
    if matches!(
        value_type,
        ValueType::Hash | ValueType::Stream | ValueType::Item | ValueType::Counter
    ) {
        let what = format!("the whole value of a {value_type} has no type of its own");
        reader.problem(&value.span(), what, "use `fields`, or leave it out");
    }
    read_field_type(reader, value, "`value`").map(|(kind, _)| kind)
}

/// A type, and whether `?` says that it may be missing.
fn read_field_type<'t>(
    reader: &mut Reader<'t>,
    value: &Spanned<DeValue<'t>>,
    what: &str,
) -> Option<(FieldType, bool)> {
    match value.get_ref() {
        DeValue::Array(_) => {
            let mut choices = Vec::new();
            for word in reader.as_texts(value, what) {
                match Choice::parse(word.value) {
                    Some(choice) => choices.push(choice),
                    None => {
                        let what = format!("`{}` is no text with a type in it", word.value);
                        reader.problem(
                            &word.span,
                            what,
                            "write it as in \"percentage:{int 0..100}\"",
                        );
                    }
                }
            }
            Some((FieldType::OneOf(choices), false))
        }
        DeValue::Table(table) => {
            reader.reject_unknown(table, what, &["type", "optional"]);
            let optional = reader.boolean(table, "optional").unwrap_or(false);
            let Some(inner) = table.get("type") else {
                reader.problem(&value.span(), format!("{what} has no `type`"), FieldType::FORMS);
                return None;
            };
            let (kind, question) = read_field_type(reader, inner, what)?;
            Some((kind, question || optional))
        }
        _ => {
            let text = reader.as_text(value, what)?;
            let (name, optional) = match text.value.strip_suffix('?') {
                Some(name) => (name, true),
                None => (text.value, false),
            };
            let kind = FieldType::parse(name);
            if kind.is_none() {
                let first = name.split(' ').next().unwrap_or_default();
                let near = did_you_mean(first, FieldType::NAMES);
                let help = match near.starts_with("did") && !FieldType::NAMES.contains(&first) {
                    true => near,
                    false => FieldType::FORMS.to_owned(),
                };
                reader.problem(&text.span, format!("`{}` is no type", text.value), help);
            }
            kind.map(|kind| (kind, optional))
        }
    }
}
