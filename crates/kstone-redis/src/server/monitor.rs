//! MONITOR: clients that are sent every command.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kstone_core::sync::Mutex;

use crate::reply::Value;
use crate::server::Server;
use crate::server::clients::{Peer, state};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    peers: Mutex<Vec<Arc<Peer>>>,
}

impl Monitors {
    pub(crate) fn is_idle(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub(crate) fn add(&self, peer: &Arc<Peer>) {
        let mut peers = self.peers.lock();
        if !peers.iter().any(|have| have.id == peer.id) {
            peers.push(Arc::clone(peer));
            peer.set(state::MONITOR, true);
        }
        self.count.store(peers.len(), Ordering::Release);
    }

    pub(crate) fn remove(&self, peer: &Peer) {
        if !peer.is(state::MONITOR) {
            return;
        }
        let mut peers = self.peers.lock();
        peers.retain(|have| have.id != peer.id);
        peer.set(state::MONITOR, false);
        self.count.store(peers.len(), Ordering::Release);
    }
}

impl Server {
    /// Sends a command to all clients in MONITOR. `from` is an address, or `lua`.
    pub(crate) fn monitor(&self, db: u8, from: &str, args: &[&[u8]]) {
        if self.monitors.is_idle() {
            return;
        }
        let delivery_limit = self.delivery_limit(false);
        let (seconds, ms) = (delivery_limit.now_ms / 1000, delivery_limit.now_ms % 1000);
        let mut line = format!("{seconds}.{ms:03}000 [{db} {from}]");
        for arg in args {
            line.push_str(" \"");
            for &byte in *arg {
                let _ = match byte {
                    b'\\' | b'"' => write!(line, "\\{}", char::from(byte)),
                    b'\n' => write!(line, "\\n"),
                    b'\r' => write!(line, "\\r"),
                    b'\t' => write!(line, "\\t"),
                    0x07 => write!(line, "\\a"),
                    0x08 => write!(line, "\\b"),
                    b' '..=b'~' => write!(line, "{}", char::from(byte)),
                    byte => write!(line, "\\x{byte:02x}"),
                };
            }
            line.push('"');
        }
        let message = Arc::new(Value::Simple(line));
        for peer in &*self.monitors.peers.lock() {
            peer.send(&message, delivery_limit.now_ms, delivery_limit.limit);
        }
    }
}
