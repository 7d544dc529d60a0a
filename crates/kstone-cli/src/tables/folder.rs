//! Access to named tables in a folder that this process has open.

use anyhow::Result;
use kstone::Database;
use kstone::Item;
use kstone::ops::{BatchWrite, KeyCondition, Placeholders, Query, Scan, Segment, WriteRequest};

use crate::tables::{Items, ItemsQuery, TableShape};

pub fn shape(db: &Database, table: &str) -> Result<TableShape> {
    let found = db.describe_table(table)?;
    let indexes = found.spec.local.into_iter().chain(found.spec.global);
    Ok(TableShape {
        key: found.spec.key,
        indexes: indexes.map(|index| (index.name, index.key)).collect(),
        items: found.items,
    })
}

pub fn put(db: &Database, table: &str, items: Vec<Item>) -> Result<()> {
    let writes = items.iter().cloned().map(WriteRequest::Put).collect();
    let request = BatchWrite { tables: vec![(table.to_owned(), writes)], ..BatchWrite::default() };
    match db.batch_write(&request).wait() {
        // The same key twice: the later item is the one that stays.
        Err(kstone::Error::Validation(why)) if why.contains("contains duplicates") => {
            for item in items {
                db.table(table).put(item)?;
            }
            Ok(())
        }
        written => Ok(written.map(drop)?),
    }
}

pub fn read(db: &Database, ask: &ItemsQuery) -> Result<Items> {
    let page = match &ask.condition {
        Some(condition) => db.query_items(&Query {
            table: ask.table.clone(),
            index: ask.index.clone(),
            key_condition: Some(KeyCondition::Text(condition.text.clone())),
            placeholders: Placeholders {
                names: Some(condition.names.clone()),
                values: Some(condition.values.clone()),
            },
            limit: ask.limit,
            start: ask.start.clone(),
            backward: ask.backward,
            ..Query::default()
        }),
        None => db.scan_items(&Scan {
            table: ask.table.clone(),
            index: ask.index.clone(),
            limit: ask.limit,
            start: ask.start.clone(),
            segment: ask.segment.map(|(index, total)| Segment { index, total }),
            ..Scan::default()
        }),
    }
    .wait()?;
    let items = page.items.unwrap_or_default();
    let items = items.iter().map(|item| item.decode()).collect::<Result<_, _>>()?;
    Ok(Items { items, next: page.next })
}
