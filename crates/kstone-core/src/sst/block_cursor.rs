//! Walks the entries of one data block, in both directions.
//!
//! Backwards is harder: keys are differences to the entry *before*. The cursor walks forward once
//! from the restart in front and keeps, for every step, what the step changed; going back undoes
//! the steps one at a time. So a backward scan decodes every entry twice, not once for each of its
//! neighbours, and the memory it takes is bounded by the block.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::block::{Block, Malformed, RawEntry, common_prefix_len};
use crate::entry::{EntryRef, Kind, Seq, View, entry_order};
use crate::prefetch;

/// Room for a key that most keys fit into: growing takes longer.
const KEY_LEN_USUAL: usize = 128;
/// So many bytes are copied at once where there are as many: with a length that is known, that is one
/// instruction, and most keys differ from the one before in fewer.
const TAIL_LEN_USUAL: usize = 16;

/// How far ahead of a walk its block is asked for: so far that an entry has come when its turn has,
/// and not further, because most walks are short.
const AHEAD_BYTES: usize = 768;
/// An entry of the usual size lies in two lines of memory.
const LINE_BYTES: usize = 64;

/// A key that changes at its end.
#[derive(Debug)]
struct KeyBuf {
    /// As long as the longest key so far, and [`KEY_LEN_USUAL`] at least, once there was one.
    bytes: Vec<u8>,
    len: usize,
}

impl KeyBuf {
    #[inline]
    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// What is behind the first `shared` bytes; `None` if there are not as many.
    #[inline]
    fn tail(&self, shared: usize) -> Option<&[u8]> {
        self.bytes.get(shared..self.len)
    }

    /// Keeps the first `shared` bytes, of which there must be as many, and puts the first `len` of
    /// `from` behind them.
    #[inline(always)]
    fn set_tail(&mut self, shared: usize, from: &[u8], len: usize) {
        self.len = shared + len;
        if len <= TAIL_LEN_USUAL
            && let Some(from) = from.first_chunk::<TAIL_LEN_USUAL>()
            && let Some(to) = self.bytes.get_mut(shared..)
            && let Some(to) = to.first_chunk_mut::<TAIL_LEN_USUAL>()
        {
            *to = *from;
            return;
        }
        self.set_unusual_tail(shared, from, len);
    }

    #[inline(never)]
    fn set_unusual_tail(&mut self, shared: usize, from: &[u8], len: usize) {
        if self.bytes.len() < self.len {
            self.bytes.resize(self.len.max(KEY_LEN_USUAL), 0);
        }
        if let (Some(to), Some(from)) = (self.bytes.get_mut(shared..self.len), from.get(..len)) {
            to.copy_from_slice(from);
        }
    }
}

/// A step forward that can be undone.
#[derive(Debug)]
struct Step {
    /// Where the entry before the step begins.
    from: usize,
    /// What the key after the step shares with the key before it.
    shared: usize,
    /// Where in `BlockCursor::tails` the rest of the key before the step begins.
    tail_at: usize,
}

/// What is known of the current entry beside its key.
#[derive(Debug)]
struct Current {
    at: usize,
    end: usize,
    seq: Seq,
    kind: Kind,
    expires_at_ms: u64,
    value: Range<usize>,
}

impl Current {
    #[inline]
    fn load(&mut self, at: usize, entry: &RawEntry<'_>) {
        *self = Current {
            at,
            end: entry.end,
            seq: entry.seq,
            kind: entry.kind,
            expires_at_ms: entry.expires_at_ms,
            value: entry.value_range(),
        };
    }
}

/// Where [`BlockCursor::next_visible`] has got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// The cursor is on a record that shows.
    Visible,
    /// There is none in the rest of the block.
    BlockEnd,
    /// Nor behind it: the cursor is on an entry where the walk ends.
    WalkEnd,
    /// The block is [`Malformed`].
    Damage,
}

/// A position in a block: on an entry, or on none.
#[derive(Debug)]
pub(super) struct BlockCursor {
    block: Arc<Block>,
    valid: bool,
    /// Whether the last step forward led to another key, and not to an older version.
    is_new: bool,
    /// For [`next_visible`](Self::next_visible): whether what shows of the current key is known, which
    /// its versions in the next block may have to tell.
    is_decided: bool,
    key: KeyBuf,
    current: Current,
    /// The steps that led here from the last restart, if they were kept.
    steps: Vec<Step>,
    tails: Vec<u8>,
}

impl BlockCursor {
    /// Not yet on any entry.
    pub(super) fn new(block: Arc<Block>) -> Self {
        BlockCursor {
            block,
            valid: false,
            is_new: true,
            is_decided: true,
            key: KeyBuf { bytes: Vec::new(), len: 0 },
            current: Current {
                at: 0,
                end: 0,
                seq: 0,
                kind: Kind::Put,
                expires_at_ms: 0,
                value: 0..0,
            },
            steps: Vec::new(),
            tails: Vec::new(),
        }
    }

    /// Goes on with another block, in the same memory; not yet on any entry.
    pub(super) fn reset(&mut self, block: Arc<Block>) {
        self.block = block;
        self.valid = false;
        self.forget_steps();
    }

    /// On no entry from here on.
    pub(super) fn invalidate(&mut self) {
        self.valid = false;
    }

    #[inline]
    pub(super) fn valid(&self) -> bool {
        self.valid
    }

    /// The current key; meaningless unless valid.
    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        self.key.as_slice()
    }

    /// Whether the last [`next`](Self::next) or [`seek_first`](Self::seek_first) led to another key than
    /// the one before, which a block's first entry is compared with too.
    #[inline]
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    #[inline]
    pub(super) fn entry(&self) -> Option<EntryRef<'_>> {
        if !self.valid {
            return None;
        }
        Some(EntryRef {
            key: self.key.as_slice(),
            seq: self.current.seq,
            kind: self.current.kind,
            expires_at_ms: self.current.expires_at_ms,
            value: self.block.payload().get(self.current.value.clone())?,
        })
    }

    /// Where in the payload the current value begins; meaningless unless valid.
    #[inline]
    pub(super) fn value_at(&self) -> usize {
        self.current.value.start
    }

    /// The current value, as [`Block::piece`] gives it; empty unless valid.
    pub(super) fn value_bytes(&self) -> Bytes {
        if !self.valid {
            return Bytes::new();
        }
        self.block.piece(self.current.value.clone())
    }

    pub(super) fn seek_first(&mut self) -> Result<(), Malformed> {
        self.go_to_restart(0)
    }

    pub(super) fn seek_last(&mut self) -> Result<(), Malformed> {
        self.go_in_front_of(self.block.entries_len())
    }

    /// To the first entry that is not in front of `(key, seq)`; to none if there is none.
    pub(super) fn seek(&mut self, key: &[u8], seq: Seq) -> Result<(), Malformed> {
        self.valid = false;
        let start = self.block.search_start(key, seq)?;
        // Who looks for a place in a block goes on from there, most often.
        let ahead = self.block.payload().get(start..).unwrap_or_default();
        prefetch::bytes_soon(ahead, AHEAD_BYTES);
        self.go_to_restart(start)?;
        while self.valid && entry_order(self.key(), self.current.seq, key, seq).is_lt() {
            self.next()?;
        }
        Ok(())
    }

    /// To the next entry; to none behind the last.
    #[inline]
    pub(super) fn next(&mut self) -> Result<(), Malformed> {
        if !self.valid {
            return Ok(());
        }
        self.forget_steps();
        if self.current.end >= self.block.entries_len() {
            self.valid = false;
            return Ok(());
        }
        self.step(false)
    }

    /// In front of the first entry, for [`next_visible`](Self::next_visible).
    pub(super) fn begin(&mut self) {
        self.forget_steps();
        self.current.end = 0;
    }

    /// The same, with no block before this one.
    pub(super) fn begin_anew(&mut self) {
        self.begin();
        self.key.len = 0;
        self.is_decided = true;
    }

    /// To the next entry if it is as most are: a record of its own key, without expiry, that a reader
    /// at the view's sequence number sees, or where the walk ends. Else `None`: nothing was done, and
    /// [`next_visible`](Self::next_visible) has to look. The cursor is on an entry that shows.
    #[inline(always)]
    pub(super) fn next_plain(&mut self, view: &View<'_>) -> Option<Reached> {
        let at = self.current.end;
        let entry = self.block.usual_entry(at)?;
        let tail = self.key.tail(entry.shared)?;
        let known = match entry.shared {
            0 => common_prefix_len(tail, entry.suffix),
            _ if at == 0 => return None,
            _ => 0,
        };
        let (shared, len) = (entry.shared + known, entry.suffix.len() - known);
        let is_same = len == 0 && tail.len() == known;
        if entry.kind != Kind::Put || entry.seq > view.seq || is_same {
            return None;
        }
        let payload = self.block.payload();
        let from = payload.get(entry.suffix_at() + known..)?;
        for ahead in [AHEAD_BYTES - LINE_BYTES, AHEAD_BYTES] {
            if let Some(place) = payload.get(entry.end + ahead) {
                prefetch::soon(place);
            }
        }
        self.key.set_tail(shared, from, len);
        self.current.load(at, &entry);
        self.forget_steps();
        (self.valid, self.is_decided) = (true, true);
        // The key before was in front of the end, and its first bytes are still the same.
        let high_len = view.high.map_or(0, <[u8]>::len);
        if shared < high_len && view.ends_before(self.key.as_slice()) {
            return Some(Reached::WalkEnd);
        }
        Some(Reached::Visible)
    }

    /// To the next key that the view shows, in one go: what [`next`](Self::next) and looking at each
    /// entry would come to. The key that the cursor is on has been dealt with.
    #[inline]
    pub(super) fn next_visible(&mut self, view: &View<'_>) -> Reached {
        let high_len = view.high.map_or(0, <[u8]>::len);
        self.forget_steps();
        self.valid = false;
        loop {
            let at = self.current.end;
            if at >= self.block.entries_len() {
                return Reached::BlockEnd;
            }
            let Ok(entry) = self.block.entry(at) else { return Reached::Damage };
            let Some(tail) = self.key.tail(entry.shared) else { return Reached::Damage };
            if at == 0 && entry.shared != 0 {
                return Reached::Damage;
            }
            // What a key shares with the one before is exact, but for restarts, which tell nothing:
            // what they share is looked for, so that the rest is as short as everybody's.
            let known = match entry.shared {
                0 => common_prefix_len(tail, entry.suffix),
                _ => 0,
            };
            let shared = entry.shared + known;
            let is_same = tail.len() == known && entry.suffix.len() == known;
            self.current.load(at, &entry);
            if is_same {
                if self.is_decided {
                    continue;
                }
            } else {
                let from =
                    self.block.payload().get(entry.suffix_at() + known..).unwrap_or_default();
                self.key.set_tail(shared, from, entry.suffix.len() - known);
                // The key before was in front of the end, and its first bytes are still the same.
                if shared < high_len && view.ends_before(self.key.as_slice()) {
                    self.valid = true;
                    return Reached::WalkEnd;
                }
            }
            self.is_decided = entry.seq <= view.seq;
            if self.is_decided && view.shows(entry.kind, entry.expires_at_ms) {
                self.valid = true;
                return Reached::Visible;
            }
        }
    }

    /// To the previous entry; to none in front of the first.
    pub(super) fn prev(&mut self) -> Result<(), Malformed> {
        if !self.valid {
            return Ok(());
        }
        let Some(step) = self.steps.pop() else { return self.go_in_front_of(self.current.at) };
        self.valid = false;
        let tail = self.tails.get(step.tail_at..).unwrap_or_default();
        self.key.set_tail(step.shared, tail, tail.len());
        self.tails.truncate(step.tail_at);
        self.current.load(step.from, &self.block.entry(step.from)?);
        self.valid = true;
        Ok(())
    }

    /// To the last entry that begins in front of `limit`, keeping the steps that lead there.
    fn go_in_front_of(&mut self, limit: usize) -> Result<(), Malformed> {
        self.valid = false;
        let (mut low, mut high) = (0, self.block.restarts());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.block.restart(middle).ok_or(Malformed)? < limit {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let Some(restart) = low.checked_sub(1) else { return Ok(()) };
        self.go_to_restart(self.block.restart(restart).ok_or(Malformed)?)?;
        while self.current.end < limit {
            self.step(true)?;
        }
        // A restart that is no entry's beginning leads past the limit.
        if self.current.end == limit {
            Ok(())
        } else {
            self.valid = false;
            Err(Malformed)
        }
    }

    fn go_to_restart(&mut self, at: usize) -> Result<(), Malformed> {
        self.valid = false;
        self.forget_steps();
        let entry = self.block.entry(at)?;
        if entry.shared != 0 {
            return Err(Malformed);
        }
        self.is_new = self.key.as_slice() != entry.suffix;
        self.is_decided = true;
        self.key.set_tail(0, entry.suffix, entry.suffix.len());
        self.current.load(at, &entry);
        self.valid = true;
        Ok(())
    }

    /// One entry forward. There is one: its end is in front of the entries' end.
    #[inline]
    fn step(&mut self, keep: bool) -> Result<(), Malformed> {
        self.valid = false;
        let at = self.current.end;
        let entry = self.block.entry(at)?;
        let tail = self.key.tail(entry.shared).ok_or(Malformed)?;
        if keep {
            let tail_at = self.tails.len();
            self.tails.extend_from_slice(tail);
            self.steps.push(Step { from: self.current.at, shared: entry.shared, tail_at });
        }
        self.is_decided = true;
        // What a key shares with the one before is exact, but for restarts, which share nothing.
        self.is_new = match entry.shared {
            0 => tail != entry.suffix,
            _ => !entry.suffix.is_empty() || !tail.is_empty(),
        };
        let from = self.block.payload().get(entry.suffix_at()..).unwrap_or_default();
        self.key.set_tail(entry.shared, from, entry.suffix.len());
        self.current.load(at, &entry);
        self.valid = true;
        Ok(())
    }

    #[inline]
    fn forget_steps(&mut self) {
        self.steps.clear();
        self.tails.clear();
    }

    /// Checks all that reading takes for granted: order, restarts, and that `shared` is exact.
    pub(super) fn check(&mut self) -> Result<(), &'static str> {
        const MALFORMED: &str = "an entry is malformed";
        self.seek_first().map_err(|_| MALFORMED)?;
        let mut restart = 0;
        let mut last: Option<(Vec<u8>, Seq)> = None;
        while self.valid {
            let is_restart = self.block.restart(restart) == Some(self.current.at)
                && restart < self.block.restarts();
            restart += usize::from(is_restart);
            let shared = self.block.entry(self.current.at).map_err(|_| MALFORMED)?.shared;
            if let Some((key, seq)) = &last {
                if entry_order(key, *seq, self.key.as_slice(), self.current.seq).is_ge() {
                    return Err("the entries are out of order");
                }
                if !is_restart && shared != common_prefix_len(key, self.key.as_slice()) {
                    return Err("an entry shares less with the one before than it could");
                }
            }
            if is_restart && shared != 0 {
                return Err("a restart does not have its whole key");
            }
            match &mut last {
                Some((key, seq)) => {
                    key.clear();
                    key.extend_from_slice(self.key.as_slice());
                    *seq = self.current.seq;
                }
                None => last = Some((self.key.as_slice().to_vec(), self.current.seq)),
            }
            self.next().map_err(|_| MALFORMED)?;
        }
        if restart != self.block.restarts() {
            return Err("a restart points into the middle of an entry");
        }
        Ok(())
    }
}
