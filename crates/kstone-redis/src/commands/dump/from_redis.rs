//! Writes a key from a value in Redis's own encoding.

use std::collections::HashSet;

use crate::commands::lists::{End, List};
use crate::commands::sets;
use crate::commands::sorted_sets::SortedSet;
use crate::fault::{Fault, Result};
use crate::rdb::Value;
use crate::store::Txn;
use crate::store::fields::{self, HashHead};

const BAD_FORMAT: Fault = Fault::fixed("ERR Bad data format");

/// Refuses a value that no key can have: an empty one, or one that has something twice.
pub(super) fn check(value: &Value<'_>) -> Result<()> {
    fn are_different<'e>(elements: impl ExactSizeIterator<Item = &'e Vec<u8>>) -> bool {
        let count = elements.len();
        count > 0 && elements.collect::<HashSet<_>>().len() == count
    }
    let is_right = match value {
        Value::String(_) => true,
        Value::List(elements) => !elements.is_empty(),
        Value::Set(members) => are_different(members.iter()),
        Value::SortedSet(members) => are_different(members.iter().map(|(member, _)| member)),
        Value::Hash(pairs) => are_different(pairs.iter().map(|(field, _)| field)),
    };
    if is_right { Ok(()) } else { Err(BAD_FORMAT) }
}

/// Makes the key this value. There is no such key.
pub(super) fn put(
    txn: &mut Txn<'_>,
    key: &[u8],
    value: Value<'_>,
    expires_at_ms: Option<u64>,
) -> Result<()> {
    match value {
        Value::String(bytes) => return txn.set_string(key, None, &bytes, expires_at_ms),
        Value::List(elements) => {
            let mut list = List::new();
            for element in elements {
                list.push(txn, key, End::Back, element.into());
            }
            list.save(txn, key)?;
        }
        Value::Set(members) => drop(sets::store(txn, key, &members)?),
        Value::SortedSet(members) => {
            let members = members.iter().map(|(member, score)| (member.as_slice(), *score));
            SortedSet::replace(txn, key, members)?;
        }
        Value::Hash(pairs) => {
            let mut head = HashHead::default();
            for (field, value) in pairs {
                fields::set(txn, key, &mut head, &field, &value, None)?;
            }
            return head.put(txn, key, HashHead::default(), expires_at_ms);
        }
    }
    if expires_at_ms.is_some()
        && let Some(entry) = txn.lookup(key)?
    {
        txn.put_head(key, entry.kind, &entry.body, expires_at_ms)?;
    }
    Ok(())
}
