//! Removing the bytes of deleted items from every file of a store.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::value::{Item, ItemRef, Value};

/// What [`Items::purge`](crate::items::Items::purge) removes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PurgeItems {
    /// Tables with the keys of single items.
    pub items: Vec<(String, Item)>,
    /// Tables with values of the partition key: all items of these partitions.
    pub partitions: Vec<(String, Value)>,
    /// Whether the bytes of everything that nobody can read any more go too: of items and of keys of
    /// Redis that were deleted, changed or expired at any time before, and of indexes and tables
    /// that were dropped. Rewrites all files.
    pub remains: bool,
    /// Which records of change streams go too, of whatever items.
    pub stream_images: Option<StreamImageFilter>,
}

/// Decides for each image in a change stream whether its record is removed.
#[derive(Clone)]
pub struct StreamImageFilter(pub Arc<dyn Fn(&StreamImage<'_>) -> bool + Send + Sync>);

/// An item as a change stream's record shows it.
#[derive(Debug, Clone, Copy)]
pub struct StreamImage<'t> {
    /// The table's name.
    pub table: &'t str,
    /// The partition key's bytes: of a string its text, of a number its decimal digits.
    pub pk: &'t [u8],
    /// The sort key's bytes, if the table has one.
    pub sk: Option<&'t [u8]>,
    /// The item as it was or as it became, or only its key.
    pub image: ItemRef<'t>,
}

impl Debug for StreamImageFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamImageFilter")
    }
}

impl PartialEq for StreamImageFilter {
    fn eq(&self, other: &StreamImageFilter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What a purge did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// How many stored records were deleted: items, index entries, stream records.
    pub records: u64,
    /// How many stripes were rewritten.
    pub stripes: u64,
    /// How many checkpoints were purged.
    pub checkpoints: u64,
    /// Checkpoints that were made from this database and are not where they were made. If they were
    /// moved and not deleted, they have to be purged where they are.
    pub missing_checkpoints: Vec<PathBuf>,
    /// The database's sequence number of the first delete.
    pub first_seq: u64,
    /// The database's sequence number of the last one.
    pub last_seq: u64,
    /// Bytes of files that were read to rewrite them, without the checkpoints'.
    pub read_bytes: u64,
    /// How long the files took.
    pub took: Duration,
}
