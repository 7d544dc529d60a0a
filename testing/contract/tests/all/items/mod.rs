//! The contract of items on each store.
