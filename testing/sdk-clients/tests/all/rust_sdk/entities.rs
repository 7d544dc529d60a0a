//! Every entity, written by the SDK and read by it, is what the embedded database holds.

use kstone::ops::GetItem;
use kstone::{Item, Value};
use kstone_workflows::AnyEntity;

use crate::rust_sdk::support::{Door, TABLE, entities};
use crate::rust_sdk::translate::get;

fn key(item: &Item) -> Item {
    ["pk", "sk"].into_iter().map(|name| (name, item.get(name).unwrap().clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_entity_round_trips_through_the_sdk_with_its_nulls() {
    let entities = entities();
    let door = Door::with_workflows(&entities).await;
    let mut nulls = 0;
    for entity in &entities {
        let item = entity.to_item().unwrap();
        let request = GetItem { table: TABLE.to_owned(), key: key(&item), ..GetItem::default() };
        let by_sdk = get(&door.client, &request).await.unwrap();
        assert_eq!(by_sdk, item);
        assert_eq!(&AnyEntity::from_item(&by_sdk).unwrap(), entity);
        let embedded = door.db.get_item(&request).wait().unwrap().item.unwrap();
        assert_eq!(embedded.decode().unwrap(), item);
        nulls += item.iter().filter(|(_, value)| **value == Value::Null).count();
    }
    assert!(nulls > 0, "the sample has fields without a value");
    door.close().await;
}
