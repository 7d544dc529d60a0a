//! Dumps a stream in the encoding of Redis 7.0.

use std::ops::ControlFlow;

use super::group::Group;
use super::id::Id;
use super::nodes::Node;
use super::stream::Stream;
use crate::fault::Result;
use crate::rdb::Listpack;
use crate::rdb::write::{length, text};
use crate::store::{Entry, Txn};

/// As Redis 7.0 numbers streams.
const LISTPACKS_2: u8 = 19;

const ENTRY_IS_PLAIN: i64 = 0;
const ENTRY_HAS_SAME_FIELDS: i64 = 2;

/// The stream at a key. `check` is asked whether it may become so long.
pub(crate) fn write(
    txn: &Txn<'_>,
    key: &[u8],
    entry: &Entry,
    check: impl Fn(usize) -> Result<()>,
) -> Result<Vec<u8>> {
    let stream = Stream::decode(entry)?;
    let (mut body, mut nodes) = (Vec::new(), 0);
    stream.each_node(txn, key, |node| {
        // Of a node that is empty Redis would know nothing either, after a while.
        if node.live > 0 {
            write_node(txn, key, &stream, &node, &mut body)?;
            nodes += 1;
        }
        check(body.len())
    })?;
    let mut out = vec![LISTPACKS_2];
    length(&mut out, nodes);
    out.append(&mut body);
    length(&mut out, stream.len);
    for id in [stream.last, stream.first, stream.max_deleted] {
        write_id(&mut out, id);
    }
    length(&mut out, stream.added);
    length(&mut out, stream.groups);
    Group::each(txn, key, |name, group| {
        text(&mut out, name);
        write_id(&mut out, group.last);
        // -1 if it is not known.
        length(&mut out, group.entries_read.unwrap_or(u64::MAX));
        write_pending(txn, key, &group, &mut out)?;
        check(out.len())
    })?;
    Ok(out)
}

fn write_id(out: &mut Vec<u8>, id: Id) {
    length(out, id.ms);
    length(out, id.seq);
}

/// The node's first name, and a listpack: what it holds, the fields that most entries have, then
/// the entries, each followed by the number of its elements.
fn write_node(
    txn: &Txn<'_>,
    key: &[u8],
    stream: &Stream,
    node: &Node,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut listpack = Listpack::default();
    let mut names: Option<Vec<Vec<u8>>> = None;
    stream.each(txn, key, node.master, node.last, false, |id, fields| {
        let pairs = (fields.len() / 2) as i64;
        let names = names.get_or_insert_with(|| {
            listpack.number(node.live as i64);
            listpack.number(0);
            listpack.number(pairs);
            let names: Vec<Vec<u8>> = fields.step_by(2).map(<[u8]>::to_vec).collect();
            names.iter().for_each(|name| listpack.text(name));
            listpack.number(0);
            names
        });
        let is_same = fields.step_by(2).eq(names.iter().map(Vec::as_slice));
        listpack.number(if is_same { ENTRY_HAS_SAME_FIELDS } else { ENTRY_IS_PLAIN });
        listpack.number(id.ms.wrapping_sub(node.master.ms) as i64);
        listpack.number(id.seq.wrapping_sub(node.master.seq) as i64);
        if is_same {
            fields.skip(1).step_by(2).for_each(|value| listpack.text(value));
            listpack.number(pairs + 3);
        } else {
            listpack.number(pairs);
            fields.for_each(|field| listpack.text(field));
            listpack.number(2 * pairs + 4);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    text(out, &node.master.to_bytes());
    text(out, &listpack.finish());
    Ok(())
}

/// What is pending in a group, and then which of it for which consumer.
fn write_pending(txn: &Txn<'_>, key: &[u8], group: &Group, out: &mut Vec<u8>) -> Result<()> {
    let all = (Id::MIN, Id::MAX);
    length(out, group.pending);
    group.each_pending(txn, key, all, false, |id, pending| {
        out.extend_from_slice(&id.to_bytes());
        out.extend_from_slice(&pending.delivered_ms.to_le_bytes());
        length(out, pending.count);
        Ok(ControlFlow::Continue(()))
    })?;
    length(out, group.consumers);
    group.each_consumer(txn, key, |name, consumer| {
        text(out, name);
        out.extend_from_slice(&consumer.seen_ms.to_le_bytes());
        length(out, consumer.pending);
        group.each_owned(txn, key, name, all, |id| {
            out.extend_from_slice(&id.to_bytes());
            Ok(ControlFlow::Continue(()))
        })
    })
}
