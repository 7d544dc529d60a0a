//! Carries out a workload and records the history of contents and what was promised.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kstone_core::env::{Env, ManualClock, SeededRandom, Vfs};
use kstone_core::{
    Durability, Engine, Error, IngestRecord, Options, PurgeSnapshots, PurgeTarget, ScanCursor, Seq,
    Snapshot, TableId, WriteBatch,
};

use crate::Violation;
use crate::model::{Change, Contents, Model, Stored, difference};
use crate::recording_disk::{CheckpointPromise, RecordingDisk};
use crate::workload::{START_MS, Step};

/// The database's folder.
pub(crate) const DIR: &str = "db";

/// Why a step did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The engine answered with an error. With a fault at work that is as it should be.
    Error(Error),
    /// The engine answered, and the answer is wrong.
    Wrong(Violation),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

/// A database under test.
#[derive(Debug)]
pub struct Run {
    pub(crate) watched: RecordingDisk,
    clock: Arc<ManualClock>,
    options: Options,
    engine: Option<Engine>,
    snapshots: Vec<(Snapshot, Contents)>,
    /// The contents after every commit, from the empty database on. The last one may have failed.
    pub(crate) history: Vec<Model>,
    /// By when each of them must be durable: the number that readers saw after it.
    seqs: Vec<Seq>,
    steps_done: u64,
    /// A read may fail once; looking again must succeed.
    pub(crate) reads_may_fail: bool,
}

/// The machine, with this disk and clock and no threads.
pub(crate) fn env(vfs: Arc<dyn Vfs>, clock: &Arc<ManualClock>) -> Env {
    Env { vfs, clock: clock.clone(), random: Arc::new(SeededRandom::new(1)), threads: None }
}

impl Run {
    pub(crate) fn new(watched: RecordingDisk, options: Options) -> Run {
        Run {
            watched,
            clock: Arc::new(ManualClock::at(START_MS)),
            options,
            engine: None,
            snapshots: Vec::new(),
            history: vec![Model::default()],
            seqs: vec![0],
            steps_done: 0,
            reads_may_fail: false,
        }
    }

    /// Opens the database if it is not open.
    pub(crate) fn open(&mut self) -> Result<&Engine, Error> {
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => {
                let env = env(Arc::new(self.watched.clone()), &self.clock);
                Engine::open_with(env, DIR, self.options.clone())?
            }
        };
        Ok(self.engine.insert(engine))
    }

    /// Closes it, cleanly.
    pub(crate) fn close(&mut self) {
        self.snapshots.clear();
        self.engine = None;
    }

    pub(crate) fn model(&self) -> &Model {
        self.history
            .last()
            .unwrap_or_else(|| unreachable!("the history begins with the empty database"))
    }

    /// Whether writes are refused for good.
    pub(crate) fn is_poisoned(&self) -> bool {
        let refused = |e: &Engine| e.write(&WriteBatch::new(), Durability::Os).map(drop);
        matches!(self.engine.as_ref().map(refused), Some(Err(Error::Poisoned { .. })))
    }

    /// Carries out one step, and looks around after every few.
    pub(crate) fn step(&mut self, step: &Step) -> Result<(), Failure> {
        self.open()?;
        self.carry_out(step)?;
        self.note_promises()?;
        self.steps_done += 1;
        let telling =
            matches!(step, Step::Compact | Step::Reopen | Step::Ingest { .. } | Step::Purge { .. });
        if telling || self.steps_done.is_multiple_of(4) {
            match self.look() {
                Err(Failure::Error(Error::Io { op: "read", .. })) if self.reads_may_fail => {
                    self.look()?;
                }
                other => other?,
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, step: &Step) -> Result<(), Failure> {
        match step {
            Step::Commit { changes, durability, written } => {
                self.commit(changes, *durability, *written)?;
            }
            Step::CreateTable => {
                let mut next = self.model().clone();
                let expected = next.create_table();
                self.begin(next);
                let table = self.open()?.create_table()?;
                if table != expected {
                    return wrong(format!("table {} was created as {}", expected.0, table.0));
                }
            }
            Step::DropTable { table } => {
                if !self.begin_change(&Change::DropTable { table: *table }) {
                    return Ok(());
                }
                self.open()?.drop_table(*table)?;
            }
            Step::Ingest { records } => self.ingest(records)?,
            Step::Purge { table, pk } => self.purge(*table, pk)?,
            Step::ExpiredRecordHandler => self.reclaim()?,
            Step::Flush => self.open()?.flush()?,
            Step::Compact => self.open()?.compact()?,
            Step::Sync => self.open()?.sync()?,
            Step::Checkpoint => self.checkpoint()?,
            Step::Reopen => {
                self.close();
                self.open()?;
            }
            Step::AdvanceClock { ms } => self.clock.advance(*ms),
            Step::TakeSnapshot => {
                let snapshot = self.open()?.snapshot();
                let seen = self.model().visible(snapshot.now_ms());
                self.snapshots.push((snapshot, seen));
            }
            Step::DropSnapshot => {
                if !self.snapshots.is_empty() {
                    self.snapshots.remove(0);
                }
            }
        }
        Ok(())
    }

    /// From here on the contents may be these.
    fn begin(&mut self, next: Model) {
        self.history.push(next);
        self.seqs.push(Seq::MAX);
        let begun = self.history.len() - 1;
        self.watched.promise(|promises| promises.begun = begun);
    }

    /// Forgets a commit that was begun and that turned out not to be there.
    pub(crate) fn take_back(&mut self, history_len: usize) {
        self.history.truncate(history_len);
        self.seqs.truncate(history_len);
        let begun = history_len - 1;
        self.watched.promise(|promises| promises.begun = begun);
    }

    /// Whether the change concerns a table that is there (an earlier fault may have kept it away).
    fn begin_change(&mut self, change: &Change) -> bool {
        let table = match change {
            Change::Put { table, .. } | Change::Delete { table, .. } => table,
            Change::DropPartition { table, .. } | Change::DropTable { table } => table,
        };
        if !self.model().tables().contains(table) {
            return false;
        }
        let mut next = self.model().clone();
        next.apply(change);
        self.begin(next);
        true
    }

    fn commit(
        &mut self,
        changes: &[Change],
        durability: Durability,
        written: bool,
    ) -> Result<(), Failure> {
        let mut next = self.model().clone();
        changes.iter().for_each(|change| next.apply(change));
        let batch = batch_of(changes)?;
        self.begin(next);
        let engine = self.open()?;
        let commit = engine.write(&batch, durability)?;
        let seq = commit.seq();
        if written {
            commit.wait_written()?;
        }
        commit.wait()?;
        if durability == Durability::Sync && engine.durable_seq() < seq {
            return wrong(format!(
                "commit {seq} was waited for and {} is durable",
                engine.durable_seq()
            ));
        }
        if written {
            let index = self.history.len() - 1;
            self.watched.promise(|promises| promises.written = index);
        }
        Ok(())
    }

    fn ingest(&mut self, records: &[(TableId, kstone_core::Key, Stored)]) -> Result<(), Failure> {
        let mut next = self.model().clone();
        let tables = next.tables();
        let records = records.iter().filter(|(table, ..)| tables.contains(table));
        let records: Vec<_> = records
            .map(|(table, key, stored)| {
                next.apply(&Change::Put {
                    table: *table,
                    key: key.clone(),
                    stored: stored.clone(),
                });
                Ok(IngestRecord {
                    table: *table,
                    key: key.clone(),
                    value: stored.value.clone(),
                    expires_at_ms: stored.expires_at_ms,
                })
            })
            .collect();
        self.begin(next);
        let engine = self.open()?;
        let ingested = engine.ingest(records)?;
        if engine.durable_seq() < ingested.version {
            return wrong(format!("ingest {} is not durable", ingested.version));
        }
        Ok(())
    }

    fn purge(&mut self, table: TableId, pk: &bytes::Bytes) -> Result<(), Failure> {
        let change = Change::DropPartition { table, pk: pk.clone() };
        if !self.begin_change(&change) {
            return Ok(());
        }
        self.snapshots.clear();
        let purged = |model: &Model| {
            let mut purged = model.clone();
            purged.apply(&change);
            purged
        };
        self.watched.promise(|promises| {
            for checkpoint in &mut promises.checkpoints {
                let after: Vec<_> = checkpoint.may_hold.iter().map(purged).collect();
                checkpoint.may_hold.extend(after);
            }
        });
        let target = PurgeTarget::Partition { table, pk: pk.clone() };
        self.open()?.purge(&[target], PurgeSnapshots::End)?;
        self.watched.promise(|promises| {
            for checkpoint in &mut promises.checkpoints {
                checkpoint.may_hold = checkpoint.may_hold.iter().map(purged).collect();
                checkpoint.may_hold.dedup();
            }
        });
        Ok(())
    }

    /// The index must know exactly what has expired; then it is deleted, in one commit.
    fn reclaim(&mut self) -> Result<(), Failure> {
        let engine = self.open()?.clone();
        let expired = check_expired(&engine, &[self.model()])?;
        if expired.is_empty() {
            return Ok(());
        }
        let mut next = self.model().clone();
        let mut batch = WriteBatch::new();
        for expired in &expired {
            next.apply(&Change::Delete { table: expired.table, key: expired.key.clone() });
            batch.reclaim(expired)?;
        }
        debug_assert!(next.expired(engine.now_ms()).is_empty(), "all of it was found");
        self.begin(next);
        self.open()?.write(&batch, Durability::Os)?.wait()?;
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), Failure> {
        let number = self.watched.promises().checkpoints.len();
        let path = PathBuf::from(format!("copy{number}"));
        let promise = CheckpointPromise {
            path: path.clone(),
            done: false,
            may_hold: vec![self.model().clone()],
        };
        self.watched.promise(|promises| promises.checkpoints.push(promise));
        self.open()?.checkpoint(&path)?;
        self.watched.promise(|promises| {
            if let Some(last) = promises.checkpoints.last_mut() {
                last.done = true;
            }
        });
        Ok(())
    }

    /// After a step: what the engine says is durable, a crash may not take.
    fn note_promises(&mut self) -> Result<(), Failure> {
        let engine = self.open()?;
        let (applied, durable, now_ms) =
            (engine.applied_seq(), engine.durable_seq(), engine.now_ms());
        if durable > applied {
            return wrong(format!("{durable} is durable and only {applied} is visible"));
        }
        if let Some(last) = self.seqs.last_mut() {
            *last = (*last).min(applied);
        }
        let index = self.seqs.iter().rposition(|&seq| seq <= durable).unwrap_or(0);
        self.watched.promise(|promises| {
            if durable > promises.durable_seq {
                promises.clock_ms = now_ms;
            }
            promises.durable = promises.durable.max(index);
            promises.written = promises.written.max(promises.durable);
            promises.durable_seq = promises.durable_seq.max(durable);
        });
        Ok(())
    }

    /// Reads everything, and compares it with the model; every snapshot too.
    pub(crate) fn look(&mut self) -> Result<(), Failure> {
        let engine = self.open()?.clone();
        let found = contents(&engine, self.model().tables().as_slice())?;
        let expected = self.model().visible(engine.now_ms());
        if found != expected {
            return wrong(format!("a read finds {}", difference(&found, &expected)));
        }
        check_gets(&engine, &expected)?;
        for (snapshot, expected) in &self.snapshots {
            let tables: Vec<_> = expected.keys().copied().collect();
            let found = snapshot_contents(snapshot, &tables)?;
            if found != *expected {
                let difference = difference(&found, expected);
                return wrong(format!("the snapshot at {} sees {difference}", snapshot.seq()));
            }
        }
        Ok(())
    }

    /// Which commit the open database shows, and forgets what came after. For a database that was
    /// closed while a fault was at work: what was not promised may be gone.
    pub(crate) fn settle(&mut self) -> Result<(), Failure> {
        let engine = self.open()?.clone();
        let found = contents(&engine, &engine.tables())?;
        let least = self.watched.promises().durable;
        let index = position(&self.history, &found, engine.now_ms(), least);
        let Some(mut index) = index.filter(|&index| index >= least) else {
            let expected = self.model().visible(engine.now_ms());
            return wrong(format!(
                "after a failure a read finds {}",
                difference(&found, &expected)
            ));
        };
        // Commits that only reclaim what has expired leave the same contents; the index tells.
        let now_ms = engine.now_ms();
        let mut expired: Vec<_> =
            engine.expired(0, usize::MAX)?.0.into_iter().map(|e| (e.table, e.key)).collect();
        expired.sort();
        let is_it = |m: &Model| m.visible(now_ms) == found && m.expired(now_ms) == expired;
        while index > least && !self.history.get(index).is_some_and(is_it) {
            index -= 1;
        }
        self.take_back(index + 1);
        Ok(())
    }
}

fn wrong<T>(what: String) -> Result<T, Failure> {
    Err(Failure::Wrong(what))
}

pub(crate) fn batch_of(changes: &[Change]) -> Result<WriteBatch, Error> {
    let mut batch = WriteBatch::new();
    for change in changes {
        match change {
            Change::Put { table, key, stored: Stored { value, expires_at_ms: None } } => {
                batch.put(*table, key, value)?;
            }
            Change::Put { table, key, stored: Stored { value, expires_at_ms: Some(at_ms) } } => {
                batch.put_expiring(*table, key, value, *at_ms)?;
            }
            Change::Delete { table, key } => batch.delete(*table, key)?,
            Change::DropPartition { table, pk } => batch.drop_partition(*table, pk)?,
            Change::DropTable { table } => batch.drop_table(*table)?,
        }
    }
    Ok(batch)
}

/// The newest commit of the history after which the contents were these, looked for from the
/// newest down to `least`, then below for a better message.
pub(crate) fn position(
    history: &[Model],
    found: &Contents,
    now_ms: u64,
    least: usize,
) -> Option<usize> {
    let is_it = |&index: &usize| history.get(index).is_some_and(|m| m.visible(now_ms) == *found);
    (least..history.len()).rev().find(is_it).or_else(|| (0..least).rev().find(is_it))
}

/// Everything in these tables, by a scan.
pub(crate) fn contents(engine: &Engine, tables: &[TableId]) -> Result<Contents, Error> {
    let mut there = engine.tables();
    there.sort_unstable();
    if there != tables {
        // The difference is told by the caller, from the contents.
        return snapshot_contents(&engine.snapshot(), &there);
    }
    snapshot_contents(&engine.snapshot(), tables)
}

fn snapshot_contents(snapshot: &Snapshot, tables: &[TableId]) -> Result<Contents, Error> {
    let mut contents = Contents::new();
    for &table in tables {
        let records = contents.entry(table).or_default();
        for found in snapshot.scan(table, ScanCursor::start()) {
            let found = found?;
            let (value, expires_at_ms) = (found.record.value, found.record.expires_at_ms);
            records.insert(found.key, Stored { value, expires_at_ms });
        }
    }
    Ok(contents)
}

/// Every record by its key: another way through the engine than a scan, with filters.
pub(crate) fn check_gets(engine: &Engine, expected: &Contents) -> Result<(), Failure> {
    for (&table, records) in expected {
        for (key, stored) in records {
            let found = engine.get(table, key)?.map(|r| (r.value, r.expires_at_ms));
            if found.as_ref() != Some(&(stored.value.clone(), stored.expires_at_ms)) {
                return wrong(format!(
                    "a scan finds {key:?} in table {} and a get does not",
                    table.0
                ));
            }
        }
    }
    Ok(())
}

/// The expiry index finds what has expired, no more and no less, by one of the models.
pub(crate) fn check_expired(
    engine: &Engine,
    models: &[&Model],
) -> Result<Vec<kstone_core::Expired>, Failure> {
    let (expired, more) = engine.expired(0, usize::MAX)?;
    let mut found: Vec<_> = expired.iter().map(|e| (e.table, e.key.clone())).collect();
    found.sort();
    let expected: Vec<_> = models.iter().map(|model| model.expired(engine.now_ms())).collect();
    if more.is_some() || !expected.contains(&found) {
        return wrong(format!("the expiry index finds {found:?}, expected {expected:?}"));
    }
    Ok(expired)
}

/// Whether a folder looks like a database.
pub(crate) fn holds_database(paths: &[PathBuf], dir: &Path) -> bool {
    paths.contains(&dir.join("CURRENT"))
}
