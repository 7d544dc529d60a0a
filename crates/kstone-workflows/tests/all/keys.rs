//! The keys of the table and of its indexes, and the ids in them.

use kstone::table::KeySchema;
use kstone::{Item, Value};
use kstone_core::env::SeededRandom;
use kstone_workflows::{
    AnyEntity, EntityType, WorkflowType, album_key, execution_key, generate_execution_id, gsi1_key,
    gsi2_key, gsi3_key, metrics_key, sample, table_spec, task_key,
};

use crate::support::{TABLE, moment};

fn key(pk: &str, sk: &str) -> Item {
    Item::new().with("pk", pk).with("sk", sk)
}

#[test]
fn the_keys_of_items_are_natural() {
    assert_eq!(execution_key("exec-123"), key("exec-123", "metadata"));
    assert_eq!(album_key("exec-123", 10), key("exec-123", "album-10"));
    assert_eq!(task_key("task-abc123"), key("task-abc123", "metadata"));
    assert_eq!(
        metrics_key("2025-01-15".parse().unwrap(), WorkflowType::DurableFunctions),
        key("2025-01-15", "metrics-durable-functions")
    );
}

#[test]
fn a_generated_execution_id_is_a_version_4_uuid_and_different_every_time() {
    let random = SeededRandom::new(1);
    let mut ids: Vec<String> = (0..100).map(|_| generate_execution_id(&random)).collect();
    for id in &ids {
        let groups: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
        assert!(id.bytes().all(|b| matches!(b, b'-' | b'0'..=b'9' | b'a'..=b'f')), "{id}");
        assert_eq!(id.as_bytes()[14], b'4', "{id}");
        assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 100);
}

fn names(key: &KeySchema) -> (Vec<&str>, Vec<&str>) {
    let hash = key.hash.iter().map(|attribute| attribute.name.as_str());
    let range = key.range.iter().map(|attribute| attribute.name.as_str());
    (hash.collect(), range.collect())
}

#[test]
fn the_indexes_have_the_keys_that_the_helpers_give() {
    let spec = table_spec(TABLE);
    assert_eq!(names(&spec.key), (vec!["pk"], vec!["sk"]));
    let by_name =
        |name: &str| names(&spec.global.iter().find(|index| index.name == name).unwrap().key);
    assert_eq!(by_name("GSI1"), (vec!["workflowType", "entityType"], vec!["status", "createdAt"]));
    assert_eq!(
        by_name("GSI2"),
        (vec!["workflowType", "executionId"], vec!["entityType", "sortValue"])
    );
    assert_eq!(by_name("GSI3"), (vec!["entityType"], vec!["status", "createdAt"]));
    let at = moment("2025-01-15T10:30:00Z");
    let helpers = [
        gsi1_key(WorkflowType::StepFunctions, EntityType::Execution, "running", at),
        gsi2_key(WorkflowType::StepFunctions, "exec-123", EntityType::Album, 1),
        gsi3_key(EntityType::Task, "pending", at),
    ];
    for (index, helper) in spec.global.iter().zip(&helpers) {
        assert_eq!(helper.len(), index.key.len());
        for attribute in index.key.attributes() {
            let value = helper.get(&attribute.name).unwrap();
            assert_eq!(value.type_name(), attribute.kind.name(), "{}", attribute.name);
        }
    }
}

#[test]
fn every_entity_is_found_in_the_indexes_under_the_keys_that_the_helpers_give() {
    let contains = |item: &Item, part: Item| part.iter().all(|(n, v)| item.get(n) == Some(v));
    for entity in sample(moment("2025-01-15T10:30:00Z"), 6).unwrap() {
        let item = entity.to_item().unwrap();
        match &entity {
            AnyEntity::Execution(e) => {
                let (engine, kind) = (e.workflow_type, EntityType::Execution);
                let status = e.status.as_str();
                assert!(contains(&item, gsi1_key(engine, kind, status, e.created_at)));
                assert!(contains(&item, gsi2_key(engine, &e.execution_id, kind, 0)));
                assert!(contains(&item, gsi3_key(kind, status, e.created_at)));
            }
            AnyEntity::Album(a) => {
                let (engine, kind) = (a.workflow_type, EntityType::Album);
                let key = gsi2_key(engine, &a.execution_id, kind, a.album_index);
                assert!(contains(&item, key));
                assert_eq!(item.get("status"), None, "an album has no status to be found by");
            }
            AnyEntity::Task(t) => {
                let (engine, kind) = (t.workflow_type, EntityType::Task);
                let status = t.status.as_str();
                assert!(contains(&item, gsi1_key(engine, kind, status, t.created_at)));
                assert!(contains(&item, gsi2_key(engine, &t.execution_id, kind, 0)));
                assert!(contains(&item, gsi3_key(kind, status, t.created_at)));
            }
            AnyEntity::Metrics(m) => {
                let key = gsi1_key(m.workflow_type, EntityType::Metrics, "daily", m.created_at);
                assert!(contains(&item, key));
                assert_eq!(item.get("sortValue"), Some(&Value::from(0)));
                assert_eq!(item.get("executionId"), None, "metrics belong to no execution");
            }
        }
        assert!(item.get("createdAt").is_some());
    }
}
