//! The documentation of each command, read from the texts beside this file, one for each group.
//!
//! An entry is a command's name, the version of Redis that first had it and its
//! [syntax](super::syntax), maybe on several lines; then a line with a summary, and one with the
//! complexity here, which is not always that in Redis. An empty line separates entries.

use std::sync::LazyLock;

use hashbrown::HashMap;

/// What there is to say about a command.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Doc {
    pub(super) group: &'static str,
    /// The version of Redis that first had it.
    pub(super) since: &'static str,
    pub(super) syntax: &'static str,
    pub(super) summary: &'static str,
    pub(super) complexity: &'static str,
}

/// The groups by the names that Redis gives them.
const TEXTS: [(&str, &str); 16] = [
    ("bitmap", include_str!("bitmap.txt")),
    ("cluster", include_str!("cluster.txt")),
    ("connection", include_str!("connection.txt")),
    ("generic", include_str!("generic.txt")),
    ("geo", include_str!("geo.txt")),
    ("hash", include_str!("hash.txt")),
    ("hyperloglog", include_str!("hyperloglog.txt")),
    ("list", include_str!("list.txt")),
    ("pubsub", include_str!("pubsub.txt")),
    ("scripting", include_str!("scripting.txt")),
    ("server", include_str!("server.txt")),
    ("set", include_str!("set.txt")),
    ("sorted-set", include_str!("sorted-set.txt")),
    ("stream", include_str!("stream.txt")),
    ("string", include_str!("string.txt")),
    ("transactions", include_str!("transactions.txt")),
];

static DOCS: LazyLock<HashMap<&str, Doc>> = LazyLock::new(|| entries().collect());

/// What there is to say about the command or subcommand of this name.
pub(super) fn of(name: &str) -> Doc {
    DOCS.get(name).copied().unwrap_or_default()
}

fn entries() -> impl Iterator<Item = (&'static str, Doc)> {
    let entries =
        TEXTS.iter().flat_map(|(group, text)| text.split("\n\n").map(|one| (*group, one)));
    entries.filter_map(|(group, entry)| read(group, entry))
}

fn read(group: &'static str, entry: &'static str) -> Option<(&'static str, Doc)> {
    let (rest, complexity) = entry.trim_end().rsplit_once('\n')?;
    let (head, summary) = rest.rsplit_once('\n')?;
    let (name, head) = head.split_once(' ')?;
    let (since, syntax) = head.split_once(char::is_whitespace).unwrap_or((head, ""));
    Some((name, Doc { group, since, syntax, summary, complexity }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::commands;

    #[test]
    fn every_command_has_an_entry_and_every_entry_a_command() {
        let commands: BTreeSet<&str> = commands::each().map(|command| command.name).collect();
        let entries: Vec<&str> = entries().map(|(name, _)| name).collect();
        assert_eq!(commands, entries.iter().copied().collect());
        assert_eq!(entries.len(), commands.len(), "and only one");
        let texts = TEXTS.iter().flat_map(|(_, text)| text.split("\n\n"));
        assert_eq!(entries.len(), texts.count(), "all of the texts is read");
    }

    #[test]
    fn an_entry_says_what_a_command_is_for_in_one_short_line() {
        for (name, doc) in entries() {
            let lines = [(doc.summary, 80), (doc.complexity, 50)];
            for (line, most) in lines {
                let len = line.chars().count();
                assert!((4..=most).contains(&len), "{name}: {len} characters: {line}");
                assert!(
                    line.starts_with(|first: char| first.is_ascii_uppercase()),
                    "{name}: {line}"
                );
                assert!(!line.ends_with(['.', ' ']), "{name}: {line}");
            }
            let numbers: Vec<u32> = doc.since.split('.').flat_map(str::parse).collect();
            assert_eq!(numbers.len(), 3, "{name}: {}", doc.since);
        }
    }
}
