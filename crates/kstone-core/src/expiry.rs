//! The expiry index: what expires, ordered by when.
//!
//! Every record with an expiry has an index entry in the same stripe, in a table of its own:
//! `EXPIRY table (4) | expires_at_ms (8, big-endian) | stored key`. It is written with the record
//! and is not logged, because replaying the record writes it again. An overwritten or deleted
//! record leaves its old index entry behind, which the scan for expired records removes.
//!
//! Expiry is exact on read whatever this index says. The index only finds what to reclaim, and
//! reclaiming is a normal delete by the layer above, so that its indexes, counters and streams see
//! it.

use crate::batch::WriteBatch;
use crate::engine::locks::StripeGuards;
use crate::engine::write::Durability;
use crate::engine::{Engine, Inner};
use crate::entry::{EntryRef, Kind, Seq};
use crate::error::Result;
use crate::key::Key;
use crate::key::internal::{self, Decoded};
use crate::stripes::StripeSet;
use crate::sync::Arc;
use crate::table::TableId;
use crate::tree::merge::Merge;
use crate::tree::stripe::is_expired;

/// A record whose time is over and that still takes room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expired {
    /// The table.
    pub table: TableId,
    /// The key.
    pub key: Key,
    /// When it expired.
    pub expires_at_ms: u64,
    /// Its version: the sequence number of the write.
    pub version: Seq,
}

impl Engine {
    /// Up to `limit` records that have expired and not been reclaimed, oldest expiry first within
    /// a stripe, starting at stripe `from`; with the stripe to go on with, `None` when the round
    /// is done.
    ///
    /// The layer above reclaims each under [`Engine::lock`] with [`WriteBatch::reclaim`], after
    /// checking with [`Locked::get_even_expired`](crate::Locked::get_even_expired) that it is still
    /// the same version.
    pub fn expired(&self, from: u8, limit: usize) -> Result<(Vec<Expired>, Option<u8>)> {
        let mut found = Vec::new();
        for stripe in from..=255 {
            self.inner().expired_in(stripe, limit.saturating_sub(found.len()), &mut found)?;
            if found.len() >= limit {
                return Ok((found, Some(stripe)));
            }
        }
        Ok((found, None))
    }

    /// When to look for expired records next: no record that is not reclaimed expires earlier. (An
    /// overwritten record counts until [`Engine::expired`] has passed it.)
    pub fn next_expiry_ms(&self) -> Result<Option<u64>> {
        let mut next = None;
        for stripe in 0..=255 {
            let mut index = self.inner().expiry_index(stripe)?;
            if let Some((at_ms, _)) = index.next()? {
                next = Some(next.map_or(at_ms, |n: u64| n.min(at_ms)));
            }
        }
        Ok(next)
    }
}

impl WriteBatch {
    /// Deletes an expired record together with its index entry.
    pub fn reclaim(&mut self, expired: &Expired) -> Result<()> {
        self.delete(expired.table, &expired.key)?;
        let stored = internal::encode(expired.table, &expired.key);
        self.unindex(expired.key.stripe(), expired.expires_at_ms, &stored)
    }

    /// Deletes an index entry.
    pub(crate) fn unindex(&mut self, stripe: u8, expires_at_ms: u64, stored: &[u8]) -> Result<()> {
        // The index is no table that a caller may name, so there is none to check: any one will do.
        self.push_delete(stripe, TableId::DEFAULT, &index_key(expires_at_ms, stored))
    }
}

/// The key of a record's index entry.
pub(crate) fn index_key(expires_at_ms: u64, stored: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(12 + stored.len());
    key.extend_from_slice(&TableId::EXPIRY.0.to_be_bytes());
    key.extend_from_slice(&expires_at_ms.to_be_bytes());
    key.extend_from_slice(stored);
    key
}

/// The key of the index entry that goes with an entry, if one does.
pub(crate) fn index_key_of(entry: &EntryRef<'_>) -> Option<Vec<u8>> {
    (entry.kind == Kind::Put && entry.expires_at_ms != 0)
        .then(|| index_key(entry.expires_at_ms, entry.key))
}

/// The index entry that goes with an entry.
pub(crate) fn index_entry<'a>(entry: &EntryRef<'_>, index_key: &'a [u8]) -> EntryRef<'a> {
    let (seq, kind) = (entry.seq, entry.kind);
    EntryRef { key: index_key, seq, kind, expires_at_ms: 0, value: b"" }
}

/// Takes the key of an index entry apart.
pub(crate) fn parse_index_key(key: &[u8]) -> Option<(u64, &[u8])> {
    let (at_ms, stored) = key.get(internal::TABLE_LEN..)?.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*at_ms), stored))
}

/// Walks a stripe's index entries in order of expiry, as of now.
pub(crate) struct ExpiryIndex {
    merge: Merge,
    last: Vec<u8>,
}

impl ExpiryIndex {
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        while let Some(entry) = self.merge.entry() {
            let is_newest = entry.key != self.last.as_slice();
            let live = is_newest && entry.kind == Kind::Put;
            self.last.clear();
            self.last.extend_from_slice(entry.key);
            self.merge.next()?;
            if live && let Some((at_ms, stored)) = parse_index_key(&self.last) {
                return Ok(Some((at_ms, stored.to_vec())));
            }
        }
        Ok(None)
    }
}

impl Inner {
    pub(crate) fn expiry_index(&self, stripe: u8) -> Result<ExpiryIndex> {
        let low = internal::table_start(TableId::EXPIRY);
        let mut merge = Merge::new(self.stripe(stripe).version().cursors(&low, None));
        merge.seek(&low, Seq::MAX)?;
        Ok(ExpiryIndex { merge, last: Vec::new() })
    }

    /// Collects expired records of a stripe and removes index entries that point at nothing.
    fn expired_in(
        self: &Arc<Self>,
        stripe: u8,
        limit: usize,
        found: &mut Vec<Expired>,
    ) -> Result<()> {
        let now_ms = self.clock.now_ms();
        let (mut stale, wanted) = (Vec::new(), found.len() + limit);
        let mut index = self.expiry_index(stripe)?;
        while found.len() < wanted && stale.len() < 10_000 {
            let Some((at_ms, stored)) = index.next()? else { break };
            if !is_expired(at_ms, now_ms) {
                break;
            }
            match self.indexed_record(stripe, at_ms, &stored)? {
                Some((table, key, version)) => {
                    found.push(Expired { table, key, expires_at_ms: at_ms, version });
                }
                None => stale.push((at_ms, stored)),
            }
        }
        self.remove_stale(stripe, &stale)
    }

    /// The record that an index entry points at, if it still has that expiry.
    fn indexed_record(
        &self,
        stripe: u8,
        at_ms: u64,
        stored: &[u8],
    ) -> Result<Option<(TableId, Key, Seq)>> {
        let Some((table, Decoded::Record(key))) = internal::decode(stored) else { return Ok(None) };
        if !self.tables().visible_at(table, Seq::MAX) {
            return Ok(None);
        }
        // At time 0 nothing has expired: this asks for the record itself.
        let hit = self.stripe(stripe).version().get(stored, Seq::MAX, || 0)?;
        Ok(hit.filter(|hit| hit.expires_at_ms == at_ms).map(|hit| (table, key, hit.seq)))
    }

    /// Removes index entries that point at nothing, after looking again under the stripe's lock: a
    /// write may just have given the record this very expiry.
    fn remove_stale(self: &Arc<Self>, stripe: u8, stale: &[(u64, Vec<u8>)]) -> Result<()> {
        if stale.is_empty() {
            return Ok(());
        }
        let stripes: StripeSet = [stripe].into_iter().collect();
        self.admit(0, &stripes)?;
        let guards = StripeGuards::lock(self, &stripes);
        let mut batch = WriteBatch::new();
        for (at_ms, stored) in stale {
            if self.indexed_record(stripe, *at_ms, stored)?.is_none() {
                batch.unindex(stripe, *at_ms, stored)?;
            }
            if batch.encoded_len() > 8 << 20 {
                break; // the rest is found again
            }
        }
        self.commit(&batch, Durability::Os, guards)?.wait()
    }
}
