//! The contract of the port to keys.
