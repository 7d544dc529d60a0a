//! Derives the connection limit from the open-file limit.

use kstone_core::Options;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are neither the database's tables nor connections: the log, the manifest, files that
/// are being written, the listener, the standard streams, the runtime's own.
const OTHER_FILES: u64 = 128;
/// A server without any connection is no server.
const CONNECTIONS_MIN: u64 = 16;

/// Raises the limit of open files as far as the system lets it be raised, and tells how many of
/// `wanted` connections it leaves room for.
pub fn connections_max(wanted: usize, engine: &Options) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let allowed = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    share_of(allowed, wanted, engine.open_files_max)
}

/// `allowed` is `None` where there is no limit.
fn share_of(allowed: Option<u64>, wanted: usize, tables_max: usize) -> usize {
    let Some(allowed) = allowed else { return wanted };
    let left = allowed.saturating_sub(tables_max as u64 + OTHER_FILES).max(CONNECTIONS_MIN);
    wanted.min(usize::try_from(left).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_get_what_the_database_leaves_of_the_open_files() {
        assert_eq!(share_of(None, 4096, 512), 4096);
        assert_eq!(share_of(Some(1_048_576), 4096, 512), 4096);
        assert_eq!(share_of(Some(1024), 4096, 512), 384);
        assert_eq!(share_of(Some(256), 4096, 512), 16);
        assert_eq!(share_of(Some(1024), 100, 512), 100);
    }

    #[test]
    fn the_limit_of_this_process_is_raised_to_what_it_may_be() {
        assert!(connections_max(4096, &Options::default()) >= CONNECTIONS_MIN as usize);
        let limit = getrlimit(Resource::Nofile);
        // Some systems say "no limit" and mean another number; then it stays as it was.
        assert!(limit.current == limit.maximum || limit.maximum.is_none());
    }
}
