//! One sorted set: its members and scores, and the writes that keep its records and its in-memory
//! form in step.

use bytes::Bytes;

use crate::commands::sorted_sets::layout::{self, Extent};
use crate::commands::sorted_sets::ranked::Ranked;
use crate::fault::Result;
use crate::store::{Entry, Kind, Txn};

/// A sorted set that is there, or is about to be.
#[derive(Debug)]
pub(crate) struct SortedSet {
    len: u64,
    /// As the head says; `None` if there is no head.
    stored_len: Option<u64>,
    extent: Extent,
    /// Whether the extent is not as the head says.
    is_moved: bool,
    expires_at_ms: Option<u64>,
}

impl SortedSet {
    /// The set under a key, if there is one; an error if the key holds something else.
    pub(crate) fn find(txn: &mut Txn<'_>, key: &[u8]) -> Result<Option<SortedSet>> {
        txn.lookup_kind(key, Kind::SortedSet)?
            .map(|entry| SortedSet::from_entry(&entry))
            .transpose()
    }

    /// The same, or an empty one.
    pub(crate) fn find_or_new(txn: &mut Txn<'_>, key: &[u8]) -> Result<SortedSet> {
        Ok(SortedSet::find(txn, key)?.unwrap_or_else(SortedSet::new))
    }

    fn new() -> SortedSet {
        SortedSet {
            len: 0,
            stored_len: None,
            extent: Extent::default(),
            is_moved: false,
            expires_at_ms: None,
        }
    }

    /// The set that an entry is the head of.
    pub(crate) fn from_entry(entry: &Entry) -> Result<SortedSet> {
        let (len, extent) = layout::read_head(&entry.body)?;
        let (stored_len, expires_at_ms) = (Some(len), entry.expires_at_ms);
        Ok(SortedSet { len, stored_len, extent, is_moved: false, expires_at_ms })
    }

    /// How many members it has.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Where in the index its members are.
    pub(super) fn extent(&self) -> &Extent {
        &self.extent
    }

    /// A member's score.
    pub(crate) fn score(txn: &Txn<'_>, key: &[u8], member: &[u8]) -> Result<Option<f64>> {
        let part = txn.member(key, &layout::member_key(member))?;
        part.map(|value| layout::read_score(&value)).transpose()
    }

    /// Adds a member, or changes its score from `old`. [`save`](SortedSet::save) has to follow.
    pub(crate) fn insert(
        &mut self,
        txn: &mut Txn<'_>,
        key: &[u8],
        member: &[u8],
        old: Option<f64>,
        score: f64,
    ) {
        let value = Bytes::copy_from_slice(&layout::score_value(score));
        txn.put_member(key, &layout::member_key(member), value);
        let mut writes = 2;
        match old {
            Some(old) => {
                txn.delete_part(key, &layout::index_key(old, member));
                writes += 1;
            }
            None => self.len += 1,
        }
        let place = layout::index_key(score, member);
        if place.as_slice() < self.extent.floor() || place.as_slice() >= self.extent.ceiling() {
            self.extent.include(&place);
            self.is_moved = true;
        }
        txn.put_part(key, &place, Bytes::from_static(layout::index_value(score)));
        txn.step_resident(key, writes, |ranked: &mut Ranked| {
            if let Some(old) = old {
                ranked.remove(old, member);
            }
            ranked.insert(score, member);
        });
    }

    /// Takes out a member, which has this score. [`save`](SortedSet::save) has to follow.
    pub(crate) fn remove(&mut self, txn: &mut Txn<'_>, key: &[u8], member: &[u8], score: f64) {
        txn.delete_member(key, &layout::member_key(member));
        txn.delete_part(key, &layout::index_key(score, member));
        txn.step_resident(key, 2, |ranked: &mut Ranked| ranked.remove(score, member));
        self.len = self.len.saturating_sub(1);
    }

    /// Takes out these members, which have these scores. [`save`](SortedSet::save) has to follow.
    pub(super) fn remove_members(
        &mut self,
        txn: &mut Txn<'_>,
        key: &[u8],
        members: &[(Vec<u8>, f64)],
    ) -> Result<()> {
        /// Fewer are removed one by one: that leaves no mark over what the key is next.
        const MANY: u64 = 32;
        if self.len == members.len() as u64
            && self.len > MANY
            && let Some(entry) = txn.lookup(key)?
        {
            txn.remove(key, &entry);
            self.len = 0;
            return Ok(());
        }
        for (member, score) in members {
            self.remove(txn, key, member, *score);
        }
        Ok(())
    }

    /// Takes out these members, which are the lowest and have these scores.
    /// [`save`](SortedSet::save) has to follow.
    pub(crate) fn remove_lowest(
        &mut self,
        txn: &mut Txn<'_>,
        key: &[u8],
        members: &[(Vec<u8>, f64)],
    ) -> Result<()> {
        self.remove_members(txn, key, members)?;
        if let Some((member, score)) = members.last() {
            self.begins_after(member, *score);
        }
        Ok(())
    }

    /// The members up to this one were all taken out.
    pub(super) fn begins_after(&mut self, member: &[u8], score: f64) {
        self.extent.set_floor(&layout::index_key(score, member));
        self.is_moved = true;
    }

    /// The members from this one on were all taken out.
    pub(super) fn ends_before(&mut self, member: &[u8], score: f64) {
        self.extent.set_ceiling(&layout::index_key(score, member));
        self.is_moved = true;
    }

    /// Writes down how many members there are now; a set without members is no more.
    pub(crate) fn save(self, txn: &mut Txn<'_>, key: &[u8]) -> Result<()> {
        match (self.len, self.stored_len) {
            (0, None) => {}
            (0, Some(_)) => txn.remove_empty(key),
            (len, Some(stored)) if len == stored && !self.is_moved => {}
            (len, stored) => {
                let head = layout::head(len, &self.extent);
                txn.put_head(key, Kind::SortedSet, &head, self.expires_at_ms)?;
                if stored.is_none() {
                    txn.signal(key);
                }
            }
        }
        Ok(())
    }

    /// Puts a set of these members in the place of whatever the key holds; with none, the key is
    /// removed. Returns whether there was something. No member may come twice.
    pub(crate) fn replace<'m>(
        txn: &mut Txn<'_>,
        key: &[u8],
        members: impl Iterator<Item = (&'m [u8], f64)>,
    ) -> Result<bool> {
        let old = txn.lookup(key)?;
        if let Some(entry) = &old {
            txn.remove(key, entry);
        }
        let mut set = SortedSet::new();
        for (member, score) in members {
            set.insert(txn, key, member, None, score);
        }
        if set.len > 0 {
            txn.touch(key);
        }
        set.save(txn, key)?;
        Ok(old.is_some())
    }
}
