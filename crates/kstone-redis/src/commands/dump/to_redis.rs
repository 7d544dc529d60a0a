//! Writes a key's value in Redis's own encoding.

use std::ops::ControlFlow;

use super::payload::check_len;
use crate::commands::lists::List;
use crate::commands::sorted_sets::{SortedSet, Walk};
use crate::commands::{sets, streams, strings};
use crate::fault::{Fault, Result};
use crate::rdb::write::{ValueType, Writer, string};
use crate::store::fields::{self, HashHead, Payload};
use crate::store::{Entry, Kind, Txn};

/// The key in Redis's form, if that can say all that there is to say about it.
pub(super) fn write(txn: &mut Txn<'_>, key: &[u8], entry: &Entry) -> Result<Option<Vec<u8>>> {
    let mut out = Writer::default();
    let mut outcome = Ok(());
    // Stops at what is too long, and remembers that it did.
    let mut go_on = |len: usize| {
        outcome = check_len(len);
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let kind = match entry.kind {
        Kind::String => return Ok(Some(string(&entry.body))),
        Kind::LongString => {
            let bytes = strings::whole(txn, key)?.ok_or(Fault::NO_SUCH_KEY)?;
            check_len(bytes.len())?;
            return Ok(Some(string(&bytes)));
        }
        Kind::List => {
            if let Some(list) = List::find(txn, key)? {
                list.each(txn, key, 0..list.len(), false, |_, element| {
                    out.element(element);
                    go_on(out.len())
                })?;
            }
            ValueType::List
        }
        Kind::Set => {
            sets::each_member(txn, key, |member| {
                out.element(member);
                Ok(go_on(out.len()))
            })?;
            ValueType::Set
        }
        Kind::SortedSet => {
            if let Some(set) = SortedSet::find(txn, key)? {
                Walk::new(txn, key, &set).by_rank(0..set.len(), false, |member, score| {
                    out.member(member, score);
                    go_on(out.len())
                })?;
            }
            ValueType::SortedSet
        }
        Kind::Hash if HashHead::decode(&entry.body)?.next_expiry_ms.is_none() => {
            let count = HashHead::decode(&entry.body)?.count;
            fields::each(txn, key, count, |name, payload| {
                out.field(name, Payload::read(payload).value);
                Ok(go_on(out.len()))
            })?;
            ValueType::Hash
        }
        Kind::Stream => return streams::dump::write(txn, key, entry, check_len).map(Some),
        Kind::Hash => return Ok(None),
    };
    outcome?;
    Ok(Some(out.finish(kind)))
}
