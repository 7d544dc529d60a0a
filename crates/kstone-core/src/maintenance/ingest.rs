//! Bulk ingest: sorted records become SST files, without passing through the log and memtables.
//!
//! The records of one ingest share one sequence number, which the manifest attaches to the files,
//! so they become visible together. The files go to the deepest level where nothing overlaps them.

use std::sync::atomic::Ordering;

use crate::batch::{VALUE_LEN_MAX, WriteBatch};
use crate::engine::compact::Claim;
use crate::engine::flush::Written;
use crate::engine::install::{Added, Change};
use crate::engine::locks::StripeGuards;
use crate::engine::{Engine, Inner};
use crate::entry::{EntryRef, Kind, Seq};
use crate::error::{Error, Result};
use crate::expiry;
use crate::key::{Key, STRIPES, internal};
use crate::sst::{SstMeta, SstWriter};
use crate::stripes::StripeSet;
use crate::sync::Arc;
use crate::table::TableId;
use crate::tree::levels::Levels;
use crate::tree::picker;

/// Expiry index entries held back in memory before they are written to files of their own.
const INDEX_BYTES_MAX: usize = 16 << 20;

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
        let inner = self.inner();
        inner.check_writable()?;
        let mut builder = Builder::new(inner);
        let built = records
            .into_iter()
            .try_for_each(|record| builder.add(&record?))
            .and_then(|()| builder.finish());
        let installed = built.and_then(|(metas, ingested)| {
            let version = if metas.is_empty() { 0 } else { inner.install_ingest(&metas)? };
            Ok(Ingested { version, ..ingested })
        });
        match installed {
            Ok(ingested) => {
                inner.counters.ingest_bytes.fetch_add(ingested.bytes, Ordering::Relaxed);
                // The ingest is done; what the background meets is met again by the next writer.
                let _ = inner.run_inline();
                Ok(ingested)
            }
            Err(error) => {
                // After a failed manifest write, the manifest may name the files after all.
                if inner.log.poisoned().is_none() {
                    builder.written.remove_all();
                }
                Err(error)
            }
        }
    }
}

impl Inner {
    /// Gives the files their sequence number and their places.
    fn install_ingest(self: &Arc<Self>, metas: &[SstMeta]) -> Result<Seq> {
        let stripes: StripeSet = metas.iter().map(|meta| meta.stripe).collect();
        // What is in memory is older than the ingest, and memory is searched first: so it must be
        // in files before. Once without the locks, so that little is left for the second time.
        self.flush_all()?;
        // A compaction may join ranges that leave a gap today, so none may be under way while the
        // files look for a gap to go to.
        let _claims: Vec<_> =
            stripes.iter().map(|stripe| Claim::wait(self, stripe)).collect::<Result<_>>()?;
        let guards = StripeGuards::lock(self, &stripes);
        self.flush_all()?;
        // Before there is a number that others would have to wait for.
        let keeper = self.manifest.lock();
        let mut nop = WriteBatch::new();
        nop.push_nop();
        let ticket = self.log.append(nop.ops(), nop.count())?;
        let seq = ticket.last_seq;
        let result = self.log.wait_durable(seq).and_then(|()| {
            let changes = stripes.iter().map(|stripe| self.place(stripe, metas, seq)).collect();
            self.install_locked(keeper, changes)
        });
        self.next_expiry.forget();
        // The number is spent either way; if the files are not there, it names nothing.
        self.log.applied(ticket);
        drop(guards);
        self.log.wait_visible(seq)?;
        result.map(|()| seq)
    }

    fn place(&self, stripe: u8, metas: &[SstMeta], seq: Seq) -> Change {
        let levels = Arc::clone(&self.stripe(stripe).version().levels);
        let add = metas
            .iter()
            .filter(|meta| meta.stripe == stripe)
            .map(|meta| {
                let level = deepest_free_level(&levels, meta, metas);
                (level, Added::New(SstMeta { global_seq: Some(seq), ..meta.clone() }))
            })
            .collect();
        Change { stripe, add, remove: Vec::new(), flushed: None }
    }
}

/// The deepest level such that neither it nor any above overlaps the file; L0 if none is.
fn deepest_free_level(levels: &Levels, meta: &SstMeta, all: &[SstMeta]) -> u8 {
    let overlaps = |smallest: &[u8], largest: &[u8]| {
        meta.largest.as_slice() >= smallest && meta.smallest.as_slice() <= largest
    };
    let overlaps_sibling = all.iter().any(|other| {
        other.stripe == meta.stripe
            && other.file_id != meta.file_id
            && overlaps(&other.smallest, &other.largest)
    });
    if overlaps_sibling {
        return 0;
    }
    let is_free = |level: usize| {
        levels.level(level).iter().all(|f| !overlaps(&f.meta().smallest, &f.meta().largest))
    };
    let bottom = levels.depth().saturating_sub(1).max(1);
    (0..=bottom).take_while(|&level| is_free(level)).last().unwrap_or(0) as u8
}

/// Distributes records over one open file a stripe.
struct Builder<'a> {
    inner: &'a Inner,
    written: Written<'a>,
    writers: Vec<Option<SstWriter>>,
    metas: Vec<SstMeta>,
    last_key: Vec<u8>,
    key: Vec<u8>,
    /// Expiry index entries: (stripe, key). They sort by time, so they go into files of their own.
    index: Vec<(u8, Vec<u8>)>,
    index_bytes: usize,
    ingested: Ingested,
}

impl<'a> Builder<'a> {
    fn new(inner: &'a Inner) -> Self {
        Builder {
            inner,
            written: Written::new(inner),
            writers: std::iter::repeat_with(|| None).take(STRIPES).collect(),
            metas: Vec::new(),
            last_key: Vec::new(),
            key: Vec::new(),
            index: Vec::new(),
            index_bytes: 0,
            ingested: Ingested::default(),
        }
    }

    fn add(&mut self, record: &IngestRecord) -> Result<()> {
        let key = &record.key;
        internal::check_len(&key.pk, key.sk.as_deref())?;
        if record.value.len() > VALUE_LEN_MAX {
            return Err(Error::ValueTooLong { len: record.value.len(), max: VALUE_LEN_MAX });
        }
        if record.table != TableId::DEFAULT {
            self.inner.tables().check(record.table)?;
        }
        self.key.clear();
        internal::encode_into(&mut self.key, record.table, &key.pk, key.sk.as_deref());
        if self.ingested.records > 0 && self.key <= self.last_key {
            return Err(Error::invalid(format!(
                "record {} (counted from 0) is not behind the one before it: ingest needs strictly \
                 ascending order of table, partition key and sort key",
                self.ingested.records
            )));
        }
        let stripe = key.stripe();
        let expires_at_ms = record.expires_at_ms.map_or(0, |at_ms| at_ms.max(1));
        if expires_at_ms != 0 {
            let entry = expiry::index_key(expires_at_ms, &self.key);
            self.index_bytes += entry.len() + 32;
            self.index.push((stripe, entry));
        }
        self.write(stripe, expires_at_ms, &record.value)?;
        std::mem::swap(&mut self.key, &mut self.last_key);
        self.ingested.records += 1;
        if self.index_bytes > INDEX_BYTES_MAX {
            self.write_index()?;
        }
        Ok(())
    }

    fn write(&mut self, stripe: u8, expires_at_ms: u64, value: &[u8]) -> Result<()> {
        let limit = picker::file_bytes_max(1, &self.inner.options.tuning);
        let Some(slot) = self.writers.get_mut(usize::from(stripe)) else { return Ok(()) };
        if slot.as_ref().is_some_and(|writer| writer.estimated_bytes() >= limit)
            && let Some(full) = slot.take()
        {
            self.metas.push(self.written.finish(full)?);
        }
        let writer = match slot {
            Some(writer) => writer,
            none => none.insert(self.inner.new_sst(stripe, true, &mut self.written)?),
        };
        let entry = EntryRef { key: &self.key, seq: 0, kind: Kind::Put, expires_at_ms, value };
        writer.add(entry)
    }

    /// Writes the index entries held back, one file for each stripe that has some.
    fn write_index(&mut self) -> Result<()> {
        let mut entries = std::mem::take(&mut self.index);
        entries.sort_unstable();
        self.index_bytes = 0;
        for group in entries.chunk_by(|a, b| a.0 == b.0) {
            let Some(&(stripe, _)) = group.first() else { continue };
            let mut writer = self.inner.new_sst(stripe, true, &mut self.written)?;
            for (_, key) in group {
                let (seq, kind) = (0, Kind::Put);
                writer.add(EntryRef { key, seq, kind, expires_at_ms: 0, value: b"" })?;
            }
            self.metas.push(self.written.finish(writer)?);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(Vec<SstMeta>, Ingested)> {
        self.write_index()?;
        for slot in &mut self.writers {
            if let Some(writer) = slot.take() {
                self.metas.push(self.written.finish(writer)?);
            }
        }
        self.written.sync()?;
        self.ingested.files = self.metas.len() as u64;
        self.ingested.bytes = self.metas.iter().map(|meta| meta.file_bytes).sum();
        Ok((std::mem::take(&mut self.metas), self.ingested))
    }
}
