//! The real binary, run as a user or a script runs it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod console;
mod erase;
mod help;
mod keyspace;
mod learn;
mod maintenance;
mod query_scan_load;
mod records;
mod school;
mod serve;
mod server;
mod tables;

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder for one test, gone with it.
struct Fixture(TempDir);

impl Fixture {
    fn new() -> Self {
        Fixture(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `kstone` in this folder, without what the environment of the tests may say.
    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kstone"));
        command.current_dir(self.0.path());
        for name in ["NO_COLOR", "KSTONE_ACCESS_KEY", "AWS_ACCESS_KEY_ID"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs `kstone` in this folder.
    fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Done {
        self.run_with_input(words, "")
    }

    fn run_with_input<S: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = S>,
        input: &str,
    ) -> Done {
        let mut child = self
            .command()
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads no input may be gone before it is written.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Done {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs `kstone`, which must succeed, and answers what it printed.
    fn ok<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> String {
        self.run(words).succeeded().out
    }

    /// Like [`ok`](Fixture::ok), as JSON lines.
    fn json<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Vec<Value> {
        json_lines(&self.ok(words))
    }
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[derive(Debug)]
struct Done {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Done {
    #[track_caller]
    fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Exit code 1, nothing on standard output, and one line on standard error that holds `what`.
    #[track_caller]
    fn failed_with(self, what: &str) -> Self {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        assert!(self.err.starts_with("kstone: ") && self.err.contains(what), "{self:?}");
        self
    }

    /// Exit code 2, and a hint at the help.
    #[track_caller]
    fn refused_as_nonsense(self) -> Self {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert!(self.err.contains("Usage") || self.err.contains("--help"), "{self:?}");
        self
    }
}
