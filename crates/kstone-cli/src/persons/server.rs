//! Persons of a database that a server has open: asked by a socket in its folder, which only the
//! owner of the folder can reach. A call is one line of JSON; the answer is lines of JSON that say how
//! far it is, and a last one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Bar, Call};

/// The socket's name in the folder.
pub const SOCKET: &str = "control.sock";

/// A line that the server says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// How far it is.
    Progress(Bar),
    /// The answer.
    Done(Json),
    /// Why there is none.
    Failed(String),
}

/// A server that has the folder open.
pub struct There(UnixStream);

/// The server that has this folder open, if it can be asked.
pub fn connect(dir: &Path) -> Option<There> {
    UnixStream::connect(dir.join(SOCKET)).ok().map(There)
}

impl There {
    pub fn ask(&self, call: &Call, show: &mut dyn FnMut(&Bar)) -> Result<Json> {
        let mut stream = &self.0;
        let gone = "the server went away; an erasure goes on when it is started again";
        stream.write_all(format!("{}\n", serde_json::to_string(call)?).as_bytes()).context(gone)?;
        for line in BufReader::new(stream).lines() {
            match serde_json::from_str(&line.context(gone)?).context("this is no answer")? {
                Said::Progress(bar) => show(&bar),
                Said::Done(answer) => return Ok(answer),
                Said::Failed(why) => bail!("{why}"),
            }
        }
        bail!("{gone}")
    }
}
