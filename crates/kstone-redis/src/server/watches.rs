//! WATCH: the keys that clients watch, so that EXEC does nothing if one of them was changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kstone_core::sync::Mutex;

/// Set when something that a client watches was changed.
pub(crate) type Dirty = Arc<AtomicBool>;

/// The clients that watch a key, each with whether the key existed when that began.
type Watchers = Vec<(Dirty, bool)>;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    /// Read before the lock is taken, which is not needed if this is 0.
    count: AtomicUsize,
    keys: Mutex<HashMap<(u8, Vec<u8>), Watchers>>,
}

impl Watches {
    /// Whether nobody watches anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Watches a key, which is there or is not.
    pub(crate) fn watch(&self, db: u8, key: &[u8], dirty: &Dirty, is_there: bool) {
        let watcher = (Arc::clone(dirty), is_there);
        self.keys.lock().entry((db, key.to_vec())).or_default().push(watcher);
        self.count.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn unwatch(&self, db: u8, key: &[u8], dirty: &Dirty) {
        let mut keys = self.keys.lock();
        let at = (db, key.to_vec());
        let Some(watching) = keys.get_mut(&at) else { return };
        if let Some(place) = watching.iter().position(|(have, _)| Arc::ptr_eq(have, dirty)) {
            watching.swap_remove(place);
            self.count.fetch_sub(1, Ordering::Release);
        }
        if watching.is_empty() {
            keys.remove(&at);
        }
    }

    /// These keys were changed, these databases emptied or swapped. A key that was not there is not
    /// changed by that; whether it has come with another database, EXEC looks itself.
    pub(crate) fn touch(&self, touched: &[(u8, Vec<u8>)], flushed: &[u8]) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let keys = self.keys.lock();
        for key in touched {
            for (dirty, _) in keys.get(key).into_iter().flatten() {
                dirty.store(true, Ordering::Release);
            }
        }
        for ((db, _), watching) in keys.iter() {
            if flushed.contains(db) {
                for (dirty, _) in watching.iter().filter(|(_, was_there)| *was_there) {
                    dirty.store(true, Ordering::Release);
                }
            }
        }
    }
}
