//! DynamoDB's JSON: attribute values as `{"S": "…"}`. They are read into a tree of values, and
//! written directly from the stored form of an item: writing is the hot path of every read, so it
//! takes one buffer and no tree.

mod read;
mod write;

pub(crate) use read::{SEVERAL_TYPES, base64_fault, read_item, read_value, read_values};
pub(crate) use write::{JsonWriter, give_back};

#[cfg(test)]
mod tests;
