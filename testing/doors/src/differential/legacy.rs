//! The forms of conditions and updates that came before expressions.

use serde_json::{Map, Value as Json, json};

use super::expressions::bounds;
use super::schema::{ATTRIBUTES, Index, Table, key_value, natural_type, value_for, value_of};
use crate::dice::Dice;

const OPERATORS: &[&str] = &[
    "EQ",
    "NE",
    "IN",
    "LE",
    "LT",
    "GE",
    "GT",
    "BETWEEN",
    "NOT_NULL",
    "NULL",
    "CONTAINS",
    "NOT_CONTAINS",
    "BEGINS_WITH",
];

fn attribute(dice: &Dice) -> &'static str {
    dice.pick(ATTRIBUTES).0
}

/// A value of the attribute's type, mostly.
fn value_like(dice: &Dice, name: &str) -> Json {
    match dice.fault(30) {
        true => value_for(dice, "absent"),
        false => value_of(dice, natural_type(name), 2),
    }
}

/// An operator and as many values as it needs, mostly.
fn comparison(dice: &Dice, name: &str) -> Json {
    let operator = match natural_type(name) {
        _ if dice.fault(12) => *dice.pick(OPERATORS),
        "S" | "B" => *dice.pick(OPERATORS),
        "N" => *dice.pick(&OPERATORS[..12]),
        _ => *dice.pick(&["EQ", "NE", "NULL", "NOT_NULL"]),
    };
    let mut count = match operator {
        "NULL" | "NOT_NULL" => 0,
        "BETWEEN" => 2,
        "IN" => 1 + dice.below(2),
        _ => 1,
    };
    if dice.fault(25) {
        count = dice.below(4);
    }
    let values: Vec<Json> = match (operator, count) {
        ("BETWEEN", 2) => bounds(natural_type(name)).into(),
        _ => (0..count).map(|_| value_like(dice, name)).collect(),
    };
    let mut condition = json!({"ComparisonOperator": operator});
    if !values.is_empty() || dice.one_in(4) {
        condition["AttributeValueList"] = json!(values);
    }
    condition
}

/// `ScanFilter` or `QueryFilter`.
pub fn filter(dice: &Dice) -> Json {
    let mut conditions = Map::new();
    for _ in 0..=dice.below(2) {
        let name = attribute(dice);
        conditions.insert(name.to_owned(), comparison(dice, name));
    }
    if dice.fault(20) {
        conditions.insert("pk".to_owned(), comparison(dice, "s"));
    }
    Json::Object(conditions)
}

/// `Expected`.
pub fn expected(dice: &Dice) -> Json {
    let mut conditions = Map::new();
    for _ in 0..=dice.below(2) {
        let name = attribute(dice);
        let condition = match dice.below(6) {
            0 => json!({"Exists": false}),
            1 => json!({"Value": value_like(dice, name)}),
            2 => json!({"Value": value_like(dice, name), "Exists": !dice.fault(6)}),
            3 if dice.fault(4) => json!({"Exists": true}),
            _ => comparison(dice, name),
        };
        conditions.insert(name.to_owned(), condition);
    }
    Json::Object(conditions)
}

fn is_set(name: &str) -> bool {
    natural_type(name).ends_with('S') && natural_type(name) != "S"
}

/// `AttributeUpdates`. Always with an action: DynamoDB puts the value if there is none, DynamoDB
/// Local forgets it, and from there on everything would differ.
pub fn updates(dice: &Dice) -> Json {
    let mut updates = Map::new();
    for _ in 0..=dice.below(2) {
        let name = attribute(dice);
        let update = match dice.below(8) {
            0 => json!({"Action": "DELETE"}),
            1 if is_set(name) || dice.fault(8) => {
                json!({"Action": "DELETE", "Value": value_like(dice, name)})
            }
            2 | 3 if is_set(name) || natural_type(name) == "N" || dice.fault(8) => {
                json!({"Action": "ADD", "Value": value_like(dice, name)})
            }
            5 if dice.fault(4) => json!({"Action": dice.pick(&["PUT", "ADD", "MOVE"])}),
            _ => json!({"Action": "PUT", "Value": value_like(dice, name)}),
        };
        updates.insert(name.to_owned(), update);
    }
    if dice.fault(30) {
        updates.insert("pk".to_owned(), json!({"Action": "PUT", "Value": {"S": "a"}}));
    }
    Json::Object(updates)
}

/// `KeyConditions`.
pub fn key_conditions(dice: &Dice, table: &Table, index: Option<&Index>) -> Json {
    let range: Vec<_> = match index {
        Some(index) => index.range.to_vec(),
        None => table.range.into_iter().collect(),
    };
    let hash = index.map_or(vec![table.hash], |index| index.hash.to_vec());
    let mut conditions = Map::new();
    for (name, kind) in hash {
        let operator = if dice.fault(40) { *dice.pick(OPERATORS) } else { "EQ" };
        let value = key_value(dice, kind);
        conditions.insert(
            name.to_owned(),
            json!({"ComparisonOperator": operator, "AttributeValueList": [value]}),
        );
    }
    for (name, kind) in range.into_iter().take(dice.below(2)) {
        let operator = match dice.fault(12) {
            true => *dice.pick(OPERATORS),
            false => *dice.pick(&["EQ", "LT", "LE", "GT", "GE", "BETWEEN"]),
        };
        let count = if operator == "BETWEEN" { 2 } else { 1 };
        let values: Vec<Json> = match operator {
            "BETWEEN" => bounds(kind).into(),
            _ => (0..count).map(|_| key_value(dice, kind)).collect(),
        };
        conditions.insert(
            name.to_owned(),
            json!({"ComparisonOperator": operator, "AttributeValueList": values}),
        );
    }
    if dice.fault(40) {
        conditions.insert("n".to_owned(), comparison(dice, "n"));
    }
    Json::Object(conditions)
}

/// `AttributesToGet`.
pub fn attributes_to_get(dice: &Dice) -> Json {
    let mut names = Vec::new();
    for _ in 0..=dice.below(3) {
        let name = match dice.below(8) {
            0 => "pk",
            1 => "sk",
            _ => attribute(dice),
        };
        if !names.contains(&name) || dice.fault(8) {
            names.push(name);
        }
    }
    json!(names)
}
