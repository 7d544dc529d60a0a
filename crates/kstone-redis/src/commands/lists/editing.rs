//! Commands that change elements in the middle: LSET, LINSERT, LREM, LTRIM.

use std::ops::ControlFlow;

use bytes::Bytes;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::lists::list::{List, check_element};
use crate::fault::{Fault, Result};

pub(super) fn lset(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, index, element] = args else { return Err(Fault::SYNTAX) };
    check_element(element)?;
    let list = List::find(context.txn, key)?.ok_or(Fault::NO_SUCH_KEY)?;
    let index = list.index(args::integer(index)?).ok_or(Fault::INDEX_OUT_OF_RANGE)?;
    list.set(context.txn, key, index, Bytes::copy_from_slice(element));
    context.txn.changed('l', "lset", key, 1);
    context.out.reply_ok()
}

pub(super) fn linsert(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, side, pivot, element] = args else { return Err(Fault::SYNTAX) };
    let is_after = match side {
        _ if args::is(side, "after") => true,
        _ if args::is(side, "before") => false,
        _ => return Err(Fault::SYNTAX),
    };
    check_element(element)?;
    let Some(mut list) = List::find(context.txn, key)? else {
        return context.out.reply_integer(0);
    };
    let mut found = None;
    list.each(context.txn, key, 0..list.len(), false, |index, have| {
        if have != *pivot {
            return ControlFlow::Continue(());
        }
        found = Some(index);
        ControlFlow::Break(())
    })?;
    let Some(index) = found else {
        return context.out.reply_integer(-1);
    };
    let index = index + u64::from(is_after);
    list.insert(context.txn, key, index, Bytes::copy_from_slice(element))?;
    context.txn.note_named(&[element], &[]);
    list.save(context.txn, key)?;
    context.txn.notify_counted('l', "linsert", key, 1);
    context.out.reply_integer(list.len() as i64)
}

pub(super) fn lrem(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, count, element] = args else { return Err(Fault::SYNTAX) };
    let count = args::integer(count)?;
    let Some(mut list) = List::find(context.txn, key)? else {
        return context.out.reply_integer(0);
    };
    let (reverse, most) = (count < 0, count.unsigned_abs());
    let mut found = Vec::new();
    list.each(context.txn, key, 0..list.len(), reverse, |index, have| {
        if have == *element {
            found.push(index);
        }
        if most != 0 && found.len() as u64 == most {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    if reverse {
        found.reverse();
    }
    if !found.is_empty() {
        list.remove(context.txn, key, &found)?;
        // Of an element that is there more than once, others may be left.
        let gone: &[&[u8]] = if most == 0 { &[element] } else { &[] };
        context.txn.note_named(&[], gone);
        list.save(context.txn, key)?;
        let removed = found.len() as u64;
        context.txn.changed_or_emptied('l', "lrem", key, list.len() == 0, removed);
    }
    context.out.reply_integer(found.len() as i64)
}

pub(super) fn ltrim(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, start, stop] = args else { return Err(Fault::SYNTAX) };
    let (start, stop) = (args::integer(start)?, args::integer(stop)?);
    if let Some(mut list) = List::find(context.txn, key)? {
        let len = list.len();
        let range = list.range(start, stop);
        list.keep(context.txn, key, range)?;
        context.txn.note_named(&[], &[]);
        list.save(context.txn, key)?;
        let removed = len - list.len();
        context.txn.changed_or_emptied('l', "ltrim", key, list.len() == 0, removed);
    }
    context.out.reply_ok()
}
