//! Calls about persons and the keyspace, answered by a database that this process opens (`folder`) or by the
//! server that has it open, through its socket (`server`). Both take a [`Call`] and answer with JSON.

mod folder;
mod key;
mod server;

pub use folder::{LocalDatabase, answer};
pub use key::{ephemeral as ephemeral_key, load_or_make as receipt_key, public_key};
pub use server::{ReplyLine, SOCKET, connect};

use std::path::Path;

use anyhow::{Result, bail};
use kstone_core::Error as EngineError;
use kstone_keyspace::erasure::Progress;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::database;
use crate::output::{Output, count};

/// A call: a question, or something to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Call {
    /// Every key that holds data of a person.
    List(Person),
    /// The same with values.
    Export(Person),
    /// Erases a person; answers with the receipt.
    Erase(Person),
    /// Lets data about a person be written again.
    Admit(Person),
    /// All erasures.
    Erasures,
    /// Goes on with those that were interrupted; answers with their receipts.
    Resume,
    /// The receipt of one of them.
    Receipt {
        /// Which one.
        id: String,
    },
    /// The counts of each pattern.
    Metrics,
    /// A page of the whole keyspace.
    Docs,
}

/// A person, as typed on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// `student_id=12345`, or the id alone.
    pub subject: String,
    /// Only in this tenant.
    pub tenant: Option<String>,
}

/// How far an erasure is, for a progress bar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressBar {
    /// What is being done.
    pub doing: String,
    /// How much of it is done, and how much there is; 0 when that is unknown.
    pub done: u64,
    /// See `done`.
    pub all: u64,
}

/// What answers calls about persons.
pub enum Persons {
    /// A database in a folder that this process has open.
    InFolder(Box<LocalDatabase>),
    /// The server that has the folder open.
    AtServer(server::RunningServer),
}

impl Persons {
    /// Opens the folder, or finds the server that has it open.
    pub fn open(dir: &Path, out: &mut Output) -> Result<Persons> {
        match database::try_open(dir, false) {
            Ok(db) => Ok(Persons::InFolder(Box::new(LocalDatabase::open(dir, db, out)?))),
            Err(kstone::Error::Engine(EngineError::Locked { .. })) => match server::connect(dir) {
                Some(server) => Ok(Persons::AtServer(server)),
                None => bail!(
                    "{} is in use by a process that has no keyspace in force, or is no server: \
                     stop it first",
                    dir.display()
                ),
            },
            Err(error) => Err(database::explain(dir, error)),
        }
    }

    /// Asks, and shows how far it is meanwhile.
    pub fn ask(&self, call: &Call, out: &mut Output) -> Result<Json> {
        let answer = match self {
            Persons::InFolder(database) => database.ask(call, &mut |bar| show(bar, out)),
            Persons::AtServer(server) => server.ask(call, &mut |bar| show(bar, out)),
        };
        out.end_progress();
        answer
    }
}

/// Shows one line with a bar, on a terminal.
fn show(bar: &ProgressBar, out: &mut Output) {
    const WIDTH: u64 = 30;
    if bar.all == 0 {
        out.progress(&bar.doing);
        return;
    }
    let full = (bar.done.min(bar.all) * WIDTH / bar.all) as usize;
    let empty = WIDTH as usize - full;
    let (done, all) = (count(bar.done), count(bar.all));
    let line = format!("[{}{}] {} {done} of {all}", "#".repeat(full), "-".repeat(empty), bar.doing);
    out.progress(&line);
}

impl ProgressBar {
    /// What an erasure says of itself.
    fn of(progress: Progress) -> ProgressBar {
        let doing = |doing: &str| ProgressBar { doing: doing.to_owned(), done: 0, all: 0 };
        match progress {
            Progress::Refusing => doing("refusing new writes"),
            Progress::Found(places) => doing(&format!("found {} places", count(places))),
            Progress::Deleting => doing("deleting"),
            Progress::Purging => doing("rewriting files"),
            Progress::Checkpoint(done, all) => {
                ProgressBar { doing: "clearing checkpoints".to_owned(), done, all }
            }
            Progress::Sealing => doing("writing the receipt"),
        }
    }
}
