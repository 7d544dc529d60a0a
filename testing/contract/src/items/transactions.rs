//! Writes and reads of several items together. Stores without transactions pass by saying so.

use kstone_ports::capabilities::Capability;
use kstone_ports::items::{
    TransactAction, TransactGet, TransactGetRequest, TransactKind, TransactWrite, Update,
};
use kstone_ports::value::Item;
use kstone_ports::{CancellationCode, Error};

use super::{Store, condition, key, values};

fn put(table: &str, item: Item) -> TransactAction {
    TransactAction::new(table, TransactKind::Put(item))
}

fn add_one(table: &str, key: Item) -> TransactAction {
    let update = Update::Text("ADD n :one".to_owned());
    TransactAction {
        placeholders: values([(":one", 1)]),
        ..TransactAction::new(table, TransactKind::Update(key, update))
    }
}

fn together(actions: Vec<TransactAction>, token: Option<&str>) -> TransactWrite {
    TransactWrite { actions, token: token.map(str::to_owned), ..TransactWrite::default() }
}

/// Whether the store is to be tested; one that says that it has no transactions must refuse them.
async fn has_transactions(store: &Store) -> bool {
    let has = store.items.capabilities().has(Capability::Transactions);
    if !has {
        let refused = store.items.transact_write(&TransactWrite::default()).await.unwrap_err();
        assert!(matches!(refused, Error::Unsupported(_)), "{refused:?}");
    }
    has
}

/// Puts, updates, deletes and checks of two tables.
pub async fn all_or_nothing(store: &Store) {
    if !has_transactions(store).await {
        return;
    }
    let (one, two) = (store.table("whole-1").await, store.table("whole-2").await);
    store.put(&one, key("a", "gone")).await;
    store.put(&two, key("a", "checked")).await;
    let check = |text| TransactAction {
        condition: condition(text),
        ..TransactAction::new(&two, TransactKind::Check(key("a", "checked")))
    };
    let actions = |check| {
        vec![
            put(&one, key("a", "new")),
            add_one(&two, key("a", "counted")),
            TransactAction::new(&one, TransactKind::Delete(key("a", "gone"))),
            check,
        ]
    };
    let wrong = together(actions(check("attribute_not_exists(pk)")), None);
    let refused = store.items.transact_write(&wrong).await.unwrap_err();
    assert!(matches!(refused, Error::TransactionCanceled { .. }), "{refused:?}");
    assert_eq!(store.get(&one, key("a", "new")).await, None);
    assert_eq!(store.get(&two, key("a", "counted")).await, None);
    assert_eq!(store.get(&one, key("a", "gone")).await, Some(key("a", "gone")));

    let right = together(actions(check("attribute_exists(pk)")), None);
    store.items.transact_write(&right).await.unwrap();
    assert_eq!(store.get(&one, key("a", "new")).await, Some(key("a", "new")));
    let counted = key("a", "counted").with("n", 1);
    assert_eq!(store.get(&two, key("a", "counted")).await, Some(counted));
    assert_eq!(store.get(&one, key("a", "gone")).await, None);
}

/// One reason for each action, with the item where it is asked for.
pub async fn reasons_come_in_the_order_of_the_actions(store: &Store) {
    if !has_transactions(store).await {
        return;
    }
    let table = store.table("reasons").await;
    let there = key("a", "there").with("text", "old");
    store.put(&table, there.clone()).await;
    let if_absent = |item: Item, return_on_failure| TransactAction {
        condition: condition("attribute_not_exists(pk)"),
        return_on_failure,
        ..put(&table, item)
    };
    let actions = vec![
        put(&table, key("a", "1")),
        if_absent(there.clone(), true),
        put(&table, key("a", "2")),
        TransactAction {
            condition: condition("attribute_exists(pk)"),
            ..put(&table, key("a", "3"))
        },
    ];
    let refused = store.items.transact_write(&together(actions, None)).await.unwrap_err();
    let Error::TransactionCanceled { reasons } = refused else { panic!("{refused:?}") };
    let codes: Vec<CancellationCode> = reasons.iter().map(|reason| reason.code).collect();
    let (fine, failed) = (CancellationCode::None, CancellationCode::ConditionalCheckFailed);
    assert_eq!(codes, [fine, failed, fine, failed]);
    let shown = reasons[1].item.as_ref().map(|item| item.decode().unwrap());
    assert_eq!(shown, Some(there));
    assert_eq!(reasons[0].item, None);
}

/// So a transaction without an answer can be sent again.
pub async fn a_repeated_token_does_nothing_and_succeeds(store: &Store) {
    if !has_transactions(store).await {
        return;
    }
    let table = store.table("token").await;
    let token = store.name("token-1");
    let token = token.get(token.len().saturating_sub(36)..).unwrap();
    let once = together(vec![add_one(&table, key("a", "b"))], Some(token));
    for _ in 0..3 {
        store.items.transact_write(&once).await.unwrap();
    }
    assert_eq!(store.get(&table, key("a", "b")).await, Some(key("a", "b").with("n", 1)));
    // Without a token each is one of its own.
    let each = together(vec![add_one(&table, key("a", "b"))], None);
    store.items.transact_write(&each).await.unwrap();
    store.items.transact_write(&each).await.unwrap();
    assert_eq!(store.get(&table, key("a", "b")).await, Some(key("a", "b").with("n", 3)));
}

/// A token stands for one transaction.
pub async fn a_token_of_another_transaction_is_refused(store: &Store) {
    if !has_transactions(store).await {
        return;
    }
    let table = store.table("reused").await;
    let token = store.name("token-2");
    let token = token.get(token.len().saturating_sub(36)..).unwrap();
    let first = together(vec![put(&table, key("a", "first"))], Some(token));
    store.items.transact_write(&first).await.unwrap();
    let second = together(vec![put(&table, key("a", "second"))], Some(token));
    let refused = store.items.transact_write(&second).await.unwrap_err();
    assert!(matches!(refused, Error::TokenReused(_)), "{refused:?}");
    assert_eq!(store.get(&table, key("a", "second")).await, None);
}

/// Two items that are always changed together are never seen apart.
pub async fn items_are_read_as_of_one_moment(store: &Store) {
    if !has_transactions(store).await {
        return;
    }
    let table = store.table("moment").await;
    let request = |sk: &str| TransactGetRequest {
        table: table.clone(),
        key: key("a", sk),
        ..TransactGetRequest::default()
    };
    let gets = vec![request("x"), request("missing"), request("y")];
    let both = TransactGet { gets, ..TransactGet::default() };
    let items = store.items.clone();
    let of_writer = table.clone();
    let writer = tokio::spawn(async move {
        for _ in 0..25 {
            let actions = ["x", "y"].map(|sk| add_one(&of_writer, key("a", sk)));
            items.transact_write(&together(actions.to_vec(), None)).await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    loop {
        let is_last = writer.is_finished();
        let read = store.items.transact_get(&both).await.unwrap().items;
        let counts: Vec<_> = read
            .iter()
            .map(|item| item.as_ref().map(|item| item.decode().unwrap().get("n").cloned()))
            .collect();
        let [x, missing, y] = &counts[..] else { panic!("{counts:?}") };
        assert_eq!((x, missing), (y, &None));
        if is_last {
            assert_eq!(x, &Some(Some(25.into())));
            break;
        }
        // A store in this process may never wait, and the writer needs its turns.
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}
