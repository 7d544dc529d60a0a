//! The script or function that runs now: facts about it, killing it, and the BUSY error for other
//! clients when it takes too long.
//!
//! A script has the whole keyspace to itself, so there is one at most. While it runs, other clients
//! can only ask for what is in here: the interpreter itself is locked.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::Poll;

use kstone_core::sync::Mutex;
use tokio::sync::watch;

use crate::command_spec::{Command, flag};
use crate::fault::{Fault, Result};

/// What others are told while a script runs for too long.
const BUSY_SCRIPT: Fault = Fault::fixed(
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
);
/// What others are told while a function runs for too long.
const BUSY_FUNCTION: Fault = Fault::fixed(
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
);

/// How a script was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// By EVAL and its kin.
    Script = 1,
    /// By FCALL.
    Function = 2,
}

impl Origin {
    /// What others are told when it takes too long.
    fn busy(self) -> Fault {
        match self {
            Origin::Script => BUSY_SCRIPT,
            Origin::Function => BUSY_FUNCTION,
        }
    }
}

/// One execution of a script or function.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) origin: Origin,
    /// The function's name, or the script's digest.
    pub(crate) name: String,
    /// The command that started it.
    pub(crate) command: Vec<Vec<u8>>,
    pub(crate) started_ms: u64,
    /// It has called a command that writes: it can no longer be killed.
    pub(super) has_written: AtomicBool,
    is_killed: AtomicBool,
}

impl Execution {
    /// What to say to who asks about the other kind of script.
    pub(super) fn refuse_unless(&self, origin: Origin) -> Result<()> {
        if self.origin == origin { Ok(()) } else { Err(self.origin.busy()) }
    }

    /// Whether somebody wants it to end.
    pub(super) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Acquire)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Running {
    current: Mutex<Option<Arc<Execution>>>,
    /// 0, or the [`Origin`] of what has been running for too long.
    busy: AtomicU8,
    /// The same, for those who wait for the keyspace meanwhile.
    told: watch::Sender<bool>,
}

impl Default for Running {
    fn default() -> Self {
        Running {
            current: Mutex::new(None),
            busy: AtomicU8::new(0),
            told: watch::Sender::new(false),
        }
    }
}

impl Running {
    /// A script begins. It ends when what this returns is dropped.
    pub(super) fn begin(
        &self,
        origin: Origin,
        name: &str,
        command: &[&[u8]],
        started_ms: u64,
    ) -> RunningGuard<'_> {
        let execution = Arc::new(Execution {
            origin,
            name: name.to_owned(),
            command: command.iter().map(|arg| arg.to_vec()).collect(),
            started_ms,
            has_written: AtomicBool::new(false),
            is_killed: AtomicBool::new(false),
        });
        *self.current.lock() = Some(Arc::clone(&execution));
        RunningGuard { running: self, execution }
    }

    /// What runs now.
    pub(crate) fn current(&self) -> Option<Arc<Execution>> {
        self.current.lock().clone()
    }

    /// From now on other commands are refused, unless they may be used meanwhile.
    pub(super) fn is_taking_too_long(&self, execution: &Execution) {
        if self.busy.swap(execution.origin as u8, Ordering::AcqRel) == 0 {
            self.told.send_replace(true);
        }
    }

    /// What to say to a command while a script runs for too long.
    pub(crate) fn refuses(&self, command: &Command) -> Result<()> {
        match self.busy_with() {
            Some(origin) if !command.has(flag::ALLOW_BUSY) => Err(origin.busy()),
            _ => Ok(()),
        }
    }

    fn busy_with(&self) -> Option<Origin> {
        match self.busy.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Origin::Script),
            _ => Some(Origin::Function),
        }
    }

    /// Waits for something, the keyspace most likely, unless a script begins to take too long.
    pub(crate) async fn unless_busy<T>(&self, waited_for: impl Future<Output = T>) -> Result<T> {
        let mut receiver = self.told.subscribe();
        let mut waited_for = pin!(waited_for);
        let mut told = pin!(receiver.wait_for(|is_busy| *is_busy));
        std::future::poll_fn(|context| {
            if let Poll::Ready(value) = waited_for.as_mut().poll(context) {
                return Poll::Ready(Ok(value));
            }
            match told.as_mut().poll(context) {
                Poll::Ready(_) => {
                    Poll::Ready(Err(self.busy_with().unwrap_or(Origin::Script).busy()))
                }
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// SCRIPT KILL and FUNCTION KILL: only what was started that way, and only before it wrote.
    pub(super) fn kill(&self, origin: Origin) -> Result<()> {
        let Some(execution) = self.current() else {
            return Err(Fault::fixed("NOTBUSY No scripts in execution right now."));
        };
        if execution.has_written.load(Ordering::Acquire) {
            return Err(Fault::fixed(
                "UNKILLABLE Sorry the script already executed write commands against the \
                 dataset. You can either wait the script termination or kill the server in a \
                 hard way using the SHUTDOWN NOSAVE command.",
            ));
        }
        execution.refuse_unless(origin)?;
        execution.is_killed.store(true, Ordering::Release);
        Ok(())
    }
}

/// A script that runs; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct RunningGuard<'r> {
    running: &'r Running,
    pub(super) execution: Arc<Execution>,
}

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        *self.running.current.lock() = None;
        if self.running.busy.swap(0, Ordering::AcqRel) != 0 {
            self.running.told.send_replace(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_and_has_not_written_can_be_killed_and_by_its_own_command() {
        let running = Running::default();
        let code = |killed: Result<()>| killed.unwrap_err().code().to_owned();
        assert_eq!(code(running.kill(Origin::Script)), "NOTBUSY");
        let ending = running.begin(Origin::Script, "x", &[b"EVAL"], 0);
        assert_eq!(code(running.kill(Origin::Function)), "BUSY");
        assert!(!ending.execution.is_killed());
        running.kill(Origin::Script).unwrap();
        assert!(ending.execution.is_killed());
        drop(ending);
        let ending = running.begin(Origin::Function, "f", &[b"FCALL"], 0);
        ending.execution.has_written.store(true, Ordering::Release);
        assert_eq!(code(running.kill(Origin::Function)), "UNKILLABLE");
        assert!(!ending.execution.is_killed());
        drop(ending);
        assert_eq!(code(running.kill(Origin::Function)), "NOTBUSY");
    }
}
