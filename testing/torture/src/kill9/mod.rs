//! A process that writes, killed with SIGKILL, and what must be left of its work.
//!
//! The child ([`child`](fn@child)) tells the parent through a pipe what it is about to rely on: which commit
//! got which sequence number, and which commits were acknowledged. What came through the pipe
//! before the end is the log that the database is judged by ([`check`](mod@check)); it shares
//! nothing with the database but the rule of what a commit consists of (`work`).
#![allow(clippy::disallowed_methods, reason = "real processes, files and moments are the point")]

pub mod check;
mod child;
mod work;

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kstone_core::env::{Random, SeededRandom};

pub use check::{LastCommits, ReportedCommits};
pub use child::child;

/// The name of the command that runs the child.
pub const CHILD: &str = "kill9-child";

/// The line that a child prints before it opens the database.
const OPENING: &str = "opening";

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many times to kill.
    pub rounds: u64,
    /// Decides when, and what is written.
    pub seed: u64,
    /// Where; a new folder if there is none given.
    pub dir: Option<PathBuf>,
    /// A child is killed after at most so many acknowledged commits.
    pub acks_max: u64,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Children killed.
    pub kills: u64,
    /// Of these, while the database was being opened.
    pub kills_while_opening: u64,
    /// Commits acknowledged, all of which were found.
    pub acks: u64,
    /// Commits that were lost, as they may be: not acknowledged, and the last of all.
    pub lost: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills ({} while opening): all of {} acknowledged commits found, no hole; {} \
             unacknowledged commits at the end were lost",
            self.kills, self.kills_while_opening, self.acks, self.lost
        )
    }
}

/// Kills and checks, round after round, on one database. `exe` is the program that runs
/// [`child`] for the command [`CHILD`].
pub fn run(plan: &Plan, exe: &Path) -> Result<Report, String> {
    let named = plan.dir.clone();
    let dir = named.unwrap_or_else(|| {
        let name = format!("kstone-kill9-{}-{}", std::process::id(), plan.seed);
        std::env::temp_dir().join(name)
    });
    let random = SeededRandom::new(plan.seed);
    let mut report = Report::default();
    for round in 0..plan.rounds {
        let heard = one_round(&dir, exe, plan, &random, &mut report)
            .map_err(|what| format!("round {round}: {what}"))?;
        let heads = check::check(&dir, &heard).map_err(|what| {
            format!(
                "round {round} of seed {} in {} (kept for a look): {what}",
                plan.seed,
                dir.display()
            )
        })?;
        report.kills += 1;
        report.acks += heard.acks();
        report.lost += heard.lost(&heads);
    }
    if plan.dir.is_none() {
        std::fs::remove_dir_all(&dir).map_err(|e| format!("remove {}: {e}", dir.display()))?;
    }
    Ok(report)
}

/// Starts a child, listens, kills it, and listens until the pipe is empty.
fn one_round(
    dir: &Path,
    exe: &Path,
    plan: &Plan,
    random: &SeededRandom,
    report: &mut Report,
) -> Result<ReportedCommits, String> {
    let mut child = Command::new(exe)
        .arg(CHILD)
        .arg(dir)
        .arg(random.next_u64().to_string())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("start {}: {e}", exe.display()))?;
    let pipe = child.stdout.take().ok_or("the child has no pipe")?;
    // One kill in five comes while the database is being opened, or soon after.
    let early = random.next_u64().is_multiple_of(5);
    let early_after = Duration::from_micros(random.next_u64() % 20_000);
    let acks_wanted = 1 + random.next_u64() % plan.acks_max.max(1);
    let mut heard = ReportedCommits::default();
    let mut killed = false;
    for line in BufReader::new(pipe).split(b'\n') {
        let line = line.map_err(|e| format!("read from the child: {e}"))?;
        let line = String::from_utf8_lossy(&line);
        if line == OPENING && early {
            // No condition to wait for: any moment will do.
            let started = Instant::now();
            while started.elapsed() < early_after {
                std::hint::spin_loop();
            }
        }
        heard.hear(&line)?;
        if !killed && (early || heard.acks() >= acks_wanted) {
            child.kill().map_err(|e| format!("kill the child: {e}"))?;
            killed = true;
        }
    }
    let status = child.wait().map_err(|e| format!("wait for the child: {e}"))?;
    if !killed || status.code().is_some() {
        return Err(format!("the child ended by itself: {status}"));
    }
    report.kills_while_opening += u64::from(heard.is_empty());
    Ok(heard)
}
