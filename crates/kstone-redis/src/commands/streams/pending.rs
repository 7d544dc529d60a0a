//! XACK and XPENDING.

use std::ops::ControlFlow;

use super::group::{Group, Ledger};
use super::id::Id;
use super::reply;
use super::stream::Stream;
use crate::args;
use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};
use crate::reply::Out;
use crate::store::Txn;

/// The error for a key or a group that is not there.
pub(super) fn no_group(key: &[u8], group: &[u8]) -> Fault {
    Fault::new(format!(
        "NOGROUP No such key '{}' or consumer group '{}'",
        args::shown(key),
        args::shown(group)
    ))
}

pub(super) fn xack(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, group, ids @ ..] = args else { return Err(Fault::SYNTAX) };
    let txn = &mut *context.txn;
    let ledger = match Stream::find(txn, key)? {
        Some(_) => Ledger::open(txn, key, group)?,
        None => None,
    };
    let Some(mut ledger) = ledger else {
        return context.out.reply_integer(0);
    };
    let ids: Vec<Id> = ids.iter().map(|id| Id::parse(id, 0)).collect::<Result<_>>()?;
    let mut acknowledged = 0;
    for id in ids {
        if let Some(pending) = ledger.pending_entry(txn, id)? {
            ledger.settle(txn, id, &pending.owner)?;
            acknowledged += 1;
        }
    }
    if acknowledged > 0 {
        ledger.save(txn);
        txn.count_changes(acknowledged);
    }
    context.out.reply_integer(acknowledged as i64)
}

/// Which pending entries are asked for.
struct PendingQuery<'a> {
    idle_ms_min: u64,
    start: Id,
    end: Id,
    count: u64,
    consumer: Option<&'a [u8]>,
}

impl<'a> PendingQuery<'a> {
    fn parse(args: &[&'a [u8]]) -> Result<Option<PendingQuery<'a>>> {
        let (idle, args) = match args {
            [] => return Ok(None),
            [option, idle, rest @ ..] if args.len() >= 3 && args::is(option, "idle") => {
                (args::integer(idle)?, rest)
            }
            args => (0, args),
        };
        let (start, end, count, consumer) = match args {
            [start, end, count] => (start, end, count, None),
            [start, end, count, consumer] => (start, end, count, Some(*consumer)),
            _ => return Err(Fault::SYNTAX),
        };
        let count = u64::try_from(args::integer(count)?).unwrap_or(0);
        let idle_ms_min = u64::try_from(idle).unwrap_or(0);
        let (start, end) = (Id::parse_start(start)?, Id::parse_end(end)?);
        Ok(Some(PendingQuery { idle_ms_min, start, end, count, consumer }))
    }
}

pub(super) fn xpending(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, name, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let query = PendingQuery::parse(rest)?;
    let group = match Stream::find(context.txn, key)? {
        Some(_) => Group::find(context.txn, key, name)?,
        None => None,
    };
    let group = group.ok_or_else(|| no_group(key, name))?;
    match query {
        None => summary(context.txn, key, &group, context.out)?,
        Some(query) => list(context.txn, key, &group, &query, context.out)?,
    }
    Ok(Flow::Done)
}

fn summary(txn: &Txn<'_>, key: &[u8], group: &Group, out: Out<'_>) -> Result<()> {
    out.array(4);
    out.integer(group.pending as i64);
    if group.pending == 0 {
        out.null();
        out.null();
        out.null_array();
        return Ok(());
    }
    for reverse in [false, true] {
        let mut edge = Id::MIN;
        group.each_pending(txn, key, (Id::MIN, Id::MAX), reverse, |id, _| {
            edge = id;
            Ok(ControlFlow::Break(()))
        })?;
        reply::id(out, edge);
    }
    let mark = out.later();
    let mut consumers = 0;
    group.each_consumer(txn, key, |name, consumer| {
        if consumer.pending > 0 {
            consumers += 1;
            out.array(2);
            out.bulk(name);
            out.bulk(consumer.pending.to_string().as_bytes());
        }
        Ok(())
    })?;
    out.array_at(mark, consumers);
    Ok(())
}

fn list(
    txn: &Txn<'_>,
    key: &[u8],
    group: &Group,
    query: &PendingQuery<'_>,
    out: Out<'_>,
) -> Result<()> {
    let (range, now_ms) = ((query.start, query.end), txn.now_ms());
    let mark = out.later();
    let mut shown = 0;
    let mut see = |id: Id, pending: super::group::Pending| {
        let idle_ms = now_ms.saturating_sub(pending.delivered_ms);
        if idle_ms >= query.idle_ms_min {
            shown += 1;
            out.array(4);
            reply::id(out, id);
            out.bulk(&pending.owner);
            out.integer(idle_ms as i64);
            out.integer(pending.count as i64);
        }
        Ok(if shown < query.count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    };
    match query.consumer {
        _ if query.count == 0 => {}
        None => group.each_pending(txn, key, range, false, see)?,
        Some(consumer) => {
            if group.consumer(txn, key, consumer)?.is_some() {
                group.each_owned(txn, key, consumer, range, |id| {
                    match group.pending_entry(txn, key, id)? {
                        Some(pending) => see(id, pending),
                        None => Ok(ControlFlow::Continue(())),
                    }
                })?;
            }
        }
    }
    out.array_at(mark, shown as usize);
    Ok(())
}
