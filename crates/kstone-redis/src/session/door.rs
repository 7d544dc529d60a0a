//! What a network front end (a "door", such as `kstone-resp`) needs of a session beside replies:
//! traffic counts, buffer limits, messages that were pushed to the client, disconnection.

use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::reply::{Out, Value, write_value};
use crate::server::clients::state;
use crate::server::config;
use crate::session::Session;

/// How much a client may send that has not authenticated: more than the longest command it may
/// send, and than what comes with one read behind it.
const STRANGER_QUERY_BYTES_MAX: usize = 256 * 1024;

impl Session {
    /// Commands have come: the first of them starts now.
    pub fn start_commands(&mut self) {
        self.command_started = self.server.engine.monotonic();
        self.client.peer.note_active(self.command_started);
    }

    /// When the next command starts, by a monotonic clock: when the last one ended, or the time of
    /// [`start_commands`](Session::start_commands) if that was later.
    pub fn command_started(&self) -> Duration {
        self.command_started
    }

    /// Counts bytes that were received.
    pub fn note_received(&self, bytes: usize) {
        self.server.stats.input_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The longest argument that is accepted.
    pub fn arg_len_max(&self) -> i64 {
        self.server.config.number(config::BULK_LEN_MAX)
    }

    /// How much a client may send that is not executed yet.
    pub fn query_bytes_max(&self) -> usize {
        let max = self.server.config.size(config::QUERY_BUFFER_LIMIT);
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        if self.client.is_authenticated { max } else { max.min(STRANGER_QUERY_BYTES_MAX) }
    }

    /// Whether the client has authenticated, or does not have to.
    pub fn is_authenticated(&self) -> bool {
        self.client.is_authenticated
    }

    /// Notes for CLIENT LIST how many bytes of commands are not executed yet, the next command
    /// included, and how many more the buffer has room for.
    pub fn note_query(&self, bytes: usize, free_bytes: usize) {
        self.client.peer.query_bytes.store(bytes, Ordering::Relaxed);
        self.client.peer.query_free_bytes.store(free_bytes, Ordering::Relaxed);
    }

    /// Counts bytes of replies that were sent.
    pub fn note_sent(&self, bytes: usize) {
        self.server.stats.output_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether the client was seen to have unread replies, or more messages than it may have for
    /// long: then [`is_over_limit`](Session::is_over_limit) is to be told when it has read all.
    pub fn has_unsent(&self) -> bool {
        let peer = &self.client.peer;
        peer.unsent_bytes.load(Ordering::Relaxed) > 0 || peer.is_over_soft_limit()
    }

    /// Whether so much that the client has not read is too much: then it is to be cut off.
    pub fn is_over_limit(&self, unread_bytes: usize) -> bool {
        let peer = &self.client.peer;
        peer.unsent_bytes.store(unread_bytes, Ordering::Relaxed);
        if !self.client.is_authenticated && peer.is_over_strangers_limit(unread_bytes as u64) {
            return true;
        }
        let delivery_limit = self.server.delivery_limit(peer.is(state::PUBSUB));
        peer.is_over_limit(unread_bytes as u64, delivery_limit.now_ms, delivery_limit.limit)
    }

    /// Ready when there is something to [`take_messages`](Session::take_messages), or the client is
    /// to be disconnected.
    pub fn poll_attention(&self, context: &Context<'_>) -> Poll<()> {
        self.client.peer.poll_attention(context)
    }

    /// Whether somebody disconnects this client.
    pub fn is_killed(&self) -> bool {
        self.client.peer.is_killed()
    }

    /// Whether the client is to be disconnected when the replies that it was given are out.
    pub fn is_dismissed(&self) -> bool {
        self.client.peer.is_dismissed()
    }

    /// Says what was sent to the client without being asked for.
    pub fn take_messages(&mut self, out: Out<'_>) {
        if !self.client.peer.has_attention() {
            return;
        }
        // They tell of what others have written.
        self.note_seq(self.server.engine.applied_seq());
        for message in self.client.peer.take() {
            write_value(&message, out);
        }
    }

    /// What was sent to the client without being asked for: messages of channels, invalidations.
    pub fn messages(&mut self) -> Vec<Value> {
        self.note_seq(self.server.engine.applied_seq());
        self.client.peer.take().iter().map(|message| Value::clone(message)).collect()
    }
}
