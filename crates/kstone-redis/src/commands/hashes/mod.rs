//! Hashes. Their records are described in [`fields`].

mod expiry;
mod increment;
mod random;
mod with_expiry;

use std::ops::ControlFlow;

use bytes::Bytes;

use crate::command_spec::{Command, CommandName, Context, Flow, Keys, RunOnKeys, flag::*};
use crate::fault::{Fault, Result};
use crate::store::fields::{self, HashHead, Payload};
use crate::store::{Kind, Txn};

pub(super) const COMMANDS: &[Command] = &[
    command("hdel", -3, WRITE | FAST, hdel),
    command("hexists", 3, READONLY | FAST, hexists),
    command("hexpire", -6, WRITE | DENYOOM | FAST, expiry::hexpire),
    command("hexpireat", -6, WRITE | DENYOOM | FAST, expiry::hexpireat),
    command("hexpiretime", -5, READONLY | FAST, expiry::hexpiretime),
    command("hget", 3, READONLY | FAST, hget),
    command("hgetall", 2, READONLY, hgetall),
    command("hgetdel", -5, WRITE | FAST, with_expiry::hgetdel),
    command("hgetex", -5, WRITE | FAST, with_expiry::hgetex),
    command("hincrby", 4, WRITE | DENYOOM | FAST, increment::hincrby),
    command("hincrbyfloat", 4, WRITE | DENYOOM | FAST, increment::hincrbyfloat),
    command("hkeys", 2, READONLY, hkeys),
    command("hlen", 2, READONLY | FAST, hlen),
    command("hmget", -3, READONLY | FAST, hmget),
    command("hmset", -4, WRITE | DENYOOM | FAST, hmset),
    command("hpersist", -5, WRITE | FAST, expiry::hpersist),
    command("hpexpire", -6, WRITE | DENYOOM | FAST, expiry::hpexpire),
    command("hpexpireat", -6, WRITE | DENYOOM | FAST, expiry::hpexpireat),
    command("hpexpiretime", -5, READONLY | FAST, expiry::hpexpiretime),
    command("hpttl", -5, READONLY | FAST, expiry::hpttl),
    command("hrandfield", -2, READONLY, random::hrandfield),
    command("hset", -4, WRITE | DENYOOM | FAST, hset),
    command("hsetex", -6, WRITE | DENYOOM | FAST, with_expiry::hsetex),
    command("hsetnx", 4, WRITE | DENYOOM | FAST, hsetnx),
    command("hstrlen", 3, READONLY | FAST, hstrlen),
    command("httl", -5, READONLY | FAST, expiry::httl),
    command("hvals", 2, READONLY, hvals),
];

const fn command(name: CommandName, arity: i32, flags: u32, run: RunOnKeys) -> Command {
    Command::on_keys(name, arity, flags, Keys::FIRST, "hash", run)
}

/// A hash while a command changes it.
struct Hash<'k> {
    key: &'k [u8],
    head: HashHead,
    was: HashHead,
    expires_at_ms: Option<u64>,
}

impl<'k> Hash<'k> {
    /// The hash, if it is there.
    fn find(txn: &mut Txn<'_>, key: &'k [u8]) -> Result<Option<Hash<'k>>> {
        let Some(entry) = txn.lookup_kind(key, Kind::Hash)? else { return Ok(None) };
        let head = HashHead::decode(&entry.body)?;
        Ok(Some(Hash { key, head, was: head, expires_at_ms: entry.expires_at_ms }))
    }

    /// The hash, or an empty one.
    fn find_or_new(txn: &mut Txn<'_>, key: &'k [u8]) -> Result<Hash<'k>> {
        let none = HashHead::default();
        let new = || Hash { key, head: none, was: none, expires_at_ms: None };
        Ok(Hash::find(txn, key)?.unwrap_or_else(new))
    }

    /// Sets a field that does not expire; whether it is new.
    fn set(&mut self, txn: &mut Txn<'_>, name: &[u8], value: &[u8]) -> Result<bool> {
        Ok(fields::set(txn, self.key, &mut self.head, name, value, None)?.is_none())
    }

    /// Writes the head and tells what happened.
    fn changed(self, txn: &mut Txn<'_>, event: &'static str, changes: u64) -> Result<()> {
        self.head.put(txn, self.key, self.was, self.expires_at_ms)?;
        txn.changed_or_emptied('h', event, self.key, self.head.count == 0, changes);
        Ok(())
    }
}

/// The value of a field, if the key holds a hash that has it.
pub(crate) fn field(txn: &mut Txn<'_>, key: &[u8], name: &[u8]) -> Result<Option<Bytes>> {
    match txn.lookup(key)? {
        Some(entry) if entry.kind == Kind::Hash => {
            Ok(fields::get(txn, key, name)?.map(|field| field.value))
        }
        _ => Ok(None),
    }
}

/// Fields with their values, one after the other.
fn pairs<'a>(words: &'a [&'a [u8]]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    words.as_chunks::<2>().0.iter().map(|[name, value]| (*name, *value))
}

/// An error unless all of these fields can be stored.
fn check_len<'a>(pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Result<()> {
    for (name, value) in pairs {
        fields::check_len(name, value)?;
    }
    Ok(())
}

fn set_all(context: &mut Context<'_, '_>, args: &[&[u8]], name: &str) -> Result<u64> {
    let [_, key, words @ ..] = args else { return Ok(0) };
    if words.len() % 2 == 1 {
        return Err(Fault::new(format!("ERR wrong number of arguments for '{name}' command")));
    }
    check_len(pairs(words))?;
    let mut hash = Hash::find_or_new(context.txn, key)?;
    let mut added = 0;
    for (name, value) in pairs(words) {
        added += u64::from(hash.set(context.txn, name, value)?);
    }
    hash.changed(context.txn, "hset", words.len() as u64 / 2)?;
    Ok(added)
}

fn hset(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let added = set_all(context, args, "hset")?;
    context.out.reply_integer(added as i64)
}

fn hmset(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    set_all(context, args, "hmset")?;
    context.out.reply_ok()
}

fn hsetnx(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, name, value] = args else { return Ok(Flow::Done) };
    check_len(std::iter::once((*name, *value)))?;
    let mut hash = Hash::find_or_new(context.txn, key)?;
    let is_new = hash.head.count == 0 || fields::get(context.txn, key, name)?.is_none();
    if is_new {
        hash.set(context.txn, name, value)?;
        hash.changed(context.txn, "hset", 1)?;
    }
    context.out.reply_integer(i64::from(is_new))
}

fn hdel(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, names @ ..] = args else { return Ok(Flow::Done) };
    let Some(mut hash) = Hash::find(context.txn, key)? else {
        return context.out.reply_integer(0);
    };
    let mut deleted = 0;
    for name in names {
        let old = fields::delete(context.txn, key, &mut hash.head, name)?;
        deleted += u64::from(old.is_some());
    }
    if deleted > 0 {
        hash.changed(context.txn, "hdel", deleted)?;
    }
    context.out.reply_integer(deleted as i64)
}

/// The field of the command, if there is one.
fn asked_field(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Option<Bytes>> {
    let [_, key, name, ..] = args else { return Ok(None) };
    if context.txn.lookup_kind(key, Kind::Hash)?.is_none() {
        return Ok(None);
    }
    Ok(fields::get(context.txn, key, name)?.map(|field| field.value))
}

fn hget(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let value = asked_field(context, args)?;
    context.out.reply_bulk_or_null(value.as_deref())
}

fn hexists(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let value = asked_field(context, args)?;
    context.out.reply_integer(i64::from(value.is_some()))
}

fn hstrlen(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let value = asked_field(context, args)?;
    context.out.reply_integer(value.map_or(0, |value| value.len()) as i64)
}

fn hmget(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, names @ ..] = args else { return Ok(Flow::Done) };
    let is_there = context.txn.lookup_kind(key, Kind::Hash)?.is_some();
    context.out.array(names.len());
    for name in names {
        let field = if is_there { fields::get(context.txn, key, name)? } else { None };
        context.out.bulk_or_null(field.as_ref().map(|field| field.value.as_ref()));
    }
    Ok(Flow::Done)
}

fn hlen(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, ..] = args else { return Ok(Flow::Done) };
    let hash = Hash::find(context.txn, key)?;
    context.out.reply_integer(hash.map_or(0, |hash| hash.head.count) as i64)
}

fn hgetall(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, ..] = args else { return Ok(Flow::Done) };
    let hash = Hash::find(context.txn, key)?;
    let Context { txn, out, .. } = context;
    let Some(hash) = hash else {
        out.map(0);
        return Ok(Flow::Done);
    };
    out.map(hash.head.count as usize);
    fields::each(txn, key, hash.head.count, |name, payload| {
        out.bulk(name);
        out.bulk(Payload::read(payload).value);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Flow::Done)
}

fn hkeys(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    one_side(context, args, |name, _| name)
}

fn hvals(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    one_side(context, args, |_, value| value)
}

fn one_side(
    context: &mut Context<'_, '_>,
    args: &[&[u8]],
    side: for<'a> fn(&'a [u8], &'a [u8]) -> &'a [u8],
) -> Result<Flow> {
    let [_, key, ..] = args else { return Ok(Flow::Done) };
    let hash = Hash::find(context.txn, key)?;
    let Context { txn, out, .. } = context;
    let Some(hash) = hash else {
        out.array(0);
        return Ok(Flow::Done);
    };
    out.array(hash.head.count as usize);
    fields::each(txn, key, hash.head.count, |name, payload| {
        out.bulk(side(name, Payload::read(payload).value));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Flow::Done)
}
