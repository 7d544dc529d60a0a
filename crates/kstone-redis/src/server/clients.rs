//! The connected clients: what other clients may see of one, and what they send to it.
//!
//! A [`Peer`] is shared between a client's session and all others. What is pushed to a client
//! (messages, invalidations, MONITOR's lines) waits in its outbox until the client's door takes it;
//! [`Peer::poll_attention`] tells the door.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kstone_core::sync::Mutex;

use crate::command_spec::Command;
use crate::commands;
use crate::reply::Value;
use crate::server::config::limits::OutputLimit;

/// What CLIENT LIST shows as letters.
pub(crate) mod state {
    /// `O`: MONITOR.
    pub(crate) const MONITOR: u32 = 1;
    /// `P`: has subscribed to something.
    pub(crate) const PUBSUB: u32 = 1 << 1;
    /// `x`: between MULTI and EXEC.
    pub(crate) const MULTI: u32 = 1 << 2;
    /// `b`: waits for a key.
    pub(crate) const BLOCKED: u32 = 1 << 3;
    /// `t`: is notified of changes to what it has cached.
    pub(crate) const TRACKING: u32 = 1 << 4;
    /// `R`: was told through a client that has gone.
    pub(crate) const BROKEN_REDIRECT: u32 = 1 << 5;
    /// `B`: is notified of all keys with its prefixes.
    pub(crate) const BROADCAST: u32 = 1 << 6;
    /// `e`: is not disconnected when memory is short.
    pub(crate) const NO_EVICT: u32 = 1 << 7;
    /// `T`: does not change when keys were last used.
    pub(crate) const NO_TOUCH: u32 = 1 << 8;
}

const LETTERS: &[(u32, char)] = &[
    (state::MONITOR, 'O'),
    (state::PUBSUB, 'P'),
    (state::MULTI, 'x'),
    (state::BLOCKED, 'b'),
    (state::TRACKING, 't'),
    (state::BROKEN_REDIRECT, 'R'),
    (state::BROADCAST, 'B'),
    (state::NO_EVICT, 'e'),
    (state::NO_TOUCH, 'T'),
];

/// How much a client may have waiting in its outbox whatever the configuration says.
const OUTBOX_BYTES_MAX: u64 = 1 << 30;
/// How much a client may leave unread that has not authenticated.
const STRANGER_BYTES_MAX: u64 = 1024;
/// No time.
const NEVER: u64 = u64::MAX;

/// One client, as others see it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) id: u64,
    /// Where it comes from, and where to; empty for a client in the same process.
    pub(crate) address: String,
    pub(crate) local_address: String,
    /// When it came, and when it was active last, by a clock that never goes back.
    since: Duration,
    active_ms: AtomicU64,
    pub(crate) db: AtomicU32,
    /// The last command's [index](commands::index_of), plus one; 0 if there was none.
    command: AtomicUsize,
    /// [`state`].
    state: AtomicU32,
    pub(crate) is_resp3: AtomicBool,
    /// How many commands its transaction has; -1 if it has none.
    pub(crate) queued: AtomicI64,
    /// What it has subscribed to: channels, patterns, shard channels.
    pub(crate) subscribed: [AtomicUsize; 3],
    /// Whom its invalidations go to; -1 if it does not track, 0 if to itself.
    pub(crate) redirect: AtomicI64,
    /// What it has sent and is not executed yet.
    pub(crate) query_bytes: AtomicUsize,
    /// Room for more of it.
    pub(crate) query_free_bytes: AtomicUsize,
    /// What its door has written and nobody has read yet.
    pub(crate) unsent_bytes: AtomicUsize,
    pub(crate) name: Mutex<Vec<u8>>,
    pub(crate) user: Mutex<String>,
    outbox: Mutex<Outbox>,
    /// Whether the door has something to look at.
    attention: AtomicBool,
    is_killed: AtomicBool,
    is_dismissed: AtomicBool,
    /// Since when more than the soft limit is unread; [`NEVER`] if that is not so.
    over_since_ms: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

#[derive(Debug, Default)]
struct Outbox {
    messages: Vec<(Arc<Value>, usize)>,
    bytes: u64,
}

impl Peer {
    /// The client begins to run a command, which CLIENT LIST shows.
    pub(crate) fn note_command(&self, command: &'static Command) {
        self.command.store(commands::index_of(command) + 1, Ordering::Relaxed);
    }

    /// The command that it runs, or ran last.
    pub(crate) fn command(&self) -> Option<&'static Command> {
        let index = self.command.load(Ordering::Relaxed).checked_sub(1)?;
        commands::each().nth(index)
    }

    pub(crate) fn new(id: u64, now: Duration, address: String, local_address: String) -> Peer {
        Peer {
            id,
            address,
            local_address,
            since: now,
            active_ms: AtomicU64::new(millis(now)),
            db: AtomicU32::new(0),
            command: AtomicUsize::new(0),
            state: AtomicU32::new(0),
            is_resp3: AtomicBool::new(false),
            queued: AtomicI64::new(-1),
            subscribed: Default::default(),
            redirect: AtomicI64::new(-1),
            query_bytes: AtomicUsize::new(0),
            query_free_bytes: AtomicUsize::new(0),
            unsent_bytes: AtomicUsize::new(0),
            name: Mutex::default(),
            user: Mutex::new("default".to_owned()),
            outbox: Mutex::default(),
            attention: AtomicBool::new(false),
            is_killed: AtomicBool::new(false),
            is_dismissed: AtomicBool::new(false),
            over_since_ms: AtomicU64::new(NEVER),
            waker: Mutex::new(None),
        }
    }

    /// It does something now.
    pub(crate) fn note_active(&self, now: Duration) {
        self.active_ms.store(millis(now), Ordering::Relaxed);
    }

    pub(crate) fn is(&self, state: u32) -> bool {
        self.state.load(Ordering::Acquire) & state != 0
    }

    pub(crate) fn set(&self, state: u32, is_on: bool) {
        if is_on {
            self.state.fetch_or(state, Ordering::AcqRel);
        } else {
            self.state.fetch_and(!state, Ordering::AcqRel);
        }
    }

    /// Sends something that the client did not ask for; cuts it off if it does not read.
    pub(crate) fn send(&self, message: &Arc<Value>, now_ms: u64, limit: OutputLimit) {
        let len = len(message);
        let is_over = {
            let mut outbox = self.outbox.lock();
            outbox.messages.push((Arc::clone(message), len));
            outbox.bytes += len as u64;
            let unread = outbox.bytes + self.unsent_bytes.load(Ordering::Relaxed) as u64;
            self.is_over(unread, now_ms, limit)
        };
        if is_over {
            self.kill();
        } else {
            self.wake();
        }
    }

    /// Whether so much unread is too much, now or for too long.
    pub(crate) fn is_over_limit(&self, unread: u64, now_ms: u64, limit: OutputLimit) -> bool {
        let outbox = self.outbox.lock();
        self.is_over(unread + outbox.bytes, now_ms, limit)
    }

    /// The same, of a client that has not authenticated.
    pub(crate) fn is_over_strangers_limit(&self, unread: u64) -> bool {
        unread > STRANGER_BYTES_MAX
    }

    /// Whether there was more than the soft limit the last time somebody looked.
    pub(crate) fn is_over_soft_limit(&self) -> bool {
        self.over_since_ms.load(Ordering::Relaxed) != NEVER
    }

    /// The caller has the outbox locked.
    fn is_over(&self, unread: u64, now_ms: u64, limit: OutputLimit) -> bool {
        let hard = if limit.hard_bytes == 0 { OUTBOX_BYTES_MAX } else { limit.hard_bytes };
        if unread > hard {
            return true;
        }
        if limit.soft_bytes == 0 || unread <= limit.soft_bytes {
            self.over_since_ms.store(NEVER, Ordering::Relaxed);
            return false;
        }
        let since_ms = match self.over_since_ms.load(Ordering::Relaxed) {
            NEVER => now_ms,
            since_ms => since_ms,
        };
        self.over_since_ms.store(since_ms, Ordering::Relaxed);
        now_ms.saturating_sub(since_ms) > limit.soft_seconds.saturating_mul(1000)
    }

    /// How many messages wait, and their bytes.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        let outbox = self.outbox.lock();
        (outbox.messages.len(), outbox.bytes)
    }

    /// What was sent since the last time.
    pub(crate) fn take(&self) -> Vec<Arc<Value>> {
        if !self.attention.swap(false, Ordering::AcqRel) && !self.is_killed() {
            return Vec::new();
        }
        let mut outbox = self.outbox.lock();
        outbox.bytes = 0;
        std::mem::take(&mut outbox.messages).into_iter().map(|(message, _)| message).collect()
    }

    /// Whether [`take`](Peer::take) may have something.
    pub(crate) fn has_attention(&self) -> bool {
        self.attention.load(Ordering::Acquire)
    }

    /// The connection is to be closed.
    pub(crate) fn kill(&self) {
        self.is_killed.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Acquire)
    }

    /// The connection is to be closed when the replies to what was executed are out.
    pub(crate) fn dismiss(&self) {
        self.is_dismissed.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn is_dismissed(&self) -> bool {
        self.is_dismissed.load(Ordering::Acquire)
    }

    /// Whether it has done nothing for so long, and is not there to listen.
    pub(crate) fn is_idle(&self, now: Duration, most_ms: u64) -> bool {
        !self.is(state::PUBSUB | state::MONITOR)
            && !self.address.is_empty()
            && millis(now).saturating_sub(self.active_ms.load(Ordering::Relaxed)) > most_ms
    }

    /// Lets the door look.
    pub(crate) fn wake(&self) {
        self.attention.store(true, Ordering::Release);
        if let Some(waker) = &*self.waker.lock() {
            waker.wake_by_ref();
        }
    }

    /// Ready when there is something to [`take`](Peer::take), or the client is to be cut off.
    pub(crate) fn poll_attention(&self, context: &Context<'_>) -> Poll<()> {
        if self.attention.load(Ordering::Acquire) || self.is_killed() {
            return Poll::Ready(());
        }
        {
            let mut waker = self.waker.lock();
            if waker.as_ref().is_none_or(|have| !have.will_wake(context.waker())) {
                *waker = Some(context.waker().clone());
            }
        }
        // It may have come in between.
        if self.attention.load(Ordering::Acquire) || self.is_killed() {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// As CLIENT LIST shows it.
    pub(crate) fn show(&self, now: Duration, last_command: &str) -> String {
        let mut flags: String =
            LETTERS.iter().filter(|(bit, _)| self.is(*bit)).map(|(_, letter)| *letter).collect();
        if flags.is_empty() {
            flags.push('N');
        }
        let [sub, psub, ssub] = self.subscribed.each_ref().map(load);
        let name = String::from_utf8_lossy(&self.name.lock()).into_owned();
        let (query, free) = (load(&self.query_bytes), load(&self.query_free_bytes));
        let unsent = load(&self.unsent_bytes);
        let (messages, omem) = self.waiting();
        let seconds = |since_ms: u64| millis(now).saturating_sub(since_ms) / 1000;
        let active_ms = self.active_ms.load(Ordering::Relaxed);
        let events = if unsent > 0 { "rw" } else { "r" };
        format!(
            "id={} addr={} laddr={} fd={} name={name} age={} idle={} flags={flags} db={} sub={sub} \
             psub={psub} ssub={ssub} multi={} qbuf={query} qbuf-free={} argv-mem=0 multi-mem=0 \
             rbs=0 rbp=0 obl={unsent} oll={messages} omem={omem} tot-mem={} events={events} \
             cmd={last_command} user={} redir={} resp={}",
            self.id,
            self.address,
            self.local_address,
            self.id,
            seconds(millis(self.since)),
            seconds(active_ms),
            self.db.load(Ordering::Relaxed),
            self.queued.load(Ordering::Relaxed),
            free,
            query as u64 + free as u64 + unsent as u64 + omem,
            self.user.lock(),
            self.redirect.load(Ordering::Relaxed),
            if self.is_resp3.load(Ordering::Relaxed) { 3 } else { 2 },
        )
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn load(count: &AtomicUsize) -> usize {
    count.load(Ordering::Relaxed)
}

/// About how many bytes a message is on the wire.
fn len(message: &Value) -> usize {
    match message {
        Value::Push(items) | Value::Array(items) => 16 + items.iter().map(len).sum::<usize>(),
        Value::Bulk(bytes) => 16 + bytes.len(),
        Value::Simple(text) => 3 + text.len(),
        _ => 16,
    }
}

/// Everybody who is connected.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    peers: Mutex<BTreeMap<u64, Arc<Peer>>>,
    count: AtomicUsize,
}

impl Clients {
    pub(crate) fn add(&self, peer: Arc<Peer>) {
        self.peers.lock().insert(peer.id, peer);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, id: u64) {
        if self.peers.lock().remove(&id).is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Peer>> {
        self.peers.lock().get(&id).cloned()
    }

    /// Everybody, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Peer>> {
        self.peers.lock().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_read_everything_may_have_much_again_later() {
        let peer = Peer::new(1, Duration::ZERO, String::new(), String::new());
        let limit = OutputLimit { hard_bytes: 0, soft_bytes: 10, soft_seconds: 1 };
        let message = Arc::new(Value::Bulk(vec![b'x'; 100]));
        peer.send(&message, 0, limit);
        assert!(peer.is_over_soft_limit());
        assert_eq!(peer.take().len(), 1);
        assert!(!peer.is_over_limit(0, 1, limit));
        assert!(!peer.is_over_soft_limit());
        peer.send(&message, 5000, limit);
        assert!(!peer.is_killed());
        peer.send(&message, 7000, limit);
        assert!(peer.is_killed());
    }
}
