//! INCR, DECR and their variants.

use std::io::Write;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};
use crate::float::LongDouble;
use crate::store::strings::StringValue;

pub(super) fn incr(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key] = args else { return Err(Fault::SYNTAX) };
    add(context, key, 1)
}

pub(super) fn decr(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key] = args else { return Err(Fault::SYNTAX) };
    add(context, key, -1)
}

pub(super) fn incrby(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, by] = args else { return Err(Fault::SYNTAX) };
    add(context, key, args::integer(by)?)
}

pub(super) fn decrby(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, by] = args else { return Err(Fault::SYNTAX) };
    let by = args::integer(by)?.checked_neg();
    add(context, key, by.ok_or(Fault::fixed("ERR decrement would overflow"))?)
}

fn add(context: &mut Context<'_, '_>, key: &[u8], by: i64) -> Result<Flow> {
    let old = context.txn.string(key)?;
    let number = match &old {
        None => 0,
        Some(old) => args::integer(short(old).ok_or(Fault::NOT_INTEGER)?)?,
    };
    let sum = number.checked_add(by);
    let sum = sum.ok_or(Fault::fixed("ERR increment or decrement would overflow"))?;
    // No number is longer than this, and a stack is quicker than a heap.
    let mut text = [0; 20];
    let mut rest = &mut text[..];
    let is_written = write!(rest, "{sum}").is_ok();
    debug_assert!(is_written);
    let len = 20 - rest.len();
    store(context, key, old.as_ref(), text.get(..len).unwrap_or_default(), "incrby")?;
    context.out.reply_integer(sum)
}

pub(super) fn incrbyfloat(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, by] = args else { return Err(Fault::SYNTAX) };
    let old = context.txn.string(key)?;
    let number = match &old {
        None => Some(LongDouble::from(0)),
        Some(old) => short(old).and_then(LongDouble::parse),
    };
    let number = number.ok_or(Fault::NOT_FLOAT)?;
    let by = LongDouble::parse(by).ok_or(Fault::NOT_FLOAT)?;
    let sum = number.plus(by);
    let sum = sum.ok_or(Fault::fixed("ERR increment would produce NaN or Infinity"))?;
    let text = sum.to_string();
    store(context, key, old.as_ref(), text.as_bytes(), "incrbyfloat")?;
    context.out.reply_bulk(text.as_bytes())
}

/// A string that is short enough for a number.
fn short(value: &StringValue) -> Option<&[u8]> {
    value.inline().map(|body| &body[..])
}

fn store(
    context: &mut Context<'_, '_>,
    key: &[u8],
    old: Option<&StringValue>,
    text: &[u8],
    event: &'static str,
) -> Result<()> {
    let old = old.map(|old| &old.entry);
    let expires_at_ms = old.and_then(|old| old.expires_at_ms);
    context.txn.set_string(key, old, text, expires_at_ms)?;
    context.txn.changed('$', event, key, 1);
    Ok(())
}
