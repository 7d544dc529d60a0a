//! Checks catalogues, alone and beside each other, and collects every problem.

use std::fmt;

use crate::catalogue::Catalogue;
use crate::keyspace::Keyspace;
use crate::problem::{Problem, Severity};

/// The result of a check.
#[derive(Debug, Clone)]
pub struct Report {
    /// All problems, in the order of files and lines.
    pub problems: Vec<Problem>,
    /// How many catalogues were read.
    pub catalogues: usize,
    /// How many patterns are right by themselves.
    pub patterns: usize,
}

impl Report {
    /// Whether the catalogues can be used.
    pub fn is_usable(&self) -> bool {
        self.problems.iter().all(|problem| problem.severity != Severity::Error)
    }
}

/// Checks catalogues by themselves and beside each other. Each is given as its file's name and its
/// text; a pattern with problems does not hide those of the others.
pub fn check(files: &[(&str, &str)]) -> Report {
    let mut problems = Vec::new();
    let mut catalogues = Vec::new();
    for (file, text) in files {
        let (catalogue, found) = Catalogue::parse_valid_patterns(file, text);
        problems.extend(found);
        catalogues.extend(catalogue);
    }
    let (keyspace, found) = Keyspace::with_problems(catalogues);
    problems.extend(found);
    let order = |problem: &Problem| {
        let file = files.iter().position(|(file, _)| **file == *problem.at.file);
        (file, problem.at.line, problem.at.column)
    };
    problems.sort_by_key(order);
    Report { problems, catalogues: files.len(), patterns: keyspace.patterns().len() }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}\n")?;
        }
        let count = |severity| self.problems.iter().filter(|it| it.severity == severity).count();
        let plural = |count: usize, one: &str| match count {
            1 => format!("1 {one}"),
            _ => format!("{count} {one}s"),
        };
        write!(
            f,
            "{}, {}: {}, {}",
            plural(self.catalogues, "catalogue"),
            plural(self.patterns, "pattern"),
            plural(count(Severity::Error), "error"),
            plural(count(Severity::Warning), "warning"),
        )
    }
}
