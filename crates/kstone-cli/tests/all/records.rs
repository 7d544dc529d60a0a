//! put, get, delete: one record at a time.

use serde_json::json;

use crate::Fixture;

#[test]
fn an_item_comes_back_with_every_digit_and_its_attributes_in_order() {
    let fixture = Fixture::new();
    let given = r#"{"z":1,"a":[true,null,{"b":"é \" \\ \n"}],"n":-1.50e3,"big":123456789012345678901234567890.10}"#;
    let kept = r#"{"a":[true,null,{"b":"é \" \\ \n"}],"big":123456789012345678901234567890.1,"n":-1500,"z":1}"#;
    fixture.ok(["put", "db", "user#1", given]);
    assert_eq!(fixture.ok(["get", "db", "user#1"]), format!("{kept}\n"));
    fixture.ok(["put", "db", "user#1", "profile", given]);
    assert_eq!(fixture.ok(["get", "db", "user#1", "profile"]), format!("{kept}\n"));
}

#[test]
fn what_is_no_item_is_refused_with_the_form_that_is_one() {
    let fixture = Fixture::new();
    for (value, form) in [("7", "{\"value\":7}"), ("\"text\"", "{\"value\":\"text\"}")] {
        fixture.run(["put", "db", "k", value]).failed_with(form);
    }
    let huge = format!("{{\"a\":\"{}\"}}", "x".repeat(410_000));
    fixture.run_with_input(["put", "db", "k", "-"], &huge).failed_with("over the limit of 409600");
}

#[test]
fn a_value_may_come_from_standard_input_with_blanks_and_newlines() {
    let fixture = Fixture::new();
    let input = "{\n  \"name\": \"Ada  L.\",\n  \"tags\": [ 1, 2 ]\n}\n";
    fixture.run_with_input(["put", "db", "user#1", "-"], input).succeeded();
    assert_eq!(fixture.ok(["get", "db", "user#1"]), "{\"name\":\"Ada  L.\",\"tags\":[1,2]}\n");
    fixture
        .run_with_input(["put", "db", "user#2", "-"], "{\n  \"name\": Ada\n}")
        .failed_with("standard input is not an item: expected value at line 2 column 11");
}

#[test]
fn bad_json_is_refused_with_its_place_before_a_database_is_made() {
    let fixture = Fixture::new();
    let done = fixture.run(["put", "db", "user#1", r#"{"name":}"#]);
    assert!(done.failed_with("line 1 column 9").out.is_empty());
    fixture.run(["put", "db", "user#1", "post#001"]).failed_with("the last word, `post#001`");
    fixture.run(["put", "db", "user#1", "{}", "--ttl", "5"]).failed_with("60s, 5m, 2h or 7d");
    fixture.run(["put", "db", "user#1", "{}", "--expires-at", "soon"]).failed_with("no moment");
    assert!(!fixture.path("db").exists());
}

#[test]
fn put_and_record_tell_version_stripe_and_expiry() {
    let fixture = Fixture::new();
    let put = fixture.json(["put", "db", "user#1", "post#1", "{}"]);
    let version = put[0]["version"].as_u64().unwrap();
    assert_eq!(put, [json!({"pk": "user#1", "sk": "post#1", "stripe": 154, "version": version})]);
    let moment = "2100-01-01T00:00:00.000Z";
    fixture.ok(["put", "db", "user#1", "--expires-at", "4102444800", "{}"]);
    assert_eq!(
        fixture.json(["get", "db", "user#1", "--record"]),
        [json!({"pk": "user#1", "value": {}, "version": version + 1, "expires_at": moment})]
    );
}

#[test]
fn an_absent_record_is_code_1_and_nothing_on_standard_output() {
    let fixture = Fixture::new();
    fixture.ok(["put", "db", "user#1", "{}"]);
    let done =
        fixture.run(["get", "db", "user#1", "post#9"]).failed_with("not found: user#1 post#9");
    assert_eq!(done.out, "");
}

#[test]
fn delete_says_whether_the_record_was_there() {
    let fixture = Fixture::new();
    fixture.ok(["put", "db", "user#1", "post#1", "{}"]);
    let there = |was| [json!({"pk": "user#1", "sk": "post#1", "deleted": was})];
    assert_eq!(fixture.json(["delete", "db", "user#1", "post#1"]), there(true));
    assert_eq!(fixture.json(["delete", "db", "user#1", "post#1"]), there(false));
    fixture.run(["get", "db", "user#1", "post#1"]).failed_with("not found");
}

#[test]
fn an_expired_record_is_not_there_and_one_with_time_left_is() {
    let fixture = Fixture::new();
    fixture.ok(["put", "db", "late", "--expires-at", "2001-01-01T00:00:00Z", "{}"]);
    fixture.run(["get", "db", "late"]).failed_with("not found");
    // Every command is a process of its own, so this one is over before the next can ask.
    fixture.ok(["put", "db", "short", "--ttl", "0s", "{}"]);
    fixture.run(["get", "db", "short"]).failed_with("not found");
    fixture.ok(["put", "db", "long", "--ttl", "7d", "{}"]);
    assert_eq!(fixture.ok(["get", "db", "long"]), "{}\n");
    let scanned = fixture.json(["scan", "db"]);
    assert_eq!(scanned.len(), 1, "{scanned:?}");
    assert_eq!(scanned[0]["pk"], "long");
}

#[test]
fn a_key_that_is_not_text_is_shown_and_taken_in_hexadecimal() {
    let fixture = Fixture::new();
    fixture.ok(["put", "db", "--hex", "ff00", "0a", "{}"]);
    assert_eq!(fixture.ok(["get", "db", "--hex", "ff00", "0a"]), "{}\n");
    let lines = fixture.json(["query", "db", "--hex", "ff00"]);
    let version = &lines[0]["version"];
    assert_eq!(lines, [json!({"pk_hex": "ff00", "sk": "\n", "value": {}, "version": version})]);
    fixture.run(["get", "db", "--hex", "user#1"]).failed_with("hexadecimal");
    fixture.run(["get", "db", "--hex", "ff00"]).failed_with(r"not found: \xff\x00");
}

#[cfg(unix)]
#[test]
fn a_key_typed_as_raw_bytes_is_taken_as_it_is() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let fixture = Fixture::new();
    let key = OsStr::from_bytes(b"\xff#1");
    fixture.ok([OsStr::new("put"), OsStr::new("db"), key, OsStr::new("{}")]);
    assert_eq!(fixture.ok(["get", "db", "--hex", "ff2331"]), "{}\n");
}

#[test]
fn a_key_over_the_limit_is_refused_and_nothing_is_written() {
    let fixture = Fixture::new();
    fixture.ok(["put", "db", "user#1", "{}"]);
    let long = "k".repeat(65_537);
    fixture.run(["put", "db", &long, "{}"]).failed_with("over the limit of 65536");
    assert_eq!(fixture.json(["scan", "db"]).len(), 1);
}
