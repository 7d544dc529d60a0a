//! The port to keys on the keys of this process.

mod known;
pub(crate) mod local;

pub use known::{KnownCommand, known_commands};
pub use local::LocalKeys;
