//! Expressions: conditions, filters, key conditions, projections and updates.
//!
//! ```text
//! text ──parse──▶ tree (shared, by text) ──bind──▶ bound form ──▶ items
//! ```
//!
//! A [`Binder`] takes the placeholders of a request, then each of its expressions. The text is
//! parsed once and its tree remembered in the [`ExpressionCache`]; binding puts the request's names
//! and values in. The bound forms work on the compact form of items ([`ItemRef`](crate::value::ItemRef))
//! without decoding them; only [`BoundUpdate::apply`] changes an item in its tree form.
//!
//! [`legacy`] gives the same bound forms for the parameters that came before expressions.
//!
//! Calls the values below it and nothing else. All messages are DynamoDB's.

pub mod ast;
mod bind;
mod cache;
mod condition;
mod evaluate;
mod fingerprint;
mod function;
mod key_condition;
pub mod legacy;
mod parse;
mod path;
mod print;
mod projection;
mod reserved;
mod token;
mod update;

pub use bind::{Binder, Kind};
pub use cache::ExpressionCache;
pub use condition::BoundCondition;
pub use fingerprint::FingerprintBytes;
pub use function::Function;
pub use key_condition::{BoundKeyCondition, KeyClause, KeyOp};
pub use path::{DocumentPath, Step};
pub use projection::BoundProjection;
pub use update::BoundUpdate;
pub use update::too_large;

/// Reads a condition, filter or key condition; the error is what DynamoDB says after
/// `Invalid ConditionExpression: `.
pub fn parse_condition(text: &str) -> Result<ast::Condition, String> {
    parse::condition(text, token::EXPRESSION_BYTES_MAX)
}

/// Reads an update; the error is what DynamoDB says after `Invalid UpdateExpression: `.
pub fn parse_update(text: &str) -> Result<ast::Update, String> {
    parse::update(text, token::EXPRESSION_BYTES_MAX)
}

/// Reads a projection; the error is what DynamoDB says after `Invalid ProjectionExpression: `.
pub fn parse_projection(text: &str) -> Result<ast::Projection, String> {
    parse::projection(text, token::EXPRESSION_BYTES_MAX)
}
