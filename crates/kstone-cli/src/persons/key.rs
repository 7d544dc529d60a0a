//! The key with which a database signs receipts: a file in its folder that only its owner reads.
//!
//! It is no part of the database, so that a checkpoint, which may be given to others, cannot sign.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use kstone_keyspace::erasure::ReceiptKey;

/// Its name in the folder.
const NAME: &str = "receipt.key";

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
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in secret.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(secret)
}

fn make(dir: &Path, path: &Path) -> Result<ReceiptKey> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| anyhow!("no randomness for a key: {error}"))?;
    let text: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let write = || {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        File::open(dir)?.sync_all()
    };
    write().with_context(|| format!("cannot make {}", path.display()))?;
    Ok(ReceiptKey::from_secret(&secret))
}
