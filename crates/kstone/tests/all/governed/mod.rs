//! Writes under a policy: every way to write is shown to it, what it says becomes part of the same
//! commit, and what it hears is exactly what happened.

mod counts;
mod crash;
mod own_tables;
mod refusals;
mod support;
mod time_to_live;
