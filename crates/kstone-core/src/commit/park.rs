//! Blocking one thread and waking exactly that one: the standard library's, or shuttle's when
//! `cfg(kstone_shuttle)` asks for a controlled schedule.
//!
//! A wake-up may come early or twice; callers check their condition in a loop.

#[cfg(not(kstone_shuttle))]
pub(crate) use std::thread::{Thread, current, park};

#[cfg(kstone_shuttle)]
pub(crate) use shuttle::thread::{Thread, current, park};
