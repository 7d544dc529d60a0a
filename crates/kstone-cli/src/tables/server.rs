//! Access to named tables behind a server, in DynamoDB's protocol.

use anyhow::{Context, Result, bail};
use kstone::Item;
use kstone::table::{KeyAttribute, KeySchema, KeyType};
use serde_json::{Map, Value as Json, json};

use crate::tables::{Client, Items, ItemsQuery, TableShape, wire};

/// How often what the server put off is sent again.
const TRIES: usize = 10;

pub fn names(client: &Client) -> Result<Vec<String>> {
    let (mut names, mut request) = (Vec::new(), json!({}));
    loop {
        let answer = client.call("ListTables", &request)?;
        let page = answer["TableNames"].as_array().context("the server sent no table names")?;
        names.extend(page.iter().filter_map(Json::as_str).map(str::to_owned));
        match answer.get("LastEvaluatedTableName") {
            Some(last) => request = json!({ "ExclusiveStartTableName": last }),
            None => return Ok(names),
        }
    }
}

pub fn shape(client: &Client, table: &str) -> Result<TableShape> {
    let answer = client.call("DescribeTable", &json!({ "TableName": table }))?;
    let found = &answer["Table"];
    let definitions = list(&found["AttributeDefinitions"]);
    let indexes = ["LocalSecondaryIndexes", "GlobalSecondaryIndexes"];
    let indexes = indexes.iter().flat_map(|kind| list(&found[*kind]));
    Ok(TableShape {
        key: key(&found["KeySchema"], definitions),
        indexes: indexes
            .map(|index| (text(&index["IndexName"]), key(&index["KeySchema"], definitions)))
            .collect(),
        items: found["ItemCount"].as_u64().unwrap_or_default(),
    })
}

fn key(schema: &Json, definitions: &[Json]) -> KeySchema {
    let mut key = KeySchema::default();
    for element in list(schema) {
        let name = text(&element["AttributeName"]);
        let definition = definitions.iter().find(|of| of["AttributeName"] == name.as_str());
        let kind = match definition.and_then(|of| of["AttributeType"].as_str()) {
            Some("N") => KeyType::N,
            Some("B") => KeyType::B,
            _ => KeyType::S,
        };
        let attribute = KeyAttribute { name, kind };
        match element["KeyType"].as_str() {
            Some("RANGE") => key.range.push(attribute),
            _ => key.hash.push(attribute),
        }
    }
    key
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(json: &Json) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

pub fn get(client: &Client, table: &str, key: &Item) -> Result<Option<Item>> {
    let request = json!({
        "TableName": table, "Key": wire::from_item(key), "ConsistentRead": true
    });
    client.call("GetItem", &request)?.get("Item").map(wire::to_item).transpose()
}

pub fn put(client: &Client, table: &str, items: &[Item]) -> Result<()> {
    if let [item] = items {
        let request = json!({ "TableName": table, "Item": wire::from_item(item) });
        client.call("PutItem", &request)?;
        return Ok(());
    }
    let puts = items.iter().map(|item| json!({ "PutRequest": { "Item": wire::from_item(item) } }));
    let mut left = json!({ table: puts.collect::<Vec<_>>() });
    for _ in 0..TRIES {
        let answer = client.call("BatchWriteItem", &json!({ "RequestItems": left }))?;
        match answer.get("UnprocessedItems").and_then(Json::as_object) {
            Some(rest) if !rest.is_empty() => left = json!(rest),
            _ => return Ok(()),
        }
    }
    bail!("{} keeps putting off writes; try again later", client.url)
}

pub fn delete(client: &Client, table: &str, key: &Item) -> Result<bool> {
    let request = json!({
        "TableName": table, "Key": wire::from_item(key), "ReturnValues": "ALL_OLD"
    });
    Ok(client.call("DeleteItem", &request)?.get("Attributes").is_some())
}

pub fn read(client: &Client, ask: &ItemsQuery) -> Result<Items> {
    let mut request = Map::new();
    let mut set = |name: &str, value: Json| request.insert(name.to_owned(), value);
    set("TableName", json!(ask.table));
    if let Some(index) = &ask.index {
        set("IndexName", json!(index));
    }
    if let Some(limit) = ask.limit {
        set("Limit", json!(limit));
    }
    if let Some(start) = &ask.start {
        set("ExclusiveStartKey", wire::from_item(start));
    }
    let operation = match &ask.condition {
        Some(condition) => {
            let names = condition.names.iter().map(|(name, stands_for)| (name, json!(stands_for)));
            let values = condition.values.iter();
            let values = values.map(|(name, value)| (name, wire::from_value(value)));
            set("KeyConditionExpression", json!(condition.text));
            set("ExpressionAttributeNames", object(names));
            set("ExpressionAttributeValues", object(values));
            set("ScanIndexForward", json!(!ask.backward));
            "Query"
        }
        None => {
            if let Some((index, total)) = ask.segment {
                set("Segment", json!(index));
                set("TotalSegments", json!(total));
            }
            "Scan"
        }
    };
    let answer = client.call(operation, &Json::Object(request))?;
    Ok(Items {
        items: list(&answer["Items"]).iter().map(wire::to_item).collect::<Result<_>>()?,
        next: answer.get("LastEvaluatedKey").map(wire::to_item).transpose()?,
    })
}

fn object<'a>(members: impl Iterator<Item = (&'a String, Json)>) -> Json {
    Json::Object(members.map(|(name, value)| (name.clone(), value)).collect())
}
