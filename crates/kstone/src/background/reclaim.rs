//! Removes what has expired: items through their indexes and streams, like any delete; stream
//! records, index entries and tokens by themselves.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kstone_core::{Expired, StripeSet, TableId};

use crate::background::Step;
use crate::cost::Costs;
use crate::database::Database;
use crate::database::locking::Stop;
use crate::error::Result;
use crate::staging::Cause;
use crate::table::live::Table;

/// Records of one round.
const ROUND: usize = 1024;
/// Records without indexes or streams of one commit.
const CHUNK: usize = 256;
/// So many records that cannot be removed are looked past in a stripe; what is behind more of them
/// waits until they can be.
const LEFT_MAX: usize = 64 * ROUND;

impl Database {
    /// Removes some of what has expired, from where the last call left off. What cannot be removed
    /// (its layer is not open, say) keeps nothing else from being removed, and is looked at again
    /// in the next round.
    pub(crate) fn reclaim_expired(&self) -> Result<Step> {
        let mut at = *self.inner().sides.reclaimed.lock();
        let (expired, next) = self.engine().expired(at.stripe, ROUND + at.left)?;
        let mut left = Vec::new();
        let (removed, closed) = self.remove_expired(&expired, &mut left);
        let left_in = |stripe| left.iter().filter(|one| one.key.stripe() == stripe).count();
        // Those that were left in the first stripe before were found again.
        at.left_in_round += closed.saturating_sub(at.left);
        (at.stripe, at.left) = match next {
            Some(stripe) => (stripe, left_in(stripe)),
            None => (0, 0),
        };
        let mut is_over = next.is_none();
        if at.left > LEFT_MAX {
            (at.stripe, is_over) = at.stripe.overflowing_add(1);
            at.left = 0;
        }
        if is_over {
            (at.left_in_last, at.left_in_round) = (at.left_in_round, 0);
        }
        *self.inner().sides.reclaimed.lock() = at;
        removed.map(|()| if is_over { Step::Idle } else { Step::More })
    }

    /// Removes these as far as it can be done. Answers the last failure, and how many are left
    /// because their layer is not open.
    fn remove_expired<'e>(
        &self,
        expired: &'e [Expired],
        left: &mut Vec<&'e Expired>,
    ) -> (Result<()>, usize) {
        if expired.is_empty() {
            return (Ok(()), 0);
        }
        let tables: HashMap<TableId, Arc<Table>> =
            self.inner().catalog.all().into_iter().map(|table| (table.id(), table)).collect();
        let (items, others): (Vec<_>, Vec<_>) =
            expired.iter().partition(|expired| tables.contains_key(&expired.table));
        let (mut foreign, others) = match self.inner().sides.divide(self.engine(), others) {
            Ok(divided) => divided,
            Err(error) => return (Err(error), 0),
        };
        let closed = foreign.left.len();
        let mut removed = Ok(());
        for expired in items {
            if self.inner().background.stopping() {
                return (removed, closed);
            }
            if let Some(table) = tables.get(&expired.table)
                && let Err(error) = self.reclaim_item(table, expired)
            {
                left.push(expired);
                removed = Err(error);
            }
        }
        if let Err(error) = foreign.reclaim() {
            removed = Err(error);
        }
        left.append(&mut foreign.left);
        for chunk in others.chunk_by(|a, b| a.key.stripe() == b.key.stripe()) {
            for chunk in chunk.chunks(CHUNK) {
                if let Err(error) = self.reclaim_records(chunk) {
                    left.extend(chunk);
                    removed = Err(error);
                }
            }
        }
        (removed, closed)
    }

    /// How long to rest from looking at what cannot be removed: a record that is only looked at
    /// costs a microsecond or two.
    pub(super) fn reclaim_pause(&self) -> Duration {
        const PAUSE_MAX: Duration = Duration::from_secs(30);
        let left = self.inner().sides.reclaimed.lock().left_in_last;
        let micros = u64::try_from(left).unwrap_or(u64::MAX).saturating_mul(20);
        Duration::from_micros(micros).min(PAUSE_MAX)
    }

    fn reclaim_item(&self, table: &Table, expired: &Expired) -> Result<()> {
        let stripes: StripeSet = [expired.key.stripe()].into_iter().collect();
        let changed = self.change(stripes, Costs::default, |staged| {
            Stop::unless_current(table)?;
            let stored = staged.stored(table.id(), &expired.key)?;
            if let Some(stored) = stored.filter(|stored| stored.expired) {
                staged.delete(table, &expired.key, &stored, Cause::Expiry)?;
                staged.batch.reclaim(expired)?;
            }
            Ok(())
        })?;
        // A table that changed meanwhile has its turn in the next round.
        changed.map_or(Ok(()), |changed| changed.result)
    }

    fn reclaim_records(&self, chunk: &[&Expired]) -> Result<()> {
        let stripes: StripeSet = chunk.iter().map(|expired| expired.key.stripe()).collect();
        let changed = self.change(stripes, Costs::default, |staged| {
            for expired in chunk {
                let record = staged.locked.get_even_expired(expired.table, &expired.key)?;
                if record.is_some_and(|record| record.version == expired.version) {
                    staged.batch.reclaim(expired)?;
                }
            }
            Ok(())
        })?;
        changed.map_or(Ok(()), |changed| changed.result)
    }
}
