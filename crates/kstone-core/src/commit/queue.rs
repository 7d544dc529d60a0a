//! What was appended but not yet written, in sequence order.
//!
//! Appenders copy their commit into the chunk being filled, under the queue's lock; the writer
//! takes all chunks away at once and writes them without that lock, while appenders go on filling.
//! The queue also decides which segment a chunk goes to, because an appender must know that there
//! is room on disk *before* it is given sequence numbers.

use crate::entry::Seq;
use crate::wal::Prepared;
use crate::wal::format::{CHUNK_HEADER_LEN, begin_chunk, commit_bytes, padded, put_commit};
use std::collections::VecDeque;

/// A chunk this large is closed and another begun: no write call and no read buffer of a recovery
/// gets much larger, unless one commit is.
const CHUNK_BYTES_MAX: u64 = 1 << 20;
/// Memory of a buffer that is worth keeping for the next chunk.
const SPARE_BYTES_MAX: usize = 2 << 20;
const SPARES_MAX: usize = 2;

/// What the writer has to do next.
#[derive(Debug)]
pub(crate) enum Item {
    Chunk(Chunk),
    /// Go on in this segment.
    Rotate(Prepared),
}

#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// Room for the header, then commits; empty if nothing was appended.
    pub(crate) buf: Vec<u8>,
    pub(crate) last_seq: Seq,
    pub(crate) commits: u64,
}

/// All that was pending when the writer came for it.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) items: VecDeque<Item>,
    /// The last sequence number given out until then.
    pub(crate) last_seq: Seq,
}

#[derive(Debug)]
pub(crate) struct Queue {
    next_seq: Seq,
    filling: Chunk,
    closed: VecDeque<Item>,
    /// What the segment of the last item still takes, after everything pending.
    room: u64,
    usual_capacity: u64,
    /// What the longest commit so far takes alone, of those that a usual segment takes.
    longest: u64,
    prepared: Vec<Prepared>,
    spares: Vec<Vec<u8>>,
    pending_bytes: u64,
    /// The log thread sleeps without a timeout: the next appender has to wake it.
    pub(crate) thread_sleeps: bool,
    /// The log thread was told that much is pending.
    pub(crate) thread_told: bool,
}

impl Queue {
    pub(crate) fn new(last_seq: Seq, room: u64, usual_capacity: u64) -> Self {
        Queue {
            next_seq: last_seq + 1,
            filling: Chunk::default(),
            closed: VecDeque::new(),
            room,
            usual_capacity,
            longest: 0,
            prepared: Vec::new(),
            spares: Vec::new(),
            pending_bytes: 0,
            thread_sleeps: false,
            thread_told: false,
        }
    }

    pub(crate) fn last_seq(&self) -> Seq {
        self.next_seq - 1
    }

    pub(crate) fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// Appends a commit and gives it its sequence numbers, the first of which is returned; `None`
    /// if that takes a segment which [`Queue::add_prepared`] has to bring first.
    pub(crate) fn append(&mut self, ops: &[u8], seq_count: u32) -> Option<Seq> {
        let commit = commit_bytes(ops.len(), seq_count);
        let mut extra = self.extra_bytes(commit);
        if extra > self.room {
            let alone = alone_bytes(commit);
            if alone <= self.usual_capacity {
                self.longest = self.longest.max(alone);
            }
            let prepared = self.take_prepared(alone)?;
            self.begin_segment(prepared);
            extra = alone;
        } else if !self.goes_into_filling(commit) {
            self.close_filling();
        }
        if self.filling.buf.is_empty() {
            self.filling.buf = self.spares.pop().unwrap_or_default();
            begin_chunk(&mut self.filling.buf);
        }
        let first_seq = self.next_seq;
        self.next_seq += u64::from(seq_count);
        self.room -= extra;
        self.pending_bytes += extra;
        put_commit(&mut self.filling.buf, seq_count, ops);
        self.filling.last_seq = self.next_seq - 1;
        self.filling.commits += 1;
        Some(first_seq)
    }

    /// Whether [`Queue::append`] would succeed now for a commit of so many bytes, header included.
    pub(crate) fn accepts(&self, commit: u64) -> bool {
        self.extra_bytes(commit) <= self.room || self.find_prepared(alone_bytes(commit)).is_some()
    }

    pub(crate) fn add_prepared(&mut self, prepared: Prepared) {
        self.prepared.push(prepared);
    }

    /// What a next segment has to take, if there is less room than half a usual one has and none is there
    /// yet that takes every commit: the first ones may be too short for some.
    pub(crate) fn wants_prepared(&self) -> Option<u64> {
        let is_wanted =
            self.room < self.usual_capacity / 2 && self.find_prepared(self.longest).is_none();
        is_wanted.then_some(self.longest)
    }

    /// Gives up the prepared segments, to be scrubbed or removed.
    pub(crate) fn take_all_prepared(&mut self) -> Vec<Prepared> {
        std::mem::take(&mut self.prepared)
    }

    /// Everything appended from now on goes to this segment.
    pub(crate) fn begin_segment(&mut self, prepared: Prepared) {
        self.close_filling();
        self.room = prepared.capacity();
        self.closed.push_back(Item::Rotate(prepared));
    }

    /// Hands everything pending to the writer, and takes back buffers it is done with.
    pub(crate) fn take(&mut self, done: &mut Vec<Vec<u8>>) -> Batch {
        self.close_filling();
        for buf in done.drain(..) {
            if self.spares.len() < SPARES_MAX && buf.capacity() <= SPARE_BYTES_MAX {
                self.spares.push(buf);
            }
        }
        self.pending_bytes = 0;
        self.thread_told = false;
        Batch { items: std::mem::take(&mut self.closed), last_seq: self.last_seq() }
    }

    fn close_filling(&mut self) {
        if !self.filling.buf.is_empty() {
            self.closed.push_back(Item::Chunk(std::mem::take(&mut self.filling)));
        }
    }

    fn goes_into_filling(&self, commit: u64) -> bool {
        let len = self.filling.buf.len() as u64;
        len > 0 && len + commit <= CHUNK_BYTES_MAX
    }

    /// By how much the pending chunks would grow on disk.
    fn extra_bytes(&self, commit: u64) -> u64 {
        if !self.goes_into_filling(commit) {
            return alone_bytes(commit);
        }
        let len = self.filling.buf.len() as u64;
        padded(len + commit) - padded(len)
    }

    /// A segment of up to the usual size, or for a commit beyond that one made for it.
    fn find_prepared(&self, need: u64) -> Option<usize> {
        self.prepared.iter().position(|prepared| {
            let capacity = prepared.capacity();
            capacity >= need && (capacity <= self.usual_capacity || need > self.usual_capacity)
        })
    }

    fn take_prepared(&mut self, need: u64) -> Option<Prepared> {
        self.find_prepared(need).map(|at| self.prepared.swap_remove(at))
    }
}

/// What a chunk with this commit alone takes on disk.
pub(crate) fn alone_bytes(commit: u64) -> u64 {
    padded(CHUNK_HEADER_LEN as u64 + commit)
}
