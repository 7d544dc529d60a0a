//! Messages, written down by hand: field numbers and types are all that the two sides have to agree
//! on, and a build needs no protobuf compiler. Fields that nobody here reads are left out; they are
//! skipped.

pub(super) mod component;
pub(super) mod reflection;
pub(super) mod rpc;
pub(super) mod runtime;
