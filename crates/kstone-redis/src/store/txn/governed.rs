//! What a transaction shows to the write policy: which keys a command has changed, what they were
//! before and are now, and what the command said about their expiry. `server::governed` asks the
//! policy.
//!
//! A command's changes are those since the last [savepoint](Txn::set_savepoint), or all of them if
//! there is none: each of several commands in a transaction sets one, a single command need not.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow, Deref};
use std::sync::Arc;

use bytes::Bytes;
use kstone::policy::{Counted, Effect, IndexEntry, PatternId, RequestedTtl, WritePolicy};

use crate::fault::Result;
use crate::store::changes::{Head, KeyChanges};
use crate::store::key_state::KeyState;
use crate::store::strings::StringValue;
use crate::store::txn::Txn;
use crate::store::{Entry, Kind};

/// A string of pieces up to this long is read in full when a part of it is changed: its value may
/// be a document that names a person. Longer ones are bitmaps and files, of which a bit is to cost
/// no more for being governed. The policy hears how long they are, and refuses the change where it
/// would have to see all of it.
const READ_LEN_MAX: u64 = 1 << 20;

/// The policy that a transaction is under.
#[derive(Debug)]
pub(crate) enum PolicyRef<'s> {
    /// Of somebody who keeps it for longer.
    Lent(&'s dyn WritePolicy),
    Own(Arc<dyn WritePolicy>),
}

impl<'s> Deref for PolicyRef<'s> {
    type Target = dyn WritePolicy + 's;

    fn deref(&self) -> &Self::Target {
        match self {
            PolicyRef::Lent(policy) => *policy,
            PolicyRef::Own(policy) => &**policy,
        }
    }
}

/// Which policy the patterns are of that are noted with the heads of keys: another one has others.
#[derive(Debug, Clone, Copy)]
struct PatternSeries(u16);

impl PatternSeries {
    /// Of a policy by its number. After so many that they do not tell each other apart any more,
    /// nothing is noted.
    fn of(number: u64) -> PatternSeries {
        PatternSeries(u16::try_from(number).unwrap_or(0))
    }

    /// How a pattern is noted; 0 if it cannot be.
    fn mark(self, pattern: PatternId) -> u32 {
        match u16::try_from(pattern.0) {
            Ok(pattern) if self.0 != 0 => u32::from(self.0) << 16 | u32::from(pattern),
            _ => 0,
        }
    }

    /// The pattern that was noted, if it was by the same policy.
    fn read(self, mark: u32) -> Option<PatternId> {
        (self.0 != 0 && mark >> 16 == u32::from(self.0)).then_some(PatternId(mark & 0xffff))
    }
}

/// What a transaction under a policy remembers.
#[derive(Debug)]
pub(super) struct PolicyState<'s> {
    /// Not here while it is asked.
    policy: Option<PolicyRef<'s>>,
    /// What the engine has under the key that was looked for last.
    pub(super) seen: Option<KeyState>,
    /// What was noted with that.
    pub(super) seen_mark: u32,
    /// Tells the marks of this policy from those of others.
    series: PatternSeries,
    hints: CommandHints,
    /// The elements that the command added and removed, if what it wrote does not tell.
    named: Option<Box<NamedElements>>,
    /// How far the policy has been asked.
    asked_up_to: u64,
    pending: Option<Box<Pending>>,
}

/// What a command says that cannot be seen in what it leaves.
#[derive(Debug, Clone, Copy, Default)]
struct CommandHints {
    /// It writes whole values, whatever was there.
    is_whole: bool,
    /// It is about the lives of keys.
    life: Option<RequestedTtl>,
}

/// Elements by their names.
#[derive(Debug)]
pub(crate) struct NamedElements {
    pub(crate) added: Vec<Bytes>,
    pub(crate) removed: Vec<Bytes>,
}

/// What the policy asked for and the commit reports to it.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// What the commands so far changed.
    pub(crate) counted: Vec<Counted>,
    /// What happened to whole databases, each after so many of those.
    pub(crate) moves: Vec<(usize, DatabaseChange)>,
    /// Entries of the index of persons that are written, or deleted, the last word last.
    index: Vec<(IndexEntry, bool)>,
    /// What they take in a commit, at most.
    index_len: usize,
}

/// Something that happens to all keys of a logical database at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatabaseChange {
    Emptied(u8),
    Swapped(u8, u8),
}

/// How much of [`Pending`] there was.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PendingMark {
    counted: usize,
    moves: usize,
    index: usize,
    index_len: usize,
}

/// A key that a command has changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TouchedKey {
    /// Where its changes are.
    at: usize,
    slot: u8,
    pub(crate) db: u8,
    /// What it was, even if its time was over; `None` if it was not there.
    pub(crate) before: Option<KeyState>,
    /// What it is; `None` if it is gone.
    pub(crate) after: Option<KeyState>,
    pub(crate) effect: Effect,
    pub(crate) asked: RequestedTtl,
    /// The pattern that the policy had for the key when it was written last, if that is known.
    pub(crate) pattern: Option<PatternId>,
    /// Nobody did it: its time was over, or that of fields of it.
    pub(crate) is_timed: bool,
    /// The command wrote more than when the key ends.
    is_value_written: bool,
    /// Parts that the command wrote went to an annex, and are not held back any more.
    is_annex_filled: bool,
}

impl<'s> Txn<'s> {
    /// A policy is asked about everything that this transaction changes.
    pub(crate) fn govern_by(&mut self, policy: PolicyRef<'s>, number: u64) {
        self.governed = Some(PolicyState {
            policy: Some(policy),
            seen: None,
            seen_mark: 0,
            series: PatternSeries::of(number),
            hints: CommandHints::default(),
            named: None,
            asked_up_to: 0,
            pending: None,
        });
    }

    /// Whether a policy is in force.
    pub(crate) fn is_governed(&self) -> bool {
        self.governed.is_some()
    }

    /// Takes the policy out, to ask it.
    pub(crate) fn take_policy(&mut self) -> Option<PolicyRef<'s>> {
        self.governed.as_mut().and_then(|governed| governed.policy.take())
    }

    /// Puts it back.
    pub(crate) fn put_policy(&mut self, policy: PolicyRef<'s>) {
        if let Some(governed) = &mut self.governed {
            governed.policy = Some(policy);
        }
    }

    /// Whether the policy has yet to be asked about changes.
    pub(crate) fn is_to_be_asked(&self) -> bool {
        let touches = self.changes.touches();
        self.governed.as_ref().is_some_and(|governed| governed.asked_up_to != touches)
    }

    /// The policy has been asked about all changes so far.
    pub(crate) fn note_asked(&mut self) {
        let touches = self.changes.touches();
        if let Some(governed) = &mut self.governed {
            (governed.asked_up_to, governed.hints) = (touches, CommandHints::default());
            governed.named = None;
        }
    }

    /// The command that runs writes whole values: what the keys held before is gone, and with it
    /// when they would have ended.
    pub(crate) fn note_whole(&mut self) {
        if let Some(governed) = &mut self.governed {
            governed.hints.is_whole = true;
        }
    }

    /// The command that runs says so about the lives of its keys.
    pub(crate) fn note_life(&mut self, life: RequestedTtl) {
        if let Some(governed) = &mut self.governed {
            governed.hints.life = Some(life);
        }
    }

    /// The command that runs adds and removes these elements of its key, and no others: some of
    /// what it writes has only moved.
    pub(crate) fn note_named(&mut self, added: &[&[u8]], removed: &[&[u8]]) {
        if let Some(governed) = &mut self.governed {
            let copy =
                |names: &[&[u8]]| names.iter().copied().map(Bytes::copy_from_slice).collect();
            governed.named =
                Some(Box::new(NamedElements { added: copy(added), removed: copy(removed) }));
        }
    }

    /// What [`note_named`](Txn::note_named) said.
    pub(crate) fn named(&self) -> Option<&NamedElements> {
        self.governed.as_ref().and_then(|governed| governed.named.as_deref())
    }

    /// The same, for keys that are to end at this time.
    pub(crate) fn note_end(&mut self, at_ms: u64) {
        self.note_life(RequestedTtl::Ms(at_ms.saturating_sub(self.now_ms)));
    }

    /// What was just done to the key, if anything, was done because its time was over.
    pub(crate) fn note_timed(&mut self, key: &[u8]) {
        if self.has_changed(key) {
            self.changes.at(self.slot, key).is_timed = true;
        }
    }

    /// All keys of a logical database are moved at once.
    pub(super) fn note_move(&mut self, moved: DatabaseChange) {
        if let Some(governed) = &mut self.governed {
            let pending = governed.pending.get_or_insert_default();
            pending.moves.push((pending.counted.len(), moved));
        }
    }

    /// What the last command changed is reported to the policy after the commit.
    pub(crate) fn note_counted(&mut self, counted: &[Counted]) {
        if let Some(governed) = &mut self.governed
            && !counted.is_empty()
        {
            governed.pending.get_or_insert_default().counted.extend_from_slice(counted);
        }
    }

    /// These entries of the index of persons belong to the commit: written, or deleted.
    pub(crate) fn note_index(&mut self, entries: Vec<IndexEntry>, is_written: bool) {
        /// Key, item and what a record takes beside them.
        const ENTRY_LEN: usize = 64;
        if let Some(governed) = &mut self.governed
            && !entries.is_empty()
        {
            let pending = governed.pending.get_or_insert_default();
            let lens = entries.iter().map(|entry| 2 * (entry.pk.len() + entry.sk.len()));
            pending.index_len += lens.map(|len| len + ENTRY_LEN).sum::<usize>();
            pending.index.extend(entries.into_iter().map(|entry| (entry, is_written)));
        }
    }

    fn pending(&self) -> Option<&Pending> {
        self.governed.as_ref().and_then(|governed| governed.pending.as_deref())
    }

    /// What the index of persons takes in the commit, at most.
    pub(super) fn index_len_max(&self) -> usize {
        self.pending().map_or(0, |pending| pending.index_len)
    }

    /// The entries of the index of persons that the commit writes or deletes, each once.
    pub(super) fn index_entries(&self) -> Vec<(&IndexEntry, bool)> {
        let entries = self.pending().map_or(&[][..], |pending| &pending.index);
        let mut entries: Vec<_> =
            entries.iter().map(|(entry, is_written)| (entry, *is_written)).collect();
        // The last word about an entry is the first here.
        entries.reverse();
        entries.sort_by_key(|(entry, _)| *entry);
        entries.dedup_by_key(|(entry, _)| *entry);
        entries
    }

    /// Those of them that the commit deletes.
    pub(crate) fn index_entries_deleted(&self) -> BTreeSet<IndexEntry> {
        let deleted = self.index_entries().into_iter().filter(|(_, is_written)| !is_written);
        deleted.map(|(entry, _)| entry.clone()).collect()
    }

    /// The same as [`note_index`](Txn::note_index) for entries that are written, most of which are
    /// known to be: those are not counted twice.
    pub(crate) fn note_index_again(&mut self, mut entries: Vec<IndexEntry>) {
        let known = self.index_entries();
        let is_known = |entry: &IndexEntry| {
            let found = known.binary_search_by(|(have, _)| (*have).cmp(entry));
            found.ok().and_then(|at| known.get(at)).is_some_and(|(_, is_written)| *is_written)
        };
        entries.retain(|entry| !is_known(entry));
        self.note_index(entries, true);
    }

    /// What is reported to the policy after the commit of the commands so far.
    pub(crate) fn take_pending(&mut self) -> Option<Box<Pending>> {
        let pending = self.governed.as_mut()?.pending.as_deref_mut()?;
        let counted = std::mem::take(&mut pending.counted);
        let moves = std::mem::take(&mut pending.moves);
        Some(Box::new(Pending { counted, moves, ..Pending::default() }))
    }

    /// Where to go back to if the command that begins fails.
    pub(super) fn pending_mark(&mut self) -> PendingMark {
        if let Some(governed) = &mut self.governed {
            (governed.hints, governed.named) = (CommandHints::default(), None);
        }
        self.pending().map_or(PendingMark::default(), |pending| PendingMark {
            counted: pending.counted.len(),
            moves: pending.moves.len(),
            index: pending.index.len(),
            index_len: pending.index_len,
        })
    }

    /// A command has failed: the policy has never heard of it.
    pub(super) fn take_back_pending(&mut self, mark: PendingMark) {
        self.note_asked();
        let Some(governed) = &mut self.governed else { return };
        governed.seen = None;
        let Some(pending) = &mut governed.pending else { return };
        pending.counted.truncate(mark.counted);
        pending.moves.truncate(mark.moves);
        pending.index.truncate(mark.index);
        pending.index_len = mark.index_len;
    }

    /// Fills in the next key that the last command changed; `nth` says which that is. False if
    /// there are no more.
    pub(crate) fn next_touched(
        &mut self,
        nth: &mut usize,
        touched: &mut TouchedKey,
    ) -> Result<bool> {
        while let Some((at, was)) = self.changes.touched(*nth) {
            *nth += 1;
            let Some((slot, key, changes)) = self.changes.nth(at) else { continue };
            let is_head_written = match was {
                None => changes.head.is_some(),
                Some(was) => !is_same(&was.head, &changes.head),
            };
            touched.is_annex_filled = changes.annex.is_some()
                && was.is_none_or(|was| changes.annex_fills != was.annex_fills);
            let has_parts = changes.parts.has_changed() || touched.is_annex_filled;
            if !is_head_written && !has_parts {
                continue;
            }
            let removals = changes.removals - was.map_or(0, |was| was.removals);
            match was.and_then(|was| was.head.as_ref()) {
                Some(head) => {
                    touched.before = head.as_ref().and_then(|head| KeyState::of(key, head));
                    let series = self.governed.as_ref().map(|governed| governed.series);
                    touched.pattern = series.and_then(|it| it.read(changes.pattern_mark));
                }
                None => {
                    self.look_at_stored(at)?;
                    if let Some(governed) = &self.governed {
                        touched.before = governed.seen;
                        touched.pattern = governed.series.read(governed.seen_mark);
                    }
                }
            }
            let Some((_, key, changes)) = self.changes.nth(at) else { continue };
            match &changes.head {
                None => touched.after = touched.before,
                Some(None) => touched.after = None,
                Some(Some(head)) => touched.after = KeyState::of(key, head),
            }
            if touched.before.is_none() && touched.after.is_none() {
                continue;
            }
            touched.is_timed = changes.is_timed;
            (touched.at, touched.slot, touched.db) = (at, slot, self.db_of(slot));
            let hints = self.governed.as_ref().map(|governed| governed.hints).unwrap_or_default();
            touched.judge(removals > 0 || hints.is_whole, hints.life, self.now_ms);
            return Ok(true);
        }
        Ok(false)
    }

    /// Sees to it that what the engine has under the key at a place is what was looked for last.
    fn look_at_stored(&mut self, at: usize) -> Result<()> {
        let Some((slot, key, _)) = self.changes.nth(at) else { return Ok(()) };
        let (seen_slot, seen_key, stored) = &self.seen;
        if *seen_slot != slot || seen_key != key || stored.is_none() {
            let key = key.to_vec();
            let here = std::mem::replace(&mut self.slot, slot);
            let found = self.stored_head(&key);
            self.slot = here;
            found?;
        }
        Ok(())
    }

    /// The policy has this pattern for the key: it need not look for it when the key is written
    /// next.
    pub(crate) fn note_pattern(&mut self, touched: &TouchedKey, pattern: PatternId) {
        if let Some(governed) = &self.governed {
            self.changes.note_pattern(touched.at, governed.series.mark(pattern));
        }
    }

    /// The logical database that a slot serves as.
    fn db_of(&self, slot: u8) -> u8 {
        match &self.layout {
            _ if slot == self.slot => self.db,
            None => self.databases.db_of(slot),
            Some(layout) => layout.db_of(slot),
        }
    }

    /// The key that was changed.
    pub(crate) fn touched_key(&self, touched: &TouchedKey) -> &[u8] {
        self.changes.nth(touched.at).map_or(&[], |(_, key, _)| key)
    }

    /// What the key is now.
    pub(crate) fn touched_state(&self, touched: &TouchedKey) -> Option<KeyState> {
        let (_, key, changes) = self.changes.nth(touched.at)?;
        match &changes.head {
            None => touched.before,
            Some(head) => head.as_ref().and_then(|head| KeyState::of(key, head)),
        }
    }

    /// How long the string is of which the command has written at least a part.
    pub(crate) fn touched_value_len(&self, touched: &TouchedKey) -> Option<u64> {
        let after = touched.after.filter(|_| touched.is_value_written)?;
        let key_len = self.touched_key(touched).len() as u64;
        let is_string = matches!(after.kind, Kind::String | Kind::LongString);
        is_string.then(|| after.key_size.bytes.saturating_sub(key_len))
    }

    /// The string that the command has written, if it is short enough to be in the head.
    pub(crate) fn touched_value(&self, touched: &TouchedKey) -> Option<&[u8]> {
        let (_, _, changes) = self.changes.nth(touched.at)?;
        let head = changes.head.as_ref()?.as_ref()?;
        let is_whole = touched.is_value_written && touched.after?.kind == Kind::String;
        is_whole.then(|| head.value.get(1..).unwrap_or_default())
    }

    /// The string in pieces that the command has made, or changed if it is not too long to be read
    /// for that.
    pub(crate) fn touched_long_value(&mut self, touched: &TouchedKey) -> Result<Option<Bytes>> {
        let is_short = touched.after.is_some_and(|state| state.key_size.bytes <= READ_LEN_MAX);
        let is_read = is_short || touched.effect == Effect::Makes;
        if !is_read || !touched.is_value_written {
            return Ok(None);
        }
        self.in_its_database(touched, |txn, key, entry| {
            let value = StringValue::from_entry(entry)?;
            value.map(|value| txn.string_bytes(key, &value)).transpose()
        })
    }

    /// Shows the parts of the key that the command wrote or removed, as far as they are held back
    /// for the commit: what went to an annex is not.
    pub(crate) fn each_touched_part<'t>(
        &'t self,
        touched: &TouchedKey,
        mut see: impl FnMut(&'t [u8], Option<&'t [u8]>),
    ) {
        if let Some((_, _, changes)) = self.changes.nth(touched.at) {
            changes.parts.each_changed(|sk, part| see(sk, part.map(|part| part.as_ref())));
        }
    }

    /// Whether parts that the command wrote are not held back any more.
    pub(crate) fn has_annex(&self, touched: &TouchedKey) -> bool {
        let is_made = touched.effect == Effect::Makes;
        let has_one = |changes: &KeyChanges| changes.annex.is_some();
        let changes = self.changes.nth(touched.at).map(|(_, _, changes)| changes);
        touched.is_annex_filled || (is_made && changes.is_some_and(has_one))
    }

    /// Shows all parts of the key.
    pub(crate) fn each_part_of(
        &mut self,
        touched: &TouchedKey,
        mut see: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let all = Bound::Unbounded;
        self.in_its_database(touched, |txn, key, _| {
            txn.each_part(key, all, all, false, |sk, value| {
                see(sk, value).map(ControlFlow::Continue)
            })
            .map(Some)
        })
        .map(drop)
    }

    /// Does something with the key where it is.
    pub(crate) fn in_its_database<T>(
        &mut self,
        touched: &TouchedKey,
        work: impl FnOnce(&mut Txn<'s>, &[u8], Entry) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let key = self.touched_key(touched).to_vec();
        let (db, slot) = (self.db, self.slot);
        (self.db, self.slot) = (touched.db, touched.slot);
        let done = match self.lookup_quietly(&key) {
            Ok(Some(entry)) => work(self, &key, entry),
            Ok(None) => Ok(None),
            Err(fault) => Err(fault),
        };
        (self.db, self.slot) = (db, slot);
        done
    }

    /// The key is to end at this time, or never.
    pub(crate) fn set_end(&mut self, touched: &TouchedKey, at_ms: Option<u64>) -> Result<()> {
        if self.touched_state(touched).is_none_or(|now| now.key_size.expires_at_ms == at_ms) {
            return Ok(());
        }
        if self.changes.set_end(touched.at, at_ms) {
            return Ok(());
        }
        self.in_its_database(touched, |txn, key, entry| {
            txn.put_head(key, entry.kind, &entry.body, at_ms).map(Some)
        })
        .map(drop)
    }
}

impl TouchedKey {
    /// None yet.
    pub(crate) const NONE: TouchedKey = TouchedKey {
        at: 0,
        slot: 0,
        db: 0,
        before: None,
        after: None,
        effect: Effect::Changes,
        asked: RequestedTtl::Unsaid,
        pattern: None,
        is_timed: false,
        is_value_written: false,
        is_annex_filled: false,
    };

    /// Adds what the command does to the key, and what it says about its life.
    fn judge(&mut self, is_replaced: bool, life: Option<RequestedTtl>, now_ms: u64) {
        let ends = |state: &KeyState| state.key_size.expires_at_ms;
        let live = self.before.as_ref().filter(|was| ends(was).is_none_or(|at_ms| at_ms > now_ms));
        let (had, has) = (live.and_then(ends), self.after.as_ref().and_then(ends));
        self.effect = match live {
            Some(_) if !is_replaced => Effect::Changes,
            _ => Effect::Makes,
        };
        self.asked = match (life, has) {
            (Some(life), _) => life,
            _ if self.effect == Effect::Changes && had == has => RequestedTtl::Unsaid,
            (None, Some(at_ms)) => RequestedTtl::Ms(at_ms.saturating_sub(now_ms)),
            (None, None) if self.effect == Effect::Makes => RequestedTtl::Unsaid,
            (None, None) => RequestedTtl::Never,
        };
        let is_only_life = life.is_some() && self.effect == Effect::Changes;
        self.is_value_written = !is_only_life;
    }
}

/// Whether a head was not written in between.
fn is_same(was: &Option<Option<Head>>, is: &Option<Option<Head>>) -> bool {
    match (was, is) {
        (None, None) | (Some(None), Some(None)) => true,
        (Some(Some(was)), Some(Some(is))) => {
            was.value.as_ptr() == is.value.as_ptr() && was.expires_at_ms == is.expires_at_ms
        }
        _ => false,
    }
}
