//! Blocking execution of commands that come from the same process.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::reply::{Tree, Value};
use crate::session::waiting::left_of;
use crate::session::{CommandOutcome, Session};

/// Wakes the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread; `None` once `left` says that no time is left.
pub(crate) fn wait<F: Future>(future: F, left: impl Fn() -> Option<Duration>) -> Option<F::Output> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Some(done);
        }
        match left() {
            Some(Duration::ZERO) => return None,
            // It may return early: then the time that is left is looked at again.
            Some(left) => thread::park_timeout(left),
            None => thread::park(),
        }
    }
}

impl Session {
    /// Executes one command and returns its reply, blocking this thread while the command waits.
    /// `args` begins with the command's name.
    pub fn call(&mut self, args: &[&[u8]]) -> Value {
        let mut out = Tree::new();
        let step = loop {
            match wait(self.execute(args, &mut out), || None) {
                // Nobody can end the pause earlier from this thread.
                Some(CommandOutcome::Paused(left)) => thread::park_timeout(left),
                Some(step) => break step,
                None => return Value::Null,
            }
        };
        if let CommandOutcome::Waiting(mut waiting) = step {
            let (server, until_ms) = (Arc::clone(&self.server), waiting.until_ms);
            let left = || left_of(&server, until_ms);
            if wait(waiting.served(self, &mut out), left).is_none() {
                wait(waiting.time_out(self, &mut out), || None);
            }
        }
        if self.server.durability == kstone_core::Durability::Sync
            && let Err(error) = self.server.engine.wait_durable(self.seq())
        {
            return crate::fault::Fault::from(error).into();
        }
        out.into_value()
    }
}
