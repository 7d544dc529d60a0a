//! Commands on keys of any type.

mod copy;
mod databases;
mod memory;
mod object;
mod wait;

use std::ops::ControlFlow;

use kstone_core::env::Random;

use crate::args;
use crate::command_spec::{Command, CommandName, Context, Flow, Keys, RunOnKeys, flag::*};
use crate::fault::{Fault, Result};
use crate::glob;
use crate::store::databases::DATABASES;

pub(super) const COMMANDS: &[Command] = &[
    keyed("del", -2, WRITE, Keys::ALL, remove),
    keyed("unlink", -2, WRITE | FAST, Keys::ALL, remove),
    keyed("exists", -2, READONLY | FAST, Keys::ALL, exists),
    keyed("touch", -2, READONLY | FAST, Keys::ALL, touch),
    keyed("type", 2, READONLY | FAST, Keys::FIRST, type_of),
    keyed("rename", 3, WRITE, Keys::FIRST_TWO, copy::rename),
    keyed("renamenx", 3, WRITE | FAST, Keys::FIRST_TWO, copy::renamenx),
    // These two reach into another database, where somebody may wait for what they bring.
    keyed("copy", -3, WRITE | DENYOOM | EXCLUSIVE, Keys::FIRST_TWO, copy::copy),
    keyed("move", 3, WRITE | FAST | EXCLUSIVE, Keys::FIRST, copy::move_),
    Command { categories: "keyspace dangerous", ..keyed("keys", 2, READONLY, Keys::None, keys) },
    keyed("randomkey", 1, READONLY, Keys::None, randomkey),
    keyed("dbsize", 1, READONLY | FAST, Keys::None, databases::dbsize),
    databases::FLUSHDB,
    databases::FLUSHALL,
    databases::SWAPDB,
    object::OBJECT,
    memory::MEMORY,
    wait::WAIT,
    wait::WAITAOF,
];

const fn keyed(name: CommandName, arity: i32, flags: u32, keys: Keys, run: RunOnKeys) -> Command {
    Command::on_keys(name, arity, flags, keys, "keyspace", run)
}

fn remove(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let mut removed = 0;
    for key in args.iter().skip(1) {
        if let Some(entry) = context.txn.lookup(key)? {
            context.txn.remove(key, &entry);
            context.txn.notify('g', "del", key);
            removed += 1;
        }
    }
    context.txn.count_changes(removed);
    context.out.reply_integer(removed as i64)
}

fn exists(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let mut found = 0;
    for key in args.iter().skip(1) {
        found += i64::from(context.txn.lookup_quietly(key)?.is_some());
    }
    context.out.reply_integer(found)
}

fn touch(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let mut found = 0;
    for key in args.iter().skip(1) {
        found += i64::from(context.txn.lookup(key)?.is_some());
    }
    context.out.reply_integer(found)
}

fn type_of(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key] = args else { return Err(Fault::SYNTAX) };
    let name = context.txn.lookup_quietly(key)?.map_or("none", |entry| entry.kind.name());
    context.out.reply_simple(name)
}

fn keys(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, pattern] = args else { return Err(Fault::SYNTAX) };
    let now_ms = context.txn.now_ms();
    let mark = context.out.later();
    let mut count = 0;
    context.txn.each_key(|key, _, expires_at_ms| {
        let is_there = expires_at_ms.is_none_or(|at_ms| at_ms > now_ms);
        if is_there && glob::matches(pattern, key) {
            context.out.bulk(key);
            count += 1;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    context.out.array_at(mark, count);
    Ok(Flow::Done)
}

/// How many keys RANDOMKEY chooses from. With no more than these in the database, every key is as
/// likely as any other.
const RANDOM_FROM: u64 = 512;

fn randomkey(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let now_ms = context.txn.now_ms();
    let random = &context.server.random;
    let (mut chosen, mut seen) = (None, 0);
    let start = random.next_u64() as u8;
    context.txn.each_key_from(start, |key, _, expires_at_ms| {
        if expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            return Ok(ControlFlow::Continue(()));
        }
        seen += 1;
        if random.next_u64().is_multiple_of(seen) {
            chosen = Some(key.to_vec());
        }
        let is_enough = seen >= RANDOM_FROM;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    context.out.reply_bulk_or_null(chosen.as_deref())
}

/// A database's number, with the error for what is none.
fn database(arg: &[u8]) -> Result<u8> {
    const OUT_OF_RANGE: Fault = Fault::fixed("ERR DB index is out of range");
    let number = args::integer(arg)?;
    let number = i32::try_from(number).map_err(|_| Fault::NOT_INTEGER)?;
    u8::try_from(number).ok().filter(|db| usize::from(*db) < DATABASES).ok_or(OUT_OF_RANGE)
}

/// Writes a HELP reply.
fn help(context: &mut Context<'_, '_>, command: &str, lines: &[&str]) {
    context.out.array(lines.len() + 3);
    context
        .out
        .simple(&format!("{command} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for line in lines {
        context.out.simple(line);
    }
    context.out.simple("HELP");
    context.out.simple("    Prints this help.");
}
