//! The contract of keys on each store.
