//! Declared keys: `kstone keyspace`, and a server with a keyspace in force.

use std::fs;

use serde_json::Value;

use crate::Fixture;
use crate::server::Server;

const ORDERS: &str = r#"application = "orders"
description = "Orders"
table = "orders"
[placeholders]
customer = "id"
number = "int"
[pattern.order]
pattern = "customer:{customer}:order:{number}"
partition = "customer:{customer}"
store = "item"
type = "item"
ttl = "none"
subject = "customer"
description = "An order"
fields = { total = "number 0.." }
[pattern.basket]
pattern = "basket:{customer}"
store = "redis"
type = "set"
ttl = "1 hour"
subject = "customer"
description = "What is in a basket"
"#;

const TABLE: &str = r#"{"TableName":"orders","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
    "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]}"#;

fn place_with_orders() -> Fixture {
    let fixture = Fixture::new();
    fs::write(fixture.path("orders.toml"), ORDERS).unwrap();
    fixture
}

fn order(number: u32, total: i32) -> String {
    format!(
        r#"{{"TableName":"orders","Item":{{"pk":{{"S":"customer:c-1"}},"sk":{{"S":"order:{number}"}},"total":{{"N":"{total}"}}}}}}"#
    )
}

fn metrics(fixture: &Fixture, data: &str) -> Value {
    fixture.json(["keyspace", "metrics", "--data", data, "--json"]).remove(0)
}

fn keys(metrics: &Value, pattern: &str) -> u64 {
    let patterns = metrics["patterns"].as_array().unwrap();
    let found = patterns.iter().find(|it| it["pattern"] == pattern);
    found.map_or(0, |it| it["keys"].as_u64().unwrap())
}

#[test]
fn a_catalogue_is_checked_with_line_and_column() {
    let fixture = place_with_orders();
    let said = fixture.ok(["keyspace", "check", "shipped", "orders.toml"]);
    assert!(said.ends_with("6 catalogues, 86 patterns: 0 errors, 0 warnings\n"), "{said}");
    fs::write(fixture.path("bad.toml"), ORDERS.replace("\"1 hour\"", "\"soon\"")).unwrap();
    let done = fixture.run(["keyspace", "check", "bad.toml"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.out.contains("bad.toml:20:7"), "{}", done.out);
    assert!(done.out.contains("1 error"), "{}", done.out);
    fixture.run(["keyspace", "check", "missing.toml"]).failed_with("missing.toml");
}

#[test]
fn a_key_is_explained_by_the_catalogues_that_are_named() {
    let fixture = place_with_orders();
    let said = fixture.ok(["keyspace", "explain", "student:s1:mastery:2026-01-14"]);
    assert!(said.contains("mastery.daily_mastery") && said.contains("90 days"), "{said}");
    let words = ["keyspace", "explain", "--keyspace", "orders.toml", "basket:c-1"];
    assert!(fixture.ok(words).contains("orders.basket"));
    let unknown = fixture.run(["keyspace", "explain", "basket:c-1"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.out.contains("matches no pattern"), "{unknown:?}");
}

#[test]
fn a_server_keeps_to_its_catalogues_and_so_does_a_later_owner_of_its_folder() {
    let fixture = place_with_orders();
    let words = ["--data", "db", "--keyspace", "orders.toml", "--unknown-keys", "refuse"];
    let server = Server::start(&fixture, &words);
    let line = "keyspace  2 patterns of orders, unknown keys: refuse";
    assert!(server.greeting.iter().any(|it| it == line), "{:?}", server.greeting);
    assert_eq!(server.post("CreateTable", TABLE).0, 200);
    for number in 0..3 {
        assert_eq!(server.post("PutItem", &order(number, 20)).0, 200);
    }
    let (status, why) = server.post("PutItem", &order(9, -1));
    assert_eq!(status, 400);
    assert!(why.contains("ValidationException") && why.contains("fields.total"), "{why}");
    let unknown = order(1, 1).replace("customer:c-1", "nobody");
    assert!(server.post("PutItem", &unknown).1.contains("no pattern declares"));
    assert_eq!(server.stop("-TERM").0.code(), Some(0));

    let found = metrics(&fixture, "db");
    assert_eq!(keys(&found, "orders.order"), 3);
    assert_eq!(
        (&found["off_by_changes_max"], &found["keys_by_metric"]["order"]),
        (&0.into(), &3.into())
    );
    let bad = r#"{"pk":"customer:c-1","sk":"order:9","total":-1}"#;
    fixture.run(["put", "db", "--table", "orders", bad]).failed_with("fields.total");
    fixture.ok(["put", "db", "--table", "orders", &bad.replace("-1}", "7}")]);
    assert_eq!(keys(&metrics(&fixture, "db"), "orders.order"), 4);
    let page = fixture.ok(["keyspace", "docs", "--data", "db"]);
    assert!(page.contains("| 4 |"), "{page}");

    // Without a word about it, the server keeps to what it kept to.
    let server = Server::start(&fixture, &["--data", "db"]);
    assert_eq!(server.post("PutItem", &order(9, -1)).0, 400);
    assert_eq!(keys(&metrics(&fixture, &server.url), "orders.order"), 4);
    drop(server);
    let server = Server::start(&fixture, &["--data", "db", "--keyspace", "none"]);
    assert_eq!(server.post("PutItem", &order(10, -1)).0, 200);
    drop(server);
    let words = ["keyspace", "recount", "--data", "db"];
    let said = fixture.ok(words);
    assert!(said.starts_with("counted 5 items and 0 keys of Redis"), "{said}");
    assert_eq!(keys(&metrics(&fixture, "db"), "orders.order"), 5);
}

#[test]
fn a_database_without_a_keyspace_has_none_to_show() {
    let fixture = Fixture::new();
    fixture.ok(["put", "db", "a", "{}"]);
    fixture.run(["keyspace", "metrics", "--data", "db"]).failed_with("never governed");
    fixture.run(["keyspace", "recount", "--data", "db"]).failed_with("never governed");
    fixture.run(["keyspace", "explain", "--data", "db", "a"]).failed_with("never governed");
}
