//! Removes expired keys in the background.

use std::cell::Cell;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use kstone::ExpiredRecordHandler;
use kstone_core::{Expired, TableId};

use crate::server::Server;
use crate::session::call;

/// Keys that are removed before a command that needs the whole keyspace may come in between.
const TOGETHER: usize = 32;
/// How often and how long to wait for a command that has all keys to itself.
const PATIENCE: (u32, Duration) = (5, Duration::from_millis(20));

#[derive(Debug)]
struct Reclaimer {
    server: Weak<Server>,
}

/// From now on expired keys are removed in the background.
pub(super) fn register(server: &Arc<Server>) {
    let reclaimer = Reclaimer { server: Arc::downgrade(server) };
    server.database.reclaim_with(Arc::new(reclaimer));
}

impl ExpiredRecordHandler for Reclaimer {
    fn owns(&self, table: TableId) -> bool {
        self.server.upgrade().is_some_and(|server| server.databases.owns(table))
    }

    fn reclaim(&self, expired: &[&Expired]) -> kstone_core::Result<()> {
        let Some(server) = self.server.upgrade() else { return Ok(()) };
        if server.is_paused() {
            return Err(kstone_core::Error::invalid("no key expires while clients are paused"));
        }
        let begun = server.engine.monotonic();
        let mut failure = None;
        let mut note = |removed: kstone_core::Result<_>| {
            removed.map_err(|error| failure.get_or_insert(error).clone()).unwrap_or_default()
        };
        for some in expired.chunks(TOGETHER) {
            let gate = patiently(server.locks.try_share(), server.locks.share())?;
            let mut awaited = Vec::new();
            for one in some {
                let Some(slot) = server.databases.slot_of(one.table) else { continue };
                let (key, db) = (one.key.pk.as_ref(), server.databases.db_of(slot));
                let _locked = server.locks.keys(&gate, &server.task_handoff, std::iter::once(key));
                if server.blocked.is_awaited(db, std::iter::once(key)) {
                    awaited.push((one, db));
                } else {
                    note(remove(&server, one, db));
                }
            }
            drop(gate);
            if awaited.is_empty() {
                continue;
            }
            // Who waits for a key may have to be told that it is gone.
            let _alone = patiently(server.locks.try_exclude(), server.locks.exclude())?;
            for (one, db) in awaited {
                let ready = note(remove(&server, one, db));
                server.serve_blocked(ready);
            }
        }
        let took = server.engine.monotonic().saturating_sub(begun);
        server.note_latency("expire-cycle", took);
        failure.map_or(Ok(()), Err)
    }

    fn tidy(&self) -> kstone_core::Result<bool> {
        self.server.upgrade().map_or(Ok(false), |server| server.databases.counts.step())
    }
}

/// What can be had now, or soon. While somebody has the whole keyspace to itself for long, this
/// waits for the next round: an error says so to who would try again at once.
fn patiently<G>(now: Option<G>, soon: impl Future<Output = G>) -> kstone_core::Result<G> {
    let (times, pause) = PATIENCE;
    let times_left = Cell::new(times);
    let left = || {
        let times = times_left.get();
        times_left.set(times.saturating_sub(1));
        Some(if times == 0 { Duration::ZERO } else { pause })
    };
    let later = || kstone_core::Error::invalid("somebody has all keys for itself");
    now.or_else(|| call::wait(soon, left)).ok_or_else(later)
}

/// Removes a key whose time is over. Returns which keys somebody waits for that this makes ready.
fn remove(server: &Server, one: &Expired, db: u8) -> kstone_core::Result<Vec<(u8, Vec<u8>)>> {
    let key = one.key.pk.as_ref();
    let mut txn = server.begin(db);
    // Looking at it removes it, if it is still the one that expired.
    let looked = match one.key.sk {
        None => txn.lookup(key).map(drop),
        Some(_) => txn.answer_alarm(key),
    };
    let removed = looked.and_then(|()| server.commit(txn));
    match removed {
        Ok((_, ready)) => Ok(ready),
        Err(fault) => Err(kstone_core::Error::invalid(fault.message().to_owned())),
    }
}
