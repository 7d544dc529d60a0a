//! What the remote store says and does when the network or the service fails.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use kstone_contract::items::{Store, condition, key, values};
use kstone_ports::Error;
use kstone_ports::items::{
    BatchWrite, GetItem, Items, PutItem, TransactAction, TransactKind, TransactWrite, Update,
    UpdateItem, WriteRequest,
};
use kstone_remote_items::RemoteItems;

use super::door::{Door, options};
use super::proxy::{Fate, Proxy};

/// A store behind a proxy with this plan, patient but quick.
async fn behind(
    plan: impl Fn(&str, usize) -> Fate + Send + Sync + 'static,
) -> (Door, Proxy, Store) {
    let door = Door::open().await;
    let proxy = Proxy::open(door.address, plan).await;
    let mut options = options(proxy.address);
    options.pause = Duration::from_millis(1);
    options.pause_max = Duration::from_millis(20);
    let store = Store::new(Arc::new(RemoteItems::new(options).unwrap()), "faults");
    (door, proxy, store)
}

fn put(table: &str) -> PutItem {
    PutItem {
        table: table.to_owned(),
        item: key("a", "b"),
        condition: condition("attribute_not_exists(pk)"),
        ..PutItem::default()
    }
}

fn add_one(table: &str) -> UpdateItem {
    UpdateItem {
        table: table.to_owned(),
        key: key("a", "b"),
        update: Some(Update::Text("ADD n :one".to_owned())),
        placeholders: values([(":one", 1)]),
        ..UpdateItem::default()
    }
}

fn add_one_in_a_transaction(table: &str) -> TransactWrite {
    let update = Update::Text("ADD n :one".to_owned());
    let action = TransactAction {
        placeholders: values([(":one", 1)]),
        ..TransactAction::new(table, TransactKind::Update(key("a", "b"), update))
    };
    TransactWrite { actions: vec![action], ..TransactWrite::default() }
}

#[tokio::test]
async fn a_single_write_without_an_answer_is_not_sent_again() {
    for fate in [Fate::CarriedOutUnanswered, Fate::Lost] {
        let is_there = matches!(fate, Fate::CarriedOutUnanswered);
        let (door, proxy, store) = behind(move |operation, before| match operation {
            "PutItem" if before == 0 => fate.clone(),
            _ => Fate::Answered,
        })
        .await;
        let table = store.table("unknown").await;
        let before = proxy.requests();
        let error = store.items.put(&put(&table)).await.unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
        assert_eq!(proxy.requests(), before + 1);
        // The condition settles it.
        let settled = store.items.put(&put(&table)).await;
        assert_eq!(settled.is_err(), is_there, "{settled:?}");
        drop((store, proxy));
        door.close().await;
    }
}

#[tokio::test]
async fn a_write_that_the_service_failed_at_has_an_unknown_outcome_and_a_read_is_sent_again() {
    let failed = || Fate::AnsweredWith(500, r#"{"__type":"InternalServerError"}"#);
    let (door, proxy, store) = behind(move |operation, before| match (operation, before) {
        ("UpdateItem", 0) => failed(),
        ("GetItem", 0) => failed(),
        ("GetItem", 1) => Fate::AnsweredWith(502, "<html>Bad Gateway</html>"),
        ("GetItem", 2) => Fate::Lost,
        ("BatchWriteItem", 0) => Fate::CarriedOutUnanswered,
        _ => Fate::Answered,
    })
    .await;
    let table = store.table("failing").await;
    let error = store.items.update(&add_one(&table)).await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
    store.items.update(&add_one(&table)).await.unwrap();
    assert_eq!(store.get(&table, key("a", "b")).await, Some(key("a", "b").with("n", 1)));
    let writes = vec![WriteRequest::Delete(key("a", "b"))];
    let batch = BatchWrite { tables: vec![(table, writes)], ..BatchWrite::default() };
    let error = store.items.batch_write(&batch).await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
    drop((store, proxy));
    door.close().await;
}

#[tokio::test]
async fn a_transaction_without_an_answer_is_settled_by_its_token() {
    let (door, proxy, store) = behind(|operation, before| match (operation, before % 4) {
        ("TransactWriteItems", 0) => Fate::CarriedOutUnanswered,
        ("TransactWriteItems", 1) => Fate::Lost,
        ("TransactWriteItems", 2) => Fate::AnsweredWith(500, "{}"),
        _ => Fate::Answered,
    })
    .await;
    let table = store.table("settled").await;
    for _ in 0..3 {
        store.items.transact_write(&add_one_in_a_transaction(&table)).await.unwrap();
    }
    assert_eq!(store.get(&table, key("a", "b")).await, Some(key("a", "b").with("n", 3)));
    drop((store, proxy));
    door.close().await;
}

#[tokio::test]
async fn a_transaction_that_is_never_answered_has_an_unknown_outcome() {
    let (door, proxy, store) = behind(|operation, before| match (operation, before) {
        ("TransactWriteItems", 0) => Fate::CarriedOutUnanswered,
        // Certainly not carried out; but the first one was.
        ("TransactWriteItems", _) => Fate::Refused("ThrottlingException"),
        _ => Fate::Answered,
    })
    .await;
    let table = store.table("never").await;
    let error = store.items.transact_write(&add_one_in_a_transaction(&table)).await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
    assert_eq!(store.get(&table, key("a", "b")).await, Some(key("a", "b").with("n", 1)));
    drop((store, proxy));
    door.close().await;
}

#[tokio::test]
async fn a_store_that_throttles_every_other_request_is_asked_again() {
    let (door, proxy, store) = behind(|_, before| match before % 4 {
        0 => Fate::Refused("ThrottlingException"),
        2 => Fate::Refused("ProvisionedThroughputExceededException"),
        _ => Fate::Answered,
    })
    .await;
    let table = store.table("throttled").await;
    for _ in 0..20 {
        store.items.update(&add_one(&table)).await.unwrap();
        store.items.transact_write(&add_one_in_a_transaction(&table)).await.unwrap();
    }
    assert_eq!(store.get(&table, key("a", "b")).await, Some(key("a", "b").with("n", 40)));
    kstone_contract::items::batches::a_hundred_items_are_read_and_the_missing_left_out(&store)
        .await;
    kstone_contract::items::pages::a_partition_is_read_in_pages_forward_and_backward(&store).await;
    drop((store, proxy));
    door.close().await;
}

#[tokio::test]
async fn a_store_that_throttles_for_ever_is_given_up() {
    let (door, proxy, store) =
        behind(|_, _| Fate::Refused("ProvisionedThroughputExceededException")).await;
    let error = store.items.put(&put("table")).await.unwrap_err();
    assert!(matches!(error, Error::Throttled(_)), "{error:?}");
    assert_eq!(proxy.requests(), 8);
    drop((store, proxy));
    door.close().await;
}

#[tokio::test]
async fn a_batch_is_asked_for_again_until_the_store_has_done_it_all() {
    // Each answer leaves all undone but the third, which is the door's.
    let (door, proxy, store) = behind(|operation, before| match (operation, before) {
        ("BatchWriteItem", 0 | 1) => Fate::AnsweredWith(
            200,
            r#"{"UnprocessedItems":{"faults-batch":[
                {"DeleteRequest":{"Key":{"sk":{"S":"2"},"pk":{"S":"a"}}}},
                {"PutRequest":{"Item":{"pk":{"S":"a"},"sk":{"S":"1"},"n":{"N":"1.0"}}}}]}}"#,
        ),
        ("BatchWriteItem", 3..) => Fate::AnsweredWith(
            200,
            r#"{"UnprocessedItems":{"faults-batch":[
                {"DeleteRequest":{"Key":{"sk":{"S":"2"},"pk":{"S":"a"}}}}]}}"#,
        ),
        _ => Fate::Answered,
    })
    .await;
    let table = store.table("batch").await;
    let writes = vec![
        WriteRequest::Put(key("a", "1").with("n", 1)),
        WriteRequest::Delete(key("a", "2")),
        WriteRequest::Put(key("a", "3")),
    ];
    let batch = BatchWrite { tables: vec![(table.clone(), writes)], ..BatchWrite::default() };
    let left = store.items.batch_write(&batch).await.unwrap().unprocessed;
    assert_eq!(left, []);
    assert_eq!(store.get(&table, key("a", "1")).await, Some(key("a", "1").with("n", 1)));
    // The proxy only said that it was done.
    assert_eq!(store.get(&table, key("a", "3")).await, None);
    // From here on it never is, and what is left is named.
    let left = store.items.batch_write(&batch).await.unwrap().unprocessed;
    assert_eq!(left, [(table, vec![1])]);
    drop((store, proxy));
    door.close().await;
}

#[tokio::test]
async fn a_store_that_refuses_connections_is_unavailable() {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    drop(listener);
    let mut options = options(address);
    options.attempts = 3;
    options.pause = Duration::from_millis(1);
    let items = RemoteItems::new(options).unwrap();
    let get = GetItem { table: "table".to_owned(), key: key("a", "b"), ..GetItem::default() };
    for error in [
        items.put(&put("table")).await.unwrap_err(),
        items.get(&get).await.unwrap_err(),
        items.transact_write(&add_one_in_a_transaction("table")).await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_in_time_leaves_a_write_unknown() {
    // Accepts connections by the system's queue, and reads nothing.
    let silent = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut options = options(silent.local_addr().unwrap());
    options.answer_timeout = Duration::from_millis(100);
    options.attempts = 2;
    options.pause = Duration::from_millis(1);
    let items = RemoteItems::new(options).unwrap();
    let error = items.put(&put("table")).await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
    let get = GetItem { table: "table".to_owned(), key: key("a", "b"), ..GetItem::default() };
    let error = items.get(&get).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn tables_are_not_made_where_they_must_not_be() {
    let door = Door::open().await;
    let mut options = options(door.address);
    options.make_tables = false;
    options.transactions = false;
    let items = RemoteItems::new(options).unwrap();
    let spec = kstone_ports::items::TableSpec {
        name: "missing-table".to_owned(),
        key: kstone_contract::items::pk_and_sk(),
        ..Default::default()
    };
    let error = items.require_table(&spec, None).await.unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error:?}");
    assert!(error.to_string().contains("missing-table"), "{error}");
    assert_eq!(items.tables().await.unwrap(), [] as [&str; 0]);
    let error = items.transact_write(&TransactWrite::default()).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported(_)), "{error:?}");
    drop(items);
    door.close().await;
}

#[tokio::test]
async fn an_error_of_the_service_says_what_the_caller_can_do() {
    // One kind of error for each request, in turn; the last is answered by the door.
    const KINDS: [&str; 8] = [
        "UnknownOperationException",
        "AccessDeniedException",
        "ItemCollectionSizeLimitExceededException",
        "ResourceNotFoundException",
        "ValidationException",
        // These are tried again.
        "TransactionConflictException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
    ];
    let (door, proxy, store) = behind(|operation, before| match operation {
        "PutItem" => KINDS.get(before).map_or(Fate::Answered, |kind| Fate::Refused(kind)),
        _ => Fate::Answered,
    })
    .await;
    let table = store.table("kinds").await;
    let mut errors = Vec::new();
    for _ in 0..5 {
        errors.push(store.items.put(&put(&table)).await.unwrap_err());
    }
    let [unknown, denied, large, missing, wrong] = &errors[..] else { panic!("{errors:?}") };
    assert!(matches!(unknown, Error::Unsupported(_)), "{unknown:?}");
    assert!(matches!(denied, Error::Refused(_)), "{denied:?}");
    assert!(matches!(large, Error::TooLarge(_)), "{large:?}");
    assert!(matches!(missing, Error::NotFound(_)), "{missing:?}");
    assert!(matches!(wrong, Error::Invalid(_)), "{wrong:?}");
    store.items.put(&put(&table)).await.unwrap();
    drop((store, proxy));
    door.close().await;
}

#[tokio::test]
async fn a_transaction_canceled_for_want_of_capacity_is_tried_again() {
    const THROTTLED: &str = r#"{
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "CancellationReasons": [{"Code": "ThrottlingError", "Message": "too much"}]}"#;
    let (door, proxy, store) = behind(|operation, before| match (operation, before) {
        ("TransactWriteItems", 0 | 1) => Fate::AnsweredWith(400, THROTTLED),
        _ => Fate::Answered,
    })
    .await;
    let table = store.table("capacity").await;
    store.items.transact_write(&add_one_in_a_transaction(&table)).await.unwrap();
    assert_eq!(store.get(&table, key("a", "b")).await, Some(key("a", "b").with("n", 1)));
    drop((store, proxy));
    door.close().await;
}
