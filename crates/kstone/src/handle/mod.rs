//! Convenience handles: the default table under plain byte keys, and handles to named tables.

mod default_table;
mod named;

pub use default_table::{Entries, Entry, Query, Scan};
pub use named::Table;
