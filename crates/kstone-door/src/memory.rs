//! A memory budget that the large bodies of one door share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory for large bodies, counted in KiB. A request that finds too little of it waits for a while.
/// Clones share the budget.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    kib: Arc<Semaphore>,
    wait_max: Duration,
}

/// A part of a budget, given back when it is dropped.
#[derive(Debug)]
pub struct MemoryShare {
    _permit: OwnedSemaphorePermit,
}

/// Other requests hold all of the budget, and did so for as long as waiting is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many large requests at a time")]
pub struct OutOfMemory;

impl MemoryBudget {
    /// A budget of so many KiB. A request that finds too little waits for at most `wait_max`.
    pub fn new(kib: usize, wait_max: Duration) -> MemoryBudget {
        MemoryBudget { kib: Arc::new(Semaphore::new(kib)), wait_max }
    }

    /// Takes so many bytes out of the budget.
    ///
    /// # Errors
    /// If they are not free in time.
    pub async fn take(&self, bytes: usize) -> Result<MemoryShare, OutOfMemory> {
        let kib = u32::try_from(bytes.div_ceil(1024)).map_err(|_| OutOfMemory)?;
        let permit = Arc::clone(&self.kib).acquire_many_owned(kib);
        match tokio::time::timeout(self.wait_max, permit).await {
            Ok(Ok(permit)) => Ok(MemoryShare { _permit: permit }),
            _ => Err(OutOfMemory),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_memory_for_ever() {
        let budget = MemoryBudget::new(8, Duration::from_secs(10));
        let all = budget.take(8 * 1024).await.unwrap();
        let started = tokio::time::Instant::now();
        assert_eq!(budget.clone().take(1).await.unwrap_err(), OutOfMemory);
        assert_eq!(started.elapsed(), Duration::from_secs(10));
        drop(all);
        assert!(budget.take(1).await.is_ok());
    }
}
