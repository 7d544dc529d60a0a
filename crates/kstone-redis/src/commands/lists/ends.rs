//! Pushing and popping at the ends of a list, of the first of several, and blocking until there is
//! one.

use std::ops::ControlFlow;

use bytes::Bytes;

use crate::args;
use crate::command_spec::{Caller, Context, Flow};
use crate::commands::lists::list::{End, List, check_element};
use crate::fault::{Fault, Result};

pub(super) fn lpush(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    push(context, args, End::Front, false)
}

pub(super) fn rpush(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    push(context, args, End::Back, false)
}

pub(super) fn lpushx(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    push(context, args, End::Front, true)
}

pub(super) fn rpushx(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    push(context, args, End::Back, true)
}

fn push(
    context: &mut Context<'_, '_>,
    args: &[&[u8]],
    end: End,
    only_if_there: bool,
) -> Result<Flow> {
    let [_, key, elements @ ..] = args else { return Err(Fault::SYNTAX) };
    elements.iter().try_for_each(|element| check_element(element))?;
    let found = List::find(context.txn, key)?;
    if found.is_none() && only_if_there {
        return context.out.reply_integer(0);
    }
    let is_new = found.is_none();
    let mut list = found.unwrap_or_else(List::new);
    for element in elements {
        list.push(context.txn, key, end, Bytes::copy_from_slice(element));
    }
    list.save(context.txn, key)?;
    note_push(context, key, end, is_new);
    context.txn.count_changes(elements.len() as u64);
    context.out.reply_integer(list.len() as i64)
}

/// Tells of a push to a list that was saved.
pub(super) fn note_push(context: &mut Context<'_, '_>, key: &[u8], end: End, is_new: bool) {
    context.txn.notify('l', if end == End::Front { "lpush" } else { "rpush" }, key);
    // Nobody waits for a list that is there.
    if is_new {
        context.txn.signal(key);
    }
}

/// Saves a list that so many elements were popped from, and tells of it.
pub(super) fn save_popped(
    context: &mut Context<'_, '_>,
    key: &[u8],
    end: End,
    list: &List,
    count: u64,
) -> Result<()> {
    list.save(context.txn, key)?;
    let event = if end == End::Front { "lpop" } else { "rpop" };
    context.txn.changed_or_emptied('l', event, key, list.len() == 0, count);
    Ok(())
}

pub(super) fn lpop(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    pop(context, args, End::Front)
}

pub(super) fn rpop(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    pop(context, args, End::Back)
}

fn pop(context: &mut Context<'_, '_>, args: &[&[u8]], end: End) -> Result<Flow> {
    let (key, count) = match args {
        [_, key] => (key, None),
        [_, key, count] => (key, Some(args::not_negative(count, Fault::MUST_BE_POSITIVE)?)),
        _ => {
            let name = if end == End::Front { "lpop" } else { "rpop" };
            return Err(Fault::new(format!("ERR wrong number of arguments for '{name}' command")));
        }
    };
    match (List::find(context.txn, key)?, count) {
        (None, None) => context.out.null(),
        (None, Some(_)) => context.out.null_array(),
        (Some(list), None) => {
            let element = pop_one(context, key, end, list)?;
            context.out.bulk(&element);
        }
        (Some(_), Some(0)) => context.out.array(0),
        (Some(list), Some(count)) => pop_many(context, key, end, list, count)?,
    }
    Ok(Flow::Done)
}

fn pop_one(context: &mut Context<'_, '_>, key: &[u8], end: End, mut list: List) -> Result<Bytes> {
    let element = list.pop(context.txn, key, end)?;
    save_popped(context, key, end, &list, 1)?;
    Ok(element)
}

/// Pops up to `count` elements and replies with a list of them.
fn pop_many(
    context: &mut Context<'_, '_>,
    key: &[u8],
    end: End,
    mut list: List,
    count: u64,
) -> Result<()> {
    let count = count.min(list.len());
    let (popped, kept) = match end {
        End::Front => (0..count, count..list.len()),
        End::Back => (list.len() - count..list.len(), 0..list.len() - count),
    };
    let out = &mut *context.out;
    out.array(count as usize);
    list.each(context.txn, key, popped, end == End::Back, |_, element| {
        out.bulk(element);
        ControlFlow::Continue(())
    })?;
    list.keep(context.txn, key, kept)?;
    save_popped(context, key, end, &list, count)
}

pub(super) fn blpop(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    blocking_pop(context, args, End::Front)
}

pub(super) fn brpop(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    blocking_pop(context, args, End::Back)
}

fn blocking_pop(context: &mut Context<'_, '_>, args: &[&[u8]], end: End) -> Result<Flow> {
    let [_, keys @ .., timeout] = args else { return Err(Fault::SYNTAX) };
    let until_ms = args::timeout(timeout, context.txn.now_ms())?;
    let Some((key, list)) = first_list(context, keys)? else {
        return Ok(context.wait_for(keys, until_ms));
    };
    let element = pop_one(context, key, end, list)?;
    context.out.reply_bulks(&[key, &element])
}

pub(super) fn lmpop(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let (keys, end, count) =
        args::keys_end_and_count(args.get(1..).unwrap_or_default(), super::end)?;
    match first_list(context, keys)? {
        None => context.out.null_array(),
        Some((key, list)) => pop_from(context, key, end, list, count)?,
    }
    Ok(Flow::Done)
}

pub(super) fn blmpop(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, timeout, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let (keys, end, count) = args::keys_end_and_count(rest, super::end)?;
    let until_ms = args::timeout(timeout, context.txn.now_ms())?;
    match first_list(context, keys)? {
        None => return Ok(context.wait_for(keys, until_ms)),
        Some((key, list)) => pop_from(context, key, end, list, count)?,
    }
    Ok(Flow::Done)
}

/// Replies with the key's name and what was popped.
fn pop_from(
    context: &mut Context<'_, '_>,
    key: &[u8],
    end: End,
    list: List,
    count: u64,
) -> Result<()> {
    context.out.array(2);
    context.out.bulk(key);
    pop_many(context, key, end, list, count)
}

/// The first of these keys that there is a list at.
fn first_list<'k>(
    context: &mut Context<'_, '_>,
    keys: &[&'k [u8]],
) -> Result<Option<(&'k [u8], List)>> {
    for key in keys {
        if !context.may_take_from(key) {
            continue;
        }
        match List::find(context.txn, key) {
            Ok(Some(list)) => return Ok(Some((key, list))),
            Ok(None) => {}
            // Who waits for a list waits on when the key becomes something else.
            Err(fault) if context.caller == Caller::Waiter && fault == Fault::WRONG_TYPE => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(None)
}
