//! Batches of single reads and writes.

use kstone_ports::items::{BatchGet, BatchGetTable, BatchWrite, Scan, WriteRequest};
use kstone_ports::value::Item;

use super::{PATIENCE, Store, key};

fn name(at: usize) -> String {
    format!("{at:03}")
}

/// Writes items of one table, 25 at a time, until nothing is left undone.
async fn write_all(store: &Store, table: &str, items: &[Item]) {
    for items in items.chunks(25) {
        let mut writes: Vec<WriteRequest> = items.iter().cloned().map(WriteRequest::Put).collect();
        let done = async {
            while !writes.is_empty() {
                let batch = BatchWrite {
                    tables: vec![(table.to_owned(), writes.clone())],
                    ..BatchWrite::default()
                };
                let left = store.items.batch_write(&batch).await.unwrap().unprocessed;
                let left = left.iter().flat_map(|(_, indexes)| indexes);
                writes = left.map(|at| writes[*at].clone()).collect();
            }
        };
        tokio::time::timeout(PATIENCE, done).await.expect("the batch is never done");
    }
}

/// A hundred keys at once, in the order asked, some of them of no item.
pub async fn a_hundred_items_are_read_and_the_missing_left_out(store: &Store) {
    let (table, empty) = (store.table("hundred").await, store.table("empty").await);
    let items: Vec<Item> =
        (0..80).map(|at| key("p", &name(at)).with("at", i64::try_from(at).unwrap())).collect();
    write_all(store, &table, &items).await;
    let keys: Vec<Item> = (0..90).rev().map(|at| key("p", &name(at))).collect();
    let request = BatchGet {
        tables: vec![
            BatchGetTable {
                table: table.clone(),
                keys,
                consistent_read: true,
                ..BatchGetTable::default()
            },
            BatchGetTable {
                table: empty.clone(),
                keys: (0..10).map(|at| key("q", &name(at))).collect(),
                ..BatchGetTable::default()
            },
        ],
        ..BatchGet::default()
    };
    let answer = store.items.batch_get(&request).await.unwrap();
    assert_eq!(answer.unprocessed, []);
    let found: Vec<(&str, Vec<Item>)> = answer
        .found
        .iter()
        .map(|(table, found)| {
            (table.as_str(), found.iter().map(|item| item.decode().unwrap()).collect())
        })
        .collect();
    let expected: Vec<Item> = items.into_iter().rev().collect();
    assert_eq!(found, [(table.as_str(), expected), (empty.as_str(), vec![])]);
}

/// Each write for itself; deleting what is not there is fine.
pub async fn puts_and_deletes_of_two_tables_go_in_one_batch(store: &Store) {
    let (one, two) = (store.table("batch-1").await, store.table("batch-2").await);
    store.put(&one, key("a", "gone")).await;
    let puts = (0..20).map(|at| WriteRequest::Put(key("a", &name(at))));
    let deletes = ["gone", "never there"].map(|sk| WriteRequest::Delete(key("a", sk)));
    let batch = BatchWrite {
        tables: vec![
            (one.clone(), puts.chain(deletes).collect()),
            (two.clone(), vec![WriteRequest::Put(key("a", "b"))]),
        ],
        ..BatchWrite::default()
    };
    let left = store.items.batch_write(&batch).await.unwrap().unprocessed;
    assert_eq!(left, []);
    assert_eq!(store.get(&two, key("a", "b")).await, Some(key("a", "b")));
    let scan = Scan { table: one, consistent_read: true, ..Scan::default() };
    let items = store.items.scan(&scan).await.unwrap().items.unwrap();
    let items: Vec<Item> = items.iter().map(|item| item.decode().unwrap()).collect();
    assert_eq!(items, (0..20).map(|at| key("a", &name(at))).collect::<Vec<_>>());
}
