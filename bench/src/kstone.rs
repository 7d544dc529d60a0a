//! Our own server: the `kstone` program of the workspace around this one, built as for a release.

use crate::{Outcome, machine};
use std::path::{Path, PathBuf};
use std::process::Command;

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
