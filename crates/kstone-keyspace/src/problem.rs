//! Problems of a catalogue: each points at a line and a column and says what would be right.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A place in a catalogue's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file, as its caller named it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The whole line.
    text: Arc<str>,
    /// How many characters of it are meant.
    width: usize,
}

/// Whether a catalogue with the problem can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, and somebody may be surprised one day.
    Warning,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Whether it keeps the catalogue from being used.
    pub severity: Severity,
    /// Where it is.
    pub at: Position,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub help: String,
}

/// Everything that is wrong, in the order of files and lines. There is at least one problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problem {
    pub(crate) fn error(
        at: &Position,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Problem {
        Problem { severity: Severity::Error, at: at.clone(), what: what.into(), help: help.into() }
    }

    pub(crate) fn warning(
        at: &Position,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Problem {
        Problem { severity: Severity::Warning, ..Problem::error(at, what, help) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        writeln!(f, "{}: {kind}: {}", self.at, self.what)?;
        let line = self.at.line.to_string();
        let margin = line.len() + 1;
        writeln!(f, "  {line} | {}", self.at.text)?;
        // A tab of the line is a tab here, so that the mark stands under what it marks.
        let lead: String = (self.at.text.chars().take(self.at.column - 1))
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let mark = "^".repeat(self.at.width.max(1));
        write!(f, "  {:margin$}| {lead}{mark} {}", "", self.help)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            let gap = if at == 0 { "" } else { "\n" };
            write!(f, "{gap}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// A catalogue's text, in which byte offsets are found as lines and columns.
#[derive(Debug)]
pub(crate) struct Source<'t> {
    file: Arc<str>,
    text: &'t str,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl<'t> Source<'t> {
    pub(crate) fn new(file: &str, text: &'t str) -> Source<'t> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Source { file: file.into(), text, lines }
    }

    pub(crate) fn text(&self) -> &'t str {
        self.text
    }

    pub(crate) fn position(&self, span: &Range<usize>) -> Position {
        let mut start = span.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let line = self.lines.partition_point(|begin| *begin <= start);
        let begin = self.lines.get(line.wrapping_sub(1)).copied().unwrap_or_default();
        let end = self.lines.get(line).map_or(self.text.len(), |next| next - 1);
        let whole = self.text.get(begin..end).unwrap_or_default().trim_end_matches('\r');
        let before = self.text.get(begin..start).unwrap_or_default().chars().count();
        let marked = self.text.get(start..span.end.min(end).max(start)).unwrap_or_default();
        Position {
            file: self.file.clone(),
            line,
            column: before + 1,
            text: whole.into(),
            width: marked.chars().count(),
        }
    }
}

/// The word that was meant, if one of them is near: for `did you mean`.
pub(crate) fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // A third of the letters wrong is no longer the same word.
    let allowed = (word.chars().count() / 3).max(1);
    (known.into_iter())
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters must be put in, left out, changed or swapped with the next one.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let width = to.len() + 1;
    let mut cost: Vec<usize> = vec![0; (from.len() + 1) * width];
    for row in 0..=from.len() {
        for column in 0..width {
            let least = match (row, column) {
                (0, _) => column,
                (_, 0) => row,
                _ => {
                    let differs = usize::from(from[row - 1] != to[column - 1]);
                    let mut least = cost[(row - 1) * width + column - 1] + differs;
                    least = least.min(cost[(row - 1) * width + column] + 1);
                    least = least.min(cost[row * width + column - 1] + 1);
                    let swapped = row > 1
                        && column > 1
                        && from[row - 1] == to[column - 2]
                        && from[row - 2] == to[column - 1];
                    match swapped {
                        true => least.min(cost[(row - 2) * width + column - 2] + 1),
                        false => least,
                    }
                }
            };
            cost[row * width + column] = least;
        }
    }
    cost.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_found_as_line_and_column_in_characters() {
        let source = Source::new("a.toml", "first\nzweite Zeile für x = 1\nlast");
        let offset = source.text.find("x = 1").unwrap();
        let at = source.position(&(offset..offset + 1));
        assert_eq!((at.line, at.column, at.width), (2, 18, 1));
        assert_eq!(at.to_string(), "a.toml:2:18");
        let end = source.position(&(source.text.len()..source.text.len()));
        assert_eq!((end.line, end.column), (3, 5));
    }

    #[test]
    fn a_problem_shows_its_line_with_a_mark_under_what_is_meant() {
        let source = Source::new("a.toml", "\tttll = 1");
        let problem = Problem::error(&source.position(&(1..5)), "no such key", "write `ttl`");
        let shown = "a.toml:1:2: error: no such key\n  1 | \tttll = 1\n    | \t^^^^ write `ttl`";
        assert_eq!(problem.to_string(), shown);
    }

    #[test]
    fn a_word_with_a_slip_in_it_is_recognised_and_another_word_is_not() {
        let known = ["ttl", "type", "tenant", "description"];
        assert_eq!(nearest("ttll", known), Some("ttl"));
        assert_eq!(nearest("tpye", known), Some("type"));
        assert_eq!(nearest("descripton", known), Some("description"));
        assert_eq!(nearest("colour", known), None);
    }
}
