//! Requests that both refuse, not both with a `ValidationException`.

use super::wording::{CANCELLED, INVALID, MALFORMED, Wording};

/// The first that fits names the difference, so what is special stands before what is general.
pub(super) const ERRORS: &[Wording] = &[
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
