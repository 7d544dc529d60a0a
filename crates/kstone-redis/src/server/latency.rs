//! LATENCY: events that took longer than `latency-monitor-threshold`.

use std::collections::{BTreeMap, VecDeque};

use kstone_core::sync::Mutex;

/// Seconds of each event that are remembered.
const SAMPLES_MAX: usize = 160;

/// What is known of one event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Event {
    /// The worst of each second: when, and how long it took.
    pub(crate) samples: VecDeque<(u64, u64)>,
    pub(crate) worst_ms: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Latency(Mutex<BTreeMap<String, Event>>);

impl Latency {
    /// An event took so long.
    pub(crate) fn add(&self, name: &str, now_ms: u64, took_ms: u64) {
        let mut events = self.0.lock();
        let event = events.entry(name.to_owned()).or_default();
        event.worst_ms = event.worst_ms.max(took_ms);
        let second = now_ms / 1000;
        match event.samples.back_mut() {
            Some((at, worst)) if *at == second => *worst = (*worst).max(took_ms),
            _ => event.samples.push_back((second, took_ms)),
        }
        if event.samples.len() > SAMPLES_MAX {
            event.samples.pop_front();
        }
    }

    pub(crate) fn all(&self) -> Vec<(String, Event)> {
        self.0.lock().iter().map(|(name, event)| (name.clone(), event.clone())).collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Event> {
        self.0.lock().get(name).cloned()
    }

    /// Forgets an event, or all of them; returns how many there were.
    pub(crate) fn reset(&self, name: Option<&str>) -> usize {
        let mut events = self.0.lock();
        match name {
            Some(name) => usize::from(events.remove(name).is_some()),
            None => std::mem::take(&mut *events).len(),
        }
    }
}
