//! State at other doors: DynamoDB reads what Dapr writes, and the other way round.

use kstone::{Item, Value};
use serde_json::json;

use crate::server::Server;

fn place() -> Item {
    Item::new().with("pk", "student:s1").with("sk", "skill:fractions")
}

const KEY: &str = "student:s1:skill:fractions";

#[tokio::test]
async fn items_that_dynamodb_put_are_read_as_json_with_an_etag_that_guards_them() {
    let server = Server::start().await;
    let table = server.db.table("state");
    server.save(r#"[{"key":"first","value":1}]"#).await.done();
    table.put(place().with("rating", 1200).with("answers", 3)).unwrap();
    let answer = server.get(KEY).await;
    assert_eq!(answer.json(), json!({"rating": 1200, "answers": 3}));
    let etag = answer.headers["etag"].clone();
    let save =
        json!([{"key": KEY, "value": {"rating": 1, "answers": 4}, "etag": etag}]).to_string();

    table.update(place(), "SET rating = :r", [(":r", 1300)]).unwrap();
    server.save(&save).await.refused(409, "ERR_STATE_SAVE");
    table.update(place(), "SET rating = :r", [(":r", 1200)]).unwrap();
    server.save(&save).await.done();
    assert_eq!(server.get(KEY).await.json(), json!({"rating": 1, "answers": 4}));
    server.save(&save).await.refused(409, "ERR_STATE_SAVE");
}

#[tokio::test]
async fn a_change_at_another_door_changes_the_etag_whether_or_not_that_door_knows_of_it() {
    let server = Server::start().await;
    let table = server.db.table("state");
    let key = Item::new().with("pk", "k").with("sk", "#");
    let save = |etag: &str| json!([{"key": "k", "value": 2, "etag": etag}]).to_string();
    server.save(r#"[{"key":"k","value":1}]"#).await.done();
    let etag = server.etag("k").await;
    let update = |update: &str, value: Value| kstone::ops::UpdateItem {
        table: "state".to_owned(),
        key: key.clone(),
        update: Some(kstone::ops::Update::Text(update.to_owned())),
        placeholders: kstone::placeholders([("#a", Value::from("value")), (":v", value)]),
        ..kstone::ops::UpdateItem::default()
    };
    let mut seen = vec![etag];
    for request in [
        update("SET #a = :v", Value::from("7")),
        update("SET etag = etag + :v, #a = #a", Value::from(1)),
        update("SET extra = :v, #a = #a", Value::from(1)),
    ] {
        server.db.update_item(&request).wait().unwrap();
        let etag = server.etag("k").await;
        for old in &seen {
            assert_ne!(&etag, old);
            server.save(&save(old)).await.refused(409, "ERR_STATE_SAVE");
        }
        seen.push(etag);
    }
    server.save(&save(&seen[3])).await.done();
    let etag = server.etag("k").await;
    table.put(key.with("value", "8")).unwrap();
    server.save(&save(&etag)).await.refused(409, "ERR_STATE_SAVE");
    assert_eq!(server.get("k").await.text(), "8");
}

#[tokio::test]
async fn the_table_is_made_by_the_first_write_and_made_again_when_it_was_dropped() {
    let server = Server::start().await;
    server.get("k").await.done();
    assert_eq!(server.bulk(r#"{"keys":["k"]}"#).await.json(), json!([{"key": "k"}]));
    assert_eq!(server.db.list_tables(None, 10).0, Vec::<String>::new());
    for value in ["1", "2"] {
        server.save(&format!(r#"[{{"key":"k","value":{value}}}]"#)).await.done();
        assert_eq!(server.get("k").await.text(), value);
        server.db.delete_table("state").unwrap();
        server.get("k").await.done();
    }
}

#[tokio::test]
async fn a_table_of_that_name_with_another_key_is_left_alone() {
    let server = Server::start().await;
    let key = kstone::table::KeySchema::hash(kstone::table::KeyAttribute::string("key"));
    let spec = kstone::table::TableSpec { name: "state".to_owned(), key, ..Default::default() };
    server.db.create_table(&spec).unwrap();
    let refused = server.save(r#"[{"key":"k","value":1}]"#).await;
    assert!(refused.refused(400, "ERR_STATE_SAVE").contains("another key"));
}
