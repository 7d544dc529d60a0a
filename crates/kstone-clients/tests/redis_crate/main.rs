//! What a learning platform keeps in Redis, through the `redis` crate: a door in a process of its
//! own that promises `sync`, on a folder. Whatever was answered is checked before the process is
//! killed with SIGKILL and after it was started again, TTLs included.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "real processes, threads and clocks are the point")]

mod behaviour;
mod practice;
mod reviews;
mod support;
