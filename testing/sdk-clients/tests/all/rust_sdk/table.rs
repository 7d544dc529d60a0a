//! The table as the SDK makes it and describes it.

use aws_sdk_dynamodb::types::{
    AttributeValue, IndexStatus, TableStatus, Tag, TimeToLiveSpecification, TimeToLiveStatus,
};
use kstone_core::env::{Clock, SystemClock};
use kstone_workflows::{TTL_ATTRIBUTE, table_spec};

use crate::rust_sdk::support::{Door, TABLE};
use crate::rust_sdk::translate::{create_table, key_schema};

#[tokio::test(flavor = "multi_thread")]
async fn the_table_and_its_multi_attribute_indexes_are_described_as_they_were_made() {
    let door = Door::open().await;
    let spec = table_spec(TABLE);
    create_table(&door.client, &spec).await.unwrap();
    // What the SDK made is what the model asks the embedded database for.
    let made = door.db.describe_table(TABLE).unwrap().spec;
    assert_eq!((&made.key, &made.global), (&spec.key, &spec.global));
    let described = door.client.describe_table().table_name(TABLE).send().await.unwrap();
    let described = described.table.unwrap();
    assert_eq!(described.table_status(), Some(&TableStatus::Active));
    assert_eq!(described.key_schema(), key_schema(&spec.key));
    let mut indexes = described.global_secondary_indexes().to_vec();
    indexes.sort_by(|a, b| a.index_name.cmp(&b.index_name));
    assert_eq!(indexes.len(), 3);
    for (index, expected) in indexes.iter().zip(&spec.global) {
        assert_eq!(index.index_name(), Some(expected.name.as_str()));
        assert_eq!(index.index_status(), Some(&IndexStatus::Active));
        assert_eq!(index.key_schema(), key_schema(&expected.key));
    }
    let listed = door.client.list_tables().send().await.unwrap();
    assert_eq!(listed.table_names(), [TABLE]);
    door.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_there_already_or_not_at_all_is_an_error_of_its_own_type() {
    let door = Door::with_workflows(&[]).await;
    let error = create_table(&door.client, &table_spec(TABLE)).await.unwrap_err();
    assert!(error.is_resource_in_use_exception(), "{error:?}");
    door.client.delete_table().table_name(TABLE).send().await.unwrap();
    let error = door.client.describe_table().table_name(TABLE).send().await.unwrap_err();
    assert!(error.into_service_error().is_resource_not_found_exception());
    door.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_to_live_is_turned_on_and_an_expired_item_is_never_returned() {
    let door = Door::with_workflows(&[]).await;
    let specification =
        TimeToLiveSpecification::builder().attribute_name(TTL_ATTRIBUTE).enabled(true).build();
    let request = door.client.update_time_to_live().table_name(TABLE);
    request.time_to_live_specification(specification.unwrap()).send().await.unwrap();
    let described = door.client.describe_time_to_live().table_name(TABLE).send().await.unwrap();
    let described = described.time_to_live_description.unwrap();
    assert!(matches!(
        described.time_to_live_status(),
        Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)
    ));
    assert_eq!(described.attribute_name(), Some(TTL_ATTRIBUTE));
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: u64| AttributeValue::N(number.to_string());
    let now = SystemClock::new().now_ms() / 1000;
    for (pk, ttl) in [("over", now - 60), ("not yet", now + 3600)] {
        let put = door.client.put_item().table_name(TABLE).item("pk", text(pk));
        put.item("sk", text("metadata")).item(TTL_ATTRIBUTE, number(ttl)).send().await.unwrap();
    }
    let scanned = door.client.scan().table_name(TABLE).send().await.unwrap();
    assert_eq!(scanned.count(), 1);
    assert_eq!(scanned.items()[0]["pk"], text("not yet"));
    door.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_are_kept_and_taken_off() {
    let door = Door::with_workflows(&[]).await;
    let described = door.client.describe_table().table_name(TABLE).send().await.unwrap();
    let arn = described.table.unwrap().table_arn.unwrap();
    let tag = |key: &str, value: &str| Tag::builder().key(key).value(value).build().unwrap();
    let request = door.client.tag_resource().resource_arn(&arn);
    request.tags(tag("team", "records")).tags(tag("stage", "test")).send().await.unwrap();
    let request = door.client.untag_resource().resource_arn(&arn);
    request.tag_keys("stage").send().await.unwrap();
    let listed = door.client.list_tags_of_resource().resource_arn(&arn).send().await.unwrap();
    assert_eq!(listed.tags(), [tag("team", "records")]);
    door.close().await;
}
