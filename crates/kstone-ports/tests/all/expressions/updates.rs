//! Updates.

use kstone_ports::value::Item;
use serde_json::{Value as Json, json};

use crate::expressions::support::{assert_refused, encoded, item, update};

fn values() -> Json {
    json!({
        ":a": {"S": "a"}, ":n": {"N": "1"}, ":bo": {"BOOL": true}, ":l": {"L": [{"S": "x"}]},
        ":ss": {"SS": ["a", "b"]}, ":ss2": {"SS": ["b", "c"]}, ":nu": {"NULL": true},
        ":m": {"M": {"k": {"S": "v"}}}, ":b": {"B": "b"}, ":ns": {"NS": ["2", "1"]},
        ":bs": {"BS": ["b"]}, ":l38": {"N": "12345678901234567890123456789012345678"},
        ":tenth": {"N": "0.1"}, ":max": {"N": "9.9999999999999999999999999999999999999E+125"},
    })
}

fn sample() -> Item {
    item(&json!({
        "s": {"S": "str"}, "n": {"N": "10"}, "l": {"L": [{"S": "0"}, {"S": "1"}, {"S": "2"}]},
        "m": {"M": {"x": {"N": "1"}, "y": {"M": {"z": {"S": "q"}}}, "ll": {"L": [{"N": "1"}]}}},
        "ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1", "2"]},
    }))
}

/// What the update makes of the sample: the attributes in `expected` are so, the others as before.
#[track_caller]
fn makes(text: &str, expected: Json) {
    let before = sample();
    let mut after = before.clone();
    let bound = update(text, &json!({}), &values()).unwrap_or_else(|e| panic!("{text}: {e}"));
    bound.apply(&mut after).unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut wanted = before;
    for (name, json) in expected.as_object().unwrap() {
        if json.is_null() {
            wanted.remove(name);
        } else {
            wanted.insert(name.as_str(), crate::expressions::support::value(json));
        }
    }
    assert_eq!(after, wanted, "{text}");
}

#[track_caller]
fn fails(text: &str, message: &str) {
    let mut after = sample();
    let bound = update(text, &json!({}), &values()).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(bound.apply(&mut after).unwrap_err().to_string(), message, "{text}");
    assert_eq!(after, sample(), "{text} changed the item");
}

#[track_caller]
fn refused(text: &str, message: &str) {
    assert_refused(
        update(text, &json!({"#c": "c", "#d": "[3]"}), &values()),
        "UpdateExpression",
        message,
    );
}

fn list(elements: &[&str]) -> Json {
    json!({"L": elements.iter().map(|text| json!({"S": text})).collect::<Vec<_>>()})
}

#[test]
fn set_writes_values_attributes_sums_and_functions() {
    makes("set q = :a", json!({"q": {"S": "a"}}));
    makes("set s = m.x", json!({"s": {"N": "1"}}));
    makes("set n = n + :n", json!({"n": {"N": "11"}}));
    makes("set n = (n) - (:n)", json!({"n": {"N": "9"}}));
    makes("set n = n - n", json!({"n": {"N": "0"}}));
    makes("set q = if_not_exists(q, :a)", json!({"q": {"S": "a"}}));
    makes("set s = if_not_exists(s, :a)", json!({}));
    makes("set s = if_not_exists(s.x, :a)", json!({"s": {"S": "a"}}));
    makes("set q = if_not_exists(q, n) + :n", json!({"q": {"N": "11"}}));
    makes("set l = list_append(l, :l)", json!({"l": list(&["0", "1", "2", "x"])}));
    makes("set l = list_append(:l, l)", json!({"l": list(&["x", "0", "1", "2"])}));
    makes("set q = list_append(if_not_exists(q, :l), :l)", json!({"q": list(&["x", "x"])}));
    makes(
        "set m.x = m.x + :n, m.ll[0] = :a",
        json!({"m": {"M": {
            "x": {"N": "2"}, "y": {"M": {"z": {"S": "q"}}}, "ll": {"L": [{"S": "a"}]},
        }}}),
    );
}

#[test]
fn every_value_is_computed_from_the_item_as_it_was() {
    makes("set q = n, n = s", json!({"q": {"N": "10"}, "n": {"S": "str"}}));
    makes("set l[0] = l[1], l[1] = l[0]", json!({"l": list(&["1", "0", "2"])}));
    makes("set l[1] = l[2], l[2] = l[1] remove l[0]", json!({"l": list(&["2", "1"])}));
    makes("set q = s remove s", json!({"q": {"S": "str"}, "s": null}));
}

#[test]
fn elements_beyond_the_end_are_appended_in_the_order_of_their_indexes() {
    makes("set l[5] = :a", json!({"l": list(&["0", "1", "2", "a"])}));
    makes(
        "set l[100] = :a, l[50] = s, l[3] = l[0]",
        json!({"l": list(&["0", "1", "2", "0", "str", "a"])}),
    );
    makes("add l[9] :n", json!({"l": {"L": [{"S": "0"}, {"S": "1"}, {"S": "2"}, {"N": "1"}]}}));
}

#[test]
fn removed_elements_are_named_by_their_place_before_the_update() {
    makes("remove l[0], l[1]", json!({"l": list(&["2"])}));
    makes("remove l[0], l[2], l[7]", json!({"l": list(&["1"])}));
    makes("remove l[0] set l[1] = :a", json!({"l": list(&["a", "2"])}));
    makes("set l[1] = :a, l[9] = :a remove l[0]", json!({"l": list(&["a", "2", "a"])}));
    // There was no fourth element to remove, so the new one stays.
    makes("set l[9] = :a remove l[3]", json!({"l": list(&["0", "1", "2", "a"])}));
    makes("remove m, q, s", json!({"m": null, "s": null}));
    makes(
        "remove m.y.z, m.x, m.q",
        json!({"m": {"M": {"y": {"M": {}}, "ll": {"L": [{"N": "1"}]}}}}),
    );
}

#[test]
fn add_counts_and_joins_and_delete_takes_out() {
    makes("add n :n, q :n", json!({"n": {"N": "11"}, "q": {"N": "1"}}));
    makes("add ss :ss2", json!({"ss": {"SS": ["a", "b", "c"]}}));
    makes("add q :ss", json!({"q": {"SS": ["a", "b"]}}));
    makes("delete ss :ss2", json!({"ss": {"SS": ["a"]}}));
    makes("delete ss :ss", json!({"ss": null}));
    makes("delete q :ss", json!({}));
}

#[test]
fn errors_on_the_item_leave_it_as_it_was() {
    let invalid = "The document path provided in the update expression is invalid for update";
    for text in [
        "set m.q.r = :a",
        "set q.r = :a",
        "set q[0] = :a",
        "set s.x = :a",
        "set s[0] = :a",
        "set m[0] = :a",
        "set l.x = :a",
        "set l[0].x = :a",
        "set l[9].x = :a",
        "remove q.r",
        "remove s.x",
        "remove m.q.r",
        "remove m[0]",
        "add m.q.r :n",
        "delete q.r :ss",
        "set n = :n, q.r = :a",
    ] {
        fails(text, invalid);
    }
    let operand = "An operand in the update expression has an incorrect data type";
    for text in [
        "add s :n",
        "add l :n",
        "add l[0] :n",
        "add ns :ss",
        "delete n :ss",
        "delete ns :ss",
        "set n = n + s",
        "set l = list_append(s, l)",
        "set q = if_not_exists(q, :a) + :n",
        "set q = list_append(if_not_exists(q, :n), :l)",
    ] {
        fails(text, operand);
    }
    let missing = "The provided expression refers to an attribute that does not exist in the item";
    for text in [
        "set s = q",
        "set s = q.r",
        "set n = q + :n",
        "set l = list_append(q, l)",
        "set q = if_not_exists(q, z)",
        "set s = l[7]",
    ] {
        fails(text, missing);
    }
    fails(
        "set n = :l38 + :tenth",
        "Attempting to store more than 38 significant digits in a Number",
    );
    fails(
        "set n = :max + :max",
        "Number overflow. Attempting to store a number with magnitude larger than supported range",
    );
}

#[test]
fn values_of_the_wrong_type_are_refused_before_the_item_is_seen() {
    for (action, placeholder, type_name) in [
        ("add", ":a", "STRING"),
        ("add", ":b", "BINARY"),
        ("add", ":bo", "BOOLEAN"),
        ("add", ":nu", "NULL"),
        ("add", ":m", "MAP"),
        ("add", ":l", "LIST"),
        ("delete", ":n", "NUMBER"),
        ("delete", ":a", "STRING"),
    ] {
        let message = format!(
            "Incorrect operand type for operator or function; operator: {}, operand type: \
             {type_name}",
            action.to_uppercase()
        );
        refused(&format!("{action} a.b {placeholder}"), &message);
    }
    for (text, operator, type_name) in [
        ("set a = list_append(:a, a)", "list_append", "S"),
        ("set a = list_append(a, :ns)", "list_append", "NS"),
        ("set a = a + :a", "+", "S"),
        ("set a = :b + :a", "+", "B"),
        ("set a = a - :l", "-", "L"),
    ] {
        let message = format!(
            "Incorrect operand type for operator or function; operator or function: {operator}, \
             operand type: {type_name}"
        );
        refused(text, &message);
    }
    let path = "Operator or function requires a document path; operator or function: if_not_exists";
    refused("set a = if_not_exists(:a, c)", path);
    refused("set a = if_not_exists(if_not_exists(a, b), c)", path);
    refused(
        "set a = if_not_exists(c)",
        "Incorrect number of operands for operator or function; operator or function: \
         if_not_exists, number of operands: 1",
    );
}

#[test]
fn targets_must_not_meet_and_come_before_values() {
    let clash = |how: &str, one: &str, two: &str| {
        format!(
            "Two document paths {how} with each other; must remove or rewrite one of these paths; \
             path one: {one}, path two: {two}"
        )
    };
    for (text, message) in [
        (
            "set d[1] = a, d.b = a, c[1].a = a, #c = if_not_exists(a)",
            clash("overlap", "[c, [1], a]", "[c]"),
        ),
        ("set #c[3].#d = a, #c[3] = a", clash("overlap", "[c, [3], [3]]", "[c, [3]]")),
        (
            "set #c[3].#d = a, #c.#d[3] = if_not_exists(a)",
            clash("conflict", "[c, [3], [3]]", "[c, [3], [3]]"),
        ),
        ("remove a.#c set a[1] = #d", clash("conflict", "[a, c]", "[a, [1]]")),
        ("set a.b.c=:n, a.b=:n, a=:n", clash("overlap", "[a, b]", "[a]")),
        ("set a = :n add a :n", clash("overlap", "[a]", "[a]")),
    ] {
        refused(text, &message);
    }
}

#[test]
fn updated_old_and_updated_new_hold_what_the_update_names() {
    let mut item_now = item(&json!({
        "a": {"S": "k"}, "b": {"M": {"a": {"N": "1"}, "b": {"N": "2"}, "c": {"N": "3"}}},
        "c": {"L": [{"N": "1"}, {"N": "3"}]},
    }));
    let text = "set b.c=((c[1])+(b.a)), b.a = a, c[1] = a, c[4] = b.a - b.b, c[2] = b.c \
                add c[8] :ss, c[6] :n";
    let bound = update(text, &json!({}), &values()).unwrap();
    let old = bound.touched_old(encoded(&item_now).as_ref()).decode().unwrap();
    assert_eq!(
        old,
        item(&json!({
            "b": {"M": {"a": {"N": "1"}, "c": {"N": "3"}}}, "c": {"L": [{"N": "3"}]},
        }))
    );
    bound.apply(&mut item_now).unwrap();
    assert_eq!(
        item_now,
        item(&json!({
            "a": {"S": "k"}, "b": {"M": {"a": {"S": "k"}, "b": {"N": "2"}, "c": {"N": "4"}}},
            "c": {"L": [
                {"N": "1"}, {"S": "k"}, {"N": "3"}, {"N": "-1"}, {"N": "1"}, {"SS": ["a", "b"]},
            ]},
        }))
    );
    let new = bound.touched_new(encoded(&item_now).as_ref()).decode().unwrap();
    assert_eq!(
        new,
        item(&json!({
            "b": {"M": {"a": {"S": "k"}, "c": {"N": "4"}}},
            "c": {"L": [{"S": "k"}, {"N": "3"}, {"N": "1"}]},
        }))
    );
    assert_eq!(bound.top_level_names().collect::<Vec<_>>(), ["b", "b", "c", "c", "c", "c", "c"]);
}

/// A list that takes half of what an item may.
fn half_full() -> Item {
    let list =
        (0..200).map(|_| kstone_ports::value::Value::S("x".repeat(1000))).collect::<Vec<_>>();
    Item::new().with("l", list)
}

#[test]
fn an_update_stops_before_it_makes_more_than_an_item_can_hold() {
    let message = "Item size to update has exceeded the maximum allowed size";
    let copies: Vec<String> = (0..300).map(|n| format!("a{n} = l")).collect();
    let doubled: Vec<String> = (0..100).map(|n| format!("a{n} = list_append(l, l)")).collect();
    for text in [format!("SET {}", copies.join(", ")), format!("SET {}", doubled.join(", "))] {
        let mut after = half_full();
        let bound = update(&text, &json!({}), &values()).unwrap();
        assert_eq!(bound.apply(&mut after).unwrap_err().to_string(), message);
        assert_eq!(after, half_full(), "the item was changed");
    }
    let mut after = half_full();
    update("SET a = l[0], b = list_append(:l, :l)", &json!({}), &values())
        .unwrap()
        .apply(&mut after)
        .unwrap();
    assert_eq!(after.len(), 3);
}

#[test]
fn values_that_are_added_at_many_places_count_each_time() {
    let text: Vec<String> = (0..300).map(|n| format!("a{n} :s")).collect();
    let set = kstone_ports::value::Value::Ss((0..100).map(|n| format!("{n:0>1000}")).collect());
    let placeholders = kstone_ports::items::Placeholders {
        names: None,
        values: Some(vec![(":s".to_owned(), set)]),
    };
    let cache = kstone_ports::expr::ExpressionCache::new(4);
    let mut binder = kstone_ports::expr::Binder::new(&cache, &placeholders).unwrap();
    let bound = binder.update(&format!("ADD {}", text.join(", "))).unwrap();
    let mut item = Item::new();
    let message = "Item size to update has exceeded the maximum allowed size";
    assert_eq!(bound.apply(&mut item).unwrap_err().to_string(), message);
    assert!(item.is_empty());
}
