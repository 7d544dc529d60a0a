//! XCLAIM and XAUTOCLAIM: give pending entries to another consumer.

use std::ops::ControlFlow;

use super::group::{self, Ledger, Pending};
use super::id::Id;
use super::pending::no_group;
use super::reply;
use super::stream::{Fields, Stream};
use crate::args;
use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};
use crate::store::Txn;

fn open<'k>(
    txn: &mut Txn<'_>,
    key: &'k [u8],
    group: &'k [u8],
) -> Result<Option<(Stream, Ledger<'k>)>> {
    let Some(stream) = Stream::find(txn, key)? else { return Ok(None) };
    Ok(Ledger::open(txn, key, group)?.map(|ledger| (stream, ledger)))
}

/// What was told how to claim.
#[derive(Debug, Default)]
struct Claim {
    delivered_ms: u64,
    retry_count: Option<u64>,
    force: bool,
    just_id: bool,
    last: Id,
}

impl Claim {
    fn parse(mut options: &[&[u8]], now_ms: u64) -> Result<Claim> {
        const IDLE: Fault = Fault::fixed("ERR Invalid IDLE option argument for XCLAIM");
        const TIME: Fault = Fault::fixed("ERR Invalid TIME option argument for XCLAIM");
        const RETRYCOUNT: Fault = Fault::fixed("ERR Invalid RETRYCOUNT option argument for XCLAIM");
        let number = |arg: &[u8], fault| args::parse_integer(arg).ok_or(fault);
        let mut claim = Claim { delivered_ms: now_ms, ..Claim::default() };
        while let [option, rest @ ..] = options {
            options = match rest {
                rest if args::is(option, "force") => {
                    claim.force = true;
                    rest
                }
                rest if args::is(option, "justid") => {
                    claim.just_id = true;
                    rest
                }
                [idle, rest @ ..] if args::is(option, "idle") => {
                    let at_ms = now_ms as i128 - i128::from(number(idle, IDLE)?);
                    claim.delivered_ms = u64::try_from(at_ms).unwrap_or(now_ms);
                    rest
                }
                [time, rest @ ..] if args::is(option, "time") => {
                    claim.delivered_ms = u64::try_from(number(time, TIME)?).unwrap_or(now_ms);
                    rest
                }
                [count, rest @ ..] if args::is(option, "retrycount") => {
                    claim.retry_count = u64::try_from(number(count, RETRYCOUNT)?).ok();
                    rest
                }
                [last, rest @ ..] if args::is(option, "lastid") => {
                    claim.last = Id::parse(last, 0)?;
                    rest
                }
                _ => {
                    let option = args::shown(option);
                    return Err(Fault::new(format!("ERR Unrecognized XCLAIM option '{option}'")));
                }
            };
        }
        // Clients compute times by clocks of their own: one that cannot be is now.
        claim.delivered_ms = claim.delivered_ms.min(now_ms);
        Ok(claim)
    }
}

/// Gives an entry to a consumer, who is made if need be, and shows it.
fn give(
    context: &mut Context<'_, '_>,
    ledger: &mut Ledger<'_>,
    (key, consumer): (&[u8], &[u8]),
    (id, fields): (Id, &[u8]),
    (pending, was): (&Pending, Option<&Pending>),
    just_id: bool,
) -> Result<()> {
    let txn = &mut *context.txn;
    if ledger.meet(txn, consumer)? {
        txn.notify_counted('t', "xgroup-createconsumer", key, 1);
    }
    ledger.assign(txn, id, pending, was)?;
    txn.count_changes(1);
    match just_id {
        true => reply::id(context.out, id),
        false => reply::entry(context.out, id, Fields::read(fields)?),
    }
    Ok(())
}

pub(super) fn xclaim(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const IDLE: Fault = Fault::fixed("ERR Invalid min-idle-time argument for XCLAIM");
    let [_, key, group, consumer, idle, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let now_ms = context.txn.now_ms();
    let Some((stream, mut ledger)) = open(context.txn, key, group)? else {
        return Err(no_group(key, group));
    };
    let idle_ms_min = u64::try_from(args::parse_integer(idle).ok_or(IDLE)?).unwrap_or(0);
    let ids: Vec<Id> = rest.iter().map_while(|id| Id::read(id, 0)).collect();
    let claim = Claim::parse(rest.get(ids.len()..).unwrap_or_default(), now_ms)?;
    group::check_name(consumer)?;
    let mut is_changed = claim.last > ledger.group.last;
    if is_changed {
        ledger.group.last = claim.last;
        context.txn.count_changes(1);
    }
    let mark = context.out.later();
    let mut claimed = 0;
    for id in ids {
        let was = ledger.pending_entry(context.txn, id)?;
        let Some(fields) = stream.entry(context.txn, key, id)? else {
            if let Some(was) = was {
                ledger.settle(context.txn, id, &was.owner)?;
                context.txn.count_changes(1);
                is_changed = true;
            }
            continue;
        };
        let count = match &was {
            None if !claim.force => continue,
            Some(was) if now_ms.saturating_sub(was.delivered_ms) < idle_ms_min => continue,
            was => was.as_ref().map_or(1, |was| was.count),
        };
        let count = claim.retry_count.unwrap_or(count.saturating_add(u64::from(!claim.just_id)));
        let owner = consumer.to_vec();
        let pending = Pending { owner, delivered_ms: claim.delivered_ms, count };
        let change = (&pending, was.as_ref());
        give(context, &mut ledger, (key, consumer), (id, &fields), change, claim.just_id)?;
        is_changed = true;
        claimed += 1;
    }
    context.out.array_at(mark, claimed);
    if is_changed {
        ledger.save(context.txn);
    }
    Ok(Flow::Done)
}

/// `[COUNT count] [JUSTID]`.
fn parse_auto(mut options: &[&[u8]]) -> Result<(u64, bool)> {
    const COUNT: Fault = Fault::fixed("ERR COUNT must be > 0");
    let (mut count, mut just_id) = (100, false);
    while let [option, rest @ ..] = options {
        options = match rest {
            [given, rest @ ..] if args::is(option, "count") => {
                let given = args::parse_integer(given).and_then(|given| u64::try_from(given).ok());
                count = given
                    .filter(|given| (1..=i64::MAX as u64 / 16).contains(given))
                    .ok_or(COUNT)?;
                rest
            }
            rest if args::is(option, "justid") => {
                just_id = true;
                rest
            }
            _ => return Err(Fault::SYNTAX),
        };
    }
    Ok((count, just_id))
}

pub(super) fn xautoclaim(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const IDLE: Fault = Fault::fixed("ERR Invalid min-idle-time argument for XAUTOCLAIM");
    /// Pending entries that are looked at for each that is wanted.
    const ATTEMPTS: u64 = 10;
    let [_, key, group, consumer, idle, start, options @ ..] = args else {
        return Err(Fault::SYNTAX);
    };
    let idle_ms_min = u64::try_from(args::parse_integer(idle).ok_or(IDLE)?).unwrap_or(0);
    let start = Id::parse_start(start)?;
    let (count, just_id) = parse_auto(options)?;
    group::check_name(consumer)?;
    let now_ms = context.txn.now_ms();
    let txn = &mut *context.txn;
    let Some((stream, mut ledger)) = open(txn, key, group)? else {
        return Err(no_group(key, group));
    };
    // Entries that are there go to the consumer, the others are forgotten.
    let (mut found, mut attempts, mut next) = (Vec::new(), count.saturating_mul(ATTEMPTS), Id::MIN);
    ledger.group.each_pending(txn, key, (start, Id::MAX), false, |id, was| {
        if attempts == 0 || found.len() as u64 == count {
            next = id;
            return Ok(ControlFlow::Break(()));
        }
        attempts -= 1;
        let fields = stream.entry(txn, key, id)?;
        if fields.is_none() || now_ms.saturating_sub(was.delivered_ms) >= idle_ms_min {
            found.push((id, was, fields));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    context.out.array(3);
    reply::id(context.out, next);
    let mark = context.out.later();
    let (mut claimed, mut gone) = (0, Vec::new());
    let is_changed = !found.is_empty();
    for (id, was, fields) in found {
        let Some(fields) = fields else {
            ledger.settle(context.txn, id, &was.owner)?;
            context.txn.count_changes(1);
            gone.push(id);
            continue;
        };
        let count = was.count.saturating_add(u64::from(!just_id));
        let pending = Pending { owner: consumer.to_vec(), delivered_ms: now_ms, count };
        let change = (&pending, Some(&was));
        give(context, &mut ledger, (key, consumer), (id, &fields), change, just_id)?;
        claimed += 1;
    }
    context.out.array_at(mark, claimed);
    context.out.array(gone.len());
    gone.into_iter().for_each(|id| reply::id(context.out, id));
    if is_changed {
        ledger.save(context.txn);
    }
    Ok(Flow::Done)
}
