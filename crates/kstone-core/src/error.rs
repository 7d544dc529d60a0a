//! What can go wrong in the engine, and what the caller can do about each.
//!
//! One enum for the whole crate. Errors are cheap to clone, because one failed sync is the answer
//! to every writer that was waiting for it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of an engine operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and (in the message) what to do about it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a file operation. Nothing acknowledged is lost; the operation
    /// may be tried again unless the database says that it is poisoned.
    #[error("{op} {}: {source}", path.display())]
    Io {
        /// What the engine was doing, as a verb: "read", "sync".
        op: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: Arc<io::Error>,
    },

    /// No room on the disk. Nothing was written; free some space and try again.
    #[error("{op} {}: no space left on the disk; nothing was written, free some space and try again", path.display())]
    DiskFull {
        /// What the engine was doing.
        op: &'static str,
        /// The file that could not grow.
        path: PathBuf,
    },

    /// A file does not hold what was written to it. The engine never skips such data in silence.
    #[error("{} is damaged at offset {offset}: {what}; {advice}", path.display())]
    Corruption {
        /// The damaged file.
        path: PathBuf,
        /// Where in the file the damage was noticed.
        offset: u64,
        /// What was expected and what was found.
        what: String,
        /// What the operator can do.
        advice: &'static str,
    },

    /// A file in the folder belongs to another database, or to another program.
    #[error("{} does not belong to this database: {what}; move it out of the folder", path.display())]
    ForeignFile {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        what: String,
    },

    /// The file was written by a version that this one cannot read.
    #[error("{} has format version {found}, this build reads up to {supported}; open it with a newer kstone", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it names.
        found: u32,
        /// The newest version this build reads.
        supported: u32,
    },

    /// Another process (or another handle in this one) has the database open.
    #[error("{} is in use by another process; close it there first (one process at a time)", path.display())]
    Locked {
        /// The database folder.
        path: PathBuf,
    },

    /// There is no database in the folder, and the options do not allow creating one.
    #[error("{} holds no KeystoneDB database", path.display())]
    NotFound {
        /// The folder.
        path: PathBuf,
    },

    /// A sync or a write of the log or the manifest failed, so the engine cannot know what is on the disk. Reads
    /// go on; writes are refused until the database is opened again.
    #[error(
        "writes are refused since an earlier failure ({cause}); reads go on; reopen the database to recover"
    )]
    Poisoned {
        /// The failure that started it.
        cause: Arc<str>,
    },

    /// The engine is shutting down.
    #[error("the database is closed")]
    Closed,

    /// Partition key and sort key together are over the limit. Nothing was written.
    #[error("key of {len} bytes is over the limit of {max} (partition key and sort key together)")]
    KeyTooLong {
        /// Length of partition key plus sort key.
        len: usize,
        /// The limit.
        max: usize,
    },

    /// The value is over the limit. Nothing was written.
    #[error("value of {len} bytes is over the limit of {max}; split it into several records")]
    ValueTooLong {
        /// Length of the value.
        len: usize,
        /// The limit.
        max: usize,
    },

    /// The batch is over the limit. Nothing was written.
    #[error("batch of {len} bytes is over the limit of {max}; split it, or use bulk ingest")]
    BatchTooLarge {
        /// Encoded length of the batch.
        len: usize,
        /// The limit.
        max: usize,
    },

    /// The table id was never created, or was dropped. Ids are not reused.
    #[error("there is no table with id {id}: it was never created, or it was dropped")]
    NoSuchTable {
        /// The id.
        id: u32,
    },

    /// A write touches a stripe that the transaction did not lock. Nothing was written.
    #[error("the write touches stripe {stripe}, which the transaction did not lock")]
    StripeNotLocked {
        /// The stripe.
        stripe: u8,
    },

    /// The snapshot was ended, by `purge` or because the database closed.
    #[error("the snapshot was ended by a purge; take a new one")]
    SnapshotEnded,

    /// Purge cannot go on while readers still see what is to be removed.
    #[error(
        "{count} snapshot(s) still see what is to be purged; drop them, or purge with EndSnapshots"
    )]
    SnapshotsInTheWay {
        /// How many.
        count: usize,
    },

    /// An option, an argument or the order of the input makes no sense.
    #[error("{what}")]
    Invalid {
        /// Which one, and what is accepted.
        what: String,
    },
}

impl Error {
    /// Wraps an operating-system error with what was being done to which file.
    pub fn io(op: &'static str, path: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::StorageFull {
            return Error::DiskFull { op, path: path.to_owned() };
        }
        Error::Io { op, path: path.to_owned(), source: Arc::new(source) }
    }

    /// Damage in `path` at `offset`, with the usual advice.
    pub fn corruption(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption {
            path: path.to_owned(),
            offset,
            what: what.into(),
            advice: "run `kstone verify` on the folder and restore the file from a checkpoint or backup",
        }
    }

    /// An argument that makes no sense.
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::Invalid { what: what.into() }
    }
}
