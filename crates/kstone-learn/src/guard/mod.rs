//! What stands before the operations of a service: requests that came before, and clients that ask
//! too often.
//!
//! | module | what it is |
//! |---|---|
//! | [`idempotency`] | a request with a key is carried out once, however often it is sent |
//! | [`limits`] | so many requests a minute, in a sliding window |

pub mod idempotency;
pub mod limits;

pub use idempotency::{Begun, Idempotency, KeptAnswer, Repeatable, Ticket};
pub use limits::{Decision, LimitKind, RateLimits};
