//! The inputs of the PartiQL operations.

use crate::input_schema::Rule::{MaxLength, Min, MinLength};
use crate::input_schema::items::{CAPACITY, ON_FAILURE};
use crate::input_schema::{Input, Shape, TableNameCheck, optional, required};

const STATEMENT: Shape = Shape::Text(&[MinLength(1), MaxLength(8192)]);
const PARAMETERS: Shape = Shape::List(&Shape::Value, &[MinLength(1)]);

pub(crate) static EXECUTE_STATEMENT: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        required("Statement", STATEMENT),
        optional("Parameters", PARAMETERS),
        optional("ConsistentRead", Shape::Boolean),
        optional("NextToken", Shape::Text(&[MinLength(1), MaxLength(32_768)])),
        optional("ReturnConsumedCapacity", CAPACITY),
        optional("Limit", Shape::Integer(&[Min(1)])),
        optional("ReturnValuesOnConditionCheckFailure", ON_FAILURE),
    ],
};

pub(crate) static BATCH_EXECUTE_STATEMENT: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        required(
            "Statements",
            Shape::List(
                &Shape::Structure(
                    "BatchStatementRequest",
                    &[
                        required("Statement", STATEMENT),
                        optional("Parameters", PARAMETERS),
                        optional("ConsistentRead", Shape::Boolean),
                        optional("ReturnValuesOnConditionCheckFailure", ON_FAILURE),
                    ],
                ),
                &[MaxLength(25), MinLength(1)],
            ),
        ),
        optional("ReturnConsumedCapacity", CAPACITY),
    ],
};

pub(crate) static EXECUTE_TRANSACTION: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        required(
            "TransactStatements",
            Shape::List(
                &Shape::Structure(
                    "ParameterizedStatement",
                    &[
                        required("Statement", STATEMENT),
                        optional("Parameters", PARAMETERS),
                        optional("ReturnValuesOnConditionCheckFailure", ON_FAILURE),
                    ],
                ),
                &[MaxLength(100), MinLength(1)],
            ),
        ),
        optional("ClientRequestToken", Shape::Text(&[MinLength(1), MaxLength(36)])),
        optional("ReturnConsumedCapacity", CAPACITY),
    ],
};
