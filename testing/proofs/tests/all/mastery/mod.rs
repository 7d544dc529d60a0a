//! Acceptance, section 000: the keys of the mastery engine, its builders and its access patterns, at
//! the doors of one server. What Dapr writes, DynamoDB reads, and the other way round.

mod doors;
mod keys;
mod patterns;
mod racing;
