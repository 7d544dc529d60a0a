//! Sends calls about persons to the server that has the database open, through a socket in its folder
//! that only the owner of the folder can reach. A call is one line of JSON; the answer is lines of JSON
//! with the progress, and a last one with the result.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Call, ProgressBar};

/// The socket's name in the folder.
pub const SOCKET: &str = "control.sock";

/// A line of the server's reply.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyLine {
    /// How far it is.
    Progress(ProgressBar),
    /// The answer.
    Done(Json),
    /// Why there is none.
    Failed(String),
}

/// The server that has the folder open.
pub struct RunningServer(UnixStream);

/// The server that has this folder open, if it can be asked.
pub fn connect(dir: &Path) -> Option<RunningServer> {
    UnixStream::connect(dir.join(SOCKET)).ok().map(RunningServer)
}

impl RunningServer {
    pub fn ask(&self, call: &Call, show: &mut dyn FnMut(&ProgressBar)) -> Result<Json> {
        let mut stream = &self.0;
        let gone = "the server went away; an erasure goes on when it is started again";
        stream.write_all(format!("{}\n", serde_json::to_string(call)?).as_bytes()).context(gone)?;
        for line in BufReader::new(stream).lines() {
            match serde_json::from_str(&line.context(gone)?).context("this is no answer")? {
                ReplyLine::Progress(bar) => show(&bar),
                ReplyLine::Done(answer) => return Ok(answer),
                ReplyLine::Failed(why) => bail!("{why}"),
            }
        }
        bail!("{gone}")
    }
}
