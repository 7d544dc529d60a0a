//! Client-side caching (CLIENT TRACKING): remembers which clients read which keys, and sends
//! invalidations.
//!
//! A client is notified once of each key that it read; in broadcasting mode, of every key with one of
//! its prefixes. What a client reads is remembered while the key is locked and before it is read,
//! so that no change slips in between.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kstone_core::sync::Mutex;

use crate::reply::Value;
use crate::server::clients::{Clients, Peer, state};
use crate::server::pubsub::{DeliveryLimit, Pubsub, Topic};

/// Where a RESP2 client that redirects its notifications to another connection gets them.
pub(crate) const CHANNEL: &[u8] = b"__redis__:invalidate";

/// How a client wants to be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mode {
    /// Through another client; 0 is itself.
    pub(crate) redirect: u64,
    /// Of every key with one of its prefixes.
    pub(crate) broadcast: bool,
    pub(crate) prefixes: Vec<Vec<u8>>,
    /// Only what it reads after CLIENT CACHING YES.
    pub(crate) opt_in: bool,
    /// Not what it reads after CLIENT CACHING NO.
    pub(crate) opt_out: bool,
    /// Not of its own changes.
    pub(crate) no_loop: bool,
    /// What CLIENT CACHING said for the next command.
    pub(crate) caching: Option<bool>,
}

#[derive(Debug)]
struct Tracker {
    peer: Arc<Peer>,
    redirect: u64,
    no_loop: bool,
}

#[derive(Debug, Default)]
struct Registry {
    clients: HashMap<u64, Tracker>,
    /// The clients that have read each key.
    keys: HashMap<Vec<u8>, BTreeSet<u64>>,
    prefixes: BTreeMap<Vec<u8>, BTreeSet<u64>>,
    items: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tracking {
    /// Read before the lock is taken, which is not needed if this is 0.
    count: AtomicUsize,
    registry: Mutex<Registry>,
}

/// What delivering an invalidation needs beside the keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery<'s> {
    pub(crate) clients: &'s Clients,
    pub(crate) pubsub: &'s Pubsub,
    pub(crate) delivery_limit: DeliveryLimit,
}

impl Tracking {
    /// How many clients track.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// How many keys, how many times a client has one, how many prefixes.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let registry = self.registry.lock();
        (registry.keys.len(), registry.items, registry.prefixes.len())
    }

    /// A client begins to track, or goes on in another way.
    pub(crate) fn start(&self, peer: &Arc<Peer>, mode: &Mode) {
        let mut registry = self.registry.lock();
        let tracker =
            Tracker { peer: Arc::clone(peer), redirect: mode.redirect, no_loop: mode.no_loop };
        if registry.clients.insert(peer.id, tracker).is_none() {
            self.count.fetch_add(1, Ordering::Release);
        }
        if mode.broadcast {
            for prefix in &mode.prefixes {
                registry.prefixes.entry(prefix.clone()).or_default().insert(peer.id);
            }
        }
        peer.set(state::TRACKING, true);
        peer.set(state::BROADCAST, mode.broadcast);
        peer.set(state::BROKEN_REDIRECT, false);
        peer.redirect.store(i64::try_from(mode.redirect).unwrap_or(0), Ordering::Relaxed);
    }

    /// A client tracks no longer.
    pub(crate) fn stop(&self, peer: &Peer) {
        if !peer.is(state::TRACKING) {
            return;
        }
        let mut registry = self.registry.lock();
        if registry.clients.remove(&peer.id).is_some() {
            self.count.fetch_sub(1, Ordering::Release);
        }
        registry.prefixes.retain(|_, clients| {
            clients.remove(&peer.id);
            !clients.is_empty()
        });
        peer.set(state::TRACKING | state::BROADCAST | state::BROKEN_REDIRECT, false);
        peer.redirect.store(-1, Ordering::Relaxed);
        // Its keys stay until somebody changes them: looking for them would take long.
        if registry.clients.is_empty() {
            registry.keys.clear();
            registry.items = 0;
        }
    }

    /// A client reads these keys.
    pub(crate) fn remember<'k>(
        &self,
        client: u64,
        keys: impl Iterator<Item = &'k [u8]>,
        keys_max: usize,
        delivery: Delivery<'_>,
    ) {
        let mut registry = self.registry.lock();
        for key in keys {
            if registry.keys.entry(key.to_vec()).or_default().insert(client) {
                registry.items += 1;
            }
        }
        while keys_max > 0 && registry.keys.len() > keys_max {
            let Some(key) = registry.keys.keys().next().cloned() else { break };
            registry.invalidate(&[&key], 0, delivery);
        }
    }

    /// These keys were changed by a client.
    pub(crate) fn changed(&self, keys: &[(u8, Vec<u8>)], by: u64, delivery: Delivery<'_>) {
        if keys.is_empty() || self.count() == 0 {
            return;
        }
        let keys: Vec<&[u8]> = keys.iter().map(|(_, key)| key.as_slice()).collect();
        let mut registry = self.registry.lock();
        registry.invalidate(&keys, by, delivery);
        registry.broadcast(&keys, by, delivery);
    }

    /// Everything was changed.
    pub(crate) fn flushed(&self, delivery: Delivery<'_>) {
        if self.count() == 0 {
            return;
        }
        let mut registry = self.registry.lock();
        registry.keys.clear();
        registry.items = 0;
        for tracker in registry.clients.values() {
            tracker.send_invalidation(Value::Null, delivery);
        }
    }
}

impl Registry {
    fn invalidate(&mut self, keys: &[&[u8]], by: u64, delivery: Delivery<'_>) {
        for key in keys {
            let Some(clients) = self.keys.remove(*key) else { continue };
            self.items -= clients.len();
            for id in clients {
                let Some(tracker) = self.clients.get(&id) else { continue };
                let is_own = tracker.no_loop && id == by;
                if !is_own && !tracker.peer.is(state::BROADCAST) {
                    tracker.send_invalidation(Value::Array(vec![Value::bulk(key)]), delivery);
                }
            }
        }
    }

    fn broadcast(&self, keys: &[&[u8]], by: u64, delivery: Delivery<'_>) {
        for (prefix, clients) in &self.prefixes {
            let found = keys.iter().filter(|key| key.starts_with(prefix));
            let found: Vec<Value> = found.map(Value::bulk).collect();
            if found.is_empty() {
                continue;
            }
            for id in clients {
                let Some(tracker) = self.clients.get(id) else { continue };
                if !(tracker.no_loop && *id == by) {
                    tracker.send_invalidation(Value::Array(found.clone()), delivery);
                }
            }
        }
    }
}

impl Tracker {
    /// Tells a client of keys that were changed.
    fn send_invalidation(&self, keys: Value, delivery: Delivery<'_>) {
        let Delivery { clients, pubsub, delivery_limit } = delivery;
        let is_resp3 = |peer: &Peer| peer.is_resp3.load(Ordering::Relaxed);
        let mut to = Arc::clone(&self.peer);
        if self.redirect != 0 {
            let Some(other) = clients.get(self.redirect) else {
                if !self.peer.is(state::BROKEN_REDIRECT) {
                    self.peer.set(state::BROKEN_REDIRECT, true);
                    if is_resp3(&self.peer) {
                        let id = i64::try_from(self.redirect).unwrap_or(0);
                        let words = [Value::bulk("tracking-redir-broken"), Value::Integer(id)];
                        let message = Arc::new(Value::Push(words.into()));
                        self.peer.send(&message, delivery_limit.now_ms, delivery_limit.limit);
                    }
                }
                return;
            };
            to = other;
        }
        let words = if is_resp3(&to) {
            vec![Value::bulk("invalidate"), keys]
        } else if self.redirect != 0 && pubsub.has_subscribed(to.id, Topic::Channel, CHANNEL) {
            vec![Value::bulk("message"), Value::bulk(CHANNEL), keys]
        } else {
            // A RESP2 client gets no messages unless it subscribed to them.
            return;
        };
        to.send(&Arc::new(Value::Push(words)), delivery_limit.now_ms, delivery_limit.limit);
    }
}
