//! SLOWLOG: commands that took long.

use std::collections::VecDeque;

use kstone_core::sync::Mutex;

/// Not more arguments of a command are kept, and not more of each.
const ARGS_MAX: usize = 32;
const ARG_LEN_MAX: usize = 128;

/// A command that took long.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) at_ms: u64,
    pub(crate) usec: u64,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) address: String,
    pub(crate) client: Vec<u8>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<Entry>,
    next: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Slowlog(Mutex<Inner>);

impl Slowlog {
    /// Adds a command.
    pub(crate) fn add(&self, mut entry: Entry, len_max: usize) {
        let mut log = self.0.lock();
        entry.id = log.next;
        log.next += 1;
        log.entries.push_front(entry);
        log.entries.truncate(len_max);
    }

    pub(crate) fn newest(&self, most: usize) -> Vec<Entry> {
        self.0.lock().entries.iter().take(most).cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().entries.len()
    }

    /// Forgets commands with an argument that `is_gone` says nobody may see any more.
    pub(crate) fn forget(&self, is_gone: impl Fn(&[u8]) -> bool) {
        self.0.lock().entries.retain(|entry| !entry.args.iter().any(|arg| is_gone(arg)));
    }

    pub(crate) fn clear(&self) {
        self.0.lock().entries.clear();
    }
}

/// The arguments as the log keeps them.
pub(crate) fn shortened(args: &[&[u8]]) -> Vec<Vec<u8>> {
    let kept = if args.len() > ARGS_MAX { ARGS_MAX - 1 } else { args.len() };
    let mut shown: Vec<Vec<u8>> = args
        .iter()
        .take(kept)
        .map(|arg| match arg.get(..ARG_LEN_MAX) {
            Some(first) if arg.len() > ARG_LEN_MAX => {
                let more = arg.len() - ARG_LEN_MAX;
                [first, format!("... ({more} more bytes)").as_bytes()].concat()
            }
            _ => arg.to_vec(),
        })
        .collect();
    if args.len() > kept {
        shown.push(format!("... ({} more arguments)", args.len() - kept).into_bytes());
    }
    shown
}
