//! Commands under a policy: every key that a command changes is shown to the policy before the
//! commit, and the policy hears of it after.
//!
//! A command that breaks a rule fails as if it had been wrong itself: alone, it is not committed; in
//! a MULTI, a script or a pipeline, what it did is taken back and the rest stays. What only time did
//! (a key whose end has come, fields of a hash) cannot be refused.
//!
//! What the policy adds becomes part of the same commit: when the key ends, how many members it
//! keeps, entries of the index of persons.

use std::sync::Arc;

use kstone::policy::{
    Admitted, AskedTtl, Counted, Effect, Expiry, KeyKind, KeyRemoval, KeyWrite, PatternId,
    WritePolicy,
};

use crate::commands::shown::{self, Shown};
use crate::fault::{Fault, Result};
use crate::server::Server;
use crate::store::{Kind, Move, Pending, State, Touched, Txn};

/// So many fields or members of a command need no memory of their own.
const FEW: usize = 8;
/// So many fields or members of a key that is too large for one commit are shown at a time.
const SOME: usize = 4096;

/// What a commit changed in a key that no pattern has: nobody asks for it.
const NOTHING: Counted = Counted {
    pattern: PatternId(0),
    db: 0,
    before: None,
    after: None,
    members_written: 0,
    member_bytes_written: 0,
    is_write: false,
};

/// A list that is nearly always short.
#[derive(Debug)]
pub(super) struct Few<T, const N: usize> {
    few: [T; N],
    len: usize,
    many: Vec<T>,
}

impl<T: Copy, const N: usize> Few<T, N> {
    fn new(filler: T) -> Self {
        Few { few: [filler; N], len: 0, many: Vec::new() }
    }

    fn push(&mut self, one: T) {
        match self.few.get_mut(self.len) {
            Some(place) => *place = one,
            None => {
                if self.many.is_empty() {
                    self.many.extend_from_slice(&self.few);
                }
                self.many.push(one);
            }
        }
        self.len += 1;
    }

    pub(super) fn as_slice(&self) -> &[T] {
        match self.many.is_empty() {
            true => self.few.get(..self.len).unwrap_or_default(),
            false => &self.many,
        }
    }
}

/// What a command changed, for those who count.
pub(super) type Tally = Few<Counted, 1>;

/// What is told to the policy once it is committed.
#[derive(Debug)]
pub(super) struct ToTell {
    policy: Arc<dyn WritePolicy>,
    /// Of the commands before.
    pending: Option<Pending>,
    /// Of the last one.
    last: Tally,
}

impl ToTell {
    /// It was committed.
    pub(super) fn tell(&self) {
        let mut told = 0;
        if let Some(pending) = &self.pending {
            for (after, moved) in &pending.moves {
                self.count(pending.counted.get(told..*after).unwrap_or_default());
                told = *after;
                match *moved {
                    Move::Emptied(db) => self.policy.emptied(db),
                    Move::Swapped(one, other) => self.policy.swapped(one, other),
                }
            }
            self.count(pending.counted.get(told..).unwrap_or_default());
        }
        self.count(self.last.as_slice());
    }

    fn count(&self, counted: &[Counted]) {
        if !counted.is_empty() {
            self.policy.committed(counted);
        }
    }
}

impl Server {
    /// What a command came to that shares a transaction with others: it has failed, too, if a rule
    /// is against it.
    pub(crate) fn ended<T>(&self, txn: &mut Txn<'_>, ran: Result<T>) -> Result<T> {
        let ran = txn.checked(ran);
        if ran.is_err() || !txn.is_to_be_asked() {
            return ran;
        }
        let Some(policy) = txn.take_policy() else { return ran };
        let asked = ask(&*policy, txn);
        txn.put_policy(policy);
        let tally = asked?;
        txn.note_counted(tally.as_slice());
        txn.checked(ran)
    }

    /// Asks the policy, if there is one, about what it has not been asked about yet. The transaction
    /// is about to be committed.
    pub(super) fn govern(&self, txn: &mut Txn<'_>) -> Result<Option<ToTell>> {
        let Some(policy) = txn.take_policy() else { return Ok(None) };
        let last = match txn.is_to_be_asked() {
            true => ask(&*policy, txn)?,
            false => Tally::new(NOTHING),
        };
        Ok(Some(ToTell { policy, pending: txn.take_pending(), last }))
    }
}

/// Asks the policy about every key that the last command has changed.
fn ask(policy: &dyn WritePolicy, txn: &mut Txn<'_>) -> Result<Tally> {
    let (mut tally, mut nth) = (Tally::new(NOTHING), 0);
    while let Some(touched) = txn.next_touched(&mut nth)? {
        let counted = match touched.after {
            Some(after) => admit(policy, txn, &touched, after)?,
            None => release(policy, txn, &touched),
        };
        if let Some(counted) = counted {
            tally.push(counted);
        }
    }
    txn.note_asked();
    Ok(tally)
}

/// The key is gone.
fn release(policy: &dyn WritePolicy, txn: &mut Txn<'_>, touched: &Touched) -> Option<Counted> {
    let before = touched.before?.footprint;
    let removal = KeyRemoval { db: touched.db, key: txn.touched_key(touched), before };
    let released = policy.release_key(&removal);
    let counted = Counted { before: Some(before), ..NOTHING };
    finish(txn, touched, released, counted)
}

/// The key was made or changed.
fn admit(
    policy: &dyn WritePolicy,
    txn: &mut Txn<'_>,
    touched: &Touched,
    after: State,
) -> Result<Option<Counted>> {
    let (mut counted, mut admitted) = match after.kind {
        Kind::String => {
            let (value, value_len) = (txn.touched_value(touched), txn.touched_value_len(touched));
            let write = bare(txn.touched_key(touched), txn.now_ms(), touched, after);
            (NOTHING, asked(policy, &KeyWrite { value, value_len, ..write }, touched)?)
        }
        Kind::LongString => {
            let value = txn.touched_long_value(touched)?;
            let (value, value_len) = (value.as_deref(), txn.touched_value_len(touched));
            let write = bare(txn.touched_key(touched), txn.now_ms(), touched, after);
            (NOTHING, asked(policy, &KeyWrite { value, value_len, ..write }, touched)?)
        }
        _ => admit_members(policy, txn, touched, after)?,
    };
    counted.before = touched.before.map(|before| before.footprint);
    if txn.has_annex(touched) {
        show_annex(policy, txn, touched, after, &mut counted)?;
    }
    if !touched.is_timed {
        let now_ms = txn.now_ms();
        match admitted.expiry {
            Expiry::InMs(ms) => txn.set_end(touched, Some(now_ms.saturating_add(ms)))?,
            Expiry::Never => txn.set_end(touched, None)?,
            Expiry::Keep => {}
        }
        if let Some(most) = admitted.trim_to.filter(|most| after.footprint.members > *most) {
            trim(policy, txn, touched, most, &mut admitted)?;
        }
    }
    counted.after = txn.touched_state(touched).map(|state| state.footprint);
    Ok(finish(txn, touched, admitted, counted))
}

/// A collection was made or changed.
fn admit_members(
    policy: &dyn WritePolicy,
    txn: &Txn<'_>,
    touched: &Touched,
    after: State,
) -> Result<(Counted, Admitted)> {
    let mut parts = Parts::new();
    match txn.named() {
        Some(named) if matches!(after.kind, Kind::List | Kind::Stream) => {
            named.added.iter().for_each(|element| parts.note_member(element));
            named.removed.iter().for_each(|element| parts.removed.push(element));
        }
        _ => txn.each_touched_part(touched, |sk, value| parts.note(after.kind, sk, value)),
    }
    let write = KeyWrite {
        fields: parts.fields.as_slice(),
        members: parts.members.as_slice(),
        removed: parts.removed.as_slice(),
        ..bare(txn.touched_key(touched), txn.now_ms(), touched, after)
    };
    let admitted = asked(policy, &write, touched)?;
    let (members_written, member_bytes_written) = (parts.written, parts.written_bytes);
    Ok((Counted { members_written, member_bytes_written, ..NOTHING }, admitted))
}

/// What the policy says to a write.
fn asked(policy: &dyn WritePolicy, write: &KeyWrite<'_>, touched: &Touched) -> Result<Admitted> {
    match (policy.admit_key(write), write.before) {
        (Ok(admitted), _) => Ok(admitted),
        // Nobody did it, so it is only counted.
        (Err(_), Some(before)) if touched.is_timed => {
            let removal = KeyRemoval { db: write.db, key: write.key, before };
            let pattern = policy.release_key(&removal).pattern;
            Ok(Admitted { pattern, ..Admitted::AS_IT_IS })
        }
        (Err(refused), _) => Err(Fault::new(format!("ERR {refused}"))),
    }
}

/// Notes what belongs to the commit and what is counted.
fn finish(
    txn: &mut Txn<'_>,
    touched: &Touched,
    admitted: Admitted,
    counted: Counted,
) -> Option<Counted> {
    txn.note_index(admitted.unindex, false);
    txn.note_index(admitted.index, true);
    let (db, is_write) = (touched.db, !touched.is_timed);
    admitted.pattern.map(|pattern| Counted { pattern, db, is_write, ..counted })
}

/// A change without what was written.
fn bare<'k>(key: &'k [u8], now_ms: u64, touched: &Touched, after: State) -> KeyWrite<'k> {
    KeyWrite {
        effect: touched.effect,
        asked: touched.asked,
        before: touched.before.map(|before| before.footprint),
        ..made(touched.db, key, now_ms, after)
    }
}

/// That a key was made, without what was written.
pub(super) fn made(db: u8, key: &[u8], now_ms: u64, after: State) -> KeyWrite<'_> {
    let members = after.footprint.members;
    let (kind, members_after) = match after.kind {
        Kind::String | Kind::LongString => (KeyKind::String, None),
        Kind::Hash => (KeyKind::Hash, Some(members)),
        Kind::List => (KeyKind::List, Some(members)),
        Kind::Set => (KeyKind::Set, Some(members)),
        Kind::SortedSet => (KeyKind::Zset, Some(members)),
        Kind::Stream => (KeyKind::Stream, Some(members)),
    };
    KeyWrite {
        db,
        key,
        kind,
        effect: Effect::Makes,
        asked: AskedTtl::Unsaid,
        value: None,
        value_len: None,
        fields: &[],
        members: &[],
        removed: &[],
        members_after,
        before: None,
        now_ms,
    }
}

/// A change when the policy knows of it already, and only hears more about it.
fn later(write: KeyWrite<'_>) -> KeyWrite<'_> {
    KeyWrite { effect: Effect::Changes, asked: AskedTtl::Unsaid, ..write }
}

/// The fields and members that a command wrote and removed.
#[derive(Debug)]
pub(super) struct Parts<'p> {
    pub(super) fields: Few<(&'p [u8], &'p [u8]), FEW>,
    pub(super) members: Few<&'p [u8], FEW>,
    removed: Few<&'p [u8], FEW>,
    pub(super) written: u32,
    pub(super) written_bytes: u64,
}

impl<'p> Parts<'p> {
    fn new() -> Self {
        let none: &[u8] = &[];
        Parts {
            fields: Few::new((none, none)),
            members: Few::new(none),
            removed: Few::new(none),
            written: 0,
            written_bytes: 0,
        }
    }

    /// A part of a key was written or removed.
    fn note(&mut self, kind: Kind, sk: &'p [u8], value: Option<&'p [u8]>) {
        match shown::part(kind, sk, value) {
            Shown::Field(name, value) => {
                self.fields.push((name, value));
                self.count(name.len() + value.len());
            }
            Shown::Member(member) => self.note_member(member),
            Shown::Entry(mut entry) => {
                let mut bytes = 0;
                while let (Some(name), Some(value)) = (entry.next(), entry.next()) {
                    self.fields.push((name, value));
                    bytes += name.len() + value.len();
                }
                self.count(bytes);
            }
            Shown::Gone(name) => self.removed.push(name),
            Shown::Nothing => {}
        }
    }

    fn note_member(&mut self, member: &'p [u8]) {
        self.members.push(member);
        self.count(member.len());
    }

    fn count(&mut self, bytes: usize) {
        self.written = self.written.saturating_add(1);
        self.written_bytes += bytes as u64;
    }
}

/// Shows the fields and members of a key that may have very many, some at a time. `each` shows all
/// parts of the key.
pub(super) fn some_at_a_time(
    kind: Kind,
    each: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()>,
    mut see: impl FnMut(&Parts<'_>) -> Result<()>,
) -> Result<()> {
    let mut held: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut show = |held: &mut Vec<(Vec<u8>, Vec<u8>)>| {
        let mut parts = Parts::new();
        held.iter().for_each(|(sk, value)| parts.note(kind, sk, Some(value)));
        see(&parts)?;
        held.clear();
        Ok(())
    };
    each(&mut |sk, value| {
        held.push((sk.to_vec(), value.to_vec()));
        if held.len() < SOME { Ok(()) } else { show(&mut held) }
    })?;
    show(&mut held)
}

/// Shows the policy all of a key that has got so large in this transaction that parts of it have been
/// written already.
fn show_annex(
    policy: &dyn WritePolicy,
    txn: &mut Txn<'_>,
    touched: &Touched,
    after: State,
    counted: &mut Counted,
) -> Result<()> {
    let key = txn.touched_key(touched).to_vec();
    let write = later(bare(&key, txn.now_ms(), touched, after));
    let mut index = Vec::new();
    (counted.members_written, counted.member_bytes_written) = (0, 0);
    some_at_a_time(
        after.kind,
        |see| txn.each_part_of(touched, see),
        |parts| {
            let (fields, members) = (parts.fields.as_slice(), parts.members.as_slice());
            let admitted = asked(policy, &KeyWrite { fields, members, ..write }, touched)?;
            index.extend(admitted.index);
            counted.members_written = counted.members_written.saturating_add(parts.written);
            counted.member_bytes_written += parts.written_bytes;
            Ok(())
        },
    )?;
    txn.note_index_again(index);
    Ok(())
}

/// Keeps so many members of the key, and lets the policy forget who went.
fn trim(
    policy: &dyn WritePolicy,
    txn: &mut Txn<'_>,
    touched: &Touched,
    most: u64,
    admitted: &mut Admitted,
) -> Result<()> {
    let was_list = touched.before.filter(|was| was.kind == Kind::List);
    let was_first = was_list.filter(|_| touched.effect == Effect::Changes).map(|was| was.first);
    let gone = txn.in_its_database(touched, |txn, key, entry| {
        shown::trim(txn, key, entry.kind, most, was_first).map(Some)
    })?;
    let gone = gone.unwrap_or_default();
    let (true, Some(now)) = (!gone.is_empty(), txn.touched_state(touched)) else { return Ok(()) };
    let gone: Vec<&[u8]> = gone.iter().map(Vec::as_slice).collect();
    let write = later(bare(txn.touched_key(touched), txn.now_ms(), touched, now));
    let write = KeyWrite { removed: &gone, ..write };
    if let Ok(forgotten) = policy.admit_key(&write) {
        // Who has just come and went with the trim was never there.
        admitted.index.retain(|entry| !forgotten.unindex.contains(entry));
        admitted.unindex.extend(forgotten.unindex);
    }
    Ok(())
}
