//! What a transaction comes to. Dapr carries out operations in their order, and one key may be in
//! several; DynamoDB knows no order, and takes each key once.

use std::collections::HashMap;

use kstone::Item;

use crate::error::{Error, Result};
use crate::key::Place;
use crate::write::Expected;

/// A write that is ready to happen.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) key: String,
    pub(crate) place: Place,
    /// What the key must be like before the first operation on it.
    pub(crate) expected: Expected,
    /// What is there after the last one; `None` when it is deleted.
    pub(crate) item: Option<Item>,
}

impl Planned {
    pub(crate) fn bytes(&self) -> usize {
        self.item.as_ref().map_or(0, Item::size)
    }
}

/// One write for each key that comes to the same as all of them in their order.
pub(crate) fn one_for_each_key(writes: Vec<Planned>) -> Result<Vec<Planned>> {
    let mut planned: Vec<Planned> = Vec::with_capacity(writes.len());
    let mut known: HashMap<Place, usize> = HashMap::with_capacity(writes.len());
    for write in writes {
        let at = *known.entry(write.place.clone()).or_insert(planned.len());
        let Some(before) = planned.get_mut(at) else {
            planned.push(write);
            continue;
        };
        let holds = match write.expected {
            Expected::Anything => true,
            Expected::Absent => before.item.is_none(),
            // Nobody has read what this transaction itself is about to write.
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

    fn write(key: &str, expected: Expected, value: Option<i32>) -> Planned {
        let place = Place { pk: key.to_owned(), sk: "#".to_owned() };
        let item = value.map(|value| place.key_item().with("value", value));
        Planned { key: key.to_owned(), place, expected, item }
    }

    #[test]
    fn the_last_of_several_writes_to_a_key_counts_and_the_first_ones_condition() {
        let etag = Expected::Unchanged("1".parse().unwrap());
        let planned = one_for_each_key(vec![
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
            assert!(matches!(one_for_each_key(writes), Err(Error::EtagMismatch { .. })));
        }
    }
}
