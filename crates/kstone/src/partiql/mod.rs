//! PartiQL: statements as text.
//!
//! ```text
//! text ──parse──▶ tree ──prepare──▶ requests of ops ──▶ items
//! ```
//!
//! A statement is parsed to a tree ([`ast`]), which can be written back as text. `keys` finds what
//! its `WHERE` clause says about keys, `text` writes the rest of it as DynamoDB's expressions, and
//! `prepare` and `select` make of that the ordinary requests of [`ops`](crate::ops), which do the
//! work. So a statement means what the same operation means, down to the messages.
//!
//! Where DynamoDB refuses a `SELECT` because the branches of an `OR` overlap on the sort key, this
//! one answers it.

pub mod ast;
mod execute;
mod expression;
mod keys;
mod lexer;
mod page_token;
mod parser;
mod prepare;
mod print;
mod projection;
mod request;
mod select;
#[cfg(test)]
mod tests;
mod text;
mod transaction;
mod values;

pub use parser::{STATEMENT_MAX, parse};
pub use request::{
    Statement, StatementBatch, StatementBatchOutput, StatementError, StatementOutput,
    StatementResponse, StatementTransaction, StatementTransactionOutput,
};

use crate::error::Error;

/// The error for a statement that cannot be read. DynamoDB says nothing after the colon when the
/// trouble is inside a token.
fn malformed(detail: &str) -> Error {
    Error::validation(format!("Statement wasn't well formed, can't be processed: {detail}"))
}
