//! SINTER, SUNION, SDIFF and their storing forms.

use std::ops::ControlFlow;

use hashbrown::HashSet;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::sets::{Set, each_member, has_member, store};
use crate::fault::{Fault, Result};
use crate::store::Txn;

/// The sets with these keys; `None` where there is none.
fn find_all<'k>(txn: &mut Txn<'_>, keys: &[&'k [u8]]) -> Result<Vec<(&'k [u8], Option<Set>)>> {
    keys.iter().map(|key| Ok((*key, Set::find(txn, key)?))).collect()
}

/// Shows what is in all sets, until told to stop.
fn intersect(
    txn: &mut Txn<'_>,
    keys: &[&[u8]],
    mut see: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<()> {
    let sets = find_all(txn, keys)?;
    let found: Option<Vec<_>> = sets.into_iter().map(|(key, set)| Some((key, set?))).collect();
    let Some(mut sets) = found else { return Ok(()) };
    // From the smallest on; what comes twice is looked at once.
    sets.sort_by_key(|(key, set)| (set.count, *key));
    sets.dedup_by_key(|(key, _)| *key);
    let Some(((smallest, _), others)) = sets.split_first() else { return Ok(()) };
    each_member(txn, smallest, |member| {
        for (other, _) in others {
            if !has_member(txn, other, member)? {
                return Ok(ControlFlow::Continue(()));
            }
        }
        Ok(see(member))
    })
}

fn union(txn: &mut Txn<'_>, keys: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
    let mut all = HashSet::new();
    for (key, set) in find_all(txn, keys)? {
        if set.is_some() {
            each_member(txn, key, |member| {
                all.get_or_insert_with(member, <[u8]>::to_vec);
                Ok(ControlFlow::Continue(()))
            })?;
        }
    }
    Ok(all.into_iter().collect())
}

/// What is in the first set and in none of the others.
fn subtract(txn: &mut Txn<'_>, keys: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
    let sets = find_all(txn, keys)?;
    let Some(((first, Some(minuend)), others)) = sets.split_first() else { return Ok(Vec::new()) };
    let others: Vec<(&[u8], Set)> =
        others.iter().filter_map(|(key, set)| set.map(|set| (*key, set))).collect();
    if others.iter().any(|(key, _)| key == first) {
        return Ok(Vec::new());
    }
    // Small subtrahends are read once rather than asked for every member.
    let work: u64 = others.iter().map(|(_, set)| set.count).sum();
    let mut taken = HashSet::new();
    let is_read = work <= minuend.count.saturating_mul(others.len() as u64);
    if is_read {
        for (key, _) in &others {
            each_member(txn, key, |member| {
                taken.get_or_insert_with(member, <[u8]>::to_vec);
                Ok(ControlFlow::Continue(()))
            })?;
        }
    }
    let mut left = Vec::new();
    each_member(txn, first, |member| {
        if is_read && taken.contains(member) {
            return Ok(ControlFlow::Continue(()));
        }
        for (key, _) in others.iter().filter(|_| !is_read) {
            if has_member(txn, key, member)? {
                return Ok(ControlFlow::Continue(()));
            }
        }
        left.push(member.to_vec());
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(left)
}

pub(super) fn sinter(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let mark = context.out.later();
    let (mut found, out) = (0, &mut *context.out);
    intersect(context.txn, args.get(1..).unwrap_or_default(), |member| {
        out.bulk(member);
        found += 1;
        ControlFlow::Continue(())
    })?;
    context.out.set_at(mark, found);
    Ok(Flow::Done)
}

pub(super) fn sintercard(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const NO_KEYS: Fault = Fault::fixed("ERR numkeys should be greater than 0");
    const TOO_FEW: Fault = Fault::fixed("ERR Number of keys can't be greater than number of args");
    const NEGATIVE: Fault = Fault::fixed("ERR LIMIT can't be negative");
    let [_, count, rest @ ..] = args else { return Ok(Flow::Done) };
    let count = args::integer(count).ok().filter(|count| *count > 0).ok_or(NO_KEYS)?;
    let split = usize::try_from(count).ok().and_then(|count| rest.split_at_checked(count));
    let (keys, mut options) = split.ok_or(TOO_FEW)?;
    let mut limit = 0;
    while let [option, rest @ ..] = options {
        let [given, rest @ ..] = rest else { return Err(Fault::SYNTAX) };
        if !args::is(option, "limit") {
            return Err(Fault::SYNTAX);
        }
        limit = args::integer(given).ok().and_then(|n| u64::try_from(n).ok()).ok_or(NEGATIVE)?;
        options = rest;
    }
    let mut found = 0;
    intersect(context.txn, keys, |_| {
        found += 1;
        if found == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    context.out.reply_integer(found as i64)
}

pub(super) fn sunion(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let members = union(context.txn, args.get(1..).unwrap_or_default())?;
    write_reply(context, &members)
}

pub(super) fn sdiff(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let members = subtract(context.txn, args.get(1..).unwrap_or_default())?;
    write_reply(context, &members)
}

fn write_reply(context: &mut Context<'_, '_>, members: &[Vec<u8>]) -> Result<Flow> {
    context.out.set(members.len());
    for member in members {
        context.out.bulk(member);
    }
    Ok(Flow::Done)
}

pub(super) fn sinterstore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, target, keys @ ..] = args else { return Ok(Flow::Done) };
    let mut members = Vec::new();
    intersect(context.txn, keys, |member| {
        members.push(member.to_vec());
        ControlFlow::Continue(())
    })?;
    store_at(context, target, "sinterstore", &members)
}

pub(super) fn sunionstore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, target, keys @ ..] = args else { return Ok(Flow::Done) };
    let members = union(context.txn, keys)?;
    store_at(context, target, "sunionstore", &members)
}

pub(super) fn sdiffstore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, target, keys @ ..] = args else { return Ok(Flow::Done) };
    let members = subtract(context.txn, keys)?;
    store_at(context, target, "sdiffstore", &members)
}

fn store_at(
    context: &mut Context<'_, '_>,
    target: &[u8],
    event: &'static str,
    members: &[Vec<u8>],
) -> Result<Flow> {
    if store(context.txn, target, members)? {
        match members {
            [] => context.txn.notify('g', "del", target),
            _ => context.txn.notify('s', event, target),
        }
        context.txn.count_changes(1);
    }
    context.out.reply_integer(members.len() as i64)
}
