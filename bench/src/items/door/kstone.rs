//! Our own server: the `kstone` program of the workspace around this one, built as for a release.

use super::request::{ACCESS_KEY, SECRET_KEY};
use crate::{Outcome, machine};
use std::path::{Path, PathBuf};
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

/// Builds the program if its sources have changed.
pub fn build() -> Outcome<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace around")?;
    // Not the folder of this benchmark's own build: the two would undo each other's work.
    let target_dir = machine::build_dir()?.join("kstone");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--release", "--bin", "kstone", "--manifest-path"])
        .arg(workspace.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target_dir)
        .status()?;
    match built.success() {
        true => Ok(target_dir.join("release/kstone")),
        false => Err("kstone could not be built".into()),
    }
}

fn key() -> String {
    format!("{ACCESS_KEY}:{SECRET_KEY}")
}

/// The command that serves on `port`, with the durability that the door has by default.
pub fn command(program: &Path, mode: &Mode<'_>, port: u16) -> Outcome<Command> {
    let mut command = Command::new(program);
    command.arg("serve").args(["--dynamodb", &format!("127.0.0.1:{port}")]);
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
