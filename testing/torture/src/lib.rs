//! What the engine's tests and the `kstone-torture` command share.
//!
//! [`sequence`] makes random operations ([`ops`], [`settings`]), carries them out on an engine and
//! on a plain map ([`model`]) side by side, and shrinks what fails. [`kill9`] runs a writing
//! process, kills it, and compares what is left with what was acknowledged. [`linear`] decides
//! whether one order explains what concurrent callers were told. [`command`] is the command line of
//! such tests.
//!
//! Nothing here looks inside the engine: it uses the public interface only, so that what it finds
//! is what a user would meet.

pub mod command;
pub mod kill9;
pub mod linear;
pub mod model;
pub mod ops;
mod queries;
pub mod run;
pub mod sequence;
pub mod settings;
