//! What `INSERT`, `UPDATE` and `DELETE` do, and what they return.

use kstone::partiql::Statement;
use kstone::{Error, Value};
use serde_json::json;

use crate::partiql::{database, execute, refusal, rows, run, sort_keys, stored};

#[test]
fn parameters_stand_for_values_of_every_type() {
    let db = database();
    let insert = Statement::new("INSERT INTO users VALUE {'pk': ?, 'set': ?, 'text': '?'}")
        .with("p")
        .with(Value::string_set(vec!["x".into()]).unwrap());
    execute(&db, &insert).unwrap();
    assert_eq!(
        stored(&db, "users", json!({"pk": "p"})),
        Some(json!({"pk": "p", "set": ["x"], "text": "?"}))
    );
    let select =
        Statement::new("SELECT sk FROM notes WHERE pk = ? AND n IN [?, 20]").with("a").with(10);
    assert_eq!(execute(&db, &select).unwrap(), [json!({"sk": 1}), json!({"sk": 2})]);
    let too_few = Statement::new("SELECT sk FROM notes WHERE pk = ? AND sk = ?").with("a");
    let error = execute(&db, &too_few).unwrap_err().to_string();
    assert_eq!(error, "Number of parameters in request and statement don't match.");
    let nested = Statement::new("INSERT INTO users VALUE {'pk': 'q', 'l': [?]}").with(1);
    let error = execute(&db, &nested).unwrap_err().to_string();
    assert_eq!(error, "Unsupported data type: Parameter under key root[0] at 1:43:1");
}

#[test]
fn an_insert_writes_a_new_item_and_no_other() {
    let db = database();
    let text = "INSERT INTO users VALUE {'pk': '1', 's': <<'a','b'>>, 'n': <<1, 2>>, \
                'l': [1, 'x', {'a': null}], 't': true, 'neg': -1.50, 'e': 1e5, 'q': 'it''s'}";
    assert_eq!(rows(&db, text), json!([]));
    let expected = json!({
        "pk": "1", "s": ["a", "b"], "n": [1, 2], "l": [1, "x", {"a": null}], "t": true,
        "neg": -1.5, "e": 100_000, "q": "it's",
    });
    assert_eq!(stored(&db, "users", json!({"pk": "1"})), Some(expected));
    let again = run(&db, "INSERT INTO users VALUE {'pk': '1'}");
    assert!(matches!(again, Err(Error::DuplicateItem)));
    for (item, message) in [
        ("{'x': 1}", "Key attribute should be present in the item: Key pk"),
        (
            "{'pk': 1}",
            "Key attribute's data type should match its data type in table's schema: Key pk",
        ),
        ("{'pk': '2', 's': <<>>}", "Empty bags are not supported"),
        (
            "{'pk': '2', 's': <<1, 'a'>>}",
            "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags",
        ),
        (
            "{'pk': '2', 's': <<'x', 'x'>>}",
            "One or more parameter values were invalid: Input collection [x, x] contains duplicates.",
        ),
        (
            "{'pk': '2', 's': <<2, 2.0>>}",
            "One or more parameter values were invalid: Input collection [2, 2.0] contains duplicates! under root",
        ),
        ("{'pk': '2', 'pk': '3'}", "Duplicate keys in tuple. Key: pk under root at 1:37:4"),
        ("{'pk': '2', 'x': y}", "Unsupported data type: y under key root at 1:42:1"),
        ("{'pk': '2', 'x': 1+2}", "Unsupported data type: + under key root at 1:43:1"),
        (
            "{'pk': '2', 'x': set_add(a, b)}",
            "Unsupported data type: set_add under key root at 1:42:7",
        ),
        (
            "{pk: '2'}",
            "Tuple keys must be of type String. Actual type: VariableReference under root at 1:26:2",
        ),
        (
            "{'pk': '2', 'm': {'x': [0, 1e126]}}",
            "Number overflow. Attempting to store a number with magnitude larger than supported range under root.x[1]",
        ),
        (
            "[1]",
            "Unsupported format in item expression. Please use struct format {...} to express item values for insert statement. at 1:25:1",
        ),
    ] {
        assert_eq!(refusal(&db, &format!("INSERT INTO users VALUE {item}")), message, "{item}");
    }
    assert_eq!(stored(&db, "users", json!({"pk": "2"})), None);
}

#[test]
fn an_update_changes_one_item_that_is_there() {
    let db = database();
    let on = |changes: &str| format!("UPDATE notes {changes} WHERE pk='a' AND sk=1");
    for (changes, returning, expected) in [
        ("SET n=n+1 SET z=n-1", "MODIFIED NEW", json!([{"n": 11, "z": 9}])),
        ("SET n=5, z='x'", "MODIFIED OLD", json!([{"n": 11, "z": 9}])),
        ("SET n=n-(1+2)", "MODIFIED NEW", json!([{"n": 2}])),
        ("SET n=1+n", "MODIFIED NEW", json!([{"n": 3}])),
        ("SET l=list_append(l, [2]) REMOVE nl", "MODIFIED NEW", json!([{"l": [1, {"q": "w"}, 2]}])),
        ("SET c=if_not_exists(c, 4)", "MODIFIED NEW", json!([{"c": 4}])),
        ("SET ss=set_add(ss, <<'c'>>)", "MODIFIED NEW", json!([{"ss": ["a", "b", "c"]}])),
        ("SET ss=SET_DELETE(ss, <<'a', 'b'>>)", "MODIFIED NEW", json!([{"ss": ["c"]}])),
        ("SET ss=set_delete(ss, <<'c'>>)", "MODIFIED NEW", json!([])),
        ("SET nss=set_add(nss, <<1>>)", "MODIFIED NEW", json!([{"nss": [1]}])),
        ("SET \"m\"['k k']='v' REMOVE m.l", "MODIFIED NEW", json!([{"m": {"k k": "v"}}])),
    ] {
        let text = format!("{} RETURNING {returning} *", on(changes));
        assert_eq!(rows(&db, &text), expected, "{text}");
    }
    let all =
        rows(&db, &format!("{} RETURNING ALL NEW *", on("SET a=b REMOVE z").replace("a=b", "a=n")));
    assert_eq!(
        all,
        json!([{
            "pk": "a", "sk": 1, "a": 3, "n": 3, "g": "g1", "c": 4, "nss": [1],
            "l": [1, {"q": "w"}, 2], "m": {"x": 1, "k k": "v"},
        }])
    );
    assert_eq!(rows(&db, &on("SET n=0")), json!([]));
    for text in [on("SET n=n+n+1"), on("SET l=list_append(l, n+1)")] {
        assert_eq!(refusal(&db, &text), "Unsupported operator in Update Expression. Operator: +");
    }
    // PartiQL's other word order.
    let from_first =
        "FROM notes WHERE pk='a' AND sk=1 AND n=0 SET n=7 REMOVE g RETURNING MODIFIED OLD *";
    assert_eq!(rows(&db, from_first), json!([{"n": 0, "g": "g1"}]));
}

#[test]
fn an_update_or_delete_whose_condition_fails_changes_nothing() {
    let db = database();
    let before = stored(&db, "notes", json!({"pk": "a", "sk": 1}));
    for text in [
        "UPDATE notes SET n=1 WHERE pk='a' AND sk=1 AND n=99",
        "UPDATE notes SET n=1 WHERE (pk='a' AND sk=1) AND (n=98 OR n=99)",
        "UPDATE notes SET n=1 WHERE pk='a' AND sk=1 AND attribute_exists(nope)",
        "UPDATE notes SET n=1 WHERE pk='none' AND sk=1",
        "UPDATE notes SET n=1 WHERE pk='none' AND sk=1 AND z IS MISSING",
        "UPDATE notes SET n=1 WHERE pk='none' AND sk=1 AND attribute_not_exists(pk)",
        "DELETE FROM notes WHERE pk='a' AND sk=1 AND n=99",
        "DELETE FROM notes WHERE pk='a' AND sk=1 AND (n=98 OR n=99) AND g='g1'",
    ] {
        let result = run(&db, text);
        assert!(matches!(result, Err(Error::ConditionFailed { item: None })), "{text}: {result:?}");
    }
    assert_eq!(stored(&db, "notes", json!({"pk": "a", "sk": 1})), before);
    assert_eq!(stored(&db, "notes", json!({"pk": "none", "sk": 1})), None);
    let with_item = Statement {
        return_on_failure: true,
        ..Statement::new("UPDATE notes SET n=1 WHERE pk='a' AND sk=1 AND n=99")
    };
    let Err(Error::ConditionFailed { item: Some(item) }) = execute(&db, &with_item) else {
        panic!("the item should come with the failure")
    };
    assert_eq!(Some(item.decode().unwrap().to_json()), before);
}

#[test]
fn a_delete_of_what_is_not_there_succeeds_and_returns_nothing() {
    let db = database();
    let text = "DELETE FROM notes WHERE pk='a' AND sk=1 AND n=10 RETURNING ALL OLD *";
    assert_eq!(rows(&db, text)[0]["n"], 10);
    assert_eq!(rows(&db, text), json!([]));
    assert_eq!(rows(&db, "DELETE FROM notes WHERE pk='a' AND sk=1"), json!([]));
    assert_eq!(sort_keys(&db, "pk='a'"), [0, 2, 3]);
}
