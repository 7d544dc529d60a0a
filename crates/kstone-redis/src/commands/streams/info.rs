//! XINFO and its subcommands.

use std::ops::ControlFlow;

use super::group::Group;
use super::id::Id;
use super::reply;
use super::stream::Stream;
use super::xgroup::no_group;
use crate::args;
use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};
use crate::reply::Out;
use crate::store::Txn;

fn find(context: &mut Context<'_, '_>, key: &[u8]) -> Result<Stream> {
    Stream::find(context.txn, key)?.ok_or(Fault::NO_SUCH_KEY)
}

fn write_reply(out: Out<'_>, name: &str, number: u64) {
    out.bulk(name.as_bytes());
    out.integer(i64::try_from(number).unwrap_or(i64::MAX));
}

fn write_id(out: Out<'_>, name: &str, id: Id) {
    out.bulk(name.as_bytes());
    reply::id(out, id);
}

fn write_if_known(out: Out<'_>, name: &str, number: Option<i64>) {
    out.bulk(name.as_bytes());
    match number {
        Some(number) => out.integer(number),
        None => out.null(),
    }
}

/// What was read and what is left to read.
fn write_progress(out: Out<'_>, stream: &Stream, group: &Group) {
    let read = group.entries_read.map(|read| i64::try_from(read).unwrap_or(i64::MAX));
    write_if_known(out, "entries-read", read);
    write_if_known(out, "lag", group.lag(stream));
}

pub(super) fn stream(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, sub, key, options @ ..] = args else { return Err(Fault::SYNTAX) };
    let stream = find(context, key)?;
    let count = match options {
        [] => None,
        [full] if args::is(full, "full") => Some(10),
        [full, count, given] if args::is(full, "full") && args::is(count, "count") => {
            Some(u64::try_from(args::integer(given)?).unwrap_or(10))
        }
        _ => {
            let sub = args::shown(sub);
            return Err(Fault::new(format!(
                "ERR unknown subcommand or wrong number of arguments for '{sub}'. Try XINFO HELP."
            )));
        }
    };
    let (txn, out) = (&*context.txn, &mut *context.out);
    out.map(if count.is_some() { 9 } else { 10 });
    write_reply(out, "length", stream.len);
    write_reply(out, "radix-tree-keys", stream.nodes);
    // A tree of so many leaves and what they hang on.
    write_reply(out, "radix-tree-nodes", stream.nodes + 1);
    write_id(out, "last-generated-id", stream.last);
    write_id(out, "max-deleted-entry-id", stream.max_deleted);
    write_reply(out, "entries-added", stream.added);
    write_id(out, "recorded-first-entry-id", stream.first);
    match count {
        None => {
            write_reply(out, "groups", stream.groups);
            out.bulk(b"first-entry");
            reply::edge(out, txn, key, &stream, false)?;
            out.bulk(b"last-entry");
            reply::edge(out, txn, key, &stream, true)?;
        }
        Some(count) => {
            out.bulk(b"entries");
            reply::range(out, (txn, key, &stream), (Id::MIN, Id::MAX), false, count)?;
            out.bulk(b"groups");
            let mark = out.later();
            let mut groups = 0;
            Group::each(txn, key, |name, group| {
                groups += 1;
                full_group(txn, (key, &stream), (name, &group), count, out)
            })?;
            out.array_at(mark, groups);
        }
    }
    Ok(Flow::Done)
}

fn full_group(
    txn: &Txn<'_>,
    (key, stream): (&[u8], &Stream),
    (name, group): (&[u8], &Group),
    count: u64,
    out: Out<'_>,
) -> Result<()> {
    let go_on = |shown: u64| match shown == count {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    out.map(7);
    out.bulk(b"name");
    out.bulk(name);
    write_id(out, "last-delivered-id", group.last);
    write_progress(out, stream, group);
    write_reply(out, "pel-count", group.pending);
    out.bulk(b"pending");
    let mark = out.later();
    let mut shown = 0;
    group.each_pending(txn, key, (Id::MIN, Id::MAX), false, |id, pending| {
        out.array(4);
        reply::id(out, id);
        out.bulk(&pending.owner);
        out.integer(pending.delivered_ms as i64);
        out.integer(pending.count as i64);
        shown += 1;
        Ok(go_on(shown))
    })?;
    out.array_at(mark, shown as usize);
    out.bulk(b"consumers");
    out.array(group.consumers as usize);
    group.each_consumer(txn, key, |name, consumer| {
        out.map(4);
        out.bulk(b"name");
        out.bulk(name);
        write_reply(out, "seen-time", consumer.seen_ms);
        write_reply(out, "pel-count", consumer.pending);
        out.bulk(b"pending");
        let mark = out.later();
        let mut shown = 0;
        group.each_owned(txn, key, name, (Id::MIN, Id::MAX), |id| {
            let Some(pending) = group.pending_entry(txn, key, id)? else {
                return Ok(ControlFlow::Continue(()));
            };
            out.array(3);
            reply::id(out, id);
            out.integer(pending.delivered_ms as i64);
            out.integer(pending.count as i64);
            shown += 1;
            Ok(go_on(shown))
        })?;
        out.array_at(mark, shown as usize);
        Ok(())
    })
}

pub(super) fn groups(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, _, key] = args else { return Err(Fault::SYNTAX) };
    let stream = find(context, key)?;
    let (txn, out) = (&*context.txn, &mut *context.out);
    out.array(stream.groups as usize);
    Group::each(txn, key, |name, group| {
        out.map(6);
        out.bulk(b"name");
        out.bulk(name);
        write_reply(out, "consumers", group.consumers);
        write_reply(out, "pending", group.pending);
        write_id(out, "last-delivered-id", group.last);
        write_progress(out, &stream, &group);
        Ok(())
    })?;
    Ok(Flow::Done)
}

pub(super) fn consumers(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, _, key, name] = args else { return Err(Fault::SYNTAX) };
    find(context, key)?;
    let (txn, out) = (&*context.txn, &mut *context.out);
    let group = Group::find(txn, key, name)?.ok_or_else(|| no_group(key, name))?;
    let now_ms = txn.now_ms();
    out.array(group.consumers as usize);
    group.each_consumer(txn, key, |name, consumer| {
        out.map(3);
        out.bulk(b"name");
        out.bulk(name);
        write_reply(out, "pending", consumer.pending);
        write_reply(out, "idle", now_ms.saturating_sub(consumer.seen_ms));
        Ok(())
    })?;
    Ok(Flow::Done)
}

pub(super) fn help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    crate::commands::help(
        context,
        "XINFO",
        &[
            ("CONSUMERS <key> <group>", "The consumers of a group."),
            ("GROUPS <key>", "The groups of a stream."),
            ("STREAM <key> [FULL [COUNT <count>]]", "What there is to know about a stream."),
        ],
    )
}
