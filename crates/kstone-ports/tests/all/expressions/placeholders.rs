//! `ExpressionAttributeNames` and `ExpressionAttributeValues`, and the order of errors.

use kstone_ports::expr::{Binder, ExpressionCache, Kind};
use kstone_ports::items::Placeholders;
use kstone_ports::value::Value;

fn placeholders(names: &[(&str, &str)], values: &[&str]) -> Placeholders {
    let owned = |(key, name): &(&str, &str)| ((*key).to_owned(), (*name).to_owned());
    Placeholders {
        names: (!names.is_empty()).then(|| names.iter().map(owned).collect()),
        values: (!values.is_empty())
            .then(|| values.iter().map(|key| ((*key).to_owned(), Value::from("v"))).collect()),
    }
}

/// What is wrong with a condition under these placeholders.
fn problem(text: &str, placeholders: &Placeholders) -> Option<String> {
    let cache = ExpressionCache::new(4);
    let result = Binder::new(&cache, placeholders).and_then(|mut binder| {
        binder.condition(Kind::Condition, text)?;
        binder.finish()
    });
    result.err().map(|error| error.to_string())
}

#[test]
fn placeholders_must_be_well_formed() {
    let long = format!("#{}", "x".repeat(255));
    let longest = format!("#{}", "x".repeat(254));
    let invalid = "ExpressionAttributeNames contains invalid";
    for (key, name, message) in [
        ("a", "a", format!("{invalid} key: Syntax error; key: \"a\"")),
        ("#", "a", format!("{invalid} key: Syntax error; key: \"#\"")),
        ("#x-y", "a", format!("{invalid} key: Syntax error; key: \"#x-y\"")),
        ("#é", "a", format!("{invalid} key: Syntax error; key: \"#é\"")),
        ("", "a", format!("{invalid} key: The expression attribute map contains an empty key;")),
        (
            long.as_str(),
            "a",
            format!(
                "{invalid} key: The expression attribute map contains a key that is too long; \
                 size of key: 256"
            ),
        ),
        ("#x", "", format!("{invalid} value: Empty attribute name for key #x")),
    ] {
        let given = placeholders(&[(key, name)], &[]);
        assert_eq!(problem("a = b", &given), Some(message), "{key}");
    }
    let given = placeholders(&[(&longest, "a")], &[]);
    assert_eq!(problem(&format!("{longest} = b"), &given), None);
    assert_eq!(
        problem("a = b", &placeholders(&[], &["b"])).as_deref(),
        Some("ExpressionAttributeValues contains invalid key: Syntax error; key: \"b\"")
    );
}

#[test]
fn an_empty_map_of_placeholders_is_refused_and_names_come_before_values() {
    let empty = Placeholders { names: Some(Vec::new()), values: Some(Vec::new()) };
    assert_eq!(problem("", &empty).as_deref(), Some("ExpressionAttributeNames must not be empty"));
    let empty = Placeholders { names: None, values: Some(Vec::new()) };
    assert_eq!(problem("", &empty).as_deref(), Some("ExpressionAttributeValues must not be empty"));
}

#[test]
fn undefined_and_unused_placeholders_are_named() {
    assert_eq!(
        problem("#u = :v", &placeholders(&[], &[])).as_deref(),
        Some(
            "Invalid ConditionExpression: An expression attribute name used in the document path \
             is not defined; attribute name: #u"
        )
    );
    assert_eq!(
        problem(":v = #u", &placeholders(&[], &[])).as_deref(),
        Some(
            "Invalid ConditionExpression: An expression attribute value used in expression is not \
             defined; attribute value: :v"
        )
    );
    assert_eq!(
        problem("a = b", &placeholders(&[("#z", "z"), ("#a", "a")], &[":v"])).as_deref(),
        Some("Value provided in ExpressionAttributeNames unused in expressions: keys: {#z, #a}")
    );
    assert_eq!(
        problem("a = :v", &placeholders(&[], &[":v", ":w"])).as_deref(),
        Some("Value provided in ExpressionAttributeValues unused in expressions: keys: {:w}")
    );
}

#[test]
fn all_expressions_are_read_before_placeholders_are_found_unused_and_key_conditions_wrong() {
    let cache = ExpressionCache::new(4);
    let given = placeholders(&[], &[":x"]);
    let mut binder = Binder::new(&cache, &given).unwrap();
    binder.key_condition("a <> b").unwrap();
    assert_eq!(
        binder.condition(Kind::Filter, "a b").unwrap_err().to_string(),
        "Invalid FilterExpression: Syntax error; token: \"b\", near: \"a b\""
    );
    assert_eq!(
        binder.finish().unwrap_err().to_string(),
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:x}"
    );
    let given = Placeholders::default();
    let mut binder = Binder::new(&cache, &given).unwrap();
    binder.key_condition("a <> b").unwrap();
    assert_eq!(
        binder.finish().unwrap_err().to_string(),
        "Invalid operator used in KeyConditionExpression: <>"
    );
}

#[test]
fn one_text_is_bound_anew_for_each_request() {
    let cache = ExpressionCache::new(4);
    for name in ["a", "b"] {
        let given = placeholders(&[("#n", name)], &[]);
        let mut binder = Binder::new(&cache, &given).unwrap();
        let bound = binder.projection("#n").unwrap();
        binder.finish().unwrap();
        assert_eq!(bound.top_level_names().collect::<Vec<_>>(), [name]);
    }
}

#[test]
fn names_and_values_take_2_mb_at_most() {
    let value = |bytes: usize| (":v".to_owned(), Value::S("v".repeat(bytes)));
    let name = |n: usize, bytes: usize| (format!("#n{n}"), "n".repeat(bytes));
    let names = |bytes: usize| (0..32).map(|n| name(n, bytes)).collect::<Vec<_>>();
    let text: Vec<String> = (0..32).map(|n| format!("#n{n} = :v")).collect();
    let text = text.join(" AND ");
    let check = |names, values| problem(&text, &Placeholders { names, values });
    let mb = 1024 * 1024;
    let too_large = |what: &str| Some(format!("{what} exceeds max size"));
    assert_eq!(check(Some(names(30_000)), Some(vec![value(mb)])), None);
    assert_eq!(
        check(Some(names(10)), Some(vec![value(2 * mb)])),
        too_large("ExpressionAttributeValues")
    );
    assert_eq!(
        check(Some(names(40_000)), Some(vec![value(mb)])),
        too_large("Combined size of ExpressionAttributeNames and ExpressionAttributeValues")
    );
    let many = (0..40).map(|n| name(n, 60_000)).collect();
    assert_eq!(check(Some(many), None), too_large("ExpressionAttributeNames"));
}

#[test]
fn each_of_many_placeholders_is_found_and_one_that_is_not_used_is_told() {
    let keys: Vec<String> = (0..100).map(|n| format!(":v{n}")).collect();
    let all: Vec<&str> = keys.iter().map(String::as_str).collect();
    let text = format!("a IN ({})", all.join(", "));
    assert_eq!(problem(&text, &placeholders(&[], &all)), None);
    let unused = "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v99}";
    let text = format!("a IN ({})", all[..99].join(", "));
    assert_eq!(problem(&text, &placeholders(&[], &all)).as_deref(), Some(unused));
    let missing = "Invalid ConditionExpression: An expression attribute value used in expression is \
                   not defined; attribute value: :v99";
    let text = format!("a IN ({})", all.join(", "));
    assert_eq!(problem(&text, &placeholders(&[], &all[..99])).as_deref(), Some(missing));
}

#[test]
fn a_set_that_no_item_can_have_is_no_value_either() {
    let nested = Value::L(vec![Value::Ns(Vec::new())]);
    let given = Placeholders { names: None, values: Some(vec![(":v".to_owned(), nested)]) };
    let message = "One or more parameter values were invalid: An number set  may not be empty";
    assert_eq!(problem("a = :v", &given).as_deref(), Some(message));
}
