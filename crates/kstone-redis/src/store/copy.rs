//! Copying a key with all its parts, whatever its type.

use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

use crate::fault::Result;
use crate::store::{Entry, Kind, Txn, fields};

/// How many bytes of parts are held at a time while they go from one key to the other.
const CHUNK_LEN: usize = 1 << 20;

impl Txn<'_> {
    /// Makes `to` what `from` is, expiry included, and removes `from`. There must be no `to`.
    pub(crate) fn rename_key(&mut self, from: &[u8], entry: &Entry, to: &[u8]) -> Result<()> {
        self.put_made_head(to, entry.kind, &entry.body, entry.expires_at_ms)?;
        if self.hand_over_annex(from, to) {
            self.signal_gone(from, entry);
        } else {
            self.copy_parts(from, entry, self.db(), to)?;
            self.remove(from, entry);
        }
        Ok(())
    }

    /// Writes the head of a key whose head and parts were made elsewhere.
    pub(crate) fn put_made_head(
        &mut self,
        key: &[u8],
        kind: Kind,
        body: &[u8],
        expires_at_ms: Option<u64>,
    ) -> Result<()> {
        if kind == Kind::Hash {
            fields::set_alarm(self, key, body)?;
        }
        self.put_head(key, kind, body, expires_at_ms)
    }

    /// Makes `to` in the database `to_db` what `from` is here, expiry included. There must be no
    /// `to`: who replaces a key removes it first.
    pub(crate) fn copy_key(
        &mut self,
        from: &[u8],
        entry: &Entry,
        to_db: u8,
        to: &[u8],
    ) -> Result<()> {
        let from_db = self.select(to_db);
        let made = self.put_made_head(to, entry.kind, &entry.body, entry.expires_at_ms);
        self.select(from_db);
        made?;
        self.copy_parts(from, entry, to_db, to)
    }

    fn copy_parts(&mut self, from: &[u8], entry: &Entry, to_db: u8, to: &[u8]) -> Result<()> {
        if !entry.kind.has_parts() {
            return Ok(());
        }
        let from_db = self.db();
        let mut last: Option<Vec<u8>> = None;
        loop {
            let (mut parts, mut len) = (Vec::new(), 0);
            let low = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            self.each_part(from, low, Bound::Unbounded, false, |sk, value| {
                len += sk.len() + value.len();
                parts.push((sk.to_vec(), Bytes::copy_from_slice(value)));
                Ok(if len < CHUNK_LEN { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            })?;
            self.select(to_db);
            for (sk, value) in &parts {
                self.step();
                self.put_copied_part(to, sk, value.clone());
            }
            self.select(from_db);
            match parts.pop() {
                Some((sk, _)) if len >= CHUNK_LEN => last = Some(sk),
                _ => return Ok(()),
            }
        }
    }
}
