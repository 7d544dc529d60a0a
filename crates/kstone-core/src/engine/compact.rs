//! Merges files of one stripe into fewer, and leaves out what no reader can see.

use std::sync::atomic::Ordering;

use crate::bugs::{self, Bug};
use crate::engine::Inner;
use crate::engine::flush::Written;
use crate::engine::install::{Added, Change};
use crate::engine::reclaim;
use crate::entry::{EntryRef, Kind, Seq};
use crate::error::{Error, Result};
use crate::key::internal;
use crate::sst::SstWriter;
use crate::stripes::StripeSet;
use crate::sync::Arc;
use crate::tree::cursor::{Cursor, RunCursor};
use crate::tree::file::TreeFile;
use crate::tree::levels::Levels;
use crate::tree::merge::Merge;
use crate::tree::picker::{self, Task};
use crate::tree::retain::{Retain, Verdict};

/// How many stripes a merge of whole stripes syncs and installs together.
const STRIPES_A_SYNC: usize = 16;

/// How many looks at a filter take as long as merging one entry.
const EXTRA_FILES_AN_ENTRY: u64 = 3;
/// A step that merges for readers ends here, or here: compactions that writers wait for come after it.
const ENTRIES_A_STEP: u64 = 1 << 16;
const BYTES_A_STEP: u64 = 64 << 20;

/// Shows that the caller is the one that compacts the stripe.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    inner: &'a Inner,
    stripe: u8,
}

/// What a merge has to read.
struct MergeSize {
    entries: u64,
    bytes: u64,
}

impl<'a> Claim<'a> {
    pub(crate) fn take(inner: &'a Inner, stripe: u8) -> Option<Self> {
        let taken = inner.stripe(stripe).compacting.swap(true, Ordering::AcqRel);
        // Lazily: a claim that is made and dropped would end the one that is held.
        (!taken).then(|| Claim { inner, stripe })
    }

    /// Waits for a compaction that is under way.
    pub(crate) fn wait(inner: &'a Inner, stripe: u8) -> Result<Self> {
        loop {
            if let Some(claim) = Claim::take(inner, stripe) {
                return Ok(claim);
            }
            inner.background.wait_for_step();
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.inner.stripe(self.stripe).compacting.store(false, Ordering::Release);
    }
}

impl Inner {
    /// Carries out the compaction that the stripe needs most; answers whether there was one.
    pub(crate) fn compact_due(&self, stripe: u8) -> Result<bool> {
        let Some(_claim) = Claim::take(self, stripe) else { return Ok(false) };
        let levels = Arc::clone(&self.stripe(stripe).version().levels);
        let Some(task) = picker::pick(&levels, &self.options.tuning) else { return Ok(false) };
        self.compact(stripe, &levels, &task)?;
        Ok(true)
    }

    /// Merges every stripe into its last level.
    pub(crate) fn compact_all(&self) -> Result<()> {
        self.compact_whole(&StripeSet::ALL, false)
    }

    /// Merges whole stripes into their last level, several at a time, so that they share syncs.
    /// Unless `force`d, leaves alone a stripe that is one run without anything to drop.
    pub(crate) fn compact_whole(&self, stripes: &StripeSet, force: bool) -> Result<()> {
        let stripes: Vec<u8> = stripes.iter().collect();
        stripes.chunks(STRIPES_A_SYNC).try_for_each(|group| self.compact_group(group, force))
    }

    fn compact_group(&self, stripes: &[u8], force: bool) -> Result<()> {
        // Ascending, as everybody who waits for more than one claim.
        let claims: Vec<_> =
            stripes.iter().map(|&stripe| Claim::wait(self, stripe)).collect::<Result<_>>()?;
        let dropped = self.reclaimable_tables();
        self.compact_together(&claims, |levels| {
            let task = picker::everything(levels)?;
            let one_run = task.inputs.iter().all(|(level, _)| *level == task.output_level);
            let garbage = task.inputs.iter().any(|(_, f)| f.meta().deletes + f.meta().marks > 0);
            let dropped = task.inputs.iter().any(|(_, file)| reclaim::touches(file, &dropped));
            (force || !one_run || garbage || dropped).then_some(task)
        })
    }

    /// Merges L0 for the sake of readers; answers whether there was a stripe where that is due.
    ///
    /// It is where readers have spent more on doing without than it costs: whatever they read next,
    /// merging now and then has then cost no more than twice what the best foresight would have. And it
    /// is, whether anybody reads or not, where nobody writes and L0 is no smaller than L1: what was
    /// loaded is then merged at a time when no writer wants the processors and the disk. It costs at most two
    /// bytes for each that was flushed, so that a database which is written to now and then does not
    /// write all of L1 anew each time.
    pub(crate) fn compact_for_readers(&self) -> Result<bool> {
        let mut claims = Vec::new();
        let (mut entries, mut bytes) = (0, 0);
        for (stripe, merge) in self.merges_for_readers() {
            if let Some(claim) = Claim::take(self, stripe) {
                claims.push(claim);
                entries += merge.entries;
                bytes += merge.bytes;
            }
            let is_long = entries >= ENTRIES_A_STEP || bytes >= BYTES_A_STEP;
            if is_long || claims.len() >= STRIPES_A_SYNC {
                break;
            }
        }
        match self.compact_together(&claims, picker::l0) {
            Err(error) if !self.ends_work(&error) => {
                // One of them has damaged files, or all meet a full disk: each for itself.
                for claim in &claims {
                    let merged = self.compact_together(std::slice::from_ref(claim), picker::l0);
                    self.put_off_if_failed(claim.stripe, merged.map(|()| true))?;
                }
                Ok(true)
            }
            result => {
                result?;
                for claim in &claims {
                    self.put_off_if_failed(claim.stripe, Ok(true))?;
                }
                Ok(!claims.is_empty())
            }
        }
    }

    pub(crate) fn has_merges_for_readers(&self) -> bool {
        self.merges_for_readers().next().is_some()
    }

    /// The stripes where a merge for readers is due, and how large it is.
    fn merges_for_readers(&self) -> impl Iterator<Item = (u8, MergeSize)> {
        let put_off = self.put_off_stripes_at_rest();
        let is_at_rest = self.is_at_rest();
        (0..=255u8).filter(move |&stripe| !put_off.contains(stripe)).filter_map(move |stripe| {
            let tree = self.stripe(stripe);
            let levels = Arc::clone(&tree.version().levels);
            let files = || (0..2).flat_map(|n| levels.level(n));
            let entries = files().map(|file| file.meta().entries).sum::<u64>();
            let have_paid =
                || tree.stats.extra_files.load(Ordering::Relaxed) >= entries * EXTRA_FILES_AN_ENTRY;
            let is_due = levels.extra_files() > 0
                && (is_at_rest && levels.level_bytes(0) >= levels.level_bytes(1) || have_paid());
            is_due.then(|| {
                let bytes = files().map(|file| file.meta().file_bytes).sum();
                (stripe, MergeSize { entries, bytes })
            })
        })
    }

    /// Carries out one merge for each claimed stripe. They share their syncs.
    fn compact_together(
        &self,
        claims: &[Claim<'_>],
        pick: impl Fn(&Levels) -> Option<Task>,
    ) -> Result<()> {
        let mut written = Written::new(self);
        let merge = |claim: &Claim<'_>| -> Result<Option<Change>> {
            let stripe = claim.stripe;
            if self.background.is_closed() {
                return Err(Error::Closed);
            }
            self.readers_have_paid(stripe);
            let levels = Arc::clone(&self.stripe(stripe).version().levels);
            let Some(task) = pick(&levels) else { return Ok(None) };
            let add = self.merge(stripe, &levels, &task, &mut written)?;
            Ok(Some(Change { stripe, add, remove: task.inputs, flushed: None }))
        };
        let merged: Result<Vec<Change>> =
            claims.iter().map(merge).filter_map(Result::transpose).collect();
        match merged.and_then(|changes| written.sync().map(|()| changes)) {
            Ok(changes) if changes.is_empty() => Ok(()),
            Ok(changes) => {
                let merged = changes.len() as u64;
                self.install(changes)?;
                self.counters.compactions.fetch_add(merged, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                written.remove_all();
                Err(error)
            }
        }
    }

    /// A merge begins: what readers have spent until now does not count for the next one.
    fn readers_have_paid(&self, stripe: u8) {
        self.stripe(stripe).stats.extra_files.store(0, Ordering::Relaxed);
    }

    pub(crate) fn compact(&self, stripe: u8, levels: &Levels, task: &Task) -> Result<()> {
        if task.inputs.iter().any(|(level, _)| *level == 0) {
            self.readers_have_paid(stripe);
        }
        if task.is_move {
            self.counters.compaction_moves.fetch_add(1, Ordering::Relaxed);
            let moved = task.inputs.iter().map(|(_, file)| Added::Moved(Arc::clone(file)));
            let add = moved.map(|added| (task.output_level, added)).collect();
            return self.install(vec![Change {
                stripe,
                add,
                remove: task.inputs.clone(),
                flushed: None,
            }]);
        }
        let mut written = Written::new(self);
        let merged = self
            .merge(stripe, levels, task, &mut written)
            .and_then(|add| written.sync().map(|()| add));
        match merged {
            Ok(add) => {
                self.install(vec![Change {
                    stripe,
                    add,
                    remove: task.inputs.clone(),
                    flushed: None,
                }])?;
                self.counters.compactions.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                written.remove_all();
                Err(error)
            }
        }
    }

    /// Writes the merged files; the caller syncs them.
    fn merge(
        &self,
        stripe: u8,
        levels: &Levels,
        task: &Task,
        written: &mut Written<&Inner>,
    ) -> Result<Vec<(u8, Added)>> {
        let tuning = &self.options.tuning;
        let is_bottom = (usize::from(task.output_level) + 1..levels.depth())
            .all(|l| levels.level(l).is_empty());
        let file_bytes_max = picker::file_bytes_max(task.output_level, tuning);
        let boundaries = self.snapshots.boundaries(&self.log);
        let tables = self.tables();
        let mut retain = Retain::new(boundaries, &tables);
        let below = OutsideFiles { levels, task };
        let mut merge = Merge::new(sources(task));
        merge.seek(&[], Seq::MAX)?;
        let mut outputs = Vec::new();
        let mut writer: Option<SstWriter> = None;
        let mut last_key: Vec<u8> = Vec::new();
        let mut seen = 0u64;
        while let Some(entry) = merge.entry() {
            seen += 1;
            if seen.is_multiple_of(4096) && self.background.is_closed() {
                return Err(Error::Closed);
            }
            if retain.judge(&entry, |entry| below.has_nothing_under(entry)) == Verdict::Keep {
                // All versions of a key stay in one file, so that a level's files share no key.
                let is_full =
                    writer.as_ref().is_some_and(|w| w.estimated_bytes() >= file_bytes_max);
                if is_full
                    && last_key != entry.key
                    && let Some(full) = writer.take()
                {
                    outputs.push(written.finish(full)?);
                }
                let writer = match &mut writer {
                    Some(writer) => writer,
                    none => none.insert(self.new_sst(stripe, is_bottom, written)?),
                };
                writer.add(entry)?;
                last_key.clear();
                last_key.extend_from_slice(entry.key);
            }
            merge.next()?;
        }
        if let Some(last) = writer {
            outputs.push(written.finish(last)?);
        }
        let read: u64 = task.inputs.iter().map(|(_, f)| f.meta().file_bytes).sum();
        let wrote: u64 = outputs.iter().map(|meta| meta.file_bytes).sum();
        self.counters.compaction_read_bytes.fetch_add(read, Ordering::Relaxed);
        self.counters.compaction_write_bytes.fetch_add(wrote, Ordering::Relaxed);
        self.stripe(stripe).stats.bytes_compacted.fetch_add(wrote, Ordering::Relaxed);
        Ok(outputs.into_iter().map(|meta| (task.output_level, Added::New(meta))).collect())
    }
}

/// The inputs as merge sources, newest first: each L0 file on its own, each level as a run.
fn sources(task: &Task) -> Vec<Cursor> {
    let mut sources = Vec::new();
    for (_, file) in task.inputs.iter().filter(|(level, _)| *level == 0) {
        sources.push(Cursor::file(file, false));
    }
    let deepest = task.inputs.iter().map(|(level, _)| *level).max().unwrap_or(0);
    for level in 1..=deepest {
        let files: Vec<_> =
            task.inputs.iter().filter(|(l, _)| *l == level).map(|(_, f)| Arc::clone(f)).collect();
        if !files.is_empty() {
            sources.push(Cursor::Run(RunCursor::new(files, false)));
        }
    }
    sources
}

/// What lies outside a compaction.
struct OutsideFiles<'a> {
    levels: &'a Levels,
    task: &'a Task,
}

impl OutsideFiles<'_> {
    /// Whether nothing that the entry hides can be outside the merge. For a tombstone that is the
    /// output level and those below. A partition drop hides keys that may also lie beside the merge,
    /// in other files of its own levels.
    fn has_nothing_under(&self, entry: &EntryRef<'_>) -> bool {
        if bugs::on(Bug::TombstoneLost) {
            return true;
        }
        if entry.kind != Kind::DropPartition {
            return (usize::from(self.task.output_level)..self.levels.depth())
                .flat_map(|level| self.levels.level(level))
                .all(|file| {
                    let meta = file.meta();
                    let outside =
                        entry.key < meta.smallest.as_slice() || meta.largest.as_slice() < entry.key;
                    outside || self.is_input(file)
                });
        }
        let Some(end) = internal::partition_len(entry.key) else { return false };
        let Some(prefix) = entry.key.get(..end) else { return false };
        let high = internal::after_prefix(prefix);
        self.levels
            .files()
            .all(|file| self.is_input(file) || !file.overlaps(entry.key, high.as_deref()))
    }

    fn is_input(&self, file: &Arc<TreeFile>) -> bool {
        self.task.inputs.iter().any(|(_, input)| Arc::ptr_eq(input, file))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use crate::env::Env;
    use crate::error::Error;
    use crate::tree::stripe::Stripe;
    use crate::{Durability, Engine, Key, Options, TableId, WriteBatch};

    /// Files in L0 of the stripe of `a`, which is the only one with records.
    fn l0_files(engine: &Engine) -> usize {
        engine.inner().stripe(Key::new("a").stripe()).version().levels.level(0).len()
    }

    /// Four files in L0, fewer than would be merged for themselves.
    fn engine() -> Engine {
        let env = Env { threads: None, ..Env::memory() };
        let engine = Engine::open_with(env, "memory", Options::default()).unwrap();
        for n in 0..4u32 {
            put_and_flush(&engine, n * 50..(n + 1) * 50);
        }
        assert_eq!(l0_files(&engine), 4);
        engine
    }

    fn put_and_flush(engine: &Engine, sks: std::ops::Range<u32>) {
        let mut batch = WriteBatch::new();
        for sk in sks {
            let key = Key::with_sk("a", sk.to_be_bytes().to_vec());
            batch.put(TableId::DEFAULT, &key, b"value").unwrap();
        }
        engine.write(&batch, Durability::Os).unwrap().wait().unwrap();
        engine.flush().unwrap();
    }

    #[test]
    fn l0_is_merged_once_readers_have_paid_for_it() {
        for is_walk in [false, true] {
            let engine = engine();
            engine.inner().run_inline().unwrap();
            assert_eq!(l0_files(&engine), 4, "nobody has read yet");
            let mut reads = 0;
            while l0_files(&engine) > 0 {
                reads += 1;
                assert!(reads < 1000, "readers wait in vain");
                if is_walk {
                    assert_eq!(
                        engine.partition(TableId::DEFAULT, "a").iter().unwrap().count(),
                        200
                    );
                } else {
                    let key = Key::with_sk("a", 7u32.to_be_bytes().to_vec());
                    assert!(engine.get(TableId::DEFAULT, &key).unwrap().is_some());
                }
                engine.inner().run_inline().unwrap();
            }
            // 200 entries, three files more than there need be.
            let effort = if is_walk { Stripe::WALK } else { Stripe::GET };
            assert_eq!(reads, (200 * super::EXTRA_FILES_AN_ENTRY).div_ceil(3 * effort));
            assert_eq!(engine.partition(TableId::DEFAULT, "a").iter().unwrap().count(), 200);
        }
    }

    #[test]
    fn at_rest_l0_is_merged_though_nobody_has_read() {
        let engine = engine();
        engine.wait_idle().unwrap();
        assert_eq!(l0_files(&engine), 0);
        let l1_bytes = || {
            let version = engine.inner().stripe(Key::new("a").stripe()).version();
            version.levels.level_bytes(1)
        };
        assert!(l1_bytes() > 0);
        // A little more is not worth writing all of it again,
        put_and_flush(&engine, 0..10);
        put_and_flush(&engine, 10..20);
        engine.wait_idle().unwrap();
        assert_eq!(l0_files(&engine), 2);
        // as much more is,
        put_and_flush(&engine, 0..300);
        let before = l1_bytes();
        engine.inner().run_inline().unwrap();
        assert_eq!((l0_files(&engine), l1_bytes()), (3, before), "but not while somebody writes");
        engine.wait_idle().unwrap();
        assert_eq!(l0_files(&engine), 0);
        assert_eq!(engine.partition(TableId::DEFAULT, "a").iter().unwrap().count(), 300);
    }

    #[test]
    fn a_merge_for_readers_ends_when_the_database_is_closed() {
        let engine = engine();
        let inner = engine.inner();
        inner.stripe(Key::new("a").stripe()).stats.extra_files.store(1 << 40, Ordering::Relaxed);
        assert!(inner.has_merges_for_readers());
        inner.close();
        assert!(matches!(inner.compact_for_readers(), Err(Error::Closed)));
        assert_eq!(l0_files(&engine), 4);
    }
}
