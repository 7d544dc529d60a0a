//! Fetches records into the record cache before they are needed: heads of keys, and parts that are
//! looked up by name.

use std::borrow::Cow;

use bytes::Bytes;
use kstone_core::KeyRef;

use crate::fault::Result;
use crate::store::txn::Txn;

impl Txn<'_> {
    /// These keys are about to be looked up.
    pub(crate) fn expect<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        if let Some(table) = self.databases.table(self.slot) {
            self.databases.heads.warm(table, keys.map(|pk| KeyRef { pk, sk: None }));
        }
    }

    /// These members of keys are about to be looked up: key and sort key of each.
    pub(crate) fn expect_members<'k>(&self, members: impl Iterator<Item = (&'k [u8], &'k [u8])>) {
        if let Some(table) = self.databases.table(self.slot) {
            let keys = members.map(|(pk, sk)| KeyRef { pk, sk: Some(sk) });
            self.databases.members.warm(table, keys);
        }
    }

    /// One part of a key that is there, for keys whose parts are looked up by their names. All such
    /// parts of them are written by [`put_member`](Txn::put_member) and
    /// [`delete_member`](Txn::delete_member).
    pub(crate) fn member(&self, key: &[u8], sk: &[u8]) -> Result<Option<Bytes>> {
        let changes = self.changes.get(self.slot, key);
        if let Some(part) = changes.and_then(|changes| changes.parts.get(sk)) {
            return Ok(part.clone());
        }
        let Some((table, pk)) = self.parts_at(key) else { return Ok(None) };
        let at = KeyRef { pk: &pk, sk: Some(sk) };
        // What is written to an annex is not told.
        let is_told = matches!(pk, Cow::Borrowed(_));
        if is_told && let Some(known) = self.databases.members.get(table, at) {
            return Ok(known.value);
        }
        self.has_read.set(true);
        let found = self.engine.get(table, at)?.map(|record| record.value);
        if is_told {
            self.databases.members.keep(table, at, found.as_deref(), None);
        }
        Ok(found)
    }

    /// Writes one part that is looked up by its name.
    pub(crate) fn put_member(&mut self, key: &[u8], sk: &[u8], value: impl Into<Bytes>) {
        self.changes.at(self.slot, key).has_members = true;
        self.put_part(key, sk, value);
    }

    /// Removes one part that is looked up by its name, and was there.
    pub(crate) fn delete_member(&mut self, key: &[u8], sk: &[u8]) {
        self.changes.at(self.slot, key).has_members = true;
        self.delete_part(key, sk);
    }

    /// Writes one part of a key that is like another, whatever it is.
    pub(crate) fn put_copied_part(&mut self, key: &[u8], sk: &[u8], value: impl Into<Bytes>) {
        self.changes.at(self.slot, key).is_copied = true;
        self.put_part(key, sk, value);
    }
}
