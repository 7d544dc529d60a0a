//! ACL LOG: commands and logins that were refused.

use std::collections::VecDeque;

use kstone_core::sync::Mutex;

/// How far back an entry like a new one is looked for.
const ALIKE_MAX: usize = 10;

/// Something that was refused.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) count: u64,
    /// `command`, `key`, `channel` or `auth`.
    pub(crate) reason: &'static str,
    /// `toplevel`, `multi` or `lua`.
    pub(crate) context: &'static str,
    /// The command, key or channel.
    pub(crate) object: Vec<u8>,
    pub(crate) user: String,
    pub(crate) at_ms: u64,
    /// As CLIENT LIST shows who asked.
    pub(crate) client: String,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<VecDeque<Entry>>);

impl Log {
    /// Adds an entry, or counts it with one like it.
    pub(crate) fn add(&self, entry: Entry, len_max: usize) {
        let mut log = self.0.lock();
        let is_like = |have: &Entry| {
            have.reason == entry.reason
                && have.context == entry.context
                && have.object == entry.object
                && have.user == entry.user
        };
        let alike = log.iter().take(ALIKE_MAX).position(is_like);
        let count = alike.and_then(|place| log.remove(place)).map_or(0, |have| have.count);
        log.push_front(Entry { count: count + 1, ..entry });
        log.truncate(len_max);
    }

    /// The newest entries.
    pub(crate) fn newest(&self, most: usize) -> Vec<Entry> {
        self.0.lock().iter().take(most).cloned().collect()
    }

    /// Forgets entries about what `is_gone` says nobody may see any more.
    pub(crate) fn forget(&self, is_gone: impl Fn(&[u8]) -> bool) {
        self.0.lock().retain(|entry| !is_gone(&entry.object));
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}
