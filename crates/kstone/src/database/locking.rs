//! Read-modify-write under the locks of the right stripes.

use kstone_core::{Seq, Snapshot, StripeSet, WriteBatch};

use crate::cost::Costs;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::ops::Consumed;
use crate::policy::CommitChanges;
use crate::staging::Staged;
use crate::table::live::Table;

/// What [`Database::change`] did.
#[derive(Debug)]
pub(crate) struct Changed<T> {
    pub result: Result<T>,
    /// What the answer rests on: the commit, or what was read.
    pub seq: Seq,
    /// What it cost, by table.
    pub consumed: Vec<Consumed>,
}

/// Why the work under the locks ended without a commit.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A table was changed meanwhile; look it up and begin again.
    TableChanged,
    /// The operation failed.
    Failed(Error),
}

impl Stop {
    /// Stops if the table was changed or dropped since it was looked up.
    pub(crate) fn unless_current(table: &Table) -> Result<(), Stop> {
        if table.is_current() { Ok(()) } else { Err(Stop::TableChanged) }
    }
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Stop::Failed(error.into())
    }
}

impl Database {
    /// Runs `work` under the locks of `stripes`, and commits what it stages.
    ///
    /// Which stripes a write touches is often known only after reading (an index entry moves away
    /// from where the old item had it). So when the staged batch touches a stripe that is not
    /// locked, all locks are let go of and the work is done again with that stripe as well. The set
    /// only grows, so this ends.
    ///
    /// `None` when a table was changed meanwhile.
    pub(crate) fn change<T>(
        &self,
        mut stripes: StripeSet,
        costs: impl Fn() -> Costs,
        mut work: impl FnMut(&mut Staged<'_>) -> Result<T, Stop>,
    ) -> Result<Option<Changed<T>>> {
        let inner = self.inner();
        loop {
            let locked = inner.engine.lock_stripes(stripes)?;
            let rules = inner.policy.rules();
            // Asked under the locks, which installing a policy takes too.
            if rules.is_none() && !self.is_internal() && !inner.policy.is_unruled_noted() {
                drop(locked);
                self.note_unruled()?;
                continue;
            }
            let mut staged = Staged {
                batch: WriteBatch::new(),
                streams: inner.streams.ticket(locked.now_ms()),
                locked,
                costs: costs(),
                seen: 0,
                engine: &inner.engine,
                rules,
                counted: CommitChanges::default(),
            };
            let outcome = work(&mut staged);
            let Staged { batch, locked, streams, seen, costs, rules, counted, .. } = staged;
            let value = match outcome {
                Ok(value) => value,
                Err(Stop::TableChanged) => return Ok(None),
                Err(Stop::Failed(error)) => {
                    let result = Err(error);
                    return Ok(Some(Changed { result, seq: seen, consumed: Vec::new() }));
                }
            };
            let missing = batch.stripes().without(&stripes);
            if !missing.is_empty() {
                stripes.extend_with(&missing);
                continue;
            }
            let seq = match batch.is_empty() {
                true => seen,
                false => locked.commit(&batch, self.durability())?.seq(),
            };
            // Only here: what was staged in an earlier round was not committed.
            if let Some(rules) = rules {
                counted.pieces().for_each(|counted| rules.policy.committed(counted));
            }
            // Readers of the streams may pass these records only now that they are visible.
            drop(streams);
            return Ok(Some(Changed { result: Ok(value), seq, consumed: costs.all() }));
        }
    }
    /// A snapshot that sees every write that was made under what a table was before its last
    /// change: all of a stream that is closed, everything that a new index has to be filled from.
    pub(crate) fn snapshot_after_change(&self) -> Result<Snapshot> {
        let inner = self.inner();
        // Who changes a table has this right until the last write that began before is committed.
        drop(inner.catalog.change(&inner.engine));
        // And what is committed is visible here, which a plain snapshot does not promise.
        Ok(inner.engine.lock_stripes(StripeSet::EMPTY)?.snapshot()?)
    }
}
