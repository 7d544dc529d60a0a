//! Statistics: counts for each command, for each error, and for the server.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use kstone_core::sync::Mutex;

use crate::command_spec::Command;
use crate::commands;

/// No more different error codes are counted than this: clients and scripts make them up.
const ERROR_CODES_MAX: usize = 128;
/// Powers of two of microseconds: enough for twelve days.
pub(crate) const HISTOGRAM_LEN: usize = 40;

/// The counts of one command.
#[derive(Debug, Default)]
pub(crate) struct CommandStats {
    pub(crate) calls: AtomicU64,
    pub(crate) usec: AtomicU64,
    /// Refused before they were executed.
    pub(crate) rejected: AtomicU64,
    /// Carried out, and answered with an error.
    pub(crate) failed: AtomicU64,
    /// How many took up to 1, 2, 4, … microseconds.
    histogram: OnceLock<Box<[AtomicU32; HISTOGRAM_LEN]>>,
}

impl CommandStats {
    /// How many took up to 1, 2, 4, … microseconds each.
    pub(crate) fn histogram(&self) -> Option<[u32; HISTOGRAM_LEN]> {
        Some(self.histogram.get()?.each_ref().map(|count| count.load(Ordering::Relaxed)))
    }

    pub(crate) fn reset_histogram(&self) {
        for count in self.histogram.get().into_iter().flat_map(|counts| counts.iter()) {
            count.store(0, Ordering::Relaxed);
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Stats {
    /// By [`commands::index_of`].
    commands: Vec<CommandStats>,
    errors: Mutex<BTreeMap<String, u64>>,
    pub(crate) error_replies: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) rejected_connections: AtomicU64,
    pub(crate) input_bytes: AtomicU64,
    pub(crate) output_bytes: AtomicU64,
    pub(crate) keyspace_hits: AtomicU64,
    pub(crate) keyspace_misses: AtomicU64,
    pub(crate) expired_keys: AtomicU64,
}

impl Default for Stats {
    fn default() -> Self {
        Stats {
            commands: commands::each().map(|_| CommandStats::default()).collect(),
            errors: Mutex::default(),
            error_replies: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            rejected_connections: AtomicU64::new(0),
            input_bytes: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            keyspace_hits: AtomicU64::new(0),
            keyspace_misses: AtomicU64::new(0),
            expired_keys: AtomicU64::new(0),
        }
    }
}

impl Stats {
    /// The counts of a command by its place.
    pub(crate) fn at(&self, place: usize) -> Option<&CommandStats> {
        self.commands.get(place)
    }

    /// A command was executed.
    pub(crate) fn called(&self, place: usize, usec: u64, has_failed: bool, is_tracked: bool) {
        let Some(command) = self.commands.get(place) else { return };
        command.calls.fetch_add(1, Ordering::Relaxed);
        command.usec.fetch_add(usec, Ordering::Relaxed);
        if has_failed {
            command.failed.fetch_add(1, Ordering::Relaxed);
        }
        if is_tracked {
            let counts =
                command.histogram.get_or_init(|| Box::new([const { AtomicU32::new(0) }; _]));
            let bucket = (64 - usec.saturating_sub(1).leading_zeros()) as usize;
            if let Some(count) = counts.get(bucket.min(HISTOGRAM_LEN - 1)) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// A command was refused before it was executed.
    pub(crate) fn rejected(&self, command: &'static Command) {
        if let Some(command) = self.commands.get(commands::index_of(command)) {
            command.rejected.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A command that was counted when it began to wait was answered with an error in the end.
    pub(crate) fn failed_after_waiting(&self, command: &'static Command, message: &str) {
        if let Some(command) = self.commands.get(commands::index_of(command)) {
            command.failed.fetch_add(1, Ordering::Relaxed);
        }
        self.error(message);
    }

    /// Somebody was answered with an error.
    pub(crate) fn error(&self, message: &str) {
        self.error_replies.fetch_add(1, Ordering::Relaxed);
        let code = message.split(' ').next().unwrap_or_default();
        let mut errors = self.errors.lock();
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < ERROR_CODES_MAX {
            errors.insert(code.to_owned(), 1);
        }
    }

    /// How often each code was answered.
    pub(crate) fn errors(&self) -> Vec<(String, u64)> {
        self.errors.lock().iter().map(|(code, count)| (code.clone(), *count)).collect()
    }

    /// How many commands were executed.
    pub(crate) fn commands_processed(&self) -> u64 {
        self.commands.iter().map(|command| command.calls.load(Ordering::Relaxed)).sum()
    }

    /// How many commands took up to 1, 2, 4, … microseconds each, of those that were timed.
    pub(crate) fn took_us(&self) -> Vec<u64> {
        let mut sums = vec![0; HISTOGRAM_LEN];
        for counts in self.commands.iter().filter_map(CommandStats::histogram) {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += u64::from(count);
            }
        }
        sums
    }

    /// CONFIG RESETSTAT.
    pub(crate) fn reset(&self) {
        for command in &self.commands {
            for count in [&command.calls, &command.usec, &command.rejected, &command.failed] {
                count.store(0, Ordering::Relaxed);
            }
            command.reset_histogram();
        }
        self.errors.lock().clear();
        for count in [
            &self.error_replies,
            &self.connections,
            &self.rejected_connections,
            &self.input_bytes,
            &self.output_bytes,
            &self.keyspace_hits,
            &self.keyspace_misses,
            &self.expired_keys,
        ] {
            count.store(0, Ordering::Relaxed);
        }
    }
}
