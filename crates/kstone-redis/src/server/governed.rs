//! Checks commands against the write policy: shows it every key that a command changes before the
//! commit, and reports the commit to it.
//!
//! A command that breaks a rule fails as if it had been wrong itself: alone, it is not committed;
//! in a MULTI, a script or a pipeline, it is rolled back and the other commands stay. What only the
//! clock did (a key or a field that expired) cannot be refused.
//!
//! What the policy adds becomes part of the same commit: when the key expires, how many members it
//! keeps, entries of the index of persons.

use kstone::policy::{
    Admitted, CommitChanges, Counted, Effect, Expiry, KeyKind, KeyRemoval, KeyWrite, Refused,
    RequestedTtl, WritePolicy,
};

use crate::commands::element_view::{self, ElementView};
use crate::fault::{Fault, Result};
use crate::server::Server;
use crate::store::{DatabaseChange, KeyState, Kind, Pending, PolicyRef, TouchedKey, Txn};

/// Fields or members of a command that need no allocation.
const FEW: usize = 4;
/// Fields or members of a key too large for one commit that are shown at a time.
const SOME: usize = 4096;

/// A vector that needs no allocation while it is short.
#[derive(Debug)]
pub(super) struct ShortVec<T, const N: usize> {
    few: [T; N],
    len: usize,
    many: Vec<T>,
}

impl<T: Copy, const N: usize> ShortVec<T, N> {
    fn new(filler: T) -> Self {
        ShortVec { few: [filler; N], len: 0, many: Vec::new() }
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

/// What is reported to the policy once the transaction is committed.
#[derive(Debug, Default)]
pub(super) struct PolicyReport<'s> {
    policy: Option<PolicyRef<'s>>,
    /// For the commands before the last.
    pending: Option<Box<Pending>>,
    /// For the last command.
    last: CommitChanges,
}

impl PolicyReport<'_> {
    /// The transaction was committed: tells the policy.
    pub(super) fn send(&self) {
        let Some(policy) = self.policy.as_deref() else { return };
        let count = |counted: &[Counted]| {
            if !counted.is_empty() {
                policy.committed(counted);
            }
        };
        if let Some(pending) = &self.pending {
            let mut told = 0;
            for (after, moved) in &pending.moves {
                count(pending.counted.get(told..*after).unwrap_or_default());
                told = *after;
                match *moved {
                    DatabaseChange::Emptied(db) => policy.emptied(db),
                    DatabaseChange::Swapped(one, other) => policy.swapped(one, other),
                }
            }
            count(pending.counted.get(told..).unwrap_or_default());
        }
        self.last.pieces().for_each(count);
    }
}

impl Server {
    /// Has the policy check one of several commands in a transaction. A command that breaks a rule
    /// has failed, too.
    pub(crate) fn check_command<T>(&self, txn: &mut Txn<'_>, ran: Result<T>) -> Result<T> {
        let ran = txn.checked(ran);
        if ran.is_err() || !txn.is_to_be_asked() {
            return ran;
        }
        let Some(policy) = txn.take_policy() else { return ran };
        let mut tally = CommitChanges::default();
        let asked = ask(&*policy, txn, &mut tally);
        txn.put_policy(policy);
        asked?;
        tally.pieces().for_each(|counted| txn.note_counted(counted));
        txn.checked(ran)
    }

    /// Has the policy check what it has not checked yet. The transaction is about to be committed.
    pub(super) fn check_transaction<'s>(
        &self,
        txn: &mut Txn<'s>,
        report: &mut PolicyReport<'s>,
    ) -> Result<()> {
        let Some(policy) = txn.take_policy() else { return Ok(()) };
        if txn.is_to_be_asked() {
            ask(&*policy, txn, &mut report.last)?;
        }
        (report.policy, report.pending) = (Some(policy), txn.take_pending());
        Ok(())
    }
}

/// Asks the policy about every key that the last command has changed.
///
/// This is on the way of every write. What is shown and answered is large, and is filled in and
/// looked at where it is: to hand it on by value costs more than the policy's answer.
fn ask(policy: &dyn WritePolicy, txn: &mut Txn<'_>, tally: &mut CommitChanges) -> Result<()> {
    let (mut nth, mut touched) = (0, TouchedKey::NONE);
    while txn.next_touched(&mut nth, &mut touched)? {
        match &touched.after {
            Some(after) => admit(policy, txn, &touched, after, tally)?,
            None => release(policy, txn, &touched, tally),
        }
    }
    txn.note_asked();
    Ok(())
}

/// The key is gone.
fn release(
    policy: &dyn WritePolicy,
    txn: &mut Txn<'_>,
    touched: &TouchedKey,
    tally: &mut CommitChanges,
) {
    let Some(before) = touched.before else { return };
    let (db, before) = (touched.db, before.key_size);
    let mut released =
        policy.release_key(&KeyRemoval { db, key: txn.touched_key(touched), before });
    note_index(txn, &mut released);
    if let Some(pattern) = released.pattern {
        tally.push(Counted {
            pattern,
            db,
            before: Some(before),
            after: None,
            members_written: 0,
            member_bytes_written: 0,
            is_write: !touched.is_timed,
        });
    }
}

/// The key was made or changed.
fn admit(
    policy: &dyn WritePolicy,
    txn: &mut Txn<'_>,
    touched: &TouchedKey,
    after: &KeyState,
    tally: &mut CommitChanges,
) -> Result<()> {
    let mut written = WrittenMembers::default();
    let mut answer = match after.kind {
        Kind::String => {
            let (value, value_len) = (txn.touched_value(touched), txn.touched_value_len(touched));
            let write = bare(txn.touched_key(touched), txn.now_ms(), touched, after);
            policy.admit_key(&KeyWrite { value, value_len, ..write })
        }
        Kind::LongString => {
            let value = txn.touched_long_value(touched)?;
            let (value, value_len) = (value.as_deref(), txn.touched_value_len(touched));
            let write = bare(txn.touched_key(touched), txn.now_ms(), touched, after);
            policy.admit_key(&KeyWrite { value, value_len, ..write })
        }
        _ => admit_members(policy, txn, touched, after, &mut written),
    };
    if let Err(refused) = &answer {
        answer = Ok(excused(policy, txn, touched, refused)?);
    }
    let Ok(admitted) = &mut answer else { return Ok(()) };
    if txn.has_annex(touched) {
        written = show_annex(policy, txn, touched, after)?;
    }
    let mut key_size = Some(after.key_size);
    if !touched.is_timed {
        let end = match admitted.expiry {
            Expiry::InMs(ms) => Some(txn.now_ms().saturating_add(ms)),
            Expiry::Never => None,
            Expiry::Keep => after.key_size.expires_at_ms,
        };
        let most = admitted.trim_to.filter(|most| after.key_size.members > *most);
        if end != after.key_size.expires_at_ms || most.is_some() {
            txn.set_end(touched, end)?;
            if let Some(most) = most {
                trim(policy, txn, touched, most, admitted)?;
            }
            key_size = txn.touched_state(touched).map(|state| state.key_size);
        }
    }
    note_index(txn, admitted);
    if let Some(pattern) = admitted.pattern {
        txn.note_pattern(touched, pattern);
        tally.push(Counted {
            pattern,
            db: touched.db,
            before: touched.before.map(|before| before.key_size),
            after: key_size,
            members_written: written.members,
            member_bytes_written: written.bytes,
            is_write: !touched.is_timed,
        });
    }
    Ok(())
}

/// A rule is against what was done. If nobody did it, it is only counted.
#[cold]
fn excused(
    policy: &dyn WritePolicy,
    txn: &Txn<'_>,
    touched: &TouchedKey,
    refused: &Refused,
) -> Result<Admitted> {
    match touched.before {
        Some(before) if touched.is_timed => {
            let (key, before) = (txn.touched_key(touched), before.key_size);
            let pattern = policy.release_key(&KeyRemoval { db: touched.db, key, before }).pattern;
            Ok(Admitted { pattern, ..Admitted::AS_IT_IS })
        }
        _ => Err(Fault::new(format!("ERR {refused}"))),
    }
}

/// Notes the entries of the index of persons that belong to the commit.
fn note_index(txn: &mut Txn<'_>, admitted: &mut Admitted) {
    if !admitted.unindex.is_empty() {
        txn.note_index(std::mem::take(&mut admitted.unindex), false);
    }
    if !admitted.index.is_empty() {
        txn.note_index(std::mem::take(&mut admitted.index), true);
    }
}

/// A collection was made or changed.
fn admit_members(
    policy: &dyn WritePolicy,
    txn: &Txn<'_>,
    touched: &TouchedKey,
    after: &KeyState,
    written: &mut WrittenMembers,
) -> Result<Admitted, Refused> {
    let mut parts = WrittenParts::new();
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
    *written = parts.written;
    policy.admit_key(&write)
}

/// A change without what was written.
#[inline]
fn bare<'k>(key: &'k [u8], now_ms: u64, touched: &TouchedKey, after: &KeyState) -> KeyWrite<'k> {
    KeyWrite {
        effect: touched.effect,
        asked: touched.asked,
        pattern: touched.pattern,
        before: touched.before.map(|before| before.key_size),
        ..made(touched.db, key, now_ms, after)
    }
}

/// That a key was made, without what was written.
#[inline]
pub(super) fn made<'k>(db: u8, key: &'k [u8], now_ms: u64, after: &KeyState) -> KeyWrite<'k> {
    let members = after.key_size.members;
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
        asked: RequestedTtl::Unsaid,
        pattern: None,
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
    KeyWrite { effect: Effect::Changes, asked: RequestedTtl::Unsaid, ..write }
}

/// The fields and members that a command wrote and removed.
#[derive(Debug)]
pub(super) struct WrittenParts<'p> {
    pub(super) fields: ShortVec<(&'p [u8], &'p [u8]), FEW>,
    pub(super) members: ShortVec<&'p [u8], FEW>,
    removed: ShortVec<&'p [u8], FEW>,
    pub(super) written: WrittenMembers,
}

/// How many fields and members were written, and their bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WrittenMembers {
    pub(super) members: u32,
    pub(super) bytes: u64,
}

impl<'p> WrittenParts<'p> {
    fn new() -> Self {
        let none: &[u8] = &[];
        WrittenParts {
            fields: ShortVec::new((none, none)),
            members: ShortVec::new(none),
            removed: ShortVec::new(none),
            written: WrittenMembers::default(),
        }
    }

    /// A part of a key was written or removed.
    fn note(&mut self, kind: Kind, sk: &'p [u8], value: Option<&'p [u8]>) {
        match element_view::part(kind, sk, value) {
            ElementView::Field(name, value) => {
                self.fields.push((name, value));
                self.count(name.len() + value.len());
            }
            ElementView::Member(member) => self.note_member(member),
            ElementView::Entry(mut entry) => {
                let mut bytes = 0;
                while let (Some(name), Some(value)) = (entry.next(), entry.next()) {
                    self.fields.push((name, value));
                    bytes += name.len() + value.len();
                }
                self.count(bytes);
            }
            ElementView::Gone(name) => self.removed.push(name),
            ElementView::Nothing => {}
        }
    }

    fn note_member(&mut self, member: &'p [u8]) {
        self.members.push(member);
        self.count(member.len());
    }

    fn count(&mut self, bytes: usize) {
        self.written.add(WrittenMembers { members: 1, bytes: bytes as u64 });
    }
}

impl WrittenMembers {
    fn add(&mut self, more: WrittenMembers) {
        self.members = self.members.saturating_add(more.members);
        self.bytes += more.bytes;
    }
}

/// Shows the fields and members of a key that may have very many, some at a time. `each` shows all
/// parts of the key.
pub(super) fn some_at_a_time(
    kind: Kind,
    each: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()>,
    mut see: impl FnMut(&WrittenParts<'_>) -> Result<()>,
) -> Result<()> {
    let mut held: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut show = |held: &mut Vec<(Vec<u8>, Vec<u8>)>| {
        let mut parts = WrittenParts::new();
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

/// Shows the policy all of a key that has got so large in this transaction that parts of it have
/// been written already.
fn show_annex(
    policy: &dyn WritePolicy,
    txn: &mut Txn<'_>,
    touched: &TouchedKey,
    after: &KeyState,
) -> Result<WrittenMembers> {
    let key = txn.touched_key(touched).to_vec();
    let write = later(bare(&key, txn.now_ms(), touched, after));
    let (mut index, mut written) = (Vec::new(), WrittenMembers::default());
    some_at_a_time(
        after.kind,
        |see| txn.each_part_of(touched, see),
        |parts| {
            let (fields, members) = (parts.fields.as_slice(), parts.members.as_slice());
            // What only time did is counted, even if a rule is against what it left.
            match policy.admit_key(&KeyWrite { fields, members, ..write }) {
                Ok(admitted) => index.extend(admitted.index),
                Err(_) if touched.is_timed && touched.before.is_some() => {}
                Err(refused) => return Err(Fault::new(format!("ERR {refused}"))),
            }
            written.add(parts.written);
            Ok(())
        },
    )?;
    txn.note_index_again(index);
    Ok(written)
}

/// Keeps so many members of the key, and lets the policy forget who went.
fn trim(
    policy: &dyn WritePolicy,
    txn: &mut Txn<'_>,
    touched: &TouchedKey,
    most: u64,
    admitted: &mut Admitted,
) -> Result<()> {
    let was_list = touched.before.filter(|was| was.kind == Kind::List);
    let was_first = was_list.filter(|_| touched.effect == Effect::Changes).map(|was| was.first);
    let gone = txn.in_its_database(touched, |txn, key, entry| {
        element_view::trim(txn, key, entry.kind, most, was_first).map(Some)
    })?;
    let gone = gone.unwrap_or_default();
    let (true, Some(now)) = (!gone.is_empty(), txn.touched_state(touched)) else { return Ok(()) };
    let gone: Vec<&[u8]> = gone.iter().map(Vec::as_slice).collect();
    let write = later(bare(txn.touched_key(touched), txn.now_ms(), touched, &now));
    let write = KeyWrite { removed: &gone, ..write };
    if let Ok(forgotten) = policy.admit_key(&write) {
        // Who has just come and went with the trim was never there.
        admitted.index.retain(|entry| !forgotten.unindex.contains(entry));
        admitted.unindex.extend(forgotten.unindex);
    }
    Ok(())
}
