//! Reads the log back after a crash or a clean shutdown, and decides where it ends.
//!
//! The log ends at the first position P without a valid chunk. That is either where the last,
//! never acknowledged write was torn, or damage to something that had been synced. Claims (see
//! the module above) tell the two apart: if anything on disk claims that a position beyond P was
//! durable, then what is at P had been synced, and the database must not open without it.
//!
//! Where claims have to be looked for: a file whose header has generation g was last written
//! before the header of any later generation existed, and no claim in it is beyond that later
//! segment's `start_pos`, which the later header claims itself. So the headers and the rest of the
//! newest segment, as far as that is of its own generation, are all that can claim something. A
//! file without a readable header is searched for one thing only: a chunk that is newer than every
//! header, which proves that the newest header is lost.
//!
//! Called once, by `commit` when the log is opened.

use super::format::{ChunkHeader, ChunkSeed, SEGMENT_HEADER_LEN, SegmentHeader, SegmentIdentity};
use super::format::{SegmentHeaderRead, UNUSED, VERSION, read_commit};
use super::reader::{Expect, SegmentReader};
use super::segments::{Inventory, Live, SegmentFile, Segments, parse_file_name};
use super::{DbId, LogWriter};
use crate::bugs::{self, Bug};
use crate::codec::Reader;
use crate::entry::{SEQ_MAX, Seq};
use crate::env::{OpenMode, Vfs};
use crate::error::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// No database gets there by writing, and the generations after it still fit.
const GENERATION_MAX: u64 = u64::MAX >> 1;

/// Where recovery begins: what the manifest knows of the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecoveryStart {
    /// Where to begin: a position that `log_start` gave out.
    pub(crate) log_start: u64,
    /// A sequence number that was durable when the manifest was written, and not below the one
    /// that `log_start` was computed for. A log that has records but ends before it is damaged.
    pub(crate) last_seq: Seq,
    /// Whether this database ever had a log: then finding none is damage.
    pub(crate) expect_log: bool,
}

/// One commit read back, in the order of sequence numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplayedCommit<'a> {
    pub(crate) first_seq: Seq,
    pub(crate) seq_count: u32,
    pub(crate) ops: &'a [u8],
}

/// What was read back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// The last sequence number in use.
    pub(crate) last_seq: Seq,
    /// The latest wall clock seen in a chunk; 0 if there was none.
    pub(crate) clock_ms: u64,
    /// Where the log ended, and goes on.
    pub(crate) end_pos: u64,
    pub(crate) segments: u64,
    pub(crate) chunks: u64,
    pub(crate) commits: u64,
    /// Bytes of the chunks read.
    pub(crate) bytes: u64,
    /// Bytes of writes that had begun but were never synced, as far as they left a trace.
    pub(crate) torn_bytes: u64,
}

/// Reads the log as [`recover`] does, and changes nothing.
pub(crate) fn inspect(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    db_id: DbId,
    from: RecoveryStart,
    replay: &mut dyn FnMut(ReplayedCommit<'_>) -> Result<()>,
) -> Result<()> {
    let found = Found::read(vfs, dir, db_id)?;
    read(&found, dir, from, ChunkSeed::new(&db_id), replay).map(drop)
}

/// Walks the log from `from` to its end, and makes sure that this is its end.
fn read(
    found: &Found,
    dir: &Path,
    from: RecoveryStart,
    seed: ChunkSeed,
    replay: &mut dyn FnMut(ReplayedCommit<'_>) -> Result<()>,
) -> Result<(Walk, Evidence)> {
    if !from.log_start.is_multiple_of(8) {
        return Err(Error::corruption(dir, 0, format!("log position {} is odd", from.log_start)));
    }
    if from.expect_log && found.segments.is_empty() {
        return Err(Error::corruption(dir, 0, "the log is missing: no wal-*.log has a header"));
    }
    let mut walk = Walk { pos: from.log_start, ..Walk::default() };
    for range in found.ranges(from.log_start) {
        if range.segment.identity.start_pos > walk.pos || !walk.range(&range, seed, replay)? {
            break;
        }
    }
    let evidence = found.judge_end(&walk, from, seed)?;
    Ok((walk, evidence))
}

/// Replays the log and leaves it ready to be appended to, in a new segment that starts where the
/// old log ended. Everything replayed is durable on return.
pub(crate) fn recover(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    db_id: DbId,
    segment_bytes: u64,
    from: RecoveryStart,
    replay: &mut dyn FnMut(ReplayedCommit<'_>) -> Result<()>,
) -> Result<(LogWriter, Arc<Segments>, Recovered)> {
    let found = Found::read(vfs, dir, db_id)?;
    let (walk, evidence) = read(&found, dir, from, ChunkSeed::new(&db_id), replay)?;
    let generation_max = evidence.newest.unwrap_or(UNUSED);
    if generation_max > GENERATION_MAX {
        let what = format!("the log has generation {generation_max}");
        return Err(Error::corruption(dir, 0, what));
    }

    let (live, void): (Vec<_>, Vec<_>) = found
        .segments
        .into_iter()
        .partition(|segment| walk.read_part(segment.identity.generation).is_some());
    // After a crash of the process alone, what was read may sit in the page cache only. From here
    // on it counts as durable: the commits, and the newest header, before any older one may go.
    let newest = void.iter().filter(|segment| Some(segment.identity.generation) == evidence.newest);
    for segment in live.iter().chain(newest).filter(|_| !bugs::on(Bug::RecoveredTailNotSynced)) {
        let path = &segment.file.path;
        if let Some(part) = walk.read_part(segment.identity.generation) {
            rewrite(segment, evidence.claimed, part.end_pos)?;
        }
        segment.file.file.sync_data().map_err(|e| Error::io("sync", path, e))?;
    }

    let recovered = Recovered {
        last_seq: walk.last_seq.unwrap_or(0).max(from.last_seq),
        clock_ms: walk.clock_ms,
        end_pos: walk.pos,
        segments: walk.read.len() as u64,
        chunks: walk.chunks,
        commits: walk.commits,
        bytes: walk.bytes,
        torn_bytes: evidence.torn_bytes,
    };
    let mut inventory = Inventory {
        slots: found.slots,
        next_generation: generation_max + 1,
        log_start: from.log_start,
        ..Inventory::default()
    };
    for segment in live {
        let read = walk.read_part(segment.identity.generation);
        let (end_pos, last_seq) = read.map_or((0, 0), |read| (read.end_pos, read.last_seq));
        inventory.live.push(Live {
            file: segment.file,
            start_pos: segment.identity.start_pos,
            end_pos,
            durable_pos: end_pos,
            last_seq,
        });
    }
    // The newest header must stay until a newer one is durable: it is what a lost header is
    // noticed by. All other files without a part in the log can be used at once.
    let mut later = Vec::new();
    for segment in void {
        let newest = Some(segment.identity.generation) == evidence.newest;
        if newest || segment.file.len != segment_bytes {
            later.push(segment.file);
        } else {
            inventory.idle.push(segment.file);
        }
    }
    for file in found.unused {
        let fits = file.len == segment_bytes;
        if fits { &mut inventory.idle } else { &mut later }.push(file);
    }
    let segments = Arc::new(Segments::new(Arc::clone(vfs), dir, db_id, segment_bytes, inventory));
    let prepared = segments.prepare(0)?;
    let writer = LogWriter::start(&segments, prepared, recovered.end_pos, recovered.last_seq)?;
    // A file that cannot be removed is only in the way; it will be tried again.
    let _ = segments.adopt(later, found.unreadable);
    Ok((writer, segments, recovered))
}

/// Writes again, unchanged, what nothing on disk claims to be synced. If it was a failed sync that
/// ended the last process, the system may take these bytes for written when they are not, and a
/// sync alone would not write them.
fn rewrite(segment: &Segment, claimed: u64, end_pos: u64) -> Result<()> {
    let SegmentFile { path, file, len: file_len, .. } = &segment.file;
    let mut at = segment.identity.offset_of(claimed);
    let end = segment.identity.offset_of(end_pos);
    let mut buf = vec![0; (end.saturating_sub(at)).min(1 << 20) as usize];
    while at < end {
        let len = (end - at).min(buf.len() as u64);
        let part = buf.get_mut(..len as usize).unwrap_or_default();
        // A file cut short may lack the zeros behind the last chunk.
        let there = file_len.saturating_sub(at).min(len) as usize;
        part.fill(0);
        let found = part.get_mut(..there).unwrap_or_default();
        file.read_exact_at(found, at).map_err(|e| Error::io("read", path, e))?;
        file.write_at(part, at).map_err(|e| Error::io("write", path, e))?;
        at += len;
    }
    Ok(())
}

/// A file with a readable header.
#[derive(Debug)]
struct Segment {
    file: SegmentFile,
    identity: SegmentIdentity,
    durable_pos: u64,
}

/// A segment's part of the log.
#[derive(Debug)]
struct Range<'a> {
    segment: &'a Segment,
    /// Where a later generation takes over.
    end_pos: Option<u64>,
}

/// All segment files in the folder.
#[derive(Debug, Default)]
struct Found {
    /// By generation.
    segments: Vec<Segment>,
    /// Allocated, never used.
    unused: Vec<SegmentFile>,
    unreadable: Vec<SegmentFile>,
    slots: std::collections::BTreeSet<u32>,
}

impl Found {
    fn read(vfs: &Arc<dyn Vfs>, dir: &Path, db_id: DbId) -> Result<Found> {
        let mut found = Found::default();
        let names = vfs.list(dir).map_err(|e| Error::io("list", dir, e))?;
        for name in names {
            let Some(slot) = parse_file_name(&name) else { continue };
            let path = dir.join(&name);
            let file =
                vfs.open(&path, OpenMode::ReadWrite).map_err(|e| Error::io("open", &path, e))?;
            let len = file.len().map_err(|e| Error::io("measure", &path, e))?;
            let mut head = [0; SEGMENT_HEADER_LEN];
            if len >= head.len() as u64 {
                file.read_exact_at(&mut head, 0).map_err(|e| Error::io("read", &path, e))?;
            }
            let file = SegmentFile { slot, path, file, len };
            found.slots.insert(slot);
            match SegmentHeader::decode(&head) {
                SegmentHeaderRead::Version(version) => {
                    return Err(Error::Version {
                        path: file.path,
                        found: version,
                        supported: VERSION,
                    });
                }
                SegmentHeaderRead::Unreadable => found.unreadable.push(file),
                SegmentHeaderRead::Header(header) if header.db_id != db_id => {
                    let what = "its header names another database".to_owned();
                    return Err(Error::ForeignFile { path: file.path, what });
                }
                SegmentHeaderRead::Header(header) if header.generation == UNUSED => {
                    found.unused.push(file);
                }
                SegmentHeaderRead::Header(header) => found.segments.push(Segment {
                    file,
                    identity: header.identity(),
                    durable_pos: header.durable_pos,
                }),
            }
        }
        found.segments.sort_by_key(|segment| segment.identity.generation);
        for pair in found.segments.windows(2) {
            if let [a, b] = pair
                && a.identity.generation == b.identity.generation
            {
                let what = format!("it is a copy of {}", a.file.path.display());
                return Err(Error::ForeignFile { path: b.file.path.clone(), what });
            }
        }
        Ok(found)
    }

    /// The parts of the log from `log_start` on, in order. They join without a gap: each ends
    /// where a later generation starts, and the newest has no end.
    fn ranges(&self, log_start: u64) -> Vec<Range<'_>> {
        let mut ranges = Vec::new();
        let mut taken_from: Option<u64> = None;
        for segment in self.segments.iter().rev() {
            let start_pos = segment.identity.start_pos;
            if taken_from.is_some_and(|taken| taken <= start_pos) {
                continue; // void: a later recovery found that the log ended before it
            }
            if taken_from.is_none_or(|taken| taken > log_start) {
                ranges.push(Range { segment, end_pos: taken_from });
            }
            taken_from = Some(start_pos);
        }
        ranges.reverse();
        ranges
    }

    /// Decides whether the log may end where the walk stopped.
    fn judge_end(&self, walk: &Walk, from: RecoveryStart, seed: ChunkSeed) -> Result<Evidence> {
        let end = walk.pos;
        let newest = self.segments.last();
        let newest_generation = newest.map(|segment| segment.identity.generation);
        let mut evidence = Evidence { newest: newest_generation, torn_bytes: 0, claimed: 0 };
        let mut claimed = 0;
        for segment in &self.segments {
            claimed = claimed.max(segment.durable_pos);
        }
        if let Some(newest) = newest {
            newest.search(newest.identity.offset_of(end), seed, &mut |pos, chunk| {
                claimed = claimed.max(chunk.durable_pos(pos));
                if pos >= end {
                    let torn_to = pos.saturating_add(chunk.total_len());
                    evidence.torn_bytes = evidence.torn_bytes.max(torn_to - end);
                }
            })?;
        }
        if bugs::on(Bug::DamageTakenForTornTail) {
            return Ok(evidence);
        }
        let mut headless = None;
        for file in &self.unreadable {
            search(file, 0, &mut |offset, head| {
                let newest = newest_generation.unwrap_or(UNUSED);
                if ChunkHeader::is_newer_than(head, newest, offset, seed) {
                    headless = Some(&file.path);
                }
            })?;
        }
        if let Some(path) = headless {
            let what = format!(
                "its header is unreadable, but it holds the newest part of the log{}",
                self.later_than(walk, seed)
            );
            return Err(Error::corruption(path, 0, what));
        }
        if claimed > end {
            let what = format!(
                "no valid chunk at log position {end}, but the log was durable up to position \
                 {claimed}{}",
                self.later_than(walk, seed)
            );
            return Err(self.corruption_at(end, what));
        }
        if let Some(last_seq) = walk.last_seq.filter(|last_seq| *last_seq < from.last_seq) {
            let what = format!(
                "the log ends with sequence number {last_seq}, but {} was durable",
                from.last_seq
            );
            return Err(self.corruption_at(end, what));
        }
        evidence.claimed = claimed;
        Ok(evidence)
    }

    /// Damage at a position of the log, told in terms of a file where one covers it.
    fn corruption_at(&self, pos: u64, what: String) -> Error {
        let ranges = self.ranges(pos);
        match ranges.first() {
            Some(Range { segment, .. }) if segment.identity.start_pos <= pos => {
                Error::corruption(&segment.file.path, segment.identity.offset_of(pos), what)
            }
            Some(range) => {
                let path = &range.segment.file.path;
                Error::corruption(path, 0, format!("{what}; the segment before it is missing"))
            }
            None => Error::corruption(Path::new("wal-*.log"), 0, what),
        }
    }

    /// What would be lost by going on, for the message: chunks beyond the end of the walk.
    fn later_than(&self, walk: &Walk, seed: ChunkSeed) -> String {
        let (mut chunks, mut first_seq) = (0u64, 0);
        for segment in &self.segments {
            // Only for the message: a file that cannot be read adds nothing to it.
            let _ = segment.search(0, seed, &mut |pos, chunk| {
                if pos > walk.pos && chunk.payload_len > 0 {
                    chunks += 1;
                    first_seq = chunk.first_seq.max(first_seq);
                }
            });
        }
        let known = walk.last_seq.unwrap_or(0);
        if first_seq <= known {
            return String::new();
        }
        format!(
            "; {chunks} later chunk(s) with commits up to sequence number {first_seq} at least \
             exist, {known} was the last one read"
        )
    }
}

impl Segment {
    /// Calls `found` with the position of every chunk header of this segment from `offset` on,
    /// whatever is around it. What an earlier use of the file left behind does not count.
    fn search(
        &self,
        offset: u64,
        seed: ChunkSeed,
        found: &mut dyn FnMut(u64, ChunkHeader),
    ) -> Result<()> {
        search(&self.file, offset, &mut |offset, head| {
            if let Some(header) = ChunkHeader::decode(head, &self.identity, offset, seed) {
                found(self.identity.pos_of(offset), header);
            }
        })
    }
}

fn search(file: &SegmentFile, offset: u64, found: &mut dyn FnMut(u64, &[u8])) -> Result<()> {
    SegmentReader::new(&file.path, &file.file, file.len).search(offset, found)
}

/// What the files show of where the log ends.
#[derive(Debug)]
struct Evidence {
    /// The highest generation.
    newest: Option<u64>,
    torn_bytes: u64,
    /// Up to where something on disk says that the log was synced.
    claimed: u64,
}

/// The progress of the replay.
#[derive(Debug, Default)]
struct Walk {
    pos: u64,
    /// Of the last chunk read.
    last_seq: Option<Seq>,
    clock_ms: u64,
    chunks: u64,
    commits: u64,
    bytes: u64,
    /// The segments that hold something that was read, oldest first.
    read: Vec<ReadPart>,
}

#[derive(Debug)]
struct ReadPart {
    generation: u64,
    end_pos: u64,
    last_seq: Seq,
}

impl Walk {
    /// What was read of the segment of a generation.
    fn read_part(&self, generation: u64) -> Option<&ReadPart> {
        self.read.iter().find(|part| part.generation == generation)
    }

    /// Replays one segment's part of the log. Whether the part was complete, so that the next one
    /// can follow.
    fn range(
        &mut self,
        range: &Range<'_>,
        seed: ChunkSeed,
        replay: &mut dyn FnMut(ReplayedCommit<'_>) -> Result<()>,
    ) -> Result<bool> {
        let Segment { file, identity, .. } = range.segment;
        let mut reader = SegmentReader::new(&file.path, &file.file, file.len);
        while range.end_pos != Some(self.pos) {
            let expect = Expect { identity: *identity, pos: self.pos, end_pos: range.end_pos };
            let Some((header, payload)) = reader.chunk(expect, seed)? else { return Ok(false) };
            let Some(last_seq) = self.chunk(identity.version, &header, payload, replay)? else {
                let what = "the chunk is intact but its sequence numbers are not in order";
                return Err(Error::corruption(&file.path, identity.offset_of(self.pos), what));
            };
            self.pos += header.total_len();
            match self.read.last_mut().filter(|part| part.generation == identity.generation) {
                Some(part) => {
                    part.end_pos = self.pos;
                    part.last_seq = last_seq;
                }
                None => self.read.push(ReadPart {
                    generation: identity.generation,
                    end_pos: self.pos,
                    last_seq,
                }),
            }
        }
        Ok(true)
    }

    /// Replays one chunk, and answers its last sequence number. `None` if the chunk makes no sense:
    /// its numbers do not go on where the last chunk ended, or its commits do not account for them.
    fn chunk(
        &mut self,
        version: u32,
        header: &ChunkHeader,
        payload: &[u8],
        replay: &mut dyn FnMut(ReplayedCommit<'_>) -> Result<()>,
    ) -> Result<Option<Seq>> {
        let Some(mut last_seq) = header.first_seq.checked_sub(1) else { return Ok(None) };
        if self.last_seq.is_some_and(|last| last != last_seq) || last_seq > SEQ_MAX {
            return Ok(None);
        }
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let Some(commit) = read_commit(&mut reader, version, last_seq + 1) else {
                return Ok(None);
            };
            last_seq += u64::from(commit.seq_count);
            if last_seq > SEQ_MAX {
                return Ok(None);
            }
            replay(ReplayedCommit {
                first_seq: commit.first_seq,
                seq_count: commit.seq_count,
                ops: commit.ops,
            })?;
            self.commits += 1;
        }
        if header.last_seq.is_some_and(|said| said != last_seq) {
            return Ok(None);
        }
        self.last_seq = Some(last_seq);
        self.clock_ms = self.clock_ms.max(header.clock_ms);
        self.chunks += 1;
        self.bytes += header.total_len();
        Ok(Some(last_seq))
    }
}
