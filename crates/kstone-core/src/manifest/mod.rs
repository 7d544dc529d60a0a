//! The manifest: the durable description of the database's tree.
//!
//! It says which SST files are live at which level of which stripe, how far each stripe is
//! flushed, which tables exist, where replay of the log starts, and a few counters. Whatever it
//! does not name is not part of the database.
//!
//! On disk it is an append-only file of edits, `MANIFEST-{n:06}`, whose first record is a snapshot
//! of everything, and a small file `CURRENT` that names the live one. The bytes are described
//! where they are written: [`frame`] (header and records), [`record`] (payload), [`current`]
//! (`CURRENT` and the names). [`state`] is what they mean, and is pure.
//!
//! The engine calls this module, under one lock: flush, compaction, table changes and checkpoints
//! each [`State::apply`] an [`Edit`] and [`Manifest::append`] it. The module calls only
//! `env::Vfs`, `codec` and `error`.
//!
//! Two rules carry the crash safety:
//! - A new manifest is synced, then its name, then `CURRENT.tmp`, then it is renamed and the
//!   folder synced, and only then the old manifest is removed. So `CURRENT` always names a
//!   complete file.
//! - What [`Manifest::open`] has read may be only in the page cache, when it was the process that
//!   died and not the machine. It is synced before the caller may act on it: a file that an edit
//!   removed must not be deleted while a power cut could still take the edit back.

mod current;
mod frame;
mod record;
mod state;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

pub(crate) use current::{CURRENT, is_file_name, leftovers};
#[cfg(feature = "fuzzing")]
pub(crate) use record::decode_record;
pub(crate) use state::{Edit, LEVELS, State, StripeState, TableEdit, TableState};

use self::current::{FIRST_NUMBER, current_path, manifest_name};
use crate::bugs::{self, Bug};
use crate::env::{OpenMode, Vfs, VfsFile};
use crate::error::{Error, Result};
use crate::sync::Arc;

/// A manifest smaller than this is not worth rewriting, however small its snapshot.
const REWRITE_BYTES_MIN: u64 = 1024 * 1024;
/// Rewritten when it is this many times its snapshot: reading it back costs at most that much
/// more than it must, and a rewrite is paid for by three times its bytes of edits.
const REWRITE_FACTOR: u64 = 4;
/// The file grows by this much at a time. The zeros behind the last record mean "nothing yet".
const RESERVE_BYTES: u64 = 64 * 1024;

/// The live manifest, open for appending.
#[derive(Debug)]
pub(crate) struct Manifest {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    number: u64,
    live: Live,
    health: Health,
}

/// The file behind `CURRENT`.
#[derive(Debug)]
struct Live {
    path: PathBuf,
    file: Arc<dyn VfsFile>,
    seed: u64,
    next_index: u32,
    /// Where the next record goes.
    end: u64,
    /// Up to here the disk's blocks are ours: a record that ends before cannot meet a full disk.
    reserved: u64,
    snapshot_end: u64,
}

#[derive(Debug)]
enum Health {
    Sound,
    /// The file ends in half a record; one more behind it would turn that into damage.
    Torn,
    /// Nobody knows what is on the disk.
    Failed(Arc<str>),
}

/// How [`Manifest::open`] found the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opened {
    /// The last record was never acknowledged and is ignored; [`Manifest::rewrite`] comes next.
    pub(crate) torn: bool,
    /// The n of `MANIFEST-n`, for [`leftovers`].
    pub(crate) number: u64,
}

impl Manifest {
    /// Makes a new, empty database in `dir`, which exists. Refuses a folder with signs of another.
    pub(crate) fn create(
        vfs: &Arc<dyn Vfs>,
        dir: &Path,
        db_id: [u8; 16],
    ) -> Result<(Manifest, State)> {
        refuse_existing(&**vfs, dir)?;
        current::refuse_lost_current(&**vfs, dir, fresh_bytes())?;
        let state = State::new(db_id);
        let live = write_manifest(&**vfs, dir, FIRST_NUMBER, &state)?;
        current::prepare_current(&**vfs, dir, FIRST_NUMBER)?;
        current::switch_current(&**vfs, dir)?;
        let manifest = Manifest {
            vfs: Arc::clone(vfs),
            dir: dir.to_owned(),
            number: FIRST_NUMBER,
            live,
            health: Health::Sound,
        };
        Ok((manifest, state))
    }

    /// Reads the live manifest of `dir`; `None` when there is no database and no sign of one.
    pub(crate) fn open(
        vfs: &Arc<dyn Vfs>,
        dir: &Path,
    ) -> Result<Option<(Manifest, State, Opened)>> {
        let Some(number) = current::read_current(&**vfs, dir)? else {
            current::refuse_lost_current(&**vfs, dir, fresh_bytes())?;
            return Ok(None);
        };
        let path = dir.join(manifest_name(number));
        let file = vfs.open(&path, OpenMode::ReadWrite).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                let what = format!("it names {}, which is missing", manifest_name(number));
                return Error::corruption(&current_path(dir), 0, what);
            }
            Error::io("open", &path, error)
        })?;
        let bytes = read_all(&path, &*file)?;
        let replayed = frame::replay(&path, &bytes, number)?;

        file.sync_data().map_err(|error| Error::io("sync", &path, error))?;
        vfs.sync_dir(dir).map_err(|error| Error::io("sync", dir, error))?;

        let live = Live {
            path,
            file,
            seed: replayed.seed,
            next_index: replayed.next_index,
            end: replayed.end as u64,
            reserved: bytes.len() as u64,
            snapshot_end: replayed.snapshot_end as u64,
        };
        let manifest = Manifest {
            vfs: Arc::clone(vfs),
            dir: dir.to_owned(),
            number,
            live,
            health: if replayed.torn { Health::Torn } else { Health::Sound },
        };
        Ok(Some((manifest, replayed.state, Opened { torn: replayed.torn, number })))
    }

    /// Makes `edit` durable: one record, one write, one sync.
    ///
    /// Room is reserved first: a disk that is full then has changed nothing, and the append may be
    /// tried again. A failure of write or sync is for good: what reached the disk is unknown, so
    /// every later append fails and the caller poisons the engine.
    pub(crate) fn append(&mut self, edit: &Edit) -> Result<()> {
        match &self.health {
            Health::Sound => {}
            Health::Torn => {
                return Err(Error::invalid("the manifest ends in a torn record: rewrite it first"));
            }
            Health::Failed(cause) => return Err(Error::Poisoned { cause: Arc::clone(cause) }),
        }
        let live = &mut self.live;
        let next_index = live
            .next_index
            .checked_add(1)
            .ok_or_else(|| Error::invalid("the manifest is full: rewrite it first"))?;
        let mut bytes = Vec::new();
        let payload = record::encode_record(edit);
        frame::push_record(&mut bytes, live.seed, live.next_index, &payload)?;

        let end = live.end + bytes.len() as u64;
        if end > live.reserved {
            let reserved = end.next_multiple_of(RESERVE_BYTES);
            if let Err(error) = live.file.allocate(reserved) {
                let is_full = error.kind() == io::ErrorKind::StorageFull;
                let error = Error::io("grow", &live.path, error);
                return Err(if is_full { error } else { self.fail(error) });
            }
            live.reserved = reserved;
        }
        let written = live
            .file
            .write_at(&bytes, live.end)
            .map_err(|error| Error::io("write", &live.path, error))
            .and_then(|()| {
                if bugs::on(Bug::ManifestSyncSkipped) {
                    return Ok(());
                }
                live.file.sync_data().map_err(|error| Error::io("sync", &live.path, error))
            });
        match written {
            Ok(()) => {
                live.end = end;
                live.next_index = next_index;
                Ok(())
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Whether the file has grown enough beyond its snapshot for a [`Manifest::rewrite`] to pay.
    pub(crate) fn needs_rewrite(&self) -> bool {
        let limit = self.live.snapshot_end.saturating_mul(REWRITE_FACTOR).max(REWRITE_BYTES_MIN);
        self.live.end > limit
    }

    /// Goes on in a new manifest file that starts with a snapshot of `state`, which must be what
    /// the edits so far add up to, and removes the old file.
    ///
    /// A failure in front of the switch (a full disk, say) changes nothing: the old file is still
    /// the live one. A failure of the switch is for good, as in [`Manifest::append`].
    pub(crate) fn rewrite(&mut self, state: &State) -> Result<()> {
        if let Health::Failed(cause) = &self.health {
            return Err(Error::Poisoned { cause: Arc::clone(cause) });
        }
        let number = self
            .number
            .checked_add(1)
            .ok_or_else(|| Error::invalid("the numbers of manifests are used up"))?;
        let prepared = write_manifest(&*self.vfs, &self.dir, number, state).and_then(|live| {
            current::prepare_current(&*self.vfs, &self.dir, number)?;
            Ok(live)
        });
        let live = match prepared {
            Ok(live) => live,
            Err(error) => {
                // If this fails too, `leftovers` finds it.
                let _ = self.vfs.remove(&self.dir.join(manifest_name(number)));
                return Err(error);
            }
        };
        if let Err(error) = current::switch_current(&*self.vfs, &self.dir) {
            return Err(self.fail(error));
        }
        let old = std::mem::replace(&mut self.live, live);
        self.number = number;
        self.health = Health::Sound;
        // The new file is the live one already; a failure only leaves something for `leftovers`.
        let _ = self.vfs.remove(&old.path);
        Ok(())
    }

    /// Whether a failure has made it impossible to know what is on the disk.
    pub(crate) fn is_failed(&self) -> bool {
        matches!(self.health, Health::Failed(_))
    }

    /// Length of the live file, without what is reserved.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.live.end
    }

    /// The live file.
    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.live.path
    }

    /// The n of the live `MANIFEST-n`, for [`leftovers`].
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    fn fail(&mut self, error: Error) -> Error {
        self.health = Health::Failed(error.to_string().into());
        error
    }
}

/// Writes the manifest of a checkpoint: `state`, into a folder that holds no database yet. All of
/// it is durable on return, as are the names that were in the folder before.
pub(crate) fn write_snapshot(vfs: &dyn Vfs, dir: &Path, state: &State) -> Result<()> {
    refuse_existing(vfs, dir)?;
    write_manifest(vfs, dir, FIRST_NUMBER, state)?;
    current::prepare_current(vfs, dir, FIRST_NUMBER)?;
    current::switch_current(vfs, dir)
}

fn refuse_existing(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let path = current_path(dir);
    if vfs.exists(&path).map_err(|error| Error::io("look for", &path, error))? {
        return Err(Error::invalid(format!("{} holds a database already", dir.display())));
    }
    Ok(())
}

/// Writes manifest `number` with a snapshot of `state`; the file and its name are durable, and
/// nothing refers to them yet.
fn write_manifest(vfs: &dyn Vfs, dir: &Path, number: u64, state: &State) -> Result<Live> {
    let (mut bytes, seed) = frame::header(&state.db_id, number);
    frame::push_record(&mut bytes, seed, 0, &record::encode_record(&state.snapshot()))?;
    let path = dir.join(manifest_name(number));
    let file = current::create_anew(vfs, &path)?;
    file.write_at(&bytes, 0).map_err(|error| Error::io("write", &path, error))?;
    file.sync_data().map_err(|error| Error::io("sync", &path, error))?;
    vfs.sync_dir(dir).map_err(|error| Error::io("sync", dir, error))?;
    let end = bytes.len() as u64;
    Ok(Live { path, file, seed, next_index: 1, end, reserved: end, snapshot_end: end })
}

/// Length of the manifest that [`Manifest::create`] writes.
fn fresh_bytes() -> u64 {
    let payload = record::encode_record(&State::new([0; 16]).snapshot());
    (frame::HEADER_BYTES + frame::RECORD_HEADER_BYTES + payload.len()) as u64
}

fn read_all(path: &Path, file: &dyn VfsFile) -> Result<Vec<u8>> {
    let len = file.len().map_err(|error| Error::io("read", path, error))?;
    let mut bytes = Vec::new();
    // A length that memory cannot hold is an error, not the end of the process.
    usize::try_from(len)
        .ok()
        .and_then(|len| bytes.try_reserve_exact(len).ok().map(|()| len))
        .map(|len| bytes.resize(len, 0))
        .ok_or_else(|| Error::io("read", path, io::ErrorKind::OutOfMemory.into()))?;
    file.read_exact_at(&mut bytes, 0).map_err(|error| Error::io("read", path, error))?;
    Ok(bytes)
}
