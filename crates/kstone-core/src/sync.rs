//! The locks the engine uses: the standard library's, or shuttle's when `cfg(kstone_shuttle)` asks
//! for a controlled schedule.
//!
//! The layers above take the same ones: one way to lock.
//!
//! A panic while a lock is held does not poison it here. The commit path poisons the whole engine
//! instead (see `commit`), which is what a half-applied write calls for.

pub(crate) use std::sync::Arc;

#[cfg(not(kstone_shuttle))]
pub(crate) use std::sync::atomic;

#[cfg(kstone_shuttle)]
pub(crate) use shuttle::sync::atomic;

#[cfg(not(kstone_shuttle))]
use std::sync as imp;

#[cfg(kstone_shuttle)]
use shuttle::sync as imp;

pub use imp::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// A mutual-exclusion lock that ignores poisoning.
#[derive(Debug, Default)]
#[expect(clippy::disallowed_types, reason = "this is the wrapper the rule points to")]
pub struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        #[expect(clippy::disallowed_types, reason = "this is the wrapper the rule points to")]
        Mutex(imp::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The lock, if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(imp::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(imp::TryLockError::WouldBlock) => None,
        }
    }
}

/// A readers-writer lock that ignores poisoning.
#[derive(Debug, Default)]
#[expect(clippy::disallowed_types, reason = "this is the wrapper the rule points to")]
pub struct RwLock<T>(imp::RwLock<T>);

impl<T> RwLock<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        #[expect(clippy::disallowed_types, reason = "this is the wrapper the rule points to")]
        RwLock(imp::RwLock::new(value))
    }

    /// Waits until there is no writer.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits until there is no reader or writer.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A condition variable that ignores poisoning.
#[derive(Debug, Default)]
#[expect(clippy::disallowed_types, reason = "this is the wrapper the rule points to")]
pub struct Condvar(imp::Condvar);

impl Condvar {
    /// Waits to be woken.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits to be woken, but not longer than this.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: std::time::Duration,
    ) -> MutexGuard<'a, T> {
        match self.0.wait_timeout(guard, timeout) {
            Ok((guard, _)) => guard,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes every waiter.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
