//! Tests of KeystoneDB's doors with the clients that people use. There is nothing here but
//! `tests/`, and the server that they kill; no product code depends on this crate.
