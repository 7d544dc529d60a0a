//! The inputs of the operations on items.

use crate::input_schema::Rule::{Max, MaxLength, Min, MinLength, NamePattern, OneOf};
use crate::input_schema::{
    Input, MapRules, NO_RULES, Rule, Shape, TableNameCheck, optional, required,
};

/// A map of attribute values: an item, a key, the values of placeholders.
pub(super) const ATTRIBUTES: Shape = Shape::Map(&Shape::Value, NO_RULES);

const ATTRIBUTE_NAMES: Shape = Shape::Map(&Shape::Text(&[]), NO_RULES);

pub(super) const TEXT: Shape = Shape::Text(&[]);
pub(super) const VALUES: Shape = Shape::List(&Shape::Value, &[]);
pub(super) const ATTRIBUTES_TO_GET: Shape =
    Shape::List(&Shape::Text(&[]), &[MinLength(1), MaxLength(255)]);
pub(super) const NAME_RULES: &[Rule] = &[NamePattern, MinLength(3), MaxLength(255)];
pub(super) const CAPACITY: Shape = Shape::Text(&[OneOf(&["INDEXES", "TOTAL", "NONE"])]);
const METRICS: Shape = Shape::Text(&[OneOf(&["SIZE", "NONE"])]);
const RETURN_VALUES: Shape =
    Shape::Text(&[OneOf(&["ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"])]);
pub(super) const ON_FAILURE: Shape = Shape::Text(&[OneOf(&["ALL_OLD", "NONE"])]);
const CONDITIONAL_OPERATOR: Shape = Shape::Text(&[OneOf(&["OR", "AND"])]);
const COMPARISON: Shape = Shape::Text(&[OneOf(&[
    "IN",
    "NULL",
    "BETWEEN",
    "LT",
    "NOT_CONTAINS",
    "EQ",
    "GT",
    "NOT_NULL",
    "NE",
    "LE",
    "BEGINS_WITH",
    "GE",
    "CONTAINS",
])]);
const SELECT: Shape = Shape::Text(&[OneOf(&[
    "SPECIFIC_ATTRIBUTES",
    "COUNT",
    "ALL_ATTRIBUTES",
    "ALL_PROJECTED_ATTRIBUTES",
])]);

const EXPECTED: Shape = Shape::Map(
    &Shape::Structure(
        "ExpectedAttributeValue",
        &[
            optional("AttributeValueList", VALUES),
            optional("ComparisonOperator", COMPARISON),
            optional("Exists", Shape::Boolean),
            optional("Value", Shape::Value),
        ],
    ),
    NO_RULES,
);

const CONDITIONS: Shape = Shape::Map(
    &Shape::Structure(
        "Condition",
        &[optional("AttributeValueList", VALUES), required("ComparisonOperator", COMPARISON)],
    ),
    NO_RULES,
);

const ATTRIBUTE_UPDATES: Shape = Shape::Map(
    &Shape::Structure(
        "AttributeValueUpdate",
        &[
            optional("Action", Shape::Text(&[OneOf(&["ADD", "PUT", "DELETE"])])),
            optional("Value", Shape::Value),
        ],
    ),
    NO_RULES,
);

pub(crate) static GET_ITEM: Input = Input {
    table_name: TableNameCheck::IfPresent,
    members: &[
        optional("ReturnConsumedCapacity", CAPACITY),
        optional("AttributesToGet", ATTRIBUTES_TO_GET),
        required("TableName", TEXT),
        required("Key", ATTRIBUTES),
        optional("ConsistentRead", Shape::Boolean),
        optional("ProjectionExpression", TEXT),
        optional("ExpressionAttributeNames", ATTRIBUTE_NAMES),
    ],
};

pub(crate) static PUT_ITEM: Input = Input {
    table_name: TableNameCheck::IfPresent,
    members: &[
        optional("ReturnConsumedCapacity", CAPACITY),
        required("TableName", TEXT),
        required("Item", ATTRIBUTES),
        optional("ConditionalOperator", CONDITIONAL_OPERATOR),
        optional("Expected", EXPECTED),
        optional("ReturnValues", RETURN_VALUES),
        optional("ReturnItemCollectionMetrics", METRICS),
        optional("ReturnValuesOnConditionCheckFailure", ON_FAILURE),
        optional("ConditionExpression", TEXT),
        optional("ExpressionAttributeValues", ATTRIBUTES),
        optional("ExpressionAttributeNames", ATTRIBUTE_NAMES),
    ],
};

pub(crate) static DELETE_ITEM: Input = Input {
    table_name: TableNameCheck::IfPresent,
    members: &[
        optional("ReturnConsumedCapacity", CAPACITY),
        required("TableName", TEXT),
        optional("ReturnValues", RETURN_VALUES),
        optional("ReturnItemCollectionMetrics", METRICS),
        required("Key", ATTRIBUTES),
        optional("ConditionalOperator", CONDITIONAL_OPERATOR),
        optional("Expected", EXPECTED),
        optional("ReturnValuesOnConditionCheckFailure", ON_FAILURE),
        optional("ConditionExpression", TEXT),
        optional("ExpressionAttributeValues", ATTRIBUTES),
        optional("ExpressionAttributeNames", ATTRIBUTE_NAMES),
    ],
};

pub(crate) static UPDATE_ITEM: Input = Input {
    table_name: TableNameCheck::IfPresent,
    members: &[
        optional("ReturnConsumedCapacity", CAPACITY),
        required("TableName", TEXT),
        optional("ReturnItemCollectionMetrics", METRICS),
        optional("ReturnValues", RETURN_VALUES),
        required("Key", ATTRIBUTES),
        optional("ConditionalOperator", CONDITIONAL_OPERATOR),
        optional("Expected", EXPECTED),
        optional("AttributeUpdates", ATTRIBUTE_UPDATES),
        optional("ReturnValuesOnConditionCheckFailure", ON_FAILURE),
        optional("ConditionExpression", TEXT),
        optional("UpdateExpression", TEXT),
        optional("ExpressionAttributeValues", ATTRIBUTES),
        optional("ExpressionAttributeNames", ATTRIBUTE_NAMES),
    ],
};

pub(crate) static QUERY: Input = Input {
    table_name: TableNameCheck::IfPresent,
    members: &[
        optional("Select", SELECT),
        optional("IndexName", Shape::Text(NAME_RULES)),
        optional("ReturnConsumedCapacity", CAPACITY),
        optional("QueryFilter", CONDITIONS),
        required("TableName", TEXT),
        optional("ConditionalOperator", CONDITIONAL_OPERATOR),
        optional("AttributesToGet", ATTRIBUTES_TO_GET),
        // Its least value is checked by the operation, which words it in its own way.
        optional("Limit", Shape::Integer(&[])),
        optional("KeyConditions", CONDITIONS),
        optional("ExclusiveStartKey", ATTRIBUTES),
        optional("ConsistentRead", Shape::Boolean),
        optional("ScanIndexForward", Shape::Boolean),
        optional("KeyConditionExpression", TEXT),
        optional("FilterExpression", TEXT),
        optional("ProjectionExpression", TEXT),
        optional("ExpressionAttributeValues", ATTRIBUTES),
        optional("ExpressionAttributeNames", ATTRIBUTE_NAMES),
    ],
};

pub(crate) static SCAN: Input = Input {
    table_name: TableNameCheck::IfPresent,
    members: &[
        optional("Select", SELECT),
        optional("IndexName", Shape::Text(NAME_RULES)),
        optional("TotalSegments", Shape::Integer(&[Min(1), Max(1_000_000)])),
        optional("ReturnConsumedCapacity", CAPACITY),
        required("TableName", TEXT),
        optional("ConditionalOperator", CONDITIONAL_OPERATOR),
        optional("ScanFilter", CONDITIONS),
        optional("Segment", Shape::Integer(&[Min(0), Max(999_999)])),
        optional("Limit", Shape::Integer(&[Min(1)])),
        optional("AttributesToGet", ATTRIBUTES_TO_GET),
        optional("ExclusiveStartKey", ATTRIBUTES),
        optional("ConsistentRead", Shape::Boolean),
        optional("FilterExpression", TEXT),
        optional("ProjectionExpression", TEXT),
        optional("ExpressionAttributeValues", ATTRIBUTES),
        optional("ExpressionAttributeNames", ATTRIBUTE_NAMES),
    ],
};

/// For the keys of a batch's `RequestItems`, which are table names.
const TABLE_KEY_RULES: &[Rule] = &[MaxLength(1024), MinLength(1)];

pub(crate) static BATCH_GET_ITEM: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        optional("ReturnConsumedCapacity", CAPACITY),
        required(
            "RequestItems",
            Shape::Map(
                &Shape::Structure(
                    "KeysAndAttributes",
                    &[
                        // More than 100 are refused by the operation, in words of its own.
                        required("Keys", Shape::List(&ATTRIBUTES, &[MinLength(1)])),
                        optional("AttributesToGet", ATTRIBUTES_TO_GET),
                        optional("ConsistentRead", Shape::Boolean),
                        optional("ProjectionExpression", TEXT),
                        optional("ExpressionAttributeNames", ATTRIBUTE_NAMES),
                    ],
                ),
                &MapRules { whole: &[MaxLength(100)], keys: TABLE_KEY_RULES, values: &[] },
            ),
        ),
    ],
};

pub(crate) static BATCH_WRITE_ITEM: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        optional("ReturnConsumedCapacity", CAPACITY),
        optional("ReturnItemCollectionMetrics", METRICS),
        required(
            "RequestItems",
            Shape::Map(
                &Shape::List(
                    &Shape::Structure(
                        "WriteRequest",
                        &[
                            optional(
                                "PutRequest",
                                Shape::Structure("PutRequest", &[required("Item", ATTRIBUTES)]),
                            ),
                            optional(
                                "DeleteRequest",
                                Shape::Structure("DeleteRequest", &[required("Key", ATTRIBUTES)]),
                            ),
                        ],
                    ),
                    &[],
                ),
                &MapRules {
                    whole: &[MaxLength(25)],
                    keys: TABLE_KEY_RULES,
                    values: &[MaxLength(25), MinLength(1)],
                },
            ),
        ),
    ],
};

/// A table's name inside an action of a transaction.
const NAMED_TABLE: Shape = Shape::Text(&[MinLength(1), MaxLength(1024)]);
const TOKEN: Shape = Shape::Text(&[MinLength(1), MaxLength(36)]);

pub(crate) static TRANSACT_GET_ITEMS: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        optional("ReturnConsumedCapacity", CAPACITY),
        required(
            "TransactItems",
            Shape::List(
                &Shape::Structure(
                    "TransactGetItem",
                    &[required(
                        "Get",
                        Shape::Structure(
                            "Get",
                            &[
                                required("Key", ATTRIBUTES),
                                required("TableName", NAMED_TABLE),
                                optional("ProjectionExpression", TEXT),
                                optional("ExpressionAttributeNames", ATTRIBUTE_NAMES),
                            ],
                        ),
                    )],
                ),
                &[MaxLength(100), MinLength(1)],
            ),
        ),
    ],
};

const CONDITION_CHECK: Shape = Shape::Structure(
    "ConditionCheck",
    &[
        required("Key", ATTRIBUTES),
        required("TableName", NAMED_TABLE),
        required("ConditionExpression", TEXT),
        optional("ExpressionAttributeNames", ATTRIBUTE_NAMES),
        optional("ExpressionAttributeValues", ATTRIBUTES),
        optional("ReturnValuesOnConditionCheckFailure", ON_FAILURE),
    ],
);

const PUT: Shape = Shape::Structure(
    "Put",
    &[
        required("Item", ATTRIBUTES),
        required("TableName", NAMED_TABLE),
        optional("ConditionExpression", TEXT),
        optional("ExpressionAttributeNames", ATTRIBUTE_NAMES),
        optional("ExpressionAttributeValues", ATTRIBUTES),
        optional("ReturnValuesOnConditionCheckFailure", ON_FAILURE),
    ],
);

const DELETE: Shape = Shape::Structure(
    "Delete",
    &[
        required("Key", ATTRIBUTES),
        required("TableName", NAMED_TABLE),
        optional("ConditionExpression", TEXT),
        optional("ExpressionAttributeNames", ATTRIBUTE_NAMES),
        optional("ExpressionAttributeValues", ATTRIBUTES),
        optional("ReturnValuesOnConditionCheckFailure", ON_FAILURE),
    ],
);

const UPDATE: Shape = Shape::Structure(
    "Update",
    &[
        required("Key", ATTRIBUTES),
        required("UpdateExpression", TEXT),
        required("TableName", NAMED_TABLE),
        optional("ConditionExpression", TEXT),
        optional("ExpressionAttributeNames", ATTRIBUTE_NAMES),
        optional("ExpressionAttributeValues", ATTRIBUTES),
        optional("ReturnValuesOnConditionCheckFailure", ON_FAILURE),
    ],
);

pub(crate) static TRANSACT_WRITE_ITEMS: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        optional("ReturnConsumedCapacity", CAPACITY),
        optional("ReturnItemCollectionMetrics", METRICS),
        optional("ClientRequestToken", TOKEN),
        required(
            "TransactItems",
            Shape::List(
                &Shape::Structure(
                    "TransactWriteItem",
                    &[
                        optional("ConditionCheck", CONDITION_CHECK),
                        optional("Put", PUT),
                        optional("Delete", DELETE),
                        optional("Update", UPDATE),
                    ],
                ),
                &[MaxLength(100), MinLength(1)],
            ),
        ),
    ],
};
