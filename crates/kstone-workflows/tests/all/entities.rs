//! Every entity as it is written down, field by field, nulls included.

use kstone::Item;
use kstone_workflows::read::one;
use kstone_workflows::{
    Album, AnyEntity, Entity, Execution, ExecutionStatus, ImageRegion, Metrics, Period, Task,
    TaskAlbum, TaskStatus, TokenHash, WorkflowType, requests,
};
use serde_json::{Value, json};

use crate::support::{TABLE, check_before_and_after_a_reopen, moment};

pub fn item(json: &Value) -> Item {
    Item::from_json(json).unwrap()
}

fn step_functions_execution() -> Value {
    json!({
        "pk": "exec-123", "sk": "metadata",
        "entityType": "execution", "workflowType": "step-functions",
        "executionId": "exec-123", "imageS3Key": "uploads/albums-2025-01-15.jpg",
        "status": "running", "comparisonId": null, "sortValue": 0,
        "startTime": "2025-01-15T10:30:00Z", "endTime": null,
        "durationMs": null, "estimatedCost": null,
        "createdAt": "2025-01-15T10:30:00Z", "updatedAt": "2025-01-15T10:30:00Z"
    })
}

fn durable_functions_execution() -> Value {
    json!({
        "pk": "exec-456", "sk": "metadata",
        "entityType": "execution", "workflowType": "durable-functions",
        "executionId": "exec-456", "imageS3Key": "uploads/albums-2025-01-15.jpg",
        "status": "completed", "currentStep": "image-processing",
        "comparisonId": "image-001", "sortValue": 0,
        "startTime": "2025-01-15T10:30:00Z", "endTime": "2025-01-15T10:30:45Z",
        "durationMs": 45000, "estimatedCost": 0.006,
        "createdAt": "2025-01-15T10:30:00Z", "updatedAt": "2025-01-15T10:30:45Z"
    })
}

pub fn album(execution_id: &str, workflow_type: &str) -> Value {
    json!({
        "pk": execution_id, "sk": "album-1",
        "entityType": "album", "workflowType": workflow_type,
        "executionId": execution_id, "albumIndex": 1, "sortValue": 1,
        "albumName": "The Dark Side of the Moon", "artist": "Pink Floyd",
        "year": 1973, "yearValidated": true, "yearOriginal": 1973,
        "priceEstimate": 45.5, "priceConfidence": 0.85, "priceSource": "discogs-api",
        "imageRegion": {"x": 0, "y": 10, "width": 200, "height": 210},
        "createdAt": "2025-01-15T10:30:00Z", "updatedAt": "2025-01-15T10:35:00Z"
    })
}

pub fn task() -> Value {
    json!({
        "pk": "task-abc123", "sk": "metadata",
        "entityType": "task", "workflowType": "step-functions",
        "taskId": "task-abc123", "executionId": "exec-123",
        "status": "pending", "imageS3Key": "uploads/albums-2025-01-15.jpg", "sortValue": 0,
        "albums": [
            {"albumIndex": 1, "albumName": "The Dark Side of the Moon", "artist": "Pink Floyd",
             "year": 1973},
            {"albumIndex": 2, "albumName": "Abbey Road", "artist": "The Beatles", "year": 1969}
        ],
        "validatedData": null,
        // The SHA-256 of "a token".
        "taskTokenHash": "e3316e2bafebb6103a3418e8778c0adc960d40213a03a7e7f4fcd3426ed807bf",
        "expiresAt": "2025-01-15T11:30:00Z", "ttl": 1739529000,
        "createdAt": "2025-01-15T10:30:00Z", "completedAt": null
    })
}

pub fn metrics() -> Value {
    json!({
        "pk": "2025-01-15", "sk": "metrics-step-functions",
        "entityType": "metrics", "workflowType": "step-functions",
        "date": "2025-01-15", "period": "daily", "status": "daily", "sortValue": 0,
        "executionCount": 25, "successCount": 23, "failureCount": 2,
        "totalDurationMs": 1125000, "totalCost": 0.15,
        "createdAt": "2025-01-15T23:59:59Z"
    })
}

/// The item is the entity, and the entity is the item, in memory and in the database.
#[track_caller]
fn check<E: Entity + PartialEq + std::fmt::Debug>(
    json: &Value,
    entity: &E,
    request: &kstone::ops::GetItem,
) {
    let item = item(json);
    assert_eq!(entity.to_item().unwrap(), item);
    assert_eq!(&E::from_item(&item).unwrap(), entity);
    assert_eq!(AnyEntity::from_item(&item).unwrap().to_item().unwrap(), item);
    assert_eq!(entity.key(), request.key);
    check_before_and_after_a_reopen("2025-01-15T11:00:00Z", &[item], |db| {
        assert_eq!(one::<E>(db, request).unwrap().as_ref(), Some(entity));
    });
}

#[test]
fn an_execution_of_step_functions_round_trips_with_its_nulls() {
    let at = moment("2025-01-15T10:30:00Z");
    let execution = Execution {
        execution_id: "exec-123".to_owned(),
        workflow_type: WorkflowType::StepFunctions,
        image_s3_key: "uploads/albums-2025-01-15.jpg".to_owned(),
        status: ExecutionStatus::Running,
        current_step: None,
        comparison_id: None,
        start_time: at,
        end_time: None,
        duration_ms: None,
        estimated_cost: None,
        created_at: at,
        updated_at: at,
    };
    let request = requests::execution_by_id(TABLE, "exec-123");
    check(&step_functions_execution(), &execution, &request);
}

#[test]
fn an_execution_of_durable_functions_round_trips_with_its_current_step() {
    let end = moment("2025-01-15T10:30:45Z");
    let execution = Execution {
        execution_id: "exec-456".to_owned(),
        workflow_type: WorkflowType::DurableFunctions,
        image_s3_key: "uploads/albums-2025-01-15.jpg".to_owned(),
        status: ExecutionStatus::Completed,
        current_step: Some("image-processing".to_owned()),
        comparison_id: Some("image-001".to_owned()),
        start_time: moment("2025-01-15T10:30:00Z"),
        end_time: Some(end),
        duration_ms: Some(45_000),
        estimated_cost: Some("0.006".parse().unwrap()),
        created_at: moment("2025-01-15T10:30:00Z"),
        updated_at: end,
    };
    let request = requests::execution_by_id(TABLE, "exec-456");
    check(&durable_functions_execution(), &execution, &request);
    // A durable execution always has the attribute; without a step it is null.
    let unstarted = Execution { current_step: None, ..execution };
    let item = unstarted.to_item().unwrap();
    assert_eq!(item.get("currentStep"), Some(&kstone::Value::Null));
    assert_eq!(Execution::from_item(&item).unwrap(), unstarted);
}

#[test]
fn an_album_of_either_engine_round_trips() {
    for (execution_id, workflow_type) in
        [("exec-123", WorkflowType::StepFunctions), ("exec-456", WorkflowType::DurableFunctions)]
    {
        let full = Album {
            execution_id: execution_id.to_owned(),
            workflow_type,
            album_index: 1,
            album_name: "The Dark Side of the Moon".to_owned(),
            artist: "Pink Floyd".to_owned(),
            year: 1973,
            year_validated: true,
            year_original: Some(1973),
            price_estimate: Some("45.50".parse().unwrap()),
            price_confidence: Some("0.85".parse().unwrap()),
            price_source: Some("discogs-api".to_owned()),
            image_region: Some(ImageRegion { x: 0, y: 10, width: 200, height: 210 }),
            created_at: moment("2025-01-15T10:30:00Z"),
            updated_at: moment("2025-01-15T10:35:00Z"),
        };
        let request = requests::album_by_index(TABLE, execution_id, 1);
        let mut json = album(execution_id, workflow_type.as_str());
        check(&json, &full, &request);
        let bare = Album {
            year_validated: false,
            year_original: None,
            price_estimate: None,
            price_confidence: None,
            price_source: None,
            image_region: None,
            ..full
        };
        json["yearValidated"] = false.into();
        for name in
            ["yearOriginal", "priceEstimate", "priceConfidence", "priceSource", "imageRegion"]
        {
            json[name] = Value::Null;
        }
        check(&json, &bare, &request);
        // What may be null may also be missing, and a year that nobody looked at is not validated.
        let without_nulls: Item = item(&json)
            .into_iter()
            .filter(|(name, value)| *value != kstone::Value::Null && name != "yearValidated")
            .collect();
        assert_eq!(Album::from_item(&without_nulls).unwrap(), bare);
    }
}

#[test]
fn a_task_round_trips_before_and_after_it_is_answered() {
    let found = vec![
        TaskAlbum {
            album_index: 1,
            album_name: "The Dark Side of the Moon".to_owned(),
            artist: "Pink Floyd".to_owned(),
            year: 1973,
        },
        TaskAlbum {
            album_index: 2,
            album_name: "Abbey Road".to_owned(),
            artist: "The Beatles".to_owned(),
            year: 1969,
        },
    ];
    let pending = Task {
        task_id: "task-abc123".to_owned(),
        execution_id: "exec-123".to_owned(),
        workflow_type: WorkflowType::StepFunctions,
        status: TaskStatus::Pending,
        image_s3_key: "uploads/albums-2025-01-15.jpg".to_owned(),
        albums: found.clone(),
        validated_data: None,
        task_token_hash: TokenHash::of("a token"),
        expires_at: moment("2025-01-15T11:30:00Z"),
        ttl: Some(moment("2025-02-14T10:30:00Z")),
        created_at: moment("2025-01-15T10:30:00Z"),
        completed_at: None,
    };
    let request = requests::task_by_id(TABLE, "task-abc123");
    let mut json = task();
    check(&json, &pending, &request);
    let answered = Task {
        status: TaskStatus::Completed,
        validated_data: Some(found),
        ttl: None,
        completed_at: Some(moment("2025-01-15T10:45:00Z")),
        ..pending
    };
    json["status"] = "completed".into();
    json["validatedData"] = json["albums"].clone();
    json["ttl"] = Value::Null;
    json["completedAt"] = "2025-01-15T10:45:00Z".into();
    check(&json, &answered, &request);
}

#[test]
fn the_token_of_a_task_is_never_stored() {
    let item = item(&task());
    let task = Task::from_item(&item).unwrap();
    assert_eq!(task.task_token_hash, TokenHash::of("a token"));
    assert_ne!(task.task_token_hash, TokenHash::of("another token"));
    assert_eq!(task.to_item().unwrap().get("taskToken"), None);
}

#[test]
fn metrics_round_trip_and_their_averages_follow_from_the_sums() {
    let metrics = Metrics {
        date: "2025-01-15".parse().unwrap(),
        workflow_type: WorkflowType::StepFunctions,
        period: Period::Daily,
        execution_count: 25,
        success_count: 23,
        failure_count: 2,
        total_duration_ms: 1_125_000,
        total_cost: "0.15".parse().unwrap(),
        created_at: moment("2025-01-15T23:59:59Z"),
    };
    let request = requests::metrics_of_day(TABLE, metrics.date, WorkflowType::StepFunctions);
    check(&self::metrics(), &metrics, &request);
    assert_eq!(metrics.avg_duration_ms(), Some(45_000.0));
    assert_eq!(metrics.avg_cost_per_execution(), Some(0.006));
    let idle = Metrics { execution_count: 0, success_count: 0, failure_count: 0, ..metrics };
    assert_eq!((idle.avg_duration_ms(), idle.avg_cost_per_execution()), (None, None));
}
