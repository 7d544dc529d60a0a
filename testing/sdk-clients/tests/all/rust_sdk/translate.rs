//! Items, requests and tables of the model in the SDK's types.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{DisplayErrorContext, SdkError};
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::KeyType as KeyRole;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, GlobalSecondaryIndex, KeySchemaElement,
    Projection, ProjectionType, ScalarAttributeType,
};
use kstone::ops::{GetItem, KeyCondition, Query};
use kstone::table::{KeySchema, KeyType, TableSpec};
use kstone::{Item, Value};

pub type Attributes = HashMap<String, AttributeValue>;

pub fn attributes(item: &Item) -> Attributes {
    item.iter().map(|(name, value)| (name.to_owned(), attribute(value))).collect()
}

pub fn attribute(value: &Value) -> AttributeValue {
    match value {
        Value::S(text) => AttributeValue::S(text.clone()),
        Value::N(number) => AttributeValue::N(number.to_string()),
        Value::B(bytes) => AttributeValue::B(Blob::new(bytes.to_vec())),
        Value::Bool(value) => AttributeValue::Bool(*value),
        Value::Null => AttributeValue::Null(true),
        Value::M(map) => AttributeValue::M(attributes(map)),
        Value::L(list) => AttributeValue::L(list.iter().map(attribute).collect()),
        Value::Ss(set) => AttributeValue::Ss(set.clone()),
        Value::Ns(set) => AttributeValue::Ns(set.iter().map(ToString::to_string).collect()),
        Value::Bs(set) => {
            AttributeValue::Bs(set.iter().map(|bytes| Blob::new(bytes.to_vec())).collect())
        }
    }
}

pub fn item(attributes: &Attributes) -> Item {
    attributes.iter().map(|(name, attribute)| (name.clone(), value(attribute))).collect()
}

pub fn value(attribute: &AttributeValue) -> Value {
    let bytes = |blob: &Blob| Value::from(blob.as_ref());
    match attribute {
        AttributeValue::S(text) => Value::S(text.clone()),
        AttributeValue::N(number) => Value::N(number.parse().unwrap()),
        AttributeValue::B(blob) => bytes(blob),
        AttributeValue::Bool(value) => Value::Bool(*value),
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::M(map) => Value::M(item(map)),
        AttributeValue::L(list) => Value::L(list.iter().map(value).collect()),
        AttributeValue::Ss(set) => Value::string_set(set.clone()).unwrap(),
        AttributeValue::Ns(set) => {
            Value::number_set(set.iter().map(|number| number.parse().unwrap()).collect()).unwrap()
        }
        AttributeValue::Bs(set) => {
            let set = set.iter().map(|blob| blob.as_ref().to_vec().into());
            Value::binary_set(set.collect()).unwrap()
        }
        other => panic!("a type that DynamoDB does not have: {other:?}"),
    }
}

/// The item that a request of the model asks for.
pub async fn get(client: &Client, request: &GetItem) -> Option<Item> {
    let sent = client.get_item().table_name(&request.table).set_key(Some(attributes(&request.key)));
    sent.send().await.unwrap().item.as_ref().map(item)
}

/// All items that a query of the model finds, by the SDK's own paginator.
pub async fn query(client: &Client, request: &Query) -> Vec<Item> {
    let pages = query_builder(client, request).into_paginator().items().send();
    let found: Result<Vec<Attributes>, _> = pages.collect().await;
    match found {
        Ok(found) => found.iter().map(item).collect(),
        Err(error) => panic!("{}", DisplayErrorContext(error)),
    }
}

pub fn query_builder(client: &Client, request: &Query) -> QueryFluentBuilder {
    let Some(KeyCondition::Text(condition)) = &request.key_condition else {
        panic!("the model's queries have a condition");
    };
    let names = request.placeholders.names.clone().map(|names| names.into_iter().collect());
    let values = request.placeholders.values.as_ref().map(|values| {
        values.iter().map(|(name, value)| (name.clone(), attribute(value))).collect()
    });
    client
        .query()
        .table_name(&request.table)
        .set_index_name(request.index.clone())
        .key_condition_expression(condition)
        .set_expression_attribute_names(names)
        .set_expression_attribute_values(values)
        .set_limit(request.limit.map(|limit| i32::try_from(limit).unwrap()))
        .scan_index_forward(!request.backward)
}

/// Makes the table that the model describes.
pub async fn create_table(client: &Client, spec: &TableSpec) -> Result<(), CreateTableError> {
    let mut request = client
        .create_table()
        .table_name(&spec.name)
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(key_schema(&spec.key)));
    let mut defined = Vec::new();
    let keys = std::iter::once(&spec.key).chain(spec.global.iter().map(|index| &index.key));
    for attribute in keys.flat_map(KeySchema::attributes) {
        if !defined.contains(&attribute) {
            defined.push(attribute);
            let definition = AttributeDefinition::builder()
                .attribute_name(&attribute.name)
                .attribute_type(match attribute.kind {
                    KeyType::S => ScalarAttributeType::S,
                    KeyType::N => ScalarAttributeType::N,
                    KeyType::B => ScalarAttributeType::B,
                })
                .build();
            request = request.attribute_definitions(definition.unwrap());
        }
    }
    for index in &spec.global {
        let projection = Projection::builder().projection_type(ProjectionType::All).build();
        let index = GlobalSecondaryIndex::builder()
            .index_name(&index.name)
            .set_key_schema(Some(key_schema(&index.key)))
            .projection(projection)
            .build();
        request = request.global_secondary_indexes(index.unwrap());
    }
    request.send().await.map(drop).map_err(SdkError::into_service_error)
}

pub fn key_schema(key: &KeySchema) -> Vec<KeySchemaElement> {
    let element = |name: &str, role| {
        KeySchemaElement::builder().attribute_name(name).key_type(role).build().unwrap()
    };
    let hash = key.hash.iter().map(|attribute| element(&attribute.name, KeyRole::Hash));
    let range = key.range.iter().map(|attribute| element(&attribute.name, KeyRole::Range));
    hash.chain(range).collect()
}
