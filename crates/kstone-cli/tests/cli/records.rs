//! put, get, delete: one record at a time.

use serde_json::{Value, json};

use crate::{Place, json_lines};

#[test]
fn json_comes_back_as_it_was_put() {
    let place = Place::new();
    let values = [
        r#"{"z":1,"a":[true,null,{"b":"é \" \\ \n"}],"n":-1.50e3}"#,
        "123456789012345678901234567890.10",
        r#""text""#,
        "null",
        "-7",
        "[]",
    ];
    for value in values {
        place.ok(["put", "db", "user#1", value]);
        assert_eq!(place.ok(["get", "db", "user#1"]), format!("{value}\n"));
        place.ok(["put", "db", "user#1", "profile", value]);
        assert_eq!(place.ok(["get", "db", "user#1", "profile"]), format!("{value}\n"));
    }
}

#[test]
fn a_value_may_come_from_standard_input_with_blanks_and_newlines() {
    let place = Place::new();
    let input = "{\n  \"name\": \"Ada  L.\",\n  \"tags\": [ 1, 2 ]\n}\n";
    place.run_with_input(["put", "db", "user#1", "-"], input).succeeded();
    assert_eq!(place.ok(["get", "db", "user#1"]), "{\"name\":\"Ada  L.\",\"tags\":[1,2]}\n");
    place
        .run_with_input(["put", "db", "user#2", "-"], "{\n  \"name\": Ada\n}")
        .failed_with("standard input is not JSON: expected value at line 2 column 11");
}

#[test]
fn bad_json_is_refused_with_its_place_before_a_database_is_made() {
    let place = Place::new();
    let done = place.run(["put", "db", "user#1", r#"{"name":}"#]);
    assert!(done.failed_with("line 1 column 9").out.is_empty());
    place.run(["put", "db", "user#1", "post#001"]).failed_with("the value comes last");
    place.run(["put", "db", "user#1", "1", "--ttl", "5"]).failed_with("60s, 5m, 2h or 7d");
    place.run(["put", "db", "user#1", "1", "--expires-at", "soon"]).failed_with("no moment");
    assert!(!place.path("db").exists());
}

#[test]
fn put_and_record_tell_version_stripe_and_expiry() {
    let place = Place::new();
    let put = place.json(["put", "db", "user#1", "post#1", "{}"]);
    assert_eq!(put, [json!({"pk": "user#1", "sk": "post#1", "stripe": 154, "version": 1})]);
    let moment = "2100-01-01T00:00:00.000Z";
    place.ok(["put", "db", "user#1", "--expires-at", "4102444800", "1"]);
    assert_eq!(
        place.json(["get", "db", "user#1", "--record"]),
        [json!({"pk": "user#1", "value": 1, "version": 2, "expires_at": moment})]
    );
}

#[test]
fn an_absent_record_is_code_1_and_nothing_on_standard_output() {
    let place = Place::new();
    place.ok(["put", "db", "user#1", "1"]);
    let done = place.run(["get", "db", "user#1", "post#9"]).failed_with("not found: user#1 post#9");
    assert_eq!(done.out, "");
}

#[test]
fn delete_says_whether_the_record_was_there() {
    let place = Place::new();
    place.ok(["put", "db", "user#1", "post#1", "1"]);
    let there = |was| [json!({"pk": "user#1", "sk": "post#1", "deleted": was})];
    assert_eq!(place.json(["delete", "db", "user#1", "post#1"]), there(true));
    assert_eq!(place.json(["delete", "db", "user#1", "post#1"]), there(false));
    place.run(["get", "db", "user#1", "post#1"]).failed_with("not found");
}

#[test]
fn an_expired_record_is_not_there_and_one_with_time_left_is() {
    let place = Place::new();
    place.ok(["put", "db", "late", "--expires-at", "2001-01-01T00:00:00Z", "1"]);
    place.run(["get", "db", "late"]).failed_with("not found");
    // Every command is a process of its own, so this one is over before the next can ask.
    place.ok(["put", "db", "short", "--ttl", "0s", "1"]);
    place.run(["get", "db", "short"]).failed_with("not found");
    place.ok(["put", "db", "long", "--ttl", "7d", "1"]);
    assert_eq!(place.ok(["get", "db", "long"]), "1\n");
    let scanned = place.json(["scan", "db"]);
    assert_eq!(scanned.len(), 1, "{scanned:?}");
    assert_eq!(scanned[0]["pk"], "long");
}

#[test]
fn a_key_that_is_not_text_is_shown_and_taken_in_hexadecimal() {
    let place = Place::new();
    place.ok(["put", "db", "--hex", "ff00", "0a", "1"]);
    assert_eq!(place.ok(["get", "db", "--hex", "ff00", "0a"]), "1\n");
    let lines = place.json(["query", "db", "--hex", "ff00"]);
    assert_eq!(lines, [json!({"pk_hex": "ff00", "sk": "\n", "value": 1, "version": 1})]);
    place.run(["get", "db", "--hex", "user#1"]).failed_with("hexadecimal");
    place.run(["get", "db", "--hex", "ff00"]).failed_with(r"not found: \xff\x00");
}

#[cfg(unix)]
#[test]
fn a_key_typed_as_raw_bytes_is_taken_as_it_is() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let place = Place::new();
    let key = OsStr::from_bytes(b"\xff#1");
    place.ok([OsStr::new("put"), OsStr::new("db"), key, OsStr::new("1")]);
    assert_eq!(place.ok(["get", "db", "--hex", "ff2331"]), "1\n");
}

#[test]
fn a_value_that_is_not_json_can_be_read_raw_and_in_hexadecimal() {
    let place = Place::new();
    let line = r#"{"pk":"picture","value_hex":"504e47"}"#;
    place.run_with_input(["load", "db"], line).succeeded();
    place.run(["get", "db", "picture"]).failed_with("3 bytes that are not JSON; --raw");
    assert_eq!(place.ok(["get", "db", "picture", "--raw"]), "PNG");
    let record = json_lines(&place.ok(["get", "db", "picture", "--record"]));
    assert_eq!(record[0]["value_hex"], "504e47");
    assert_eq!(record[0]["value"], Value::Null);
}

#[test]
fn a_key_over_the_limit_is_refused_and_nothing_is_written() {
    let place = Place::new();
    place.ok(["put", "db", "user#1", "1"]);
    let long = "k".repeat(65_537);
    place.run(["put", "db", &long, "1"]).failed_with("over the limit of 65536");
    assert_eq!(place.json(["scan", "db"]).len(), 1);
}
