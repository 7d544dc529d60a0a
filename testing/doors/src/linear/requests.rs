//! The calls of the model as requests of the protocol, and the answers as answers of the model.

use serde_json::{Value as Json, json};

use super::model::{ACCOUNTS, Account, Accounts, Call, WriteResult};
use crate::http::Connection;

/// The table with all accounts.
pub const TABLE: &str = "accounts";
/// The index that has the accounts of a group together.
pub const INDEX: &str = "by_group";

/// The body of the CreateTable request.
pub fn table() -> Json {
    json!({
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [
            {"AttributeName": "id", "AttributeType": "S"},
            {"AttributeName": "grp", "AttributeType": "S"},
        ],
        "GlobalSecondaryIndexes": [{
            "IndexName": INDEX,
            "KeySchema": [
                {"AttributeName": "grp", "KeyType": "HASH"},
                {"AttributeName": "id", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }],
    })
}

/// Why a call has no place in the history.
#[derive(Debug)]
pub enum Failure {
    /// No answer came: it may have been carried out.
    Silence(String),
    /// An answer came that no client should get.
    Unexpected(String),
}

/// One request and its answer.
///
/// # Errors
/// Without an answer.
pub fn ask(door: &mut Connection, operation: &str, body: &Json) -> Result<(u16, Json), Failure> {
    let target = format!("DynamoDB_20120810.{operation}");
    let silence = |error: std::io::Error| Failure::Silence(format!("{operation}: {error}"));
    let answer = door.post(&target, body.to_string().as_bytes()).map_err(silence)?;
    let parsed = serde_json::from_slice(&answer.body)
        .map_err(|error| Failure::Unexpected(format!("{operation}: {error}")))?;
    Ok((answer.status, parsed))
}

fn id(group: usize, at: usize) -> String {
    format!("{group}-{at}")
}

fn key(group: usize, at: usize) -> Json {
    json!({"id": {"S": id(group, at)}})
}

fn number(n: impl ToString) -> Json {
    json!({"N": n.to_string()})
}

fn account_of(item: &Json) -> Option<Account> {
    let version = item["version"]["N"].as_str()?.parse().ok()?;
    let balance = item["balance"]["N"].as_str()?.parse().ok()?;
    Some(Account { version, balance })
}

/// The account of an optional member `Item`; an item that is no account is a failure.
fn optional_account(item: &Json) -> Result<Option<Account>, Failure> {
    match item {
        Json::Null => Ok(None),
        item => match account_of(item) {
            Some(account) => Ok(Some(account)),
            None => Err(Failure::Unexpected(format!("an item that nobody wrote: {item}"))),
        },
    }
}

fn unexpected(operation: &str, answer: &(u16, Json)) -> Failure {
    Failure::Unexpected(format!("{operation} was answered {} {}", answer.0, answer.1))
}

fn is_error(answer: &(u16, Json), name: &str) -> bool {
    answer.0 == 400 && answer.1["__type"].as_str().is_some_and(|given| given.ends_with(name))
}

/// GetItem of an account.
///
/// # Errors
/// Without an answer, or with one that is no account.
pub fn get(door: &mut Connection, group: usize, at: usize) -> Result<Option<Account>, Failure> {
    let body = json!({"TableName": TABLE, "Key": key(group, at), "ConsistentRead": true});
    let answer = ask(door, "GetItem", &body)?;
    if answer.0 != 200 {
        return Err(unexpected("GetItem", &answer));
    }
    optional_account(&answer.1["Item"])
}

/// TransactGetItems of a group. `None` if it met a conflict.
///
/// # Errors
/// Without an answer, or with one that has no accounts.
pub fn transact_get(door: &mut Connection, group: usize) -> Result<Option<Accounts>, Failure> {
    let gets: Vec<Json> = (0..ACCOUNTS)
        .map(|at| json!({"Get": {"TableName": TABLE, "Key": key(group, at)}}))
        .collect();
    let answer = ask(door, "TransactGetItems", &json!({"TransactItems": gets}))?;
    if is_error(&answer, "TransactionCanceledException") && reasons(&answer).contains("Conflict") {
        return Ok(None);
    }
    if answer.0 != 200 {
        return Err(unexpected("TransactGetItems", &answer));
    }
    let mut accounts = [None; ACCOUNTS];
    for (at, account) in accounts.iter_mut().enumerate() {
        *account = optional_account(&answer.1["Responses"][at]["Item"])?;
    }
    Ok(Some(accounts))
}

/// Query of the index that has a group's accounts together.
///
/// # Errors
/// Without an answer, or with one that has something else.
pub fn query_index(door: &mut Connection, group: usize) -> Result<Accounts, Failure> {
    let body = json!({
        "TableName": TABLE,
        "IndexName": INDEX,
        "KeyConditionExpression": "grp = :g",
        "ExpressionAttributeValues": {":g": {"S": group.to_string()}},
    });
    let answer = ask(door, "Query", &body)?;
    let (200, Some(items)) = (answer.0, answer.1["Items"].as_array()) else {
        return Err(unexpected("Query", &answer));
    };
    let mut accounts = [None; ACCOUNTS];
    for item in items {
        let at = (0..ACCOUNTS).find(|at| item["id"]["S"] == id(group, *at).as_str());
        match at {
            Some(at) if accounts[at].is_none() => accounts[at] = optional_account(item)?,
            _ => return Err(unexpected("Query", &answer)),
        }
    }
    Ok(accounts)
}

/// Carries out a call, and fills in its answer. `None` if it met a conflict and did nothing.
///
/// # Errors
/// Without an answer, or with one that no client should get.
pub fn perform(
    door: &mut Connection,
    group: usize,
    call: &Call,
    token: Option<&str>,
) -> Result<Option<Call>, Failure> {
    Ok(Some(match call.clone() {
        Call::Get(at, _) => Call::Get(at, get(door, group, at)?),
        Call::ReadAll(_) => match transact_get(door, group)? {
            Some(accounts) => Call::ReadAll(accounts),
            None => return Ok(None),
        },
        Call::Put { at, expected, account, .. } => {
            let mut body = json!({
                "TableName": TABLE,
                "Item": {
                    "id": {"S": id(group, at)},
                    "grp": {"S": group.to_string()},
                    "version": number(account.version),
                    "balance": number(account.balance),
                },
                "ConditionExpression": "attribute_not_exists(id)",
            });
            if let Some(version) = expected {
                body["ConditionExpression"] = json!("version = :v");
                body["ExpressionAttributeValues"] = json!({":v": number(version)});
            }
            let told = conditional(door, "PutItem", body)?;
            Call::Put { at, expected, account, told }
        }
        Call::Delete { at, expected, .. } => {
            let body = json!({
                "TableName": TABLE,
                "Key": key(group, at),
                "ConditionExpression": "#v = :v",
                "ExpressionAttributeNames": {"#v": "version"},
                "ExpressionAttributeValues": {":v": number(expected)},
            });
            Call::Delete { at, expected, told: conditional(door, "DeleteItem", body)? }
        }
        Call::Add { at, amount, .. } => {
            let body = json!({
                "TableName": TABLE,
                "Key": key(group, at),
                "UpdateExpression": "SET grp = :g ADD balance :b, version :one",
                "ExpressionAttributeValues": {
                    ":g": {"S": group.to_string()},
                    ":b": number(amount),
                    ":one": number(1),
                },
                "ReturnValues": "ALL_NEW",
            });
            let answer = ask(door, "UpdateItem", &body)?;
            match account_of(&answer.1["Attributes"]) {
                Some(account) if answer.0 == 200 => Call::Add { at, amount, after: Some(account) },
                _ => return Err(unexpected("UpdateItem", &answer)),
            }
        }
        Call::Transfer { from, to, amount, .. } => {
            let body = transfer(group, from, to, amount, token);
            let answer = ask(door, "TransactWriteItems", &body)?;
            let done = if answer.0 == 200 {
                true
            } else if is_error(&answer, "TransactionCanceledException") {
                let reasons = reasons(&answer);
                match reasons.contains("ConditionalCheckFailed") {
                    true => false,
                    false if reasons.contains("Conflict") => return Ok(None),
                    false => return Err(unexpected("TransactWriteItems", &answer)),
                }
            } else {
                return Err(unexpected("TransactWriteItems", &answer));
            };
            Call::Transfer { from, to, amount, done: Some(done) }
        }
    }))
}

/// The codes of a cancelled transaction.
fn reasons(answer: &(u16, Json)) -> String {
    answer.1["CancellationReasons"].to_string()
}

fn conditional(
    door: &mut Connection,
    operation: &str,
    mut body: Json,
) -> Result<WriteResult, Failure> {
    body["ReturnValuesOnConditionCheckFailure"] = json!("ALL_OLD");
    let answer = ask(door, operation, &body)?;
    if answer.0 == 200 {
        Ok(WriteResult::Done)
    } else if is_error(&answer, "ConditionalCheckFailedException") {
        optional_account(&answer.1["Item"]).map(WriteResult::Refused)
    } else {
        Err(unexpected(operation, &answer))
    }
}

fn transfer(group: usize, from: usize, to: usize, amount: i64, token: Option<&str>) -> Json {
    let part = |at: usize, amount: i64, condition: &str, values: Json| {
        let mut values = values;
        values[":change"] = number(amount);
        values[":one"] = number(1);
        json!({"Update": {
            "TableName": TABLE,
            "Key": key(group, at),
            "UpdateExpression": "ADD balance :change, version :one",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
        }})
    };
    let mut body = json!({"TransactItems": [
        part(from, -amount, "balance >= :amount", json!({":amount": number(amount)})),
        part(to, amount, "attribute_exists(id)", json!({})),
    ]});
    if let Some(token) = token {
        body["ClientRequestToken"] = json!(token);
    }
    body
}
