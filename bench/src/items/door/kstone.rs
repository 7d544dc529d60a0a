//! Our own server: the `kstone` program of the workspace around this one, built as for a release.

use super::request::{ACCESS_KEY, SECRET_KEY};
use crate::Outcome;
use std::path::Path;
use std::process::Command;

/// Where a server keeps its data, and whether it checks signatures.
pub enum Mode<'a> {
    /// On disk; every signature passes.
    Data(&'a Path),
    /// On disk; signatures are checked.
    Signed(&'a Path),
    /// Nowhere.
    Memory,
}

fn key() -> String {
    format!("{ACCESS_KEY}:{SECRET_KEY}")
}

/// The command that serves on `port`, with the durability that the door has by default.
pub fn command(program: &Path, mode: &Mode<'_>, port: u16) -> Outcome<Command> {
    let mut command = Command::new(program);
    command.arg("serve").args(["--redis", "off", "--dynamodb", &format!("127.0.0.1:{port}")]);
    command.args(["--dapr-http", "off", "--dapr-grpc", "off"]);
    match mode {
        Mode::Memory => {
            command.arg("--memory");
        }
        Mode::Data(dir) => {
            command.arg("--data").arg(dir);
        }
        Mode::Signed(dir) => {
            command.arg("--data").arg(dir).env("KSTONE_ACCESS_KEY", key());
        }
    }
    Ok(command)
}
