//! Sorted-string tables: the immutable files in which a stripe keeps what left its memtable.
//!
//! A flush or a compaction feeds entries in order to an [`SstWriter`]; readers ask an
//! [`SstReader`] for one key, or walk it with an [`SstCursor`]. Files are shared by many readers
//! and never change, so the blocks they consist of are kept in memory as one [`BlockCache`] allows, and
//! the open files in one bounded [`FileHandles`], for the whole database.
//!
//! ```text
//! data block 0 | data block 1 | … | filter | index | properties | footer
//! ```
//!
//! A large file (version 2) has filter and index in parts that are found by a *directory* and a *top*, so
//! that a get reads, and keeps in memory, only the parts that it needs (until they are worth [`join`]ing):
//!
//! ```text
//! data blocks | pieces of the filter | parts of the index | directory | top | properties | footer
//! ```
//!
//! Integers are little-endian throughout. Every part but the footer is a *frame* ([`frame`]): a
//! payload, possibly compressed, and its checksum. The parts lie back to back, so that no byte of
//! the file is outside some checksum. Each checksum is also kept by the part that points there
//! (the index for data blocks, directory and top for pieces and parts, the footer for the other three,
//! the manifest for the footer): a read that was misdirected to another, internally valid place is caught.
//!
//! | part | owner of the bytes |
//! |---|---|
//! | frame | [`frame`] |
//! | data block | [`block`] |
//! | index, its parts and top | [`index`] |
//! | filter | [`filter`] |
//! | filter's pieces and directory | [`filter_parts`] |
//! | properties, footer | [`footer`] |
//!
//! This module calls `env` (files) and `codec`; it knows nothing of levels, snapshots or the log.

mod assembly;
mod block;
mod block_buffer;
mod block_cursor;
mod cache;
mod cursor;
mod filter;
mod filter_parts;
mod footer;
mod frame;
mod handles;
mod hints;
mod hot_part;
mod index;
mod index_walk;
mod indexed;
mod join;
#[cfg(test)]
mod parts_tests;
mod read_ahead;
mod reader;
mod run;
mod shortcuts;
mod slots;
mod stats;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

pub(crate) use assembly::{FrameBuffer, SstAssembly};
pub(crate) use block::common_prefix_len;
pub(crate) use cache::BlockCache;
pub(crate) use cursor::SstCursor;
pub(crate) use filter::key_hash;
pub(crate) use handles::FileHandles;
pub(crate) use join::JoinRequest;
pub(crate) use reader::{SstHit, SstReader, open_standalone};
pub(crate) use run::{Run, RunBuilder};
pub(crate) use writer::SstWriter;
#[cfg(feature = "fuzzing")]
pub(crate) use {
    block::check_block,
    filter::check_filter,
    filter_parts::check_directory,
    footer::{check_properties, parse_footer},
    frame::check_frame,
    index::check_index,
};

use crate::entry::Seq;

/// Names an SST. Ids are unique in the whole database, across stripes, and never used twice.
pub(crate) type FileId = u64;

/// How the data blocks of a file are compressed. A block that compression does not make at least
/// an eighth smaller is stored as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4: nearly free to read.
    Lz4,
    /// Zstandard: smaller, slower to read; for data that is seldom read.
    Zstd {
        /// From 1 (quickest) to 19 (smallest).
        level: i32,
    },
}

/// How a file is laid out. Readers need none of this: the file says it all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SstOptions {
    /// Uncompressed size that a data block does not exceed unless a single entry does.
    ///
    /// 4 KiB: a smaller block means more index entries in memory, a larger one more bytes read,
    /// decompressed and kept for every cold get.
    pub(crate) block_bytes: usize,
    /// Every how many entries a key is written in full. A get reads half of these on average.
    pub(crate) restart_interval: usize,
    pub(crate) compression: Compression,
    /// 0 leaves the filter out.
    pub(crate) filter_bits_per_key: u32,
    /// A file whose filter or index is longer has both in parts.
    pub(crate) parts_beyond_bytes: usize,
}

/// 32 KiB, some 500 blocks. Smaller: files that are small anyway are asked in one more step, for each
/// of filter and index, and pay for that whenever they are in memory; larger: a get that reads them when
/// they are not reads so much for one key, and throws as much out.
pub(crate) const PARTS_BEYOND_BYTES: usize = 32 << 10;

impl Default for SstOptions {
    fn default() -> Self {
        SstOptions {
            block_bytes: 4096,
            restart_interval: 16,
            compression: Compression::Lz4,
            filter_bits_per_key: 14,
            parts_beyond_bytes: PARTS_BEYOND_BYTES,
        }
    }
}

/// What a file is called and whose it is; written into its footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdent {
    pub(crate) db_id: [u8; 16],
    pub(crate) stripe: u8,
    pub(crate) file_id: FileId,
}

/// What the engine knows about a live file without opening it; the manifest keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SstMeta {
    pub(crate) stripe: u8,
    pub(crate) file_id: FileId,
    pub(crate) file_bytes: u64,
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
    /// Of the sequence numbers in the file's bytes; `global_seq` overrides them for readers.
    pub(crate) min_seq: Seq,
    pub(crate) max_seq: Seq,
    pub(crate) entries: u64,
    pub(crate) puts: u64,
    pub(crate) deletes: u64,
    pub(crate) marks: u64,
    /// The newest `DropPartition` entry; 0 if there is none.
    pub(crate) max_mark_seq: Seq,
    /// Puts that have an expiry.
    pub(crate) expiring: u64,
    /// Uncompressed key bytes, each version counted.
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
    /// The checksum inside the footer: the root of the file's tree of checksums.
    pub(crate) footer_checksum: u64,
    /// For ingested files: every entry is reported with this sequence number instead of its own.
    /// The keys of such a file are distinct.
    pub(crate) global_seq: Option<Seq>,
}

impl SstMeta {
    /// The newest sequence number that readers find in the file.
    pub(crate) fn newest_seq(&self) -> Seq {
        self.global_seq.unwrap_or(self.max_seq)
    }
}

/// The file's name inside the database folder.
pub(crate) fn file_name(stripe: u8, id: FileId) -> String {
    format!("{stripe:03}-{id}.sst")
}

/// The inverse of [`file_name`]; `None` for anything that it would not have produced.
pub(crate) fn parse_file_name(name: &str) -> Option<(u8, FileId)> {
    let (stripe, id) = name.strip_suffix(".sst")?.split_once('-')?;
    let (stripe, id) = (stripe.parse().ok()?, id.parse().ok()?);
    (file_name(stripe, id) == name).then_some((stripe, id))
}
