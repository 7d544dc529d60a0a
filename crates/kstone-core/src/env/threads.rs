//! Background threads.

use std::fmt::Debug;
use std::io;

/// Starts threads.
pub trait Threads: Send + Sync + Debug {
    /// Runs `work` on a thread of its own.
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle>;
}

/// Waits for a thread when joined.
pub struct JoinHandle(Box<dyn FnOnce() + Send + Sync>);

impl JoinHandle {
    /// Wraps what waiting for the thread means.
    pub fn new(join: impl FnOnce() + Send + Sync + 'static) -> Self {
        JoinHandle(Box::new(join))
    }

    /// Waits for the thread to end.
    pub fn join(self) {
        (self.0)();
    }
}

impl Debug for JoinHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JoinHandle")
    }
}

/// The operating system's threads.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsThreads;

impl Threads for OsThreads {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle> {
        let handle = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(JoinHandle::new(move || {
            // A panic in a background thread has been reported by the panic hook already.
            let _ = handle.join();
        }))
    }
}
