//! The groups of a stream, their consumers, and the entries that were delivered and not
//! acknowledged.
//!
//! A group has a number, which the parts of its consumers and pending entries begin with. What is
//! pending is kept twice: by its name for the group, with who has it; and by its owner and its name
//! for the consumer. So acknowledging one entry touches four records, however many are pending.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use super::codec::{self, DAMAGED};
use super::id::Id;
use super::stream::{self, Stream};
use crate::fault::{Fault, Result};
use crate::store::Txn;

/// A group: the name.
const GROUP: u8 = 3;
/// A consumer: the group's number, the name.
const CONSUMER: u8 = 4;
/// A pending entry: the group's number, the entry's name.
const PENDING: u8 = 5;
/// The same for its owner: the group's number, the owner, the entry's name; the value is empty.
const OWNED: u8 = 6;

/// A name has to fit into a sort key, together with the key.
const NAME_LEN_MAX: usize = 16 << 10;
/// Beyond so many bytes of records the group does not go by them one by one.
const REMOVED_BYTES_MAX: u64 = 16 << 20;

/// Refuses a name that no sort key can hold.
pub(super) fn check_name(name: &[u8]) -> Result<()> {
    const TOO_LONG: Fault =
        Fault::fixed("ERR the name of a group or consumer is too long: the limit is 16 KiB");
    if name.len() > NAME_LEN_MAX { Err(TOO_LONG) } else { Ok(()) }
}

/// A group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Group {
    /// Its number among the groups that the stream ever had.
    number: u32,
    /// The last entry that was delivered.
    pub(super) last: Id,
    /// How many entries were read of all that were ever added, if that is known.
    pub(super) entries_read: Option<u64>,
    /// How many entries are pending.
    pub(super) pending: u64,
    /// How many consumers there are.
    pub(super) consumers: u64,
    /// No entry after this was ever pending.
    max_pending: Id,
}

/// A consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Consumer {
    /// When it last asked for something.
    pub(super) seen_ms: u64,
    /// How many entries are pending for it.
    pub(super) pending: u64,
}

/// An entry that was delivered and not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) owner: Vec<u8>,
    /// When it was delivered last.
    pub(super) delivered_ms: u64,
    /// How often it was delivered.
    pub(super) count: u64,
}

fn group_key(name: &[u8]) -> Vec<u8> {
    [&[GROUP], name].concat()
}

fn prefix(kind: u8, number: u32) -> [u8; 5] {
    let [a, b, c, d] = number.to_be_bytes();
    [kind, a, b, c, d]
}

fn pending_key(number: u32, id: Id) -> [u8; 21] {
    let mut key = [0; 21];
    let (front, back) = key.split_at_mut(5);
    front.copy_from_slice(&prefix(PENDING, number));
    back.copy_from_slice(&id.to_bytes());
    key
}

/// The length goes first, so that no owner's entries are among those of another.
fn owned_key(number: u32, owner: &[u8], id: Id) -> Vec<u8> {
    let len = (owner.len() as u16).to_be_bytes();
    [&prefix(OWNED, number), &len[..], owner, &id.to_bytes()].concat()
}

/// The names of entries are the end of both keys.
fn id_of(sk: &[u8]) -> Result<Id> {
    sk.last_chunk::<16>().and_then(|id| Id::from_bytes(id)).ok_or(DAMAGED)
}

impl Group {
    /// The group of this name, if there is one.
    pub(super) fn find(txn: &Txn<'_>, key: &[u8], name: &[u8]) -> Result<Option<Group>> {
        if name.len() > NAME_LEN_MAX {
            return Ok(None);
        }
        match txn.part(key, &group_key(name))? {
            Some(value) => Group::read(&value).map(Some),
            None => Ok(None),
        }
    }

    /// A new group of a stream. The caller saves both.
    pub(super) fn create(
        stream: &mut Stream,
        last: Id,
        entries_read: Option<u64>,
    ) -> Result<Group> {
        const TOO_MANY: Fault = Fault::fixed("ERR the stream has had too many groups");
        let number = u32::try_from(stream.next_group).map_err(|_| TOO_MANY)?;
        stream.next_group += 1;
        stream.groups += 1;
        Ok(Group { number, last, entries_read, ..Group::default() })
    }

    fn read(mut value: &[u8]) -> Result<Group> {
        let from = &mut value;
        let mut read = || {
            let number = u32::try_from(codec::number(from)?).ok()?;
            let (last, max_pending) = (codec::id(from)?, codec::id(from)?);
            let (pending, consumers) = (codec::number(from)?, codec::number(from)?);
            let entries_read = codec::number(from)?.checked_sub(1);
            Some(Group { number, last, entries_read, pending, consumers, max_pending })
        };
        read().ok_or(DAMAGED)
    }

    pub(super) fn save(&self, txn: &mut Txn<'_>, key: &[u8], name: &[u8]) {
        let mut value = Vec::with_capacity(32);
        codec::put_number(&mut value, self.number.into());
        codec::put_id(&mut value, self.last);
        codec::put_id(&mut value, self.max_pending);
        codec::put_number(&mut value, self.pending);
        codec::put_number(&mut value, self.consumers);
        codec::put_number(&mut value, self.entries_read.map_or(0, |read| read.saturating_add(1)));
        txn.put_part(key, &group_key(name), value);
    }

    /// Shows every group of a stream in the order of the names.
    pub(super) fn each(
        txn: &Txn<'_>,
        key: &[u8],
        mut see: impl FnMut(&[u8], Group) -> Result<()>,
    ) -> Result<()> {
        let (low, high) = (Bound::Included(&[GROUP][..]), Bound::Excluded(&[CONSUMER][..]));
        txn.each_part(key, low, high, false, |sk, value| {
            see(sk.get(1..).unwrap_or_default(), Group::read(value)?)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Removes the group with everything of it. The caller saves the stream.
    pub(super) fn destroy(
        &self,
        txn: &mut Txn<'_>,
        key: &[u8],
        stream: &mut Stream,
        name: &[u8],
    ) -> Result<()> {
        stream.groups = stream.groups.saturating_sub(1);
        let own = group_key(name);
        let own_parts = [CONSUMER, PENDING, OWNED].map(|kind| prefix(kind, self.number));
        let is_own = |sk: &[u8]| sk == own || own_parts.iter().any(|own| sk.starts_with(own));
        let records = self.pending.saturating_mul(2).saturating_add(self.consumers);
        if records.saturating_mul((key.len() + 64) as u64) > REMOVED_BYTES_MAX {
            return stream::rewrite(txn, key, stream, |sk| !is_own(sk));
        }
        let mut gone = Vec::new();
        for part in own_parts {
            each_behind(txn, key, &part, |sk, _| {
                gone.push(sk.to_vec());
                Ok(ControlFlow::Continue(()))
            })?;
        }
        gone.iter().for_each(|sk| txn.delete_part(key, sk));
        txn.delete_part(key, &own);
        Ok(())
    }

    /// A consumer of the group, if there is one of this name.
    pub(super) fn consumer(
        &self,
        txn: &Txn<'_>,
        key: &[u8],
        name: &[u8],
    ) -> Result<Option<Consumer>> {
        if name.len() > NAME_LEN_MAX {
            return Ok(None);
        }
        match txn.part(key, &[&prefix(CONSUMER, self.number), name].concat())? {
            Some(value) => Consumer::read(&value).map(Some),
            None => Ok(None),
        }
    }

    /// Shows every consumer in the order of the names.
    pub(super) fn each_consumer(
        &self,
        txn: &Txn<'_>,
        key: &[u8],
        mut see: impl FnMut(&[u8], Consumer) -> Result<()>,
    ) -> Result<()> {
        each_behind(txn, key, &prefix(CONSUMER, self.number), |sk, value| {
            see(sk.get(5..).unwrap_or_default(), Consumer::read(value)?)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// A pending entry.
    pub(super) fn pending_entry(
        &self,
        txn: &Txn<'_>,
        key: &[u8],
        id: Id,
    ) -> Result<Option<Pending>> {
        match txn.part(key, &pending_key(self.number, id))? {
            Some(value) => Pending::read(&value).map(Some),
            None => Ok(None),
        }
    }

    /// Shows the pending entries in a range, in order or in reverse, until told to stop.
    pub(super) fn each_pending(
        &self,
        txn: &Txn<'_>,
        key: &[u8],
        (start, end): (Id, Id),
        reverse: bool,
        mut see: impl FnMut(Id, Pending) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if start > end || self.pending == 0 {
            return Ok(());
        }
        let (low, high) = (pending_key(self.number, start), pending_key(self.number, end));
        let (low, high) = (Bound::Included(&low[..]), Bound::Included(&high[..]));
        txn.each_part(key, low, high, reverse, |sk, value| see(id_of(sk)?, Pending::read(value)?))
    }

    /// Shows what is pending for one consumer in a range, until told to stop.
    pub(super) fn each_owned(
        &self,
        txn: &Txn<'_>,
        key: &[u8],
        owner: &[u8],
        (start, end): (Id, Id),
        mut see: impl FnMut(Id) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if start > end {
            return Ok(());
        }
        let low = owned_key(self.number, owner, start);
        let high = owned_key(self.number, owner, end);
        txn.each_part(key, Bound::Included(&low), Bound::Included(&high), false, |sk, _| {
            see(id_of(sk)?)
        })
    }

    // ---- how far the group has come

    /// Notes that an entry behind all others that were read was delivered.
    pub(super) fn advance(&mut self, stream: &Stream, id: Id) {
        self.entries_read = match self.entries_read {
            Some(read) if !stream.has_gap_from(id) => Some(read.saturating_add(1)),
            read if stream.added == 0 => read,
            _ => stream.entries_up_to(id),
        };
        self.last = id;
    }

    /// How many entries are still to be delivered, if that is known.
    pub(super) fn lag(&self, stream: &Stream) -> Option<i64> {
        if stream.added == 0 {
            return Some(0);
        }
        let read = match self.entries_read {
            Some(read) if !stream.has_gap_from(self.last) => read,
            _ => stream.entries_up_to(self.last)?,
        };
        Some(stream.added.wrapping_sub(read) as i64)
    }
}

impl Stream {
    /// Whether an entry from this one on may have been deleted from among others.
    fn has_gap_from(&self, id: Id) -> bool {
        self.len > 0
            && self.max_deleted != Id::MIN
            && self.first <= self.max_deleted
            && id <= self.max_deleted
    }

    /// How many entries were ever added up to this one, if that can be told.
    pub(super) fn entries_up_to(&self, id: Id) -> Option<u64> {
        if self.added == 0 {
            return Some(0);
        }
        if (self.len == 0 && id <= self.last) || id == self.last {
            return Some(self.added);
        }
        let is_whole = self.max_deleted == Id::MIN || self.max_deleted < self.first;
        if id > self.last || !is_whole || id > self.first {
            return None;
        }
        let before = self.added.wrapping_sub(self.len);
        Some(before.wrapping_add(u64::from(id == self.first)))
    }
}

impl Consumer {
    fn read(mut value: &[u8]) -> Result<Consumer> {
        let mut read = || {
            let (seen_ms, pending) = (codec::number(&mut value)?, codec::number(&mut value)?);
            Some(Consumer { seen_ms, pending })
        };
        read().ok_or(DAMAGED)
    }
}

impl Pending {
    fn read(mut value: &[u8]) -> Result<Pending> {
        let mut read = || {
            let (delivered_ms, count) = (codec::number(&mut value)?, codec::number(&mut value)?);
            Some((delivered_ms, count))
        };
        let (delivered_ms, count) = read().ok_or(DAMAGED)?;
        Ok(Pending { owner: value.to_vec(), delivered_ms, count })
    }

    fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(16 + self.owner.len());
        codec::put_number(&mut value, self.delivered_ms);
        codec::put_number(&mut value, self.count);
        value.extend_from_slice(&self.owner);
        value
    }
}

/// Shows the parts that begin with these bytes.
fn each_behind(
    txn: &Txn<'_>,
    key: &[u8],
    prefix: &[u8; 5],
    see: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let [kind, number @ ..] = *prefix;
    let end = match u32::from_be_bytes(number).checked_add(1) {
        Some(next) => self::prefix(kind, next),
        None => self::prefix(kind + 1, 0),
    };
    txn.each_part(key, Bound::Included(prefix), Bound::Excluded(&end), false, see)
}

/// A group while a command changes who has what. Everything but the counts is written at once;
/// [`save`](Ledger::save) writes these.
#[derive(Debug)]
pub(super) struct Ledger<'k> {
    key: &'k [u8],
    name: &'k [u8],
    pub(super) group: Group,
    /// Those whose records change.
    consumers: BTreeMap<Vec<u8>, Consumer>,
}

impl<'k> Ledger<'k> {
    /// The group of this name, if there is one.
    pub(super) fn open(txn: &Txn<'_>, key: &'k [u8], name: &'k [u8]) -> Result<Option<Self>> {
        Ok(Group::find(txn, key, name)?.map(|group| Ledger::new(key, name, group)))
    }

    pub(super) fn new(key: &'k [u8], name: &'k [u8], group: Group) -> Self {
        Ledger { key, name, group, consumers: BTreeMap::new() }
    }

    /// Notes that a consumer was here; makes it if there is none of this name, and returns whether
    /// it did.
    pub(super) fn meet(&mut self, txn: &Txn<'_>, name: &[u8]) -> Result<bool> {
        let seen_ms = txn.now_ms();
        let found = match self.consumers.get(name) {
            Some(consumer) => Some(*consumer),
            None => self.group.consumer(txn, self.key, name)?,
        };
        if found.is_none() {
            self.group.consumers += 1;
        }
        let consumer = Consumer { seen_ms, ..found.unwrap_or_default() };
        self.consumers.insert(name.to_vec(), consumer);
        Ok(found.is_none())
    }

    /// A consumer as it was somewhere else.
    pub(super) fn set_seen(&mut self, name: &[u8], seen_ms: u64) {
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.seen_ms = seen_ms;
        }
    }

    /// Removes a consumer with what is pending for it; returns how much that was.
    pub(super) fn remove_consumer(
        &mut self,
        txn: &mut Txn<'_>,
        name: &[u8],
    ) -> Result<Option<u64>> {
        let Some(consumer) = self.group.consumer(txn, self.key, name)? else { return Ok(None) };
        let mut gone = Vec::new();
        self.group.each_owned(txn, self.key, name, (Id::MIN, Id::MAX), |id| {
            gone.push(id);
            Ok(ControlFlow::Continue(()))
        })?;
        for id in gone {
            txn.delete_part(self.key, &pending_key(self.group.number, id));
            txn.delete_part(self.key, &owned_key(self.group.number, name, id));
        }
        txn.delete_part(self.key, &[&prefix(CONSUMER, self.group.number), name].concat());
        self.group.pending = self.group.pending.saturating_sub(consumer.pending);
        self.group.consumers = self.group.consumers.saturating_sub(1);
        Ok(Some(consumer.pending))
    }

    /// The pending entry of this name. One that nobody could have got is not looked for.
    pub(super) fn pending_entry(&self, txn: &Txn<'_>, id: Id) -> Result<Option<Pending>> {
        if id > self.group.max_pending {
            return Ok(None);
        }
        self.group.pending_entry(txn, self.key, id)
    }

    fn consumer_mut(&mut self, txn: &Txn<'_>, name: &[u8]) -> Result<&mut Consumer> {
        if !self.consumers.contains_key(name) {
            let found = self.group.consumer(txn, self.key, name)?.ok_or(DAMAGED)?;
            self.consumers.insert(name.to_vec(), found);
        }
        self.consumers.get_mut(name).ok_or(DAMAGED)
    }

    /// An entry is not pending any more.
    pub(super) fn settle(&mut self, txn: &mut Txn<'_>, id: Id, owner: &[u8]) -> Result<()> {
        txn.delete_part(self.key, &pending_key(self.group.number, id));
        txn.delete_part(self.key, &owned_key(self.group.number, owner, id));
        self.group.pending = self.group.pending.saturating_sub(1);
        let consumer = self.consumer_mut(txn, owner)?;
        consumer.pending = consumer.pending.saturating_sub(1);
        Ok(())
    }

    /// An entry is pending for the owner that `pending` names, who is known; `was` is how it was
    /// pending before.
    pub(super) fn assign(
        &mut self,
        txn: &mut Txn<'_>,
        id: Id,
        pending: &Pending,
        was: Option<&Pending>,
    ) -> Result<()> {
        let number = self.group.number;
        if let Some(was) = was.filter(|was| was.owner != pending.owner) {
            self.settle(txn, id, &was.owner)?;
        }
        if was.is_none_or(|was| was.owner != pending.owner) {
            txn.put_part(self.key, &owned_key(number, &pending.owner, id), Vec::new());
            self.group.pending += 1;
            self.consumer_mut(txn, &pending.owner)?.pending += 1;
        }
        txn.put_part(self.key, &pending_key(number, id), pending.encode());
        self.group.max_pending = self.group.max_pending.max(id);
        Ok(())
    }

    /// Writes the group and the consumers that changed.
    pub(super) fn save(self, txn: &mut Txn<'_>) {
        for (name, consumer) in &self.consumers {
            let mut value = Vec::with_capacity(12);
            codec::put_number(&mut value, consumer.seen_ms);
            codec::put_number(&mut value, consumer.pending);
            txn.put_part(
                self.key,
                &[&prefix(CONSUMER, self.group.number), &name[..]].concat(),
                value,
            );
        }
        self.group.save(txn, self.key, self.name);
    }
}
