//! Named tables: the same commands on a folder, on a server's URL, and on the folder that a server
//! has open.

use std::fs;

use serde_json::{Value, json};

use crate::Fixture;
use crate::server::Server;

/// A folder with the demo's table, and nothing running.
fn demo() -> Fixture {
    let fixture = Fixture::new();
    let server = Server::start(&fixture, &["--demo", "--data", "db"]);
    assert_eq!(server.stop("-TERM").0.code(), Some(0));
    fixture
}

fn column<'a>(lines: &'a [Value], name: &str) -> Vec<&'a str> {
    lines.iter().map(|line| line[name].as_str().unwrap()).collect()
}

#[test]
fn a_folder_and_a_server_give_the_same_answers() {
    let fixture = demo();
    let asks: [&[&str]; 11] = [
        &["tables", "WHERE"],
        &["tables", "WHERE", "--json"],
        &["get", "WHERE", "--table", "workflows", "exec-001", "metadata"],
        &["query", "WHERE", "workflows", "--pk", "exec-001"],
        &["query", "WHERE", "--table", "workflows", "exec-001", "--prefix", "album-", "--reverse"],
        &["query", "WHERE", "--table", "workflows", "--pk", "exec-001", "--limit", "3"],
        &["query", "WHERE", "workflows", "--index", "GSI3", "--pk", "task", "--sk", "pending"],
        &[
            "query",
            "WHERE",
            "workflows",
            "--index",
            "GSI2",
            "--pk",
            "step-functions",
            "--pk",
            "exec-001",
            "--sk",
            "album",
            "--from",
            "2",
            "--to",
            "4",
        ],
        &["scan", "WHERE", "--table", "workflows", "--limit", "7"],
        &["scan", "WHERE", "--table", "workflows", "--segment", "1/3"],
        &["scan", "WHERE", "--table", "workflows", "--index", "GSI1"],
    ];
    let ask = |place_named: &str| -> Vec<(String, String)> {
        let answers = asks.iter().map(|words| {
            let words = words.iter().map(|word| word.replace("WHERE", place_named));
            let done = fixture.run(words).succeeded();
            (done.out, done.err)
        });
        answers.collect()
    };
    let folder = ask("db");
    let server = Server::start(&fixture, &["--data", "db"]);
    assert_eq!(ask(&server.url), folder);
    assert_eq!(ask("db"), folder, "the folder names the server that has it");
    assert!(folder.iter().all(|(out, _)| !out.is_empty()));
}

#[test]
fn a_query_takes_as_much_of_the_key_as_is_known() {
    let fixture = demo();
    let query = |words: &[&str]| fixture.json([&["query", "db", "workflows"], words].concat());
    let albums = query(&["--pk", "exec-003", "--sk-begins-with", "album-"]);
    let expected: Vec<String> = (1..=6).map(|n| format!("album-{n}")).collect();
    assert_eq!(column(&albums, "sk"), expected);
    assert_eq!(query(&["--pk", "exec-003", "--sk", "album-3"]), [albums[2].clone()]);

    let of_kind = ["--index", "GSI1", "--pk", "durable-functions", "--pk", "execution"];
    let runs = query(&of_kind);
    assert_eq!(runs.len(), 20);
    let running = query(&[&of_kind[..], &["--sk", "running"]].concat());
    assert_eq!(column(&running, "pk"), ["exec-006", "exec-018", "exec-030"]);
    let since = [&of_kind[..], &["--sk", "completed", "--from", "2025-01-16"]].concat();
    let since = query(&since);
    assert!(column(&since, "createdAt").iter().all(|at| *at >= "2025-01-16"), "{since:?}");
    assert!(!since.is_empty() && since.len() < runs.len());

    let fails = |words: &[&str], with: &str| {
        fixture.run([&["query", "db", "workflows"], words].concat()).failed_with(with);
    };
    fails(&["--index", "GSI1", "--pk", "x"], "workflowType, entityType: give --pk for each");
    fails(&["--index", "GSI9", "--pk", "x"], "there are GSI1, GSI2, GSI3");
    fails(&["--pk", "x", "--sk", "a", "--sk", "b"], "no more --sk");
    fails(&["--pk", "x", "--sk", "a", "--prefix", "b"], "no part of the sort key is left");
    fails(&["--pk", "x", "--prefix", "a", "--to", "b"], "but not both");
    let number = ["--index", "GSI2", "--pk", "a", "--pk", "b", "--sk", "album", "--from", "x"];
    fails(&number, "sortValue");
    fixture.run(["query", "db", "nope", "--pk", "x"]).failed_with("not found");
    fixture.run(["query", "db", "--table", "workflows"]).failed_with("which partition");
}

#[test]
fn items_are_put_read_and_deleted_by_key() {
    let fixture = demo();
    let server = Server::start(&fixture, &["--data", "db"]);
    for (n, place_named) in ["db", &server.url].into_iter().enumerate() {
        let key = json!({"pk": format!("exec-9{n}"), "sk": "notes"});
        let (pk, table) = (key["pk"].as_str().unwrap(), ["--table", "workflows"]);
        let item = format!(r#"{{"pk":"{pk}","sk":"notes","exact":0.10000000000000000000001}}"#);
        let put = [&["put", place_named], &table[..], &[&item]].concat();
        assert_eq!(fixture.json(put), std::slice::from_ref(&key));
        let on_key = |command| [&[command, place_named], &table[..], &[pk, "notes"]].concat();
        assert!(fixture.ok(on_key("get")).contains("0.10000000000000000000001"));
        assert_eq!(fixture.json(on_key("delete")), [json!({"key": key, "deleted": true})]);
        assert_eq!(fixture.json(on_key("delete")), [json!({"key": key, "deleted": false})]);
        fixture.run(on_key("get")).failed_with("not found");
        let short = [&["get", place_named], &table[..], &[pk]].concat();
        fixture.run(short).failed_with("the key has `sk` too");
        let keyed = [&["put", place_named], &table[..], &[pk, "{}"]].concat();
        fixture.run(keyed).failed_with("the key is part of the item");
    }
    fixture.run(["get", &server.url, "user#1"]).failed_with("which table?");
    fixture.run(["scan", &server.url]).failed_with("which table?");
}

#[test]
fn pages_of_a_table_make_up_the_whole() {
    let fixture = demo();
    let whole = fixture.json(["query", "db", "workflows", "--pk", "exec-003"]);
    assert_eq!(whole.len(), 7);
    for limit in ["1", "3", "7"] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let mut words = vec!["query", "db", "workflows", "--pk", "exec-003", "--limit", limit];
            words.extend(["--cursor-out", "next"]);
            if !cursor.is_empty() {
                words.extend(["--cursor", &cursor]);
            }
            found.extend(fixture.json(words));
            cursor = fs::read_to_string(fixture.path("next")).unwrap();
            if cursor.is_empty() {
                break;
            }
        }
        assert_eq!(found, whole, "{limit}");
    }
    let bad = ["scan", "db", "--table", "workflows", "--cursor", "s00"];
    fixture.run(bad).failed_with("no cursor of a named table");
}

#[test]
fn a_table_is_copied_by_scan_and_load() {
    let fixture = demo();
    let all = fixture.ok(["scan", "db", "--table", "workflows"]);
    fs::write(fixture.path("all.jsonl"), &all).unwrap();
    let server = Server::start(&fixture, &["--demo", "--memory"]);
    let load = ["load", &server.url, "all.jsonl", "--table", "workflows"];
    assert_eq!(fixture.json(load), [json!({"loaded": 288})]);
    assert_eq!(fixture.ok(["scan", &server.url, "--table", "workflows"]), all);
    let bad =
        fixture.run_with_input(["load", &server.url, "-t", "workflows"], "{\"pk\":\"a\"}\n7\n");
    bad.failed_with("line 2: an item is a JSON object");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let fixture = Fixture::new();
    fixture.run(["tables", "http://127.0.0.1:9"]).failed_with("cannot reach http://127.0.0.1:9");
    fixture.run(["tables", "https://127.0.0.1:9"]).failed_with("only http://");
}
