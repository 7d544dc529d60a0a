//! Reads a stream from Redis's DUMP format, all versions.
//!
//! A dumped stream is a list of nodes, each with the ID of its first entry and a listpack, then the
//! counts, then the groups. A listpack has first the fields that its entries share, then the
//! entries.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::group::{self, Ledger, Pending, check_name};
use super::id::Id;
use super::nodes::Limits;
use super::stream;
use crate::args;
use crate::fault::Result;
use crate::rdb::{Reader, listpack};
use crate::store::Txn;

/// As Redis 5 and 6 dump a stream.
const LISTPACKS: u8 = 15;
/// As Redis 7.0 does, with counts of what was added and read.
const LISTPACKS_2: u8 = 19;
/// As Redis 7.2 does, with the time when each consumer was last active.
const LISTPACKS_3: u8 = 21;
/// The types that are streams.
pub(crate) const KINDS: [u8; 3] = [LISTPACKS, LISTPACKS_2, LISTPACKS_3];

const ENTRY_IS_DELETED: i64 = 1;
const ENTRY_HAS_SAME_FIELDS: i64 = 2;

/// A stream that was dumped.
#[derive(Debug)]
pub(crate) struct Stream {
    nodes: Vec<Vec<Entry>>,
    /// The counts; where the nodes are is not known yet.
    head: stream::Stream,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Entry {
    id: Id,
    is_deleted: bool,
    fields: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Group {
    name: Vec<u8>,
    last: Id,
    entries_read: Option<u64>,
    pending: BTreeMap<Id, Pending>,
    /// Their names, and when they were last seen.
    consumers: BTreeMap<Vec<u8>, u64>,
}

/// Whether the body of a head is one of a stream, for who restores one of ours.
pub(crate) fn check_head(body: &[u8]) -> Option<()> {
    stream::Stream::read(body).map(drop)
}

/// Reads a dumped stream of one of the [`KINDS`]; `None` if it is damaged.
pub(crate) fn read(kind: u8, mut from: Reader<'_>) -> Option<Stream> {
    let mut nodes: Vec<Vec<Entry>> = Vec::new();
    for _ in 0..from.length()? {
        let master = Id::from_bytes(&from.text()?)?;
        let node = read_node(master, &from.text()?)?;
        let last = nodes.last().and_then(|node| node.last());
        let is_in_order = last.is_none_or(|last| node.first().is_some_and(|id| last.id < id.id));
        if !is_in_order {
            return None;
        }
        nodes.push(node);
    }
    let live = || nodes.iter().flatten().filter(|entry| !entry.is_deleted);
    let mut head = stream::Stream::default();
    (head.len, head.last) = (from.length()?, id(&mut from)?);
    if live().count() as u64 != head.len
        || nodes.last().and_then(|node| node.last()).is_some_and(|last| last.id > head.last)
    {
        return None;
    }
    // It is found anew: a wrong one would hide entries.
    head.first = live().next().map_or(Id::MIN, |entry| entry.id);
    head.added = head.len;
    if kind != LISTPACKS {
        let _first = id(&mut from)?;
        (head.max_deleted, head.added) = (id(&mut from)?, from.length()?);
    }
    let mut groups: Vec<Group> = Vec::new();
    for _ in 0..from.length()? {
        let group = read_group(&mut from, kind, &head)?;
        if groups.iter().any(|other| other.name == group.name) {
            return None;
        }
        groups.push(group);
    }
    from.is_empty().then_some(Stream { nodes, head, groups })
}

type Elements<'r> = std::vec::IntoIter<Cow<'r, [u8]>>;

fn integer(from: &mut Elements<'_>) -> Option<i64> {
    args::parse_integer(&from.next()?)
}

fn count(from: &mut Elements<'_>) -> Option<u64> {
    u64::try_from(integer(from)?).ok()
}

fn read_node(master: Id, bytes: &[u8]) -> Option<Vec<Entry>> {
    let elements = &mut listpack(bytes)?.into_iter();
    let (live, deleted) = (count(elements)?, count(elements)?);
    let master_fields = count(elements)?;
    let master_fields: Option<Vec<_>> = (0..master_fields).map(|_| elements.next()).collect();
    let master_fields = master_fields?;
    // The end of what the node says of itself.
    integer(elements)?;
    let mut entries: Vec<Entry> = Vec::new();
    while elements.len() > 0 {
        let flags = integer(elements)?;
        let id = Id {
            ms: master.ms.wrapping_add(integer(elements)? as u64),
            seq: master.seq.wrapping_add(integer(elements)? as u64),
        };
        let mut fields = Vec::new();
        if flags & ENTRY_HAS_SAME_FIELDS != 0 {
            for name in &master_fields {
                fields.push(name.to_vec());
                fields.push(elements.next()?.into_owned());
            }
        } else {
            for _ in 0..count(elements)?.checked_mul(2)? {
                fields.push(elements.next()?.into_owned());
            }
        }
        // How many elements the entry has, for who comes from behind.
        integer(elements)?;
        if fields.is_empty() || entries.last().is_some_and(|last| last.id >= id) {
            return None;
        }
        entries.push(Entry { id, is_deleted: flags & ENTRY_IS_DELETED != 0, fields });
    }
    let deleted_found = entries.iter().filter(|entry| entry.is_deleted).count() as u64;
    let is_counted =
        deleted_found == deleted && live.checked_add(deleted) == Some(entries.len() as u64);
    (is_counted && !entries.is_empty()).then_some(entries)
}

fn read_group(from: &mut Reader<'_>, kind: u8, stream: &stream::Stream) -> Option<Group> {
    let (name, last) = (from.text()?.into_owned(), id(from)?);
    check_name(&name).ok()?;
    let entries_read = match kind {
        LISTPACKS => stream.entries_up_to(last),
        // What is not known is -1.
        _ => Some(from.length()?).filter(|read| i64::try_from(*read).is_ok()),
    };
    let mut unowned = BTreeMap::new();
    for _ in 0..from.length()? {
        let id = Id::from_bytes(from.take(16)?)?;
        let (delivered_ms, count) = (time(from)?, from.length()?);
        let pending = Pending { owner: Vec::new(), delivered_ms, count };
        if unowned.insert(id, pending).is_some() {
            return None;
        }
    }
    let (mut pending, mut consumers) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..from.length()? {
        let (name, seen_ms) = (from.text()?.into_owned(), time(from)?);
        check_name(&name).ok()?;
        if kind == LISTPACKS_3 {
            time(from)?;
        }
        for _ in 0..from.length()? {
            let id = Id::from_bytes(from.take(16)?)?;
            pending.insert(id, Pending { owner: name.clone(), ..unowned.remove(&id)? });
        }
        if consumers.insert(name, seen_ms).is_some() {
            return None;
        }
    }
    unowned.is_empty().then_some(Group { name, last, entries_read, pending, consumers })
}

fn id(from: &mut Reader<'_>) -> Option<Id> {
    Some(Id { ms: from.length()?, seq: from.length()? })
}

fn time(from: &mut Reader<'_>) -> Option<u64> {
    from.chunk().map(u64::from_le_bytes)
}

impl Stream {
    /// Writes the stream to a key that is not there.
    pub(crate) fn put(
        &self,
        txn: &mut Txn<'_>,
        key: &[u8],
        expires_at_ms: Option<u64>,
    ) -> Result<()> {
        let mut stream = stream::Stream::default();
        for node in &self.nodes {
            for (place, entry) in node.iter().enumerate() {
                // Nodes begin where they began.
                let limits = Limits { entries: u64::from(place == 0), bytes: 0 };
                let fields: Vec<&[u8]> = entry.fields.iter().map(Vec::as_slice).collect();
                stream.append(txn, key, entry.id, &fields, limits);
            }
        }
        // Only now: a node goes with the last of its entries.
        for entry in self.nodes.iter().flatten().filter(|entry| entry.is_deleted) {
            stream.delete(txn, key, entry.id)?;
        }
        let head = &self.head;
        (stream.last, stream.max_deleted, stream.added) = (head.last, head.max_deleted, head.added);
        stream.expires_at_ms = expires_at_ms;
        for group in &self.groups {
            let new = group::Group::create(&mut stream, group.last, group.entries_read)?;
            let mut ledger = Ledger::new(key, &group.name, new);
            for (name, seen_ms) in &group.consumers {
                ledger.meet(txn, name)?;
                ledger.set_seen(name, *seen_ms);
            }
            for (id, pending) in &group.pending {
                ledger.assign(txn, *id, pending, None)?;
            }
            ledger.save(txn);
        }
        stream.save(txn, key)
    }
}
