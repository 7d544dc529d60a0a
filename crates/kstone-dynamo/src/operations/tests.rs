//! Randomly corrupted requests are refused and cause no panic; and which operations run on the
//! executor's thread.

use kstone::Database;
use kstone_core::env::{Random, SeededRandom};

use super::{Context, Operation, run_here};
use crate::http::Status;

const TABLE: &str = r#"{"TableName":"abc","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"p","AttributeType":"S"},
        {"AttributeName":"s","AttributeType":"N"}],
    "KeySchema":[{"AttributeName":"p","KeyType":"HASH"},{"AttributeName":"s","KeyType":"RANGE"}],
    "StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"}}"#;

/// Requests that are fine, to spoil.
const REQUESTS: &[(Operation, &str)] = &[
    (
        Operation::PutItem,
        r##"{"TableName":"abc","Item":{"p":{"S":"x"},"s":{"N":"1"},"l":{"L":[{"BOOL":true},{"M":{"a":{"NULL":true}}}]},"b":{"BS":["AQ==","Ag=="]},"n":{"NS":["1","2"]}},"ConditionExpression":"attribute_not_exists(#p) OR #p = :v","ExpressionAttributeNames":{"#p":"p"},"ExpressionAttributeValues":{":v":{"S":"x"}},"ReturnValues":"ALL_OLD","ReturnConsumedCapacity":"INDEXES"}"##,
    ),
    (
        Operation::UpdateItem,
        r#"{"TableName":"abc","Key":{"p":{"S":"x"},"s":{"N":"1"}},"UpdateExpression":"SET a.b[1] = if_not_exists(c, :v), d = list_append(d, :l) REMOVE e ADD f :v DELETE g :s","ExpressionAttributeValues":{":v":{"N":"1"},":l":{"L":[]},":s":{"SS":["a"]}},"ReturnValues":"UPDATED_NEW"}"#,
    ),
    (
        Operation::UpdateItem,
        r#"{"TableName":"abc","Key":{"p":{"S":"x"},"s":{"N":"1"}},"AttributeUpdates":{"a":{"Action":"ADD","Value":{"N":"1"}}},"Expected":{"b":{"ComparisonOperator":"IN","AttributeValueList":[{"S":"a"}]}},"ConditionalOperator":"OR"}"#,
    ),
    (
        Operation::Query,
        r#"{"TableName":"abc","KeyConditionExpression":"p = :p AND s BETWEEN :a AND :b","FilterExpression":"size(l) > :a","ProjectionExpression":"p, l[0].a","ExpressionAttributeValues":{":p":{"S":"x"},":a":{"N":"0"},":b":{"N":"9"}},"Limit":5,"ExclusiveStartKey":{"p":{"S":"x"},"s":{"N":"0"}},"Select":"SPECIFIC_ATTRIBUTES"}"#,
    ),
    (Operation::Scan, r#"{"TableName":"abc","Segment":0,"TotalSegments":2,"ScanFilter":{}}"#),
    (
        Operation::BatchWriteItem,
        r#"{"RequestItems":{"abc":[{"PutRequest":{"Item":{"p":{"S":"x"},"s":{"N":"2"}}}},{"DeleteRequest":{"Key":{"p":{"S":"y"},"s":{"N":"2"}}}}]}}"#,
    ),
    (
        Operation::BatchGetItem,
        r#"{"RequestItems":{"abc":{"Keys":[{"p":{"S":"x"},"s":{"N":"1"}}],"AttributesToGet":["p"]}}}"#,
    ),
    (
        Operation::TransactWriteItems,
        r#"{"TransactItems":[{"Update":{"TableName":"abc","Key":{"p":{"S":"x"},"s":{"N":"1"}},"UpdateExpression":"REMOVE q"}},{"ConditionCheck":{"TableName":"abc","Key":{"p":{"S":"z"},"s":{"N":"1"}},"ConditionExpression":"attribute_not_exists(p)"}}],"ClientRequestToken":"t"}"#,
    ),
    (
        Operation::ExecuteStatement,
        r#"{"Statement":"SELECT p FROM \"abc\" WHERE p = ? AND s IN [1, 2]","Parameters":[{"S":"x"}],"Limit":3}"#,
    ),
    (Operation::CreateTable, TABLE),
    (
        Operation::UpdateTable,
        r#"{"TableName":"abc","AttributeDefinitions":[{"AttributeName":"q","AttributeType":"B"}],"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"byq","KeySchema":[{"AttributeName":"q","KeyType":"HASH"}],"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["z"]}}}]}"#,
    ),
    (
        Operation::GetShardIterator,
        r#"{"StreamArn":"arn:aws:dynamodb:us-east-1:000000000000:table/abc/stream/2026-01-01T00:00:00.000","ShardId":"shardId-00000000000000000000-00000000","ShardIteratorType":"LATEST"}"#,
    ),
    (Operation::GetRecords, r#"{"ShardIterator":"AAAA","Limit":3}"#),
    (
        Operation::TagResource,
        r#"{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/abc","Tags":[{"Key":"a","Value":"b"}]}"#,
    ),
];

/// What replaces a piece of a request.
const PIECES: &[&str] = &[
    "null",
    "true",
    "0",
    "-1",
    "1e400",
    "99999999999999999999",
    "\"\"",
    "\"x\"",
    "[]",
    "{}",
    "[null]",
    "{\"\":null}",
    "\"\\u0000\"",
    "\"é\"",
    ":",
    ",",
    "\"",
    "{",
    "}",
    "[",
    "]",
    "\\",
    "\u{fffd}",
    "#",
    "{\"N\":\"1e125\"}",
    "{\"N\":\"-\"}",
    "{\"B\":\"=\"}",
    "{\"M\":{}}",
    "(",
    ")",
    "NOT ",
    "[9]",
];

#[test]
fn whatever_is_sent_the_answer_is_json_and_an_error_is_the_clients() {
    let context = Context::new(Database::memory().unwrap(), "us-east-1".to_owned());
    run_here(Operation::CreateTable, TABLE.as_bytes(), &context).unwrap();
    let random = SeededRandom::new(7);
    let below = |bound: usize| (random.next_u64() % bound as u64) as usize;
    let mut answered = 0;
    for _ in 0..6000 {
        let (operation, request) = REQUESTS[below(REQUESTS.len())];
        let mut body = request.as_bytes().to_vec();
        for _ in 0..below(3) {
            let from = below(body.len() + 1);
            let to = (from + below(12)).min(body.len());
            let piece = PIECES[below(PIECES.len())].as_bytes();
            body.splice(from..to, piece.iter().copied());
        }
        let answer = run_here(operation, &body, &context);
        answered += usize::from(answer.is_ok());
        if let Err(fault) = &answer {
            let body = String::from_utf8_lossy(&body);
            assert_eq!(fault.status(), Status::BadRequest, "{operation:?} {body}: {fault}");
        }
        let answer = answer.unwrap_or_else(|fault| fault.body());
        serde_json::from_slice::<serde_json::Value>(&answer).unwrap();
    }
    assert!(answered > 500, "only {answered} requests got past the checks");
}

#[test]
fn every_operation_refuses_what_is_not_its_input() {
    let context = Context::new(Database::memory().unwrap(), "us-east-1".to_owned());
    for operation in Operation::ALL {
        for body in ["", "[]", "3", "{\"TableName\":", "\"x\""] {
            let fault = run_here(*operation, body.as_bytes(), &context).unwrap_err();
            assert_eq!(fault.to_string(), "SerializationException: ", "{operation:?} {body}");
        }
    }
}

#[test]
fn nothing_that_takes_locks_runs_on_the_executor_while_writers_wait() {
    for operation in Operation::ALL.iter().filter(|operation| {
        let name = format!("{operation:?}");
        let writes = ["Put", "Update", "Delete", "Write", "Execute", "Create", "Records"];
        writes.iter().any(|part| name.contains(part))
    }) {
        let execution = operation.spec().execution;
        assert!(!execution.is_inline(true, || false), "{operation:?}");
    }
    let is_inline =
        |operation: Operation, room| operation.spec().execution.is_inline(true, || room);
    assert!(is_inline(Operation::PutItem, true), "the usual case");
    assert!(is_inline(Operation::GetItem, false), "reads wait for no room");
}
