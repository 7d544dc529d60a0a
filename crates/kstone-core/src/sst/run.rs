//! A sequence of finished data blocks not yet written to a file, passed between ingest threads.
//!
//! Building a block needs the entries in order and takes little time; compressing and writing it
//! takes most of the time and needs only the block. A [`Run`] is a few blocks of one stripe with all
//! that their file must know of them, so that the thread that writes it looks at no entry again.
//!
//! Pure bytes; ingest fills a [`RunBuilder`] for each stripe, [`SstAssembly`](super::SstAssembly)
//! takes the runs.

use super::SstOptions;
use super::block::BlockBuilder;
use super::filter::key_hash;
use super::footer::Properties;
use crate::entry::EntryRef;

/// Some blocks, one behind the other. Their keys are distinct and ascend; their sequence numbers
/// are 0: those of an ingest are told by the manifest.
#[derive(Debug, Default)]
pub(crate) struct Run {
    payloads: Vec<u8>,
    /// First and last key of each block.
    keys: Vec<u8>,
    ends: Vec<Ends>,
    hashes: Vec<u64>,
    /// Without the bounds.
    properties: Properties,
}

/// Where what belongs to a block ends.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    payload: usize,
    first_key: usize,
    last_key: usize,
}

/// A block of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunBlock<'a> {
    pub(super) payload: &'a [u8],
    pub(super) first_key: &'a [u8],
    pub(super) last_key: &'a [u8],
}

impl Run {
    pub(super) fn blocks(&self) -> impl Iterator<Item = RunBlock<'_>> {
        let mut start = Ends::default();
        self.ends.iter().map(move |&end| {
            let payload = self.payloads.get(start.payload..end.payload).unwrap_or_default();
            let first_key = self.keys.get(start.last_key..end.first_key).unwrap_or_default();
            let last_key = self.keys.get(end.first_key..end.last_key).unwrap_or_default();
            start = end;
            RunBlock { payload, first_key, last_key }
        })
    }

    pub(super) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    pub(super) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// About how much memory it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.payloads.len() + self.keys.len() + self.hashes.len() * size_of::<u64>()
    }

    /// Empty again, but for the memory.
    pub(crate) fn clear(&mut self) {
        self.payloads.clear();
        self.keys.clear();
        self.ends.clear();
        self.hashes.clear();
        self.properties = Properties::default();
    }
}

/// Makes the runs of one stripe.
#[derive(Debug)]
pub(crate) struct RunBuilder {
    block_bytes: usize,
    with_hashes: bool,
    block: BlockBuilder,
    run: Run,
}

impl RunBuilder {
    pub(crate) fn new(options: &SstOptions) -> Self {
        RunBuilder {
            block_bytes: options.block_bytes,
            with_hashes: options.filter_bits_per_key > 0,
            block: BlockBuilder::new(options.restart_interval),
            run: Run::default(),
        }
    }

    /// Whether the entry begins a new block. Then [`end_block`](Self::end_block) is due before it
    /// is added.
    #[inline]
    pub(crate) fn is_full_for(&self, entry: &EntryRef<'_>, common: usize) -> bool {
        !self.block.is_empty() && self.block.exceeds_with(entry, common, self.block_bytes)
    }

    /// Appends an entry, which is behind the one before; `common` is how many bytes the two keys
    /// begin with in common.
    #[inline]
    pub(crate) fn add(&mut self, entry: &EntryRef<'_>, common: usize) {
        if self.block.is_empty() {
            self.run.keys.extend_from_slice(entry.key);
            let first_key = self.run.keys.len();
            self.run.ends.push(Ends { first_key, ..Ends::default() });
        }
        self.block.add(entry, common);
        self.run.properties.count(entry, true);
        if self.with_hashes {
            self.run.hashes.push(key_hash(entry.key));
        }
    }

    /// Ends the block, if one is begun; `last_key` is that of the entry added last.
    pub(crate) fn end_block(&mut self, last_key: &[u8]) {
        if self.block.is_empty() {
            return;
        }
        let Run { payloads, keys, ends, .. } = &mut self.run;
        payloads.extend_from_slice(self.block.finish());
        self.block.clear();
        keys.extend_from_slice(last_key);
        if let Some(end) = ends.last_mut() {
            end.payload = payloads.len();
            end.last_key = keys.len();
        }
    }

    /// Bytes of the ended blocks.
    #[inline]
    pub(crate) fn payload_bytes(&self) -> usize {
        self.run.payloads.len()
    }

    /// The ended blocks; no block is begun. `spare` takes their place.
    pub(crate) fn take(&mut self, spare: Run) -> Run {
        std::mem::replace(&mut self.run, spare)
    }
}
