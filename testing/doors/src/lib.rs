//! What the tests of the doors and the `kstone-door-tests` command share.
//!
//! [`differential`] sends the same random requests to the door and to DynamoDB Local and compares
//! the answers. [`linear`] has many clients work on few items through the door while its process
//! is killed and started again, and looks for one order that explains every answer. [`fuzzing`] is
//! what the fuzz targets above the engine call. [`redis`] has the same for the Redis door.
//!
//! Both talk to a door the way a client does: over a socket ([`http`]), to a server that
//! [`server`] starts.
#![allow(
    clippy::explicit_auto_deref,
    reason = "without the star, `Dice::pick` would be asked for an unsized value"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real sockets, processes and threads are the point"
)]

pub mod dice;
pub mod differential;
pub mod fuzzing;
pub mod http;
pub mod linear;
pub mod redis;
pub mod server;
