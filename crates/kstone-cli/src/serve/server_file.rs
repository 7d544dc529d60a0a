//! `server.json` in the folder of the database: where the server that has it open is found.
//!
//! A folder has one owner at a time. A command that finds it locked reads here whom to ask.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::private_file;

const FILE: &str = "server.json";

/// What the file says.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServerFile {
    /// The server's process.
    pub pid: u32,
    /// Where it speaks DynamoDB's protocol.
    pub dynamodb: Option<String>,
    /// Where it speaks Redis's protocol.
    #[serde(default)]
    pub redis: Option<String>,
    /// Where it speaks Dapr's state API over HTTP.
    #[serde(default)]
    pub dapr_http: Option<String>,
    /// The same over gRPC.
    #[serde(default)]
    pub dapr_grpc: Option<String>,
    /// Where the console and the REST API are.
    #[serde(default)]
    pub console: Option<String>,
}

/// The notice of this process; taken away when it is dropped.
#[derive(Debug)]
pub struct ServerFileGuard(PathBuf);

impl ServerFile {
    /// Puts it up, in place of one that a killed server may have left. The caller has the folder
    /// locked.
    pub fn post(&self, dir: &Path) -> io::Result<ServerFileGuard> {
        let (path, unfinished) = (dir.join(FILE), dir.join("server.json.new"));
        private_file::create(&unfinished)?.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(&unfinished, &path)?;
        Ok(ServerFileGuard(path))
    }

    /// Reads it. Only worth something while the folder is locked. A server that was killed leaves
    /// one behind, and by now its address may be another database's: then there is none.
    pub fn read(dir: &Path) -> Option<ServerFile> {
        let notice: ServerFile =
            serde_json::from_slice(&std::fs::read(dir.join(FILE)).ok()?).ok()?;
        let process = Pid::from_raw(i32::try_from(notice.pid).ok()?)?;
        test_kill_process(process).is_ok().then_some(notice)
    }
}

impl Drop for ServerFileGuard {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
