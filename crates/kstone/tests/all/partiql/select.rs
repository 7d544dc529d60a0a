//! What a `SELECT` finds, in which order and in which pages.

use kstone::ops::CapacityDetail;
use kstone::partiql::Statement;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::partiql::{database, execute, refusal, rows, run, sort_keys};

#[test]
fn a_select_lifts_what_its_paths_lead_to() {
    let db = database();
    for (columns, expected) in [
        ("pk, sk", json!([{"pk": "a", "sk": 1}])),
        ("m.x, pk", json!([{"x": 1, "pk": "a"}])),
        ("m.l[+ 0]", json!([{"l[0]": "z"}])),
        ("m.l[0], \"m\"['x']", json!([{"l[0]": "z", "x": 1}])),
        ("l[1].q", json!([{"l[1]": {"q": "w"}}])),
        ("nope, m.zip, l[9]", json!([{}])),
    ] {
        let text = format!("SELECT {columns} FROM notes WHERE pk='a' AND sk=1");
        assert_eq!(rows(&db, &text), expected, "{text}");
    }
    let all = rows(&db, "SELECT * FROM notes WHERE pk='a' AND sk=1");
    assert_eq!(all[0].as_object().unwrap().len(), 8);
    assert_eq!(rows(&db, "SELECT * FROM notes WHERE pk='zzz' AND sk=1"), json!([]));
}

#[test]
fn a_condition_selects_what_it_says_whether_keys_can_find_it_or_not() {
    let db = database();
    for (condition, expected) in [
        ("pk='a'", vec![0, 1, 2, 3]),
        ("'a'=pk AND 1=sk", vec![1]),
        ("pk='a' AND sk > 1 AND sk < 3", vec![2]),
        ("pk='a' AND sk >= 1 AND sk <= 2", vec![1, 2]),
        ("pk='a' AND 1 < sk", vec![2, 3]),
        ("pk='a' AND sk > 2 AND sk < 1", vec![]),
        ("pk='a' AND sk BETWEEN 1 AND 2", vec![1, 2]),
        ("pk='a' AND sk IN (1, 3, 9)", vec![1, 3]),
        ("pk='a' AND pk='b'", vec![]),
        ("pk='a' AND sk=1 AND sk=2", vec![]),
        ("pk='a' AND NOT sk=1", vec![0, 2, 3]),
        ("pk='a' AND sk<>1", vec![0, 2, 3]),
        ("pk='a' AND n BETWEEN 10 AND 20", vec![1, 2]),
        ("pk='a' AND n NOT IN [0, 10]", vec![2, 3]),
        ("pk='a' AND (n=0 OR n=30)", vec![0, 3]),
        ("pk='a' AND sk > 0 AND contains(ss, 'a') AND size(ss) = 2 AND g='g1'", vec![1, 3]),
        ("pk='a' AND begins_with(g, 'g1')", vec![1, 3]),
        ("pk='a' AND begins_with(g, 'g1') = false", vec![0, 2]),
        ("pk='a' AND attribute_exists(m.x) = true AND sk = 0", vec![0]),
        ("pk='a' AND attribute_type(m, 'M') AND sk = 0", vec![0]),
        ("pk='a' AND z IS MISSING AND m.x IS NOT MISSING AND sk < 2", vec![0, 1]),
        ("pk='a' AND nl IS NULL AND sk = 3", vec![3]),
        ("pk='a' AND z IS NULL", vec![]),
        ("pk='a' AND n IS NUMERIC AND g IS STRING AND m IS STRUCT AND l IS LIST AND sk=2", vec![2]),
        ("pk='a' AND m = {'x': 1, 'l': ['z', 7]} AND sk = 1", vec![1]),
        ("pk='a' AND ss = <<'b', 'a'>> AND sk = 1", vec![1]),
        ("pk='a' AND \"m\".\"l\"[1] = 7 AND sk = 1", vec![1]),
        ("pk='a' AND n = -(-20)", vec![2]),
        ("pk='a' AND 1 = 1 AND sk = 0", vec![0]),
        ("pk IN ['b', 'a', 'b'] AND sk > 2", vec![3, 3]),
        ("(pk = 'b' OR pk = 'a') AND sk = 1", vec![1, 1]),
        ("(pk = 'b' AND sk = 2) OR (pk = 'a' AND sk = 1)", vec![1, 2]),
        ("pk='a' AND n=10 OR pk='a' AND sk=2", vec![1, 2]),
        ("pk='a' OR pk='a' AND NOT sk = 1", vec![0, 1, 2, 3]),
    ] {
        assert_eq!(sort_keys(&db, condition), expected, "{condition}");
    }
    // Without a partition to look in, all items are looked at, in no order to rely on.
    for (condition, expected) in [("sk = 1", vec![1, 1]), ("n = 10 OR sk = 3", vec![1, 1, 3, 3])] {
        let mut found = sort_keys(&db, condition);
        found.sort_unstable();
        assert_eq!(found, expected, "{condition}");
    }
    assert_eq!(rows(&db, "SELECT * FROM notes").as_array().unwrap().len(), 8);
}

#[test]
fn order_by_turns_partitions_and_sort_keys_around() {
    let db = database();
    let keys = |tail: &str| -> Vec<String> {
        let rows = rows(&db, &format!("SELECT pk, sk FROM notes WHERE {tail}"));
        let row = |row: &Json| format!("{}{}", row["pk"].as_str().unwrap(), row["sk"]);
        rows.as_array().unwrap().iter().map(row).collect()
    };
    assert_eq!(keys("pk='a' AND sk>1 ORDER BY sk DESC"), ["a3", "a2"]);
    assert_eq!(keys("pk='a' AND sk>1 ORDER BY sk"), ["a2", "a3"]);
    assert_eq!(keys("pk IN ['a','b'] AND sk>1 ORDER BY pk DESC"), ["b2", "b3", "a2", "a3"]);
    assert_eq!(keys("pk IN ['a','b'] AND sk>1 ORDER BY pk, sk DESC"), ["a3", "a2", "b3", "b2"]);
    for (text, message) in [
        (
            "SELECT pk FROM notes ORDER BY pk",
            "Must have WHERE clause in the statement when using ORDER BY clause.",
        ),
        (
            "SELECT pk FROM notes WHERE n=1 ORDER BY sk",
            "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause.",
        ),
        (
            "SELECT pk FROM notes WHERE pk='a' ORDER BY n",
            "Variable reference n in ORDER BY clause must be part of the primary key",
        ),
        (
            "SELECT pk FROM notes WHERE pk='a' ORDER BY m.x",
            "Argument to ORDER BY must be of type VariableReference. Type: PATH",
        ),
    ] {
        assert_eq!(refusal(&db, text), message);
    }
}

#[test]
fn indexes_are_read_by_their_own_keys_and_give_what_they_hold() {
    let db = database();
    let by_g =
        rows(&db, "SELECT pk, sk FROM notes.\"by-g\" WHERE g='g1' AND sk > 1 ORDER BY sk DESC");
    assert_eq!(by_g.as_array().unwrap().len(), 2);
    let keys = rows(&db, "SELECT * FROM \"notes\".\"g-keys\" WHERE g='g1'");
    for row in keys.as_array().unwrap() {
        let names: Vec<_> = row.as_object().unwrap().keys().collect();
        assert_eq!(names, ["g", "pk", "sk"]);
    }
    // A local index fetches what it lacks; a global one cannot.
    let fetched = rows(&db, "SELECT m.x FROM notes.\"by-n\" WHERE pk='a' AND n >= 20");
    assert_eq!(fetched, json!([{"x": 1}, {"x": 1}]));
    let g_keys = "One or more parameter values were invalid: ";
    for (text, message) in [
        ("SELECT n FROM notes.\"g-keys\" WHERE g='g1'", format!("{g_keys}Global secondary index g-keys does not project [n]")),
        (
            "SELECT pk FROM notes.\"g-keys\" WHERE g='g1' AND (n=1 OR m=2)",
            format!("{g_keys}Secondary index g-keys does not project one or more filter attributes: [n, m]"),
        ),
        (
            "SELECT pk FROM notes.\"by-n\" WHERE pk='a' AND m=1",
            format!("{g_keys}Secondary index by-n does not project one or more filter attributes: [m]"),
        ),
        ("SELECT * FROM notes.nope WHERE g='g1'", "The table does not have the specified index".into()),
        (
            "SELECT * FROM notes.several WHERE g='g1' AND h='x'",
            "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE keys.".into(),
        ),
    ] {
        assert_eq!(refusal(&db, text), message, "{text}");
    }
    // Not found by its key, the index is scanned, and what it lacks is missing there.
    assert_eq!(rows(&db, "SELECT pk FROM notes.\"g-keys\" WHERE n = 10"), json!([]));
    assert_eq!(
        rows(&db, "SELECT pk FROM notes.\"g-keys\" WHERE NOT n = 10").as_array().unwrap().len(),
        8
    );
    let consistent = Statement {
        consistent_read: true,
        ..Statement::new("SELECT * FROM notes.\"by-g\" WHERE g='g1'")
    };
    assert_eq!(
        execute(&db, &consistent).unwrap_err().to_string(),
        "Strongly consistent read is not supported on Global Secondary Indexes"
    );
}

#[test]
fn pages_follow_each_other_across_partitions_without_a_gap_or_a_repetition() {
    let db = database();
    for (text, limit) in [
        ("SELECT pk, sk FROM notes WHERE pk IN ['a', 'b']", 1),
        ("SELECT pk, sk FROM notes WHERE pk IN ['a', 'b'] ORDER BY pk DESC, sk DESC", 3),
        ("SELECT pk, sk FROM notes WHERE pk IN ['a', 'b'] AND n <> 5", 4),
        ("SELECT pk, sk FROM notes", 3),
        ("SELECT pk, sk FROM notes.\"by-g\" WHERE g IN ['g0', 'g1']", 2),
    ] {
        let whole = run(&db, text).unwrap();
        assert_eq!(whole.len(), 8, "{text}");
        let mut statement = Statement { limit: Some(limit), ..Statement::new(text) };
        let mut pages = Vec::new();
        loop {
            let page = db.execute_statement(&statement).wait().unwrap();
            assert!(page.items.len() <= limit as usize, "{text}");
            pages.extend(page.items.iter().map(|item| item.decode().unwrap().to_json()));
            assert!(pages.len() <= 8, "{text}");
            statement.next_token = page.next_token;
            if statement.next_token.is_none() {
                break;
            }
        }
        assert_eq!(pages, whole, "{text}");
    }
    let first = Statement { limit: Some(1), ..Statement::new("SELECT * FROM notes WHERE pk='a'") };
    let token = db.execute_statement(&first).wait().unwrap().next_token;
    let other =
        Statement { next_token: token, ..Statement::new("SELECT * FROM notes WHERE pk='b'") };
    assert_eq!(execute(&db, &other).unwrap_err().to_string(), "NextToken does not match request");
    let nonsense = Statement { next_token: Some("abc".into()), ..first };
    assert_eq!(execute(&db, &nonsense).unwrap_err().to_string(), "Invalid NextToken");
}

#[test]
fn capacity_is_added_up_over_all_that_a_statement_reads() {
    let db = database();
    let units = |text: &str, consistent_read: bool| {
        let statement = Statement {
            capacity: CapacityDetail::Indexes,
            consistent_read,
            ..Statement::new(text)
        };
        db.execute_statement(&statement).wait().unwrap().consumed.unwrap().total()
    };
    assert_eq!(units("SELECT * FROM notes WHERE pk='a' AND sk=1", false), 0.5);
    assert_eq!(units("SELECT * FROM notes WHERE pk IN ['a','b']", true), 2.0);
    assert_eq!(units("INSERT INTO users VALUE {'pk': 'c'}", false), 1.0);
}

/// Conditions on both keys and another attribute, such as a `SELECT` may have.
fn condition() -> impl Strategy<Value = String> {
    let number = || -1..5i32;
    let sign = prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
    let pk = prop::sample::select(vec!["'a'", "'b'", "'c'"]);
    let compare = (prop::sample::select(vec!["sk", "n"]), sign, number(), any::<bool>()).prop_map(
        |(name, sign, number, turned)| {
            let number = if name == "n" { number * 10 } else { number };
            if turned {
                format!("{number} {sign} {name}")
            } else {
                format!("{name} {sign} {number}")
            }
        },
    );
    let leaf = prop_oneof![
        4 => pk.clone().prop_map(|pk| format!("pk = {pk}")),
        1 => prop::collection::vec(pk, 1..3).prop_map(|pks| format!("pk IN [{}]", pks.join(", "))),
        4 => compare,
        1 => (number(), 0..3i32).prop_map(|(low, more)| format!("sk BETWEEN {low} AND {}", low + more)),
        1 => (number(), number()).prop_map(|(a, b)| format!("sk IN ({a}, {b})")),
        1 => Just("begins_with(g, 'g1')".to_owned()),
        1 => Just("nope IS MISSING".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            3 => several.clone().prop_map(|parts| format!("({})", parts.join(" AND "))),
            2 => several.prop_map(|parts| format!("({})", parts.join(" OR "))),
            1 => inner.prop_map(|inner| format!("NOT ({inner})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// No key is found inside a comparison with `true`, so that one is answered by a scan.
    #[test]
    fn keys_find_what_a_scan_would_find(conditions in prop::collection::vec(condition(), 20)) {
        let db = database();
        for condition in conditions {
            let found = |condition: &str| {
                let rows = rows(&db, &format!("SELECT pk, sk FROM notes WHERE {condition}"));
                let mut rows: Vec<String> =
                    rows.as_array().unwrap().iter().map(ToString::to_string).collect();
                rows.sort();
                rows
            };
            let all = found(&format!("({condition}) = true"));
            prop_assert_eq!(found(&condition), all, "{}", condition);
        }
    }
}

#[test]
fn a_statement_may_stand_for_more_than_an_expression_can_say() {
    let db = database();
    let nested = " OR a.b.c.d.e.f.g.h.i = 1";
    let condition = format!("pk = 'a' AND (sk = 1{})", nested.repeat(140));
    assert_eq!(sort_keys(&db, &condition), [1]);
    let text = format!("UPDATE notes SET z = 1 WHERE {} AND sk = 1", condition.replace("sk", "n"));
    assert_eq!(refusal(&db, &text), "The conditional request failed");
    let longest = format!("SELECT sk FROM notes WHERE pk = 'a' AND (sk = 1{}", nested.repeat(400));
    assert!(refusal(&db, &longest).ends_with("less than or equal to 8192"));
}
