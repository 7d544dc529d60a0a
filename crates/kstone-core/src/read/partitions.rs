//! The partition keys of a table, in order, by a merge over the stripes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytes::Bytes;

use crate::error::Result;
use crate::key::STRIPES;
use crate::key::internal;
use crate::read::snapshot::Snapshot;
use crate::read::walk::Walk;
use crate::table::TableId;

/// Lists partition keys in byte order. One walk a stripe, each jumping from partition to partition,
/// so the cost is in the number of partitions listed, not of records.
#[derive(Debug)]
pub struct PartitionKeys {
    table: TableId,
    walks: Vec<Walk>,
    /// The next partition key of each stripe that has one.
    next: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    failed: bool,
}

impl PartitionKeys {
    pub(crate) fn new(snapshot: Snapshot, table: TableId, prefix: &[u8]) -> Result<Self> {
        snapshot.check(table)?;
        let low = internal::partition_prefix(table, prefix);
        let high = internal::after_prefix(&low);
        let mut keys = PartitionKeys {
            table,
            walks: Vec::with_capacity(STRIPES),
            next: BinaryHeap::new(),
            failed: false,
        };
        for stripe in 0..=255u8 {
            let walk = Walk::new(snapshot.clone(), stripe, low.clone(), high.clone(), true);
            keys.walks.push(walk);
            keys.refill(usize::from(stripe))?;
        }
        Ok(keys)
    }

    /// Puts the stripe's next partition key on the heap.
    fn refill(&mut self, stripe: usize) -> Result<()> {
        let Some(walk) = self.walks.get_mut(stripe) else { return Ok(()) };
        if let Some(pk) = walk.next()?.and_then(|found| internal::pk_of(found.key)) {
            self.next.push(Reverse((pk, stripe)));
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Bytes>> {
        let Some(Reverse((pk, stripe))) = self.next.pop() else { return Ok(None) };
        if let Some(walk) = self.walks.get_mut(stripe) {
            walk.skip_to(&internal::partition_end(self.table, &pk))?;
        }
        self.refill(stripe)?;
        Ok(Some(Bytes::from(pk)))
    }
}

impl Iterator for PartitionKeys {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let step = self.step().transpose();
        self.failed = matches!(step, Some(Err(_)));
        step
    }
}
