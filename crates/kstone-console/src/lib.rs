//! The web console of KeystoneDB and the REST API of the learning platform, on one port.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
