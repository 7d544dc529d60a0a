//! LMOVE, RPOPLPUSH and their blocking forms.

use crate::args;
use crate::command_spec::{Block, Caller, Context, Flow};
use crate::commands::lists::ends::{note_push, save_popped};
use crate::commands::lists::{End, List, end};
use crate::fault::{Fault, Result};

pub(super) fn lmove(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, from, to, take, put] = args else { return Err(Fault::SYNTAX) };
    let (take, put) = (end(take)?, end(put)?);
    move_or_null(context, from, to, take, put)
}

pub(super) fn rpoplpush(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, from, to] = args else { return Err(Fault::SYNTAX) };
    move_or_null(context, from, to, End::Back, End::Front)
}

pub(super) fn blmove(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, from, to, take, put, timeout] = args else { return Err(Fault::SYNTAX) };
    let (take, put) = (end(take)?, end(put)?);
    let until_ms = args::timeout(timeout, context.txn.now_ms())?;
    move_or_wait(context, from, to, take, put, until_ms)
}

pub(super) fn brpoplpush(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, from, to, timeout] = args else { return Err(Fault::SYNTAX) };
    let until_ms = args::timeout(timeout, context.txn.now_ms())?;
    move_or_wait(context, from, to, End::Back, End::Front, until_ms)
}

fn move_or_null(
    context: &mut Context<'_, '_>,
    from: &[u8],
    to: &[u8],
    take: End,
    put: End,
) -> Result<Flow> {
    match List::find(context.txn, from)? {
        None => context.out.null(),
        Some(list) => move_one(context, list, from, to, take, put)?,
    }
    Ok(Flow::Done)
}

fn move_or_wait(
    context: &mut Context<'_, '_>,
    from: &[u8],
    to: &[u8],
    take: End,
    put: End,
    until_ms: Option<u64>,
) -> Result<Flow> {
    match List::find(context.txn, from) {
        Ok(Some(list)) => {
            move_one(context, list, from, to, take, put)?;
            return Ok(Flow::Done);
        }
        Ok(None) => {}
        // Who waits for a list waits on when the key becomes something else.
        Err(fault) if context.caller == Caller::Waiter && fault == Fault::WRONG_TYPE => {}
        Err(fault) => return Err(fault),
    }
    if !context.caller.may_block() {
        return context.out.reply_null();
    }
    let keys = vec![from.to_vec()];
    Ok(Flow::Block(Block::on(keys, until_ms)))
}

fn move_one(
    context: &mut Context<'_, '_>,
    mut list: List,
    from: &[u8],
    to: &[u8],
    take: End,
    put: End,
) -> Result<()> {
    if from == to {
        let element = list.pop(context.txn, from, take)?;
        context.out.bulk(&element);
        list.push(context.txn, to, put, element);
        list.save(context.txn, to)?;
        note_push(context, to, put, false);
        context.txn.notify_counted('l', if take == End::Front { "lpop" } else { "rpop" }, from, 1);
    } else {
        let found = List::find(context.txn, to)?;
        let is_new = found.is_none();
        let mut target = found.unwrap_or_else(List::new);
        let element = list.pop(context.txn, from, take)?;
        context.out.bulk(&element);
        target.push(context.txn, to, put, element);
        target.save(context.txn, to)?;
        note_push(context, to, put, is_new);
        save_popped(context, from, take, &list, 1)?;
    }
    Ok(())
}
