//! The mastery engine's keys and access patterns, through the Dapr and DynamoDB doors of one server.

mod doors;
mod keys;
mod patterns;
mod racing;
