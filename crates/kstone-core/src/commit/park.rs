//! Blocking one thread and waking exactly that one: the standard library's, or shuttle's when
//! `cfg(kstone_shuttle)` asks for a controlled schedule.
//!
//! A wake-up may come early or twice; callers check their condition in a loop.

#[cfg(not(kstone_shuttle))]
pub(crate) use std::thread::{Thread, ThreadId, current, park, park_timeout};

#[cfg(kstone_shuttle)]
pub(crate) use shuttle::thread::{Thread, ThreadId, current, park};

/// In a controlled schedule no time passes: whatever depends on the end of this wait would be stuck.
#[cfg(kstone_shuttle)]
pub(crate) fn park_timeout(_: std::time::Duration) {
    park();
}
