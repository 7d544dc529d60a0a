use crate::input_schema::{self, Input};
use crate::json::Json;

/// The error of a body, `Kind: message`; empty if it is fine.
fn error(input: &Input, body: &str) -> String {
    let json = Json::parse(body.as_bytes()).unwrap();
    input_schema::check(input, &json).err().map_or_else(String::new, |fault| fault.to_string())
}

/// The message of a wrong type.
fn type_error(input: &Input, body: &str) -> String {
    let error = error(input, body);
    error.strip_prefix("SerializationException: ").expect(&error).to_owned()
}

/// The message of broken constraints.
fn constraints(input: &Input, body: &str) -> String {
    let error = error(input, body);
    error.strip_prefix("ValidationException: ").expect(&error).to_owned()
}

#[test]
fn scalars_of_the_wrong_type_are_named_as_java_names_them() {
    for (given, message) in [
        ("true", "TRUE_VALUE cannot be converted to String"),
        ("false", "FALSE_VALUE cannot be converted to String"),
        ("23", "NUMBER_VALUE cannot be converted to String"),
        ("34.56", "DECIMAL_VALUE cannot be converted to String"),
        ("[]", "Unrecognized collection type class java.lang.String"),
        ("{}", "Start of structure or map found where not expected"),
    ] {
        let body = format!(r#"{{"TableName":{given}}}"#);
        assert_eq!(type_error(&input_schema::GET_ITEM, &body), message);
    }
    for (given, message) in [
        ("\"23\"", "STRING_VALUE cannot be converted to Integer"),
        ("true", "TRUE_VALUE cannot be converted to Integer"),
        ("[]", "Unrecognized collection type class java.lang.Integer"),
        ("{}", "Start of structure or map found where not expected"),
    ] {
        let body = format!(r#"{{"Limit":{given}}}"#);
        assert_eq!(type_error(&input_schema::SCAN, &body), message);
    }
    for (given, message) in [
        ("\"23\"", "Unexpected token received from parser"),
        ("23", "NUMBER_VALUE cannot be converted to Boolean"),
        ("34.56", "DECIMAL_VALUE cannot be converted to Boolean"),
        ("[]", "Unrecognized collection type class java.lang.Boolean"),
        ("{}", "Start of structure or map found where not expected"),
    ] {
        let body = format!(r#"{{"ConsistentRead":{given}}}"#);
        assert_eq!(type_error(&input_schema::GET_ITEM, &body), message);
    }
    let units = r#"{"ProvisionedThroughput":{"ReadCapacityUnits":"1"}}"#;
    assert_eq!(
        type_error(&input_schema::CREATE_TABLE, units),
        "STRING_VALUE cannot be converted to Long"
    );
}

#[test]
fn collections_of_the_wrong_type_depend_on_where_they_stand() {
    const CAST: &str = "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot \
        be cast to class java.lang.Class \
        (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in \
        module java.base of loader 'bootstrap')";
    let package = "com.amazonaws.dynamodb.v20120810.";
    for (input, body, message) in [
        (&input_schema::GET_ITEM, r#"{"Key":"a"}"#, "Unexpected field type".to_owned()),
        (
            &input_schema::GET_ITEM,
            r#"{"Key":[]}"#,
            format!(
                "Unrecognized collection type java.util.Map<java.lang.String, {package}AttributeValue>"
            ),
        ),
        (
            &input_schema::GET_ITEM,
            r#"{"ExpressionAttributeNames":[]}"#,
            "Unrecognized collection type java.util.Map<java.lang.String, java.lang.String>"
                .to_owned(),
        ),
        (&input_schema::GET_ITEM, r#"{"AttributesToGet":1}"#, "Unexpected field type".to_owned()),
        (
            &input_schema::GET_ITEM,
            r#"{"AttributesToGet":{}}"#,
            "Start of structure or map found where not expected".to_owned(),
        ),
        (
            &input_schema::GET_ITEM,
            r#"{"Key":{"a":"b"}}"#,
            "Unexpected value type in payload".to_owned(),
        ),
        (
            &input_schema::GET_ITEM,
            r#"{"Key":{"a":[]}}"#,
            format!("Unrecognized collection type class {package}AttributeValue"),
        ),
        (&input_schema::BATCH_WRITE_ITEM, r#"{"RequestItems":{"t":1}}"#, CAST.to_owned()),
        (&input_schema::BATCH_GET_ITEM, r#"{"RequestItems":{"t":{"Keys":[1]}}}"#, CAST.to_owned()),
        (
            &input_schema::BATCH_WRITE_ITEM,
            r#"{"RequestItems":{"t":[{"PutRequest":1}]}}"#,
            "Unexpected field type".to_owned(),
        ),
        (
            &input_schema::BATCH_WRITE_ITEM,
            r#"{"RequestItems":{"t":["a"]}}"#,
            "Unexpected value type in payload".to_owned(),
        ),
        (
            &input_schema::CREATE_TABLE,
            r#"{"KeySchema":[[]]}"#,
            format!("Unrecognized collection type class {package}KeySchemaElement"),
        ),
    ] {
        assert_eq!(type_error(input, body), message, "{body}");
    }
}

#[test]
fn types_inside_attribute_values_are_checked_all_the_way_down() {
    for (value, message) in [
        (r#"{"S":1}"#, "NUMBER_VALUE cannot be converted to String"),
        (r#"{"N":1}"#, "NUMBER_VALUE cannot be converted to String"),
        (r#"{"BOOL":1}"#, "NUMBER_VALUE cannot be converted to Boolean"),
        (r#"{"B":true}"#, "only base-64-encoded strings are convertible to bytes"),
        (
            r#"{"B":"23456"}"#,
            "Base64 encoded length is expected a multiple of 4 bytes but found: 5",
        ),
        (r#"{"B":"+/+="}"#, "Invalid last non-pad Base64 character dectected"),
        (r#"{"B":"=+/="}"#, "Invalid last non-pad Base64 character dectected"),
        (r#"{"BS":["a"]}"#, "Base64 encoded length is expected a multiple of 4 bytes but found: 1"),
        (r#"{"SS":"a"}"#, "Unexpected field type"),
        (r#"{"SS":[1]}"#, "NUMBER_VALUE cannot be converted to String"),
        (r#"{"L":[1]}"#, "Unexpected value type in payload"),
        (r#"{"L":[{"M":{"a":{"NS":{}}}}]}"#, "Start of structure or map found where not expected"),
    ] {
        // A missing table name brings up the whole list of types.
        let body = format!(r#"{{"Item":{{"a":{value}}}}}"#);
        assert_eq!(type_error(&input_schema::PUT_ITEM, &body), message, "{value}");
    }
}

#[test]
fn a_wrong_type_goes_before_broken_constraints() {
    let body = r#"{"TableName":"","ReturnValues":"x","Item":{"a":{"S":1}}}"#;
    assert_eq!(
        type_error(&input_schema::PUT_ITEM, body),
        "NUMBER_VALUE cannot be converted to String"
    );
}

#[test]
fn a_body_that_is_no_object_is_malformed() {
    for body in ["[]", "1", "\"a\"", "null"] {
        assert_eq!(error(&input_schema::LIST_TABLES, body), "SerializationException: ", "{body}");
    }
}

#[test]
fn unknown_and_null_members_are_ignored() {
    let body = r#"{"TableName":"abc","Key":{},"Whatever":{"a":1},"AttributesToGet":null}"#;
    assert_eq!(error(&input_schema::GET_ITEM, body), "");
}

#[test]
fn missing_members_are_listed_together() {
    assert_eq!(
        constraints(&input_schema::PUT_ITEM, "{}"),
        "2 validation errors detected: Value null at 'tableName' failed to satisfy constraint: \
         Member must not be null; Value null at 'item' failed to satisfy constraint: Member must \
         not be null"
    );
}

#[test]
fn broken_constraints_come_in_the_order_of_dynamodb() {
    let body = r#"{"TableName":"abc","ReturnValues":"hi","ReturnItemCollectionMetrics":"hi",
        "ReturnConsumedCapacity":"hi"}"#;
    assert_eq!(
        constraints(&input_schema::PUT_ITEM, body),
        "4 validation errors detected: \
         Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy \
         enum value set: [INDEXES, TOTAL, NONE]; \
         Value null at 'item' failed to satisfy constraint: Member must not be null; \
         Value 'hi' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value \
         set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]; \
         Value 'hi' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must \
         satisfy enum value set: [SIZE, NONE]"
    );
}

#[test]
fn a_bad_table_name_is_reported_alone() {
    let named = |name: &str| format!(r#"{{"TableName":"{name}","ReturnValues":"hi"}}"#);
    let message = |value: &str, demand: &str| {
        format!(
            "1 validation error detected: Value '{value}' at 'tableName' failed to satisfy \
             constraint: Member must {demand}"
        )
    };
    let pattern = "satisfy regular expression pattern: [a-zA-Z0-9_.-]+";
    let long = "a".repeat(256);
    for (input, name, demand) in [
        (&input_schema::PUT_ITEM, "", "have length greater than or equal to 1"),
        (&input_schema::PUT_ITEM, &*long, "have length less than or equal to 255"),
        (&input_schema::PUT_ITEM, "bad table!", pattern),
        (&input_schema::CREATE_TABLE, "ab", "have length greater than or equal to 3"),
        (&input_schema::CREATE_TABLE, "arn:x", pattern),
        (&input_schema::ONE_TABLE, "a b", pattern),
    ] {
        assert_eq!(constraints(input, &named(name)), message(name, demand));
    }
}

#[test]
fn operations_on_tables_ask_for_the_name_first() {
    for input in
        [&input_schema::CREATE_TABLE, &input_schema::ONE_TABLE, &input_schema::UPDATE_TABLE]
    {
        assert_eq!(
            constraints(input, "{}"),
            "The parameter 'TableName' is required but was not present in the request"
        );
    }
}

#[test]
fn an_arn_is_as_good_as_a_name_except_for_a_table_to_be() {
    let body = r#"{"TableName":"arn:aws:dynamodb:us-east-1:000000000000:table/abc","Key":{"a":{"S":"b"}}}"#;
    assert_eq!(error(&input_schema::GET_ITEM, body), "");
    assert_eq!(error(&input_schema::ONE_TABLE, body), "");
}

#[test]
fn nested_members_are_named_by_their_path() {
    let body = r#"{"TableName":"abc","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"},
        {"AttributeName":"b","AttributeType":"X"}],"KeySchema":[{"AttributeName":"a"}]}"#;
    assert_eq!(
        constraints(&input_schema::CREATE_TABLE, body),
        "2 validation errors detected: Value 'X' at 'attributeDefinitions.2.member.attributeType' \
         failed to satisfy constraint: Member must satisfy enum value set: [B, N, S]; Value null \
         at 'keySchema.1.member.keyType' failed to satisfy constraint: Member must not be null"
    );
}

#[test]
fn a_collection_is_repeated_as_java_prints_it() {
    let element = |name: &str| format!(r#"{{"AttributeName":"{name}","KeyType":"HASH"}}"#);
    let elements: Vec<String> = ["a", "b", "c"].map(element).into();
    let body = format!(
        r#"{{"TableName":"abc","AttributeDefinitions":[],"KeySchema":[{}]}}"#,
        elements.join(",")
    );
    assert_eq!(
        constraints(&input_schema::CREATE_TABLE, &body),
        "1 validation error detected: Value '[KeySchemaElement(attributeName=a, keyType=HASH), \
         KeySchemaElement(attributeName=b, keyType=HASH), KeySchemaElement(attributeName=c, \
         keyType=HASH)]' at 'keySchema' failed to satisfy constraint: Member must have length less \
         than or equal to 2"
    );
    let body = r#"{"RequestItems":{"abc":[]}}"#;
    assert_eq!(
        constraints(&input_schema::BATCH_WRITE_ITEM, body),
        "1 validation error detected: Value '{abc=[]}' at 'requestItems' failed to satisfy \
         constraint: Map value must satisfy constraint: [Member must have length less than or \
         equal to 25, Member must have length greater than or equal to 1]"
    );
}

#[test]
fn what_is_repeated_is_cut_before_it_grows_beyond_the_request() {
    let puts = r#"{"PutRequest":{"Item":{"a":{}}}},"#.repeat(20_000);
    let body = format!(r#"{{"RequestItems":{{"abc":[{}]}}}}"#, puts.trim_end_matches(','));
    let message = constraints(&input_schema::BATCH_WRITE_ITEM, &body);
    assert!(message.len() < 20_000, "{} bytes", message.len());
}

#[test]
fn no_more_than_ten_errors_are_listed() {
    let tags = r#"{"Key":"","Value":"x"},"#.repeat(20);
    let body = format!(
        r#"{{"ResourceArn":"arn:aws:dynamodb:us-east-1:000000000000:table/abc","Tags":[{}]}}"#,
        tags.trim_end_matches(',')
    );
    assert!(
        constraints(&input_schema::TAG_RESOURCE, &body)
            .starts_with("10 validation errors detected: ")
    );
}

#[test]
fn numbers_have_bounds() {
    assert_eq!(
        constraints(&input_schema::LIST_TABLES, r#"{"Limit":0,"ExclusiveStartTableName":"a;"}"#),
        "3 validation errors detected: Value '0' at 'limit' failed to satisfy constraint: Member \
         must have value greater than or equal to 1; Value 'a;' at 'exclusiveStartTableName' \
         failed to satisfy constraint: Member must satisfy regular expression pattern: \
         [a-zA-Z0-9_.-]+; Value 'a;' at 'exclusiveStartTableName' failed to satisfy constraint: \
         Member must have length greater than or equal to 3"
    );
    assert_eq!(
        constraints(&input_schema::LIST_TABLES, r#"{"Limit":101.9}"#),
        "1 validation error detected: Value '101' at 'limit' failed to satisfy constraint: \
         Member must have value less than or equal to 100"
    );
}
