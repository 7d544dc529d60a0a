//! Conditions, transactions and batches: the SDK's typed answers and errors.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, KeysAndAttributes, Put, PutRequest, ReturnValue,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update, WriteRequest,
};
use kstone_workflows::AnyEntity;
use kstone_workflows::{Entity, Execution, execution_key, requests, task_key};

use crate::rust_sdk::support::{Door, TABLE, entities};
use crate::rust_sdk::translate::{attributes, get, item, query};

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_completed_once_and_the_second_time_its_condition_fails_with_the_item() {
    let door = Door::with_workflows(&entities()).await;
    let pending = query(&door.client, &requests::pending_tasks(TABLE)).await;
    let task_id = pending[0].get("taskId").unwrap().as_str().unwrap().to_owned();
    let complete = |now: &'static str| {
        door.client
            .update_item()
            .table_name(TABLE)
            .set_key(Some(attributes(&task_key(&task_id))))
            .update_expression("SET #status = :completed, completedAt = :now")
            .condition_expression("#status = :pending AND expiresAt > :now")
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":completed", text("completed"))
            .expression_attribute_values(":pending", text("pending"))
            .expression_attribute_values(":now", text(now))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
    };
    let failed_with = |error: UpdateItemError| match error {
        UpdateItemError::ConditionalCheckFailedException(failed) => {
            assert_eq!(failed.message(), Some("The conditional request failed"));
            failed.item.unwrap()["status"].clone()
        }
        other => panic!("{other:?}"),
    };
    let late = complete("2099-01-01T00:00:00Z").await.unwrap_err().into_service_error();
    assert_eq!(failed_with(late), text("pending"));
    let completed = complete("2025-01-15T10:45:00Z").await.unwrap().attributes.unwrap();
    assert_eq!(completed["status"], text("completed"));
    assert_eq!(completed["completedAt"], text("2025-01-15T10:45:00Z"));
    let again = complete("2025-01-15T10:45:00Z").await.unwrap_err().into_service_error();
    assert_eq!(failed_with(again), text("completed"));
    // The index moved with the item.
    let left = query(&door.client, &requests::pending_tasks(TABLE)).await;
    assert_eq!(left, pending[1..]);
    door.close().await;
}

fn an_execution(id: &str) -> Execution {
    let execution = entities().into_iter().find_map(|entity| match entity {
        AnyEntity::Execution(execution) => Some(execution),
        _ => None,
    });
    Execution { execution_id: id.to_owned(), ..execution.unwrap() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_does_all_or_nothing_and_says_why() {
    let door = Door::with_workflows(&entities()).await;
    let put = |id: &str| {
        let item = an_execution(id).to_item().unwrap();
        let put = Put::builder()
            .table_name(TABLE)
            .set_item(Some(attributes(&item)))
            .condition_expression("attribute_not_exists(pk)")
            .build();
        TransactWriteItem::builder().put(put.unwrap()).build()
    };
    let check = ConditionCheck::builder()
        .table_name(TABLE)
        .set_key(Some(attributes(&execution_key("exec-002"))))
        .condition_expression("attribute_exists(pk)")
        .build();
    let check = TransactWriteItem::builder().condition_check(check.unwrap()).build();
    let update = Update::builder()
        .table_name(TABLE)
        .set_key(Some(attributes(&execution_key("exec-001"))))
        .update_expression("ADD retries :one")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .build();
    let update = TransactWriteItem::builder().update(update.unwrap()).build();
    let send = |actions: Vec<TransactWriteItem>| {
        door.client.transact_write_items().set_transact_items(Some(actions)).send()
    };
    // exec-001 is there already.
    let refused = send(vec![put("exec-800"), put("exec-001"), check.clone()]).await;
    match refused.unwrap_err().into_service_error() {
        TransactWriteItemsError::TransactionCanceledException(canceled) => {
            let codes: Vec<&str> =
                canceled.cancellation_reasons().iter().filter_map(|r| r.code()).collect();
            assert_eq!(codes, ["None", "ConditionalCheckFailed", "None"]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(get(&door.client, &requests::execution_by_id(TABLE, "exec-800")).await, None);
    send(vec![put("exec-800"), update, check]).await.unwrap();
    let stored = get(&door.client, &requests::execution_by_id(TABLE, "exec-800")).await;
    assert_eq!(stored, Some(an_execution("exec-800").to_item().unwrap()));
    let updated = get(&door.client, &requests::execution_by_id(TABLE, "exec-001")).await;
    assert_eq!(updated.unwrap().get("retries"), Some(&1.into()));
    door.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_write_and_read_many_items() {
    let door = Door::with_workflows(&[]).await;
    let entities = entities();
    for chunk in entities.chunks(25) {
        let writes = chunk.iter().map(|entity| {
            let item = attributes(&entity.to_item().unwrap());
            let put = PutRequest::builder().set_item(Some(item)).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        });
        let request = door.client.batch_write_item();
        let written = request.request_items(TABLE, writes.collect()).send().await.unwrap();
        assert_eq!(written.unprocessed_items().map_or(0, |tables| tables.len()), 0);
    }
    for chunk in entities.chunks(100) {
        let items: Vec<_> = chunk.iter().map(|entity| entity.to_item().unwrap()).collect();
        let keys = items.iter().map(|item| {
            let mut key = attributes(item);
            key.retain(|name, _| name == "pk" || name == "sk");
            key
        });
        let keys = KeysAndAttributes::builder().set_keys(Some(keys.collect())).build().unwrap();
        let read = door.client.batch_get_item().request_items(TABLE, keys).send().await.unwrap();
        let found = &read.responses().unwrap()[TABLE];
        assert_eq!(found.len(), items.len());
        for attributes in found {
            assert!(items.contains(&item(attributes)));
        }
    }
    door.close().await;
}
