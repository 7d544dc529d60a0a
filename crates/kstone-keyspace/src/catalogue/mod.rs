//! A catalogue: the keys of one application, declared in a TOML file.
//!
//! ```toml
//! application = "mastery"
//! description = "How well learners know what they learn"
//! table = "state"                    # where items live
//! reserved = ["cache", "system"]     # first segments that no undeclared key may have
//!
//! [placeholders]                     # what may stand in the place of {name}, in every pattern
//! student_id = "id"
//! date = "date"
//! component = ["completion", "quiz"]
//! endpoint = { type = "text", except = ["global"] }
//!
//! [pattern.daily_mastery]
//! pattern = "student:{student_id}:mastery:{date}"
//! partition = "student:{student_id}" # items only: the rest is the sort key
//! store = "item"                     # or "redis"
//! type = "json"                      # json, string, counter, hash, list, set, zset, stream, item
//! ttl = "90 days"                    # or "none", or { time, rule = "sliding", min, max }
//! subject = "student_id"             # or "none", { field }, { members = true }, { through }
//! description = "The mastery of a learner on a day"
//! fields = { mastery_score = "number 0..1", note = "text?", "*" = "any" }
//! examples = ["student:student_12345:mastery:2026-01-14"]
//!
//! [pattern.daily_short]
//! pattern = "st:{student_id}:m:{date}"
//! short_form_of = "daily_mastery"    # takes everything else from there; read, not written
//! partition = "st:{student_id}"
//! ```
//!
//! `ttl` and `subject` must be said, so that nobody forgets them. Further keys of a pattern: `tenant`
//! (the placeholder that names it), `table`, `value` (what the whole value may be), `limits =
//! { key_bytes, value_bytes, members, over = "trim" }`, `written = false`, `metric`.
//! Of a value whose `field` lists several persons, only the one who is erased goes; all of it does
//! with `subject = { field, deleted_with_any = true }`.

mod declaration;
mod fields;
mod keys;
mod lifetime;
mod reader;
mod subject;

use std::ops::Range;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use self::reader::{Reader, did_you_mean, in_order};
use crate::pattern::Pattern;
use crate::placeholder::{Kind, Placeholder};
use crate::problem::{Position, Problem, Problems};
use crate::text::{is_id, is_id_byte};

/// The declared keys of one application.
#[derive(Debug, Clone)]
pub struct Catalogue {
    /// The application.
    pub application: Arc<str>,
    /// What it does.
    pub description: String,
    /// First segments that no key may have unless a pattern of this catalogue declares it.
    pub reserved: Vec<Reserved>,
    /// Its patterns, in the order of the file.
    pub patterns: Vec<Pattern>,
    /// Where its name stands.
    pub at: Position,
    /// The file it was read from, as it is.
    pub(crate) source: Arc<str>,
}

/// A first segment that is kept for an application.
#[derive(Debug, Clone)]
pub struct Reserved {
    /// The segment.
    pub word: String,
    /// Where it is reserved.
    pub at: Position,
}

impl Catalogue {
    /// Reads a catalogue. `file` is the name that problems give.
    ///
    /// What can be wrong with one pattern alone is found here, all of it at once; what only shows
    /// beside other patterns is found by [`Keyspace::new`](crate::Keyspace::new).
    pub fn parse(file: &str, text: &str) -> Result<Catalogue, Problems> {
        let (catalogue, problems) = Catalogue::parse_valid_patterns(file, text);
        match catalogue {
            Some(catalogue) if problems.is_empty() => Ok(catalogue),
            _ => Err(Problems(problems)),
        }
    }

    /// Reads a catalogue; if it has problems, only the patterns that have none.
    pub(crate) fn parse_valid_patterns(
        file: &str,
        text: &str,
    ) -> (Option<Catalogue>, Vec<Problem>) {
        let mut reader = Reader::new(file, text);
        let catalogue = reader.document().map(|document| {
            let source = Arc::from(text);
            Catalogue { source, ..read(&mut reader, document.get_ref()) }
        });
        let mut problems = reader.problems;
        problems.sort_by_key(|problem| (problem.at.line, problem.at.column));
        (catalogue, problems)
    }
}

/// The settings that all patterns of a file share.
struct Shared {
    application: Arc<str>,
    table: Option<String>,
    placeholders: Vec<Placeholder>,
    /// Names whose declaration has problems: that is said once, where they are declared.
    broken_placeholders: Vec<String>,
}

fn read<'t>(reader: &mut Reader<'t>, document: &DeTable<'t>) -> Catalogue {
    const START: Range<usize> = 0..0;
    const OF: &str = "the catalogue";
    let known = ["application", "description", "table", "reserved", "placeholders", "pattern"];
    reader.reject_unknown(document, OF, &known);
    let name = reader.required(document, &START, OF, "application", "begin with its name");
    if let Some(name) = name.as_ref().filter(|name| !is_name(name.value)) {
        let what = format!("`{}` cannot be an application's name", name.value);
        reader.problem(&name.span, what, NAME_FORM);
    }
    let description =
        reader.required(document, &START, OF, "description", "say what the application does");
    let table = reader.text(document, "table").map(|table| table.value.to_owned());
    let reserved = reader.texts(document, "reserved");
    for word in reserved.iter().filter(|word| !is_id(word.value.as_bytes())) {
        let what = format!("`{}` cannot be a segment of a key", word.value);
        reader.problem(&word.span, what, "a segment is of A-Z a-z 0-9 _ . @ -");
    }
    let (placeholders, broken_placeholders) = match reader.table(document, "placeholders") {
        Some(table) => read_placeholders(reader, table),
        None => (Vec::new(), Vec::new()),
    };
    let at = reader.position(&name.as_ref().map_or(START, |name| name.span.clone()));
    let application = name.map_or("", |name| name.value).into();
    let shared = Shared { application, table, placeholders, broken_placeholders };
    let patterns = match reader.table(document, "pattern") {
        Some(patterns) => declaration::read_patterns(reader, &shared, patterns),
        None => Vec::new(),
    };
    Catalogue {
        application: shared.application.clone(),
        description: description.map_or("", |text| text.value).to_owned(),
        reserved: (reserved.iter())
            .map(|word| Reserved { word: word.value.to_owned(), at: reader.position(&word.span) })
            .collect(),
        patterns,
        at,
        source: Arc::from(""),
    }
}

const NAME_FORM: &str = "a name is of a-z 0-9 _ and begins with a letter";

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

fn read_placeholders<'t>(
    reader: &mut Reader<'t>,
    table: &DeTable<'t>,
) -> (Vec<Placeholder>, Vec<String>) {
    let (mut placeholders, mut broken) = (Vec::new(), Vec::new());
    for (key, value) in in_order(table) {
        let name = key.get_ref().as_ref();
        let before = reader.problems.len();
        if !is_name(name) {
            let what = format!("`{name}` cannot be a placeholder's name");
            reader.problem(&key.span(), what, NAME_FORM);
        }
        let (kind, except) = match value.get_ref() {
            DeValue::Table(table) => {
                reader.reject_unknown(table, &format!("placeholder `{name}`"), &["type", "except"]);
                let kind = match table.get("type") {
                    Some(kind) => read_kind(reader, kind, name),
                    None => {
                        let what = format!("placeholder `{name}` has no `type`");
                        reader.problem(&value.span(), what, "write type = \"id\"");
                        None
                    }
                };
                (kind, reader.texts(table, "except"))
            }
            _ => (read_kind(reader, value, name), Vec::new()),
        };
        for word in &except {
            let part = word.value.strip_suffix('*').unwrap_or(word.value);
            if part.is_empty() || !part.bytes().all(|byte| is_id_byte(byte) || byte == b'%') {
                let what = format!("`{}` cannot be excepted", word.value);
                let help = "a word of A-Z a-z 0-9 _ . @ -, or the start of one and `*`";
                reader.problem(&word.span, what, help);
            }
        }
        match kind {
            Some(kind) if reader.problems.len() == before => placeholders.push(Placeholder {
                name: name.to_owned(),
                kind,
                except: except.iter().map(|word| word.value.to_owned()).collect(),
            }),
            _ => broken.push(name.to_owned()),
        }
    }
    (placeholders, broken)
}

fn read_kind<'t>(
    reader: &mut Reader<'t>,
    value: &toml::Spanned<DeValue<'t>>,
    name: &str,
) -> Option<Kind> {
    let what = format!("the type of `{name}`");
    if let DeValue::Array(_) = value.get_ref() {
        let words = reader.as_texts(value, &what);
        for (at, word) in words.iter().enumerate() {
            if !is_id(word.value.as_bytes()) {
                let what = format!("`{}` cannot stand in a key", word.value);
                reader.problem(&word.span, what, "words are of A-Z a-z 0-9 _ . @ -");
            }
            if words.iter().take(at).any(|earlier| earlier.value == word.value) {
                reader.problem(
                    &word.span,
                    format!("`{}` is there twice", word.value),
                    "once is enough",
                );
            }
        }
        return Some(Kind::OneOf(words.iter().map(|word| word.value.to_owned()).collect()));
    }
    let text = reader.as_text(value, &what)?;
    let kind = Kind::parse(text.value);
    if kind.is_none() {
        let name = text.value.split(' ').next().unwrap_or_default();
        let help = match Kind::NAMES.contains(&name) {
            true => "write id, text, date, uuid, millis, int or int 1..365".to_owned(),
            false => did_you_mean(name, Kind::NAMES),
        };
        reader.problem(&text.span, format!("`{}` is no type", text.value), help);
    }
    kind
}
