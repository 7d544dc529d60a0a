//! Merges the operations of a transaction into one write for each key. Dapr carries out operations in
//! order, several on one key if need be; a DynamoDB transaction has no order and takes each key once.

use std::collections::HashMap;

use kstone_ports::value::Item;

use crate::error::{Error, Result};
use crate::key::ItemKey;
use crate::write::Expected;

/// A write of one item that is ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct PlannedWrite {
    pub(crate) key: String,
    pub(crate) item_key: ItemKey,
    /// The condition before the first operation on the key.
    pub(crate) expected: Expected,
    /// The item after the last operation; `None` if it is deleted.
    pub(crate) item: Option<Item>,
}

impl PlannedWrite {
    pub(crate) fn bytes(&self) -> usize {
        self.item.as_ref().map_or(0, Item::size)
    }
}

/// Merges writes so that each key has one, with the effect of all of them in order.
pub(crate) fn one_write_per_key(writes: Vec<PlannedWrite>) -> Result<Vec<PlannedWrite>> {
    let mut planned: Vec<PlannedWrite> = Vec::with_capacity(writes.len());
    let mut known: HashMap<ItemKey, usize> = HashMap::with_capacity(writes.len());
    for write in writes {
        let at = *known.entry(write.item_key.clone()).or_insert(planned.len());
        let Some(before) = planned.get_mut(at) else {
            planned.push(write);
            continue;
        };
        let holds = match write.expected {
            Expected::Anything => true,
            Expected::Absent => before.item.is_none(),
            // No client can have read what this transaction is about to write.
            Expected::Unchanged(_) => false,
        };
        if !holds {
            return Err(Error::EtagMismatch { key: write.key });
        }
        before.item = write.item;
    }
    Ok(planned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(key: &str, expected: Expected, value: Option<i32>) -> PlannedWrite {
        let item_key = ItemKey { pk: key.to_owned(), sk: "#".to_owned() };
        let item = value.map(|value| item_key.to_item().with("value", value));
        PlannedWrite { key: key.to_owned(), item_key, expected, item }
    }

    #[test]
    fn the_last_of_several_writes_to_a_key_counts_and_the_first_ones_condition() {
        let etag = Expected::Unchanged("1".parse().unwrap());
        let planned = one_write_per_key(vec![
            write("a", etag, Some(1)),
            write("b", Expected::Anything, Some(1)),
            write("a", Expected::Anything, None),
            write("a", Expected::Absent, Some(2)),
            write("b", Expected::Anything, None),
        ])
        .unwrap();
        let [a, b] = &planned[..] else { panic!("{planned:?}") };
        assert_eq!((a.expected, a.item.as_ref().unwrap().get("value")), (etag, Some(&2.into())));
        assert_eq!((b.expected, &b.item), (Expected::Anything, &None));
    }

    #[test]
    fn a_key_that_the_transaction_itself_wrote_is_neither_absent_nor_unchanged() {
        for expected in [Expected::Absent, Expected::Unchanged("1".parse().unwrap())] {
            let writes =
                vec![write("a", Expected::Anything, Some(1)), write("a", expected, Some(2))];
            assert!(matches!(one_write_per_key(writes), Err(Error::EtagMismatch { .. })));
        }
    }
}
