//! Reads TOML values with their positions: a value of the wrong type and an unknown key become
//! problems that point at line and column.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::problem::{Position, Problem, Source, nearest};

pub(super) struct Reader<'t> {
    source: Source<'t>,
    pub(super) problems: Vec<Problem>,
}

/// A string of the catalogue, with its position.
#[derive(Debug, Clone)]
pub(super) struct Text<'a> {
    pub(super) value: &'a str,
    pub(super) span: Range<usize>,
}

type Value<'t> = Spanned<DeValue<'t>>;
pub(super) type Entry<'a, 't> = (&'a Spanned<DeString<'t>>, &'a Value<'t>);

impl<'t> Reader<'t> {
    pub(super) fn new(file: &str, text: &'t str) -> Reader<'t> {
        Reader { source: Source::new(file, text), problems: Vec::new() }
    }

    /// The whole file. When it is not TOML there is nothing more to say than that.
    pub(super) fn document(&mut self) -> Option<Spanned<DeTable<'t>>> {
        let (table, errors) = DeTable::parse_recoverable(self.source.text());
        for error in &errors {
            let span = error.span().unwrap_or_default();
            self.problem(&span, error.message(), "this is not TOML");
        }
        errors.is_empty().then_some(table)
    }

    pub(super) fn problem(
        &mut self,
        span: &Range<usize>,
        what: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.problems.push(Problem::error(&self.source.position(span), what, help));
    }

    pub(super) fn position(&self, span: &Range<usize>) -> Position {
        self.source.position(span)
    }

    /// The place of some bytes of a text, where the text stands in the file as it is.
    pub(super) fn within(&self, text: &Text<'_>, part: &Range<usize>) -> Range<usize> {
        let start = text.span.start + 1;
        let literal = self.source.text().get(start..start + text.value.len()) == Some(text.value);
        match literal {
            true => start + part.start..start + part.end,
            false => text.span.clone(),
        }
    }

    /// Reports unknown keys of a table.
    pub(super) fn reject_unknown(&mut self, table: &DeTable<'t>, of: &str, known: &[&str]) {
        for (key, _) in in_order(table) {
            let name = key.get_ref();
            if known.contains(&name.as_ref()) {
                continue;
            }
            let help = did_you_mean(name, known.iter().copied());
            self.problem(&key.span(), format!("unknown key `{name}` in {of}"), help);
        }
    }

    /// A text, if the key is there.
    pub(super) fn text<'a>(&mut self, table: &'a DeTable<'t>, key: &str) -> Option<Text<'a>> {
        let value = table.get(key)?;
        self.as_text(value, &format!("`{key}`"))
    }

    pub(super) fn as_text<'a>(&mut self, value: &'a Value<'t>, what: &str) -> Option<Text<'a>> {
        match value.get_ref() {
            DeValue::String(text) => Some(Text { value: text, span: value.span() }),
            _ => self.mistyped(value, what, "text in quotes"),
        }
    }

    /// A text that must be there.
    pub(super) fn required<'a>(
        &mut self,
        table: &'a DeTable<'t>,
        at: &Range<usize>,
        of: &str,
        key: &str,
        help: &str,
    ) -> Option<Text<'a>> {
        if !table.contains_key(key) {
            self.problem(at, format!("{of} has no `{key}`"), help);
            return None;
        }
        self.text(table, key)
    }

    pub(super) fn boolean(&mut self, table: &DeTable<'t>, key: &str) -> Option<bool> {
        let value = table.get(key)?;
        match value.get_ref() {
            DeValue::Boolean(boolean) => Some(*boolean),
            _ => self.mistyped(value, &format!("`{key}`"), "true or false"),
        }
    }

    pub(super) fn whole_number(&mut self, table: &DeTable<'t>, key: &str) -> Option<u64> {
        let value = table.get(key)?;
        let number = match value.get_ref() {
            DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        };
        match number.filter(|number| *number > 0) {
            Some(number) => Some(number),
            None => self.mistyped(value, &format!("`{key}`"), "a whole number from 1"),
        }
    }

    pub(super) fn table<'a>(
        &mut self,
        table: &'a DeTable<'t>,
        key: &str,
    ) -> Option<&'a DeTable<'t>> {
        let value = table.get(key)?;
        match value.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => self.mistyped(value, &format!("`{key}`"), "a table"),
        }
    }

    pub(super) fn texts<'a>(&mut self, table: &'a DeTable<'t>, key: &str) -> Vec<Text<'a>> {
        match table.get(key) {
            Some(value) => self.as_texts(value, &format!("`{key}`")),
            None => Vec::new(),
        }
    }

    pub(super) fn as_texts<'a>(&mut self, value: &'a Value<'t>, what: &str) -> Vec<Text<'a>> {
        let DeValue::Array(members) = value.get_ref() else {
            self.mistyped::<()>(value, what, "a list of texts in quotes");
            return Vec::new();
        };
        if members.is_empty() {
            self.problem(&value.span(), format!("{what} is empty"), "leave it out, or fill it");
        }
        let each = format!("each of {what}");
        members.iter().filter_map(|member| self.as_text(member, &each)).collect()
    }

    /// Reports a value of the wrong type.
    pub(super) fn mistyped<T>(
        &mut self,
        value: &Value<'t>,
        what: &str,
        expected: &str,
    ) -> Option<T> {
        let found = match value.get_ref() {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let what = format!("{what} must be {expected}");
        self.problem(&value.span(), what, format!("this is {found}"));
        None
    }
}

/// The entries of a table as they stand in the file.
pub(super) fn in_order<'a, 't>(table: &'a DeTable<'t>) -> Vec<Entry<'a, 't>> {
    let mut entries: Vec<Entry<'a, 't>> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// `did you mean …`, or all that is known.
pub(super) fn did_you_mean<'w>(
    word: &str,
    known: impl IntoIterator<Item = &'w str> + Clone,
) -> String {
    match nearest(word, known.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => {
            let known: Vec<String> = known.into_iter().map(|it| format!("`{it}`")).collect();
            match known.is_empty() {
                true => "there is none to choose from".to_owned(),
                false => format!("known are {}", known.join(", ")),
            }
        }
    }
}
