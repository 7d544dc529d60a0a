//! What is refused, and that the error names the field.

use kstone::{Item, Value};
use kstone_base::field::{Invalid, Problem};
use kstone_workflows::{AnyEntity, Entity, Execution};
use serde_json::json;

use crate::entities::{album, item, metrics, task};

fn execution() -> Item {
    let at = "2025-01-15T10:30:00Z";
    item(&json!({
        "pk": "exec-1", "sk": "metadata", "entityType": "execution", "sortValue": 0,
        "workflowType": "durable-functions", "executionId": "exec-1", "imageS3Key": "a.jpg",
        "status": "running", "currentStep": "one", "startTime": at, "createdAt": at,
        "updatedAt": at
    }))
}

fn an_album() -> Item {
    item(&album("exec-123", "step-functions"))
}

fn refused(valid: &Item, name: &str, value: impl Into<Value>) -> Invalid {
    assert!(AnyEntity::from_item(valid).is_ok());
    AnyEntity::from_item(&valid.clone().with(name, value)).unwrap_err()
}

/// The value is refused under its own name, and the message says what is wanted.
#[track_caller]
fn check(valid: &Item, name: &str, value: impl Into<Value>, says: &str) {
    let invalid = refused(valid, name, value);
    assert_eq!(invalid.field, name);
    assert_eq!(invalid.to_string(), format!("{name} {says}"));
}

#[track_caller]
fn accepted(valid: &Item, name: &str, value: impl Into<Value>) {
    let item = valid.clone().with(name, value);
    let entity = AnyEntity::from_item(&item).unwrap();
    assert_eq!(entity.to_item().unwrap().get(name), item.get(name));
}

#[test]
fn names_have_1_to_200_characters() {
    for name in ["albumName", "artist"] {
        check(&an_album(), name, "", "must have 1 to 200 characters, not 0");
        check(&an_album(), name, "é".repeat(201), "must have 1 to 200 characters, not 201");
        accepted(&an_album(), name, "é".repeat(200));
        accepted(&an_album(), name, "x");
    }
}

#[test]
fn a_year_is_from_1900_to_2100() {
    for name in ["year", "yearOriginal"] {
        check(&an_album(), name, 1899, "must be from 1900 to 2100, not 1899");
        check(&an_album(), name, 2101, "must be from 1900 to 2100, not 2101");
        accepted(&an_album(), name, 1900);
        accepted(&an_album(), name, 2100);
        let half = Value::N("1973.5".parse().unwrap());
        check(&an_album(), name, half, "must be a whole number from 0 to 4294967295, not 1973.5");
    }
}

#[test]
fn a_price_is_positive_and_a_confidence_from_0_to_1() {
    let number = |text: &str| Value::N(text.parse().unwrap());
    check(&an_album(), "priceEstimate", 0, "must be greater than 0, not 0");
    check(&an_album(), "priceEstimate", number("-0.01"), "must be greater than 0, not -0.01");
    accepted(&an_album(), "priceEstimate", number("0.01"));
    check(&an_album(), "priceConfidence", number("-0.1"), "must be from 0 to 1, not -0.1");
    check(&an_album(), "priceConfidence", number("1.0001"), "must be from 0 to 1, not 1.0001");
    accepted(&an_album(), "priceConfidence", 0);
    accepted(&an_album(), "priceConfidence", 1);
}

#[test]
fn names_of_closed_sets_are_checked() {
    let engines = "must be step-functions or durable-functions, not `lambda`";
    for valid in [execution(), an_album(), item(&task()), item(&metrics())] {
        check(&valid, "workflowType", "lambda", engines);
        let kinds = "must be execution or album or task or metrics, not `artist`";
        check(&valid, "entityType", "artist", kinds);
    }
    let statuses = "must be running or waiting or completed or failed, not `pending`";
    check(&execution(), "status", "pending", statuses);
    for status in ["running", "waiting", "completed", "failed"] {
        accepted(&execution(), "status", status);
    }
    let statuses = "must be pending or completed or timeout, not `running`";
    check(&item(&task()), "status", "running", statuses);
    for status in ["pending", "completed", "timeout"] {
        accepted(&item(&task()), "status", status);
    }
    check(&item(&metrics()), "period", "weekly", "must be daily, not `weekly`");
    check(&item(&metrics()), "status", "weekly", "must be daily, not `weekly`");
}

#[test]
fn an_id_is_a_uuid_or_any_other_of_safe_characters() {
    for id in ["exec-123", "0b0e7f5c-6b7e-4b0e-9d2c-0f3a1b2c3d4e", "a.b@c_d", &"x".repeat(128)] {
        let moved = execution().with("pk", id).with("executionId", id);
        assert_eq!(Execution::from_item(&moved).unwrap().execution_id, id);
    }
    for id in ["a:b", "a*", "a b", "ä", "a\0"] {
        let says = format!("must be of letters, digits and _ . @ -, not `{id}`");
        check(&execution(), "executionId", id, &says);
    }
    let says = "must have 1 to 128 characters, not 129";
    check(&execution(), "executionId", "x".repeat(129), says);
    check(&execution(), "comparisonId", "", "must have 1 to 128 characters, not 0");
    check(&item(&task()), "taskId", "a/b", "must be of letters, digits and _ . @ -, not `a/b`");
}

#[test]
fn a_field_inside_a_list_or_map_is_named_by_its_path() {
    let albums = |year: i32| {
        let one = |index: i32, year: i32| {
            let one = Item::new().with("albumIndex", index).with("albumName", "A");
            Value::M(one.with("artist", "B").with("year", year))
        };
        vec![one(1, 1973), one(2, year)]
    };
    let task = item(&task());
    for name in ["albums", "validatedData"] {
        let invalid = refused(&task, name, albums(1800));
        assert_eq!(invalid.field, format!("{name}[1].year"));
        accepted(&task, name, albums(1969));
    }
    let invalid = refused(&task, "albums", vec![Value::from("no map")]);
    assert_eq!(invalid.to_string(), "albums[0] must be of type M, not S");
    let region = Item::new().with("x", 0).with("y", 0).with("width", 200);
    let invalid = refused(&an_album(), "imageRegion", region);
    assert_eq!(invalid.to_string(), "imageRegion.height is missing");
}

#[test]
fn every_attribute_that_is_needed_is_named_when_it_is_missing_and_when_it_has_another_type() {
    let of_all = ["workflowType", "createdAt", "entityType", "pk", "sk", "sortValue"];
    let needed: [(Item, &[&str]); 4] = [
        (execution(), &["executionId", "imageS3Key", "status", "startTime", "updatedAt"]),
        (an_album(), &["executionId", "albumIndex", "albumName", "artist", "year", "updatedAt"]),
        (
            item(&task()),
            &[
                "taskId",
                "executionId",
                "status",
                "imageS3Key",
                "albums",
                "taskTokenHash",
                "expiresAt",
            ],
        ),
        (
            item(&metrics()),
            &[
                "date",
                "period",
                "status",
                "executionCount",
                "successCount",
                "failureCount",
                "totalDurationMs",
                "totalCost",
            ],
        ),
    ];
    for (valid, names) in needed {
        for name in names.iter().chain(&of_all) {
            let mut item = valid.clone();
            item.remove(name).unwrap();
            let invalid = AnyEntity::from_item(&item).unwrap_err();
            assert_eq!(invalid, Invalid::new(*name, Problem::Missing));
            let invalid = refused(&valid, name, true);
            assert_eq!(invalid.field, *name, "{invalid}");
        }
    }
}

#[test]
fn what_is_at_odds_with_another_field_is_refused() {
    check(&an_album(), "sortValue", 2, "must be 1, not 2");
    check(&an_album(), "sk", "album-01", "must be `album-1`, not `album-01`");
    check(&execution(), "pk", "exec-2", "must be `exec-1`, not `exec-2`");
    let early = "2025-01-15T10:29:59Z";
    let says = format!("must be no earlier than startTime, not {early}");
    check(&execution(), "endTime", early, &says);
    let says = "must be no less than successCount and failureCount together, not 24";
    check(&item(&metrics()), "executionCount", 24, says);
    let says = "must be later than expiresAt, not 2025-01-15T11:30:00Z";
    check(&item(&task()), "ttl", 1_736_940_600, says);
    let says = "must be absent in step-functions, not one";
    let invalid = refused(&execution(), "workflowType", "step-functions");
    assert_eq!(invalid.to_string(), format!("currentStep {says}"));
}

#[test]
fn what_is_not_valid_is_not_turned_into_an_item() {
    let mut execution = Execution::from_item(&execution()).unwrap();
    execution.estimated_cost = Some("-1".parse().unwrap());
    let invalid = execution.to_item().unwrap_err();
    assert_eq!(invalid.to_string(), "estimatedCost must be 0 or more, not -1");
}

#[test]
fn a_token_in_the_place_of_its_hash_is_refused_and_not_repeated() {
    let invalid = refused(&item(&task()), "taskTokenHash", "a secret token");
    assert_eq!(invalid.field, "taskTokenHash");
    assert!(!invalid.to_string().contains("secret"), "{invalid}");
}
