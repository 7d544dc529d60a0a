//! The port to keys on the keys of this process ([`LocalKeys`]), and which commands it accepts.

mod admission;
pub(crate) mod local;

pub use admission::{KnownCommand, NamedKey, PortCommand, known_commands};
pub use local::LocalKeys;
