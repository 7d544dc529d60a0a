//! Tags of tables.

use kstone::table::{RawTable, TableSpec};
use kstone::{Database, Error};

use crate::tables::support::{raw, refusal, spec};

fn tags(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn tagged() -> Database {
    let db = Database::memory().unwrap();
    db.create_table(&TableSpec { tags: tags(&[("env", "test")]), ..spec("orders") }).unwrap();
    db
}

#[test]
fn tags_are_added_replaced_and_taken_off() {
    let db = tagged();
    db.tag("orders", &tags(&[("team", "core"), ("env", "live")])).unwrap();
    assert_eq!(db.tags("orders").unwrap(), tags(&[("env", "live"), ("team", "core")]));
    db.untag("orders", &["env".to_owned(), "none".to_owned()]).unwrap();
    assert_eq!(db.tags("orders").unwrap(), tags(&[("team", "core")]));
    db.delete_table("orders").unwrap();
    db.create_table(&spec("orders")).unwrap();
    assert_eq!(db.tags("orders").unwrap(), tags(&[]));
}

#[test]
fn a_table_that_does_not_exist_has_no_tags() {
    let db = tagged();
    let not_found = "Requested resource not found: Table: missing not found";
    let results = [
        db.tags("missing").map(drop),
        db.tag("missing", &tags(&[("a", "b")])),
        db.untag("missing", &["a".to_owned()]),
    ];
    for result in results {
        assert!(matches!(result, Err(Error::NotFound(message)) if message == not_found));
    }
}

#[test]
fn a_table_has_at_most_50_tags() {
    let db = tagged();
    let some = |from: usize, to: usize| -> Vec<(String, String)> {
        (from..to).map(|n| (format!("k{n}"), String::new())).collect()
    };
    db.tag("orders", &some(0, 49)).unwrap();
    let limit = "Number of Tags exceed the current limit for the provided ResourceArn";
    match db.tag("orders", &some(49, 50)) {
        Err(Error::Validation(message)) => assert_eq!(message, limit),
        other => panic!("{other:?}"),
    }
    assert_eq!(db.tags("orders").unwrap().len(), 50);
    db.tag("orders", &tags(&[("k7", "again")])).unwrap();
    assert_eq!(refusal(&RawTable { tags: some(0, 51), ..raw("a", "a H") }), limit);
}

#[test]
fn keys_and_values_that_are_no_tags_are_refused() {
    let db = tagged();
    let (long_key, long_value) = ("k".repeat(129), "v".repeat(257));
    let cases: [(&[(&str, &str)], &str); 7] = [
        (&[], "Atleast one Tag needs to be provided as Input."),
        (&[("", "v")], "The Tag Key provided is invalid, Key: "),
        (&[("a#b", "v")], "The Tag Key provided is invalid, Key: a#b"),
        (&[("aws:x", "v")], "Tag Key cannot be prefixed with aws:, Key: aws:x"),
        (&[("k", "a#b")], "The Tag Value provided is invalid, Value: a#b"),
        (
            &[("k", "1"), ("k", "2")],
            "Duplicate Tag Keys provided as input: Duplicate Tag Key found k",
        ),
        (&[(&long_key, "v")], "The Tag Key provided is invalid, Key: kkk"),
    ];
    for (given, expected) in cases {
        match db.tag("orders", &tags(given)) {
            Err(Error::Validation(message)) => assert!(message.starts_with(expected), "{message}"),
            other => panic!("{given:?}: {other:?}"),
        }
    }
    assert!(db.tag("orders", &tags(&[("k", &long_value)])).is_err());
    assert!(matches!(
        db.untag("orders", &[]),
        Err(Error::Validation(message))
            if message == "Atleast one Tag Key needs to be provided as Input."
    ));
    db.tag("orders", &tags(&[("Größe @ 1+1=2/3:_.-", "")])).unwrap();
}
