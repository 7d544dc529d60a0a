//! The key with which a database signs receipts: a file in its folder that only its owner reads.
//!
//! It is no part of the database, so that a checkpoint, which may be given to others, cannot sign.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use kstone_keyspace::erasure::ReceiptKey;

use crate::private_file;

/// Its name in the folder.
const NAME: &str = "receipt.key";
/// What it is called until all of it is on the disk.
const UNFINISHED: &str = "receipt.key.unfinished";

/// The key of the database in this folder, which is made if there is none.
pub fn load_or_make(dir: &Path) -> Result<ReceiptKey> {
    let path = dir.join(NAME);
    match load(&path)? {
        Some(key) => Ok(key),
        None => make(dir, &path),
    }
}

/// The public key of the database in this folder, if it has ever signed anything.
pub fn public_key(dir: &Path) -> Result<Option<String>> {
    Ok(load(&dir.join(NAME))?.map(|key| key.public_key()))
}

/// A key for data that is in memory only, which ends with the process.
pub fn ephemeral() -> Result<ReceiptKey> {
    Ok(ReceiptKey::from_secret(&secret()?))
}

fn secret() -> Result<[u8; 32]> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| anyhow!("no randomness for a key: {error}"))?;
    Ok(secret)
}

fn load(path: &Path) -> Result<Option<ReceiptKey>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let secret = parse(text.trim()).with_context(|| {
        format!("{} is no key: 64 hex digits are expected; restore it", path.display())
    })?;
    Ok(Some(ReceiptKey::from_secret(&secret)))
}

fn parse(text: &str) -> Option<[u8; 32]> {
    let mut secret = [0; 32];
    hex::decode_to_slice(text, &mut secret).ok()?;
    Some(secret)
}

/// Makes a key. The file is there with all of the key, or not at all: half a key would keep everybody
/// from erasing. One that another process has made meanwhile is never replaced.
fn make(dir: &Path, path: &Path) -> Result<ReceiptKey> {
    let secret = secret()?;
    let text = hex::encode(secret);
    let unfinished = dir.join(UNFINISHED);
    let write = || {
        let mut file = private_file::create(&unfinished)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        name(&unfinished, path)?;
        File::open(dir)?.sync_all()
    };
    write().with_context(|| format!("cannot make {}", path.display()))?;
    Ok(ReceiptKey::from_secret(&secret))
}

/// Gives a file its name, unless there is one of that name.
fn name(unfinished: &Path, path: &Path) -> std::io::Result<()> {
    match fs::hard_link(unfinished, path) {
        Ok(()) => fs::remove_file(unfinished),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        // Not every file system has links. A process that makes a key holds the database's lock, so nobody
        // else makes one between these two.
        Err(_) if !path.try_exists()? => fs::rename(unfinished, path),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(public_key(dir.path()).unwrap(), None);
        let made = load_or_make(dir.path()).unwrap().public_key();
        assert_eq!(load_or_make(dir.path()).unwrap().public_key(), made);
        assert_eq!(public_key(dir.path()).unwrap(), Some(made));
        let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|it| it.unwrap()).collect();
        assert_eq!(names.len(), 1, "nothing else is left: {names:?}");
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(dir.path().join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_a_crash_left_of_a_key_is_no_key_and_in_nobodys_way() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(UNFINISHED), "abc").unwrap();
        assert_eq!(public_key(dir.path()).unwrap(), None);
        let made = load_or_make(dir.path()).unwrap().public_key();
        assert_eq!(public_key(dir.path()).unwrap(), Some(made));
        assert!(!dir.path().join(UNFINISHED).exists());
    }

    #[test]
    fn a_key_that_is_there_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let made = load_or_make(dir.path()).unwrap().public_key();
        assert!(make(dir.path(), &path).is_err());
        assert_eq!(public_key(dir.path()).unwrap(), Some(made));
        fs::write(&path, "").unwrap();
        assert!(load_or_make(dir.path()).is_err(), "a lost key is restored, not replaced");
    }
}
