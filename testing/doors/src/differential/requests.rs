//! Random requests of every operation on items, mostly right, sometimes slightly wrong.

use serde_json::{Map, Value as Json, json};

use super::expressions::Expressions;
use super::schema::{self, Index, TABLES, Table};
use super::statements::Statement;
use super::{Paging, Step, legacy, tables};
use crate::dice::Dice;

/// The steps of a case.
pub fn steps(dice: &Dice, count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    // Something to find.
    for _ in 0..8 {
        dice.allow_fault();
        let table = schema::table(dice);
        let body = json!({"TableName": table.name, "Item": schema::item(dice, table)});
        steps.push(Step::new("PutItem", body));
    }
    while steps.len() < count {
        if dice.one_in(25) {
            steps.extend(tables::steps(dice));
        } else {
            steps.push(step(dice));
        }
    }
    steps
}

fn step(dice: &Dice) -> Step {
    dice.allow_fault();
    let table = schema::table(dice);
    let mut step = match dice.below(100) {
        0..18 => Step::new("PutItem", put(dice, table, WriteContext::Alone)),
        18..38 => Step::new("UpdateItem", update(dice, table, WriteContext::Alone)),
        38..45 => Step::new("DeleteItem", delete(dice, table, WriteContext::Alone)),
        45..53 => Step::new("GetItem", get(dice, table)),
        53..67 => query(dice, table),
        67..73 => scan(dice, table),
        73..76 => Step::new("BatchGetItem", batch_get(dice)),
        76..79 => Step::new("BatchWriteItem", batch_write(dice)),
        79..82 => Step::new("TransactGetItems", transact_get(dice)),
        82..88 => Step::new("TransactWriteItems", transact_write(dice)),
        88..95 => Step::new("ExecuteStatement", execute_statement(dice)),
        95..97 => Step::new("BatchExecuteStatement", batch_statements(dice)),
        97..99 => Step::new("ExecuteTransaction", statement_transaction(dice)),
        _ => Step::new("DescribeTable", json!({"TableName": table.name})),
    };
    if dice.fault(15) {
        damage(dice, &mut step.body);
    }
    if dice.one_in(400) {
        let text = step.body.to_string();
        let end = text.char_indices().map(|(at, _)| at).nth(dice.below(text.len())).unwrap_or(0);
        step.cut = Some(end);
    }
    step
}

/// One of several words, or once in a while one that is wrong here.
fn wrongly(dice: &Dice, wrong: &'static str, right: &[&'static str]) -> &'static str {
    if dice.fault(12) { wrong } else { *dice.pick(right) }
}

/// Whether a write is a request of its own or part of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteContext {
    Alone,
    Transaction,
}

fn put(dice: &Dice, table: &Table, standing: WriteContext) -> Json {
    let mut body = json!({"TableName": table.name, "Item": schema::item(dice, table)});
    conditional(dice, &mut body, standing, Expressions::new(dice));
    if standing == WriteContext::Alone && dice.one_in(3) {
        body["ReturnValues"] = json!(wrongly(dice, "ALL_NEW", &["NONE", "ALL_OLD"]));
    }
    body
}

fn delete(dice: &Dice, table: &Table, standing: WriteContext) -> Json {
    let mut body = json!({"TableName": table.name, "Key": schema::key(dice, table)});
    conditional(dice, &mut body, standing, Expressions::new(dice));
    if standing == WriteContext::Alone && dice.one_in(2) {
        body["ReturnValues"] = json!(wrongly(dice, "UPDATED_OLD", &["NONE", "ALL_OLD"]));
    }
    body
}

fn update(dice: &Dice, table: &Table, standing: WriteContext) -> Json {
    let mut body = json!({"TableName": table.name, "Key": schema::key(dice, table)});
    let mut expressions = Expressions::new(dice);
    match dice.below(20) {
        0..3 if standing == WriteContext::Alone => body["AttributeUpdates"] = legacy::updates(dice),
        3 if standing == WriteContext::Alone => {}
        _ => body["UpdateExpression"] = json!(expressions.update()),
    }
    conditional(dice, &mut body, standing, expressions);
    leave_absent(&mut body);
    if standing == WriteContext::Alone && dice.one_in(2) {
        body["ReturnValues"] = json!(wrongly(
            dice,
            "BOGUS",
            &["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"]
        ));
    }
    body
}

/// An update that only takes something away makes no item on DynamoDB, and does on DynamoDB Local.
/// From there on everything would differ; so it has to find an item.
fn leave_absent(body: &mut Json) {
    let text = body["UpdateExpression"].as_str().unwrap_or("SET");
    if !text.contains("SET") && !text.contains("ADD") {
        let condition = body["ConditionExpression"].as_str();
        let found = match condition {
            Some(condition) => format!("attribute_exists(pk) AND ({condition})"),
            None => "attribute_exists(pk)".to_owned(),
        };
        body["ConditionExpression"] = json!(found);
    }
    let updates = body["AttributeUpdates"].as_object();
    let removes = |update: &Json| update["Action"] == "DELETE";
    if updates.is_some_and(|updates| updates.values().all(removes)) {
        body["Expected"] = json!({"pk": {"ComparisonOperator": "NOT_NULL"}});
        if let Some(members) = body.as_object_mut() {
            members.remove("ConditionalOperator");
        }
    }
    // Looking for members has made them.
    if let Some(members) = body.as_object_mut() {
        members.retain(|_, member| !member.is_null());
    }
}

/// Adds a condition in one of the forms there are.
fn conditional(
    dice: &Dice,
    body: &mut Json,
    standing: WriteContext,
    mut expressions: Expressions<'_>,
) {
    // The two ways to say things do not mix.
    let is_legacy = body.get("AttributeUpdates").is_some();
    let is_modern = body.get("UpdateExpression").is_some();
    match dice.below(12) {
        0..4 if !is_legacy || dice.fault(10) => {
            body["ConditionExpression"] = json!(expressions.condition());
        }
        4 | 5 if standing == WriteContext::Alone && (!is_modern || dice.fault(10)) => {
            body["Expected"] = legacy::expected(dice);
            let is_one = body["Expected"].as_object().is_some_and(|members| members.len() == 1);
            if dice.one_in(3) && (!is_one || dice.fault(3)) {
                body["ConditionalOperator"] = json!(dice.pick(&["AND", "OR"]));
            }
        }
        _ => {}
    }
    if dice.one_in(5) {
        body["ReturnValuesOnConditionCheckFailure"] = json!(dice.pick(&["NONE", "ALL_OLD"]));
    }
    expressions.finish(body);
}

/// Adds what to return of each item.
fn projected(dice: &Dice, body: &mut Json, expressions: &mut Expressions<'_>) {
    match dice.below(8) {
        0 | 1 => body["ProjectionExpression"] = json!(expressions.projection()),
        2 if dice.one_in(2) => body["AttributesToGet"] = legacy::attributes_to_get(dice),
        _ => {}
    }
}

fn get(dice: &Dice, table: &Table) -> Json {
    let mut body = json!({"TableName": table.name, "Key": schema::key(dice, table)});
    let mut expressions = Expressions::new(dice);
    projected(dice, &mut body, &mut expressions);
    expressions.finish(&mut body);
    if dice.one_in(4) {
        body["ConsistentRead"] = json!(true);
    }
    body
}

fn index_of(dice: &Dice, table: &'static Table) -> Option<&'static Index> {
    (!table.indexes.is_empty() && dice.one_in(2)).then(|| dice.pick(table.indexes))
}

/// What Query and Scan have in common.
fn listing(dice: &Dice, body: &mut Json, expressions: &mut Expressions<'_>, filter: &str) {
    let is_old = body.get("KeyConditions").is_some() || dice.one_in(6);
    if is_old {
        if dice.one_in(3) {
            body["AttributesToGet"] = legacy::attributes_to_get(dice);
        }
    } else if dice.one_in(4) {
        body["ProjectionExpression"] = json!(expressions.projection());
    }
    match dice.below(6) {
        0 | 1 if !is_old || dice.fault(8) => {
            body["FilterExpression"] = json!(expressions.condition());
        }
        2 if is_old && body.get("KeyConditionExpression").is_none() || dice.fault(8) => {
            body[filter] = legacy::filter(dice);
            let is_one = body[filter].as_object().is_some_and(|members| members.len() == 1);
            if dice.one_in(4) && (!is_one || dice.fault(3)) {
                body["ConditionalOperator"] = json!("OR");
            }
        }
        _ => {}
    }
    if dice.one_in(8) {
        body["Select"] = json!(dice.pick(&[
            "COUNT",
            "ALL_ATTRIBUTES",
            "ALL_PROJECTED_ATTRIBUTES",
            "SPECIFIC_ATTRIBUTES",
        ]));
    }
    if dice.one_in(8) {
        body["ConsistentRead"] = json!(true);
    }
    if dice.one_in(4) {
        body["Limit"] = json!(if dice.fault(20) { 0 } else { *dice.pick(&[1, 2, 3, 1000]) });
    }
}

fn query(dice: &Dice, table: &'static Table) -> Step {
    let index = index_of(dice, table);
    let mut body = json!({"TableName": table.name});
    let mut expressions = Expressions::new(dice);
    match dice.below(12) {
        0 | 1 => body["KeyConditions"] = legacy::key_conditions(dice, table, index),
        2 if dice.one_in(4) => {}
        _ => body["KeyConditionExpression"] = json!(expressions.key_condition(table, index)),
    }
    if let Some(index) = index {
        body["IndexName"] = json!(index.name);
    } else if dice.fault(60) {
        body["IndexName"] = json!("nowhere");
    }
    listing(dice, &mut body, &mut expressions, "QueryFilter");
    if dice.one_in(3) {
        body["ScanIndexForward"] = json!(dice.one_in(2));
    }
    if dice.one_in(20) {
        body["ExclusiveStartKey"] = schema::key(dice, table);
    }
    expressions.finish(&mut body);
    let mut step = Step::new("Query", body);
    step.follow = Paging::Pages;
    step
}

fn scan(dice: &Dice, table: &'static Table) -> Step {
    let mut body = json!({"TableName": table.name});
    let mut expressions = Expressions::new(dice);
    if let Some(index) = index_of(dice, table) {
        body["IndexName"] = json!(index.name);
    }
    listing(dice, &mut body, &mut expressions, "ScanFilter");
    expressions.finish(&mut body);
    let mut step = Step::new("Scan", body);
    step.follow = match dice.below(4) {
        0 => Paging::Segments(1 + dice.below(4)),
        _ => Paging::Pages,
    };
    if dice.fault(30) {
        step.body["TotalSegments"] = json!(dice.below(3));
        step.body["Segment"] = json!(dice.below(3));
        step.follow = Paging::Never;
    }
    step
}

/// Leaves one of those that are about the same, mostly.
fn distinct<T>(dice: &Dice, all: &mut Vec<T>, about: impl Fn(&T) -> String) {
    if dice.fault(20) {
        return;
    }
    let mut seen = Vec::new();
    all.retain(|one| {
        let about = about(one);
        let is_new = !seen.contains(&about);
        seen.push(about);
        is_new
    });
}

fn batch_get(dice: &Dice) -> Json {
    let mut requests = Map::new();
    for _ in 0..=dice.below(2) {
        let table = schema::table(dice);
        let mut keys: Vec<Json> = (0..=dice.below(4)).map(|_| schema::key(dice, table)).collect();
        distinct(dice, &mut keys, |key| key.to_string());
        let mut request = json!({"Keys": keys});
        let mut expressions = Expressions::new(dice);
        projected(dice, &mut request, &mut expressions);
        expressions.finish(&mut request);
        // Placeholders for values are no part of this request.
        if let Some(members) = request.as_object_mut() {
            members.remove("ExpressionAttributeValues");
        }
        requests.insert(table.name.to_owned(), request);
    }
    if dice.fault(40) {
        requests.insert("nowhere".to_owned(), json!({"Keys": [{"pk": {"S": "a"}}]}));
    }
    json!({"RequestItems": requests})
}

fn batch_write(dice: &Dice) -> Json {
    let mut requests = Map::new();
    for _ in 0..=dice.below(2) {
        let table = schema::table(dice);
        let mut writes: Vec<Json> = (0..=dice.below(4))
            .map(|_| match dice.below(12) {
                0 if dice.fault(8) => json!({}),
                1..5 => json!({"DeleteRequest": {"Key": schema::key(dice, table)}}),
                _ => json!({"PutRequest": {"Item": schema::item(dice, table)}}),
            })
            .collect();
        distinct(dice, &mut writes, |write| {
            let item = &write["PutRequest"]["Item"];
            let key = if item.is_null() { &write["DeleteRequest"]["Key"] } else { item };
            format!("{} {}", key["pk"], key["sk"])
        });
        requests.insert(table.name.to_owned(), json!(writes));
    }
    json!({"RequestItems": requests})
}

fn transact_get(dice: &Dice) -> Json {
    let mut gets: Vec<Json> = (0..=dice.below(3))
        .map(|_| {
            let table = schema::table(dice);
            let mut get = json!({"TableName": table.name, "Key": schema::key(dice, table)});
            if dice.one_in(3) {
                let mut expressions = Expressions::new(dice);
                get["ProjectionExpression"] = json!(expressions.projection());
                expressions.finish(&mut get);
                if let Some(members) = get.as_object_mut() {
                    members.remove("ExpressionAttributeValues");
                }
            }
            json!({"Get": get})
        })
        .collect();
    distinct(dice, &mut gets, |get| format!("{} {}", get["Get"]["TableName"], get["Get"]["Key"]));
    json!({"TransactItems": gets})
}

fn transact_write(dice: &Dice) -> Json {
    let mut writes: Vec<Json> = (0..=dice.below(3))
        .map(|_| {
            let table = schema::table(dice);
            let standing = WriteContext::Transaction;
            match dice.below(8) {
                0..3 => json!({"Put": put(dice, table, standing)}),
                3..6 => json!({"Update": update(dice, table, standing)}),
                6 => json!({"Delete": delete(dice, table, standing)}),
                _ => {
                    let mut check =
                        json!({"TableName": table.name, "Key": schema::key(dice, table)});
                    let mut expressions = Expressions::new(dice);
                    check["ConditionExpression"] = json!(expressions.condition());
                    expressions.finish(&mut check);
                    json!({"ConditionCheck": check})
                }
            }
        })
        .collect();
    distinct(dice, &mut writes, |write| {
        let write = write.as_object().and_then(|members| members.values().next());
        let write = write.cloned().unwrap_or_default();
        let key = if write["Key"].is_null() { &write["Item"] } else { &write["Key"] };
        format!("{} {} {}", write["TableName"], key["pk"], key["sk"])
    });
    json!({"TransactItems": writes})
}

fn execute_statement(dice: &Dice) -> Json {
    let mut body = Statement::any(dice);
    if dice.one_in(10) {
        body["ConsistentRead"] = json!(true);
    }
    body
}

fn batch_statements(dice: &Dice) -> Json {
    let are_reads = dice.one_in(2);
    let one = |_| if are_reads { Statement::select(dice) } else { Statement::write(dice) };
    json!({"Statements": (0..=dice.below(3)).map(one).collect::<Vec<_>>()})
}

fn statement_transaction(dice: &Dice) -> Json {
    let are_reads = dice.one_in(2);
    let one = |_| if are_reads { Statement::select(dice) } else { Statement::write(dice) };
    json!({"TransactStatements": (0..=dice.below(3)).map(one).collect::<Vec<_>>()})
}

/// Makes one thing somewhere in a body wrong.
pub fn damage(dice: &Dice, body: &mut Json) {
    let mut paths = Vec::new();
    collect_paths(body, String::new(), &mut paths);
    if paths.is_empty() {
        return;
    }
    let path = dice.pick(&paths).clone();
    let Some((parent, last)) = path.rsplit_once('/') else { return };
    let last = last.replace("~1", "/").replace("~0", "~");
    let Some(parent) = body.pointer_mut(parent) else { return };
    match (dice.below(4), parent) {
        (0 | 1, Json::Object(members)) => drop(members.remove(&last)),
        (2, Json::Object(members)) => {
            drop(members.insert(dice.pick(MEMBERS).to_string(), wrong(dice)));
        }
        (_, Json::Object(members)) => drop(members.insert(last, wrong(dice))),
        (0, Json::Array(elements)) => drop(elements.pop()),
        (_, Json::Array(elements)) => {
            let again = elements.first().cloned().unwrap_or_else(|| wrong(dice));
            elements.push(if dice.one_in(2) { again } else { wrong(dice) });
        }
        _ => {}
    }
}

const MEMBERS: &[&str] = &[
    "ReturnValues",
    "AttributesToGet",
    "ProjectionExpression",
    "ConditionExpression",
    "Expected",
    "FilterExpression",
    "KeyConditions",
    "Limit",
    "Select",
    "TableName",
    "IndexName",
    "Unknown",
    "ReturnConsumedCapacity",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
    "Key",
];

fn wrong(dice: &Dice) -> Json {
    match dice.below(10) {
        0 => json!(null),
        1 => json!(1),
        2 => json!("text"),
        3 => json!([]),
        4 => json!({}),
        5 => json!(true),
        6 => json!(-1),
        7 => json!({"S": "a"}),
        8 => json!("pk"),
        _ => json!(""),
    }
}

fn collect_paths(body: &Json, at: String, paths: &mut Vec<String>) {
    let mut enter = |name: String, member: &Json| {
        let path = format!("{at}/{name}");
        paths.push(path.clone());
        collect_paths(member, path, paths);
    };
    match body {
        Json::Object(members) => {
            for (name, member) in members {
                enter(name.replace('~', "~0").replace('/', "~1"), member);
            }
        }
        Json::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                enter(at.to_string(), element);
            }
        }
        _ => {}
    }
}

/// The names of the tables that every case starts with.
pub fn table_names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|table| table.name)
}
