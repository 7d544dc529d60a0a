//! Every way to find the items, by the SDK and by the embedded database: the same items in the same
//! order. That they are the right ones is tested beside the model.

use kstone::ops::{GetItem, Query};
use kstone::{Database, Item};
use kstone_base::time::Timestamp;
use kstone_workflows::{ExecutionStatus, TaskStatus, WorkflowType, requests};

use crate::rust_sdk::support::{Door, TABLE, entities};
use crate::rust_sdk::translate::{get, query, query_builder};

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn gets() -> Vec<(&'static str, GetItem)> {
    let day = "2025-01-15".parse().unwrap();
    vec![
        ("execution by id", requests::execution_by_id(TABLE, "exec-001")),
        ("album by index", requests::album_by_index(TABLE, "exec-001", 10)),
        ("task by id", requests::task_by_id(TABLE, "task-001")),
        ("metrics", requests::metrics_of_day(TABLE, day, WorkflowType::StepFunctions)),
    ]
}

fn queries() -> Vec<(&'static str, Query)> {
    let engine = WorkflowType::StepFunctions;
    let day = "2025-01-15".parse().unwrap();
    let range = || moment("2025-01-15T10:00:00Z")..=moment("2025-01-15T23:59:59Z");
    let (completed, pending) = (ExecutionStatus::Completed, TaskStatus::Pending);
    vec![
        ("executions by type", requests::executions_by_type(TABLE, engine)),
        ("running executions", requests::running_executions(TABLE, engine)),
        (
            "executions by date range",
            requests::executions_by_date_range(TABLE, engine, completed, range()),
        ),
        ("execution context", requests::execution_context(TABLE, engine, "exec-001")),
        ("execution with albums", requests::execution_with_albums(TABLE, "exec-001")),
        ("albums by prefix", requests::albums_by_prefix(TABLE, "exec-001")),
        ("albums in context", requests::albums_in_context(TABLE, engine, "exec-001")),
        ("album in context", requests::album_in_context(TABLE, engine, "exec-001", 10)),
        ("pending tasks", requests::pending_tasks(TABLE)),
        ("tasks by status", requests::tasks_by_status(TABLE, engine, pending)),
        (
            "tasks by date range",
            requests::tasks_by_date_range(TABLE, engine, TaskStatus::Timeout, range()),
        ),
        ("tasks by execution", requests::tasks_by_execution(TABLE, engine, "exec-001")),
        ("metrics to compare", requests::metrics_to_compare(TABLE, day)),
        ("metrics by type", requests::metrics_by_type(TABLE, engine)),
        ("metrics by date range", requests::metrics_by_date_range(TABLE, engine, range())),
    ]
}

fn embedded(db: &Database, request: &Query) -> Vec<Item> {
    let page = db.query_items(request).wait().unwrap();
    assert_eq!(page.next, None, "the sample fits one page");
    page.items.unwrap().iter().map(|item| item.decode().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_access_pattern_gives_the_sdk_what_the_embedded_database_gives() {
    let door = Door::with_workflows(&entities()).await;
    for (name, request) in gets() {
        let expected = door.db.get_item(&request).wait().unwrap().item;
        let expected = expected.map(|item| item.decode().unwrap());
        assert!(expected.is_some(), "{name} finds something");
        assert_eq!(get(&door.client, &request).await, expected, "{name}");
    }
    for (name, request) in queries() {
        let expected = embedded(&door.db, &request);
        assert!(!expected.is_empty(), "{name} finds something");
        assert_eq!(query(&door.client, &request).await, expected, "{name}");
        let in_pages = Query { limit: Some(2), ..request.clone() };
        assert_eq!(query(&door.client, &in_pages).await, expected, "{name} in pages of two");
        let backward = Query { backward: true, ..request };
        let reversed: Vec<Item> = expected.into_iter().rev().collect();
        assert_eq!(query(&door.client, &backward).await, reversed, "{name} backward");
    }
    door.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_ends_with_the_keys_of_table_and_index_and_the_next_begins_after_it() {
    let door = Door::with_workflows(&entities()).await;
    let request = requests::pending_tasks(TABLE);
    let first = query_builder(&door.client, &request).limit(1).send().await.unwrap();
    assert_eq!((first.count(), first.scanned_count()), (1, 1));
    let last = first.last_evaluated_key().unwrap();
    let mut names: Vec<&str> = last.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["createdAt", "entityType", "pk", "sk", "status"]);
    let rest = query_builder(&door.client, &request).set_exclusive_start_key(Some(last.clone()));
    let rest = rest.send().await.unwrap();
    assert_eq!(rest.last_evaluated_key(), None);
    let pages = first.count() + rest.count();
    assert_eq!(pages as usize, embedded(&door.db, &request).len());
    door.close().await;
}
