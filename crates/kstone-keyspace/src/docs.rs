//! Documents the whole keyspace as a page of Markdown.

use std::fmt::Write as _;

use crate::field::FieldType;
use crate::keyspace::Keyspace;
use crate::pattern::{OverflowAction, Pattern, Store};

/// The counts of a pattern's keys, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Keys.
    pub keys: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Keys that expire within the next hour.
    pub expiring_next_hour: u64,
    /// Writes per second recently.
    pub writes_per_second: f64,
}

impl Keyspace {
    /// Renders the keyspace as Markdown: a table of all patterns, then each with its fields.
    /// `usage` gives the counts of a pattern, where they are known; without any, the page has no
    /// such columns.
    pub fn docs(&self, usage: impl Fn(&Pattern) -> Option<Usage>) -> String {
        let counted = self.patterns().iter().any(|pattern| usage(pattern).is_some());
        let mut page = String::from("# Keyspace\n");
        for catalogue in self.catalogues() {
            let _ = write!(
                page,
                "\n## {}\n\n{}.\n",
                catalogue.application,
                sentence(&catalogue.description)
            );
            if !catalogue.reserved.is_empty() {
                let words: Vec<String> =
                    catalogue.reserved.iter().map(|it| format!("`{}:…`", it.word)).collect();
                let _ = write!(page, "\nReserved: {}.\n", words.join(", "));
            }
            page.push_str("\n| pattern | store | type | TTL | subject |");
            page.push_str(if counted {
                " keys | bytes | expiring in 1 h | writes/s |\n"
            } else {
                "\n"
            });
            page.push_str("|---|---|---|---|---|");
            page.push_str(if counted { "---:|---:|---:|---:|\n" } else { "\n" });
            for pattern in &catalogue.patterns {
                let _ = write!(
                    page,
                    "| [`{pattern}`](#{}) | {} | {} | {} | {} |",
                    anchor(pattern),
                    pattern.store,
                    pattern.value_type,
                    pattern.ttl,
                    pattern.subject,
                );
                if counted {
                    page.push_str(&match usage(pattern) {
                        Some(it) => format!(
                            " {} | {} | {} | {:.1} |",
                            grouped(it.keys),
                            grouped(it.bytes),
                            grouped(it.expiring_next_hour),
                            it.writes_per_second
                        ),
                        None => " | | | |".to_owned(),
                    });
                }
                page.push('\n');
            }
            for pattern in &catalogue.patterns {
                describe(&mut page, pattern);
            }
        }
        page
    }
}

fn describe(page: &mut String, pattern: &Pattern) {
    let _ = write!(page, "\n### {}\n\n", pattern.full_name());
    let _ = write!(page, "`{pattern}`: {}.\n\n", sentence(&pattern.description));
    if let Store::Table(table) = &pattern.store {
        let _ = writeln!(page, "- Partition `{}` of table `{table}`", pattern.partition());
    }
    for placeholder in pattern.placeholders() {
        let _ = writeln!(page, "- `{{{}}}`: {}", placeholder.name, placeholder.expected());
    }
    let _ = writeln!(page, "- Lives: {}", pattern.ttl);
    if let Some(slot) = pattern.tenant.and_then(|at| pattern.segments.get(at)?.slot()) {
        let _ = writeln!(page, "- Tenant: `{{{}}}`", slot.placeholder.name);
    }
    let limits = &pattern.limits;
    let mut most = vec![format!("key {} bytes", grouped(limits.key_bytes))];
    most.extend(limits.value_bytes.map(|bytes| format!("value {} bytes", grouped(bytes))));
    most.extend(limits.members.map(|members| {
        let trimmed = if limits.over == OverflowAction::Trim { ", then the oldest go" } else { "" };
        format!("{} members{trimmed}", grouped(members))
    }));
    let _ = writeln!(page, "- At most: {}", most.join("; "));
    if let Some(value) = &pattern.value {
        let _ = writeln!(page, "- Value: {value}");
    }
    if let Some(long) = &pattern.short_form_of {
        let _ = writeln!(page, "- Short form of `{long}`");
    }
    if !pattern.written {
        page.push_str("- Read, not written\n");
    }
    for example in &pattern.examples {
        let _ = writeln!(page, "- Example: `{}`", example.key);
    }
    if pattern.fields.is_empty() {
        return;
    }
    page.push_str("\n| field | holds |\n|---|---|\n");
    for field in &pattern.fields {
        let optional = if field.optional { ", or nothing" } else { "" };
        let _ = writeln!(page, "| `{}` | {}{optional} |", field.name, cell(&field.kind));
    }
    if let Some(others) = &pattern.other_fields {
        let _ = writeln!(page, "| others | {} |", cell(others));
    }
}

fn cell(kind: &FieldType) -> String {
    kind.to_string().replace('|', "\\|")
}

fn sentence(text: &str) -> &str {
    text.trim_end_matches('.')
}

/// The anchor that Markdown gives to a pattern's heading.
fn anchor(pattern: &Pattern) -> String {
    pattern.full_name().replace('.', "")
}

/// `12345678` as `12,345,678`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
