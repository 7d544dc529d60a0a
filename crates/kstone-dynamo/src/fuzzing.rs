//! The entry points for the fuzz targets.

use std::cell::RefCell;

use kstone::Database;

use crate::operations::{self, Context, Operation};

pub use crate::http::fuzzing::{connection, connection_seeds};

/// The tables that requests can use; their names and keys are those of the seeds.
const TABLES: [&str; 2] = [
    r#"{"TableName":"plain","BillingMode":"PAY_PER_REQUEST",
        "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],
        "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]}"#,
    r#"{"TableName":"sorted","BillingMode":"PAY_PER_REQUEST",
        "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},
            {"AttributeName":"sk","KeyType":"RANGE"}],
        "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},
            {"AttributeName":"sk","AttributeType":"S"},{"AttributeName":"k1","AttributeType":"S"},
            {"AttributeName":"k2","AttributeType":"N"}],
        "GlobalSecondaryIndexes":[{"IndexName":"global","Projection":{"ProjectionType":"ALL"},
            "KeySchema":[{"AttributeName":"k1","KeyType":"HASH"},
                {"AttributeName":"k2","KeyType":"RANGE"}]}]}"#,
];

/// How many requests one database gets: enough that a request meets data of others, few enough that
/// it stays small.
const REQUESTS_MAX: usize = 500;

thread_local! {
    static DATABASE: RefCell<Option<(Context, usize)>> = const { RefCell::new(None) };
}

/// Runs a request on a database in memory and checks that the response is JSON. The first byte
/// selects the operation, the rest is the body.
///
/// # Panics
/// If the response is not JSON.
pub fn request(bytes: &[u8]) {
    let Some((&which, body)) = bytes.split_first() else { return };
    let Some(&operation) = Operation::ALL.get(usize::from(which) % Operation::ALL.len()) else {
        return;
    };
    let answer = operations::run_here(operation, body, &context());
    let body = answer.unwrap_or_else(|fault| fault.body());
    if let Err(error) = serde_json::from_slice::<serde_json::Value>(&body) {
        panic!("{error}: {}", String::from_utf8_lossy(&body));
    }
}

/// The input of [`request`] for an operation and a body.
pub fn input(operation: &str, body: &[u8]) -> Option<Vec<u8>> {
    let wanted = Operation::from_target(format!("DynamoDB_20120810.{operation}").as_bytes())?;
    let which = Operation::ALL.iter().position(|operation| *operation == wanted)?;
    Some([&[u8::try_from(which).ok()?], body].concat())
}

fn context() -> Context {
    DATABASE.with_borrow_mut(|database| {
        let (context, uses) = database
            .take()
            .filter(|(_, uses)| *uses < REQUESTS_MAX)
            .unwrap_or_else(|| (fresh(), 0));
        *database = Some((context.clone(), uses + 1));
        context
    })
}

fn fresh() -> Context {
    let database = Database::memory().unwrap_or_else(|error| panic!("{error}"));
    let context = Context::new(database, "us-east-1".to_owned());
    for table in TABLES {
        let made = operations::run_here(Operation::CreateTable, table.as_bytes(), &context);
        made.unwrap_or_else(|fault| panic!("{}", String::from_utf8_lossy(&fault.body())));
    }
    context
}
