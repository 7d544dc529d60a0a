//! The cases of Dapr's own conformance suite for state stores, as tests of ours. The suite calls a
//! component, so these do.

use kstone_dapr::messages::Any;
use kstone_dapr::messages::components::{
    BulkStateItem, DeleteRequest, GetResponse, Query, QueryItem, SetRequest, StateOptions,
    transactional_state_operation::Request as Change,
};
use serde_json::json;
use tonic::Code;

use crate::component::{Sidecar, delete, etag, is_of_etag, set};
use crate::server::Server;

async fn start() -> (Server, Sidecar) {
    let server = Server::start().await;
    let sidecar = Sidecar::of(&server).await;
    (server, sidecar)
}

fn with_ttl(key: &str, ttl: &str) -> SetRequest {
    let metadata = [("ttlInSeconds".to_owned(), ttl.to_owned())].into();
    SetRequest { metadata, ..set(key, b"\"text\"") }
}

const VALUES: [(&str, &[u8]); 8] = [
    ("int", b"123"),
    ("bool", b"true"),
    ("bytes", b"\x01"),
    ("string-with-json", b"\"{\\\"a\\\":\\\"b\\\"}\""),
    ("string", b"\"hello world\""),
    ("empty-string", b"\"\""),
    ("struct", b"{\"message\":\"test\"}"),
    ("protobuf", b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
];

#[tokio::test]
async fn values_of_every_kind_are_set_read_and_deleted() {
    let (_server, sidecar) = start().await;
    for (key, value) in VALUES {
        sidecar.set(set(key, value)).await.unwrap();
        assert_eq!(sidecar.get(key).await.data, value, "{key}");
        sidecar.delete(delete(key)).await.unwrap();
        assert_eq!(sidecar.get(key).await, GetResponse::default());
    }
    sidecar.delete(delete("never there")).await.unwrap();
}

#[tokio::test]
async fn bulk_calls_do_the_same_for_many_keys() {
    let (_server, sidecar) = start().await;
    sidecar.bulk_set(VALUES.iter().map(|(key, value)| set(key, value)).collect()).await.unwrap();
    let mut keys: Vec<&str> = VALUES.iter().map(|(key, _)| *key).collect();
    keys.push("doesnotexist");
    let found = sidecar.bulk_get(&keys).await;
    assert_eq!(found.len(), keys.len());
    for (one, (key, value)) in found.iter().zip(VALUES) {
        assert_eq!((one.key.as_str(), &one.data[..], one.error.as_str()), (key, value, ""));
        assert!(one.etag.is_some());
    }
    assert_eq!(
        found[VALUES.len()],
        BulkStateItem { key: "doesnotexist".to_owned(), ..BulkStateItem::default() }
    );
    sidecar.bulk_delete(vec![delete("int"), delete("bool"), delete("never there")]).await.unwrap();
    let left = sidecar.bulk_get(&["int", "bool", "bytes"]).await;
    assert_eq!(left.iter().map(|one| one.etag.is_some()).collect::<Vec<_>>(), [false, false, true]);
}

#[tokio::test]
async fn a_transactions_operations_happen_in_their_order() {
    let (_server, sidecar) = start().await;
    sidecar.set(set("key1", b"\"value1\"")).await.unwrap();
    let operations = vec![
        Change::Delete(delete("key1")),
        Change::Set(set("key2", b"\"value2\"")),
        Change::Delete(delete("key2")),
        Change::Set(set("key3", b"\"value3\"")),
    ];
    sidecar.transact(operations).await.unwrap();
    assert_eq!(sidecar.get("key1").await, GetResponse::default());
    assert_eq!(sidecar.get("key2").await, GetResponse::default());
    assert_eq!(sidecar.get("key3").await.data, "\"value3\"");
    sidecar.transact(vec![Change::Delete(delete("non-existent-key"))]).await.unwrap();
    sidecar.transact(Vec::new()).await.unwrap();
}

#[tokio::test]
async fn a_wrong_etag_keeps_one_key_as_it_was_and_no_other() {
    let (_server, sidecar) = start().await;
    let keys = ["etag1", "etag2", "etag3", "etag4"];
    sidecar.bulk_set(keys.map(|key| set(key, b"1")).to_vec()).await.unwrap();
    let [one, two, three, four] = {
        let found = sidecar.bulk_get(&keys).await;
        [0, 1, 2, 3].map(|at: usize| found[at].etag.clone().unwrap().value)
    };
    assert_eq!(sidecar.etag("etag1").await, one);
    let write = |key: &str, etag_text: &str| SetRequest { etag: etag(etag_text), ..set(key, b"2") };
    let remove =
        |key: &str, etag_text: &str| DeleteRequest { etag: etag(etag_text), ..delete(key) };

    is_of_etag(sidecar.set(write("etag1", "10000")).await, Code::FailedPrecondition);
    is_of_etag(sidecar.set(write("etag1", "bad-etag")).await, Code::InvalidArgument);
    sidecar.set(write("etag1", &one)).await.unwrap();
    let one = (one, sidecar.etag("etag1").await);
    assert_ne!(one.0, one.1);

    let refused = sidecar.bulk_set(vec![write("etag2", "10000"), write("etag3", &three)]).await;
    assert!(refused.as_ref().unwrap_err().message().contains("etag2"));
    is_of_etag(refused, Code::FailedPrecondition);
    assert_eq!(
        (sidecar.get("etag2").await.data, sidecar.etag("etag2").await),
        (b"1"[..].into(), two.clone())
    );
    assert_eq!(sidecar.get("etag3").await.data, "2");
    let three = sidecar.etag("etag3").await;
    sidecar.bulk_set(vec![write("etag2", &two), write("etag3", &three)]).await.unwrap();
    let (two, three) = (sidecar.etag("etag2").await, sidecar.etag("etag3").await);

    is_of_etag(sidecar.delete(remove("etag1", "10000")).await, Code::FailedPrecondition);
    sidecar.delete(remove("etag1", &one.1)).await.unwrap();
    assert_eq!(sidecar.get("etag1").await, GetResponse::default());
    let refused = sidecar.bulk_delete(vec![remove("etag2", &two), remove("etag3", "10000")]).await;
    is_of_etag(refused, Code::FailedPrecondition);
    assert_eq!(sidecar.get("etag2").await, GetResponse::default());
    assert_eq!(sidecar.etag("etag3").await, three);
    sidecar.bulk_delete(vec![remove("etag3", &three), remove("etag4", &four)]).await.unwrap();
    assert!(sidecar.bulk_get(&keys).await.iter().all(|one| one.data.is_empty()));
}

#[tokio::test]
async fn the_first_write_wins_with_an_etag_and_without() {
    let (_server, sidecar) = start().await;
    let first = |value: &[u8]| SetRequest {
        options: Some(StateOptions { concurrency: 1, consistency: 2 }),
        ..set("first", value)
    };
    for no_etag in [None, etag("")] {
        sidecar.delete(delete("first")).await.unwrap();
        let with = |value: &[u8]| SetRequest { etag: no_etag.clone(), ..first(value) };
        sidecar.set(with(b"1")).await.unwrap();
        assert_eq!(sidecar.get("first").await.data, "1");
        is_of_etag(sidecar.set(with(b"2")).await, Code::FailedPrecondition);
    }
    let read = sidecar.etag("first").await;
    let with_etag = SetRequest { etag: etag(&read), ..first(b"2") };
    sidecar.set(with_etag.clone()).await.unwrap();
    assert_eq!(sidecar.get("first").await.data, "2");
    assert_ne!(sidecar.etag("first").await, read);
    is_of_etag(sidecar.set(with_etag).await, Code::FailedPrecondition);
}

#[tokio::test]
async fn a_key_is_gone_within_three_seconds_when_it_was_to_live_two() {
    let (server, sidecar) = start().await;
    server.clock.advance(700);
    let refused = sidecar.set(with_ttl("k", "foo")).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    sidecar.set(with_ttl("k", "2")).await.unwrap();
    assert_eq!(sidecar.get("k").await.data, "\"text\"");
    server.clock.advance(1_999);
    assert_eq!(sidecar.get("k").await.data, "\"text\"");
    server.clock.advance(1_001);
    assert_eq!(sidecar.get("k").await, GetResponse::default());
}

#[tokio::test]
async fn a_life_is_told_and_taken_away_by_minus_one_and_by_a_write_that_names_none() {
    let (server, sidecar) = start().await;
    let expires = async |key: &str| sidecar.get(key).await.metadata.remove("ttlExpireTime");
    sidecar.set(with_ttl("k", "3600")).await.unwrap();
    assert_eq!(expires("k").await.as_deref(), Some("2026-01-14T10:00:00Z"));
    let found = sidecar.bulk_get(&["k"]).await;
    assert_eq!(found[0].metadata["ttlExpireTime"], "2026-01-14T10:00:00Z");
    for forever in [with_ttl("k", "-1"), set("k", b"\"text\"")] {
        sidecar.set(with_ttl("k", "2")).await.unwrap();
        assert!(expires("k").await.is_some());
        sidecar.set(forever).await.unwrap();
        assert_eq!(expires("k").await, None);
        server.clock.advance(3_000);
        assert_eq!(sidecar.get("k").await.data, "\"text\"");
    }
}

fn filter(operator: &str, operand: serde_json::Value) -> Query {
    let operand = Any { type_url: String::new(), value: operand.to_string().into_bytes().into() };
    Query { filter: [(operator.to_owned(), operand)].into(), ..Query::default() }
}

#[tokio::test]
async fn queries_find_what_their_filter_says_in_all_partitions_or_one() {
    let (_server, sidecar) = start().await;
    let values = [
        ("struct", json!({"message": "test"})),
        ("struct-2", json!({"message": "other test"})),
        ("active", json!({"product": {"value": 15}, "status": "ACTIVE", "message": "m"})),
        ("inactive", json!({"product": {"value": 12}, "status": "INACTIVE", "message": "m"})),
    ];
    for (key, value) in &values {
        sidecar.set(set(key, value.to_string().as_bytes())).await.unwrap();
    }
    let keys = |found: Vec<QueryItem>| found.into_iter().map(|one| one.key).collect::<Vec<_>>();
    let either = || {
        let any = json!([
            {"EQ": {"message": "other test"}}, {"IN": {"message": ["test", "dummy"]}}
        ]);
        filter("OR", any)
    };
    assert_eq!(keys(sidecar.query(either(), &[]).await), ["struct", "struct-2"]);
    let one = sidecar.query(either(), &[("partitionKey", "struct-2")]).await;
    assert_eq!((one[0].key.as_str(), one.len()), ("struct-2", 1));
    assert_eq!(one[0].etag.clone().unwrap().value, sidecar.etag("struct-2").await);
    let all = json!([
        {"EQ": {"message": "m"}}, {"GTE": {"product.value": 10}}, {"LT": {"product.value": 20}},
        {"NEQ": {"status": "INACTIVE"}},
    ]);
    assert_eq!(keys(sidecar.query(filter("AND", all), &[]).await), ["active"]);
    let nested = json!([
        {"AND": [{"GT": {"product.value": 11.1}}, {"EQ": {"status": "INACTIVE"}}]},
        {"AND": [{"LTE": {"product.value": 0.5}}, {"EQ": {"status": "ACTIVE"}}]},
    ]);
    assert_eq!(keys(sidecar.query(filter("OR", nested), &[]).await), ["inactive"]);
}

#[tokio::test]
async fn deleting_with_a_prefix_deletes_the_keys_of_one_owner() {
    let (server, sidecar) = start().await;
    let keys = [
        "prefix||key1",
        "prefix||key2",
        "prefix||prefix2||key3",
        "other-prefix||key1",
        "no-prefix",
    ];
    sidecar.bulk_set(keys.map(|key| set(key, b"1")).to_vec()).await.unwrap();
    assert_eq!(server.state.delete_with_prefix("prefix||").await.unwrap(), 2);
    assert_eq!(server.state.delete_with_prefix("other-prefix").await.unwrap(), 1);
    let left = sidecar.bulk_get(&keys).await;
    let left: Vec<&str> =
        left.iter().filter(|one| one.etag.is_some()).map(|one| one.key.as_str()).collect();
    assert_eq!(left, ["prefix||prefix2||key3", "no-prefix"]);
    for nobody in ["", "||"] {
        let refused = server.state.delete_with_prefix(nobody).await.unwrap_err();
        assert!(refused.to_string().contains("prefix is required"));
    }
}
