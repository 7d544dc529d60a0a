//! Queries and scans, page after page.

use kstone_ports::capabilities::Capability;
use kstone_ports::items::{
    IndexSpec, KeyAttribute, KeyCondition, KeySchema, Placeholders, Projection, Query, QueryOutput,
    Scan, Segment, Select, TableSpec, UpdateItem,
};
use kstone_ports::value::{Item, Value};

use super::{PATIENCE, Store, condition, key, pk_and_sk, values};

/// The placeholders of a query for the partition `p`, with these more.
fn of_p(more: &[(&str, &str)]) -> Placeholders {
    let all = [(":pk", "p")].into_iter().chain(more.iter().copied());
    let all = all.map(|(name, value)| (name.to_owned(), Value::from(value)));
    Placeholders { names: None, values: Some(all.collect()) }
}

fn query(table: &str, text: &str, placeholders: Placeholders) -> Query {
    Query {
        table: table.to_owned(),
        key_condition: Some(KeyCondition::Text(text.to_owned())),
        placeholders,
        consistent_read: true,
        ..Query::default()
    }
}

fn decoded(page: &QueryOutput) -> Vec<Item> {
    page.items.iter().flatten().map(|item| item.decode().unwrap()).collect()
}

fn sort_keys(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| item.get("sk").unwrap().as_str().unwrap()).collect()
}

/// Reads all pages, and checks that none is longer than asked for.
async fn all_pages(store: &Store, mut query: Query) -> Vec<Item> {
    let mut all = Vec::new();
    loop {
        let page = store.items.query(&query).await.unwrap();
        let items = decoded(&page);
        assert_eq!(page.count as usize, items.len());
        assert!(query.limit.is_none_or(|limit| page.scanned <= limit), "{page:?}");
        all.extend(items);
        match page.next {
            Some(next) => query.start = Some(next),
            None => return all,
        }
    }
}

/// In the order of the sort key, whatever the length of the pages, and nothing of other partitions.
pub async fn a_partition_is_read_in_pages_forward_and_backward(store: &Store) {
    let table = store.table("pages").await;
    for sk in ["d", "a", "c", "b", "e"] {
        store.put(&table, key("p", sk)).await;
        store.put(&table, key("other", sk)).await;
    }
    for limit in [None, Some(1), Some(2), Some(5), Some(6)] {
        let forward = Query { limit, ..query(&table, "pk = :pk", of_p(&[])) };
        let backward = Query { backward: true, ..forward.clone() };
        let (up, down) = (all_pages(store, forward).await, all_pages(store, backward).await);
        assert_eq!(sort_keys(&up), ["a", "b", "c", "d", "e"]);
        assert_eq!(sort_keys(&down), ["e", "d", "c", "b", "a"]);
        assert!(up.iter().all(|item| item.get("pk") == Some(&"p".into())));
    }
}

/// A filter takes away after the limit has counted.
pub async fn a_range_a_filter_a_projection_and_a_count_of_a_partition(store: &Store) {
    let table = store.table("range").await;
    for (at, sk) in ["a#1", "a#2", "a#3", "b#1", "b#2"].into_iter().enumerate() {
        let item = key("p", sk).with("at", i64::try_from(at).unwrap()).with("more", "text");
        store.put(&table, item).await;
    }
    let begins = query(&table, "pk = :pk AND begins_with(sk, :a)", of_p(&[(":a", "a#")]));
    assert_eq!(sort_keys(&all_pages(store, begins.clone()).await), ["a#1", "a#2", "a#3"]);
    let bounds = of_p(&[(":low", "a#2"), (":high", "b#1")]);
    let between = query(&table, "pk = :pk AND sk BETWEEN :low AND :high", bounds);
    assert_eq!(sort_keys(&all_pages(store, between).await), ["a#2", "a#3", "b#1"]);

    let mut odd = query(&table, "pk = :pk", of_p(&[]));
    odd.filter = condition("#at IN (:one, :three)");
    odd.projection = Some(Projection::Text("sk, #at".to_owned()));
    odd.placeholders.names = Some(vec![("#at".to_owned(), "at".to_owned())]);
    let more = [(":one".to_owned(), Value::from(1)), (":three".to_owned(), Value::from(3))];
    odd.placeholders.values.as_mut().unwrap().extend(more);
    let found = [("a#2", 1), ("b#1", 3)];
    let found = found.map(|(sk, at)| Item::new().with("sk", sk).with("at", at));
    assert_eq!(all_pages(store, odd.clone()).await, found);
    let first = store.items.query(&Query { limit: Some(1), ..odd.clone() }).await.unwrap();
    assert_eq!((first.count, first.scanned), (0, 1));
    assert!(first.next.is_some());

    let count = Query { select: Some(Select::Count), ..begins };
    let counted = store.items.query(&count).await.unwrap();
    assert_eq!((counted.count, counted.items), (3, None));
}

/// In whatever order.
pub async fn a_scan_sees_every_item_once_in_pages_and_in_segments(store: &Store) {
    let table = store.table("scan").await;
    let mut expected: Vec<Item> = Vec::new();
    for at in 0..30 {
        let item = key(&format!("p{}", at % 7), &format!("s{at:02}"));
        store.put(&table, item.clone()).await;
        expected.push(item);
    }
    let by_sort_key = |items: &mut Vec<Item>| {
        items.sort_by_key(|item| item.get("sk").unwrap().as_str().unwrap().to_owned());
    };
    let whole = Scan { table, consistent_read: true, limit: Some(4), ..Scan::default() };
    let segment = |index| Scan { segment: Some(Segment { index, total: 3 }), ..whole.clone() };
    for parts in [vec![whole.clone()], vec![segment(0), segment(1), segment(2)]] {
        let mut seen = Vec::new();
        for mut scan in parts {
            loop {
                let page = store.items.scan(&scan).await.unwrap();
                seen.extend(decoded(&page));
                match page.next {
                    Some(next) => scan.start = Some(next),
                    None => break,
                }
            }
        }
        by_sort_key(&mut seen);
        assert_eq!(seen, expected);
    }
}

/// At once where indexes are consistent, otherwise in the end.
pub async fn an_index_shows_what_was_written_and_changed(store: &Store) {
    let index = IndexSpec {
        name: "by-owner".to_owned(),
        key: KeySchema::hash_range(KeyAttribute::string("owner"), KeyAttribute::number("due")),
        projection: kstone_ports::items::IndexProjection::All,
        throughput: None,
    };
    let spec = TableSpec {
        name: store.name("index"),
        key: pk_and_sk(),
        global: vec![index],
        ..TableSpec::default()
    };
    store.items.require_table(&spec, None).await.unwrap();
    let table = &spec.name;
    for (sk, owner, due) in [("1", "ann", 30), ("2", "ann", 10), ("3", "bob", 20)] {
        store.put(table, key("p", sk).with("owner", owner).with("due", due)).await;
    }
    store.put(table, key("p", "4")).await;
    let update = UpdateItem {
        table: table.clone(),
        key: key("p", "3"),
        update: Some(kstone_ports::items::Update::Text("SET #o = :ann".to_owned())),
        placeholders: Placeholders {
            names: Some(vec![("#o".to_owned(), "owner".to_owned())]),
            ..values([(":ann", "ann")])
        },
        ..UpdateItem::default()
    };
    store.items.update(&update).await.unwrap();
    let query = Query {
        table: table.clone(),
        index: Some("by-owner".to_owned()),
        key_condition: Some(KeyCondition::Text("#o = :ann AND due < :late".to_owned())),
        placeholders: Placeholders {
            names: Some(vec![("#o".to_owned(), "owner".to_owned())]),
            values: Some(vec![(":ann".to_owned(), "ann".into()), (":late".to_owned(), 30.into())]),
        },
        ..Query::default()
    };
    let look = async || {
        let page = store.items.query(&query).await.unwrap();
        decoded(&page).iter().map(|item| item.get("sk").cloned().unwrap()).collect::<Vec<_>>()
    };
    let expected: [Value; 2] = ["2".into(), "3".into()];
    if store.items.capabilities().has(Capability::ConsistentIndexes) {
        assert_eq!(look().await, expected);
        return;
    }
    let seen = async {
        while look().await != expected {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("the index never shows what was written");
}
