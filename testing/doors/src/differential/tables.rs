//! Random requests about tables.

use serde_json::{Value as Json, json};

use super::Step;
use super::requests::damage;
use super::schema;
use crate::dice::Dice;

/// The table that is made and removed.
pub const MADE: &str = "made";

/// Makes a table, slightly wrong as often as not, looks at it and removes it.
pub fn steps(dice: &Dice) -> Vec<Step> {
    dice.allow_fault();
    let name = if dice.fault(12) { *dice.pick(&["", "ab", "plain", "a b"]) } else { MADE };
    let mut body = schema::table(dice).create();
    body["TableName"] = json!(name);
    if dice.one_in(3) {
        let many = if dice.fault(6) { 0 } else { 5 };
        body["ProvisionedThroughput"] = json!({"ReadCapacityUnits": many, "WriteCapacityUnits": 1});
        if dice.fault(4) {
            damage(dice, &mut body["ProvisionedThroughput"]);
        }
        if dice.one_in(2)
            && let Some(members) = body.as_object_mut()
        {
            members.remove("BillingMode");
        }
    }
    if dice.fault(2) {
        damage(dice, &mut body);
    }
    let about = |operation, body: Json| Step::new(operation, body);
    let mut steps = vec![about("CreateTable", body)];
    if dice.one_in(2) {
        steps.push(about("DescribeTable", json!({"TableName": MADE})));
    }
    if dice.one_in(4) {
        let body = json!({"TableName": MADE, "Item": schema::item(dice, schema::table(dice))});
        steps.push(about("PutItem", body));
    }
    steps.push(about("DeleteTable", json!({"TableName": MADE})));
    if dice.one_in(3) {
        steps.push(about("ListTables", json!({"Limit": dice.pick(&[1, 2, 100, 0])})));
    }
    steps
}
