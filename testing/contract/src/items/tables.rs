//! Tables: required, listed, described.

use kstone_ports::Error;
use kstone_ports::items::{
    GetItem, IndexProjection, IndexSpec, KeyAttribute, KeySchema, PutItem, Scan, Status, TableSpec,
    TtlState,
};

use super::{Store, TTL, key, pk_and_sk};

/// Required again it is the same table with its items; one with another key is left alone.
pub async fn a_table_is_required_twice_and_refused_with_another_key(store: &Store) {
    let table = store.table("required").await;
    store.put(&table, key("a", "b")).await;
    assert_eq!(store.table("required").await, table);
    let other = KeySchema::hash(KeyAttribute::number("id"));
    let other = TableSpec { name: table.clone(), key: other, ..TableSpec::default() };
    let refused = store.items.require_table(&other, Some("other")).await.unwrap_err();
    assert!(matches!(refused, Error::Invalid(_)), "{refused:?}");
    assert!(refused.to_string().contains(&table), "{refused}");
    let known = store.items.describe(&table).await.unwrap();
    assert_eq!(known.spec.key, pk_and_sk());
    assert!(matches!(known.ttl, TtlState::On(ttl) | TtlState::Enabling(ttl) if ttl == TTL));
    assert_eq!(store.get(&table, key("a", "b")).await, Some(key("a", "b")));
}

/// By whatever operation.
pub async fn an_unknown_table_is_not_found(store: &Store) {
    let table = store.name("nowhere");
    let get = GetItem { table: table.clone(), key: key("a", "b"), ..GetItem::default() };
    let put = PutItem { table: table.clone(), item: key("a", "b"), ..PutItem::default() };
    let scan = Scan { table: table.clone(), ..Scan::default() };
    for refused in [
        store.items.get(&get).await.unwrap_err(),
        store.items.put(&put).await.unwrap_err(),
        store.items.scan(&scan).await.unwrap_err(),
        store.items.describe(&table).await.unwrap_err(),
    ] {
        assert!(matches!(refused, Error::NotFound(_)), "{refused:?}");
    }
}

/// With its key and its indexes, as it was made.
pub async fn a_table_is_listed_and_described(store: &Store) {
    let index = |name: &str, key: KeySchema, projection: IndexProjection| IndexSpec {
        name: name.to_owned(),
        key,
        projection,
        throughput: None,
    };
    let local = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::number("rank"));
    let spec = TableSpec {
        name: store.name("described"),
        key: pk_and_sk(),
        local: vec![index("by-rank", local, IndexProjection::Include(vec!["text".to_owned()]))],
        global: vec![index(
            "by-hash",
            KeySchema::hash(KeyAttribute::binary("hash")),
            IndexProjection::KeysOnly,
        )],
        ..TableSpec::default()
    };
    store.items.require_table(&spec, None).await.unwrap();
    let names = store.items.tables().await.unwrap();
    assert!(names.is_sorted() && names.contains(&spec.name), "{names:?}");
    let known = store.items.describe(&spec.name).await.unwrap();
    assert_eq!(known.spec.name, spec.name);
    assert_eq!(known.spec.key, spec.key);
    assert_eq!(known.spec.local, spec.local);
    assert_eq!(known.spec.global, spec.global);
    assert_eq!(known.spec.throughput, None);
    assert_eq!(known.status, Status::Active);
    assert_eq!(known.ttl, TtlState::Off);
}
