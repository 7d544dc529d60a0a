//! Writes entries into replies.

use std::ops::ControlFlow;

use super::id::Id;
use super::stream::{Fields, Stream};
use crate::fault::Result;
use crate::reply::Sink;
use crate::store::Txn;

/// A name.
pub(super) fn id(out: &mut dyn Sink, id: Id) {
    out.bulk(id.text().as_ref());
}

/// An entry: its name, and a list of names and values.
pub(super) fn entry(out: &mut dyn Sink, name: Id, fields: Fields<'_>) {
    out.array(2);
    id(out, name);
    out.array(fields.len());
    for field in fields {
        out.bulk(field);
    }
}

/// A list of the entries in a range, up to `count` of them; 0 is no limit. Returns how many there
/// were.
pub(super) fn range(
    out: &mut dyn Sink,
    (txn, key, stream): (&Txn<'_>, &[u8], &Stream),
    (start, end): (Id, Id),
    reverse: bool,
    count: u64,
) -> Result<u64> {
    let mark = out.later();
    let mut shown = 0;
    stream.each(txn, key, start, end, reverse, |id, fields| {
        entry(out, id, fields);
        shown += 1;
        Ok(if shown == count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    out.array_at(mark, shown as usize);
    Ok(shown)
}

/// One end of a stream, or nothing.
pub(super) fn edge(
    out: &mut dyn Sink,
    txn: &Txn<'_>,
    key: &[u8],
    stream: &Stream,
    reverse: bool,
) -> Result<()> {
    let mut is_shown = false;
    stream.each(txn, key, Id::MIN, Id::MAX, reverse, |id, fields| {
        entry(out, id, fields);
        is_shown = true;
        Ok(ControlFlow::Break(()))
    })?;
    if !is_shown {
        out.null();
    }
    Ok(())
}
