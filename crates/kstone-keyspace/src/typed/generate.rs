//! Generates Rust types for the keys of a catalogue.

use std::fmt::Write as _;

use crate::catalogue::Catalogue;
use crate::pattern::{Pattern, Store, ValueType};
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
const TAKEN: [&str; 8] =
    ["Date", "PatternInfo", "Kind", "Millis", "Span", "Ttl", "ValueType", "String"];

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
    if kinds().any(|kind| matches!(kind, Kind::Id | Kind::Text | Kind::Uuid)) {
        uses.push("Kind");
    }
    if kinds().any(|kind| *kind == Kind::Millis) {
        uses.push("Millis");
    }
    if catalogue.patterns.iter().any(|it| it.ttl != Ttl::None) {
        uses.push("Span");
    }
    uses.extend(["Ttl", "ValueType", "key_part", "typed_key"]);
    let _ = writeln!(code, "use kstone_keyspace::typed::PatternInfo;");
    let _ = writeln!(code, "use kstone_keyspace::{{{}}};", uses.join(", "));
    for placeholder in &placeholders {
        write_part(&mut code, placeholder);
    }
    for pattern in &catalogue.patterns {
        write_key(&mut code, pattern);
    }
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
    if !own_type(placeholder) {
        return;
    }
    let name = camel(&placeholder.name);
    let _ = write!(
        code,
        "\nkey_part! {{\n    /// `{{{}}}`: {}.\n    ",
        placeholder.name,
        placeholder.expected().replace('*', "\\*"),
    );
    match &placeholder.kind {
        Kind::OneOf(words) => {
            let _ = writeln!(code, "choice {name} {{");
            for word in words {
                let _ = writeln!(code, "        {} = {word:?},", camel(word));
            }
            code.push_str("    }\n}\n");
        }
        Kind::Int { min, max } => {
            let _ = writeln!(code, "int {name} = {:?}, {min}..={max}\n}}", placeholder.name);
        }
        kind => {
            let kind = match kind {
                Kind::Text => "Kind::Text",
                Kind::Uuid => "Kind::Uuid",
                _ => "Kind::Id",
            };
            let except: Vec<String> =
                placeholder.except.iter().map(|word| format!("{word:?}")).collect();
            let except = except.join(", ");
            let _ = writeln!(code, "text {name} = {:?}, {kind}, [{except}]\n}}", placeholder.name);
        }
    }
}

fn write_key(code: &mut String, pattern: &Pattern) {
    let (partition, sort) =
        pattern.segments.split_at(pattern.partition_segments.min(pattern.segments.len()));
    let table = match &pattern.store {
        Store::Redis => "None".to_owned(),
        Store::Table(name) => format!("Some({:?})", name.to_string()),
    };
    let _ = write!(
        code,
        "\ntyped_key! {{\n    /// {}: `{pattern}`.\n    {} {{\n        facts: PatternInfo {{\n",
        pattern.description.trim_end_matches('.'),
        camel(&pattern.name),
    );
    for (field, value) in [
        ("name", format!("{:?}", pattern.full_name())),
        ("pattern", format!("{:?}", pattern.to_string())),
        ("table", table),
        ("value_type", format!("ValueType::{}", variant(pattern.value_type))),
        ("ttl", ttl(&pattern.ttl)),
        ("sort_prefix", format!("{:?}", sort_prefix(sort))),
    ] {
        let _ = writeln!(code, "            {field}: {value},");
    }
    let _ = write!(
        code,
        "        }},\n        partition: [{}],\n        sort: [{}],\n    }}\n}}\n",
        segments(partition),
        segments(sort),
    );
}

fn variant(value_type: ValueType) -> String {
    camel(value_type.name())
}

fn segments(segments: &[Segment]) -> String {
    let each = |segment: &Segment| match segment {
        Segment::Literal(word) => format!("{word:?}"),
        Segment::Slot(slot) => {
            let placeholder = &slot.placeholder;
            let (name, kind) = (&placeholder.name, type_of(placeholder));
            format!("{:?} {{ {name}: {kind} }} {:?}", slot.prefix, slot.suffix)
        }
    };
    segments.iter().map(each).collect::<Vec<_>>().join(", ")
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

/// What all sort keys begin with: the words before the first placeholder.
fn sort_prefix(sort: &[Segment]) -> String {
    let mut prefix = String::new();
    for (at, segment) in sort.iter().enumerate() {
        if at > 0 {
            prefix.push(':');
        }
        match segment {
            Segment::Literal(word) => prefix.push_str(word),
            Segment::Slot(slot) => {
                prefix.push_str(&slot.prefix);
                break;
            }
        }
    }
    prefix
}
