//! Key conditions.

use kstone_ports::expr::{KeyClause, KeyOp};
use kstone_ports::value::{EncodedValue, Value};
use serde_json::{Value as Json, json};

use crate::expressions::support::key_condition;

fn values() -> Json {
    json!({":a": {"S": "a"}, ":b": {"S": "b"}, ":n": {"N": "1"}, ":t": {"S": "S"}})
}

fn clause(name: &str, op: KeyOp) -> KeyClause {
    KeyClause { name: name.to_owned(), op }
}

fn text(text: &str) -> EncodedValue {
    EncodedValue::new(&Value::from(text))
}

#[test]
fn a_key_condition_gives_one_clause_for_each_attribute() {
    let (a, b) = (|| text("a"), || text("b"));
    for (condition, clauses) in [
        ("pk = :a", vec![clause("pk", KeyOp::Eq(a()))]),
        (":a = pk", vec![clause("pk", KeyOp::Eq(a()))]),
        ("sk < :b and pk = :a", vec![clause("sk", KeyOp::Lt(b())), clause("pk", KeyOp::Eq(a()))]),
        (
            "(pk = :a) AND (:b < sk)",
            vec![clause("pk", KeyOp::Eq(a())), clause("sk", KeyOp::Gt(b()))],
        ),
        ("pk = :a and :b >= sk", vec![clause("pk", KeyOp::Eq(a())), clause("sk", KeyOp::Le(b()))]),
        (
            "pk = :a and (sk >= :b and x > :a)",
            vec![
                clause("pk", KeyOp::Eq(a())),
                clause("sk", KeyOp::Ge(b())),
                clause("x", KeyOp::Gt(a())),
            ],
        ),
        (
            "pk = :a and sk between :a and :b",
            vec![clause("pk", KeyOp::Eq(a())), clause("sk", KeyOp::Between(a(), b()))],
        ),
        (
            "pk = :a and begins_with(sk, :b)",
            vec![clause("pk", KeyOp::Eq(a())), clause("sk", KeyOp::BeginsWith(b()))],
        ),
    ] {
        assert_eq!(key_condition(condition, &values()).unwrap().clauses, clauses, "{condition}");
    }
}

#[test]
fn what_a_key_condition_cannot_say_is_refused() {
    let operator = |name: &str| format!("Invalid operator used in KeyConditionExpression: {name}");
    let condition =
        |problem: &str| format!("Invalid condition in KeyConditionExpression: {problem}");
    let nested_operation = "KeyConditionExpressions cannot contain nested operations";
    for (text, message) in [
        ("a > b and size(b) > c or a > c", operator("OR")),
        ("a in (b, size(c), d)", operator("IN")),
        ("attribute_exists(a)", operator("attribute_exists")),
        ("attribute_type(a, :t)", operator("attribute_type")),
        ("contains(a.d, b)", operator("contains")),
        ("not a > b", operator("NOT")),
        ("a <> b", operator("<>")),
        (
            ":a between size(b) and size(a) and b > :b",
            condition("BETWEEN operator must have the key attribute as its first operand"),
        ),
        (
            "begins_with(:a, b) and a > :b",
            condition("begins_with operator must have the key attribute as its first operand"),
        ),
        ("size(b) > a AND a.b > b AND b > c", nested_operation.to_owned()),
        ("a > size(b.d)", nested_operation.to_owned()),
        ("a between size(b) and size(a)", nested_operation.to_owned()),
        ("b > a.b", condition("Multiple attribute names used in one condition")),
        ("a between b and size(a)", condition("Multiple attribute names used in one condition")),
        ("begins_with(a, b)", condition("Multiple attribute names used in one condition")),
        (
            "b.d > a AND c.d > e.f",
            "KeyConditionExpressions cannot have conditions on nested attributes".to_owned(),
        ),
        (":b > :a AND a < :b", condition("No key attribute specified")),
        (
            "b > :a AND b < :a and c = :a and d = :a",
            "KeyConditionExpressions must only contain one condition per key".to_owned(),
        ),
        (
            "pk = :a and sk > :n and ((x = :a))",
            "Invalid KeyConditionExpression: The expression has redundant parentheses;".to_owned(),
        ),
    ] {
        assert_eq!(key_condition(text, &values()).map(|_| ()), Err(message), "{text}");
    }
}
