//! The connection between Lua's functions and the script that runs.
//!
//! The functions of `redis.*` live as long as the interpreter; the transaction that they work on
//! lives for one script. They meet in [`HOST`], which holds the running script's host for as long
//! as it runs, on the thread that runs it.

use scoped_tls_hkt::scoped_thread_local;

use super::failure::Failure;
use crate::reply::Value;

scoped_thread_local!(pub(in super::super) static mut HOST: for<'a> &'a mut (dyn Host + 'a));

/// See the module.
pub(in super::super) trait Host {
    /// Runs a command. An error reply of the command is a reply; what keeps the command from being
    /// run is a failure. Returns too whether the script speaks RESP3.
    fn call(&mut self, args: &[&[u8]]) -> Result<(Value, bool), Failure>;
    /// Chooses the protocol that replies come in: 2 or 3.
    fn set_protocol(&mut self, version: u8);
    /// Whether the user may run a command; `None` if there is no such command.
    fn may_run(&self, args: &[&[u8]]) -> Option<bool>;
    /// Called now and then: whether the script is to end.
    fn is_killed(&mut self) -> bool;
}

/// Whether a script runs on this thread.
pub(super) fn is_running() -> bool {
    HOST.is_set()
}

/// Works with the running script's host; `None` if none runs on this thread.
pub(super) fn with<T>(work: impl FnOnce(&mut dyn Host) -> T) -> Option<T> {
    if !HOST.is_set() {
        return None;
    }
    Some(HOST.with(|host| work(host)))
}
