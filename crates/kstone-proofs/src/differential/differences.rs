//! The differences that are known, each with its reason. DynamoDB is right where it and DynamoDB
//! Local differ; what DynamoDB does is taken from its documentation and from public test suites
//! that were run against it.
//!
//! A pattern is a text in which `*` stands for anything. Both sides are given, so that an answer
//! of ours that is wrong in a new way is not mistaken for one that is known.

use serde_json::Value as Json;

use super::compare::{Difference, both_failed};
use super::{Answers, Step, schema};

/// A difference between two errors.
struct Wording {
    /// What it is about.
    name: &'static str,
    /// The door's error: type and message.
    ours: (&'static str, &'static str),
    /// DynamoDB Local's.
    theirs: (&'static str, &'static str),
}

const INVALID: &str = "ValidationException";
const CANCELLED: &str = "TransactionCanceledException";
const MALFORMED: &str = "SerializationException";

const fn wording(name: &'static str, ours: &'static str, theirs: &'static str) -> Wording {
    Wording { name, ours: (INVALID, ours), theirs: (INVALID, theirs) }
}

/// DynamoDB Local has words of its own for what DynamoDB checks before it looks at the request
/// closely ("1 validation error detected: …"), for keys, and for numbers.
const WORDINGS: &[Wording] = &[
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
    Wording {
        name: "an update of a key whose condition fails: DynamoDB looks at the update first",
        ours: (
            INVALID,
            "One or more parameter values were invalid: Cannot update attribute *. This attribute \
             is part of the key",
        ),
        theirs: ("ConditionalCheckFailedException", "*"),
    },
    Wording {
        name: "a legacy update whose condition fails: DynamoDB looks at the update first",
        ours: (INVALID, "One or more parameter values were invalid: Only DELETE action is *"),
        theirs: ("ConditionalCheckFailedException", "*"),
    },
    Wording {
        name: "a transaction of statements that is cancelled: DynamoDB gives reasons",
        ours: (INVALID, "Validation failed in TransactStatements[*"),
        theirs: (CANCELLED, "ValidationError *"),
    },
    Wording {
        name: "a legacy update whose condition fails: DynamoDB looks at the update first",
        ours: (
            INVALID,
            "One or more parameter values were invalid: * is not supported for the type *",
        ),
        theirs: ("ConditionalCheckFailedException", "*"),
    },
    Wording {
        name: "placeholders without an expression: DynamoDB Local lets empty ones pass",
        ours: (INVALID, "ExpressionAttribute* can only be specified when using expressions*"),
        theirs: (CANCELLED, "*"),
    },
    Wording {
        name: "placeholders without an expression: DynamoDB Local lets empty ones pass",
        ours: (INVALID, "ExpressionAttribute* can only be specified when using expressions*"),
        theirs: (INVALID, "*"),
    },
    Wording {
        name: "placeholders without an expression: DynamoDB Local lets empty ones pass",
        ours: (INVALID, "ExpressionAttribute* can only be specified when using expressions*"),
        theirs: ("ConditionalCheckFailedException", "*"),
    },
    Wording {
        name: "JSON of other types: DynamoDB Local makes a text of it",
        ours: (MALFORMED, "*_VALUE cannot be converted to String"),
        theirs: ("ConditionalCheckFailedException", "*"),
    },
    Wording {
        name: "JSON of other types: DynamoDB Local makes a text of it",
        ours: (MALFORMED, "*_VALUE cannot be converted to String"),
        theirs: ("ResourceNotFoundException", "*"),
    },
    Wording {
        name: "a table that is there",
        ours: ("ResourceInUseException", "Table already exists: *"),
        theirs: ("ResourceInUseException", "Cannot create preexisting table"),
    },
    Wording {
        name: "a member that is missing or out of bounds: DynamoDB checks it against the model \
               first",
        ours: (INVALID, "*validation error* detected: *"),
        theirs: ("InternalFailure", "*"),
    },
    Wording {
        name: "a table that is not there",
        ours: ("ResourceNotFoundException", "Requested resource not found"),
        theirs: ("ResourceNotFoundException", "Cannot do operations on a non-existent table"),
    },
    Wording {
        name: "a table's name of two letters: DynamoDB looks for it",
        ours: ("ResourceNotFoundException", "*"),
        theirs: (INVALID, "Invalid table/index name. *"),
    },
    Wording {
        name: "a table that is not there",
        ours: ("ResourceNotFoundException", "Requested resource not found: Table: * not found"),
        theirs: ("ResourceNotFoundException", "Cannot do operations on a non-existent table"),
    },
    Wording {
        name: "the name of PartiQL's error for an item that is there",
        ours: ("DuplicateItemException", "Duplicate primary key exists in table"),
        theirs: ("DuplicateItem", "Duplicate primary key exists in table"),
    },
    Wording {
        name: "a mistake that shows when a transaction is carried out: DynamoDB cancels it with \
               reasons",
        ours: (CANCELLED, "*ValidationError*"),
        theirs: (INVALID, "*"),
    },
    Wording {
        name: "a transaction of statements that is cancelled: DynamoDB gives reasons",
        ours: (CANCELLED, "*ValidationError*"),
        theirs: (CANCELLED, "*"),
    },
    Wording {
        name: "what is no JSON, or JSON of other types: DynamoDB Local has an internal failure",
        ours: (MALFORMED, "*"),
        theirs: ("InternalFailure", "*"),
    },
    Wording {
        name: "JSON of other types: DynamoDB Local makes a text of it",
        ours: (MALFORMED, "*"),
        theirs: (INVALID, "*"),
    },
    Wording {
        name: "a statement that is missing: DynamoDB Local has an internal failure",
        ours: (INVALID, "1 validation error detected: Value null at 'statement' *"),
        theirs: ("InternalFailure", "*"),
    },
];

/// A request with two mistakes, of which each names another: the order of checks is documented
/// nowhere. (Where a public suite pins it, it pins ours.)
pub const TWO_MISTAKES: &str = "two mistakes in one request: which one is named";

/// Complaints about the values that an update computes, in both servers' words.
const UPDATE_FAULTS: &[&str] = &[
    "The provided expression refers to an attribute that does not exist in the item",
    "The document path provided in the update expression is invalid for update",
    "An operand in the update expression has an incorrect data type",
    "Attempting to store more than 38 significant digits in a Number",
    "DynamoDB only supports precision up to 38 digits",
    "Number overflow. *",
    "Number underflow. *",
];

/// DynamoDB Local's complaints about keys: it looks at them before it looks at expressions.
const KEY_FAULTS: &[&str] = &[
    "Invalid attribute value type",
    "One or more parameter values were invalid: Type mismatch for key",
    "The number of conditions on the keys is invalid",
    "One of the required keys was not given a value",
];

/// Whether the two are no longer the same after this request, although they answered alike.
pub fn diverges(step: &Step, answers: &Answers) -> bool {
    // DynamoDB puts a value without an action; DynamoDB Local forgets it.
    let updates = step.body["AttributeUpdates"].as_object();
    let has_no_action =
        updates.is_some_and(|updates| updates.values().any(|update| update["Action"].is_null()));
    // DynamoDB Local refuses two statements about one item, and carries them out all the same.
    let is_batch = step.operation == "BatchExecuteStatement";
    has_no_action || (is_batch && both_failed(answers))
}

/// The name of the known difference that this is.
pub fn known(step: &Step, difference: &Difference) -> Option<&'static str> {
    let (ours, theirs) = (&difference.ours, &difference.theirs);
    let worded = WORDINGS.iter().find(|known| is(ours, known.ours) && is(theirs, known.theirs));
    if let Some(known) = worded {
        return Some(known.name);
    }
    let is_any = |error: &Json, of: &[&str]| of.iter().any(|message| is(error, (INVALID, message)));
    if is_any(ours, UPDATE_FAULTS) && is_any(theirs, UPDATE_FAULTS) {
        return Some(TWO_MISTAKES);
    }
    if is(ours, (INVALID, "Invalid *Expression: *")) && is_any(theirs, KEY_FAULTS) {
        return Some("an expression and a key with mistakes: DynamoDB looks at the first first");
    }
    if ours["type"] == CANCELLED && same_but(ours, theirs, "The conditional request failed.") {
        return Some("the reason of a failed condition: DynamoDB has no full stop");
    }
    let is_about_tables = matches!(step.operation, "CreateTable" | "DescribeTable" | "DeleteTable");
    if is_about_tables && is_described_alike(ours, theirs) {
        return Some("the throughput of an index without any: DynamoDB says zero");
    }
    let both_succeed = ours.get("error").is_none() && theirs.get("error").is_none();
    let is_refused = |pattern| is(ours, (INVALID, pattern)) && theirs.get("error").is_none();
    if is_refused("ExpressionAttribute* can only be specified when using expressions*") {
        return Some("placeholders without an expression: DynamoDB Local lets empty ones pass");
    }
    if is(ours, (MALFORMED, "*_VALUE cannot be converted to *")) && theirs.get("error").is_none() {
        return Some("JSON of other types: DynamoDB Local makes a text of it");
    }
    if step.operation == "CreateTable"
        && is_refused("*Neither ReadCapacityUnits nor WriteCapacityUnits can be specified *")
    {
        return Some("a throughput for a table without one: DynamoDB Local lets it pass");
    }
    if is_refused("*validation error* detected: *") {
        return Some("a member out of bounds: DynamoDB Local lets some pass");
    }
    if is_refused("*Secondary index * does not project one or more filter attributes: *") {
        return Some("a filter on what an index lacks, by PartiQL: DynamoDB Local lets it pass");
    }
    if step.operation == "BatchGetItem"
        && is(theirs, (INVALID, "Can not use both expression and non-expression parameters *"))
    {
        return Some("expressions for one table and AttributesToGet for another");
    }
    let text = step.body["UpdateExpression"].as_str().unwrap_or("");
    let returns = step.body["ReturnValues"].as_str().unwrap_or("");
    if text.contains(['.', '[']) && returns.starts_with("UPDATED") && both_succeed {
        return Some("what an update returns of a map or list: DynamoDB only what it names");
    }
    if step.operation == "Scan" && step.body.get("Segment").is_some() && both_succeed {
        return Some("which items are in a segment of a scan");
    }
    if step.operation == "BatchExecuteStatement" && both_succeed && says(step, &["\\\".\\\""]) {
        return Some("a statement of a batch that reads an index");
    }
    let null_name =
        |names: &Json| names.as_object().is_some_and(|names| names.values().any(Json::is_null));
    if null_name(&step.body["ExpressionAttributeNames"])
        || null_name(&step.body["ExpressionAttributeValues"])
    {
        return Some("a null among placeholders");
    }
    if is(theirs, (INVALID, "The provided starting key does not match the range key predicate"))
        && ours.get("error").is_none()
    {
        return Some("a query that starts at the end of its range: DynamoDB Local refuses it");
    }
    let by_schema = "*Condition parameter type does not match schema type";
    if step.operation == "ExecuteStatement" && both_differ(ours, theirs, by_schema) {
        return Some("a table's key of another type in a filter of an index, by PartiQL");
    }
    if is(ours, (INVALID, "*Attribute name is a reserved keyword; reserved keyword: size")) {
        return Some("size is a reserved word: DynamoDB Local lets it pass");
    }
    if is(theirs, ("InternalFailure", "*")) {
        return Some("DynamoDB Local fails");
    }
    let selects_part = says(step, &["SELECT"]) && says(step, &["m.", "l["]);
    if step.operation != "ExecuteStatement" && both_succeed && selects_part {
        return Some("the names of parts of a document that one of several statements selects");
    }
    if step.operation == "ExecuteStatement" && both_succeed && says(step, &["\\\".\\\""]) {
        return Some("a scan of an index: DynamoDB Local's filter sees what is not projected");
    }
    if step.operation == "ExecuteStatement" && both_succeed && step.body.get("Limit").is_some() {
        return Some("which items are in a page of a scan");
    }
    if is(ours, (MALFORMED, "*")) && theirs.get("error").is_none() {
        return Some("JSON of other types: DynamoDB Local makes something of it");
    }
    if both_differ(ours, theirs, "*Two document paths overlap with each other; *")
        && says(step, &["SELECT"])
    {
        return Some("paths that overlap in a SELECT: open, DynamoDB may refuse them as well");
    }
    if both_differ(ours, theirs, "Attribute name must be specified.") {
        return Some("a null among names");
    }
    if is_refused("*List of * is empty") {
        return Some("an empty list of indexes: DynamoDB Local lets it pass");
    }
    if is_refused("Provided list of item keys contains duplicates") {
        return Some("two statements about one item, of which one fails");
    }
    if both_succeed && says(step, &["MODIFIED"]) {
        return Some("what an update returns of a map or list: DynamoDB only what it names");
    }
    if step.operation == "Query" && differ_in_ties(step, ours, theirs) {
        return Some("the order of items with the same key in a global index");
    }
    if step.operation == "DeleteTable" && same_but_status_and_size(ours, theirs) {
        return Some("the status of a table that is being deleted");
    }
    if step.operation == "DescribeTable" && same_but_size(ours, theirs) {
        return Some("the size of a table: each counts in its own way");
    }
    let is_in_index = step.body.get("IndexName").is_some() && step.operation == "Scan";
    if is_in_index && both_succeed {
        return Some("a scan of an index: DynamoDB Local's filter sees what is not projected");
    }
    if step.operation == "Query" && step.body.get("Limit").is_some() && is_last_page(ours, theirs) {
        return Some(
            "a page that ends where a query must end: DynamoDB Local knows it is the last",
        );
    }
    if is(ours, (CANCELLED, "*[*DuplicateItem*]*")) && is(theirs, (CANCELLED, "*")) {
        return Some("the reason of an insert that fails in a transaction");
    }
    if step.operation == "BatchExecuteStatement" && responses_differ_in_words(ours, theirs) {
        return Some("the words of an error in a batch of statements");
    }
    None
}

/// Whether the same statements of a batch fail, with the same code.
fn responses_differ_in_words(ours: &Json, theirs: &Json) -> bool {
    let without_words = |answer: &Json| {
        let mut answer = answer.clone();
        for response in answer["Responses"].as_array_mut().into_iter().flatten() {
            if let Some(error) = response.get_mut("Error").and_then(Json::as_object_mut) {
                error.remove("Message");
                // DynamoDB Local names the table of some errors and not of others.
                if let Some(response) = response.as_object_mut() {
                    response.remove("TableName");
                }
            }
        }
        answer
    };
    without_words(ours) == without_words(theirs)
}

fn both_differ(ours: &Json, theirs: &Json, message: &str) -> bool {
    ours.get("error").is_none() && is(theirs, (INVALID, message))
}

/// Whether a statement of the request has one of these words.
fn says(step: &Step, words: &[&str]) -> bool {
    let text = step.body.to_string();
    text.contains("Statement") && words.iter().any(|word| text.contains(word))
}

/// Whether two queries of a global index have the same items, and the same sort keys in order.
fn differ_in_ties(step: &Step, ours: &Json, theirs: &Json) -> bool {
    let indexes = schema::TABLES.iter().flat_map(|table| table.indexes);
    let mut named = indexes.filter(|index| !index.is_local && step.body["IndexName"] == index.name);
    let Some(index) = named.next() else { return false };
    let items = |pages: &Json| -> Vec<Json> {
        let pages = pages.as_array().into_iter().flatten();
        pages.flat_map(|page| page["Items"].as_array().into_iter().flatten()).cloned().collect()
    };
    let (mut ours, mut theirs) = (items(ours), items(theirs));
    let sort_keys = |items: &[Json]| -> Vec<Vec<Json>> {
        let key = |item: &Json| index.range.iter().map(|(name, _)| item[*name].clone()).collect();
        items.iter().map(key).collect()
    };
    let is_in_order = sort_keys(&ours) == sort_keys(&theirs);
    ours.sort_by_key(Json::to_string);
    theirs.sort_by_key(Json::to_string);
    is_in_order && ours == theirs
}

fn same_but_status_and_size(ours: &Json, theirs: &Json) -> bool {
    let mut ours = ours.clone();
    if let Some(status) = ours.pointer_mut("/TableDescription/TableStatus") {
        *status = "ACTIVE".into();
    }
    same_but_size(&ours, theirs)
}

fn same_but_size(ours: &Json, theirs: &Json) -> bool {
    let (mut ours, mut theirs) = (ours.clone(), theirs.clone());
    for description in [&mut ours, &mut theirs] {
        let table = description.as_object_mut().and_then(|answer| answer.values_mut().next());
        let Some(table) = table.and_then(Json::as_object_mut) else { return false };
        table.remove("TableSizeBytes");
        for (_, indexes) in table.iter_mut().filter(|(name, _)| name.ends_with("Indexes")) {
            for index in indexes.as_array_mut().into_iter().flatten() {
                if let Some(members) = index.as_object_mut() {
                    members.remove("IndexSizeBytes");
                    // DynamoDB Local counts the table's items.
                    members.remove("ItemCount");
                }
            }
        }
    }
    is_described_alike(&ours, &theirs)
}

/// Whether the door has one more page, without items.
fn is_last_page(ours: &Json, theirs: &Json) -> bool {
    let (Some(ours), Some(theirs)) = (ours.as_array(), theirs.as_array()) else { return false };
    let Some(([before @ .., full], last)) = ours.split_last().map(|(last, ours)| (ours, last))
    else {
        return false;
    };
    let mut full = full.clone();
    if let Some(members) = full.as_object_mut() {
        members.remove("LastEvaluatedKey");
    }
    last["ScannedCount"] == 0
        && theirs.split_last().is_some_and(|(end, start)| *end == full && start == before)
}

fn is(error: &Json, (name, message): (&str, &str)) -> bool {
    // An error without a message has an empty one.
    error["type"] == name && matches(message, error["message"].as_str().unwrap_or(""))
}

/// Whether the two are the same once `theirs` has no full stops there.
fn same_but(ours: &Json, theirs: &Json, text: &str) -> bool {
    theirs.to_string().replace(text, text.trim_end_matches('.')) == *ours
}

fn is_described_alike(ours: &Json, theirs: &Json) -> bool {
    let mut ours = ours.clone();
    for table in ["Table", "TableDescription"] {
        for index in ours[table]["GlobalSecondaryIndexes"].as_array_mut().into_iter().flatten() {
            if let Some(members) = index.as_object_mut() {
                members.remove("ProvisionedThroughput");
            }
        }
    }
    // Looking for a member has made one.
    let mut theirs = theirs.clone();
    for table in [&mut ours, &mut theirs] {
        if let Some(members) = table.as_object_mut() {
            members.retain(|_, member| !member.is_null());
        }
        for name in ["Table", "TableDescription"] {
            if let Some(members) = table.get_mut(name).and_then(Json::as_object_mut) {
                members.retain(|_, member| !member.is_null());
            }
        }
    }
    if let (Some(ours), Some(theirs)) = (ours.as_object_mut(), theirs.as_object_mut()) {
        ours.retain(|_, member| member.as_object().is_none_or(|members| !members.is_empty()));
        theirs.retain(|_, member| member.as_object().is_none_or(|members| !members.is_empty()));
    }
    ours == theirs
}

/// Whether a text is what the pattern says.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            rest.is_empty()
                || text.char_indices().any(|(at, _)| matches(rest, &text[at..]))
                || matches(rest, "")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(matches("a*c", "abc"));
        assert!(matches("a*c", "ac"));
        assert!(matches("*", ""));
        assert!(matches("a*", "a"));
        assert!(!matches("a*c", "abd"));
        assert!(!matches("a", "ab"));
        assert!(!matches("a*c*e", "abcd"));
    }

    #[test]
    fn a_known_difference_has_to_be_right_on_both_sides() {
        let step = Step::new("PutItem", json!({}));
        let invalid = |message: &str| json!({"error": 400, "type": INVALID, "message": message});
        let known = |ours, theirs| {
            known(&step, &Difference { ours, theirs, signature: String::new() }).is_some()
        };
        let ours = "One or more parameter values were invalid: Missing the key pk in the item";
        let theirs = "One of the required keys was not given a value";
        assert!(known(invalid(ours), invalid(theirs)));
        assert!(!known(invalid("something else"), invalid(theirs)));
        assert!(!known(json!({}), invalid(theirs)));
    }
}
