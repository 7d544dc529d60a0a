//! Thread parking: the standard library's, or `shuttle`'s under `cfg(kstone_shuttle)`.
//!
//! A wake-up may come early or twice; callers check their condition in a loop.

#[cfg(not(kstone_shuttle))]
pub(crate) use std::thread::{Thread, ThreadId, current, park};

#[cfg(kstone_shuttle)]
pub(crate) use shuttle::thread::{Thread, ThreadId, current, park};

/// [`park`], at most for so long. Whether it is known to have been that long: here the clock tells.
#[cfg(not(kstone_shuttle))]
pub(crate) fn park_timeout(timeout: std::time::Duration) -> bool {
    std::thread::park_timeout(timeout);
    false
}

/// In a controlled schedule no time passes: the time is over at once, or never.
#[cfg(kstone_shuttle)]
pub(crate) fn park_timeout(_: std::time::Duration) -> bool {
    use shuttle::rand::Rng;
    let is_over = shuttle::rand::thread_rng().gen_bool(0.5);
    if is_over {
        shuttle::thread::yield_now();
    } else {
        park();
    }
    is_over
}
