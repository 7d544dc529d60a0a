//! The databases as servers: each started as a process of its own, all asked the same bytes over
//! 32 kept connections.

mod bare;
mod dynamodb_local;
mod kstone;
mod load;
mod play;
mod request;
mod server;

pub use dynamodb_local::find as find_dynamodb_local;
pub use play::{DoorWorkload, Round, Sample, Timing, round};
pub use server::{Server, ServerName, Setup, serve};

/// Connections that ask at once, each for one thing at a time.
pub const CONNECTIONS: u32 = 32;
