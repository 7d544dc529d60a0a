//! Batches: what the store leaves undone is asked for again.

use std::collections::{HashMap, HashSet};

use aws_sdk_dynamodb::types::{
    DeleteRequest, KeysAndAttributes, PutRequest, WriteRequest as SdkWrite,
};
use kstone_ports::items::{
    BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, Consumed, WriteRequest,
};
use kstone_ports::value::{Item, ItemBytes};
use kstone_ports::{Error, Result};

use crate::attempts::Repeat;
use crate::parts::{self, Asked};
use crate::store::RemoteItems;
use crate::value::{Attributes, attributes, item};

/// What is still to be done: for each table of the request, in order, indexes into what it asks for.
type Open = Vec<Vec<usize>>;

impl RemoteItems {
    pub(crate) async fn get_batch(&self, request: &BatchGet) -> Result<BatchGetOutput> {
        let names: Vec<&str> = request.tables.iter().map(|it| it.table.as_str()).collect();
        no_table_twice(&names)?;
        let asked = Asked::reading(request.capacity);
        let mut found: Vec<Vec<Item>> = request.tables.iter().map(|_| Vec::new()).collect();
        let mut consumed = Vec::new();
        let mut open: Open =
            request.tables.iter().map(|table| (0..table.keys.len()).collect()).collect();
        let mut rounds = Rounds::new(self.attempts.max);
        loop {
            let ask = self
                .client
                .batch_get_item()
                .set_request_items(Some(still_to_get(request, &open)?))
                .set_return_consumed_capacity(parts::capacity(request.capacity));
            let answer = self.attempts.run(Repeat::Read, || ask.clone().send()).await?;
            for (found, name) in found.iter_mut().zip(&names) {
                let of_table = answer.responses.as_ref().and_then(|it| it.get(*name));
                for attributes in of_table.into_iter().flatten() {
                    found.push(item(attributes)?);
                }
            }
            add_up(&mut consumed, asked.consumed_all(answer.consumed_capacity.as_deref()));
            let left = answer.unprocessed_keys.unwrap_or_default();
            open = unread(request, &left)?;
            match rounds.next(&open) {
                Some(attempt) => self.attempts.wait(attempt).await,
                None => break,
            }
        }
        let in_order = request.tables.iter().zip(found).map(|(table, mut items)| {
            // An item whose projection lacks the key cannot be placed, and comes last.
            items.sort_by_cached_key(|item| {
                table.keys.iter().position(|key| has_key(item, key)).unwrap_or(usize::MAX)
            });
            (table.table.clone(), items.iter().map(ItemBytes::encode).collect())
        });
        Ok(BatchGetOutput { found: in_order.collect(), unprocessed: named(&names, open), consumed })
    }

    pub(crate) async fn write_batch(&self, request: &BatchWrite) -> Result<BatchWriteOutput> {
        let names: Vec<&str> = request.tables.iter().map(|(table, _)| table.as_str()).collect();
        no_table_twice(&names)?;
        let asked = Asked::writing(request.capacity);
        let mut output = BatchWriteOutput::default();
        let mut open: Open =
            request.tables.iter().map(|(_, writes)| (0..writes.len()).collect()).collect();
        let mut rounds = Rounds::new(self.attempts.max);
        let mut is_first = true;
        loop {
            let ask = self
                .client
                .batch_write_item()
                .set_request_items(Some(still_to_write(request, &open)?))
                .set_return_consumed_capacity(parts::capacity(request.capacity))
                .set_return_item_collection_metrics(parts::metrics(request.collection_metrics));
            let answer = match self.attempts.run(Repeat::Write, || ask.clone().send()).await {
                Ok(answer) => answer,
                Err(error) if is_first || matches!(error, Error::OutcomeUnknown(_)) => {
                    return Err(error);
                }
                // An error would say that nothing was written, but the rounds before wrote. What is
                // left was certainly not written: whoever asks for it again learns why.
                Err(_) => break,
            };
            is_first = false;
            add_up(&mut output.consumed, asked.consumed_all(answer.consumed_capacity.as_deref()));
            let sizes = parts::collections(answer.item_collection_metrics.as_ref())?;
            output.collections.extend(sizes);
            let left = answer.unprocessed_items.unwrap_or_default();
            open = unwritten(request, &left)?;
            match rounds.next(&open) {
                Some(attempt) => self.attempts.wait(attempt).await,
                None => break,
            }
        }
        output.unprocessed = named(&names, open);
        Ok(output)
    }
}

/// Counts rounds that got nothing done: as many as there are attempts, one after the other, are
/// enough. A round that got something done was no failure, only full.
struct Rounds {
    max: u32,
    in_vain: u32,
    left: usize,
}

impl Rounds {
    fn new(max: u32) -> Rounds {
        Rounds { max, in_vain: 0, left: usize::MAX }
    }

    /// After which attempt to pause before the next round; `None` when there is to be none.
    fn next(&mut self, open: &Open) -> Option<u32> {
        let left = open.iter().map(Vec::len).sum();
        self.in_vain = if left < self.left { 0 } else { self.in_vain + 1 };
        self.left = left;
        (left > 0 && self.in_vain + 1 < self.max).then_some(self.in_vain + 1)
    }
}

/// The protocol names each table once.
fn no_table_twice(names: &[&str]) -> Result<()> {
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(**name)) {
        Some(twice) => Err(Error::Invalid(format!("the batch names the table `{twice}` twice"))),
        None => Ok(()),
    }
}

fn still_to_get(request: &BatchGet, open: &Open) -> Result<HashMap<String, KeysAndAttributes>> {
    let tables = request.tables.iter().zip(open).filter(|(_, open)| !open.is_empty());
    let each = tables.map(|(table, open)| {
        let (expression, names) = parts::projection(table.projection.as_ref());
        let keys = open.iter().filter_map(|at| table.keys.get(*at)).map(attributes);
        let built = KeysAndAttributes::builder()
            .set_keys(Some(keys.collect()))
            .set_projection_expression(expression)
            .set_attributes_to_get(names)
            .set_expression_attribute_names(parts::names(&table.placeholders))
            .consistent_read(table.consistent_read)
            .build();
        Ok((table.table.clone(), built.map_err(|error| Error::Invalid(error.to_string()))?))
    });
    each.collect()
}

fn still_to_write(request: &BatchWrite, open: &Open) -> Result<HashMap<String, Vec<SdkWrite>>> {
    let tables = request.tables.iter().zip(open).filter(|(_, open)| !open.is_empty());
    let each = tables.map(|((table, writes), open)| {
        let writes = open.iter().filter_map(|at| writes.get(*at)).map(write);
        Ok((table.clone(), writes.collect::<Result<_>>()?))
    });
    each.collect()
}

fn write(request: &WriteRequest) -> Result<SdkWrite> {
    let incomplete = |error: aws_sdk_dynamodb::error::BuildError| Error::Invalid(error.to_string());
    let write = SdkWrite::builder();
    let write = match request {
        WriteRequest::Put(item) => {
            let put = PutRequest::builder().set_item(Some(attributes(item)));
            write.put_request(put.build().map_err(incomplete)?)
        }
        WriteRequest::Delete(key) => {
            let delete = DeleteRequest::builder().set_key(Some(attributes(key)));
            write.delete_request(delete.build().map_err(incomplete)?)
        }
    };
    Ok(write.build())
}

/// Which keys the store left unread.
fn unread(request: &BatchGet, left: &HashMap<String, KeysAndAttributes>) -> Result<Open> {
    let strange = || Error::Unreadable("the store left a key unread that nobody asked for".into());
    let each = request.tables.iter().map(|table| {
        let keys: &[Attributes] = left.get(&table.table).map_or(&[], |it| &it.keys);
        let indexes = keys.iter().map(|key| {
            let key = item(key)?;
            table.keys.iter().position(|asked| *asked == key).ok_or_else(strange)
        });
        indexes.collect()
    });
    each.collect()
}

/// Which writes the store left undone. It has done the others, so there is no error but that of an
/// unknown outcome.
fn unwritten(request: &BatchWrite, left: &HashMap<String, Vec<SdkWrite>>) -> Result<Open> {
    let strange =
        || Error::OutcomeUnknown("the store left a write undone that nobody asked for".into());
    let each = request.tables.iter().map(|(table, writes)| {
        let left = left.get(table).map(Vec::as_slice).unwrap_or_default();
        let indexes = left.iter().map(|left| {
            let put = left.put_request.as_ref().map(|it| item(&it.item));
            let delete = left.delete_request.as_ref().map(|it| item(&it.key));
            let is_left = |write: &WriteRequest| match write {
                WriteRequest::Put(item) => matches!(&put, Some(Ok(left)) if left == item),
                WriteRequest::Delete(key) => matches!(&delete, Some(Ok(left)) if left == key),
            };
            writes.iter().position(is_left).ok_or_else(strange)
        });
        indexes.collect()
    });
    each.collect()
}

fn has_key(item: &Item, key: &Item) -> bool {
    key.iter().all(|(name, value)| item.get(name) == Some(value))
}

/// What is left, by the tables' names.
fn named(names: &[&str], open: Open) -> Vec<(String, Vec<usize>)> {
    let pairs = names.iter().zip(open).filter(|(_, indexes)| !indexes.is_empty());
    pairs.map(|(name, indexes)| ((*name).to_owned(), indexes)).collect()
}

/// Adds the capacity of one more round.
fn add_up(sum: &mut Vec<Consumed>, round: Vec<Consumed>) {
    let add = |sum: &mut Vec<(String, f64)>, more: Vec<(String, f64)>| {
        for (name, units) in more {
            match sum.iter_mut().find(|(have, _)| *have == name) {
                Some((_, have)) => *have += units,
                None => sum.push((name, units)),
            }
        }
    };
    for more in round {
        match sum.iter_mut().find(|have| have.table == more.table) {
            Some(have) => {
                have.table_units += more.table_units;
                add(&mut have.local, more.local);
                add(&mut have.global, more.global);
            }
            None => sum.push(more),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_end_when_nothing_is_left_or_nothing_more_gets_done() {
        let open = |left: usize| vec![(0..left).collect()];
        let mut rounds = Rounds::new(3);
        assert_eq!(rounds.next(&open(9)), Some(1));
        assert_eq!(rounds.next(&open(9)), Some(2));
        assert_eq!(rounds.next(&open(8)), Some(1));
        assert_eq!(rounds.next(&open(8)), Some(2));
        assert_eq!(rounds.next(&open(8)), None);
        assert_eq!(Rounds::new(3).next(&open(0)), None);
        assert_eq!(Rounds::new(1).next(&open(4)), None);
    }

    #[test]
    fn capacity_of_several_rounds_adds_up_by_table_and_index() {
        let consumed = |table: &str, units: f64| Consumed {
            table: table.to_owned(),
            table_units: units,
            global: vec![("index".to_owned(), 1.0)],
            ..Consumed::default()
        };
        let mut sum = vec![consumed("a", 2.0)];
        add_up(&mut sum, vec![consumed("b", 1.0), consumed("a", 3.0)]);
        assert_eq!(sum[0].total(), 7.0);
        assert_eq!(sum[1].total(), 2.0);
    }
}
