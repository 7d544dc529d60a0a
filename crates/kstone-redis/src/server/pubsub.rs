//! Publish and subscribe: the subscriptions, and delivery of messages.
//!
//! One lock over all of it: every subscriber sees the messages in one order.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kstone_core::sync::Mutex;

use crate::glob;
use crate::reply::Value;
use crate::server::clients::{Peer, state};
use crate::server::config::limits::OutputLimit;

/// What can be subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    Channel,
    Pattern,
    /// A channel of its own world, which a cluster would keep on one node.
    Shard,
}

impl Topic {
    /// The words for subscribing, unsubscribing, and a message.
    pub(crate) fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Topic::Channel => ("subscribe", "unsubscribe", "message"),
            Topic::Pattern => ("psubscribe", "punsubscribe", "pmessage"),
            Topic::Shard => ("ssubscribe", "sunsubscribe", "smessage"),
        }
    }
}

type Subscribers = HashMap<Vec<u8>, Vec<Arc<Peer>>>;

#[derive(Debug, Default)]
struct Registry {
    /// By [`Topic`].
    topics: [Subscribers; 3],
    /// What each client has subscribed to, by [`Topic`].
    clients: HashMap<u64, [BTreeSet<Vec<u8>>; 3]>,
}

/// How much a client may leave unread, and the time that this is judged at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliveryLimit {
    pub(crate) limit: OutputLimit,
    pub(crate) now_ms: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Pubsub {
    /// Read before the lock is taken, which is not needed if this is 0.
    count: AtomicUsize,
    registry: Mutex<Registry>,
}

impl Pubsub {
    /// Whether anybody listens to anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Subscribes; returns to how many things of its world (channels and patterns, or shard
    /// channels) the client then has.
    pub(crate) fn subscribe(&self, peer: &Arc<Peer>, topic: Topic, name: &[u8]) -> usize {
        let mut registry = self.registry.lock();
        let own = registry.clients.entry(peer.id).or_default();
        if own[topic as usize].insert(name.to_vec()) {
            let subscribers = &mut registry.topics[topic as usize];
            subscribers.entry(name.to_vec()).or_default().push(Arc::clone(peer));
            self.count.fetch_add(1, Ordering::Release);
        }
        registry.note(peer, topic)
    }

    /// Unsubscribes; returns how many are left.
    pub(crate) fn unsubscribe(&self, peer: &Arc<Peer>, topic: Topic, name: &[u8]) -> usize {
        let mut registry = self.registry.lock();
        self.remove(&mut registry, peer, topic, name);
        registry.note(peer, topic)
    }

    /// Unsubscribes from everything; returns from what, and how many were left after each.
    pub(crate) fn unsubscribe_all(&self, peer: &Arc<Peer>, topic: Topic) -> Vec<(Vec<u8>, usize)> {
        let mut registry = self.registry.lock();
        let own = registry.clients.get(&peer.id).map(|own| own[topic as usize].clone());
        let mut gone = Vec::new();
        for name in own.into_iter().flatten() {
            self.remove(&mut registry, peer, topic, &name);
            gone.push((name, registry.note(peer, topic)));
        }
        gone
    }

    fn remove(&self, registry: &mut Registry, peer: &Arc<Peer>, topic: Topic, name: &[u8]) {
        let Some(own) = registry.clients.get_mut(&peer.id) else { return };
        if !own[topic as usize].remove(name) {
            return;
        }
        if own.iter().all(BTreeSet::is_empty) {
            registry.clients.remove(&peer.id);
        }
        let subscribers = &mut registry.topics[topic as usize];
        if let Some(peers) = subscribers.get_mut(name) {
            peers.retain(|have| have.id != peer.id);
            if peers.is_empty() {
                subscribers.remove(name);
            }
        }
        self.count.fetch_sub(1, Ordering::Release);
    }

    /// Whether a client has subscribed to something.
    pub(crate) fn has_subscribed(&self, id: u64, topic: Topic, name: &[u8]) -> bool {
        let registry = self.registry.lock();
        registry.clients.get(&id).is_some_and(|own| own[topic as usize].contains(name))
    }

    /// A client has gone, or starts anew.
    pub(crate) fn forget(&self, peer: &Arc<Peer>) {
        if !peer.is(state::PUBSUB) {
            return;
        }
        let mut registry = self.registry.lock();
        for topic in [Topic::Channel, Topic::Pattern, Topic::Shard] {
            let names = registry.clients.get(&peer.id).map(|own| own[topic as usize].clone());
            for name in names.into_iter().flatten() {
                self.remove(&mut registry, peer, topic, &name);
            }
            registry.note(peer, topic);
        }
    }

    /// Sends a message to everybody who listens; returns to how many.
    pub(crate) fn publish(&self, channel: &[u8], message: &[u8], limit: DeliveryLimit) -> usize {
        if self.is_idle() {
            return 0;
        }
        let registry = self.registry.lock();
        let mut sent = registry.send_to(Topic::Channel, channel, message, limit);
        for (pattern, peers) in &registry.topics[Topic::Pattern as usize] {
            if glob::matches(pattern, channel) {
                let words = ["pmessage".as_bytes(), pattern, channel, message];
                sent += registry.send(peers, &words, limit);
            }
        }
        sent
    }

    /// Sends a message to everybody who listens to a shard channel.
    pub(crate) fn publish_to_shard(
        &self,
        channel: &[u8],
        message: &[u8],
        limit: DeliveryLimit,
    ) -> usize {
        if self.is_idle() {
            return 0;
        }
        self.registry.lock().send_to(Topic::Shard, channel, message, limit)
    }

    /// The channels that somebody has subscribed to, and that match.
    pub(crate) fn channels(&self, topic: Topic, pattern: Option<&[u8]>) -> Vec<Vec<u8>> {
        let registry = self.registry.lock();
        let names = registry.topics[topic as usize].keys();
        names
            .filter(|name| pattern.is_none_or(|pattern| glob::matches(pattern, name)))
            .cloned()
            .collect()
    }

    /// How many have subscribed to a channel.
    pub(crate) fn subscribers(&self, topic: Topic, name: &[u8]) -> usize {
        self.registry.lock().topics[topic as usize].get(name).map_or(0, Vec::len)
    }

    /// How many channels or patterns somebody has subscribed to.
    pub(crate) fn topics(&self, topic: Topic) -> usize {
        self.registry.lock().topics[topic as usize].len()
    }
}

impl Registry {
    /// Notes with the client what it has subscribed to; returns the count of the topic's world.
    fn note(&self, peer: &Peer, topic: Topic) -> usize {
        let own = self.clients.get(&peer.id);
        let counts = own.map_or([0; 3], |own| own.each_ref().map(BTreeSet::len));
        for (shown, count) in peer.subscribed.iter().zip(counts) {
            shown.store(count, Ordering::Relaxed);
        }
        peer.set(state::PUBSUB, counts.iter().any(|count| *count > 0));
        let [channels, patterns, shards] = counts;
        if topic == Topic::Shard { shards } else { channels + patterns }
    }

    fn send_to(&self, topic: Topic, channel: &[u8], message: &[u8], limit: DeliveryLimit) -> usize {
        let Some(peers) = self.topics[topic as usize].get(channel) else { return 0 };
        self.send(peers, &[topic.words().2.as_bytes(), channel, message], limit)
    }

    fn send(&self, peers: &[Arc<Peer>], words: &[&[u8]], limit: DeliveryLimit) -> usize {
        let message = Arc::new(Value::Push(words.iter().map(Value::bulk).collect()));
        for peer in peers {
            peer.send(&message, limit.now_ms, limit.limit);
        }
        peers.len()
    }
}
