//! Compares a database with what its writers were promised.

use std::collections::BTreeMap;
use std::path::Path;

use kstone_core::env::Env;
use kstone_core::{Engine, Seq, verify};

use super::OPENING;
use super::work::{self, SHARED, T, WINDOW, WRITERS};

/// The commits that the child reported through the pipe.
#[derive(Debug, Clone, Default)]
pub struct ReportedCommits {
    /// (writer, k) → first and last sequence number.
    commits: BTreeMap<(u64, u64), (Seq, Seq)>,
    /// (writer, k) of acknowledged commits.
    acked: Vec<(u64, u64)>,
}

/// Each writer's last commit that is in the database.
pub type LastCommits = Vec<u64>;

impl ReportedCommits {
    /// Takes in a line. (A pipe takes a line as a whole or not at all.)
    pub fn hear(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse::<u64>().map_err(|_| format!("heard {line:?}"));
        match words.as_slice() {
            ["commit", writer, k, first, last] => {
                let seqs = (number(first)?, number(last)?);
                self.commits.insert((number(writer)?, number(k)?), seqs);
            }
            ["ack", writer, k] => self.acked.push((number(writer)?, number(k)?)),
            [OPENING | ""] => {}
            _ => return Err(format!("heard {line:?}")),
        }
        Ok(())
    }

    /// How many commits were acknowledged.
    pub fn acks(&self) -> u64 {
        self.acked.len() as u64
    }

    /// Whether the child did not get as far as a commit.
    pub fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    /// How many commits the database does not have.
    pub fn lost(&self, heads: &LastCommits) -> u64 {
        self.commits.keys().filter(|(writer, k)| *k > head(heads, *writer)).count() as u64
    }
}

fn head(heads: &LastCommits, writer: u64) -> u64 {
    heads.get(writer as usize).copied().unwrap_or(0)
}

/// Verifies the files, opens the database, and checks that it holds a prefix of all commits
/// without a hole, every acknowledged one included.
pub fn check(dir: &Path, heard: &ReportedCommits) -> Result<LastCommits, String> {
    let env = Env::system();
    match verify(&env, dir) {
        Ok(report) if report.is_sound() => {}
        Ok(report) => return Err(format!("verify found {:#?}", report.faults)),
        // Killed before there was a database.
        Err(kstone_core::Error::NotFound { .. }) if heard.is_empty() => {
            return Ok(LastCommits::new());
        }
        Err(error) => return Err(format!("verify: {error}")),
    }
    let engine = Engine::open(dir, work::options()).map_err(|e| format!("open: {e}"))?;
    compare(&engine, heard)
}

fn compare(engine: &Engine, heard: &ReportedCommits) -> Result<LastCommits, String> {
    let fails = |e: kstone_core::Error| e.to_string();
    let heads: LastCommits = (0..WRITERS)
        .map(|writer| work::number(engine, &work::head_key(writer)))
        .collect::<Result<_, _>>()
        .map_err(fails)?;
    let mut newest: Seq = 0;
    for (writer, &head) in (0..).zip(&heads) {
        newest = newest.max(check_writer(engine, writer, head)?);
    }
    let counted: u64 =
        heads.iter().map(|&head| (1..=head).filter(|&k| work::counts(k)).count() as u64).sum();
    let total = work::number(engine, &work::total_key()).map_err(fails)?;
    if total != counted {
        return Err(format!("the total is {total}, the commits found make {counted}"));
    }
    for (writer, k) in &heard.acked {
        if *k > head(&heads, *writer) {
            return Err(format!(
                "commit {k} of writer {writer} was acknowledged; the last one found is {}",
                head(&heads, *writer)
            ));
        }
    }
    for (&(writer, k), &(first, last)) in &heard.commits {
        if k > head(&heads, writer) && first <= newest {
            return Err(format!(
                "a hole: commit {k} of writer {writer} (numbers {first} to {last}) is lost, but \
                 number {newest} is there"
            ));
        }
    }
    if engine.applied_seq() < newest {
        return Err(format!("number {newest} is there, readers see {}", engine.applied_seq()));
    }
    Ok(heads)
}

/// Checks everything that a writer's commits should have left; answers the highest sequence number
/// among it.
fn check_writer(engine: &Engine, writer: u64, head: u64) -> Result<Seq, String> {
    let fails = |e: kstone_core::Error| e.to_string();
    let first = head.saturating_sub(WINDOW) + 1;
    let mut newest = 0;
    let mut expected = first..=head;
    let log = engine.partition(T, work::log_key(writer, 0).pk).iter().map_err(fails)?;
    for found in log {
        let found = found.map_err(fails)?;
        newest = newest.max(found.record.version);
        let k = expected.next();
        let wanted = k.map(|k| (work::log_key(writer, k), work::value(writer, k)));
        if wanted != Some((found.key.clone(), found.record.value.to_vec())) {
            return Err(format!(
                "log of writer {writer}, head {head}: expected entry {k:?}, found {:?} with {} bytes",
                found.key,
                found.record.value.len()
            ));
        }
    }
    if let Some(k) = expected.next() {
        return Err(format!("log of writer {writer}, head {head}: entry {k} is missing"));
    }
    for slot in 0..SHARED {
        let wanted = (head.saturating_sub(SHARED - 1)..=head).find(|k| k % SHARED == slot);
        let found = work::number(engine, &work::shared_key(writer, slot)).map_err(fails)?;
        if found != wanted.unwrap_or(0) {
            return Err(format!(
                "shared record {slot} of writer {writer}, head {head}: expected {wanted:?}, found {found}"
            ));
        }
    }
    if let Some(record) = engine.get(T, &work::head_key(writer)).map_err(fails)? {
        newest = newest.max(record.version);
    }
    Ok(newest)
}
