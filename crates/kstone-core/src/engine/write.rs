//! Commits: from a batch to its place in the log and the memtables, readable in one function.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use crate::batch::{Op, Ops, WriteBatch};
use crate::engine::locks::StripeGuards;
use crate::engine::{Engine, Inner, by_stripe};
use crate::entry::{EntryRef, Seq};
use crate::error::{Error, Result};
use crate::expiry;
use crate::manifest::{TableEdit, TableState};
use crate::table::TableId;
use crate::tables::Tables;

/// When a commit is safe, and from what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// On disk before the commit's wait returns: survives power loss. Writers that wait at the
    /// same time share one sync.
    #[default]
    Sync,
    /// Handed to the operating system within milliseconds, on disk within
    /// [`Options::sync_interval`](crate::Options::sync_interval).
    Interval,
    /// Handed to the operating system within milliseconds, on disk when the system or a later
    /// sync pleases.
    Os,
}

/// A commit that readers see already. What it still owes is durability: [`wait`](Commit::wait) for
/// it on a thread, or `.await` it.
#[must_use = "a commit is durable only after wait() or .await"]
#[derive(Debug)]
pub struct Commit {
    inner: Arc<Inner>,
    first_seq: Seq,
    last_seq: Seq,
    durability: Durability,
}

impl Engine {
    /// Applies the batch: all of it becomes visible to readers at once, before this returns.
    /// Durability is the business of the returned [`Commit`].
    pub fn write(&self, batch: &WriteBatch, durability: Durability) -> Result<Commit> {
        let inner = self.inner();
        inner.check_batch(batch)?;
        inner.admit(batch.encoded_len(), &batch.stripes())?;
        let guards = StripeGuards::lock(inner, &batch.stripes());
        inner.commit(batch, durability, guards)
    }

    /// The same for a writer that will not read what it wrote soon: part of the work is left to a
    /// thread, or to the next reader. Readers see the batch as if it had been
    /// [written](Engine::write), and it is as durable.
    pub fn write_later(&self, batch: &WriteBatch, durability: Durability) -> Result<Commit> {
        let inner = self.inner();
        inner.check_batch(batch)?;
        if batch.is_empty() || batch.changes_tables() {
            return self.write(batch, durability);
        }
        inner.admit(batch.encoded_len(), &batch.stripes())?;
        inner.check_writable()?;
        let guards = StripeGuards::lock_only(inner, &batch.stripes());
        let ticket = inner.log.append(batch.ops(), batch.count())?;
        let (first_seq, last_seq) = ticket.defer();
        inner.defer_inserts(batch.ops(), (first_seq, last_seq));
        drop(guards);
        inner.committed(batch, durability, last_seq)?;
        Ok(Commit { inner: Arc::clone(inner), first_seq, last_seq, durability })
    }
}

impl Commit {
    /// The sequence number of the batch's last record: a version that grows with every commit.
    pub fn seq(&self) -> Seq {
        self.last_seq
    }

    /// The sequence number of the batch's first record.
    pub fn first_seq(&self) -> Seq {
        self.first_seq
    }

    /// Waits for what the commit's [`Durability`] promises.
    pub fn wait(self) -> Result<()> {
        match self.durability {
            Durability::Sync => self.inner.log.wait_durable(self.last_seq),
            Durability::Interval | Durability::Os => Ok(()),
        }
    }

    /// Waits until the operating system has the commit: it survives the end of this process,
    /// whatever its [`Durability`].
    pub fn wait_written(&self) -> Result<()> {
        self.inner.log.wait_written(self.last_seq)
    }
}

impl IntoFuture for Commit {
    type Output = Result<()>;
    type IntoFuture = Durable;

    fn into_future(self) -> Durable {
        let seq = if self.durability == Durability::Sync { self.last_seq } else { 0 };
        Durable { inner: self.inner, seq }
    }
}

/// Ready when everything up to a sequence number is durable.
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Durable {
    inner: Arc<Inner>,
    seq: Seq,
}

/// Ready when the operating system has everything up to a sequence number.
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Written {
    inner: Arc<Inner>,
    seq: Seq,
}

impl Engine {
    /// [`wait_durable`](Engine::wait_durable) as a future.
    pub fn durable(&self, seq: Seq) -> Durable {
        Durable { inner: Arc::clone(self.inner()), seq }
    }

    /// Waits, as a future, until the operating system has everything up to `seq`: it survives the
    /// end of this process.
    pub fn written(&self, seq: Seq) -> Written {
        Written { inner: Arc::clone(self.inner()), seq }
    }
}

impl Durable {
    /// Blocks the thread instead of the task.
    pub fn wait(self) -> Result<()> {
        if self.seq == 0 { Ok(()) } else { self.inner.log.wait_durable(self.seq) }
    }
}

impl Future for Durable {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.seq == 0 {
            return Poll::Ready(Ok(()));
        }
        self.inner.log.poll_durable(self.seq, cx)
    }
}

impl Future for Written {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.inner.log.poll_written(self.seq, cx)
    }
}

/// Asks for the memory that each record of a batch will need, some records ahead of their insertion: it is
/// scattered, and waiting for it takes longer than everything else.
#[derive(Debug)]
pub(crate) struct Prefetcher<'a> {
    ops: Ops<'a>,
}

impl<'a> Prefetcher<'a> {
    /// So many records ahead: memory has come by then, and is still there.
    const AHEAD: usize = 6;
    /// What a record takes, for want of knowing better.
    const RECORD_BYTES: usize = 192;

    pub(crate) fn of(inner: &Inner, ops: &'a [u8], first_seq: Seq) -> Self {
        let mut prefetcher = Prefetcher { ops: Ops::new(ops, first_seq) };
        // The first one will be looked at at once.
        let _ = prefetcher.ops.next();
        for _ in 1..Self::AHEAD {
            prefetcher.step(inner);
        }
        prefetcher
    }

    fn step(&mut self, inner: &Inner) {
        if let Ok(Some((_, Op::Entry { stripe, .. }))) = self.ops.next() {
            inner.stripe(stripe).prefetch_insert(Self::RECORD_BYTES);
        }
    }
}

pub(super) fn malformed(at: usize) -> Error {
    Error::invalid(format!("malformed operation at byte {at} of a batch"))
}

impl Inner {
    pub(crate) fn check_batch(&self, batch: &WriteBatch) -> Result<()> {
        if !batch.tables().is_empty() {
            let tables = self.tables();
            for &table in batch.tables() {
                tables.check(table)?;
            }
        }
        Ok(())
    }

    /// The write path. The caller has been admitted and holds the locks of every stripe that the
    /// batch touches.
    pub(crate) fn commit(
        self: &Arc<Self>,
        batch: &WriteBatch,
        durability: Durability,
        guards: StripeGuards<'_>,
    ) -> Result<Commit> {
        self.check_writable()?;
        if batch.is_empty() {
            let seq = self.last_applied();
            return Ok(Commit {
                inner: Arc::clone(self),
                first_seq: seq,
                last_seq: seq,
                durability,
            });
        }
        if crate::bugs::on(crate::bugs::Bug::BatchSplitInLog) {
            self.log_record_by_record(batch)?;
        }
        // From here on the batch has a place in the one order of all commits.
        let ticket = self.log.append(batch.ops(), batch.count())?;
        let (first_seq, last_seq) = (ticket.first_seq, ticket.last_seq);
        if batch.count() >= by_stripe::RECORDS_MIN && !batch.changes_tables() {
            self.apply_by_stripe(batch, first_seq)?;
        } else {
            self.apply(batch.ops(), first_seq)?;
        }
        // Readers see it once everything before it is applied too.
        self.log.applied(ticket);
        drop(guards);
        self.wait_visible(last_seq)?;
        self.committed(batch, durability, last_seq)?;
        Ok(Commit { inner: Arc::clone(self), first_seq, last_seq, durability })
    }

    /// What there is to do after a commit.
    fn committed(&self, batch: &WriteBatch, durability: Durability, last_seq: Seq) -> Result<()> {
        if durability == Durability::Interval {
            self.log.request_interval(last_seq);
        }
        self.counters.user_bytes.fetch_add(batch.ops().len() as u64, Ordering::Relaxed);
        self.after_commit(&batch.stripes())
    }

    /// What `Bug::BatchSplitInLog` does: the records reach the disk one by one.
    fn log_record_by_record(&self, batch: &WriteBatch) -> Result<()> {
        let mut decoder = Ops::new(batch.ops(), 0);
        let mut start = 0;
        while let Ok(Some(_)) = decoder.next() {
            let op = batch.ops().get(start..decoder.position()).unwrap_or_default();
            start = decoder.position();
            let ticket = self.log.append(op, 1)?;
            let first_seq = ticket.first_seq;
            self.apply(op, first_seq)?;
            self.log.applied(ticket);
            self.log.sync()?;
        }
        Ok(())
    }

    /// Inserts a commit's records into the memtables.
    pub(crate) fn apply(&self, ops: &[u8], first_seq: Seq) -> Result<()> {
        self.apply_behind(&mut Prefetcher::of(self, ops, first_seq), ops, first_seq)
    }

    /// The same, with a prefetcher that is some records ahead.
    pub(crate) fn apply_behind(
        &self,
        prefetcher: &mut Prefetcher<'_>,
        ops: &[u8],
        first_seq: Seq,
    ) -> Result<()> {
        let mut decoder = Ops::new(ops, first_seq);
        let warm = self.latest_stripe.load(Ordering::Relaxed);
        let mut latest = warm;
        while let Some((seq, op)) = decoder.next().map_err(malformed)? {
            prefetcher.step(self);
            match op {
                Op::Entry { stripe, entry } => {
                    self.apply_entry(stripe, entry, usize::from(stripe) == warm);
                    latest = usize::from(stripe);
                }
                Op::CreateTable(table) => self.apply_table(table, seq, false),
                Op::DropTable(table) => self.apply_table(table, seq, true),
                Op::Nop => {}
            }
        }
        self.latest_stripe.store(latest, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn apply_entry(&self, stripe: u8, entry: EntryRef<'_>, is_warm: bool) {
        let tree = self.stripe(stripe);
        let index_key = expiry::index_key_of(&entry);
        let index = index_key.as_deref().map(|key| expiry::index_entry(&entry, key));
        tree.insert(entry, index, is_warm, &self.chunk_pool, |before, after| {
            self.recount_memtables(before, after);
        });
        if index_key.is_some() {
            self.next_expiry.lower(entry.expires_at_ms);
        }
        tree.stats.writes.fetch_add(1, Ordering::Relaxed);
        let bytes = (entry.key.len() + entry.value.len()) as u64;
        tree.stats.bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Creates or drops a table in memory and notes it for the next manifest edit.
    pub(crate) fn apply_table(&self, table: TableId, seq: Seq, dropped: bool) {
        let mut tables = self.tables.write();
        let mut changed = Tables::clone(&tables);
        let id = table.0;
        let edit = if dropped {
            // Of two drops that race, or stand in one batch, the first is the drop.
            match changed.known.get_mut(&id) {
                Some(state) if state.dropped_seq.is_none() => state.dropped_seq = Some(seq),
                _ => return,
            }
            self.background.table_dropped.store(true, Ordering::Release);
            TableEdit::Dropped { id, seq }
        } else {
            let state = TableState { created_seq: seq, dropped_seq: None };
            changed.known.insert(id, state);
            changed.next = changed.next.max(id.saturating_add(1));
            TableEdit::Created { id, seq }
        };
        self.pending_tables.lock().push((seq, edit));
        *tables = Arc::new(changed);
    }

    pub(crate) fn create_table(self: &Arc<Self>) -> Result<TableId> {
        let _ids = self.table_ids.lock();
        let table = TableId(self.tables().next.max(1));
        if table >= TableId::EXPIRY {
            return Err(Error::invalid("all table ids have been used"));
        }
        let mut batch = WriteBatch::new();
        batch.push_create_table(table);
        self.admit(batch.encoded_len(), &batch.stripes())?;
        let guards = StripeGuards::lock(self, &batch.stripes());
        self.commit(&batch, Durability::Sync, guards)?.wait()?;
        Ok(table)
    }
}
