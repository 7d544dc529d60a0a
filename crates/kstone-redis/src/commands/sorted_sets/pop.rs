//! ZPOPMIN, ZPOPMAX, ZMPOP and their blocking forms.

use std::ops::ControlFlow;

use crate::args;
use crate::command_spec::{Caller, Context, Flow};
use crate::commands::sorted_sets::add::finish_removal;
use crate::commands::sorted_sets::set::SortedSet;
use crate::commands::sorted_sets::walk::Walk;
use crate::fault::{Fault, Result};

/// Which end members are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Min,
    Max,
}

impl End {
    fn read(arg: &[u8]) -> Result<End> {
        match arg {
            _ if args::is(arg, "min") => Ok(End::Min),
            _ if args::is(arg, "max") => Ok(End::Max),
            _ => Err(Fault::SYNTAX),
        }
    }

    fn event(self) -> &'static str {
        match self {
            End::Min => "zpopmin",
            End::Max => "zpopmax",
        }
    }
}

type Members = Vec<(Vec<u8>, f64)>;

pub(super) fn zpopmin(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    pop_one_key(context, args, End::Min)
}

pub(super) fn zpopmax(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    pop_one_key(context, args, End::Max)
}

fn pop_one_key(context: &mut Context<'_, '_>, args: &[&[u8]], end: End) -> Result<Flow> {
    let (key, count) = match args {
        [_, key] => (key, None),
        [_, key, count] => {
            let count = args::integer(count)?;
            (key, Some(usize::try_from(count).map_err(|_| Fault::MUST_BE_POSITIVE)?))
        }
        _ => return Err(Fault::SYNTAX),
    };
    let members = match SortedSet::find(context.txn, key)? {
        Some(set) => take(context, key, set, end, count.unwrap_or(1))?,
        None => Members::new(),
    };
    let is_nested = context.client.resp3 && count.is_some();
    context.out.array(if is_nested { members.len() } else { 2 * members.len() });
    write_reply(context, &members, is_nested);
    Ok(Flow::Done)
}

fn write_reply(context: &mut Context<'_, '_>, members: &Members, is_nested: bool) {
    for (member, score) in members {
        if is_nested {
            context.out.array(2);
        }
        context.out.bulk(member);
        context.out.double(*score);
    }
}

/// Takes up to `count` members from one end of a set.
fn take(
    context: &mut Context<'_, '_>,
    key: &[u8],
    mut set: SortedSet,
    end: End,
    count: usize,
) -> Result<Members> {
    let count = count.min(set.len());
    let mut members = Members::with_capacity(count);
    let txn = &mut *context.txn;
    Walk::new(txn, key, &set).by_rank(0..count, end == End::Max, |member, score| {
        members.push((member.to_vec(), score));
        ControlFlow::Continue(())
    })?;
    set.remove_members(txn, key, &members)?;
    if let Some((member, score)) = members.last() {
        match end {
            End::Min => set.begins_after(member, *score),
            End::Max => set.ends_before(member, *score),
        }
    }
    finish_removal(context, key, set, members.len() as u64, end.event())?;
    Ok(members)
}

/// Takes members from the first of these keys that has any, with its name.
fn take_first<'k>(
    context: &mut Context<'_, '_>,
    keys: &[&'k [u8]],
    end: End,
    count: u64,
) -> Result<Option<(&'k [u8], Members)>> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    for key in keys.iter().copied() {
        if !context.may_take_from(key) {
            continue;
        }
        match SortedSet::find(context.txn, key) {
            Ok(None) => {}
            Ok(Some(set)) => return Ok(Some((key, take(context, key, set, end, count)?))),
            // Who waits goes on waiting until the key holds what it waits for.
            Err(fault) if fault == Fault::WRONG_TYPE && context.caller == Caller::Waiter => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(None)
}

pub(super) fn bzpopmin(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    pop_or_wait(context, args, End::Min)
}

pub(super) fn bzpopmax(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    pop_or_wait(context, args, End::Max)
}

fn pop_or_wait(context: &mut Context<'_, '_>, args: &[&[u8]], end: End) -> Result<Flow> {
    let [_, keys @ .., timeout] = args else { return Err(Fault::SYNTAX) };
    let until_ms = args::timeout(timeout, context.txn.now_ms())?;
    let Some((key, members)) = take_first(context, keys, end, 1)? else {
        return Ok(context.wait_for(keys, until_ms));
    };
    context.out.array(1 + 2 * members.len());
    context.out.bulk(key);
    write_reply(context, &members, false);
    Ok(Flow::Done)
}

pub(super) fn zmpop(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let (keys, end, count) = args::keys_end_and_count(rest, End::read)?;
    match take_first(context, keys, end, count)? {
        Some((key, members)) => write_with_key(context, key, &members),
        None => context.out.null_array(),
    }
    Ok(Flow::Done)
}

pub(super) fn bzmpop(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, timeout, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let (keys, end, count) = args::keys_end_and_count(rest, End::read)?;
    let until_ms = args::timeout(timeout, context.txn.now_ms())?;
    match take_first(context, keys, end, count)? {
        Some((key, members)) => write_with_key(context, key, &members),
        None => return Ok(context.wait_for(keys, until_ms)),
    }
    Ok(Flow::Done)
}

fn write_with_key(context: &mut Context<'_, '_>, key: &[u8], members: &Members) {
    context.out.array(2);
    context.out.bulk(key);
    context.out.array(members.len());
    write_reply(context, members, true);
}
