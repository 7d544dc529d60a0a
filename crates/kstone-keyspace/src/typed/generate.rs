//! Generates Rust types for the keys of a catalogue.

use std::fmt::Write as _;

use crate::catalogue::Catalogue;
use crate::pattern::{Pattern, Store};
use crate::placeholder::{Kind, Placeholder};
use crate::segment::Segment;
use crate::ttl::{Span, Ttl};

/// A catalogue cannot be written as Rust.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// Two names of the catalogue become one name in Rust.
    #[error("`{first}` and `{second}` would both be called `{name}`; rename one in the catalogue")]
    Collision {
        /// The name in Rust.
        name: String,
        /// What has it first.
        first: String,
        /// What has it second.
        second: String,
    },
    /// A name means something else in Rust.
    #[error("`{name}` is a word of the Rust language; use another in the catalogue")]
    Keyword {
        /// The name.
        name: String,
    },
}

const KEYWORDS: [&str; 38] = [
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern",
    "false", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut",
    "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true", "type", "unsafe",
    "use", "where", "while",
];
/// Names that the generated code uses itself.
const TAKEN: [&str; 5] = ["Date", "Millis", "Span", "Ttl", "String"];

/// The keys of a catalogue as a Rust module: a type for each placeholder and each pattern.
pub fn rust_keys(catalogue: &Catalogue) -> Result<String, GenerateError> {
    let placeholders = placeholders_of(catalogue);
    check_names(catalogue, &placeholders)?;
    let mut code = String::new();
    let _ = write!(
        code,
        "//! The keys of `{}`. {}.\n//!\n//! Written by `kstone_keyspace::typed::rust_keys` from the \
         catalogue: change that, then write this anew.\n\n",
        catalogue.application,
        catalogue.description.trim_end_matches('.'),
    );
    let mut uses = Vec::new();
    let kinds = || placeholders.iter().map(|it| &it.kind);
    if kinds().any(|kind| *kind == Kind::Date) {
        uses.push("Date");
    }
    if kinds().any(|kind| *kind == Kind::Millis) {
        uses.push("Millis");
    }
    if catalogue.patterns.iter().any(|it| it.ttl != Ttl::None) {
        uses.push("Span");
    }
    uses.extend(["Ttl", "key_parts", "typed_keys"]);
    let _ = writeln!(code, "use kstone_keyspace::{{{}}};", uses.join(", "));
    code.push_str("\nkey_parts! {\n");
    for placeholder in placeholders.into_iter().filter(|it| own_type(it)) {
        write_part(&mut code, placeholder);
    }
    code.push_str("}\n\ntyped_keys! {\n");
    for (at, pattern) in catalogue.patterns.iter().enumerate() {
        if at > 0 {
            code.push('\n');
        }
        write_key(&mut code, pattern);
    }
    code.push_str("}\n");
    Ok(code)
}

/// Each placeholder once, in the order in which patterns use them.
fn placeholders_of(catalogue: &Catalogue) -> Vec<&Placeholder> {
    let mut placeholders: Vec<&Placeholder> = Vec::new();
    for placeholder in catalogue.patterns.iter().flat_map(Pattern::placeholders) {
        if !placeholders.contains(&placeholder) {
            placeholders.push(placeholder);
        }
    }
    placeholders
}

fn check_names(catalogue: &Catalogue, placeholders: &[&Placeholder]) -> Result<(), GenerateError> {
    let mut known: Vec<(String, String)> =
        TAKEN.iter().map(|name| ((*name).to_owned(), (*name).to_owned())).collect();
    let mut add = |name: String, origin: String| {
        if let Some((_, first)) = known.iter().find(|(known, _)| *known == name) {
            let first = first.clone();
            return Err(GenerateError::Collision { name, first, second: origin });
        }
        known.push((name, origin));
        Ok(())
    };
    for placeholder in placeholders {
        if KEYWORDS.contains(&placeholder.name.as_str()) {
            return Err(GenerateError::Keyword { name: placeholder.name.clone() });
        }
        if own_type(placeholder) {
            add(camel(&placeholder.name), format!("{{{}}}", placeholder.name))?;
        }
    }
    for pattern in &catalogue.patterns {
        add(camel(&pattern.name), pattern.name.clone())?;
    }
    Ok(())
}

/// `daily_mastery` as `DailyMastery`.
fn camel(name: &str) -> String {
    let mut camel = String::new();
    for word in name.split(|c: char| !c.is_ascii_alphanumeric()) {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.extend(letters);
    }
    match camel.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("N{camel}"),
        false => camel,
    }
}

fn own_type(placeholder: &Placeholder) -> bool {
    !matches!(placeholder.kind, Kind::Date | Kind::Millis) && placeholder.kind != Kind::INT
}

fn type_of(placeholder: &Placeholder) -> String {
    match &placeholder.kind {
        Kind::Date => "Date".to_owned(),
        Kind::Millis => "Millis".to_owned(),
        kind if *kind == Kind::INT => "u64".to_owned(),
        _ => camel(&placeholder.name),
    }
}

fn write_part(code: &mut String, placeholder: &Placeholder) {
    let name = &placeholder.name;
    let except = match placeholder.except.as_slice() {
        [] => String::new(),
        words => format!(", except {words:?}"),
    };
    let (form, body) = match &placeholder.kind {
        Kind::OneOf(words) => {
            let each = words.iter().map(|word| format!("{} = {word:?}", camel(word)));
            ("choice", each.collect::<Vec<_>>().join(", "))
        }
        Kind::Int { min, max } => ("int", format!("{name:?}, {min}..={max}")),
        Kind::Text => ("text", format!("{name:?}, Text{except}")),
        Kind::Uuid => ("text", format!("{name:?}, Uuid{except}")),
        _ => ("text", format!("{name:?}, Id{except}")),
    };
    let expected = placeholder.expected().replace('*', "\\*");
    let _ =
        writeln!(code, "    /// `{{{name}}}`: {expected}.\n    {form} {}({body});", camel(name));
}

fn write_key(code: &mut String, pattern: &Pattern) {
    let (partition, sort) =
        pattern.segments.split_at(pattern.partition_segments.min(pattern.segments.len()));
    let table = match &pattern.store {
        Store::Redis => String::new(),
        Store::Table(name) => format!(" in {:?}", name.to_string()),
    };
    let sort = match sort {
        [] => String::new(),
        sort => format!(",\n        sort: {}", text_and_fields(sort)),
    };
    let _ = writeln!(
        code,
        "    /// {}: `{pattern}`.\n    {} = {:?}, {}{table}, {},\n        partition: {}{sort};",
        pattern.description.trim_end_matches('.'),
        camel(&pattern.name),
        pattern.full_name(),
        camel(pattern.value_type.name()),
        ttl(&pattern.ttl),
        text_and_fields(partition),
    );
}

/// Segments as [`typed_keys!`](crate::typed_keys) takes them: the text before the first placeholder,
/// even where there is none, then each placeholder as a field with the text that follows it.
fn text_and_fields(segments: &[Segment]) -> String {
    let (mut written, mut text) = (String::new(), String::new());
    for (at, segment) in segments.iter().enumerate() {
        if at > 0 {
            text.push(':');
        }
        match segment {
            Segment::Literal(word) => text.push_str(word),
            Segment::Slot(slot) => {
                text.push_str(&slot.prefix);
                let (name, kind) = (&slot.placeholder.name, type_of(&slot.placeholder));
                let _ = write!(written, "{text:?} {{ {name}: {kind} }} ");
                text.clone_from(&slot.suffix);
            }
        }
    }
    if !text.is_empty() {
        let _ = write!(written, "{text:?}");
    }
    written.trim_end().to_owned()
}

fn ttl(ttl: &Ttl) -> String {
    let (rule, span) = match ttl {
        Ttl::None => return "Ttl::None".to_owned(),
        Ttl::Fixed(span) => ("Fixed", span),
        Ttl::Sliding(span) => ("Sliding", span),
    };
    let Span { seconds, seconds_min, seconds_max } = *span;
    match *span == Span::seconds(seconds) {
        true => format!("Ttl::{rule}(Span::seconds({seconds}))"),
        false => format!(
            "Ttl::{rule}(Span {{ seconds: {seconds}, seconds_min: {seconds_min}, \
             seconds_max: {seconds_max:?} }})"
        ),
    }
}
