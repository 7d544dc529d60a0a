//! Time to live.

use std::time::{SystemTime, UNIX_EPOCH};

use kstone_ports::capabilities::Capability;

use super::{Store, TTL, key};

/// Elsewhere it may be, and the reader looks at the attribute. What has not expired is there.
pub async fn an_expired_item_is_not_returned_where_expiry_is_exact(store: &Store) {
    let table = store.table("expiry").await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let past = key("a", "past").with(TTL, now - 3600);
    let future = key("a", "future").with(TTL, now + 3600);
    let no_number = key("a", "text").with(TTL, "yesterday");
    for item in [&past, &future, &no_number] {
        store.put(&table, item.clone()).await;
    }
    assert_eq!(store.get(&table, key("a", "future")).await, Some(future));
    assert_eq!(store.get(&table, key("a", "text")).await, Some(no_number));
    let seen = store.get(&table, key("a", "past")).await;
    match store.items.capabilities().has(Capability::ExactExpiry) {
        true => assert_eq!(seen, None),
        false => assert!(seen.is_none() || seen == Some(past), "{seen:?}"),
    }
}
