//! Proofs of the Redis door.
//!
//! [`model`](mod@model) sends the same random commands ([`draw`]) to the door and to Redis's own
//! server, and to a plain model ([`plain`]) whose time the test decides; replies have to be the
//! same. [`crash`] stops the machine at every moment of such a run, on a simulated disk; [`kill`]
//! ends a real process. [`arguments`] asks every command with any arguments.
//! [`abuse`] is what clients do that mean no good.

pub mod abuse;
pub mod arguments;
pub mod contents;
pub mod crash;
pub mod draw;
pub mod kill;
pub mod model;
pub mod plain;
pub mod server;
pub mod wire;

use std::fmt;

/// A command: its name and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Command(pub Vec<Vec<u8>>);

impl Command {
    /// A command whose words have no spaces.
    pub fn of(line: &str) -> Command {
        Command(line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect())
    }

    /// Its name, in capitals.
    pub fn name(&self) -> String {
        self.0.first().map(|name| String::from_utf8_lossy(name).to_uppercase()).unwrap_or_default()
    }

    /// Its words.
    pub fn words(&self) -> Vec<&[u8]> {
        self.0.iter().map(Vec::as_slice).collect()
    }
}

impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, word) in self.0.iter().enumerate() {
            let space = if n == 0 { "" } else { " " };
            let is_plain = !word.is_empty() && word.iter().all(u8::is_ascii_graphic);
            match is_plain {
                true => write!(out, "{space}{}", String::from_utf8_lossy(word))?,
                false => write!(out, "{space}\"{}\"", word.escape_ascii())?,
            }
        }
        Ok(())
    }
}
