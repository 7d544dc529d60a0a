//! DynamoDB's JSON: attribute values as `{"S": "…"}`, read into the tree form, written straight
//! from the compact form. Writing is the hot path of every read: one buffer, no tree in between.

mod out;
mod read;

pub(crate) use out::{Out, give_back};
pub(crate) use read::{base64_fault, read_item, read_value, read_values};

#[cfg(test)]
mod tests;
