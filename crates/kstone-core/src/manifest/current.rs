//! Which manifest is the live one: the names in the folder and the file `CURRENT`.
//!
//! `CURRENT` is one line of text: the name of the live manifest, a space, the xxh3-64 of the name
//! as 16 hexadecimal digits, a newline. The checksum is there because one flipped bit could
//! otherwise name an older manifest, and with it an older database.

use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::bugs::{self, Bug};
use crate::env::{OpenMode, Vfs, VfsFile};
use crate::error::{Error, Result};
use crate::sync::Arc;

/// The file that makes a folder a database.
pub(crate) const CURRENT: &str = "CURRENT";
const CURRENT_TMP: &str = "CURRENT.tmp";
const MANIFEST_PREFIX: &str = "MANIFEST-";
/// Longer than any `CURRENT` can be.
const CURRENT_BYTES_MAX: usize = 64;

/// The number of a database's first manifest.
pub(super) const FIRST_NUMBER: u64 = 1;

pub(super) fn manifest_name(number: u64) -> String {
    format!("{MANIFEST_PREFIX}{number:06}")
}

/// The number of a manifest, if `name` is exactly what [`manifest_name`] makes of it.
fn parse_manifest_name(name: &str) -> Option<u64> {
    let number = name.strip_prefix(MANIFEST_PREFIX)?.parse().ok()?;
    (manifest_name(number) == name).then_some(number)
}

/// Whether a file of this name is `CURRENT` or a manifest.
pub(crate) fn is_file_name(name: &str) -> bool {
    name == CURRENT || parse_manifest_name(name).is_some()
}

fn current_text(number: u64) -> String {
    let name = manifest_name(number);
    let checksum = xxh3_64(name.as_bytes());
    format!("{name} {checksum:016x}\n")
}

pub(super) fn current_path(dir: &Path) -> PathBuf {
    dir.join(CURRENT)
}

/// The number of the live manifest; `None` without a `CURRENT` (or without the folder).
pub(super) fn read_current(vfs: &dyn Vfs, dir: &Path) -> Result<Option<u64>> {
    let path = current_path(dir);
    let file = match vfs.open(&path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("open", &path, error)),
    };
    let len = file.len().map_err(|error| Error::io("read", &path, error))?;
    let mut bytes = [0; CURRENT_BYTES_MAX];
    let text = usize::try_from(len).ok().and_then(|len| bytes.get_mut(..len));
    let Some(text) = text else {
        return Err(Error::corruption(&path, 0, format!("it is {len} bytes long")));
    };
    file.read_exact_at(text, 0).map_err(|error| Error::io("read", &path, error))?;
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| parse_manifest_name(text.split(' ').next()?))
        .filter(|&number| current_text(number).as_bytes() == &*text);
    match number {
        Some(number) => Ok(Some(number)),
        None => Err(Error::corruption(&path, 0, "it does not name a manifest")),
    }
}

/// Writes and syncs what will become `CURRENT`. Until [`switch_current`] nothing has changed.
pub(super) fn prepare_current(vfs: &dyn Vfs, dir: &Path, number: u64) -> Result<()> {
    let path = dir.join(CURRENT_TMP);
    let file = create_anew(vfs, &path)?;
    file.write_at(current_text(number).as_bytes(), 0)
        .map_err(|error| Error::io("write", &path, error))?;
    file.sync_data().map_err(|error| Error::io("sync", &path, error))
}

/// Makes the prepared `CURRENT` the live one, durably. When this fails, nobody knows which one a
/// crash would leave.
pub(super) fn switch_current(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let path = current_path(dir);
    vfs.rename(&dir.join(CURRENT_TMP), &path).map_err(|error| Error::io("rename", &path, error))?;
    if bugs::on(Bug::CurrentRenameNotSynced) {
        return Ok(());
    }
    vfs.sync_dir(dir).map_err(|error| Error::io("sync", dir, error))
}

/// Creates the file, in place of one that a crash may have left behind.
pub(super) fn create_anew(vfs: &dyn Vfs, path: &Path) -> Result<Arc<dyn VfsFile>> {
    match vfs.remove(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io("remove", path, error)),
    }
    vfs.open(path, OpenMode::CreateNew).map_err(|error| Error::io("create", path, error))
}

/// Refuses a folder that has no `CURRENT` but looks like a database that lost it: a new database
/// must never be created over an old one.
///
/// A crash while a database is created leaves a first manifest without `CURRENT`. That one is no
/// longer than `fresh_bytes`, which leaves no room for anything that was ever acknowledged; and
/// files of data and of the log are created only once `CURRENT` is durable.
pub(super) fn refuse_lost_current(vfs: &dyn Vfs, dir: &Path, fresh_bytes: u64) -> Result<()> {
    let names = match vfs.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("list", dir, error)),
    };
    for name in names {
        let is_sign = match parse_manifest_name(&name) {
            Some(FIRST_NUMBER) => file_bytes(vfs, &dir.join(&name))? > fresh_bytes,
            Some(_) => true,
            None => name.ends_with(".sst") || (name.starts_with("wal-") && name.ends_with(".log")),
        };
        if is_sign {
            return Err(Error::Corruption {
                path: current_path(dir),
                offset: 0,
                what: format!("it is missing, but the folder holds {name}"),
                advice: "restore it from a checkpoint or backup, or choose an empty folder for a \
                         new database",
            });
        }
    }
    Ok(())
}

fn file_bytes(vfs: &dyn Vfs, path: &Path) -> Result<u64> {
    let file = vfs.open(path, OpenMode::Read).map_err(|error| Error::io("open", path, error))?;
    file.len().map_err(|error| Error::io("read", path, error))
}

/// The names of the manifest's files that a crash left behind, for the caller to remove: every
/// manifest but the live one, and the unfinished `CURRENT`.
pub(crate) fn leftovers(vfs: &dyn Vfs, dir: &Path, live_number: u64) -> Result<Vec<String>> {
    let mut names = vfs.list(dir).map_err(|error| Error::io("list", dir, error))?;
    names.retain(|name| match parse_manifest_name(name) {
        Some(number) => number != live_number,
        None => name == CURRENT_TMP,
    });
    names.sort();
    Ok(names)
}
