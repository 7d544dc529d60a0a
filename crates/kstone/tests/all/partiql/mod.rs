//! PartiQL statements, run. Answers and messages are what Amazon DynamoDB gives.

mod refusals;
mod select;
mod several;
mod write;

use kstone::ops::{GetItem, PutItem};
use kstone::partiql::Statement;
use kstone::table::{IndexProjection, IndexSpec, KeyAttribute, KeySchema, KeyType, TableSpec};
use kstone::{Database, Error, Item, Value};
use serde_json::{Value as Json, json};

fn attribute(name: &str, kind: KeyType) -> KeyAttribute {
    KeyAttribute { name: name.to_owned(), kind }
}

fn key(hash: &[&str], range: &[(&str, KeyType)]) -> KeySchema {
    KeySchema {
        hash: hash.iter().map(|name| attribute(name, KeyType::S)).collect(),
        range: range.iter().map(|(name, kind)| attribute(name, *kind)).collect(),
    }
}

fn index(name: &str, key: KeySchema, projection: IndexProjection) -> IndexSpec {
    IndexSpec { name: name.to_owned(), key, projection, throughput: None }
}

/// A table `users` with a partition key, and a table `notes` with a sort key, indexes, and four
/// items in each of the partitions `a` and `b`.
fn database() -> Database {
    let db = Database::memory().unwrap();
    let users = TableSpec { name: "users".into(), key: key(&["pk"], &[]), ..TableSpec::default() };
    db.create_table(&users).unwrap();
    let sk = ("sk", KeyType::N);
    let notes = TableSpec {
        name: "notes".into(),
        key: key(&["pk"], &[sk]),
        local: vec![index("by-n", key(&["pk"], &[("n", KeyType::N)]), IndexProjection::KeysOnly)],
        global: vec![
            index("by-g", key(&["g"], &[sk]), IndexProjection::All),
            index("g-keys", key(&["g"], &[]), IndexProjection::KeysOnly),
            index("several", key(&["g", "h"], &[sk]), IndexProjection::All),
        ],
        ..TableSpec::default()
    };
    db.create_table(&notes).unwrap();
    for pk in ["a", "b"] {
        for sk in 0..4 {
            let item = json!({
                "pk": pk, "sk": sk, "g": format!("g{}", sk % 2), "n": sk * 10,
                "m": {"x": 1, "l": ["z", 7]}, "l": [1, {"q": "w"}], "nl": null,
            });
            let mut item = Item::from_json(&item).unwrap();
            item.insert("ss", Value::string_set(vec!["a".into(), "b".into()]).unwrap());
            let put = PutItem { table: "notes".into(), item, ..PutItem::default() };
            db.put_item(&put).wait().unwrap();
        }
    }
    db
}

/// Runs a statement without parameters.
fn run(db: &Database, text: &str) -> Result<Vec<Json>, Error> {
    execute(db, &Statement::new(text))
}

fn execute(db: &Database, statement: &Statement) -> Result<Vec<Json>, Error> {
    let items = db.execute_statement(statement).wait()?.items;
    Ok(items.iter().map(|item| item.decode().unwrap().to_json()).collect())
}

fn rows(db: &Database, text: &str) -> Json {
    Json::Array(run(db, text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn refusal(db: &Database, text: &str) -> String {
    run(db, text).expect_err(text).to_string()
}

/// The sort keys that a condition on partition `a` selects.
fn sort_keys(db: &Database, condition: &str) -> Vec<i64> {
    let rows = rows(db, &format!("SELECT sk FROM notes WHERE {condition}"));
    rows.as_array().unwrap().iter().map(|row| row["sk"].as_i64().unwrap()).collect()
}

fn stored(db: &Database, table: &str, key: Json) -> Option<Json> {
    let key = Item::from_json(&key).unwrap();
    let get = GetItem { table: table.into(), key, ..GetItem::default() };
    let item = db.get_item(&get).wait().unwrap().item?;
    Some(item.decode().unwrap().to_json())
}
