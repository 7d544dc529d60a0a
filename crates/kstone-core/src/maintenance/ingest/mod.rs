//! Bulk ingest: sorted records become SST files, without passing through the log and memtables.
//!
//! The records of one ingest share one sequence number, which the manifest attaches to the files,
//! so they become visible together. The files go to the deepest level where nothing overlaps them.
//!
//! This file checks records and makes blocks of them, a run of blocks for each stripe; [`file_writers`]
//! compresses and writes the runs, on other threads if there are any; [`install`] adds the files to
//! the trees.

mod file_writers;
mod install;

use std::sync::atomic::Ordering;

use crate::batch::VALUE_LEN_MAX;
use crate::engine::Engine;
use crate::entry::{EntryRef, Kind, Seq};
use crate::error::{Error, Result};
use crate::expiry;
use crate::key::{Key, KeyRef, STRIPES, internal, stripe_of};
use crate::sst::{Run, RunBuilder, SstMeta, SstOptions, common_prefix_len};
use crate::table::TableId;
use crate::tree::picker;
use file_writers::FileWriters;

/// Expiry index entries held back in memory before they are written to files of their own.
const INDEX_BYTES_MAX: usize = 16 << 20;

/// Blocks that are handed on together. There may be so many bytes for each of the 256 stripes, so
/// not more; not fewer, because each run is a write of its own, compressed.
const RUN_BYTES: usize = 48 << 10;

/// One record to ingest.
#[derive(Debug, Clone)]
pub struct IngestRecord {
    /// The table.
    pub table: TableId,
    /// The key.
    pub key: Key,
    /// The value.
    pub value: bytes::Bytes,
    /// From when on (milliseconds since 1970) the record counts as absent.
    pub expires_at_ms: Option<u64>,
}

/// What an ingest did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ingested {
    /// Records.
    pub records: u64,
    /// Files made.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// The sequence number that all records have.
    pub version: Seq,
}

impl Engine {
    /// Ingests records that come in strictly ascending order of (table, key). They become visible
    /// and durable together, when this returns, and replace what was under their keys. On any
    /// error nothing of them is there.
    pub fn ingest(
        &self,
        records: impl IntoIterator<Item = Result<IngestRecord>>,
    ) -> Result<Ingested> {
        let mut ingester = self.ingester()?;
        for record in records {
            let IngestRecord { table, key, value, expires_at_ms } = &record?;
            ingester.add(*table, key, value, *expires_at_ms)?;
        }
        ingester.finish()
    }

    /// Begins an ingest whose records are given one at a time, and need not be owned.
    ///
    /// ```
    /// use kstone_core::{Engine, KeyRef, Options, TableId};
    ///
    /// let engine = Engine::memory(Options::default())?;
    /// let mut ingester = engine.ingester()?;
    /// ingester.add(TableId::DEFAULT, KeyRef::with_sk(b"user#1", b"post#1"), b"first", None)?;
    /// ingester.add(TableId::DEFAULT, KeyRef::with_sk(b"user#1", b"post#2"), b"second", None)?;
    /// assert_eq!(ingester.finish()?.records, 2);
    /// # Ok::<(), kstone_core::Error>(())
    /// ```
    pub fn ingester(&self) -> Result<Ingester> {
        self.inner().check_writable()?;
        Ingester::new(self)
    }
}

/// An ingest under way. Nothing of it is there before [`finish`](Self::finish) has returned, and
/// nothing is left of one that is dropped or fails.
#[derive(Debug)]
pub struct Ingester {
    engine: Engine,
    options: SstOptions,
    run_bytes: usize,
    writing: FileWriters,
    /// By stripe; `None` if it had no record yet.
    stripes: Vec<Option<Box<Stripe>>>,
    /// Of the latest record: its stored key, its table, partition key and stripe, and, if it has a
    /// sort key, where that begins in the stored key.
    last_key: Vec<u8>,
    table: TableId,
    pk: Vec<u8>,
    stripe: u8,
    partition: Option<usize>,
    /// The stored key of the record at hand.
    key: Vec<u8>,
    /// Expiry index entries: (stripe, key). They sort by time, so they go into files of their own.
    index: Vec<(u8, Vec<u8>)>,
    index_bytes: usize,
    index_files: Vec<SstMeta>,
    /// Whose records there are, beside the default table's.
    tables: Vec<TableId>,
    records: u64,
    is_installed: bool,
}

/// The blocks of one stripe.
#[derive(Debug)]
struct Stripe {
    runs: RunBuilder,
    /// The stripe's latest key, while the ingester's latest is that of another stripe.
    last_key: Vec<u8>,
}

impl Ingester {
    fn new(engine: &Engine) -> Result<Self> {
        let inner = engine.inner();
        let file_bytes = picker::file_bytes_max(1, &inner.options.tuning);
        Ok(Ingester {
            engine: engine.clone(),
            options: inner.sst_options(true),
            // Whether a file is full is checked after a whole run only.
            run_bytes: RUN_BYTES.min((file_bytes / 8) as usize),
            writing: FileWriters::new(inner)?,
            stripes: std::iter::repeat_with(|| None).take(STRIPES).collect(),
            last_key: Vec::new(),
            table: TableId::DEFAULT,
            pk: Vec::new(),
            stripe: 0,
            partition: None,
            key: Vec::new(),
            index: Vec::new(),
            index_bytes: 0,
            index_files: Vec::new(),
            tables: Vec::new(),
            records: 0,
            is_installed: false,
        })
    }

    /// Adds a record, which must be behind the one before in the order of (table, key). One that is
    /// refused is left out; after an error of the disk, every call fails.
    pub fn add<'k>(
        &mut self,
        table: TableId,
        key: impl Into<KeyRef<'k>>,
        value: &[u8],
        expires_at_ms: Option<u64>,
    ) -> Result<()> {
        let key = key.into();
        internal::check_len(key.pk, key.sk)?;
        if value.len() > VALUE_LEN_MAX {
            return Err(Error::ValueTooLong { len: value.len(), max: VALUE_LEN_MAX });
        }
        if table != self.table {
            self.engine.inner().tables().check(table)?;
            self.tables.push(table);
        }
        self.key.clear();
        // Records of one partition follow each other: what they share is known.
        let partition = self.partition.filter(|_| table == self.table && key.pk == self.pk);
        let common = match (partition, key.sk) {
            (Some(len), Some(sk)) => {
                let (shared, last_sk) = self.last_key.split_at_checked(len).unwrap_or_default();
                self.key.extend_from_slice(shared);
                self.key.extend_from_slice(sk);
                len + common_prefix_len(last_sk, sk)
            }
            _ => {
                internal::encode_into(&mut self.key, table, key.pk, key.sk);
                common_prefix_len(&self.last_key, &self.key)
            }
        };
        // Both end in the common part, or the last one goes on there, or with a higher byte.
        if self.last_key.get(common) >= self.key.get(common) {
            return Err(Error::invalid(format!(
                "record {} (counted from 0) is not behind the one before it: ingest needs strictly \
                 ascending order of table, partition key and sort key",
                self.records
            )));
        }
        let stripe = if partition.is_some() { self.stripe } else { stripe_of(key.pk) };
        let expires_at_ms = expires_at_ms.map_or(0, |at_ms| at_ms.max(1));
        if expires_at_ms != 0 {
            self.add_to_index(stripe, expires_at_ms)?;
        }
        let common = if stripe == self.stripe { common } else { self.turn_to(stripe) };
        self.write(common, expires_at_ms, value)?;
        if partition.is_none() {
            self.table = table;
            self.pk.clear();
            self.pk.extend_from_slice(key.pk);
            self.partition = key.sk.map(|sk| self.key.len() - sk.len());
        }
        std::mem::swap(&mut self.key, &mut self.last_key);
        self.records += 1;
        Ok(())
    }

    /// Makes all records visible and durable.
    pub fn finish(mut self) -> Result<Ingested> {
        self.write_index()?;
        let (last_stripe, last_key) = (usize::from(self.stripe), &mut self.last_key);
        if let Some(Some(stripe)) = self.stripes.get_mut(last_stripe) {
            std::mem::swap(&mut stripe.last_key, last_key);
        }
        for (number, slot) in self.stripes.iter_mut().enumerate() {
            if let Some(mut stripe) = slot.take() {
                stripe.runs.end_block(&stripe.last_key);
                self.writing.append(number as u8, stripe.runs.take(Run::default()))?;
            }
        }
        let mut metas = std::mem::take(&mut self.index_files);
        metas.append(&mut self.writing.finish()?);
        self.writing.written().sync()?;
        let inner = self.engine.inner();
        // Dropped meanwhile: the records would be nowhere to be seen.
        let tables = inner.tables();
        self.tables.iter().try_for_each(|&table| tables.check(table))?;
        let version = if metas.is_empty() { 0 } else { inner.install_ingest(&metas)? };
        self.is_installed = true;
        let bytes = metas.iter().map(|meta| meta.file_bytes).sum();
        inner.counters.ingest_bytes.fetch_add(bytes, Ordering::Relaxed);
        // The ingest is done; what the background meets is met again by the next writer.
        let _ = inner.run_inline();
        Ok(Ingested { records: self.records, files: metas.len() as u64, bytes, version })
    }

    /// Makes `stripe` the latest, with its own latest key, which the caller is about to replace;
    /// answers how much of that the key at hand begins with.
    fn turn_to(&mut self, stripe: u8) -> usize {
        for number in [self.stripe, stripe] {
            match self.stripes.get_mut(usize::from(number)) {
                Some(Some(stripe)) => std::mem::swap(&mut stripe.last_key, &mut self.last_key),
                _ => self.last_key.clear(),
            }
        }
        self.stripe = stripe;
        common_prefix_len(&self.last_key, &self.key)
    }

    /// Takes the record at hand into the blocks of its stripe.
    fn write(&mut self, common: usize, expires_at_ms: u64, value: &[u8]) -> Result<()> {
        let Some(slot) = self.stripes.get_mut(usize::from(self.stripe)) else { return Ok(()) };
        let stripe = match slot {
            Some(stripe) => stripe,
            none => {
                self.writing.name_first_file(self.stripe);
                let runs = RunBuilder::new(&self.options);
                none.insert(Box::new(Stripe { runs, last_key: Vec::new() }))
            }
        };
        let runs = &mut stripe.runs;
        let entry = EntryRef { key: &self.key, seq: 0, kind: Kind::Put, expires_at_ms, value };
        if runs.is_full_for(&entry, common) {
            runs.end_block(&self.last_key);
            if runs.payload_bytes() >= self.run_bytes {
                let run = runs.take(self.writing.spare_run());
                // Not before there is a whole run: most ingests are too small for threads.
                self.writing.start_threads();
                self.writing.append(self.stripe, run)?;
            }
        }
        runs.add(&entry, common);
        Ok(())
    }

    /// Notes when the record at hand expires.
    fn add_to_index(&mut self, stripe: u8, expires_at_ms: u64) -> Result<()> {
        if self.index_bytes > INDEX_BYTES_MAX {
            self.write_index()?;
        }
        let entry = expiry::index_key(expires_at_ms, &self.key);
        self.index_bytes += entry.len() + 32;
        self.index.push((stripe, entry));
        Ok(())
    }

    /// Writes the index entries held back, one file for each stripe that has some.
    fn write_index(&mut self) -> Result<()> {
        let mut entries = std::mem::take(&mut self.index);
        entries.sort_unstable();
        self.index_bytes = 0;
        for group in entries.chunk_by(|a, b| a.0 == b.0) {
            let Some(&(stripe, _)) = group.first() else { continue };
            // The entries are no longer held back: without them no ingest may succeed.
            let written = self.write_index_file(stripe, group);
            self.index_files.push(written.inspect_err(|error| self.writing.fail(error))?);
        }
        Ok(())
    }

    fn write_index_file(&self, stripe: u8, entries: &[(u8, Vec<u8>)]) -> Result<SstMeta> {
        let mut writer = self.engine.inner().new_sst(stripe, true, &mut self.writing.written())?;
        for (_, key) in entries {
            let (seq, kind) = (0, Kind::Put);
            writer.add(EntryRef { key, seq, kind, expires_at_ms: 0, value: b"" })?;
        }
        self.writing.written().finish(writer)
    }
}

impl Drop for Ingester {
    fn drop(&mut self) {
        self.writing.end();
        // After a failed manifest write, the manifest may name the files after all.
        if !self.is_installed && self.engine.inner().log.poisoned().is_none() {
            self.writing.written().remove_all();
        }
    }
}
