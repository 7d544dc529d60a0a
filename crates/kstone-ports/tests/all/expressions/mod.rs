//! Expressions from text to answer, as a request uses them. The messages and answers are those of
//! Amazon DynamoDB.

mod conditions;
mod key_conditions;
mod legacy;
mod placeholders;
mod printing;
mod projections;
mod support;
mod updates;
