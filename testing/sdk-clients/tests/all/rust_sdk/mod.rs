//! The workflow table through the AWS SDK for Rust: a door in this process on a free port of
//! loopback, and the client that applications use. What the SDK sees is compared with what the
//! embedded database says of the same table.

mod access_patterns;
mod entities;
mod signatures;
mod support;
mod table;
mod translate;
mod writes;
