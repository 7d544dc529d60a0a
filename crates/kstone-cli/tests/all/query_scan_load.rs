//! query, scan, load: many records at a time.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::{Fixture, json_lines};

/// 10 users with 30 posts each, and a profile without sort key.
fn filled() -> Fixture {
    let fixture = Fixture::new();
    let mut lines = String::new();
    for user in 0..10 {
        lines.push_str(&format!("{{\"pk\":\"user#{user}\",\"value\":{{\"user\":{user}}}}}\n"));
        for post in 0..30 {
            lines.push_str(&format!(
                "{{\"pk\":\"user#{user}\",\"sk\":\"post#{post:03}\",\"value\":{{\"n\":{post}}}}}\n"
            ));
        }
    }
    let loaded = fixture.run_with_input(["load", "db"], &lines).succeeded();
    assert_eq!(loaded.out, "{\"loaded\":310}\n");
    fixture
}

fn sort_keys(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["sk"].as_str().unwrap_or("none")).collect()
}

#[test]
fn a_query_reads_a_partition_in_order_within_its_bounds() {
    let fixture = filled();
    let all = fixture.json(["query", "db", "user#3"]);
    assert_eq!(all.len(), 31);
    assert_eq!(all[0]["value"]["user"], 3, "the record without sort key comes first");
    assert!(all.iter().all(|line| line["pk"] == "user#3"));
    assert!(sort_keys(&all[1..]).is_sorted());

    let some = fixture.json(["query", "db", "user#3", "--from", "post#004", "--to", "post#006"]);
    assert_eq!(sort_keys(&some), ["post#004", "post#005", "post#006"]);
    let some = fixture.json(["query", "db", "user#3", "--prefix", "post#02", "--to", "post#021"]);
    assert_eq!(sort_keys(&some), ["post#020", "post#021"]);
    let mut back = fixture.json(["query", "db", "user#3", "--reverse"]);
    back.reverse();
    assert_eq!(back, all);
    assert_eq!(fixture.ok(["query", "db", "user#3", "--from", "z", "--to", "a"]), "");
    assert_eq!(fixture.ok(["query", "db", "nobody"]), "");
}

#[test]
fn pages_of_a_query_make_up_the_whole_in_both_directions() {
    let fixture = filled();
    let bounded: &[&str] = &["--from", "post#005", "--to", "post#008"];
    for direction in [&[][..], &["--reverse"]] {
        for (bounds, limits) in [(&[][..], ["12", "30", "31"]), (bounded, ["1", "3", "4"])] {
            let words = [&["query", "db", "user#5"], direction, bounds].concat();
            let whole = fixture.json(&words);
            for limit in limits {
                assert_eq!(read_pages(&fixture, &words, limit), whole, "{words:?} {limit}");
            }
        }
    }
}

#[test]
fn a_cursor_never_leads_out_of_the_bounds() {
    let fixture = filled();
    let done = fixture.run(["query", "db", "user#5", "--limit", "2"]).succeeded();
    let cursor = done.err.trim().strip_prefix("more: --cursor ").unwrap().to_owned();
    let found = fixture.json(["query", "db", "user#5", "--from", "post#028", "--cursor", &cursor]);
    assert_eq!(sort_keys(&found), ["post#028", "post#029"]);
}

#[test]
fn pages_of_a_scan_make_up_the_whole() {
    let fixture = filled();
    let whole = fixture.json(["scan", "db"]);
    assert_eq!(whole.len(), 310);
    for limit in ["64", "155", "310"] {
        assert_eq!(read_pages(&fixture, &["scan", "db"], limit), whole, "{limit}");
    }
    let part = fixture.json(["scan", "db", "--segment", "1/2"]);
    assert_eq!(read_pages(&fixture, &["scan", "db", "--segment", "1/2"], "50"), part);
}

/// Reads page after page, by the cursor in the file, which must be the one on standard error.
fn read_pages(fixture: &Fixture, words: &[&str], limit: &str) -> Vec<Value> {
    let (mut lines, mut cursor) = (Vec::new(), String::new());
    for _ in 0..100 {
        let mut page = words.to_vec();
        page.extend(["--limit", limit, "--cursor-out", "next"]);
        if !cursor.is_empty() {
            // A cursor knows the end of its segment.
            page.retain(|word| *word != "--segment" && !word.contains('/'));
            page.extend(["--cursor", &cursor]);
        }
        let done = fixture.run(&page).succeeded();
        let found = json_lines(&done.out);
        assert!(found.len() <= limit.parse().unwrap());
        lines.extend(found);
        let next = fs::read_to_string(fixture.path("next")).unwrap();
        if next.is_empty() {
            assert_eq!(done.err, "");
            return lines;
        }
        assert_eq!(done.err, format!("more: --cursor {next}\n"));
        assert_ne!(next, cursor, "it goes on");
        cursor = next;
    }
    panic!("no end of pages: {words:?}");
}

#[test]
fn segments_are_disjoint_and_complete() {
    let fixture = filled();
    let key = |line: &Value| (line["pk"].to_string(), line["sk"].to_string());
    let whole: BTreeSet<_> = fixture.json(["scan", "db"]).iter().map(key).collect();
    let (mut parts, mut count) = (BTreeSet::new(), 0);
    for segment in ["0/3", "1/3", "2/3"] {
        let part = fixture.json(["scan", "db", "--segment", segment]);
        count += part.len();
        parts.extend(part.iter().map(key));
    }
    assert_eq!(count, 310);
    assert_eq!(parts, whole);
    for bad in ["3/3", "0/0", "x/3", "1", "-1/3"] {
        let done = fixture.run(["scan", "db", &format!("--segment={bad}")]);
        done.failed_with("segment");
    }
}

#[test]
fn partition_keys_are_listed_by_prefix_in_order() {
    let fixture = filled();
    let keys = fixture.json(["scan", "db", "--pk-prefix", "user#"]);
    let keys: Vec<_> = keys.iter().map(|line| line["pk"].as_str().unwrap()).collect();
    let expected: Vec<_> = (0..10).map(|n| format!("user#{n}")).collect();
    assert_eq!(keys, expected);
    let done = fixture.run(["scan", "db", "--pk-prefix", "", "--limit", "2"]).succeeded();
    assert_eq!(done.out, "{\"pk\":\"user#0\"}\n{\"pk\":\"user#1\"}\n");
    assert!(done.err.starts_with("more:"));
    assert_eq!(fixture.ok(["scan", "db", "--pk-prefix", "sensor"]), "");
}

#[test]
fn a_cursor_of_something_else_is_refused() {
    let fixture = filled();
    for bad in ["", "x", "s", "szz", "s00", "q1zz", "q"] {
        fixture.run(["scan", "db", "--cursor", bad]).failed_with("no cursor of `kstone scan`");
        fixture
            .run(["query", "db", "user#1", "--cursor", bad])
            .failed_with("no cursor of `kstone query`");
    }
}

#[test]
fn what_scan_prints_load_takes() {
    let fixture = filled();
    fixture.ok(["put", "db", "--hex", "ff", "fe", "{}"]);
    fixture.ok(["put", "db", "session", "--expires-at", "2100-01-01T00:00:00Z", "{\"a\": 1.0}"]);
    let scanned = fixture.ok(["scan", "db"]);
    fs::write(fixture.path("all.jsonl"), &scanned).unwrap();
    assert_eq!(fixture.ok(["load", "copy", "all.jsonl"]), "{\"loaded\":312}\n");
    let without_version = |text: &str| {
        let mut lines = json_lines(text);
        lines.iter_mut().for_each(|line| line["version"] = Value::Null);
        lines
    };
    assert_eq!(without_version(&fixture.ok(["scan", "copy"])), without_version(&scanned));
}

#[test]
fn load_stops_at_a_bad_line_and_keeps_what_came_before_it() {
    let good = "{\"pk\":\"a\",\"value\":{}}\n\n{\"pk\":\"b\",\"sk\":null,\"value\":{\"a\":null}}\n";
    let cases = [
        ("{\"pk\":\"c\"}", "line 4: it has no \"value\""),
        ("{\"value\":1}", "line 4: it has no \"pk\""),
        ("{\"pk\":7,\"value\":{}}", "line 4: \"pk\" must be a string"),
        ("{\"pk\":\"c\",\"value\":{},\"ttl\":\"5\"}", "line 4: `5` is no duration"),
        ("{\"pk\":\"c\",\"valeu\":1}", "line 4: unknown field \"valeu\""),
        ("{\"pk\":\"c\",\"value\":", "line 4: it is not a JSON object: EOF"),
        ("[1]", "line 4: it is not a JSON object"),
        ("{\"pk\":\"c\",\"pk_hex\":\"ff\",\"value\":{}}", "line 4: it has both"),
        ("{\"pk\":\"c\",\"value\":1}", "line 4: an item is a JSON object: {\"value\":1}"),
    ];
    let fixture = Fixture::new();
    for (n, (bad, message)) in cases.into_iter().enumerate() {
        let db = format!("db{n}");
        let input = format!("{good}{bad}\n{{\"pk\":\"z\",\"value\":1}}\n");
        let done = fixture.run_with_input(["load", &db], &input);
        assert!(done.failed_with(message).err.contains("the 2 items before it were stored"));
        assert_eq!(fixture.json(["scan", &db]).len(), 2, "{bad}");
    }
}

#[test]
fn load_takes_more_than_one_batch() {
    let fixture = Fixture::new();
    let lines: String = (0..2500)
        .map(|n| format!("{{\"pk\":\"k{n}\",\"value\":{{\"n\":{n}}},\"ttl\":\"1h\"}}\n"))
        .collect();
    assert_eq!(
        fixture.run_with_input(["load", "db"], &lines).succeeded().out,
        "{\"loaded\":2500}\n"
    );
    let scanned = fixture.json(["scan", "db"]);
    assert_eq!(scanned.len(), 2500);
    assert!(scanned.iter().all(|line| line["expires_at"].is_string()));
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    // Far more than a pipe holds, so that the command must notice.
    let fixture = Fixture::new();
    let value = "x".repeat(1000);
    let lines: String = (0..1000)
        .map(|n| format!("{{\"pk\":\"k{n}\",\"value\":{{\"v\":\"{value}\"}}}}\n"))
        .collect();
    fixture.run_with_input(["load", "db"], &lines).succeeded();
    let script = format!("set -o pipefail; '{}' scan db | head -n 1", env!("CARGO_BIN_EXE_kstone"));
    let done = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(fixture.0.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    assert!(done.stderr.is_empty(), "{done:?}");
}
