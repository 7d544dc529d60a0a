//! Commits a transaction: everything that it changed, in one batch.

use std::borrow::Cow;

use kstone_core::{Durability, KeyRef, WriteBatch};

use crate::fault::Result;
use crate::store::annex;
use crate::store::changes::{Changes, Head, KeyChanges};
use crate::store::databases::DATABASES;
use crate::store::txn::{ALARM, Committed, Txn};

/// The first byte of the sort keys of parts that are looked up by their names, in keys of all types
/// that have such parts.
const MEMBER: u8 = 1;

impl Txn<'_> {
    /// Commits everything at once, and hands over what is to be told.
    pub(crate) fn commit(mut self, durability: Durability) -> Result<Committed> {
        let writes_to = |changes: &Changes, slot, key: &[u8]| {
            changes.get(slot, key).map_or(0, |changes| changes.writes)
        };
        self.held.before_commit(|slot, key| writes_to(&self.changes, slot, key));
        if self.is_clean() {
            self.held.committed();
            self.committed.seq = self.engine.applied_seq();
            return Ok(self.committed);
        }
        if let Some(fault) = self.failure.take().or(self.refused.take()) {
            return Err(fault);
        }
        let mut batch = WriteBatch::new();
        if let Some(layout) = &mut self.layout {
            for &slot in &self.emptied {
                let is_written_to = self.changes.slot(slot).next().is_some();
                self.databases.flush(layout, slot, &mut batch, is_written_to)?;
            }
            // A table that is made from here on would not be in the layout that is written down.
            for slot in self.changes.slots() {
                self.databases.ensure_table(layout, slot)?;
            }
            self.databases.note(layout, &mut batch)?;
        }
        for (name, text) in &self.libraries {
            self.databases.note_library(name, text.as_deref(), &mut batch)?;
        }
        let mut counts = [0i64; DATABASES];
        batch.reserve(self.changes.heads_len());
        let mut last = None;
        for (slot, key, changes) in self.changes.iter() {
            let own = self.layout.as_ref().and_then(|layout| layout.table(slot));
            let table = match (own, last) {
                (Some(table), _) => table,
                (None, Some((of, table))) if of == slot => table,
                (None, _) => self.databases.table_for_writes(slot)?,
            };
            last = Some((slot, table));
            let at = |sk| KeyRef { pk: key.as_slice(), sk };
            let (mut parts_table, mut parts_pk) = (table, Cow::Borrowed(key.as_slice()));
            if changes.dropped {
                batch.drop_partition(table, key)?;
            }
            let mut annex = changes.annex;
            if let Some(old) = self.stored_annex(slot, key)
                && let Some(annexes) = self.databases.annex_table(slot)
                && !self.emptied.contains(&slot)
            {
                if changes.dropped {
                    batch.drop_partition(annexes, &old.partition())?;
                } else {
                    annex = annex.or(Some(old));
                }
            }
            if let Some(annex) = annex {
                parts_table = self.databases.annex_table_for_writes(slot)?;
                parts_pk = Cow::Owned(annex.partition().to_vec());
            }
            match &changes.head {
                Some(Some(Head { value, expires_at_ms })) => {
                    let value = match annex {
                        Some(annex) => Cow::Owned(annex::join(annex, value)),
                        None => Cow::Borrowed(value.as_ref()),
                    };
                    match expires_at_ms {
                        Some(at_ms) => batch.put_expiring(table, at(None), &value, *at_ms)?,
                        None => batch.put(table, at(None), &value)?,
                    }
                }
                Some(None) if changes.existed && !changes.dropped => {
                    batch.delete(table, at(None))?
                }
                Some(None) | None => {}
            }
            for (sk, value) in changes.parts.iter() {
                let at = KeyRef { pk: &parts_pk, sk: Some(sk) };
                match value {
                    Some(value) => batch.put(parts_table, at, value)?,
                    None => batch.delete(parts_table, at)?,
                }
            }
            match changes.alarm {
                Some(Some(at_ms)) => batch.put_expiring(table, at(Some(ALARM)), &[], at_ms)?,
                Some(None) => batch.delete(table, at(Some(ALARM)))?,
                None => {}
            }
            if let Some(count) = counts.get_mut(usize::from(slot)) {
                *count += difference(changes);
            }
            if changes.writes > 0 {
                self.held.forget_unless_held(slot, key);
            }
        }
        for (entry, is_written) in self.index_entries() {
            self.databases.note_subject(entry, is_written, &mut batch)?;
        }
        for (slot, annex) in &self.orphans {
            if let Some(table) = self.databases.annex_table(*slot)
                && !self.emptied.contains(slot)
            {
                batch.drop_partition(table, &annex.partition())?;
            }
        }
        if !self.filling.is_empty() {
            let is_wanted = |slot, annex| {
                self.changes.slot(slot).any(|(_, changes)| {
                    changes.annex == Some(annex) && matches!(changes.head, Some(Some(_)))
                })
            };
            self.filling.finish(&mut batch, is_wanted, |slot| self.emptied.contains(&slot))?;
        }
        // Who reads next would have to do first what is left for later.
        let commit = match self.may_be_later && !self.has_read.get() {
            false => self.engine.write(&batch, durability),
            true => self.engine.write_later(&batch, durability),
        };
        self.keep_recent(commit.is_ok());
        let commit = commit?;
        self.filling.handed_over();
        self.committed.seq = commit.seq();
        // A caller that has to wait for the disk waits by the number.
        drop(commit);
        self.held.committed();
        if let Some(layout) = self.layout {
            self.databases.install(layout, &self.emptied);
        }
        for (slot, count) in counts.into_iter().enumerate() {
            if count != 0 {
                self.databases.counts.add(slot as u8, count);
            }
        }
        Ok(self.committed)
    }
}

impl Txn<'_> {
    /// What was written takes the place of what was kept; nothing is kept of what may or may not
    /// have been written.
    fn keep_recent(&self, is_written: bool) {
        let (heads, members) = (&self.databases.heads, &self.databases.members);
        for (slot, key, changes) in self.changes.iter() {
            let own = self.layout.as_ref().and_then(|layout| layout.table(slot));
            let Some(table) = own.or_else(|| self.databases.table(slot)) else { continue };
            let at = |sk| KeyRef { pk: key.as_slice(), sk };
            // A head that names an annex is not stored as it is here, and its parts are elsewhere.
            let has_annex = changes.annex.is_some() || self.stored_annex(slot, key).is_some();
            let is_known = is_written && !has_annex;
            if changes.dropped || !is_known {
                members.dropped(table, key);
            }
            if changes.is_copied {
                members.dropped(table, key);
                members.lose_sight_of(table);
            }
            match &changes.head {
                None => {}
                Some(_) if !is_known => heads.forget(table, at(None)),
                Some(None) => heads.keep(table, at(None), None, None),
                Some(Some(Head { value, expires_at_ms })) => {
                    let (value, mark) = (Some(value.as_ref()), changes.pattern_mark);
                    heads.keep_marked(table, at(None), value, *expires_at_ms, mark);
                }
            }
            if !changes.has_members {
                continue;
            }
            let named = || changes.parts.iter().filter(|(sk, _)| sk.first() == Some(&MEMBER));
            members.warm(table, named().map(|(sk, _)| at(Some(sk))));
            for (sk, value) in named() {
                match is_known {
                    true => members.keep(table, at(Some(sk)), value.as_deref(), None),
                    false => members.forget(table, at(Some(sk))),
                }
            }
        }
    }
}

/// How many keys more there are.
pub(super) fn difference(changes: &KeyChanges) -> i64 {
    match &changes.head {
        Some(head) => i64::from(head.is_some()) - i64::from(changes.existed),
        None => 0,
    }
}
