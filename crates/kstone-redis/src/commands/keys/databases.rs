//! Whole databases: DBSIZE, FLUSHDB, FLUSHALL, SWAPDB.

use crate::args;
use crate::command_spec::{Command, Context, Flow, Keys, flag::*};
use crate::commands::keys::keyed;
use crate::fault::{Fault, Result};
use crate::store::databases::DATABASES;

pub(super) const FLUSHDB: Command = Command {
    categories: "keyspace dangerous",
    ..keyed("flushdb", -1, WRITE | EXCLUSIVE, Keys::None, flushdb)
};

pub(super) const FLUSHALL: Command = Command {
    categories: "keyspace dangerous",
    ..keyed("flushall", -1, WRITE | EXCLUSIVE, Keys::None, flushall)
};

pub(super) const SWAPDB: Command = Command {
    categories: "keyspace dangerous",
    ..keyed("swapdb", 3, WRITE | FAST | EXCLUSIVE, Keys::None, swapdb)
};

pub(super) fn dbsize(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let count = context.txn.count_keys()?;
    context.out.reply_integer(count)
}

/// Emptying takes the same short time either way, so how it is asked for only has to be right.
fn check_mode(args: &[&[u8]]) -> Result<()> {
    match args {
        [_] => Ok(()),
        [_, mode] if args::is(mode, "sync") || args::is(mode, "async") => Ok(()),
        _ => Err(Fault::SYNTAX),
    }
}

fn flushdb(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    check_mode(args)?;
    let db = context.txn.db();
    context.txn.flush(db);
    context.txn.count_changes(1);
    context.out.reply_ok()
}

fn flushall(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    check_mode(args)?;
    for db in 0..DATABASES as u8 {
        context.txn.flush(db);
    }
    context.txn.count_changes(1);
    context.out.reply_ok()
}

fn swapdb(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, one, other] = args else { return Err(Fault::SYNTAX) };
    let number = |arg: &[u8], message| {
        args::parse_integer(arg).and_then(|number| i32::try_from(number).ok()).ok_or(message)
    };
    let one = number(one, Fault::fixed("ERR invalid first DB index"))?;
    let other = number(other, Fault::fixed("ERR invalid second DB index"))?;
    let index = |number: i32| {
        let index = u8::try_from(number).ok().filter(|db| usize::from(*db) < DATABASES);
        index.ok_or(Fault::fixed("ERR DB index is out of range"))
    };
    let (one, other) = (index(one)?, index(other)?);
    if one != other {
        context.server.index_for_swap(context.txn, one, other)?;
    }
    context.txn.swap(one, other);
    context.txn.count_changes(1);
    context.out.reply_ok()
}
