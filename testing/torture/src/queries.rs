//! Runs the reads of a sequence on the engine, through every interface that offers them.

use kstone_core::{Engine, Error, Key, KeyedRecord, Record, Result, ScanCursor, Snapshot};

use crate::model::{Answer, Model};
use crate::ops::Read;

/// The engine as it is now, or a snapshot.
pub(crate) enum ReadView<'a> {
    Now(&'a Engine),
    Then(&'a Snapshot),
}

/// Puts a question to the engine. `model` says which tables slots stand for.
pub(crate) fn ask(view: &ReadView<'_>, read: &Read, model: &Model) -> Result<Answer> {
    Ok(match read {
        Read::Get(slot, key) => {
            let (table, key) = (model.table(*slot), key.key());
            Answer::Found(vec![match view {
                ReadView::Now(engine) => engine.get(table, &key)?,
                ReadView::Then(snapshot) => snapshot.get(table, &key)?,
            }])
        }
        Read::MultiGet(slot, keys) => {
            let table = model.table(*slot);
            let keys: Vec<Key> = keys.iter().map(|key| key.key()).collect();
            Answer::Found(match view {
                ReadView::Now(engine) => engine.multi_get(table, &keys)?,
                ReadView::Then(snapshot) => {
                    keys.iter().map(|key| snapshot.get(table, key)).collect::<Result<_>>()?
                }
            })
        }
        Read::Query { table, pk, prefix, low, high, reverse, limit } => {
            let table = model.table(*table);
            let query = || {
                let mut query = match view {
                    ReadView::Now(engine) => engine.partition(table, pk.bytes()),
                    ReadView::Then(snapshot) => snapshot.partition(table, pk.bytes()),
                };
                query = query.range((low.map(|sk| sk.bytes()), high.map(|sk| sk.bytes())));
                if let Some(prefix) = prefix {
                    query = query.prefix(prefix.bytes());
                }
                if *reverse { query.reverse().iter() } else { query.iter() }
            };
            let owned: Vec<KeyedRecord> = query()?.take(*limit).collect::<Result<_>>()?;
            let mut borrowed = Vec::new();
            let mut records = query()?;
            while borrowed.len() < *limit {
                let Some(found) = records.next_ref()? else { break };
                let key = Key { pk: pk.bytes(), sk: found.sk.map(|sk| sk.to_vec().into()) };
                let (value, expires_at_ms) = (found.value, found.expires_at_ms);
                let record =
                    Record { value: value.to_vec().into(), expires_at_ms, version: found.version };
                borrowed.push(KeyedRecord { key, record });
            }
            if owned != borrowed {
                let what = format!("owned {owned:#?}\nborrowed {borrowed:#?}");
                return Err(Error::corruption("a query".as_ref(), 0, what));
            }
            Answer::Records(owned)
        }
        Read::Scan(slot, page) => {
            let snapshot = snapshot(view);
            let mut records = Vec::new();
            let mut cursor = Some(ScanCursor::start());
            while let Some(from) = cursor {
                let from = ScanCursor::from_bytes(&from.to_bytes())?;
                let mut scan = snapshot.scan(model.table(*slot), from);
                for record in scan.by_ref().take(*page) {
                    records.push(record?);
                }
                cursor = scan.cursor();
            }
            Answer::Records(records)
        }
        Read::Segments(slot, total) => {
            let snapshot = snapshot(view);
            let part = |n: u32| match ScanCursor::segment(n, *total)? {
                Some(cursor) => snapshot.scan(model.table(*slot), cursor).collect(),
                None => Ok(Vec::new()),
            };
            Answer::Parts((0..*total).map(part).collect::<Result<_>>()?)
        }
        Read::PartitionKeys(slot, prefix) => {
            let keys = snapshot(view).partition_keys(model.table(*slot), &prefix.bytes())?;
            Answer::PartitionKeys(keys.collect::<Result<_>>()?)
        }
    })
}

fn snapshot(view: &ReadView<'_>) -> Snapshot {
    match view {
        ReadView::Now(engine) => engine.snapshot(),
        ReadView::Then(snapshot) => (*snapshot).clone(),
    }
}
