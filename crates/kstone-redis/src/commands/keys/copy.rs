//! RENAME, COPY, MOVE.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::keys::database;
use crate::fault::{Fault, Result};
use crate::store::Entry;

const SAME: Fault = Fault::fixed("ERR source and destination objects are the same");

pub(super) fn rename(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, from, to] = args else { return Err(Fault::SYNTAX) };
    let entry = context.txn.lookup(from)?.ok_or(Fault::NO_SUCH_KEY)?;
    if from != to {
        let old = context.txn.lookup(to)?;
        put_in_place(context, from, &entry, to, old.as_ref())?;
    }
    context.out.reply_ok()
}

pub(super) fn renamenx(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, from, to] = args else { return Err(Fault::SYNTAX) };
    let entry = context.txn.lookup(from)?.ok_or(Fault::NO_SUCH_KEY)?;
    let is_free = from != to && context.txn.lookup(to)?.is_none();
    if is_free {
        put_in_place(context, from, &entry, to, None)?;
    }
    context.out.reply_integer(i64::from(is_free))
}

/// `to` becomes what `from` was, and `from` goes.
fn put_in_place(
    context: &mut Context<'_, '_>,
    from: &[u8],
    entry: &Entry,
    to: &[u8],
    old: Option<&Entry>,
) -> Result<()> {
    if let Some(old) = old {
        context.txn.remove(to, old);
    }
    context.txn.rename_key(from, entry, to)?;
    context.txn.notify('g', "rename_from", from);
    let db = context.txn.db();
    tell_of_new(context, db, to, "rename_to");
    Ok(())
}

/// Tells of a key that was made in a database.
fn tell_of_new(context: &mut Context<'_, '_>, db: u8, key: &[u8], event: &'static str) {
    let here = context.txn.select(db);
    context.txn.signal(key);
    context.txn.changed('g', event, key, 1);
    context.txn.select(here);
}

pub(super) fn copy(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, from, to, options @ ..] = args else { return Err(Fault::SYNTAX) };
    let here = context.txn.db();
    let (mut there, mut replace) = (here, false);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if args::is(option, "replace") {
            replace = true;
        } else if args::is(option, "db") {
            there = database(options.next().ok_or(Fault::SYNTAX)?)?;
        } else {
            return Err(Fault::SYNTAX);
        }
    }
    if here == there && from == to {
        return Err(SAME);
    }
    let Some(entry) = context.txn.lookup(from)? else {
        return context.out.reply_integer(0);
    };
    context.txn.select(there);
    let old = context.txn.lookup(to)?;
    let is_free = old.is_none() || replace;
    if is_free && let Some(old) = old {
        context.txn.remove(to, &old);
    }
    context.txn.select(here);
    if is_free {
        context.txn.copy_key(from, &entry, there, to)?;
        tell_of_new(context, there, to, "copy_to");
    }
    context.out.reply_integer(i64::from(is_free))
}

pub(super) fn move_(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, there] = args else { return Err(Fault::SYNTAX) };
    let (here, there) = (context.txn.db(), database(there)?);
    if here == there {
        return Err(SAME);
    }
    let entry = context.txn.lookup(key)?;
    context.txn.select(there);
    let is_taken = entry.is_some() && context.txn.lookup(key)?.is_some();
    context.txn.select(here);
    let Some(entry) = entry.filter(|_| !is_taken) else {
        return context.out.reply_integer(0);
    };
    context.txn.copy_key(key, &entry, there, key)?;
    context.txn.remove(key, &entry);
    context.txn.notify('g', "move_from", key);
    tell_of_new(context, there, key, "move_to");
    context.out.reply_integer(1)
}
