//! A stream as records.
//!
//! Its head has the counts, the IDs that matter, and the first and the last of its
//! [nodes](super::nodes), so that adding an entry writes two records: the entry and the head. The
//! sort keys of its parts begin with a byte that tells what they are; those of groups are in
//! [`group`](super::group).

use std::ops::{Bound, ControlFlow};

use bytes::Bytes;

use super::codec::{self, DAMAGED};
use super::id::{Id, NewId};
use super::nodes::{Limits, Node};
use crate::fault::{Fault, Result};
use crate::store::{Entry, Kind, Txn};

/// An entry: the name; the value has the fields.
const ENTRY: u8 = 1;
/// A node that is neither the first nor the last: the name of its first entry.
const NODE: u8 = 2;

/// Entries that go are removed one by one while that is less than this; else the whole stream is
/// removed by one mark, and what stays is written anew.
const REMOVED_BYTES_MAX: u64 = 16 << 20;

/// The head of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stream {
    /// How many entries there are.
    pub(super) len: u64,
    /// The last name that was given.
    pub(super) last: Id,
    /// The first entry; zero if there is none.
    pub(super) first: Id,
    /// The last of the entries that were deleted one by one.
    pub(super) max_deleted: Id,
    /// How many entries were ever added.
    pub(super) added: u64,
    /// How many nodes there are.
    pub(super) nodes: u64,
    /// How many groups there are.
    pub(super) groups: u64,
    /// The number for the next group.
    pub(super) next_group: u64,
    /// The first node, if it is not the last too.
    front: Option<Node>,
    /// The last node: the one that gets new entries.
    tail: Option<Node>,
    pub(super) expires_at_ms: Option<u64>,
}

/// Where a node is.
enum NodePosition {
    Front,
    Middle,
    Tail,
}

fn sort_key(kind: u8, id: Id) -> [u8; 17] {
    let mut key = [kind; 17];
    if let Some(rest) = key.last_chunk_mut() {
        *rest = id.to_bytes();
    }
    key
}

fn id_of(sk: &[u8]) -> Result<Id> {
    sk.get(1..).and_then(Id::from_bytes).ok_or(DAMAGED)
}

impl Stream {
    /// The stream at a key, if there is one; an error if the key holds something else.
    pub(super) fn find(txn: &mut Txn<'_>, key: &[u8]) -> Result<Option<Stream>> {
        match txn.lookup_kind(key, Kind::Stream)? {
            Some(entry) => Stream::decode(&entry).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn decode(entry: &Entry) -> Result<Stream> {
        let stream = Stream::read(&entry.body).ok_or(DAMAGED)?;
        Ok(Stream { expires_at_ms: entry.expires_at_ms, ..stream })
    }

    /// What a head says.
    pub(super) fn read(mut body: &[u8]) -> Option<Stream> {
        let from = &mut body;
        let (len, last, first) = (codec::number(from)?, codec::id(from)?, codec::id(from)?);
        let (max_deleted, added) = (codec::id(from)?, codec::number(from)?);
        let (groups, next_group) = (codec::number(from)?, codec::number(from)?);
        let nodes = codec::number(from)?;
        let mut node = |is_there: bool| match is_there {
            true => Node::read(codec::id(from)?, from).map(Some),
            false => Some(None),
        };
        let (tail, front) = (node(nodes > 0)?, node(nodes > 1)?);
        from.is_empty().then_some(Stream {
            len,
            last,
            first,
            max_deleted,
            added,
            nodes,
            groups,
            next_group,
            front,
            tail,
            expires_at_ms: None,
        })
    }

    /// Writes the head.
    pub(super) fn save(&self, txn: &mut Txn<'_>, key: &[u8]) -> Result<()> {
        let mut body = Vec::with_capacity(96);
        codec::put_number(&mut body, self.len);
        for id in [self.last, self.first, self.max_deleted] {
            codec::put_id(&mut body, id);
        }
        for number in [self.added, self.groups, self.next_group, self.nodes] {
            codec::put_number(&mut body, number);
        }
        for node in [&self.tail, &self.front].into_iter().flatten() {
            codec::put_id(&mut body, node.master);
            node.put(&mut body);
        }
        txn.put_head(key, Kind::Stream, &body, self.expires_at_ms)
    }

    /// What the next entry is called, if it is wanted so.
    pub(super) fn name(&self, new_id: NewId, now_ms: u64) -> Result<Id> {
        const TOO_SMALL: Fault = Fault::fixed(
            "ERR The ID specified in XADD is equal or smaller than the target stream top item",
        );
        const EXHAUSTED: Fault = Fault::fixed(
            "ERR The stream has exhausted the last possible ID, unable to add more items",
        );
        let next = self.last.next().ok_or(EXHAUSTED)?;
        let id = match new_id {
            NewId::Next if now_ms > self.last.ms => Id { ms: now_ms, seq: 0 },
            NewId::Next => next,
            NewId::NextAt(ms) if ms == self.last.ms => {
                next.ms.eq(&ms).then_some(next).ok_or(TOO_SMALL)?
            }
            NewId::NextAt(ms) => Id { ms, seq: 0 },
            NewId::Exactly(id) => id,
        };
        if id > self.last { Ok(id) } else { Err(TOO_SMALL) }
    }

    /// Adds an entry, whose name is behind all others; `fields` are names and values.
    pub(super) fn append(
        &mut self,
        txn: &mut Txn<'_>,
        key: &[u8],
        id: Id,
        fields: &[&[u8]],
        limits: Limits,
    ) {
        let mut tail = match self.tail.take() {
            Some(tail) if !tail.is_full(fields, limits) => tail,
            full => {
                self.nodes += 1;
                match full {
                    None => {}
                    Some(full) if self.front.is_none() => self.front = Some(full),
                    Some(full) => put_node(txn, key, &full),
                }
                Node::new(id, fields)
            }
        };
        tail.add(id, fields);
        self.tail = Some(tail);
        txn.put_part(key, &sort_key(ENTRY, id), encode(fields));
        self.len += 1;
        self.added += 1;
        self.last = id;
        if self.len == 1 {
            self.first = id;
        }
    }

    // ---- reading entries

    /// The fields of an entry.
    pub(super) fn entry(&self, txn: &Txn<'_>, key: &[u8], id: Id) -> Result<Option<Bytes>> {
        txn.part(key, &sort_key(ENTRY, id))
    }

    /// Shows the entries in a range, in order or in reverse, until told to stop.
    pub(super) fn each(
        &self,
        txn: &Txn<'_>,
        key: &[u8],
        start: Id,
        end: Id,
        reverse: bool,
        mut see: impl FnMut(Id, Fields<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        // What was trimmed need not be passed by.
        let start = start.max(self.first);
        if self.len == 0 || start > end {
            return Ok(());
        }
        let (low, high) = (sort_key(ENTRY, start), sort_key(ENTRY, end));
        let (low, high) = (Bound::Included(&low[..]), Bound::Included(&high[..]));
        txn.each_part(key, low, high, reverse, |sk, value| see(id_of(sk)?, Fields::read(value)?))
    }

    /// The first entry from a name on, or the last one up to it.
    pub(super) fn nearest(
        &self,
        txn: &Txn<'_>,
        key: &[u8],
        from: Id,
        reverse: bool,
    ) -> Result<Option<Id>> {
        let (start, end) = if reverse { (Id::MIN, from) } else { (from, Id::MAX) };
        let mut found = None;
        self.each(txn, key, start, end, reverse, |id, _| {
            found = Some(id);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    // ---- removing entries

    /// Deletes an entry; whether there was one.
    pub(super) fn delete(&mut self, txn: &mut Txn<'_>, key: &[u8], id: Id) -> Result<bool> {
        if id < self.first || self.entry(txn, key, id)?.is_none() {
            return Ok(false);
        }
        txn.delete_part(key, &sort_key(ENTRY, id));
        let (at, mut node) = self.node_of(txn, key, id)?;
        if node.live > 1 {
            node.live -= 1;
            node.deleted += 1;
            match at {
                NodePosition::Front => self.front = Some(node),
                NodePosition::Tail => self.tail = Some(node),
                NodePosition::Middle => put_node(txn, key, &node),
            }
        } else {
            self.remove_node(txn, key, at, &node)?;
        }
        self.len -= 1;
        self.max_deleted = self.max_deleted.max(id);
        if id == self.first {
            self.find_first(txn, key, id)?;
        }
        Ok(true)
    }

    /// The first entry has gone, which was not after this one.
    fn find_first(&mut self, txn: &Txn<'_>, key: &[u8], gone: Id) -> Result<()> {
        self.first = match gone.next().filter(|_| self.len > 0) {
            Some(from) => self.nearest(txn, key, from, false)?.ok_or(DAMAGED)?,
            None => Id::MIN,
        };
        Ok(())
    }

    /// The node that an entry is in.
    fn node_of(&self, txn: &Txn<'_>, key: &[u8], id: Id) -> Result<(NodePosition, Node)> {
        if let Some(tail) = self.tail.filter(|tail| tail.master <= id) {
            return Ok((NodePosition::Tail, tail));
        }
        if let Some(front) = self.front.filter(|front| id <= front.last) {
            return Ok((NodePosition::Front, front));
        }
        let node = middle_node(txn, key, Id::MIN, id, true)?.ok_or(DAMAGED)?;
        Ok((NodePosition::Middle, node))
    }

    /// Forgets a node that has no entries any more.
    fn remove_node(
        &mut self,
        txn: &mut Txn<'_>,
        key: &[u8],
        at: NodePosition,
        node: &Node,
    ) -> Result<()> {
        self.nodes = self.nodes.saturating_sub(1);
        match at {
            NodePosition::Middle => txn.delete_part(key, &sort_key(NODE, node.master)),
            NodePosition::Front => {
                self.front = None;
                if self.nodes > 1 {
                    let next = middle_node(txn, key, node.master, Id::MAX, false)?;
                    self.front = Some(take_node(txn, key, next)?);
                }
            }
            NodePosition::Tail => {
                self.tail = match self.nodes {
                    0 => None,
                    1 => self.front.take(),
                    _ => {
                        let previous = middle_node(txn, key, Id::MIN, node.master, true)?;
                        Some(take_node(txn, key, previous)?)
                    }
                };
            }
        }
        Ok(())
    }

    /// Shows the nodes from the first to the last.
    pub(super) fn each_node(
        &self,
        txn: &Txn<'_>,
        key: &[u8],
        mut see: impl FnMut(Node) -> Result<()>,
    ) -> Result<()> {
        self.front.map_or(Ok(()), &mut see)?;
        let (low, high) = (Bound::Included(&[NODE][..]), Bound::Excluded(&[NODE + 1][..]));
        txn.each_part(key, low, high, false, |sk, mut value| {
            see(Node::read(id_of(sk)?, &mut value).ok_or(DAMAGED)?)?;
            Ok(ControlFlow::Continue(()))
        })?;
        self.tail.map_or(Ok(()), see)
    }

    /// Removes the oldest entries as a trim asks for; returns how many.
    pub(super) fn trim(&mut self, txn: &mut Txn<'_>, key: &[u8], trim: &Trim) -> Result<u64> {
        // What goes is all before this.
        let mut kept_from = self.first;
        let mut removed = 0;
        while let Some(node) = self.front.or(self.tail) {
            if trim.limit > 0 && removed + node.live > trim.limit {
                break;
            }
            let goes_whole = match trim.keep {
                Keep::Len(len) if self.len <= len => break,
                Keep::Len(len) => self.len - node.live >= len,
                Keep::From(id) => node.last < id,
            };
            if goes_whole {
                let at =
                    if self.front.is_some() { NodePosition::Front } else { NodePosition::Tail };
                self.remove_node(txn, key, at, &node)?;
                self.len -= node.live;
                removed += node.live;
                // Of the last name there is none behind; then nothing is left.
                kept_from = node.last.next().unwrap_or(Id::MAX);
                continue;
            }
            if trim.is_approximate {
                break;
            }
            let (gone, stays) = self.oldest(txn, key, kept_from, trim.keep)?;
            kept_from = stays;
            let node = if self.front.is_some() { &mut self.front } else { &mut self.tail };
            if let Some(node) = node {
                node.live = node.live.saturating_sub(gone);
                node.deleted += gone;
            }
            self.len = self.len.saturating_sub(gone);
            removed += gone;
            break;
        }
        if removed > 0 {
            self.remove_entries(txn, key, kept_from, removed)?;
            self.first = match self.len {
                0 => Id::MIN,
                _ => {
                    self.first = kept_from;
                    self.nearest(txn, key, kept_from, false)?.ok_or(DAMAGED)?
                }
            };
        }
        Ok(removed)
    }

    /// How many entries from this one on are to go that are not a whole node, and the name up to
    /// which.
    fn oldest(&self, txn: &Txn<'_>, key: &[u8], from: Id, keep: Keep) -> Result<(u64, Id)> {
        let (mut gone, mut stays) = (0, Id::MAX);
        self.each(txn, key, from, Id::MAX, false, |id, _| {
            let is_kept = match keep {
                Keep::Len(len) => self.len - gone <= len,
                Keep::From(first) => id >= first,
            };
            if is_kept {
                stays = id;
                return Ok(ControlFlow::Break(()));
            }
            gone += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((gone, stays))
    }

    /// Removes the records of so many entries, all those before a name. Where the nodes are has
    /// been noted.
    fn remove_entries(
        &self,
        txn: &mut Txn<'_>,
        key: &[u8],
        kept_from: Id,
        count: u64,
    ) -> Result<()> {
        let record_len = (key.len() + 32) as u64;
        if count.saturating_mul(record_len) > REMOVED_BYTES_MAX {
            let edge = sort_key(ENTRY, kept_from);
            return rewrite(txn, key, self, |sk| {
                sk.first() != Some(&ENTRY) || (self.len > 0 && sk >= &edge[..])
            });
        }
        let mut gone = Vec::new();
        let (low, high) = (sort_key(ENTRY, self.first), sort_key(ENTRY, kept_from));
        let high =
            if self.len > 0 { Bound::Excluded(&high[..]) } else { Bound::Excluded(&[NODE][..]) };
        txn.each_part(key, Bound::Included(&low), high, false, |sk, _| {
            gone.push(id_of(sk)?);
            Ok(ControlFlow::Continue(()))
        })?;
        for id in gone {
            txn.delete_part(key, &sort_key(ENTRY, id));
        }
        Ok(())
    }
}

/// The names and values of the entry that is under this sort key.
pub(crate) fn fields_of<'e>(sk: &[u8], value: &'e [u8]) -> Option<Fields<'e>> {
    if sk.first() == Some(&ENTRY) { Fields::read(value).ok() } else { None }
}

/// Removes the oldest entries of the stream at a key, so that so many are left.
pub(crate) fn keep_newest(txn: &mut Txn<'_>, key: &[u8], most: u64) -> Result<()> {
    let Some(mut stream) = Stream::find(txn, key)? else { return Ok(()) };
    let trim = Trim { keep: Keep::Len(most), is_approximate: false, limit: 0 };
    if stream.trim(txn, key, &trim)? > 0 {
        stream.save(txn, key)?;
        txn.notify('t', "xtrim", key);
    }
    Ok(())
}

/// Removes the stream at a key by one mark, and writes anew what stays of its parts.
pub(super) fn rewrite(
    txn: &mut Txn<'_>,
    key: &[u8],
    stream: &Stream,
    stays: impl Fn(&[u8]) -> bool,
) -> Result<()> {
    let Some(entry) = txn.lookup_quietly(key)? else { return Err(DAMAGED) };
    let mut parts = Vec::new();
    txn.each_part(key, Bound::Unbounded, Bound::Unbounded, false, |sk, value| {
        if stays(sk) {
            parts.push((sk.to_vec(), Bytes::copy_from_slice(value)));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    txn.remove_to_rewrite(key, &entry);
    stream.save(txn, key)?;
    for (sk, value) in parts {
        txn.put_part(key, &sk, value);
    }
    Ok(())
}

fn put_node(txn: &mut Txn<'_>, key: &[u8], node: &Node) {
    let mut value = Vec::with_capacity(32);
    node.put(&mut value);
    txn.put_part(key, &sort_key(NODE, node.master), value);
}

/// The first or, in reverse, the last of the nodes in the middle that begin in a range.
fn middle_node(
    txn: &Txn<'_>,
    key: &[u8],
    start: Id,
    end: Id,
    reverse: bool,
) -> Result<Option<Node>> {
    let (low, high) = (sort_key(NODE, start), sort_key(NODE, end));
    let mut found = None;
    let (low, high) = (Bound::Included(&low[..]), Bound::Included(&high[..]));
    txn.each_part(key, low, high, reverse, |sk, mut value| {
        found = Some(Node::read(id_of(sk)?, &mut value).ok_or(DAMAGED)?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// A node of the middle moves to the head.
fn take_node(txn: &mut Txn<'_>, key: &[u8], node: Option<Node>) -> Result<Node> {
    let node = node.ok_or(DAMAGED)?;
    txn.delete_part(key, &sort_key(NODE, node.master));
    Ok(node)
}

/// Which entries a trim keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// The last so many.
    Len(u64),
    /// Those from this one on.
    From(Id),
}

/// What a trim is to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trim {
    pub(super) keep: Keep,
    /// Only whole nodes go.
    pub(super) is_approximate: bool,
    /// No more entries than this are removed; 0 is no limit.
    pub(super) limit: u64,
}

/// Names and values of an entry as its record has them.
fn encode(fields: &[&[u8]]) -> Vec<u8> {
    let len: usize = fields.iter().map(|field| field.len() + 2).sum();
    let mut value = Vec::with_capacity(len + 4);
    codec::put_number(&mut value, fields.len() as u64);
    fields.iter().for_each(|field| codec::put_bytes(&mut value, field));
    value
}

/// The names and values of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'e> {
    len: usize,
    rest: &'e [u8],
}

impl<'e> Fields<'e> {
    pub(super) fn read(mut value: &'e [u8]) -> Result<Fields<'e>> {
        let len = codec::number(&mut value).and_then(|len| usize::try_from(len).ok());
        Ok(Fields { len: len.ok_or(DAMAGED)?, rest: value })
    }

    /// How many names and values.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl<'e> Iterator for Fields<'e> {
    type Item = &'e [u8];

    fn next(&mut self) -> Option<&'e [u8]> {
        self.len = self.len.checked_sub(1)?;
        // A collection announces its length: what a damaged record lacks is empty.
        Some(codec::bytes(&mut self.rest).unwrap_or_default())
    }
}
