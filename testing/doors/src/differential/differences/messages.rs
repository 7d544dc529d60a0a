//! Requests that both refuse with a `ValidationException`, each in its own words.
//!
//! DynamoDB Local has words of its own for what DynamoDB checks before it looks at the request
//! closely ("1 validation error detected: …"), for keys, and for numbers.

use super::wording::{INVALID, Wording};

const fn wording(name: &'static str, ours: &'static str, theirs: &'static str) -> Wording {
    Wording { name, ours: (INVALID, ours), theirs: (INVALID, theirs) }
}

/// The first that fits names the difference, so what is special stands before what is general.
pub(super) const MESSAGES: &[Wording] = &[
    wording(
        "the type of a key attribute: named by DynamoDB, not by DynamoDB Local",
        "One or more parameter values were invalid: Type mismatch for key * expected: * actual: *",
        "One or more parameter values were invalid: Type mismatch for key",
    ),
    wording(
        "the type of a key attribute that no key can have",
        "One or more parameter values were invalid: Type mismatch for key * expected: * actual: *",
        "Invalid attribute value type",
    ),
    wording(
        "the type of an index key: named by DynamoDB, not by DynamoDB Local",
        "One or more parameter values were invalid: Type mismatch for Index Key * Expected: * \
         Actual: * IndexName: *",
        "One or more parameter values were invalid: Type mismatch for Index Key",
    ),
    wording(
        "the type of an index key that no key can have",
        "One or more parameter values were invalid: Type mismatch for Index Key * Expected: * \
         Actual: * IndexName: *",
        "Invalid attribute value type",
    ),
    wording(
        "a key that is not the table's",
        "The provided key element does not match the schema",
        "The number of conditions on the keys is invalid",
    ),
    wording(
        "a key that is not the table's",
        "The provided key element does not match the schema",
        "Invalid attribute value type",
    ),
    wording(
        "a key that is not the table's",
        "The provided key element does not match the schema",
        "One of the required keys was not given a value",
    ),
    wording(
        "an item without its key",
        "One or more parameter values were invalid: Missing the key * in the item",
        "One of the required keys was not given a value",
    ),
    wording(
        "an empty index key, of several indexes: which is named",
        "One or more parameter values are not valid. A value specified for a secondary index key \
         is not supported. *IndexName: *",
        "One or more parameter values are not valid. A value specified for a secondary index key \
         is not supported. *IndexName: *",
    ),
    wording(
        "a number that is none",
        "*The parameter cannot be converted to a numeric value*",
        "*A value provided cannot be converted into a number*",
    ),
    wording(
        "a number with too many digits",
        "*Attempting to store more than 38 significant digits in a Number*",
        "*DynamoDB only supports precision up to 38 digits*",
    ),
    wording(
        "a set with duplicates: DynamoDB ends with a full stop",
        "*Input collection [*] contains duplicates.*",
        "*Input collection [*] contains duplicates*",
    ),
    wording(
        "a set of bytes with duplicates: DynamoDB shows it",
        "*Input collection [*]of type BS contains duplicates.*",
        "*Input collection of type BS contains duplicates.*",
    ),
    wording(
        "an operand of the wrong type: DynamoDB Local adds the set of those that are right",
        "*Incorrect operand type for operator or function; operator: *, operand type: *",
        "*Incorrect operand type for operator or function; operator: *, operand type: *, typeSet: *",
    ),
    wording(
        "paths that overlap: DynamoDB Local names the wrong one of three",
        "*Two document paths overlap with each other; *",
        "*Two document paths overlap with each other; *",
    ),
    wording(
        "the names of types in errors about AttributeUpdates",
        "One or more parameter values were invalid: * is not supported for the type *",
        "One or more parameter values were invalid: * is not supported for the type *",
    ),
    wording(
        "SPECIFIC_ATTRIBUTES without attributes",
        "One or more parameter values were invalid: Must specify the AttributesToGet or \
         ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES",
        "Must specify the AttributesToGet or ProjectionExpression when choosing to get \
         SPECIFIC_ATTRIBUTES",
    ),
    wording(
        "a member that is missing or out of bounds: DynamoDB checks it against the model first",
        "*validation error* detected: *",
        "*",
    ),
    wording(
        "a parameter that is missing",
        "The parameter '*' is required but was not present in the request",
        "*",
    ),
    wording(
        "PartiQL on an index with several key attributes",
        "PartiQL statements cannot be executed on tables with multi-attribute *",
        "PartiQL statements cannot be executed on tables with composite *",
    ),
    wording(
        "where a query cannot start",
        "The provided starting key is outside query boundaries based on provided conditions",
        "The provided starting key does not match the range key predicate",
    ),
    wording(
        "Select without an index",
        "One or more parameter values were invalid: ALL_PROJECTED_ATTRIBUTES can be used only \
         when Querying using an IndexName",
        "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
    ),
    wording(
        "the order of a set in a message",
        "*Invalid attribute type name found; type: *, valid types: {*}",
        "*Invalid attribute type name found; type: *, valid types: {*}",
    ),
    wording(
        "the order of a set in a message",
        "Value provided in ExpressionAttribute* unused in expressions: keys: {*}",
        "Value provided in ExpressionAttribute* unused in expressions: keys: {*}",
    ),
    wording(
        "a key that a query needs: named by DynamoDB, not by DynamoDB Local",
        "Query condition missed key schema element: *",
        "Query condition missed key schema element",
    ),
    wording(
        "ReturnValues that a put or delete does not have",
        "ReturnValues can only be ALL_OLD or NONE",
        "Return values set to invalid value",
    ),
    wording(
        "a key that is not the table's",
        "The provided key element does not match the schema",
        "One or more parameter values were invalid: Type mismatch for key",
    ),
    wording(
        "a key that is not the table's",
        "The provided key element does not match the schema",
        "The list of keys in RequestItems for BatchGetItem may not contain null or empty values: *",
    ),
    wording(
        "a start that is not a key of the index",
        "The provided starting key is invalid",
        "Exclusive Start Key must have same size as table's key schema",
    ),
    wording(
        "the segment of a scan",
        "The Segment parameter is zero-based and must be less than parameter TotalSegments: *",
        "1 validation error detected: Value '*' at 'segment' failed to satisfy constraint: *",
    ),
    wording(
        "a statement that is no PartiQL: DynamoDB says what was expected",
        "*Statement wasn't well formed, can't be processed: *",
        "*Statement wasn't well formed, can't be processed: *",
    ),
    wording(
        "PartiQL that is not supported: DynamoDB Local adds where",
        "*Empty bags are not supported",
        "*Empty bags are not supported at *",
    ),
    wording(
        "PartiQL's bounds: DynamoDB Local shows numbers as they were written",
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; *",
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; *",
    ),
    wording(
        "a consistent read of a global index by PartiQL",
        "Strongly consistent read is not supported on Global Secondary Indexes",
        "Consistent reads are not supported on global secondary indexes",
    ),
    wording(
        "a table's definition",
        "One or more parameter values were invalid: ProvisionedThroughput is not specified for \
         index: *",
        "No provisioned throughput specified for the global secondary index",
    ),
    wording(
        "a table's definition",
        "Attribute Name is duplicated: *",
        "Cannot have two attributes with the same name",
    ),
    wording(
        "a table's definition",
        "One or more parameter values were invalid: Unknown ProjectionType: null",
        "Indexes must have a projection specified",
    ),
    wording(
        "a table's definition",
        "Invalid KeySchema: Some index key attribute have no definition",
        "* Key not specified in Attribute Definitions.  Type unknown.",
    ),
    wording(
        "a start that is not a key of the table",
        "The provided starting key is invalid: *",
        "Exclusive Start Key must have same size as table's key schema",
    ),
    wording(
        "a start that is not a key of the table",
        "The provided starting key is invalid: *",
        "*",
    ),
    wording(
        "a table's definition",
        "Invalid KeySchema: Some index key attribute have no definition",
        "No Attribute Schema Defined",
    ),
    wording(
        "a table's definition",
        "One or more parameter values were invalid: Some AttributeDefinitions are not used. *",
        "The number of attributes in key schema must match the number of attributes defined in \
         attribute definitions.",
    ),
    wording(
        "a table's definition",
        "The KeySchema contains multiple key attributes with the same name",
        "Two keys can not have the same name",
    ),
    wording(
        "a query without a key condition: DynamoDB says so before it looks at others",
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the \
         request.",
        "*",
    ),
    wording(
        "a path to part of a key",
        "KeyConditionExpressions cannot have conditions on nested attributes",
        "Key attributes must be scalars; *",
    ),
    wording(
        "a null in a set",
        "*One or more parameter values were invalid: An * set  may not have a null *",
        "*",
    ),
    wording(
        "an empty part of a transaction",
        "TransactItems can only contain one of Check, Put, Update or Delete",
        "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
    ),
    wording(
        "the same attribute twice",
        "One or more parameter values were invalid: Duplicate value in attribute name: *",
        "Cannot have two attributes with the same name",
    ),
    wording("an alias in PartiQL", "Aliasing is not supported", "*"),
    wording(
        "RETURNING in a transaction: DynamoDB says so first",
        "Validation failed in TransactStatements[*]: RETURNING clause is not supported in *",
        "Validation failed in TransactStatements[*]: *",
    ),
    wording(
        "Select without an index",
        "One or more parameter values were invalid: ALL_PROJECTED_ATTRIBUTES can be used only \
         when Querying using an IndexName",
        "Cannot specify the * when choosing to get ALL_PROJECTED_ATTRIBUTES",
    ),
    wording(
        "a table's definition",
        "One or more parameter values were invalid: Number of attributes in KeySchema does not \
         exactly match number of attributes defined in AttributeDefinitions",
        "The number of attributes in key schema must match the number of attributes defined in \
         attribute definitions.",
    ),
    wording(
        "an update that empties an index key",
        "One or more parameter values are not valid. The update expression attempted to update a \
         secondary index key to a value that is not supported. *",
        "One or more parameter values are not valid. A value specified for a secondary index key \
         is not supported. *",
    ),
    wording(
        "a set with duplicates, by PartiQL",
        "*Input collection [*] contains duplicates.",
        "*Input collection contains duplicates",
    ),
    wording(
        "PartiQL on an index with several key attributes",
        "PartiQL statements cannot be executed on tables with multi-attribute *",
        "*",
    ),
    wording(
        "a table's key of another type in a filter of an index, by PartiQL",
        "One or more parameter values were invalid: * secondary index * does not project *",
        "*Condition parameter type does not match schema type",
    ),
    wording(
        "a segment out of bounds: DynamoDB says so first",
        "The Segment parameter is zero-based and must be less than parameter TotalSegments: *",
        "*",
    ),
    wording("PartiQL that selects from no table", "Unexpected from source", "*"),
    wording(
        "paths that overlap in a SELECT: open, DynamoDB may refuse them as well",
        "*must specify the primary key in the where clause.",
        "*Two document paths overlap with each other; *",
    ),
    wording(
        "PartiQL that is no statement",
        "*Statement wasn't well formed, can't be processed: *",
        "Unsupported operation: *",
    ),
    wording(
        "a null among placeholders",
        "*An expression attribute * used in * is not defined; attribute *",
        "ExpressionAttribute* contains invalid value: null for key *",
    ),
    wording(
        "a key condition that no index can answer: which check comes first",
        "Attempted conditional constraint is not an indexable operation",
        "Query *",
    ),
    wording(
        "a table's definition",
        "* key attribute* no definition",
        "Two keys can not have the same name",
    ),
    wording(
        "a table's definition",
        "One or more parameter values were invalid: Some index key attributes are not defined in \
         AttributeDefinitions. *",
        "Attribute * is not defined in AttributeDefinitions",
    ),
    wording(
        "a table's definition",
        "One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must \
         both be specified when BillingMode is PROVISIONED",
        "No provisioned throughput specified for the table",
    ),
    wording(
        "a table's definition",
        "One or more parameter values were invalid: Duplicate index name: *",
        "Two * secondary indices have the same name",
    ),
    wording(
        "a table's definition",
        "One or more parameter values were invalid: *",
        "Two keys can not have the same name",
    ),
    wording(
        "an update that gives an index key another type",
        "The update expression attempted to update the secondary index key to unsupported type",
        "One or more parameter values were invalid: Type mismatch for Index Key",
    ),
    wording(
        "an update that gives an index key another type",
        "The update expression attempted to update the secondary index key to unsupported type",
        "Invalid attribute value type",
    ),
    wording(
        "the order of a set in a message",
        "*Global secondary index * does not project [*]",
        "*Global secondary index * does not project [*]",
    ),
    wording(
        "the type of a key in PartiQL",
        "*Key attribute's data type should match its data type in table's schema: Key *",
        "*Key value must be of type S, N, or B. Key name: *, Key type: *",
    ),
    wording(
        "a value's placeholder in a path: DynamoDB Local takes it for a name",
        "*Syntax error; token: \":*\", near: *",
        "*An expression attribute name used in the document path is not defined; attribute name: :*",
    ),
    wording(
        "a null where a value should be",
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        "The supplied Item contains a null AttributeValue: * is null",
    ),
    wording(
        "a PartiQL statement that is understood, but not supported",
        "*",
        "Statement wasn't well formed, can't be processed: *",
    ),
    wording(
        "placeholders without an expression: DynamoDB Local lets empty ones pass",
        "ExpressionAttribute* can only be specified when using expressions*",
        "*",
    ),
];
