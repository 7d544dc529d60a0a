//! Appends chunks to the newest segment, syncs it, and moves on to the next.
//!
//! One at a time: `commit` keeps the only writer behind a lock. After any error the state of the
//! file is unknown and the writer must not be used again; `commit` poisons the log.

use super::format::{self, ChunkSeed, ChunkStamp};
use super::segments::{Activated, FIRST_BYTES, Prepared, Segments};
use crate::bugs::{self, Bug};
use crate::entry::Seq;
use crate::env::VfsFile;
use crate::error::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;

/// So much unsynced log takes a disk some milliseconds. Less: more syncs that nobody asked for; more:
/// a writer that comes to the end of a segment waits for longer.
const SYNC_AHEAD_BYTES: u64 = 1 << 20;

/// What the caller does after a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterChunk {
    /// A sync: one write, and the sync finds just the pages that were written.
    Sync,
    /// Other chunks, as far as anybody knows.
    More,
}

/// A file that the log thread should sync without holding up the writer, because much was written to it since:
/// what is on the disk already costs the next sync, and those that wait for it, nothing. It tells nobody that
/// anything is durable.
#[derive(Debug)]
pub(crate) struct SyncRequest {
    pub(crate) path: PathBuf,
    /// The writer's handle, which is to be told of the sync and not to be synced.
    pub(crate) stored: Arc<dyn VfsFile>,
    /// Whether the end of the segment is near, where a writer will wait for what is not synced then.
    pub(crate) is_urgent: bool,
    /// Where the last chunk ended: the writer stores behind it.
    pub(crate) end: u64,
}

#[derive(Debug)]
pub(crate) struct LogWriter {
    segments: Arc<Segments>,
    seed: ChunkSeed,
    current: Activated,
    /// Where the next chunk goes.
    pos: u64,
    /// Everything before this is synced.
    durable_pos: u64,
    /// Everything before this has been given out to be synced ahead.
    ahead_pos: u64,
    /// The last sequence number written.
    last_seq: Seq,
}

impl LogWriter {
    /// Goes on at `pos` in a new segment. Everything before `pos` must be synced.
    pub(crate) fn start(
        segments: &Arc<Segments>,
        prepared: Prepared,
        pos: u64,
        last_seq: Seq,
    ) -> Result<LogWriter> {
        let current = segments.activate(prepared, pos, last_seq)?;
        Ok(LogWriter {
            segments: Arc::clone(segments),
            seed: ChunkSeed::new(segments.db_id()),
            current,
            pos,
            durable_pos: pos,
            ahead_pos: pos,
            last_seq,
        })
    }

    pub(crate) fn last_seq(&self) -> Seq {
        self.last_seq
    }

    /// Whether something was written since the last sync.
    pub(crate) fn is_dirty(&self) -> bool {
        self.durable_pos < self.pos
    }

    /// How many bytes the current segment still takes.
    pub(crate) fn room(&self) -> u64 {
        self.current.capacity.saturating_sub(self.pos - self.current.identity.start_pos)
    }

    /// Writes one chunk: `buf` was begun with `begin_chunk` and holds commits up to `last_seq`.
    /// The appender reserved its room, so it fits.
    pub(crate) fn write_chunk(
        &mut self,
        buf: &mut Vec<u8>,
        last_seq: Seq,
        clock_ms: u64,
        next: AfterChunk,
    ) -> Result<()> {
        let identity = self.current.identity;
        let offset = identity.offset_of(self.pos);
        let stamp = ChunkStamp {
            generation: identity.generation,
            offset,
            unsynced_bytes: self.pos - self.durable_pos,
            clock_ms,
            first_seq: self.last_seq + 1,
        };
        let fits = format::finish_chunk(buf, stamp, self.seed).is_some()
            && buf.len() as u64 <= self.room();
        if !fits {
            return Err(Error::invalid("a chunk does not fit into the segment reserved for it"));
        }
        let file = &self.current.file;
        let written = match next {
            AfterChunk::Sync => file.write_at(buf, offset),
            AfterChunk::More => file.store_at(buf, offset),
        };
        written.map_err(|e| Error::io("write", &self.current.path, e))?;
        self.pos += buf.len() as u64;
        self.last_seq = last_seq;
        Ok(())
    }

    /// What is to be synced ahead now.
    pub(crate) fn next_to_sync(&mut self) -> Option<SyncRequest> {
        // The nearer the end of the segment, whose writer waits for a sync, the less is left to it.
        let enough = (self.room() / 2).clamp(SYNC_AHEAD_BYTES / 16, SYNC_AHEAD_BYTES);
        if self.pos - self.durable_pos.max(self.ahead_pos) < enough {
            return None;
        }
        self.ahead_pos = self.pos;
        Some(SyncRequest {
            path: self.current.path.clone(),
            stored: Arc::clone(&self.current.file),
            is_urgent: enough < SYNC_AHEAD_BYTES,
            end: self.current.identity.offset_of(self.pos),
        })
    }

    /// Makes everything written durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if !bugs::on(Bug::LogSyncSkipped) {
            self.current.file.sync_data().map_err(|e| Error::io("sync", &self.current.path, e))?;
        }
        self.durable_pos = self.pos;
        Ok(())
    }

    /// Tells the list of segments how far this one got.
    pub(crate) fn report_progress(&self) {
        self.segments.progress(self.pos, self.durable_pos, self.last_seq);
    }

    /// Syncs the current segment and goes on in `prepared`.
    pub(crate) fn rotate(&mut self, prepared: Prepared) -> Result<()> {
        if self.is_dirty() {
            self.sync()?;
        }
        self.report_progress();
        self.current = self.segments.activate(prepared, self.pos, self.last_seq)?;
        Ok(())
    }

    /// For a clean shutdown, when everything is synced: leaves behind something that says so, and
    /// as little else as possible. Nothing may be written afterwards, but in another segment.
    ///
    /// Killed in any step of it, the log is what it was: the mark is synced before the file is cut
    /// behind it, and the header of a last segment before the one that it replaces can be removed.
    pub(crate) fn finish(&mut self, clock_ms: u64) -> Result<()> {
        // What a purge finds in files that are not needed is to be overwritten, not cut off.
        let purging = self.segments.is_purging();
        let used = self.current.identity.offset_of(self.pos);
        let is_ballast =
            !purging && used > FIRST_BYTES && self.segments.needs_nothing_before(self.pos);
        let ended = is_ballast && self.rotate_to_last()? || self.mark_end(clock_ms)?;
        if !ended {
            self.rotate_to_last()?;
        }
        if !purging {
            // The rest of the file was reserved for more. If that fails, it is only larger.
            let _ = self.current.file.set_len(self.current.identity.offset_of(self.pos));
        }
        Ok(())
    }

    /// Goes on in a segment that is a header and no more: it says that everything before it was
    /// synced. `false` if that cannot be made, because the disk is full.
    fn rotate_to_last(&mut self) -> Result<bool> {
        let Ok(prepared) = self.segments.prepare_last() else { return Ok(false) };
        self.rotate(prepared)?;
        Ok(true)
    }

    /// Leaves a mark behind the last commit which says that it was synced, so that later damage to
    /// it cannot pass for a torn write. `false` if there is no room for it; the header of a next
    /// segment would say the same. On a full disk it is done without: it guards against damage, not
    /// against loss.
    fn mark_end(&mut self, clock_ms: u64) -> Result<bool> {
        if self.pos == self.current.identity.start_pos {
            return Ok(true); // this segment's header says it
        }
        if self.room() < format::CHUNK_HEADER_LEN as u64 {
            return Ok(false);
        }
        let mut mark = Vec::new();
        format::begin_chunk(&mut mark);
        self.write_chunk(&mut mark, self.last_seq, clock_ms, AfterChunk::Sync)?;
        self.sync()?;
        self.report_progress();
        Ok(true)
    }
}
