//! Batches and transactions of statements.

use kstone::ops::CapacityDetail;
use kstone::partiql::{Statement, StatementBatch, StatementResponse, StatementTransaction};
use kstone::{CancellationCode, Database, Error};
use serde_json::{Value as Json, json};

use crate::partiql::{database, sort_keys, stored};

fn batch(db: &Database, texts: &[&str]) -> Result<Vec<StatementResponse>, Error> {
    let statements = texts.iter().map(|text| Statement::new(*text)).collect();
    let request = StatementBatch { statements, ..StatementBatch::default() };
    Ok(db.batch_execute_statement(&request).wait()?.responses)
}

/// `table: item` or `table: code: message` for each response.
fn responses(db: &Database, texts: &[&str]) -> Vec<String> {
    let shown = |response: StatementResponse| {
        let table = response.table.unwrap_or_else(|| "-".to_owned());
        match response.result {
            Ok(Some(item)) => format!("{table}: {}", item.decode().unwrap().to_json()),
            Ok(None) => format!("{table}: nothing"),
            Err(error) => format!("{table}: {}: {}", error.code, error.message),
        }
    };
    batch(db, texts).unwrap().into_iter().map(shown).collect()
}

#[test]
fn a_batch_reads_each_item_by_its_key_and_answers_for_each_statement() {
    let db = database();
    let not_by_key = "-: ValidationError: Select statements within BatchExecuteStatement must specify the primary key in the where clause.";
    assert_eq!(
        responses(
            &db,
            &[
                "SELECT n FROM notes WHERE pk='a' AND sk=1",
                "SELECT n FROM notes WHERE pk='zzz' AND sk=1",
                "SELECT * FROM nowhere WHERE pk='a'",
                "SLECT",
                "SELECT n FROM notes WHERE pk='a'",
                "SELECT n FROM notes WHERE pk='a' AND sk=2 AND n=20",
                "SELECT n FROM notes.\"by-g\" WHERE g='g1' AND sk=1",
            ]
        ),
        [
            "notes: {\"n\":10}",
            "notes: nothing",
            "-: ResourceNotFound: Requested resource not found",
            "-: ValidationError: Statement wasn't well formed, can't be processed: Expected data manipulation",
            not_by_key,
            not_by_key,
            not_by_key,
        ]
    );
}

#[test]
fn a_batch_writes_each_item_for_itself() {
    let db = database();
    assert_eq!(
        responses(
            &db,
            &[
                "INSERT INTO users VALUE {'pk': '1'}",
                "UPDATE notes SET n=1 WHERE pk='a' AND sk=1 AND n=99",
                "UPDATE notes SET n=1 WHERE pk='a' AND sk=2 RETURNING MODIFIED NEW *",
                "DELETE FROM notes WHERE pk='a' AND sk=3",
                "UPDATE notes SET n=1 WHERE pk='a'",
            ]
        ),
        [
            "users: nothing",
            "notes: ConditionalCheckFailed: The conditional request failed",
            "notes: {\"n\":1}",
            "notes: nothing",
            "-: ValidationError: Where clause does not contain a mandatory equality on all key attributes",
        ]
    );
    assert_eq!(
        responses(&db, &["INSERT INTO users VALUE {'pk': '1', 'x': 2}"]),
        ["users: DuplicateItem: Duplicate primary key exists in table"]
    );
    assert_eq!(stored(&db, "users", json!({"pk": "1"})), Some(json!({"pk": "1"})));
}

#[test]
fn a_batch_that_mixes_or_repeats_or_is_too_long_is_refused_as_a_whole() {
    let db = database();
    let read = "SELECT n FROM notes WHERE pk='a' AND sk=1";
    let error = |texts: &[&str]| batch(&db, texts).unwrap_err().to_string();
    let mixed = "Read and write requests together in the same batch is not supported.";
    assert_eq!(error(&[read, "INSERT INTO users VALUE {'pk': '1'}"]), mixed);
    assert_eq!(stored(&db, "users", json!({"pk": "1"})), None);
    assert_eq!(error(&[read, read]), "Provided list of item keys contains duplicates");
    assert!(error(&[]).ends_with("Member must have length greater than or equal to 1"));
    assert!(error(&[read; 26]).ends_with("Member must have length less than or equal to 25"));
}

fn transact(db: &Database, texts: &[&str]) -> Result<Vec<Option<Json>>, Error> {
    let statements = texts.iter().map(|text| Statement::new(*text)).collect();
    let request = StatementTransaction { statements, ..StatementTransaction::default() };
    let items = db.execute_transaction(&request).wait()?.items;
    Ok(items.into_iter().map(|item| item.map(|item| item.decode().unwrap().to_json())).collect())
}

#[test]
fn a_transaction_writes_and_checks_all_or_nothing() {
    let db = database();
    let done = transact(
        &db,
        &[
            "INSERT INTO users VALUE {'pk': '8'}",
            "UPDATE notes SET n=7 WHERE pk='a' AND sk=1",
            "DELETE FROM notes WHERE pk='b' AND sk=1 AND n=10",
            "DELETE FROM notes WHERE pk='none' AND sk=1 AND n=99",
            "EXISTS(SELECT * FROM notes WHERE pk='b' AND sk=2 AND n=20)",
        ],
    );
    assert_eq!(done.unwrap(), []);
    assert_eq!(sort_keys(&db, "pk='b'"), [0, 2, 3]);
    let failed = transact(
        &db,
        &[
            "INSERT INTO users VALUE {'pk': '8'}",
            "INSERT INTO users VALUE {'pk': '9'}",
            "UPDATE notes SET n=8 WHERE pk='a' AND sk=1 AND n=99",
            "UPDATE notes SET n=nope WHERE pk='a' AND sk=2",
            "EXISTS(SELECT * FROM notes WHERE pk='none' AND sk=1 AND n IS MISSING)",
        ],
    );
    let Err(Error::TransactionCanceled { reasons }) = failed else { panic!("{failed:?}") };
    let codes: Vec<_> = reasons.iter().map(|reason| reason.code).collect();
    assert_eq!(
        codes,
        [
            CancellationCode::DuplicateItem,
            CancellationCode::None,
            CancellationCode::ConditionalCheckFailed,
            CancellationCode::ValidationError,
            CancellationCode::ConditionalCheckFailed,
        ]
    );
    assert_eq!(reasons[0].message.as_deref(), Some("Duplicate primary key exists in table"));
    assert_eq!(stored(&db, "users", json!({"pk": "9"})), None);
    assert_eq!(sort_keys(&db, "pk='a' AND n=7"), [1]);
}

#[test]
fn a_transaction_reads_items_by_their_keys() {
    let db = database();
    let read = transact(
        &db,
        &[
            "SELECT n FROM notes WHERE pk='a' AND sk=1",
            "SELECT * FROM notes WHERE pk='zzz' AND sk=1",
        ],
    );
    assert_eq!(read.unwrap(), [Some(json!({"n": 10})), None]);
    // The same key said twice is still one key.
    let twice = transact(&db, &["SELECT n FROM notes WHERE (sk=1) AND pk='a' AND pk='a'"]);
    assert_eq!(twice.unwrap(), [Some(json!({"n": 10}))]);
    let mismatch = transact(
        &db,
        &["SELECT * FROM notes WHERE pk='a' AND sk=1", "SELECT * FROM notes WHERE pk=1 AND sk=1"],
    );
    let Err(Error::TransactionCanceled { reasons }) = mismatch else { panic!("{mismatch:?}") };
    assert_eq!(reasons[1].code, CancellationCode::ValidationError);
}

#[test]
fn a_transaction_with_a_statement_that_does_not_belong_is_refused() {
    let db = database();
    let read = "SELECT * FROM notes WHERE pk='a' AND sk=1";
    let insert = "INSERT INTO users VALUE {'pk': '9'}";
    let at = |n: usize, message: &str| {
        format!("Validation failed in TransactStatements[{n}]: {message}")
    };
    let by_key = "Select statements within ExecuteTransaction must specify the primary key in the where clause.";
    let exists = "EXISTS() must contain a single item read with additional condition";
    for (texts, message) in [
        (
            vec![read, insert],
            "ExecuteTransaction API does not support both read and write operations in the same request.".to_owned(),
        ),
        (vec![insert, insert], "Transaction request cannot include multiple operations on one item".to_owned()),
        (vec![read, read], "Transaction request cannot include multiple operations on one item".to_owned()),
        (vec!["SELECT * FROM notes WHERE pk='a'"], at(0, by_key)),
        (vec!["SELECT * FROM notes WHERE pk='a' AND sk=1 AND n=10"], at(0, by_key)),
        (vec!["SELECT * FROM notes WHERE pk='a' AND sk=1 AND pk='b'"], at(0, by_key)),
        (
            vec!["SELECT * FROM notes.\"by-g\" WHERE g='x'"],
            at(0, "Reads on indices are not supported within transactions."),
        ),
        (
            vec![insert, "UPDATE users SET a=1 WHERE pk='x' RETURNING ALL NEW *"],
            at(1, "RETURNING clause is not supported in ExecuteTransaction."),
        ),
        (vec!["EXISTS(SELECT * FROM notes WHERE pk='b' AND sk=2)", insert], at(0, exists)),
        (vec!["EXISTS(SELECT * FROM notes WHERE pk='b')", insert], at(0, exists)),
        (
            vec!["SELECT * FROM notes WHERE"],
            at(0, "Statement wasn't well formed, can't be processed: Unexpected term"),
        ),
        (
            vec!["INSERT INTO users VALUE {'pk': '1', 'x': [<<'a','a'>>]}"],
            at(0, "One or more parameter values were invalid: Input collection [a, a] contains duplicates."),
        ),
    ] {
        assert_eq!(transact(&db, &texts).expect_err(texts[0]).to_string(), message, "{texts:?}");
    }
    assert!(matches!(
        transact(&db, &["INSERT INTO nowhere VALUE {'pk': '1'}"]),
        Err(Error::NotFound(_))
    ));
    assert_eq!(stored(&db, "users", json!({"pk": "9"})), None);
}

#[test]
fn a_transaction_repeated_with_its_token_is_done_once() {
    let db = database();
    let request = StatementTransaction {
        statements: vec![Statement::new("UPDATE notes SET n=n+1 WHERE pk='a' AND sk=1")],
        token: Some("token".into()),
        capacity: CapacityDetail::Total,
    };
    for _ in 0..3 {
        assert_eq!(db.execute_transaction(&request).wait().unwrap().consumed.len(), 1);
    }
    assert_eq!(sort_keys(&db, "pk='a' AND n=11"), [1]);
    let other = StatementTransaction {
        statements: vec![Statement::new("UPDATE notes SET n=n+2 WHERE pk='a' AND sk=1")],
        ..request
    };
    let result = db.execute_transaction(&other).wait();
    assert!(matches!(result, Err(Error::IdempotentParameterMismatch(_))), "{result:?}");
}
