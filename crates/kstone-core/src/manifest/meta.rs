//! What the manifest keeps about one SST file.

use crate::entry::Seq;

/// Names an SST file. Unique over all stripes, never used twice.
pub(crate) type FileId = u64;

/// One live SST file: enough to decide whether to read it without opening it, and to prove, when
/// it is opened, that it is the file that was installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileMeta {
    pub(crate) stripe: u8,
    pub(crate) file_id: FileId,
    pub(crate) file_bytes: u64,
    /// Lowest stored key.
    pub(crate) smallest: Vec<u8>,
    /// Highest stored key, inclusive.
    pub(crate) largest: Vec<u8>,
    pub(crate) min_seq: Seq,
    pub(crate) max_seq: Seq,
    pub(crate) entries: u64,
    pub(crate) puts: u64,
    pub(crate) deletes: u64,
    /// Partition drop marks.
    pub(crate) marks: u64,
    pub(crate) max_mark_seq: Seq,
    /// Puts that carry an expiry.
    pub(crate) expiring: u64,
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
    pub(crate) footer_checksum: u64,
    /// The sequence number that every entry of an ingested file counts as.
    pub(crate) global_seq: Option<Seq>,
}
