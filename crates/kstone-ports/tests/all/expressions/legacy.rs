//! `Expected`, filters, `KeyConditions` and `AttributeUpdates`.

use kstone_ports::expr::KeyOp;
use kstone_ports::expr::legacy::{
    AttributeAction, AttributeUpdate, ComparisonOperator, ConditionalOperator, Expected,
    LegacyCondition, attribute_updates, expected, filter, key_conditions,
};
use kstone_ports::value::{Item, Value};
use serde_json::{Value as Json, json};

use crate::expressions::support::{encoded, item, value};

const PARAMETER: &str = "One or more parameter values were invalid: ";

fn sample() -> Item {
    item(&json!({
        "s": {"S": "hello"}, "n": {"N": "10"}, "ss": {"SS": ["a", "b"]}, "nu": {"NULL": true},
        "l": {"L": [{"S": "x"}]}, "m": {"M": {"x": {"N": "1"}}},
    }))
}

fn condition(operator: &str, values: Json) -> LegacyCondition {
    LegacyCondition {
        operator: ComparisonOperator::named(operator).unwrap(),
        values: values.as_array().unwrap().iter().map(value).collect(),
    }
}

fn holds(name: &str, operator: &str, values: Json) -> Result<bool, String> {
    let conditions = vec![(name.to_owned(), condition(operator, values))];
    filter(conditions, ConditionalOperator::And)
        .and_then(|bound| bound.matches(Some(encoded(&sample()).as_ref())))
        .map_err(|error| error.to_string())
}

#[test]
fn filters_hold_as_they_do_in_dynamodb() {
    for (name, operator, values, expected) in [
        ("n", "EQ", json!([{"N": "10.0"}]), true),
        ("ss", "EQ", json!([{"SS": ["b", "a"]}]), true),
        ("m", "EQ", json!([{"M": {"x": {"N": "1"}}}]), true),
        ("n", "NE", json!([{"S": "x"}]), true),
        ("q", "NE", json!([{"S": "x"}]), true),
        ("n", "LE", json!([{"N": "10"}]), true),
        ("n", "LT", json!([{"N": "10"}]), false),
        ("n", "GE", json!([{"N": "10"}]), true),
        ("n", "GT", json!([{"N": "9"}]), true),
        ("n", "IN", json!([{"N": "1"}, {"N": "10"}]), true),
        ("n", "BETWEEN", json!([{"N": "1"}, {"N": "10"}]), true),
        ("s", "BEGINS_WITH", json!([{"S": "hel"}]), true),
        ("q", "NULL", json!([]), true),
        ("nu", "NULL", json!([]), false),
        ("nu", "NOT_NULL", json!([]), true),
        ("s", "CONTAINS", json!([{"S": "ell"}]), true),
        ("ss", "CONTAINS", json!([{"S": "a"}]), true),
        ("l", "CONTAINS", json!([{"S": "x"}]), true),
        ("s", "CONTAINS", json!([{"BOOL": true}]), false),
        ("s", "NOT_CONTAINS", json!([{"S": "zz"}]), true),
        ("s", "NOT_CONTAINS", json!([{"S": "ell"}]), false),
        ("n", "NOT_CONTAINS", json!([{"S": "x"}]), true),
        ("q", "NOT_CONTAINS", json!([{"S": "x"}]), false),
    ] {
        assert_eq!(
            holds(name, operator, values.clone()),
            Ok(expected),
            "{name} {operator} {values}"
        );
    }
}

#[test]
fn the_number_types_and_order_of_values_are_checked() {
    for operator in [
        "EQ",
        "NE",
        "LE",
        "LT",
        "GE",
        "GT",
        "CONTAINS",
        "NOT_CONTAINS",
        "BEGINS_WITH",
        "IN",
        "BETWEEN",
    ] {
        let message = format!(
            "{PARAMETER}Invalid number of argument(s) for the {operator} ComparisonOperator"
        );
        assert_eq!(holds("a", operator, json!([])), Err(message));
    }
    for operator in ["NULL", "NOT_NULL"] {
        let message = format!(
            "{PARAMETER}Invalid number of argument(s) for the {operator} ComparisonOperator"
        );
        assert_eq!(holds("a", operator, json!([{"S": "a"}])), Err(message));
    }
    for (operator, values, type_name) in [
        ("LT", json!([{"BOOL": true}]), "BOOL"),
        ("IN", json!([{"SS": ["a"]}]), "SS"),
        ("CONTAINS", json!([{"M": {}}]), "M"),
        ("NOT_CONTAINS", json!([{"L": []}]), "L"),
        ("BETWEEN", json!([{"NULL": true}, {"NULL": true}]), "NULL"),
        ("BEGINS_WITH", json!([{"N": "1"}]), "N"),
    ] {
        let message = format!(
            "{PARAMETER}ComparisonOperator {operator} is not valid for {type_name} AttributeValue \
             type"
        );
        assert_eq!(holds("a", operator, values), Err(message));
    }
    assert_eq!(
        holds("a", "IN", json!([{"S": "b"}, {"N": "1"}])),
        Err(format!("{PARAMETER}AttributeValues inside AttributeValueList must be of same type"))
    );
    let order = "The BETWEEN condition was provided a range where the lower bound is greater than \
                 the upper bound";
    assert_eq!(holds("a", "BETWEEN", json!([{"S": "b"}, {"S": "a"}])), Err(order.to_owned()));
}

#[test]
fn conditions_are_joined_by_and_or_or() {
    let wrong = ("n".to_owned(), condition("EQ", json!([{"N": "1"}])));
    let right = ("s".to_owned(), condition("EQ", json!([{"S": "hello"}])));
    let ask = |conditions: Vec<(String, LegacyCondition)>, operator| {
        filter(conditions, operator).unwrap().matches(Some(encoded(&sample()).as_ref())).unwrap()
    };
    let both = || vec![wrong.clone(), right.clone()];
    assert!(!ask(both(), ConditionalOperator::And));
    assert!(ask(both(), ConditionalOperator::Or));
    assert!(!ask(vec![wrong.clone()], ConditionalOperator::Or));
    assert!(ask(Vec::new(), ConditionalOperator::And));
    assert!(ask(Vec::new(), ConditionalOperator::Or));
}

#[test]
fn expected_is_a_value_an_absence_or_a_comparison() {
    let n = |number: i32| Some(Value::from(number));
    let ask = |name: &str, wanted: Expected| {
        expected(vec![(name.to_owned(), wanted)], ConditionalOperator::And)
            .and_then(|bound| bound.matches(Some(encoded(&sample()).as_ref())))
            .map_err(|error| error.to_string())
    };
    let eq = Some(ComparisonOperator::Eq);
    assert_eq!(ask("n", Expected { value: n(10), ..Expected::default() }), Ok(true));
    assert_eq!(ask("n", Expected { value: n(1), ..Expected::default() }), Ok(false));
    assert_eq!(ask("q", Expected { exists: Some(false), ..Expected::default() }), Ok(true));
    assert_eq!(ask("n", Expected { exists: Some(false), ..Expected::default() }), Ok(false));
    let by_value = Expected { operator: eq, value: n(10), ..Expected::default() };
    assert_eq!(ask("n", by_value), Ok(true));
    let null = Some(ComparisonOperator::Null);
    assert_eq!(ask("q", Expected { operator: null, ..Expected::default() }), Ok(true));

    for (wanted, problem) in [
        (Expected::default(), "Value must be provided when Exists is null"),
        (
            Expected { exists: Some(true), ..Expected::default() },
            "Value must be provided when Exists is true",
        ),
        (
            Expected { exists: Some(false), value: n(1), ..Expected::default() },
            "Value cannot be used when Exists is false",
        ),
        (
            Expected { operator: eq, ..Expected::default() },
            "Value or AttributeValueList must be used with ComparisonOperator: EQ",
        ),
        (
            Expected { operator: eq, exists: Some(true), ..Expected::default() },
            "Exists and ComparisonOperator cannot be used together",
        ),
        (
            Expected { operator: eq, value: n(1), values: Some(vec![]), ..Expected::default() },
            "Value and AttributeValueList cannot be used together",
        ),
        (
            Expected { values: Some(vec![]), ..Expected::default() },
            "AttributeValueList can only be used with a ComparisonOperator",
        ),
    ] {
        assert_eq!(ask("n", wanted), Err(format!("{PARAMETER}{problem} for Attribute: n")));
    }
}

#[test]
fn key_conditions_take_the_operators_that_an_index_can_answer() {
    let one = |operator: &str, values: Json| {
        key_conditions(vec![("sk".to_owned(), condition(operator, values))])
            .map(|bound| bound.clauses[0].op.clone())
            .map_err(|error| error.to_string())
    };
    assert!(matches!(one("EQ", json!([{"S": "a"}])), Ok(KeyOp::Eq(_))));
    assert!(matches!(one("LT", json!([{"S": "a"}])), Ok(KeyOp::Lt(_))));
    assert!(matches!(one("LE", json!([{"S": "a"}])), Ok(KeyOp::Le(_))));
    assert!(matches!(one("GT", json!([{"S": "a"}])), Ok(KeyOp::Gt(_))));
    assert!(matches!(one("GE", json!([{"S": "a"}])), Ok(KeyOp::Ge(_))));
    assert!(matches!(one("BETWEEN", json!([{"S": "a"}, {"S": "b"}])), Ok(KeyOp::Between(..))));
    assert!(matches!(one("BEGINS_WITH", json!([{"S": "a"}])), Ok(KeyOp::BeginsWith(_))));
    for (operator, values) in [
        ("NE", json!([{"S": "a"}])),
        ("IN", json!([{"S": "a"}])),
        ("CONTAINS", json!([{"S": "a"}])),
        ("NOT_CONTAINS", json!([{"S": "a"}])),
        ("NULL", json!([])),
        ("NOT_NULL", json!([])),
    ] {
        let message = "Attempted conditional constraint is not an indexable operation";
        assert_eq!(one(operator, values).unwrap_err(), message, "{operator}");
    }
}

#[test]
fn attribute_updates_put_add_and_delete() {
    let apply = |name: &str, action, json: Json| {
        let value = (!json.is_null()).then(|| value(&json));
        let mut item = sample();
        let updates = vec![(name.to_owned(), AttributeUpdate { action, value })];
        attribute_updates(updates)
            .and_then(|bound| bound.apply(&mut item))
            .map(|()| item.get(name).cloned())
            .map_err(|error| error.to_string())
    };
    let gives = |json: Json| Ok(Some(value(&json)));
    let (put, add, delete) = (AttributeAction::Put, AttributeAction::Add, AttributeAction::Delete);
    assert_eq!(apply("s", put, json!({"N": "1"})), gives(json!({"N": "1"})));
    assert_eq!(apply("n", add, json!({"N": "5"})), gives(json!({"N": "15"})));
    assert_eq!(apply("q", add, json!({"N": "5"})), gives(json!({"N": "5"})));
    assert_eq!(apply("ss", add, json!({"SS": ["c"]})), gives(json!({"SS": ["a", "b", "c"]})));
    assert_eq!(
        apply("l", add, json!({"L": [{"N": "1"}]})),
        gives(json!({"L": [{"S": "x"}, {"N": "1"}]}))
    );
    assert_eq!(apply("ss", delete, json!({"SS": ["b"]})), gives(json!({"SS": ["a"]})));
    assert_eq!(apply("ss", delete, json!({"SS": ["b", "a"]})), Ok(None));
    assert_eq!(apply("s", delete, json!(null)), Ok(None));

    let mismatch = Err("Type mismatch for attribute to update".to_owned());
    assert_eq!(apply("s", add, json!({"N": "1"})), mismatch);
    assert_eq!(apply("ss", add, json!({"NS": ["1"]})), mismatch);
    assert_eq!(apply("ss", delete, json!({"NS": ["1"]})), mismatch);
    let no_value = "Only DELETE action is allowed when no attribute value is specified";
    assert_eq!(apply("s", put, json!(null)), Err(format!("{PARAMETER}{no_value}")));
    assert_eq!(apply("s", add, json!(null)), Err(format!("{PARAMETER}{no_value}")));
    assert_eq!(
        apply("s", add, json!({"S": "1"})),
        Err(format!("{PARAMETER}ADD action is not supported for the type S"))
    );
    assert_eq!(
        apply("s", delete, json!({"L": []})),
        Err(format!("{PARAMETER}DELETE action with value is not supported for the type L"))
    );
}

#[test]
fn more_conditions_than_can_be_asked_of_every_item_are_refused() {
    let conditions = |count: usize| {
        let condition = |n: usize| (format!("a{n}"), condition("NE", json!([{"S": "x"}])));
        filter((0..count).map(condition).collect(), ConditionalOperator::And)
    };
    let all = conditions(1024).unwrap();
    assert!(all.matches(Some(encoded(&sample()).as_ref())).unwrap());
    let message = format!("{PARAMETER}Number of comparisons exceeds the limit of 1024: 1025");
    assert_eq!(conditions(1025).unwrap_err().to_string(), message);

    let values = vec![Value::S("x".into()); 1025];
    let listed = LegacyCondition { operator: ComparisonOperator::In, values };
    let listed = filter(vec![("s".to_owned(), listed)], ConditionalOperator::And);
    assert_eq!(listed.unwrap_err().to_string(), message);
}

#[test]
fn attribute_updates_that_no_item_can_hold_are_refused_before_an_item_is_seen() {
    let put = |value: Value| AttributeUpdate { value: Some(value), ..AttributeUpdate::default() };
    let large = (0..3).map(|n| (format!("a{n}"), put(Value::S("x".repeat(1024 * 1024)))));
    let message = "Item size to update has exceeded the maximum allowed size";
    assert_eq!(attribute_updates(large.collect()).unwrap_err().to_string(), message);

    let long = vec![("n".repeat(65_536), put(Value::Null))];
    let message = format!("{PARAMETER}Attribute name is too large, must be less than 65536 bytes");
    assert_eq!(attribute_updates(long).unwrap_err().to_string(), message);
    let empty = vec![("a".to_owned(), put(Value::Ss(Vec::new())))];
    let message = format!("{PARAMETER}An string set  may not be empty");
    assert_eq!(attribute_updates(empty).unwrap_err().to_string(), message);
}
