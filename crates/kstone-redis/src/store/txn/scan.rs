//! The keys of one stripe in order, for SCAN.

use std::ops::ControlFlow;

use bytes::Bytes;
use kstone_core::{Key, ScanCursor, stripe_of};

use crate::fault::Result;
use crate::store::txn::{Txn, kind_of};
use crate::store::{Kind, annex, fields};

impl Txn<'_> {
    /// Shows the keys of a stripe of the selected database that come after a key, in order, until
    /// told to stop: those that are there, as this transaction has left them.
    ///
    /// The caller need not have locked them.
    pub(crate) fn scan_stripe(
        &self,
        stripe: u8,
        after: Option<&[u8]>,
        mut see: impl FnMut(&[u8], Kind) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let mut show = |key: &[u8], value: &[u8], expires_at_ms: Option<u64>| -> Result<_> {
            let kind = kind_of(value)?;
            let is_over = expires_at_ms.is_some_and(|at_ms| at_ms <= self.now_ms);
            let body = annex::body_of(value);
            if is_over || (kind == Kind::Hash && fields::is_gone(self, key, body)?) {
                return Ok(ControlFlow::Continue(()));
            }
            Ok(see(key, kind))
        };
        let mut changed: Vec<_> = self
            .changes
            .slot(self.slot)
            .filter(|(key, changes)| changes.head.is_some() && stripe_of(key) == stripe)
            .filter(|(key, _)| after.is_none_or(|after| key.as_slice() > after))
            .collect();
        changed.sort_by_key(|(key, _)| *key);
        let mut changed = changed.into_iter().peekable();
        let stored = match self.databases.table(self.slot) {
            Some(table) if !self.emptied.contains(&self.slot) => {
                ScanCursor::segment(u32::from(stripe), 256)?.map(|cursor| (table, cursor))
            }
            _ => None,
        };
        if let Some((table, start)) = stored {
            let cursor = match after {
                Some(after) => start.after(Key::new(Bytes::copy_from_slice(after))),
                None => start,
            };
            let mut scan = self.engine.snapshot().scan(table, cursor);
            let mut parts = 0;
            while let Some(record) = scan.next_ref()? {
                if record.sk.is_some() {
                    parts += 1;
                    if parts == super::PARTS_WALKED_MAX {
                        scan.skip_partition()?;
                    }
                    continue;
                }
                parts = 0;
                let mut is_changed = false;
                while let Some((key, changes)) =
                    changed.next_if(|(key, _)| key.as_slice() <= record.pk)
                {
                    is_changed = key.as_slice() == record.pk;
                    if let Some(Some(head)) = &changes.head
                        && show(key, &head.value, head.expires_at_ms)?.is_break()
                    {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                if !is_changed && show(record.pk, record.value, record.expires_at_ms)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        for (key, changes) in changed {
            if let Some(Some(head)) = &changes.head
                && show(key, &head.value, head.expires_at_ms)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
