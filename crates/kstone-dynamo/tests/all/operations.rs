//! Each operation's request and response, as JSON.

use kstone_dynamo::DoorOptions;
use serde_json::{Value, json};

use crate::server::Server;

/// A server with a table `orders` that has a local and a global index and a stream.
async fn server_with_orders() -> Server {
    let server = Server::start(DoorOptions::default()).await;
    let table = json!({
        "TableName": "orders",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
            {"AttributeName": "day", "AttributeType": "S"},
            {"AttributeName": "state", "AttributeType": "S"},
        ],
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "LocalSecondaryIndexes": [{
            "IndexName": "by-day",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "day", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }],
        "GlobalSecondaryIndexes": [{
            "IndexName": "by-state",
            "KeySchema": [
                {"AttributeName": "state", "KeyType": "HASH"},
                {"AttributeName": "day", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["total"]},
        }],
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "Tags": [{"Key": "team", "Value": "sales"}],
    });
    let made = call(&server, "CreateTable", table).await;
    assert_eq!(made["TableDescription"]["TableStatus"], "ACTIVE");
    server
}

async fn call(server: &Server, operation: &str, body: Value) -> Value {
    server.call(operation, &body.to_string()).await.assert_ok().json()
}

/// The type and message of a refused request.
async fn refused(server: &Server, operation: &str, body: Value) -> (String, String) {
    let answer = server.call(operation, &body.to_string()).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    let json = answer.json();
    let message = json.get("message").or(json.get("Message")).and_then(Value::as_str);
    (answer.error(), message.unwrap_or_default().to_owned())
}

fn order(number: u32) -> Value {
    json!({
        "pk": {"S": "alice"},
        "sk": {"N": number.to_string()},
        "day": {"S": format!("2026-11-{number:02}")},
        "state": {"S": "open"},
        "total": {"N": "12.50"},
        "data": {"B": "AP8="},
    })
}

async fn put_orders(server: &Server, count: u32) {
    for number in 1..=count {
        let item = json!({"TableName": "orders", "Item": order(number)});
        assert_eq!(call(server, "PutItem", item).await, json!({}));
    }
}

#[tokio::test]
async fn a_table_is_described_with_everything_it_was_made_from() {
    let server = server_with_orders().await;
    let table = call(&server, "DescribeTable", json!({"TableName": "orders"})).await;
    let table = &table["Table"];
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders";
    assert_eq!(table["TableArn"], arn);
    assert_eq!(table["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST");
    assert_eq!(table["AttributeDefinitions"].as_array().unwrap().len(), 4);
    assert_eq!(table["LocalSecondaryIndexes"][0]["IndexArn"], format!("{arn}/index/by-day"));
    let global = &table["GlobalSecondaryIndexes"][0];
    assert_eq!(global["IndexStatus"], "ACTIVE");
    assert_eq!(
        global["Projection"],
        json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": ["total"]})
    );
    let label = table["LatestStreamLabel"].as_str().unwrap();
    assert_eq!(table["LatestStreamArn"], format!("{arn}/stream/{label}"));
    // The name may be given as an ARN.
    let again = call(&server, "DescribeTable", json!({"TableName": arn})).await;
    assert_eq!(again["Table"]["TableId"], table["TableId"]);
    let names = call(&server, "ListTables", json!({})).await;
    assert_eq!(names, json!({"TableNames": ["orders"]}));
}

#[tokio::test]
async fn an_item_goes_in_and_comes_out() {
    let server = server_with_orders().await;
    put_orders(&server, 1).await;
    let key = json!({"pk": {"S": "alice"}, "sk": {"N": "1.0"}});
    let got = call(
        &server,
        "GetItem",
        json!({"TableName": "orders", "Key": key, "ReturnConsumedCapacity": "TOTAL"}),
    )
    .await;
    let mut want = order(1);
    want["total"]["N"] = "12.5".into();
    assert_eq!(got["Item"], want);
    assert_eq!(got["ConsumedCapacity"], json!({"TableName": "orders", "CapacityUnits": 0.5}));
    let updated = call(
        &server,
        "UpdateItem",
        json!({"TableName": "orders", "Key": key, "UpdateExpression": "ADD #t :more",
            "ExpressionAttributeNames": {"#t": "total"},
            "ExpressionAttributeValues": {":more": {"N": "0.25"}}, "ReturnValues": "UPDATED_NEW"}),
    )
    .await;
    assert_eq!(updated, json!({"Attributes": {"total": {"N": "12.75"}}}));
    let failed = json!({"TableName": "orders", "Key": key, "ConditionExpression": "sk > :n",
        "ExpressionAttributeValues": {":n": {"N": "5"}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD"});
    let answer = server.call("DeleteItem", &failed.to_string()).await;
    assert_eq!(answer.error(), "ConditionalCheckFailedException");
    assert_eq!(answer.json()["Item"]["total"]["N"], "12.75");
    let deleted = call(
        &server,
        "DeleteItem",
        json!({"TableName": "orders", "Key": key, "ReturnValues": "ALL_OLD"}),
    )
    .await;
    assert_eq!(deleted["Attributes"]["total"]["N"], "12.75");
    let gone = call(&server, "GetItem", json!({"TableName": "orders", "Key": key})).await;
    assert_eq!(gone, json!({}));
}

#[tokio::test]
async fn a_query_is_read_page_by_page() {
    let server = server_with_orders().await;
    put_orders(&server, 5).await;
    let mut query = json!({"TableName": "orders", "Limit": 2,
        "KeyConditionExpression": "pk = :p AND sk BETWEEN :a AND :b", "ScanIndexForward": false,
        "ExpressionAttributeValues": {":p": {"S": "alice"}, ":a": {"N": "2"}, ":b": {"N": "4"}}});
    let first = call(&server, "Query", query.clone()).await;
    assert_eq!((&first["Count"], &first["ScannedCount"]), (&json!(2), &json!(2)));
    assert_eq!(first["Items"][0]["sk"]["N"], "4");
    assert_eq!(first["LastEvaluatedKey"], json!({"pk": {"S": "alice"}, "sk": {"N": "3"}}));
    query["ExclusiveStartKey"] = first["LastEvaluatedKey"].clone();
    let second = call(&server, "Query", query).await;
    assert_eq!(second["Items"][0]["sk"]["N"], "2");
    assert_eq!(second.get("LastEvaluatedKey"), None);
    let by_state = json!({"TableName": "orders", "IndexName": "by-state",
        "KeyConditions": {
            "state": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "open"}]},
            "day": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "2026-11-0"}]},
        }, "ReturnConsumedCapacity": "INDEXES"});
    let found = call(&server, "Query", by_state).await;
    assert_eq!(found["Count"], 5);
    assert_eq!(found["Items"][0].get("data"), None, "not projected");
    let consumed = &found["ConsumedCapacity"];
    assert!(consumed["GlobalSecondaryIndexes"]["by-state"]["CapacityUnits"].is_number());
    let count = json!({"TableName": "orders", "Select": "COUNT", "FilterExpression": "sk > :n",
        "ExpressionAttributeValues": {":n": {"N": "3"}}});
    let counted = call(&server, "Scan", count).await;
    assert_eq!(counted, json!({"Count": 2, "ScannedCount": 5}));
}

#[tokio::test]
async fn batches_and_transactions_work_on_several_items() {
    let server = server_with_orders().await;
    let puts: Vec<Value> = (1..=3).map(|n| json!({"PutRequest": {"Item": order(n)}})).collect();
    let written = call(&server, "BatchWriteItem", json!({"RequestItems": {"orders": puts}})).await;
    assert_eq!(written, json!({"UnprocessedItems": {}}));
    let key = |n: u32| json!({"pk": {"S": "alice"}, "sk": {"N": n.to_string()}});
    let got = call(
        &server,
        "BatchGetItem",
        json!({"RequestItems": {"orders": {"Keys": [key(1), key(9)],
            "ProjectionExpression": "sk"}}}),
    )
    .await;
    assert_eq!(got, json!({"Responses": {"orders": [{"sk": {"N": "1"}}]}, "UnprocessedKeys": {}}));
    let change = json!({"TransactItems": [
        {"ConditionCheck": {"TableName": "orders", "Key": key(1),
            "ConditionExpression": "attribute_exists(pk)"}},
        {"Update": {"TableName": "orders", "Key": key(2), "UpdateExpression": "SET #s = :s",
            "ExpressionAttributeNames": {"#s": "state"},
            "ExpressionAttributeValues": {":s": {"S": "shut"}}}},
        {"Delete": {"TableName": "orders", "Key": key(3)}},
        {"Put": {"TableName": "orders", "Item": order(4)}},
    ], "ReturnConsumedCapacity": "TOTAL"});
    let changed = call(&server, "TransactWriteItems", change).await;
    assert!(changed["ConsumedCapacity"][0]["WriteCapacityUnits"].is_number());
    let gets: Vec<Value> =
        [2, 3].iter().map(|n| json!({"Get": {"TableName": "orders", "Key": key(*n)}})).collect();
    let read = call(&server, "TransactGetItems", json!({"TransactItems": gets})).await;
    assert_eq!(read["Responses"][0]["Item"]["state"]["S"], "shut");
    assert_eq!(read["Responses"][1], json!({}));
    let failing = json!({"TransactItems": [
        {"Delete": {"TableName": "orders", "Key": key(1)}},
        {"Put": {"TableName": "orders", "Item": order(4),
            "ConditionExpression": "attribute_not_exists(pk)"}},
    ]});
    let answer = server.call("TransactWriteItems", &failing.to_string()).await;
    assert_eq!(answer.error(), "TransactionCanceledException");
    let codes = answer.json()["CancellationReasons"].clone();
    assert_eq!(codes[0], json!({"Code": "None"}));
    assert_eq!(codes[1]["Code"], "ConditionalCheckFailed");
    let still = call(&server, "GetItem", json!({"TableName": "orders", "Key": key(1)})).await;
    assert!(still["Item"].is_object());
}

#[tokio::test]
async fn statements_are_run() {
    let server = server_with_orders().await;
    put_orders(&server, 2).await;
    let select = json!({"Statement": "SELECT sk FROM orders WHERE pk = ? AND sk = ?",
        "Parameters": [{"S": "alice"}, {"N": "2"}]});
    let found = call(&server, "ExecuteStatement", select).await;
    assert_eq!(found["Items"], json!([{"sk": {"N": "2"}}]));
    let batch = json!({"Statements": [
        {"Statement": "SELECT * FROM orders WHERE pk='alice' AND sk=1"},
        {"Statement": "SELECT * FROM missing WHERE pk='alice'"},
    ]});
    let several = call(&server, "BatchExecuteStatement", batch).await;
    assert_eq!(several["Responses"][0]["TableName"], "orders");
    assert_eq!(several["Responses"][0]["Item"]["pk"]["S"], "alice");
    assert!(several["Responses"][1]["Error"]["Code"].is_string());
    let transaction = json!({"TransactStatements": [
        {"Statement": "UPDATE orders SET total=1 WHERE pk='alice' AND sk=1"},
    ]});
    call(&server, "ExecuteTransaction", transaction).await;
    let key = json!({"pk": {"S": "alice"}, "sk": {"N": "1"}});
    let got = call(&server, "GetItem", json!({"TableName": "orders", "Key": key})).await;
    assert_eq!(got["Item"]["total"]["N"], "1");
}

#[tokio::test]
async fn a_stream_tells_what_happened() {
    let server = server_with_orders().await;
    put_orders(&server, 1).await;
    let call_streams = async |operation: &str, body: Value| {
        let request = crate::server::request(operation, &body.to_string())
            .replace("DynamoDB_20120810", "DynamoDBStreams_20120810");
        let mut client = server.connect().await;
        client.send(request.as_bytes()).await;
        client.answer().await.assert_ok().json()
    };
    let listed = call_streams("ListStreams", json!({"TableName": "orders"})).await;
    let arn = listed["Streams"][0]["StreamArn"].clone();
    let stream = call_streams("DescribeStream", json!({"StreamArn": arn})).await;
    let stream = &stream["StreamDescription"];
    assert_eq!(stream["StreamStatus"], "ENABLED");
    assert_eq!(stream["KeySchema"][0], json!({"AttributeName": "pk", "KeyType": "HASH"}));
    let mut records = Vec::new();
    for shard in stream["Shards"].as_array().unwrap() {
        let iterator = call_streams(
            "GetShardIterator",
            json!({"StreamArn": arn, "ShardId": shard["ShardId"],
                "ShardIteratorType": "TRIM_HORIZON"}),
        )
        .await;
        let page = call_streams("GetRecords", iterator).await;
        assert!(page["NextShardIterator"].is_string());
        records.extend(page["Records"].as_array().unwrap().clone());
    }
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["eventName"], "INSERT");
    assert_eq!(records[0]["dynamodb"]["NewImage"]["pk"]["S"], "alice");
    assert_eq!(records[0]["dynamodb"]["Keys"]["sk"]["N"], "1");
}

#[tokio::test]
async fn the_two_styles_of_parameters_do_not_mix() {
    let server = server_with_orders().await;
    let mixed = json!({"TableName": "orders", "Item": order(1), "Expected": {},
        "ConditionExpression": "attribute_exists(pk)"});
    assert_eq!(
        refused(&server, "PutItem", mixed).await.1,
        "Can not use both expression and non-expression parameters in the same request: \
         Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}"
    );
    let query = json!({"TableName": "orders",
        "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]}},
        "FilterExpression": "attribute_not_exists(colour)"});
    call(&server, "Query", query).await;
    let names = json!({"TableName": "orders", "Key": {"pk": {"S": "a"}, "sk": {"N": "1"}},
        "ExpressionAttributeNames": {"#a": "b"}});
    assert_eq!(
        refused(&server, "GetItem", names).await.1,
        "ExpressionAttributeNames can only be specified when using expressions"
    );
    let values = json!({"TableName": "orders", "ExpressionAttributeValues": {":a": {"S": "b"}}});
    assert_eq!(
        refused(&server, "Query", values).await.1,
        "ExpressionAttributeValues can only be specified when using expressions: FilterExpression \
         and KeyConditionExpression are null"
    );
}

#[tokio::test]
async fn errors_come_in_the_order_of_dynamodb() {
    let server = server_with_orders().await;
    // A wrong type inside the last parameter, a bad value in the first, a missing table.
    let body = r#"{"TableName":"none","Item":{"a":{"SS":[]}},"ConditionExpression":"x",
        "ExpressionAttributeValues":{":v":{"L":[{"S":1}]}}}"#;
    let answer = server.call("PutItem", body).await;
    assert_eq!(answer.error(), "SerializationException");
    assert_eq!(answer.json()["Message"], "NUMBER_VALUE cannot be converted to String");
    let body = body.replace("\"S\":1", "\"N\":\"x\"");
    let answer = server.call("PutItem", &body).await;
    assert_eq!(
        answer.json()["message"],
        "One or more parameter values were invalid: An string set  may not be empty"
    );
    let body = body.replace(r#"{"SS":[]}"#, r#"{"S":"x"}"#);
    let answer = server.call("PutItem", &body).await;
    assert_eq!(
        answer.json()["message"],
        "ExpressionAttributeValues contains invalid value: The parameter cannot be converted to a \
         numeric value: x for key :v"
    );
    let body = body.replace(":v", "v");
    let answer = server.call("PutItem", &body).await;
    assert_eq!(
        answer.json()["message"],
        "ExpressionAttributeValues contains invalid key: Syntax error; key: \"v\""
    );
}

#[tokio::test]
async fn limits_and_endpoints_are_told() {
    let server = Server::start(DoorOptions::default()).await;
    let limits = call(&server, "DescribeLimits", json!({})).await;
    assert_eq!(limits["TableMaxReadCapacityUnits"], 40_000);
    let endpoints = call(&server, "DescribeEndpoints", json!({})).await;
    assert_eq!(endpoints["Endpoints"][0]["Address"], "localhost", "as the client reached it");
}

#[tokio::test]
async fn a_table_is_called_in_the_answer_what_the_request_called_it() {
    let server = server_with_orders().await;
    put_orders(&server, 1).await;
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders";
    let key = json!({"pk": {"S": "alice"}, "sk": {"N": "1"}});
    for name in ["orders", arn] {
        let get = json!({"TableName": name, "Key": key, "ReturnConsumedCapacity": "TOTAL"});
        let got = call(&server, "GetItem", get.clone()).await;
        assert_eq!(got["ConsumedCapacity"]["TableName"], name);
        let batch =
            json!({"RequestItems": {name: {"Keys": [key]}}, "ReturnConsumedCapacity": "TOTAL"});
        let got = call(&server, "BatchGetItem", batch).await;
        assert_eq!(got["Responses"][name].as_array().map(Vec::len), Some(1));
        assert_eq!(got["ConsumedCapacity"][0]["TableName"], name);
        let batch = json!({
            "RequestItems": {name: [{"PutRequest": {"Item": order(2)}}]},
            "ReturnConsumedCapacity": "TOTAL", "ReturnItemCollectionMetrics": "SIZE",
        });
        let put = call(&server, "BatchWriteItem", batch).await;
        assert_eq!(put["ConsumedCapacity"][0]["TableName"], name);
        assert!(put["ItemCollectionMetrics"][name].is_array(), "{put}");
        let transaction = json!({
            "TransactItems": [{"Get": {"TableName": name, "Key": key}}],
            "ReturnConsumedCapacity": "TOTAL",
        });
        let got = call(&server, "TransactGetItems", transaction).await;
        assert_eq!(got["ConsumedCapacity"][0]["TableName"], name);
        let transaction = json!({
            "TransactItems": [{"Delete": {"TableName": name, "Key": key}}],
            "ReturnConsumedCapacity": "TOTAL",
        });
        let deleted = call(&server, "TransactWriteItems", transaction).await;
        assert_eq!(deleted["ConsumedCapacity"][0]["TableName"], name);
        put_orders(&server, 1).await;
    }
}

#[tokio::test]
async fn a_table_is_named_once_in_a_batch() {
    let server = server_with_orders().await;
    put_orders(&server, 2).await;
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders";
    let keys = |number: &str| json!({"Keys": [{"pk": {"S": "alice"}, "sk": {"N": number}}]});
    let both = json!({"RequestItems": {"orders": keys("1"), arn: keys("2")}});
    assert_eq!(refused(&server, "BatchGetItem", both).await.0, "ValidationException");
    let put = |number: u32| json!([{"PutRequest": {"Item": order(number)}}]);
    let both = json!({"RequestItems": {"orders": put(3), arn: put(4)}});
    assert_eq!(refused(&server, "BatchWriteItem", both).await.0, "ValidationException");
    // The same name twice is what any reader of JSON makes of it: the last counts.
    let twice = format!(r#"{{"RequestItems":{{"orders":{},"orders":{}}}}}"#, keys("1"), keys("2"));
    let answer = server.call("BatchGetItem", &twice).await.assert_ok();
    assert_eq!(answer.text().matches("\"orders\"").count(), 1);
    assert_eq!(answer.json()["Responses"]["orders"][0]["sk"]["N"], "2");
}

#[tokio::test]
async fn tags_are_kept_by_arn() {
    let server = server_with_orders().await;
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders";
    let more = json!({"ResourceArn": arn, "Tags": [{"Key": "cost", "Value": "12"}]});
    assert_eq!(call(&server, "TagResource", more).await, json!({}));
    let fewer = json!({"ResourceArn": arn, "TagKeys": ["team", "unknown"]});
    assert_eq!(call(&server, "UntagResource", fewer).await, json!({}));
    let listed = call(&server, "ListTagsOfResource", json!({"ResourceArn": arn})).await;
    assert_eq!(listed, json!({"Tags": [{"Key": "cost", "Value": "12"}]}));
    let missing = arn.replace("orders", "missing");
    let tag = json!({"ResourceArn": missing, "Tags": [{"Key": "a", "Value": "b"}]});
    let (kind, message) = refused(&server, "TagResource", tag).await;
    assert_eq!(kind, "ResourceNotFoundException");
    assert_eq!(message, format!("Requested resource not found: ResourcArn: {missing} not found"));
    let (kind, _) = refused(&server, "ListTagsOfResource", json!({"ResourceArn": missing})).await;
    assert_eq!(kind, "AccessDeniedException");
    let (kind, message) =
        refused(&server, "ListTagsOfResource", json!({"ResourceArn": "orders"})).await;
    assert_eq!(kind, "ValidationException");
    assert_eq!(message, "Invalid TableArn: Invalid ResourceArn provided as input orders");
}

#[tokio::test]
async fn time_to_live_is_switched_on_and_described() {
    let server = server_with_orders().await;
    let describe = json!({"TableName": "orders"});
    let off = call(&server, "DescribeTimeToLive", describe.clone()).await;
    assert_eq!(off, json!({"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}));
    let wanted = json!({"AttributeName": "until", "Enabled": true});
    let update = json!({"TableName": "orders", "TimeToLiveSpecification": wanted});
    let switched = call(&server, "UpdateTimeToLive", update).await;
    assert_eq!(switched, json!({"TimeToLiveSpecification": wanted}));
    let on = call(&server, "DescribeTimeToLive", describe).await;
    assert_eq!(
        on["TimeToLiveDescription"],
        json!({"TimeToLiveStatus": "ENABLED", "AttributeName": "until"})
    );
    let mut expired = order(1);
    expired["until"] = json!({"N": "1"});
    // Five years and more in the past do not count: an expiry of one second after 1970 is a
    // mistake, and the item stays.
    call(&server, "PutItem", json!({"TableName": "orders", "Item": expired})).await;
    let key = json!({"pk": {"S": "alice"}, "sk": {"N": "1"}});
    let got = call(&server, "GetItem", json!({"TableName": "orders", "Key": key})).await;
    assert_eq!(got["Item"]["until"]["N"], "1");
}

#[tokio::test]
async fn a_table_is_changed_and_deleted() {
    let server = server_with_orders().await;
    let change = json!({"TableName": "orders",
        "AttributeDefinitions": [{"AttributeName": "customer", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [{"Create": {"IndexName": "by-customer",
            "KeySchema": [{"AttributeName": "customer", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"}}}]});
    let changed = call(&server, "UpdateTable", change).await;
    let indexes = changed["TableDescription"]["GlobalSecondaryIndexes"].as_array().unwrap();
    assert_eq!(indexes.len(), 2);
    let nothing = refused(&server, "UpdateTable", json!({"TableName": "orders"})).await;
    assert_eq!(nothing.0, "ValidationException");
    // A table is not deleted while an index of it is being made.
    let is_made = async || {
        let table = call(&server, "DescribeTable", json!({"TableName": "orders"})).await;
        let indexes = table["Table"]["GlobalSecondaryIndexes"].as_array().unwrap().clone();
        indexes.iter().all(|index| index["IndexStatus"] == "ACTIVE")
    };
    while !is_made().await {
        tokio::task::yield_now().await;
    }
    let deleted = call(&server, "DeleteTable", json!({"TableName": "orders"})).await;
    assert_eq!(deleted["TableDescription"]["TableStatus"], "DELETING");
    let (kind, message) = refused(&server, "DescribeTable", json!({"TableName": "orders"})).await;
    assert_eq!(kind, "ResourceNotFoundException");
    assert_eq!(message, "Requested resource not found: Table: orders not found");
}
