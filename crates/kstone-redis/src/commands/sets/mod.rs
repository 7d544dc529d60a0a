//! Sets.
//!
//! A member is an element ([`elements`]) without payload; the head has the number of members.

mod combine;
mod random;

pub(super) use random::{drawn, random_count};

use std::ops::ControlFlow;

use crate::command_spec::{Command, CommandName, Context, Flow, Keys, RunOnKeys, flag::*};
use crate::fault::{Fault, Result};
use crate::store::{Entry, Kind, Txn, elements};

pub(super) const COMMANDS: &[Command] = &[
    command("sadd", -3, WRITE | DENYOOM | FAST, Keys::FIRST, sadd),
    command("scard", 2, READONLY | FAST, Keys::FIRST, scard),
    command("sdiff", -2, READONLY, Keys::ALL, combine::sdiff),
    command("sdiffstore", -3, WRITE | DENYOOM, Keys::ALL, combine::sdiffstore),
    command("sinter", -2, READONLY, Keys::ALL, combine::sinter),
    command("sintercard", -3, READONLY | MOVABLE_KEYS, Keys::COUNTED, combine::sintercard),
    command("sinterstore", -3, WRITE | DENYOOM, Keys::ALL, combine::sinterstore),
    command("sismember", 3, READONLY | FAST, Keys::FIRST, sismember),
    command("smembers", 2, READONLY, Keys::FIRST, smembers),
    command("smismember", -3, READONLY | FAST, Keys::FIRST, smismember),
    command("smove", 4, WRITE | FAST, Keys::FIRST_TWO, smove),
    command("spop", -2, WRITE | FAST, Keys::FIRST, random::spop),
    command("srandmember", -2, READONLY, Keys::FIRST, random::srandmember),
    command("srem", -3, WRITE | FAST, Keys::FIRST, srem),
    command("sunion", -2, READONLY, Keys::ALL, combine::sunion),
    command("sunionstore", -3, WRITE | DENYOOM, Keys::ALL, combine::sunionstore),
];

const fn command(name: CommandName, arity: i32, flags: u32, keys: Keys, run: RunOnKeys) -> Command {
    Command::on_keys(name, arity, flags, keys, "set", run)
}

/// A set that is there, or is to be.
#[derive(Debug, Clone, Copy, Default)]
struct Set {
    /// How many members it has.
    count: u64,
    expires_at_ms: Option<u64>,
}

impl Set {
    fn of(entry: &Entry) -> Result<Set> {
        const BROKEN: Fault = Fault::fixed("MISCONF the head of a set is broken");
        let count = entry.body.as_ref().try_into().map_err(|_| BROKEN)?;
        Ok(Set { count: u64::from_le_bytes(count), expires_at_ms: entry.expires_at_ms })
    }

    /// The set, if it is there.
    fn find(txn: &mut Txn<'_>, key: &[u8]) -> Result<Option<Set>> {
        txn.lookup_kind(key, Kind::Set)?.as_ref().map(Set::of).transpose()
    }

    /// Adds a member; whether it is new. The caller writes the head.
    fn add(&mut self, txn: &mut Txn<'_>, key: &[u8], member: &[u8]) -> Result<bool> {
        let sk = elements::sort_key(member);
        if elements::get(txn, key, &sk, member)?.is_some() {
            return Ok(false);
        }
        elements::put(txn, key, &sk, member, Vec::new());
        self.count += 1;
        Ok(true)
    }

    /// Removes a member; whether it was there. The caller writes the head.
    fn remove(&mut self, txn: &mut Txn<'_>, key: &[u8], member: &[u8]) -> Result<bool> {
        let sk = elements::sort_key(member);
        if elements::get(txn, key, &sk, member)?.is_none() {
            return Ok(false);
        }
        txn.delete_member(key, &sk);
        self.count = self.count.saturating_sub(1);
        Ok(true)
    }

    /// Writes the head of a set that was changed; removes the key if it is empty.
    fn put_head(self, txn: &mut Txn<'_>, key: &[u8]) -> Result<()> {
        if self.count == 0 {
            txn.remove_empty(key);
            return Ok(());
        }
        txn.put_head(key, Kind::Set, &self.count.to_le_bytes(), self.expires_at_ms)
    }
}

/// How many members a set has whose head this is.
pub(crate) fn count(entry: &Entry) -> Result<u64> {
    Ok(Set::of(entry)?.count)
}

/// Shows every member of a set that is there, in no order, until told to stop.
pub(crate) fn each_member(
    txn: &Txn<'_>,
    key: &[u8],
    mut see: impl FnMut(&[u8]) -> Result<ControlFlow<()>>,
) -> Result<()> {
    elements::each(txn, key, |member, _| see(member))
}

/// Whether a set that is there has this member.
pub(crate) fn has_member(txn: &Txn<'_>, key: &[u8], member: &[u8]) -> Result<bool> {
    Ok(elements::get(txn, key, &elements::sort_key(member), member)?.is_some())
}

/// Replaces whatever the key holds by a set of these members, of which none comes twice; without
/// members the key is removed. Returns whether there was anything to change. Who waits for the key
/// and clients that watch it are notified; the events are the caller's.
pub(crate) fn store(txn: &mut Txn<'_>, key: &[u8], members: &[Vec<u8>]) -> Result<bool> {
    let old = txn.lookup(key)?;
    if let Some(old) = &old {
        txn.remove(key, old);
    }
    for member in members {
        elements::put(txn, key, &elements::sort_key(member), member, Vec::new());
    }
    if !members.is_empty() {
        Set { count: members.len() as u64, expires_at_ms: None }.put_head(txn, key)?;
        txn.touch(key);
    }
    Ok(old.is_some() || !members.is_empty())
}

fn sadd(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, members @ ..] = args else { return Ok(Flow::Done) };
    for member in members {
        elements::check_len(member, 0)?;
    }
    let txn = &mut *context.txn;
    let mut set = Set::find(txn, key)?.unwrap_or_default();
    let mut added = 0;
    for member in members {
        added += u64::from(set.add(txn, key, member)?);
    }
    if added > 0 {
        set.put_head(txn, key)?;
        txn.changed('s', "sadd", key, added);
    }
    context.out.reply_integer(added as i64)
}

fn srem(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, members @ ..] = args else { return Ok(Flow::Done) };
    let txn = &mut *context.txn;
    let Some(mut set) = Set::find(txn, key)? else {
        return context.out.reply_integer(0);
    };
    let mut removed = 0;
    for member in members {
        removed += u64::from(set.remove(txn, key, member)?);
    }
    if removed > 0 {
        set.put_head(txn, key)?;
        txn.changed_or_emptied('s', "srem", key, set.count == 0, removed);
    }
    context.out.reply_integer(removed as i64)
}

fn scard(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, ..] = args else { return Ok(Flow::Done) };
    let set = Set::find(context.txn, key)?.unwrap_or_default();
    context.out.reply_integer(set.count as i64)
}

fn sismember(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, member, ..] = args else { return Ok(Flow::Done) };
    let is_there = Set::find(context.txn, key)?.is_some();
    let has = is_there && has_member(context.txn, key, member)?;
    context.out.reply_integer(i64::from(has))
}

fn smismember(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, members @ ..] = args else { return Ok(Flow::Done) };
    let is_there = Set::find(context.txn, key)?.is_some();
    context.out.array(members.len());
    for member in members {
        let has = is_there && has_member(context.txn, key, member)?;
        context.out.integer(i64::from(has));
    }
    Ok(Flow::Done)
}

fn smembers(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, ..] = args else { return Ok(Flow::Done) };
    match Set::find(context.txn, key)? {
        None => context.out.set(0),
        Some(set) => write_members(context, key, set)?,
    }
    Ok(Flow::Done)
}

/// All members, as a set.
fn write_members(context: &mut Context<'_, '_>, key: &[u8], set: Set) -> Result<()> {
    let Context { txn, out, .. } = context;
    out.set(set.count as usize);
    each_member(txn, key, |member| {
        out.bulk(member);
        Ok(ControlFlow::Continue(()))
    })
}

fn smove(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, from, to, member, ..] = args else { return Ok(Flow::Done) };
    elements::check_len(member, 0)?;
    let txn = &mut *context.txn;
    // Without a source nobody minds what the destination is.
    let Some(mut source) = Set::find(txn, from)? else {
        return context.out.reply_integer(0);
    };
    let target = Set::find(txn, to)?;
    let has = has_member(txn, from, member)?;
    if from == to || !has {
        return context.out.reply_integer(i64::from(has));
    }
    source.remove(txn, from, member)?;
    source.put_head(txn, from)?;
    txn.changed_or_emptied('s', "srem", from, source.count == 0, 1);
    let mut target = target.unwrap_or_default();
    if target.add(txn, to, member)? {
        target.put_head(txn, to)?;
        txn.changed('s', "sadd", to, 1);
    }
    context.out.reply_integer(1)
}
