//! The contract of the port to items.
