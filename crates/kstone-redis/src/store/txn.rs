//! One command's, script's or transaction's view of the keys, and what it changes in them.
//!
//! The caller holds the locks of every key that it reads and writes here (`server::locks`). Nothing
//! reaches the engine before [`Txn::commit`], and then all of it in one batch: a crash leaves all
//! of a command, of a MULTI or of a script, or nothing.

mod alarm;
mod commit;
mod databases;
pub(crate) mod governed;
mod members;
mod savepoint;
mod scan;

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::{Bound, ControlFlow};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kstone_core::{Engine, KEY_LEN_MAX, KeyRef, Seq, TableId};

use crate::fault::{Fault, Result};
use crate::server::hot_keys::{HeldForms, HotKeys, Resident};
use crate::server::task_handoff::{HandoffTimer, TaskHandoff};
use crate::store::annex::{self, AnnexId, Filling, HELD_BACK_LEN_MAX};
use crate::store::changes::{Changes, Head, KeyChanges};
use crate::store::databases::{Databases, Layout};
use crate::store::key_state::KeyState;
use crate::store::parts::Parts;
use crate::store::record_cache::KnownRecord;
use crate::store::txn::governed::PolicyState;
use crate::store::{Kind, fields};

/// The sort key of the record by whose expiry the engine's list of what has expired wakes a key
/// ([`Txn::set_alarm`]). It is no part: only the background sees it.
const ALARM: &[u8] = &[0xff];

/// How many parts of a key are walked over before the rest is jumped over: a jump costs as much as
/// walking over about so many.
const PARTS_WALKED_MAX: usize = 16;

/// The key does not fit a record.
pub(super) const KEY_TOO_LONG: Fault =
    Fault::fixed("ERR the key is too long: 65536 bytes are the most that can be stored");

/// A key that is there.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// What it holds.
    pub(crate) kind: Kind,
    /// What its type keeps in the head.
    pub(crate) body: Bytes,
    /// When it goes, in milliseconds since 1970.
    pub(crate) expires_at_ms: Option<u64>,
}

/// Something happened to a key that subscribers may want to hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// The class, as `notify-keyspace-events` spells it: `g`, `$`, `l`, `x`, …
    pub(crate) class: char,
    /// Its name: `del`, `expire`, …
    pub(crate) name: &'static str,
    pub(crate) db: u8,
    pub(crate) key: Vec<u8>,
}

/// What a commit leaves to be notified.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// What has to be durable before a reply that shows it may leave a door that promises that.
    pub(crate) seq: Seq,
    /// Keys that were changed, with their databases.
    pub(crate) touched: Vec<(u8, Vec<u8>)>,
    /// Databases that were emptied or swapped.
    pub(crate) flushed: Vec<u8>,
    pub(crate) events: Vec<Event>,
    /// Keys that somebody who is blocked may have been waiting for.
    pub(crate) ready: Vec<(u8, Vec<u8>)>,
    /// How many changes were made, as Redis counts them.
    pub(crate) dirty: u64,
    /// How many keys were removed because their time was over.
    pub(crate) expired: u64,
    /// The client that made the changes; 0 if none.
    pub(crate) origin: u64,
}

/// What the engine has of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Nothing,
    /// A head without parts.
    Bare,
    /// A head that may have parts.
    Whole,
}

/// Which notifications a commit has to prepare: none that nobody listens for. A client that begins
/// to listen for a key has it locked, and so comes before the transaction or after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listeners {
    /// Somebody watches or caches keys.
    pub(crate) changes: bool,
    /// Somebody wants to hear of events.
    pub(crate) events: bool,
    /// Somebody is blocked.
    pub(crate) waits: bool,
}

impl Default for Listeners {
    fn default() -> Self {
        Listeners { changes: true, events: true, waits: true }
    }
}

/// A transaction. See the module.
#[derive(Debug)]
pub(crate) struct Txn<'s> {
    engine: &'s Engine,
    databases: &'s Databases,
    now_ms: u64,
    db: u8,
    slot: u8,
    /// The databases as this transaction will leave them, if it moves any.
    layout: Option<Layout>,
    /// Slots that are empty but for what this transaction wrote.
    emptied: Vec<u8>,
    changes: Changes,
    committed: Committed,
    listeners: Listeners,
    /// The key that was looked for last, where, and what the engine has of it: who writes a key has
    /// nearly always just looked it up.
    seen: (u8, Vec<u8>, Option<Stored>),
    /// The in-memory forms of keys that this transaction works with.
    held: HeldForms<'s>,
    /// The annexes that this transaction fills.
    filling: Filling<'s>,
    /// Keys whose heads in the engine name an annex, as far as they were looked at.
    annexed: Vec<(u8, Vec<u8>, AnnexId)>,
    /// Annexes that keys had taken over in this transaction when they were removed.
    orphans: Vec<(u8, AnnexId)>,
    /// Why an annex could not be filled: then nothing can be committed.
    failure: Option<Fault>,
    /// Why what the last command wrote cannot be stored.
    refused: Option<Fault>,
    /// The state before the last command, if others are committed with it.
    mark: Option<Box<savepoint::Savepoint>>,
    /// Libraries of functions that were written or removed.
    libraries: Vec<(String, Option<Bytes>)>,
    /// How a walk over many records hands other tasks off, and when.
    task_handoff: Option<&'s TaskHandoff>,
    handoff_timer: HandoffTimer,
    /// Part of the commit may be left to a thread: a client that sent many commands does not wait
    /// for each, and one that sent one does.
    may_be_later: bool,
    /// The engine was asked for something: the next command of this kind will ask it, too.
    has_read: Cell<bool>,
    /// What the policy in force wants to know, if there is one.
    governed: Option<PolicyState<'s>>,
}

impl<'s> Txn<'s> {
    /// Begins in a logical database.
    pub(crate) fn new(
        engine: &'s Engine,
        databases: &'s Databases,
        hot: &'s HotKeys,
        db: u8,
    ) -> Txn<'s> {
        Txn {
            engine,
            databases,
            now_ms: engine.now_ms(),
            db,
            slot: databases.slot(db),
            layout: None,
            emptied: Vec::new(),
            changes: Changes::default(),
            committed: Committed::default(),
            listeners: Listeners::default(),
            seen: (0, Vec::new(), None),
            held: HeldForms::new(hot),
            filling: Filling::new(engine, databases),
            annexed: Vec::new(),
            orphans: Vec::new(),
            failure: None,
            refused: None,
            mark: None,
            libraries: Vec::new(),
            task_handoff: None,
            handoff_timer: HandoffTimer::default(),
            may_be_later: false,
            has_read: Cell::new(false),
            governed: None,
        }
    }

    /// From now on a walk over many records hands other tasks off.
    pub(crate) fn set_task_handoff(&mut self, handoff: &'s TaskHandoff) {
        self.task_handoff = Some(handoff);
    }

    /// One record of a walk that may be long.
    pub(super) fn step(&self) {
        if let Some(handoff) = self.task_handoff {
            let so_far_ms = || self.engine.now_ms().saturating_sub(self.now_ms);
            self.handoff_timer.step(handoff, so_far_ms);
        }
    }

    /// The one `now` of everything in here.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The logical database that keys are looked for in.
    pub(crate) fn db(&self) -> u8 {
        self.db
    }

    /// For how many seconds the key has not been used, about.
    pub(crate) fn idle_s(&self, key: &[u8]) -> u64 {
        self.databases.accesses.idle_s(self.slot, key, self.now_ms)
    }

    /// The key counts as not used for so many seconds.
    pub(crate) fn set_idle_s(&self, key: &[u8], idle_s: u64) {
        self.databases.accesses.set_idle(self.slot, key, self.now_ms, idle_s);
    }

    /// Goes on in another logical database; returns the one before.
    pub(crate) fn select(&mut self, db: u8) -> u8 {
        self.slot = match &self.layout {
            Some(layout) => layout.slot(db),
            None => self.databases.slot(db),
        };
        std::mem::replace(&mut self.db, db)
    }

    /// Whether anything was changed.
    pub(crate) fn is_clean(&self) -> bool {
        self.changes.is_empty() && self.layout.is_none() && self.libraries.is_empty()
    }

    /// The commands of this transaction came together, and so may those of the next.
    pub(crate) fn set_pipelined(&mut self, commands: usize) {
        self.changes.reserve(commands);
        self.may_be_later = true;
    }

    /// What this does needs the engine, if not now then soon.
    pub(crate) fn note_engine_needed(&self) {
        self.has_read.set(true);
    }

    // ---- keys

    /// The key, if it is there. One whose time is over is removed on the way.
    pub(crate) fn lookup(&mut self, key: &[u8]) -> Result<Option<Entry>> {
        self.databases.accesses.note(self.slot, key, self.now_ms);
        self.lookup_quietly(key)
    }

    /// The same, which does not count as a use of the key (`OBJECT IDLETIME`).
    pub(crate) fn lookup_quietly(&mut self, key: &[u8]) -> Result<Option<Entry>> {
        if let Some(changes) = self.changes.get(self.slot, key)
            && let Some(head) = &changes.head
        {
            let Some(head) = head else { return Ok(None) };
            let entry = decode(head.value.clone(), head.expires_at_ms)?;
            return self.unless_expired(key, entry);
        }
        let stored = self.stored_head(key)?;
        let Some(head) = stored else { return Ok(None) };
        let entry = decode(head.value, head.expires_at_ms)?;
        self.unless_expired(key, entry)
    }

    /// The head that the engine has for a key that this transaction did not change, expired or not.
    fn stored_head(&mut self, key: &[u8]) -> Result<Option<Head>> {
        let mut mark = 0;
        let mut found = match self.databases.table(self.slot) {
            _ if self.emptied.contains(&self.slot) => None,
            None => None,
            Some(table) => self.engine_head(table, key, &mut mark)?,
        };
        if let Some(head) = &mut found
            && head.value.first().is_some_and(|first| first & annex::ANNEXED != 0)
        {
            let (annex, value) = annex::split(std::mem::take(&mut head.value));
            head.value = value;
            if let Some(annex) = annex
                && self.stored_annex(self.slot, key).is_none()
            {
                self.annexed.push((self.slot, key.to_vec(), annex));
            }
        }
        let stored = match &found {
            None => Stored::Nothing,
            Some(head) if kind_of(&head.value)?.has_parts() => Stored::Whole,
            Some(_) => Stored::Bare,
        };
        let (slot, seen, last) = &mut self.seen;
        seen.clear();
        seen.extend_from_slice(key);
        (*slot, *last) = (self.slot, Some(stored));
        if let Some(governed) = &mut self.governed {
            governed.seen = found.as_ref().and_then(|head| KeyState::of(key, head));
            governed.seen_mark = mark;
        }
        Ok(found)
    }

    /// Whether the engine has anything under a key, expired or not.
    pub(crate) fn is_stored(&mut self, key: &[u8]) -> Result<bool> {
        self.stored_head(key).map(|head| head.is_some())
    }

    /// The head that the engine has for a key, from memory if it was used lately; then also what
    /// was noted with it.
    fn engine_head(&self, table: TableId, key: &[u8], noted: &mut u32) -> Result<Option<Head>> {
        let at = KeyRef { pk: key, sk: None };
        if let Some(KnownRecord { value, expires_at_ms, mark }) =
            self.databases.heads.get(table, at)
        {
            *noted = mark;
            return Ok(value.map(|value| Head { value, expires_at_ms }));
        }
        self.has_read.set(true);
        let found = self.engine.get_even_expired(table, at)?;
        let found =
            found.map(|record| Head { value: record.value, expires_at_ms: record.expires_at_ms });
        let value = found.as_ref().map(|head| head.value.as_ref());
        let expires_at_ms = found.as_ref().and_then(|head| head.expires_at_ms);
        self.databases.heads.keep(table, at, value, expires_at_ms);
        Ok(found)
    }

    /// The annex that the engine's head of a key names, if that was looked at.
    fn stored_annex(&self, slot: u8, key: &[u8]) -> Option<AnnexId> {
        let mut annexed = self.annexed.iter();
        annexed.find(|(at, have, _)| *at == slot && have == key).map(|(_, _, annex)| *annex)
    }

    /// Whether the key was looked for last, and the engine had none.
    fn is_nothing_stored(&self, key: &[u8]) -> bool {
        let (slot, seen, stored) = &self.seen;
        *stored == Some(Stored::Nothing) && *slot == self.slot && seen == key
    }

    /// Where the engine has the parts of a key, if it has any.
    fn parts_at<'k>(&self, key: &'k [u8]) -> Option<(TableId, Cow<'k, [u8]>)> {
        let changes = self.changes.get(self.slot, key);
        let annex = match changes {
            Some(KeyChanges { annex: Some(annex), .. }) => Some(*annex),
            Some(KeyChanges { dropped: true, .. }) => return None,
            _ if self.emptied.contains(&self.slot) => return None,
            // No part outlives its head.
            _ if self.is_nothing_stored(key) => return None,
            _ => self.stored_annex(self.slot, key),
        };
        match annex {
            Some(annex) => {
                let table = self.databases.annex_table(self.slot)?;
                Some((table, Cow::Owned(annex.partition().to_vec())))
            }
            None => Some((self.databases.table(self.slot)?, Cow::Borrowed(key))),
        }
    }

    fn unless_expired(&mut self, key: &[u8], entry: Entry) -> Result<Option<Entry>> {
        if entry.expires_at_ms.is_none_or(|at_ms| at_ms > self.now_ms) {
            return match entry.kind {
                Kind::Hash => fields::purge(self, key, entry),
                _ => Ok(Some(entry)),
            };
        }
        self.remove(key, &entry);
        self.note_timed(key);
        self.committed.expired += 1;
        self.notify('x', "expired", key);
        Ok(None)
    }

    /// The key, if it is there and of this kind; an error if it is of another.
    pub(crate) fn lookup_kind(&mut self, key: &[u8], kind: Kind) -> Result<Option<Entry>> {
        match self.lookup(key)? {
            Some(entry) if entry.kind != kind => Err(Fault::WRONG_TYPE),
            found => Ok(found),
        }
    }

    /// Writes a key's head. Parts stay as they are: to replace a key, [`remove`](Txn::remove) what
    /// was there first.
    pub(crate) fn put_head(
        &mut self,
        key: &[u8],
        kind: Kind,
        body: &[u8],
        expires_at_ms: Option<u64>,
    ) -> Result<()> {
        // Refused here, it fails alone, and not all that is committed with it.
        if key.len() > KEY_LEN_MAX {
            return Err(KEY_TOO_LONG);
        }
        let mut value = BytesMut::with_capacity(body.len() + 1);
        value.put_u8(kind.tag());
        value.put_slice(body);
        self.note_stored(key)?;
        let changes = self.changes.at(self.slot, key);
        let was_there = match &changes.head {
            Some(head) => head.is_some() || changes.is_replaced,
            None => changes.existed,
        };
        changes.is_replaced = false;
        changes.head = Some(Some(Head { value: value.freeze(), expires_at_ms }));
        if !was_there {
            self.notify('n', "new", key);
        }
        Ok(())
    }

    /// Notes what the engine has of a key that is about to be written for the first time.
    fn note_stored(&mut self, key: &[u8]) -> Result<()> {
        if self.changes.get(self.slot, key).is_some_and(|changes| changes.head.is_some()) {
            return Ok(());
        }
        let stored = match &self.seen {
            (slot, seen, Some(stored)) if *slot == self.slot && seen == key => *stored,
            _ => {
                self.stored_head(key)?;
                self.seen.2.unwrap_or(Stored::Whole)
            }
        };
        let changes = self.changes.at(self.slot, key);
        changes.existed = stored != Stored::Nothing;
        changes.bare = stored == Stored::Bare;
        Ok(())
    }

    /// Removes a key with all its parts, in constant time. `entry` is what was found there.
    pub(crate) fn remove(&mut self, key: &[u8], entry: &Entry) {
        self.touch(key);
        self.signal_gone(key, entry);
        let changes = self.changes.at(self.slot, key);
        if changes.head.is_none() {
            changes.existed = true;
        }
        changes.head = Some(None);
        changes.is_replaced = false;
        changes.removals += 1;
        if entry.kind.has_parts() {
            changes.parts.clear();
            changes.held_back_len = 0;
            changes.alarm = None;
            if let Some(annex) = changes.annex.take()
                && !self.filling.has(annex)
            {
                self.orphans.push((self.slot, annex));
            }
            changes.writes += 1;
            changes.dropped = changes.existed;
        } else {
            changes.bare |= !changes.dropped && changes.parts.is_empty();
        }
    }

    /// Removes what a key holds because something else is about to be written there: listeners are
    /// not told that the key was gone.
    pub(crate) fn remove_to_replace(&mut self, key: &[u8], entry: &Entry) {
        self.remove(key, entry);
        self.changes.at(self.slot, key).is_replaced = true;
    }

    /// Removes what a key holds because what stays of it is about to be written anew: it counts as
    /// changed, not as removed.
    pub(crate) fn remove_to_rewrite(&mut self, key: &[u8], entry: &Entry) {
        self.remove(key, entry);
        self.changes.at(self.slot, key).removals -= 1;
    }

    /// Removes a key whose parts have all been removed one by one: cheaper than
    /// [`remove`](Txn::remove), which leaves a mark for what may be there.
    pub(crate) fn remove_empty(&mut self, key: &[u8]) {
        self.touch(key);
        let changes = self.changes.at(self.slot, key);
        if changes.head.is_none() {
            changes.existed = true;
        }
        changes.head = Some(None);
    }

    // ---- parts

    /// One part of a key that is there.
    pub(crate) fn part(&self, key: &[u8], sk: &[u8]) -> Result<Option<Bytes>> {
        let changes = self.changes.get(self.slot, key);
        if let Some(part) = changes.and_then(|changes| changes.parts.get(sk)) {
            return Ok(part.clone());
        }
        let Some((table, pk)) = self.parts_at(key) else { return Ok(None) };
        self.has_read.set(true);
        let found = self.engine.get(table, KeyRef { pk: &pk, sk: Some(sk) })?;
        Ok(found.map(|record| record.value))
    }

    /// Writes one part.
    pub(crate) fn put_part(&mut self, key: &[u8], sk: &[u8], value: impl Into<Bytes>) {
        let changes = self.changes.at(self.slot, key);
        let value = value.into();
        changes.writes += 1;
        changes.held_back_len += sk.len() + value.len();
        changes.parts.insert(sk, Some(value));
        if key.len() + sk.len() > KEY_LEN_MAX && changes.annex.is_none() {
            self.refuse_part(key);
            return;
        }
        if changes.held_back_len > HELD_BACK_LEN_MAX
            && let Err(fault) = self.fill_annex(key)
        {
            self.failure.get_or_insert(fault);
        }
    }

    /// Writes the parts of a new key that were held back to an annex.
    fn fill_annex(&mut self, key: &[u8]) -> Result<()> {
        let slot = self.slot;
        // Tables of a database that this transaction empties or moves are not yet what they will
        // be, and what a key has in the engine cannot be in two places.
        let is_settled = self.layout.is_none() && self.failure.is_none();
        self.note_stored(key)?;
        let changes = self.changes.at(slot, key);
        changes.held_back_len = 0;
        if !is_settled || (changes.annex.is_none() && !changes.is_new()) {
            return Ok(());
        }
        let (annex, is_begun) = match changes.annex {
            Some(annex) => (annex, true),
            None => (*changes.annex.insert(self.filling.begin(slot)?), false),
        };
        self.filling.fill(annex, changes.parts.iter())?;
        changes.parts.clear();
        changes.annex_fills += 1;
        if is_begun && self.mark.as_ref().is_some_and(|mark| mark.filling.contains(&annex)) {
            // What was written over there is gone.
            self.changes.lose_mark();
        }
        Ok(())
    }

    /// Removes one part, which was there.
    pub(crate) fn delete_part(&mut self, key: &[u8], sk: &[u8]) {
        let changes = self.changes.at(self.slot, key);
        changes.writes += 1;
        changes.parts.insert(sk, None);
    }

    /// Shows the parts in a range of sort keys, in byte order or in reverse, until told to stop.
    pub(crate) fn each_part(
        &self,
        key: &[u8],
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        reverse: bool,
        mut see: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let changes = self.changes.get(self.slot, key);
        let stored = match self.parts_at(key) {
            None => None,
            Some((table, pk)) => {
                // The head has no sort key and is no part.
                let low = if low == Bound::Unbounded { Bound::Included(&b""[..]) } else { low };
                self.has_read.set(true);
                let query = self.engine.partition(table, Bytes::from(pk.into_owned()));
                let query = query.range::<&[u8]>((low, high));
                Some(if reverse { query.reverse() } else { query }.iter()?)
            }
        };
        let changed = changes.map(|changes| changes.parts.range(low, high, reverse));
        let mut changed = changed.into_iter().flatten().peekable();
        let Some(mut stored) = stored else {
            for (sk, value) in changed {
                if let Some(value) = value
                    && see(sk, value)?.is_break()
                {
                    break;
                }
            }
            return Ok(());
        };
        while let Some(record) = stored.next_ref()? {
            self.step();
            let sk = record.sk.unwrap_or_default();
            if sk == ALARM {
                continue;
            }
            // What was changed comes first where it comes before, and instead where it is the same.
            let mut replaced = false;
            while let Some((changed_sk, value)) = changed.next_if(|(changed_sk, _)| {
                if reverse { changed_sk.as_slice() >= sk } else { changed_sk.as_slice() <= sk }
            }) {
                replaced = changed_sk == sk;
                if let Some(value) = value
                    && see(changed_sk, value)?.is_break()
                {
                    return Ok(());
                }
            }
            if !replaced && see(sk, record.value)?.is_break() {
                return Ok(());
            }
        }
        for (sk, value) in changed {
            if let Some(value) = value
                && see(sk, value)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }

    /// Gives the annex of a key that is there, if it has one, to a key that has just been written
    /// and has no parts yet; returns whether it did. The first key is gone then.
    pub(super) fn hand_over_annex(&mut self, from: &[u8], to: &[u8]) -> bool {
        let slot = self.slot;
        let changed = self.changes.get(slot, from);
        let annex = match changed {
            Some(KeyChanges { annex: Some(annex), .. }) => Some(*annex),
            Some(KeyChanges { dropped: true, .. }) => None,
            _ => self.stored_annex(slot, from),
        };
        let Some(annex) = annex else { return false };
        // One that it had before and lost in this transaction still has to be dropped.
        self.annexed.retain(|(at, key, id)| *at != slot || key != from || *id != annex);
        self.touch(from);
        let old = self.changes.at(slot, from);
        // Nobody can have an annex in the engine without a head there.
        old.existed |= old.head.is_none();
        old.head = Some(None);
        (old.annex, old.alarm) = (None, Some(None));
        old.writes += 1;
        let (mut parts, held_back_len) = (Parts::default(), old.held_back_len);
        old.parts.move_to(&mut parts);
        old.held_back_len = 0;
        let new = self.changes.at(slot, to);
        parts.move_to(&mut new.parts);
        (new.held_back_len, new.annex) = (held_back_len, Some(annex));
        new.writes += 1;
        true
    }

    // ---- in-memory forms of keys (`server::hot_keys`)

    /// How often this transaction wrote or removed parts of the key.
    fn writes(&self, key: &[u8]) -> u64 {
        self.changes.get(self.slot, key).map_or(0, |changes| changes.writes)
    }

    /// The in-memory form of a key, if there is one. It shows what this transaction did to the key.
    pub(crate) fn resident<T: Resident>(&mut self, key: &[u8]) -> Option<&T> {
        let writes = self.writes(key);
        self.held.get(self.slot, key, writes).map(|resident| &*resident)
    }

    /// The last `step` calls of [`put_part`](Txn::put_part) and [`delete_part`](Txn::delete_part)
    /// for a key, as one change of its in-memory form, if there is one.
    pub(crate) fn step_resident<T: Resident>(
        &mut self,
        key: &[u8],
        step: u64,
        take_step: impl FnOnce(&mut T),
    ) {
        let writes = self.writes(key);
        self.held.step(self.slot, key, writes, step, take_step);
    }

    /// Keeps an in-memory form that was just made from the key's parts.
    pub(crate) fn admit_resident<T: Resident>(&mut self, key: &[u8], resident: T) {
        let writes = self.writes(key);
        self.held.admit(self.slot, key, writes, Box::new(resident));
    }

    /// Notes that parts of a key were read because it has no form in memory.
    pub(crate) fn note_read(&self, key: &[u8], parts: usize) {
        self.held.hot().note_read(self.slot, key, parts);
    }

    /// Whether reading the key has cost so much that its in-memory form, which is made of so many
    /// parts and takes about so much memory, is to be made and [admitted](Txn::admit_resident) now.
    pub(crate) fn is_resident_due(&self, key: &[u8], parts: usize, bytes: usize) -> bool {
        self.held.hot().is_due(self.slot, key, parts, bytes)
    }

    /// Stores or removes a library of functions.
    pub(crate) fn put_library(&mut self, name: &str, text: Option<&[u8]>) -> Result<()> {
        text.map_or(Ok(()), Txn::check_library)?;
        self.libraries.push((name.to_owned(), text.map(Bytes::copy_from_slice)));
        Ok(())
    }

    /// Whether a library can be stored.
    pub(crate) fn check_library(text: &[u8]) -> Result<()> {
        match text.len() {
            ..=kstone_core::VALUE_LEN_MAX => Ok(()),
            _ => Err(Fault::fixed("ERR the library is too large to be stored")),
        }
    }

    /// Whether libraries of functions were written or removed.
    pub(crate) fn changes_libraries(&self) -> bool {
        !self.libraries.is_empty()
    }

    // ---- notifications

    /// The key was changed: clients that watch or cache it are told.
    pub(crate) fn touch(&mut self, key: &[u8]) {
        // A script may touch any number of keys: only the last few are looked through.
        const LAST: usize = 8;
        if !self.listeners.changes {
            return;
        }
        let (db, touched) = (self.db, &mut self.committed.touched);
        if !touched.iter().rev().take(LAST).any(|(at, have)| *at == db && have == key) {
            touched.push((db, key.to_vec()));
        }
    }

    /// Something happened to the key. Subscribers hear of it after the commit.
    pub(crate) fn notify(&mut self, class: char, name: &'static str, key: &[u8]) {
        if !self.listeners.events {
            return;
        }
        self.committed.events.push(Event { class, name, db: self.db, key: key.to_vec() });
    }

    /// The same, and it counts as so many changes.
    pub(crate) fn notify_counted(
        &mut self,
        class: char,
        name: &'static str,
        key: &[u8],
        changes: u64,
    ) {
        self.notify(class, name, key);
        self.count_changes(changes);
    }

    /// The key was changed: what happened to it, and as how many changes that counts.
    pub(crate) fn changed(&mut self, class: char, name: &'static str, key: &[u8], changes: u64) {
        self.touch(key);
        self.notify_counted(class, name, key, changes);
    }

    /// The same for a change that may have left nothing of the key.
    pub(crate) fn changed_or_emptied(
        &mut self,
        class: char,
        name: &'static str,
        key: &[u8],
        is_gone: bool,
        changes: u64,
    ) {
        self.changed(class, name, key, changes);
        if is_gone {
            self.notify('g', "del", key);
        }
    }

    /// Clients that are blocked on the key may be served after the commit.
    pub(crate) fn signal(&mut self, key: &[u8]) {
        if self.listeners.waits {
            self.committed.ready.push((self.db, key.to_vec()));
        }
    }

    /// The key is gone: clients that wait in a group of the stream are told.
    pub(super) fn signal_gone(&mut self, key: &[u8], entry: &Entry) {
        if entry.kind == Kind::Stream {
            self.signal(key);
        }
    }

    /// Restricts notifications to those that somebody listens for; without it all are prepared.
    pub(crate) fn set_listeners(&mut self, listeners: Listeners) {
        self.listeners = listeners;
    }

    /// Sets the client that makes the changes.
    pub(crate) fn set_origin(&mut self, client: u64) {
        self.committed.origin = client;
    }

    /// Whether there are any changes, as Redis counts them, or databases that change places.
    pub(crate) fn has_counted_changes(&self) -> bool {
        self.committed.dirty > 0 || self.layout.is_some()
    }

    /// Counts changes as Redis does (`rdb_changes_since_last_save`).
    pub(crate) fn count_changes(&mut self, changes: u64) {
        self.committed.dirty += changes;
    }
}

fn decode(mut value: Bytes, expires_at_ms: Option<u64>) -> Result<Entry> {
    let kind = kind_of(&value)?;
    value.advance(1);
    Ok(Entry { kind, body: value, expires_at_ms })
}

fn kind_of(value: &[u8]) -> Result<Kind> {
    const UNKNOWN: Fault =
        Fault::fixed("MISCONF a stored key is of a type that this version does not know");
    let tag = value.first().map(|first| first & !annex::ANNEXED);
    tag.and_then(Kind::from_tag).ok_or(UNKNOWN)
}
