//! XGROUP and its subcommands.

use super::group::{self, Group, Ledger};
use super::id::Id;
use super::stream::Stream;
use crate::args;
use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};

const NO_KEY: Fault = Fault::fixed(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use \
     the MKSTREAM option to create an empty stream automatically.",
);

/// The error for a group that is not there.
pub(super) fn no_group(key: &[u8], group: &[u8]) -> Fault {
    Fault::new(format!(
        "NOGROUP No such consumer group '{}' for key name '{}'",
        args::shown(group),
        args::shown(key)
    ))
}

/// What CREATE and SETID were told.
#[derive(Debug, Default)]
struct Options {
    mkstream: bool,
    entries_read: Option<u64>,
}

impl Options {
    fn parse(args: &[&[u8]], is_create: bool) -> Result<Options> {
        const NEGATIVE: Fault = Fault::fixed("ERR value for ENTRIESREAD must be positive or -1");
        let mut options = Options::default();
        let mut rest = args.get(5..).unwrap_or_default();
        while let [option, others @ ..] = rest {
            rest = match others {
                others if is_create && args::is(option, "mkstream") => {
                    options.mkstream = true;
                    others
                }
                [read, others @ ..] if args::is(option, "entriesread") => {
                    options.entries_read = match args::integer(read)? {
                        -1 => None,
                        read => Some(u64::try_from(read).map_err(|_| NEGATIVE)?),
                    };
                    others
                }
                _ => return Err(bad_syntax(args)),
            };
        }
        // An option may not be given over and over.
        if args.len() > if is_create { 8 } else { 7 } { Err(bad_syntax(args)) } else { Ok(options) }
    }
}

fn bad_syntax(args: &[&[u8]]) -> Fault {
    let name = args::shown(args.get(1).copied().unwrap_or_default());
    Fault::new(format!(
        "ERR unknown subcommand or wrong number of arguments for '{name}'. Try XGROUP HELP."
    ))
}

pub(super) fn create(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const BUSY: Fault = Fault::fixed("BUSYGROUP Consumer Group name already exists");
    let [_, _, key, name, id, ..] = args else { return Err(Fault::SYNTAX) };
    let options = Options::parse(args, true)?;
    group::check_name(name)?;
    let txn = &mut *context.txn;
    let found = Stream::find(txn, key)?;
    if found.is_none() && !options.mkstream {
        return Err(NO_KEY);
    }
    let is_new = found.is_none();
    let mut stream = found.unwrap_or_default();
    let id = if *id == b"$" { stream.last } else { Id::parse(id, 0)? };
    if !is_new && Group::find(txn, key, name)?.is_some() {
        return Err(BUSY);
    }
    let group = Group::create(&mut stream, id, options.entries_read)?;
    stream.save(txn, key)?;
    group.save(txn, key, name);
    if is_new {
        txn.touch(key);
    }
    txn.notify_counted('t', "xgroup-create", key, 1);
    context.out.reply_ok()
}

/// The stream and the group, which have to be there.
fn find(context: &mut Context<'_, '_>, key: &[u8], name: &[u8]) -> Result<(Stream, Group)> {
    let stream = Stream::find(context.txn, key)?.ok_or(NO_KEY)?;
    let group = Group::find(context.txn, key, name)?.ok_or_else(|| no_group(key, name))?;
    Ok((stream, group))
}

pub(super) fn setid(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, _, key, name, id, ..] = args else { return Err(Fault::SYNTAX) };
    let options = Options::parse(args, false)?;
    let (stream, mut group) = find(context, key, name)?;
    group.last = if *id == b"$" { stream.last } else { Id::parse_edge(id, 0)? };
    group.entries_read = options.entries_read;
    group.save(context.txn, key, name);
    context.txn.notify_counted('t', "xgroup-setid", key, 1);
    context.out.reply_ok()
}

pub(super) fn destroy(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, _, key, name] = args else { return Err(Fault::SYNTAX) };
    let txn = &mut *context.txn;
    let mut stream = Stream::find(txn, key)?.ok_or(NO_KEY)?;
    let Some(group) = Group::find(txn, key, name)? else {
        return context.out.reply_integer(0);
    };
    group.destroy(txn, key, &mut stream, name)?;
    stream.save(txn, key)?;
    txn.note_named(&[], &[]);
    txn.notify_counted('t', "xgroup-destroy", key, 1);
    // Clients that wait for entries of the group are woken.
    txn.signal(key);
    context.out.reply_integer(1)
}

pub(super) fn createconsumer(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, _, key, name, consumer] = args else { return Err(Fault::SYNTAX) };
    let (_, group) = find(context, key, name)?;
    group::check_name(consumer)?;
    let txn = &mut *context.txn;
    let is_new = group.consumer(txn, key, consumer)?.is_none();
    if is_new {
        let mut ledger = Ledger::new(key, name, group);
        ledger.meet(txn, consumer)?;
        ledger.save(txn);
        txn.notify_counted('t', "xgroup-createconsumer", key, 1);
    }
    context.out.reply_integer(i64::from(is_new))
}

pub(super) fn delconsumer(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, _, key, name, consumer] = args else { return Err(Fault::SYNTAX) };
    let (_, group) = find(context, key, name)?;
    let txn = &mut *context.txn;
    let mut ledger = Ledger::new(key, name, group);
    let removed = ledger.remove_consumer(txn, consumer)?;
    if removed.is_some() {
        ledger.save(txn);
        txn.notify_counted('t', "xgroup-delconsumer", key, 1);
    }
    context.out.reply_integer(removed.unwrap_or(0) as i64)
}

pub(super) fn help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let create = "Makes a group that begins behind an entry; MKSTREAM makes the stream too, \
                  ENTRIESREAD says how many entries the group has read.";
    crate::commands::help(
        context,
        "XGROUP",
        &[
            ("CREATE <key> <group> <id|$> [MKSTREAM] [ENTRIESREAD <count>]", create),
            ("CREATECONSUMER <key> <group> <consumer>", "Makes a consumer."),
            ("DELCONSUMER <key> <group> <consumer>", "Removes a consumer and what it has pending."),
            ("DESTROY <key> <group>", "Removes a group with everything of it."),
            ("SETID <key> <group> <id|$> [ENTRIESREAD <count>]", "Says how far a group has come."),
        ],
    )
}
