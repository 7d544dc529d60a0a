//! Checks that indexes and stream are consistent with the items.

use std::collections::{BTreeMap, HashMap};

use kstone::ops::{KeyCondition, Query};
use kstone::stream::ChangeKind;
use kstone::table::{IndexProjection, IndexSpec, KeySchema, Status};
use kstone::{Database, Item, ItemBytes, Value, placeholders};

use crate::indexes::table::{TABLE, compare_by, describe, query, scan};
use crate::indexes::workload::key_of;
use crate::support::stream_records;

/// Checks everything that can be checked without knowing what was written. Gives back the items.
pub fn check(db: &Database) -> Vec<Item> {
    let items = scan(db, TABLE, None);
    check_indexes(db, TABLE, &items);
    check_stream(db, &items);
    items
}

/// Every index that can be read holds what the items imply, in the order that they imply.
pub fn check_indexes(db: &Database, table: &str, items: &[Item]) {
    let description = db.describe_table(table).unwrap();
    let spec = &description.spec;
    let global = spec.global.iter().zip(&description.global);
    for (index, state) in spec.local.iter().zip(&description.local).chain(global) {
        if state.status != Status::Active {
            continue;
        }
        let mut expected = implied(&spec.key, index, items);
        let mut scanned = scan(db, table, Some(&index.name));
        assert_eq!(state.items, expected.len() as u64, "the count of index {}", index.name);
        let by_key = |a: &Item, b: &Item| compare_by(order(&spec.key, index), a, b);
        scanned.sort_by(by_key);
        expected.sort_by(by_key);
        assert_eq!(scanned, expected, "a scan of index {}", index.name);
        let mut partitions: HashMap<String, Vec<Item>> = HashMap::new();
        for item in expected {
            partitions.entry(format!("{:?}", partition(&index.key, &item))).or_default().push(item);
        }
        for items in partitions.values() {
            let mut found = query(db, whole_partition(table, index, &items[0]));
            assert_eq!(found, *items, "a query of index {}", index.name);
            let limit = Some(2);
            let backward =
                Query { backward: true, limit, ..whole_partition(table, index, &items[0]) };
            found.reverse();
            assert_eq!(query(db, backward), found, "a query of index {}, backward", index.name);
        }
    }
}

/// What an index holds if these are the table's items, in no order.
pub fn implied(base: &KeySchema, index: &IndexSpec, items: &[Item]) -> Vec<Item> {
    let has_key = |item: &&Item| index.key.attributes().all(|a| item.get(&a.name).is_some());
    items.iter().filter(has_key).map(|item| projected(base, index, item)).collect()
}

fn projected(base: &KeySchema, index: &IndexSpec, item: &Item) -> Item {
    let held = |name: &str| {
        base.contains(name)
            || index.key.contains(name)
            || match &index.projection {
                IndexProjection::All => true,
                IndexProjection::KeysOnly => false,
                IndexProjection::Include(names) => names.iter().any(|n| n == name),
            }
    };
    let attributes = item.iter().filter(|(name, _)| held(name));
    attributes.map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

/// The attributes that order the entries of a partition. Entries with the same sort key stand in
/// the order of the table's key, so that pages neither overlap nor leave gaps.
pub fn order<'a>(
    base: &'a KeySchema,
    index: &'a IndexSpec,
) -> impl Iterator<Item = &'a kstone::table::KeyAttribute> {
    index.key.range.iter().chain(base.attributes())
}

fn partition<'a>(key: &KeySchema, item: &'a Item) -> Vec<&'a Value> {
    key.hash.iter().map(|attribute| item.get(&attribute.name).unwrap()).collect()
}

fn whole_partition(table: &str, index: &IndexSpec, of: &Item) -> Query {
    let (mut text, mut signs) = (Vec::new(), Vec::new());
    for (n, attribute) in index.key.hash.iter().enumerate() {
        text.push(format!("#k{n} = :k{n}"));
        signs.push((format!("#k{n}"), Value::from(attribute.name.as_str())));
        signs.push((format!(":k{n}"), of.get(&attribute.name).unwrap().clone()));
    }
    Query {
        table: table.to_owned(),
        index: Some(index.name.clone()),
        key_condition: Some(KeyCondition::Text(text.join(" AND "))),
        placeholders: placeholders(signs),
        ..Query::default()
    }
}

/// The stream tells a history that ends in these items: each record begins where the one before it
/// ended. What has expired must have been reclaimed.
pub fn check_stream(db: &Database, items: &[Item]) {
    let mut now: BTreeMap<String, Item> = BTreeMap::new();
    let image = |image: &Option<ItemBytes>| image.as_ref().map(|item| item.decode().unwrap());
    for record in stream_records(db, TABLE) {
        let (old, new) = (image(&record.old), image(&record.new));
        let name = format!("{:?}", record.keys.decode().unwrap());
        assert_eq!(now.get(&name), old.as_ref(), "a change of {name} begins where it was");
        let kind = match (&old, &new) {
            (None, Some(_)) => ChangeKind::Insert,
            (Some(_), Some(_)) => ChangeKind::Modify,
            _ => ChangeKind::Remove,
        };
        assert_eq!(record.kind, kind, "{name}");
        assert!(old != new, "{name}: nothing changed");
        match new {
            Some(new) => now.insert(name, new),
            None => now.remove(&name),
        };
    }
    let items = items.iter().map(|item| (format!("{:?}", key_of(item)), item.clone()));
    assert_eq!(now, items.collect(), "the stream ends in the items");
}

/// Everything that belongs to a table is in its description, and the engine holds nothing else.
pub fn check_engine_tables(db: &Database) {
    let description = describe(db);
    let indexes = description.spec.local.len() + description.spec.global.len();
    let streams = db.list_streams(Some(TABLE), None, 100).0.len();
    let own = ["the default table", "the catalogue", "the items"].len();
    assert_eq!(db.engine().tables().len(), own + indexes + streams);
}
