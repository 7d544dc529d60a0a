//! Explains a key: its pattern, its rules, and why other patterns do not match.

use std::fmt;

use crate::keyspace::{ItemKeyParts, KeyStore, Keyspace, WHOLE_KEY};
use crate::overlap::{Overlap, overlap};
use crate::pattern::{Pattern, Store};
use crate::segment::Segment;
use crate::subject::Subjects;

/// The explanation of a key, in every store where it is declared.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The key.
    pub key: String,
    /// The pattern it belongs to, in each place that has one; the most literal one first.
    pub findings: Vec<Finding>,
    /// Patterns without a single word of their own, which the key would belong to if it were in
    /// their table: store, name and pattern. Empty when the place was named.
    pub elsewhere: Vec<(String, String, String)>,
    /// The application that keeps keys with this beginning for itself.
    pub reserved_by: Option<String>,
    /// Patterns that it nearly matches, when it matches none: name, pattern and what is in the way.
    pub near: Vec<(String, String, String)>,
}

/// A pattern that the key belongs to.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Its full name.
    pub name: String,
    /// Its text.
    pub pattern: String,
    /// What it is for.
    pub description: String,
    /// Where its keys live.
    pub store: String,
    /// What its keys hold.
    pub value_type: &'static str,
    /// How long its keys live.
    pub ttl: String,
    /// The placeholders and their values.
    pub captures: Vec<(String, String)>,
    /// Partition key and sort key, of an item.
    pub parts: Option<(String, String)>,
    /// The tenant that the key names.
    pub tenant: Option<String>,
    /// Whose data it is.
    pub subject: String,
    /// The long form, of a short one.
    pub long_form: Option<String>,
    /// Whether it may be written.
    pub written: bool,
    /// Other patterns that the key matches, and why they lost.
    pub others: Vec<(String, String)>,
}

impl Keyspace {
    /// Explains a key, wherever it may be.
    pub fn explain(&self, key: &str) -> Explanation {
        let mut stores: Vec<&Store> = Vec::new();
        for pattern in self.patterns() {
            if !stores.contains(&&pattern.store) {
                stores.push(&pattern.store);
            }
        }
        let (mut findings, mut elsewhere) = (Vec::new(), Vec::new());
        for store in stores {
            let table = match store {
                Store::Redis => None,
                Store::Table(name) => Some(name.example()),
            };
            let place = table.as_deref().map_or(KeyStore::Redis, KeyStore::Table);
            match self.finding(place, key) {
                Some((0, it)) => elsewhere.push((it.store, it.name, it.pattern)),
                Some(found) => findings.push(found),
                None => {}
            }
        }
        findings.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        self.explanation(key, findings.into_iter().map(|(_, finding)| finding).collect(), elsewhere)
    }

    /// Explains a key of this place.
    pub fn explain_in(&self, place: KeyStore<'_>, key: &str) -> Explanation {
        let findings = self.finding(place, key).into_iter().map(|(_, finding)| finding);
        self.explanation(key, findings.collect(), Vec::new())
    }

    fn explanation(
        &self,
        key: &str,
        findings: Vec<Finding>,
        elsewhere: Vec<(String, String, String)>,
    ) -> Explanation {
        let near = match findings.is_empty() {
            true => self.near(key),
            false => Vec::new(),
        };
        Explanation {
            key: key.to_owned(),
            findings,
            elsewhere,
            reserved_by: self.reserved_by(key.as_bytes()).map(|it| it.application.to_string()),
            near,
        }
    }

    /// Explains a key in one store, with the rank of its pattern.
    fn finding(&self, place: KeyStore<'_>, key: &str) -> Option<(u32, Finding)> {
        let found = self.find(place, key.as_bytes())?;
        let pattern = found.pattern;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let parts = matches!(place, KeyStore::Table(_)).then(|| {
            let ItemKeyParts { pk, sk } = found.parts(key.as_bytes());
            (text(pk), text(sk))
        });
        let subject = match found.subjects_by_key() {
            Some(Subjects::These(subjects)) => {
                let names: Vec<String> = subjects.iter().map(ToString::to_string).collect();
                match names.is_empty() {
                    true => "nobody".to_owned(),
                    false => names.join(", "),
                }
            }
            Some(Subjects::SameAs(other)) => format!("whoever `{other}` belongs to"),
            None => format!("{}, in the value", pattern.subject),
        };
        let others = self.patterns().iter().filter(|it| {
            it.store == pattern.store
                && !std::ptr::eq(*it, pattern)
                && matches_key(it, key.as_bytes())
        });
        let finding = Finding {
            name: pattern.full_name(),
            pattern: pattern.to_string(),
            description: pattern.description.clone(),
            store: pattern.store.to_string(),
            value_type: pattern.value_type.name(),
            ttl: pattern.ttl.to_string(),
            captures: (found.captures())
                .map(|(it, _)| (it.name.clone(), found.value(&it.name).unwrap_or_default()))
                .collect(),
            parts,
            tenant: found.tenant(),
            subject,
            long_form: found.long_form(),
            written: pattern.written,
            others: others.map(|it| (it.full_name(), why(pattern, it))).collect(),
        };
        Some((pattern.rank(), finding))
    }

    /// The patterns with the fewest segments in the way, of those that begin with the same word.
    fn near(&self, key: &str) -> Vec<(String, String, String)> {
        const SHOWN: usize = 3;
        let first = key.split(':').next().unwrap_or_default();
        let mut near: Vec<(usize, &Pattern)> = (self.patterns().iter())
            .filter(
                |it| matches!(it.segments.first(), Some(Segment::Literal(word)) if word == first),
            )
            .map(|it| (wrong_segments(it, key.as_bytes()).count(), it))
            .collect();
        near.sort_by_key(|(wrong, _)| *wrong);
        let least = near.first().map_or(0, |(wrong, _)| *wrong);
        (near.into_iter().take_while(|(wrong, _)| *wrong == least).take(SHOWN))
            .map(|(_, it)| (it.full_name(), it.to_string(), mismatch(it, key.as_bytes())))
            .collect()
    }
}

fn matches_key(pattern: &Pattern, key: &[u8]) -> bool {
    wrong_segments(pattern, key).next().is_none()
}

/// The places at which a key and a pattern differ.
fn wrong_segments<'a>(
    pattern: &'a Pattern,
    key: &'a [u8],
) -> impl Iterator<Item = (usize, Option<&'a Segment>, Option<&'a [u8]>)> {
    let given: Vec<&[u8]> = key.split(|byte| *byte == b':').collect();
    let count = given.len().max(pattern.segments.len());
    (0..count).filter_map(move |at| {
        let (segment, part) = (pattern.segments.get(at), given.get(at).copied());
        let fits = segment.zip(part).is_some_and(|(segment, part)| segment.accepts(part));
        (!fits).then_some((at, segment, part))
    })
}

/// Why a key is not of a pattern, in words.
pub(crate) fn mismatch(pattern: &Pattern, key: &[u8]) -> String {
    let Some((at, segment, part)) = wrong_segments(pattern, key).next() else {
        return "it matches".to_owned();
    };
    let at = at + 1;
    let part = part.map(|part| format!("`{}`", String::from_utf8_lossy(part)));
    match (segment, part) {
        (Some(Segment::Literal(word)), Some(part)) => {
            format!("segment {at} is {part}, and must be `{word}`")
        }
        (Some(Segment::Slot(slot)), Some(part)) => {
            let around = match (slot.prefix.as_str(), slot.suffix.as_str()) {
                ("", "") => String::new(),
                (prefix, suffix) => format!(" in `{prefix}…{suffix}`"),
            };
            format!("segment {at} is {part}, and must be {}{around}", slot.placeholder.expected())
        }
        (Some(segment), None) => format!("segment {at}, `{segment}`, is missing"),
        (None, _) => format!("there are more than its {} segments", pattern.segments.len()),
    }
}

/// Why the winner won.
fn why(winner: &Pattern, loser: &Pattern) -> String {
    if overlap(&winner.segments, &loser.segments) != Overlap::FirstWins {
        return "no reason is known".to_owned();
    }
    let mut pairs = winner.segments.iter().zip(&loser.segments).enumerate();
    match pairs.find(|(_, (a, b))| a.rank() > b.rank()) {
        Some((at, (a, b))) => {
            format!("segment {} is `{a}` in the winner, which is more literal than `{b}`", at + 1)
        }
        None => String::new(),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.key)?;
        for finding in &self.findings {
            write!(f, "{finding}")?;
        }
        if self.findings.is_empty() {
            writeln!(f, "  matches no pattern")?;
        }
        for (store, name, pattern) in &self.elsewhere {
            writeln!(f, "  elsewhere   in {store} it would be of {pattern} ({name})")?;
        }
        if let Some(application) = &self.reserved_by {
            writeln!(f, "  reserved    keys that begin so are kept for {application}")?;
        }
        for (name, pattern, reason) in &self.near {
            writeln!(f, "  nearly      {pattern} ({name}): {reason}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, text: &str| writeln!(f, "  {name:11} {text}");
        line("pattern", &format!("{} ({})", self.pattern, self.name))?;
        line("", &self.description)?;
        line("store", &format!("{}, {}", self.store, self.value_type))?;
        for (name, value) in &self.captures {
            line("", &format!("{name} = {value}"))?;
        }
        if let Some((pk, sk)) = &self.parts {
            let whole = if sk.as_bytes() == WHOLE_KEY { " (the whole key)" } else { "" };
            line("partition", &format!("{pk}{whole}"))?;
            line("sort key", sk)?;
        }
        line("ttl", &self.ttl)?;
        line("subject", &self.subject)?;
        if let Some(tenant) = &self.tenant {
            line("tenant", tenant)?;
        }
        if let Some(long) = &self.long_form {
            line("short for", long)?;
        }
        if !self.written {
            line("written", "no, only read")?;
        }
        for (name, reason) in &self.others {
            line("beats", &format!("{name}: {reason}"))?;
        }
        Ok(())
    }
}
