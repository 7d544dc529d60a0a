//! One stripe's LSM tree: what it consists of, how its parts are merged, when it is compacted.
//!
//! Pure structure: nothing here takes the engine's locks, writes the log or edits the manifest.
//! `engine` composes these parts; `read` reads through them.

pub(crate) mod cursor;
pub(crate) mod file;
pub(crate) mod levels;
pub(crate) mod merge;
pub(crate) mod picker;
pub(crate) mod retain;
pub(crate) mod stripe;
