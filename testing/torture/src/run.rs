//! Carries out a sequence on an engine and on the model, and compares every answer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kstone_core::env::{Clock, Env, ManualClock, MemoryVfs, OsThreads, SeededRandom};
use kstone_core::{
    Durability, Engine, Error, Expired, IngestRecord, Key, KeyedRecord, PurgeSnapshots,
    PurgeTarget, Record, ScanCursor, Snapshot, StripeSet, TableId, WriteBatch, verify,
};
use kstone_sim::{CrashPolicy, SimDisk};

use crate::model::{Answer, Model, Refusal, record};
use crate::ops::{Change, KeyNo, Op, Read, Slot, Target, Value};
use crate::queries::{ReadView, ask};
use crate::settings::Settings;

/// Where and how a sequence runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// On a simulated disk, background work inline: the same run every time.
    Inline,
    /// On a simulated disk, with threads.
    Threads,
    /// In memory, with threads; instead of crashing, it closes and opens.
    Memory,
}

/// What went wrong, and at which step.
#[derive(Debug)]
pub struct Failure {
    /// Counted from 0.
    pub step: usize,
    /// Expected and found.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: {}", self.step, self.what)
    }
}

type Step<T = ()> = Result<T, String>;

/// What every step that asks something was told.
pub type Transcript = Vec<Result<Answer, Refusal>>;

/// Runs a sequence. Every answer is compared with the model's; at the end the files are verified,
/// opened once more and compared in full.
///
/// With `pinned`, the sequence's own settings are ignored and these are used throughout.
pub fn run(
    ops: &[Op],
    settings: Settings,
    mode: Mode,
    pinned: bool,
) -> Result<Transcript, Failure> {
    let fail = |step: usize| move |what: String| Failure { step, what };
    let mut run = Run::start(settings, mode, pinned).map_err(fail(0))?;
    for (step, op) in ops.iter().enumerate() {
        run.step(op).map_err(fail(step))?;
    }
    run.finish().map_err(fail(ops.len()))?;
    Ok(run.transcript)
}

/// Runs several sequences at the same time on one engine, each on a thread and in tables of its
/// own, all in the same stripes. Everybody's answers are compared with everybody's own model.
pub fn run_crowd(
    sequences: &[Vec<Op>],
    settings: Settings,
    mode: Mode,
    crowd: Crowd,
) -> Result<(), Failure> {
    let fail = |step: usize| move |what: String| Failure { step, what };
    let mut first = Run::start(settings, mode, true).map_err(fail(0))?;
    let mut runs: Vec<Run> = Vec::new();
    for _ in sequences {
        let home = first.engine().and_then(|e| e.create_table().map_err(says("create_table")));
        runs.push(Run {
            sim: first.sim.clone(),
            memory: first.memory.clone(),
            clock: Arc::clone(&first.clock),
            engine: first.engine.clone(),
            model: Model::at_home(home.map_err(fail(0))?),
            crowd: Some(crowd),
            ..Run::new(settings, mode, true)
        });
    }
    let results: Vec<Result<(), Failure>> = std::thread::scope(|scope| {
        let threads: Vec<_> = runs
            .iter_mut()
            .zip(sequences)
            .map(|(run, ops)| scope.spawn(move || run_one_of_many(run, ops)))
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(fail(0)("a thread panicked".to_owned())))
        };
        threads.into_iter().map(join).collect()
    });
    let after = |what: String| Failure { step: usize::MAX, what };
    let checked = results.into_iter().collect::<Result<(), _>>();
    runs.iter_mut().for_each(Run::close);
    first.close();
    checked?;
    let report = verify(&first.env(), DIR).map_err(says("verify")).map_err(after)?;
    if !report.is_sound() {
        return Err(after(format!("verify found {:#?}", report.faults)));
    }
    let engine = first.open(DIR).map_err(after)?;
    for run in &runs {
        same_records(&engine, &run.model, run.now_ms()).map_err(after)?;
        for (name, model) in &run.checkpoints {
            let checkpoint = first.open(name).map_err(after)?;
            same_records(&checkpoint, model, run.now_ms())
                .map_err(|what| after(format!("{name}: {what}")))?;
        }
    }
    Ok(())
}

fn run_one_of_many(run: &mut Run, ops: &[Op]) -> Result<(), Failure> {
    for (step, op) in ops.iter().enumerate() {
        run.step(op).map_err(|what| Failure { step, what: format!("{op:?}: {what}") })?;
    }
    let (engine, now_ms) = (run.engine().cloned(), run.now_ms());
    engine
        .and_then(|engine| same_records(&engine, &run.model, now_ms))
        .map_err(|what| Failure { step: ops.len(), what })
}

const DIR: &str = "db";

/// Each one costs a purge an open, so a sequence keeps few.
const CHECKPOINTS_MAX: usize = 3;

struct Run {
    mode: Mode,
    settings: Settings,
    pinned: bool,
    sim: SimDisk,
    memory: MemoryVfs,
    clock: Arc<ManualClock>,
    /// `None` only while it is being opened again.
    engine: Option<Engine>,
    model: Model,
    snapshots: Vec<HeldSnapshot>,
    checkpoints: Vec<(String, Model)>,
    transcript: Transcript,
    /// Set if others use the engine at the same time.
    crowd: Option<Crowd>,
}

/// Whether a crowd makes checkpoints or purges. Not both: a purge opens the checkpoints, and finds
/// them locked when their maker looks into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crowd {
    /// Checkpoints are made, and compared in the end.
    Checkpoints,
    /// Purges wait for nobody, and may be refused because of anybody's snapshots.
    Purges,
}

/// A snapshot and what it should show.
struct HeldSnapshot {
    snapshot: Snapshot,
    model: Model,
    now_ms: u64,
    ended: bool,
}

impl Run {
    fn start(settings: Settings, mode: Mode, pinned: bool) -> Step<Self> {
        let mut run = Run::new(settings, mode, pinned);
        run.engine = Some(run.open(DIR)?);
        Ok(run)
    }

    fn new(settings: Settings, mode: Mode, pinned: bool) -> Self {
        Run {
            mode,
            settings,
            pinned,
            sim: SimDisk::new(1),
            memory: MemoryVfs::new(),
            clock: Arc::new(ManualClock::at(1_000_000)),
            engine: None,
            model: Model::at_home(TableId::DEFAULT),
            snapshots: Vec::new(),
            checkpoints: Vec::new(),
            transcript: Vec::new(),
            crowd: None,
        }
    }

    fn env(&self) -> Env {
        Env {
            vfs: match self.mode {
                Mode::Memory => Arc::new(self.memory.clone()),
                Mode::Inline | Mode::Threads => Arc::new(self.sim.clone()),
            },
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            random: Arc::new(SeededRandom::new(1)),
            threads: match self.mode {
                Mode::Inline => None,
                Mode::Threads | Mode::Memory => Some(Arc::new(OsThreads)),
            },
        }
    }

    fn open(&self, dir: &str) -> Step<Engine> {
        Engine::open_with(self.env(), dir, self.settings.options()).map_err(says("open"))
    }

    fn engine(&self) -> Step<&Engine> {
        self.engine.as_ref().ok_or_else(|| "the engine is closed".to_owned())
    }

    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    fn step(&mut self, op: &Op) -> Step {
        if let Some(crowd) = self.crowd {
            return self.step_in_a_crowd(op, crowd);
        }
        self.step_alone(op)
    }

    fn step_alone(&mut self, op: &Op) -> Step {
        match op {
            Op::Write(changes, durability) => self.write(changes, *durability),
            Op::Locked { table, keys, stray } => self.locked(*table, keys, *stray),
            Op::CreateTable => self.create_table(),
            Op::DropTable(slot) => self.drop_table(*slot),
            Op::Read(read) => {
                let found = refused(ask(&ReadView::Now(self.engine()?), read, &self.model))?;
                self.compare(self.model.read(read, self.now_ms()), found)
            }
            Op::TakeSnapshot => self.take_snapshot(),
            Op::ReadSnapshot(number, read) => self.read_snapshot(*number, read),
            Op::DropSnapshot(number) => {
                if let Some(index) = pick(*number, self.snapshots.len()) {
                    self.snapshots.swap_remove(index);
                }
                Ok(())
            }
            Op::Flush => self.engine()?.flush().map_err(says("flush")),
            Op::Compact => self.engine()?.compact().map_err(says("compact")),
            Op::WaitIdle => self.engine()?.wait_idle().map_err(says("wait_idle")),
            Op::Reopen(settings, back_ms) => self.reopen(settings.as_deref(), *back_ms),
            Op::Crash(policy) => self.crash(*policy),
            Op::Advance(ms) => {
                self.clock.advance(u64::from(*ms));
                Ok(())
            }
            Op::ExpiredRecordHandler(limit) => self.reclaim(*limit),
            Op::Ingest(records, backwards) => self.ingest(records, *backwards),
            Op::Checkpoint => self.checkpoint(),
            Op::OpenCheckpoint(number) => self.open_checkpoint(*number),
            Op::Purge(targets, end) => self.purge(targets, *end),
        }
    }

    /// Compares, and notes the answer for the transcript.
    fn compare(
        &mut self,
        expected: Result<Answer, Refusal>,
        found: Result<Answer, Refusal>,
    ) -> Step {
        if expected != found {
            return Err(format!("expected {expected:#?}\nfound {found:#?}"));
        }
        self.transcript.push(found.map(Answer::without_versions));
        Ok(())
    }

    /// Compares what was refused; answers whether the step was carried out.
    fn settle<T>(
        &mut self,
        expected: Option<Refusal>,
        found: Result<T, Refusal>,
    ) -> Step<Option<T>> {
        match (expected, found) {
            (None, Ok(done)) => Ok(Some(done)),
            (Some(expected), Err(found)) if expected == found => {
                self.transcript.push(Err(found));
                Ok(None)
            }
            (expected, found) => Err(format!(
                "expected {}, found {:?}",
                expected.map_or_else(|| "success".to_owned(), |r| format!("{r:?}")),
                found.err()
            )),
        }
    }

    fn expiry(&self, ttl: Option<u16>) -> Option<u64> {
        ttl.map(|ttl| self.now_ms() + u64::from(ttl))
    }

    fn refuses(&self, mut slots: impl Iterator<Item = Slot>) -> Option<Refusal> {
        let unknown = |slot: Slot| !self.model.has_table(self.model.table(slot));
        slots.any(unknown).then_some(Refusal::NoSuchTable)
    }

    fn write(&mut self, changes: &[Change], durability: Durability) -> Step {
        let mut batch = WriteBatch::new();
        for change in changes {
            match change {
                Change::Put(slot, key, value, ttl) => {
                    let (table, key) = (self.model.table(*slot), key.key());
                    match self.expiry(*ttl) {
                        Some(at_ms) => batch.put_expiring(table, &key, &value.bytes(), at_ms),
                        None => batch.put(table, &key, &value.bytes()),
                    }
                }
                Change::Delete(slot, key) => batch.delete(self.model.table(*slot), &key.key()),
                Change::DropPartition(slot, pk) => {
                    batch.drop_partition(self.model.table(*slot), &pk.bytes())
                }
            }
            .map_err(says("add to a batch"))?;
        }
        let engine = self.engine()?.clone();
        let before = engine.applied_seq();
        let written = refused(engine.write(&batch, durability))?;
        let expected = self.refuses(changes.iter().map(|change| match change {
            Change::Put(slot, ..) | Change::Delete(slot, _) | Change::DropPartition(slot, _) => {
                *slot
            }
        }));
        let Some(commit) = self.settle(expected, written)? else { return Ok(()) };
        let (first_seq, last_seq) = (commit.first_seq(), commit.seq());
        commit.wait().map_err(says("wait"))?;
        if changes.is_empty() {
            return Ok(());
        }
        let count = changes.len() as u64;
        if first_seq <= before || last_seq != first_seq + count - 1 {
            return Err(format!(
                "{count} changes after number {before} have the numbers {first_seq} to {last_seq}"
            ));
        }
        if durability == Durability::Sync && engine.durable_seq() < last_seq {
            return Err(format!("durable up to {}, promised {last_seq}", engine.durable_seq()));
        }
        for (change, version) in changes.iter().zip(first_seq..) {
            match change {
                Change::Put(slot, key, value, ttl) => {
                    let record = record(value.bytes(), self.expiry(*ttl), version);
                    self.model.put(self.model.table(*slot), key.key(), record);
                }
                Change::Delete(slot, key) => {
                    self.model.delete(self.model.table(*slot), &key.key());
                }
                Change::DropPartition(slot, pk) => {
                    self.model.drop_partition(self.model.table(*slot), &pk.bytes());
                }
            }
        }
        Ok(())
    }

    fn locked(&mut self, slot: Slot, keys: &[KeyNo], stray: Option<KeyNo>) -> Step {
        let (table, now_ms) = (self.model.table(slot), self.now_ms());
        let keys: Vec<Key> = keys.iter().map(|key| key.key()).collect();
        let stray = stray.map(KeyNo::key);
        let stripes: StripeSet = keys.iter().map(Key::stripe).collect();
        let engine = self.engine()?.clone();
        let locked = engine.lock(&keys).map_err(says("lock"))?;
        let read: kstone_core::Result<Vec<Option<Record>>> =
            keys.iter().map(|key| locked.get(table, key)).collect();
        let expected = match self.model.has_table(table) {
            true => Ok(keys.iter().map(|key| self.model.get(table, key, now_ms)).collect()),
            false => Err(Refusal::NoSuchTable),
        };
        self.compare(expected.map(Answer::Found), refused(read.clone())?.map(Answer::Found))?;
        let Ok(read) = read else { return Ok(()) };
        let snapshot = locked.snapshot().map_err(says("snapshot under a lock"))?;
        for (key, record) in keys.iter().zip(&read) {
            if snapshot.get(table, key).map_err(says("get"))? != *record {
                return Err(format!(
                    "a snapshot under the lock does not see {key:?} as {record:?}"
                ));
            }
        }
        drop(snapshot);
        let mut batch = WriteBatch::new();
        let mut changed = Vec::new();
        for (key, old) in keys.iter().zip(read) {
            let mut value = old.map_or_else(Vec::new, |record| record.value.to_vec());
            value.truncate(50);
            value.insert(0, value.first().map_or(1, |n| n.wrapping_add(1)));
            batch.put(table, key, &value).map_err(says("add to a batch"))?;
            changed.push((key.clone(), value));
        }
        if let Some(key) = &stray {
            batch.put(table, key, b"stray").map_err(says("add to a batch"))?;
            changed.push((key.clone(), b"stray".to_vec()));
        }
        let committed = refused(locked.commit(&batch, Durability::Sync))?;
        let expected = stray
            .is_some_and(|key| !stripes.contains(key.stripe()))
            .then_some(Refusal::StripeNotLocked);
        let Some(commit) = self.settle(expected, committed)? else { return Ok(()) };
        let first_seq = commit.first_seq();
        commit.wait().map_err(says("wait"))?;
        for ((key, value), version) in changed.into_iter().zip(first_seq..) {
            self.model.put(table, key, record(value, None, version));
        }
        Ok(())
    }

    fn create_table(&mut self) -> Step {
        let table = self.engine()?.create_table().map_err(says("create_table"))?;
        if !self.model.create_table(table) {
            return Err(format!("the id {table:?} was given out before"));
        }
        Ok(())
    }

    fn drop_table(&mut self, slot: Slot) -> Step {
        let table = self.model.table(slot);
        let dropped = refused(self.engine()?.drop_table(table))?;
        let expected = match table {
            TableId::DEFAULT => Some(Refusal::Invalid),
            _ => self.refuses([slot].into_iter()),
        };
        if self.settle(expected, dropped)?.is_some() {
            self.model.drop_table(table);
        }
        Ok(())
    }

    fn take_snapshot(&mut self) -> Step {
        let snapshot = self.engine()?.snapshot();
        let (model, now_ms) = (self.model.clone(), self.now_ms());
        if snapshot.now_ms() != now_ms {
            return Err(format!("a snapshot at {now_ms} says {}", snapshot.now_ms()));
        }
        self.snapshots.push(HeldSnapshot { snapshot, model, now_ms, ended: false });
        Ok(())
    }

    fn read_snapshot(&mut self, number: u8, read: &Read) -> Step {
        let Some(index) = pick(number, self.snapshots.len()) else { return Ok(()) };
        let Some(held) = self.snapshots.get(index) else { return Ok(()) };
        let found = refused(ask(&ReadView::Then(&held.snapshot), read, &held.model))?;
        let expected = match read {
            Read::MultiGet(_, keys) if keys.is_empty() => Ok(Answer::Found(Vec::new())),
            _ if held.ended => Err(Refusal::SnapshotEnded),
            _ => held.model.read(read, held.now_ms),
        };
        self.compare(expected, found)
    }

    /// Ends the engine and all that keep it alive.
    fn close(&mut self) {
        self.snapshots.clear();
        self.engine = None;
    }

    fn reopen(&mut self, settings: Option<&Settings>, back_ms: u16) -> Step {
        let (seq, now_ms) = (self.engine()?.applied_seq(), self.engine()?.now_ms());
        self.clock.set(now_ms - u64::from(back_ms));
        self.close();
        if let Some(settings) = settings.filter(|_| !self.pinned) {
            self.settings = *settings;
        }
        let engine = self.open(DIR)?;
        if engine.now_ms() < now_ms {
            return Err(format!("time went back from {now_ms} to {}", engine.now_ms()));
        }
        self.clock.set(now_ms);
        self.opened(engine, seq)
    }

    fn crash(&mut self, policy: CrashPolicy) -> Step {
        let engine = self.engine()?;
        engine.sync().map_err(says("sync"))?;
        let seq = engine.applied_seq();
        if engine.durable_seq() < seq {
            return Err(format!("synced {seq}, durable up to {}", engine.durable_seq()));
        }
        // The old engine goes on writing, to a disk that nobody will look at again.
        self.sim = self.sim.crash(policy);
        self.close();
        let engine = self.open(DIR)?;
        self.opened(engine, seq)
    }

    /// After an open: everything is as it was, and numbers go on.
    fn opened(&mut self, engine: Engine, seq: u64) -> Step {
        if engine.applied_seq() < seq {
            return Err(format!("numbers went back from {seq} to {}", engine.applied_seq()));
        }
        same(&engine, &self.model, self.now_ms())?;
        let known: Vec<_> = engine.checkpoints();
        for (name, _) in &self.checkpoints {
            if !known.iter().any(|path| path.as_os_str() == name.as_str()) {
                return Err(format!("the checkpoint {name} is forgotten"));
            }
        }
        self.engine = Some(engine);
        Ok(())
    }

    fn reclaim(&mut self, limit: usize) -> Step {
        let (engine, now_ms) = (self.engine()?.clone(), self.now_ms());
        let mut expected = self.model.expired(now_ms);
        let next = engine.next_expiry_ms().map_err(says("next_expiry_ms"))?;
        if let Some(first) = self.model.next_expiry_ms()
            && next.is_none_or(|next| next > first)
        {
            return Err(format!("a record expires at {first}, next_expiry_ms says {next:?}"));
        }
        let mut from = Some(0);
        while let Some(stripe) = from {
            let (found, next) = engine.expired(stripe, limit).map_err(says("expired"))?;
            if found.len() > limit {
                return Err(format!("{} expired records, at most {limit} asked for", found.len()));
            }
            let order: Vec<_> = found.iter().map(|e| (e.key.stripe(), e.expires_at_ms)).collect();
            if !order.is_sorted() {
                return Err(format!("expired records out of order: {order:?}"));
            }
            for expired in &found {
                self.reclaim_one(&engine, expired, &mut expected)?;
            }
            from = next;
        }
        if !expected.is_empty() {
            return Err(format!("expired, but not found: {expected:#?}"));
        }
        Ok(())
    }

    fn reclaim_one(
        &mut self,
        engine: &Engine,
        expired: &Expired,
        expected: &mut BTreeMap<(TableId, Key), Record>,
    ) -> Step {
        let known = expected.remove(&(expired.table, expired.key.clone()));
        let same = |record: &Record| {
            (record.expires_at_ms, record.version) == (Some(expired.expires_at_ms), expired.version)
        };
        if !known.as_ref().is_some_and(same) {
            return Err(format!("found {expired:?} to have expired, expected {known:?}"));
        }
        let locked = engine.lock([&expired.key]).map_err(says("lock"))?;
        let mut batch = WriteBatch::new();
        batch.reclaim(expired).map_err(says("reclaim"))?;
        let commit = locked.commit(&batch, Durability::Os).map_err(says("commit"))?;
        commit.wait().map_err(says("wait"))?;
        self.model.delete(expired.table, &expired.key);
        Ok(())
    }

    fn ingest(&mut self, records: &[(Slot, KeyNo, Value, Option<u16>)], backwards: bool) -> Step {
        let sorted: BTreeMap<(TableId, Key), (Value, Option<u64>)> = records
            .iter()
            .map(|(slot, key, value, ttl)| {
                ((self.model.table(*slot), key.key()), (*value, self.expiry(*ttl)))
            })
            .collect();
        let mut input: Vec<_> = sorted
            .iter()
            .map(|((table, key), (value, expires_at_ms))| {
                Ok(IngestRecord {
                    table: *table,
                    key: key.clone(),
                    value: value.bytes().into(),
                    expires_at_ms: *expires_at_ms,
                })
            })
            .collect();
        let expected = if let Some(refusal) = self.refuses(records.iter().map(|(slot, ..)| *slot)) {
            Some(refusal)
        } else if backwards && input.len() > 1 {
            input.reverse();
            Some(Refusal::Invalid)
        } else {
            None
        };
        let ingested = refused(self.engine()?.ingest(input))?;
        let Some(ingested) = self.settle(expected, ingested)? else { return Ok(()) };
        if ingested.records != sorted.len() as u64 {
            return Err(format!("ingested {} of {} records", ingested.records, sorted.len()));
        }
        for ((table, key), (value, expires_at_ms)) in sorted {
            let record = record(value.bytes(), expires_at_ms, ingested.version);
            self.model.put(table, key, record);
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Step {
        if self.checkpoints.len() >= CHECKPOINTS_MAX {
            return Ok(());
        }
        let name = format!("checkpoint-{}", self.checkpoints.len());
        self.engine()?.checkpoint(&name).map_err(says("checkpoint"))?;
        self.checkpoints.push((name, self.model.clone()));
        self.open_checkpoint(self.checkpoints.len() as u8 - 1)
    }

    fn open_checkpoint(&mut self, number: u8) -> Step {
        let Some(index) = pick(number, self.checkpoints.len()) else { return Ok(()) };
        let Some((name, model)) = self.checkpoints.get(index) else { return Ok(()) };
        let checkpoint = self.open(name)?;
        same(&checkpoint, model, self.now_ms()).map_err(|what| format!("{name}: {what}"))?;
        // It is a database of its own: what is written to it is seen there and nowhere else.
        let key = Key::new("only here");
        let mut batch = WriteBatch::new();
        batch.put(TableId::DEFAULT, &key, b"x").map_err(says("add to a batch"))?;
        batch.delete(TableId::DEFAULT, &key).map_err(says("add to a batch"))?;
        let commit = checkpoint.write(&batch, Durability::Sync).map_err(says("write"))?;
        commit.wait().map_err(says("wait"))
    }

    /// Whether there is anything in tables that exist.
    fn lives(&self, targets: &[Target]) -> bool {
        targets.iter().any(|target| self.model.has_table(self.model.table(target.slot())))
    }

    fn never_was(&self, targets: &[Target]) -> bool {
        targets.iter().any(|target| !self.model.had_table(self.model.table(target.slot())))
    }

    fn resolve(&self, targets: &[Target]) -> Vec<PurgeTarget> {
        let resolve = |target: &Target| {
            let table = self.model.table(target.slot());
            match target {
                Target::Record(_, key) => PurgeTarget::Record { table, key: key.key() },
                Target::Partition(_, pk) => PurgeTarget::Partition { table, pk: pk.bytes() },
            }
        };
        targets.iter().map(resolve).collect()
    }

    fn purge(&mut self, targets: &[Target], end: bool) -> Step {
        let resolved = self.resolve(targets);
        let how = match end {
            true => PurgeSnapshots::End,
            false => PurgeSnapshots::Wait(Duration::ZERO),
        };
        let purged = refused(self.engine()?.purge(&resolved, how))?;
        // Dropped tables can be purged, because their bytes are there for a while.
        let unknown = self.never_was(targets).then_some(Refusal::NoSuchTable);
        // The last number is the purge's own, unless there was nothing to delete.
        let seq = self.engine()?.applied_seq();
        let sees = |held: &&mut HeldSnapshot| !held.ended && held.snapshot.seq() < seq;
        let in_the_way = self.snapshots.iter_mut().filter(sees).count();
        let expected = match &unknown {
            Some(refusal) => Some(refusal.clone()),
            None if !end && in_the_way > 0 => Some(Refusal::SnapshotsInTheWay(in_the_way)),
            None => None,
        };
        let done = self.settle(expected, purged)?.is_some();
        if unknown.is_some() {
            return Ok(());
        }
        // Also if snapshots are in the way, the records are deleted; only their bytes remain.
        remove(&mut self.model, &resolved);
        if done {
            self.snapshots.iter_mut().filter(sees).for_each(|held| held.ended = true);
            self.checkpoints.iter_mut().for_each(|(_, model)| remove(model, &resolved));
        }
        Ok(())
    }

    /// What is left of a step when others use the same engine, and cannot be asked to agree to a
    /// restart, to the passing of time, or to the end of their snapshots.
    fn step_in_a_crowd(&mut self, op: &Op, crowd: Crowd) -> Step {
        match op {
            Op::Reopen(..) | Op::Crash(_) | Op::Advance(_) | Op::WaitIdle => Ok(()),
            Op::DropTable(0) | Op::OpenCheckpoint(_) => Ok(()),
            Op::ExpiredRecordHandler(_) => {
                let engine = self.engine()?.clone();
                let mut expected = self.model.expired(self.now_ms());
                let (mut found, _) = engine.expired(0, usize::MAX).map_err(says("expired"))?;
                found.retain(|expired| self.model.has_table(expired.table));
                for expired in &found {
                    self.reclaim_one(&engine, expired, &mut expected)?;
                }
                match expected.is_empty() {
                    true => Ok(()),
                    false => Err(format!("expired, but not found: {expected:#?}")),
                }
            }
            Op::Checkpoint if crowd == Crowd::Purges => Ok(()),
            Op::Checkpoint if self.checkpoints.len() >= CHECKPOINTS_MAX => Ok(()),
            Op::Checkpoint => {
                let home = self.model.table(0).0;
                let name = format!("checkpoint-{home}-{}", self.checkpoints.len());
                self.engine()?.checkpoint(&name).map_err(says("checkpoint"))?;
                self.checkpoints.push((name, self.model.clone()));
                Ok(())
            }
            Op::Purge(..) if crowd == Crowd::Checkpoints => Ok(()),
            Op::Purge(targets, _) => {
                let resolved = self.resolve(targets);
                let unknown = self.never_was(targets);
                let how = PurgeSnapshots::Wait(Duration::ZERO);
                match (refused(self.engine()?.purge(&resolved, how))?, unknown) {
                    (Err(Refusal::NoSuchTable), true) => return Ok(()),
                    (Err(Refusal::SnapshotsInTheWay(_)), false) => {}
                    (Ok(_), false) if self.snapshots.is_empty() || !self.lives(targets) => {}
                    (other, _) => return Err(format!("a purge was answered with {other:?}")),
                }
                remove(&mut self.model, &resolved);
                Ok(())
            }
            _ => self.step_alone(op),
        }
    }

    fn finish(&mut self) -> Step {
        same(self.engine()?, &self.model, self.now_ms())?;
        self.close();
        let report = verify(&self.env(), DIR).map_err(says("verify"))?;
        if !report.is_sound() {
            return Err(format!("verify found {:#?}", report.faults));
        }
        let engine = self.open(DIR)?;
        same(&engine, &self.model, self.now_ms())
    }
}

fn remove(model: &mut Model, targets: &[PurgeTarget]) {
    for target in targets {
        match target {
            PurgeTarget::Record { table, key } => model.delete(*table, key),
            PurgeTarget::Partition { table, pk } => model.drop_partition(*table, pk),
            PurgeTarget::Remains | PurgeTarget::RemainsIn { .. } => {}
        }
    }
}

/// Compares everything there is.
fn same(engine: &Engine, model: &Model, now_ms: u64) -> Step {
    let (expected, found) = (model.tables(), engine.tables());
    if expected != found {
        return Err(format!("expected the tables {expected:?}, found {found:?}"));
    }
    same_records(engine, model, now_ms)
}

/// Compares every record of the model's tables.
fn same_records(engine: &Engine, model: &Model, now_ms: u64) -> Step {
    for table in model.tables() {
        let expected = model.scan(table, now_ms);
        let found: Vec<KeyedRecord> = engine
            .snapshot()
            .scan(table, ScanCursor::start())
            .collect::<Result<_, _>>()
            .map_err(says("scan"))?;
        if expected != found {
            return Err(format!("in {table:?} expected {expected:#?}\nfound {found:#?}"));
        }
    }
    Ok(())
}

/// Which of `len` things a random number means.
fn pick(number: u8, len: usize) -> Option<usize> {
    (len > 0).then(|| usize::from(number) % len)
}

fn says(doing: &'static str) -> impl Fn(Error) -> String {
    move |error| format!("{doing}: {error}")
}

/// Sorts errors into those that can be the right answer and those that end the run.
fn refused<T>(result: kstone_core::Result<T>) -> Step<Result<T, Refusal>> {
    Ok(Err(match result {
        Ok(value) => return Ok(Ok(value)),
        Err(Error::NoSuchTable { .. }) => Refusal::NoSuchTable,
        Err(Error::SnapshotEnded) => Refusal::SnapshotEnded,
        Err(Error::SnapshotsInTheWay { count }) => Refusal::SnapshotsInTheWay(count),
        Err(Error::StripeNotLocked { .. }) => Refusal::StripeNotLocked,
        Err(Error::Invalid { .. }) => Refusal::Invalid,
        Err(error) => return Err(error.to_string()),
    }))
}
