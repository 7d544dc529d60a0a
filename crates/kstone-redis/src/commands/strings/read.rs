//! GET, MGET and STRLEN.

use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};
use crate::store::strings::StringValue;

pub(super) fn get(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key] = args else { return Err(Fault::SYNTAX) };
    let value = context.txn.string(key)?;
    write_reply(context, key, value.as_ref())?;
    Ok(Flow::Done)
}

pub(super) fn mget(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    context.out.array(args.len().saturating_sub(1));
    for key in args.iter().skip(1) {
        let entry = context.txn.lookup(key)?;
        let value = entry.map(StringValue::from_entry).transpose()?.flatten();
        write_reply(context, key, value.as_ref())?;
    }
    Ok(Flow::Done)
}

pub(super) fn strlen(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key] = args else { return Err(Fault::SYNTAX) };
    let len = context.txn.string(key)?.map_or(0, |value| value.len());
    context.out.reply_integer(len as i64)
}

/// Replies with a string that may be absent.
pub(super) fn write_reply(
    context: &mut Context<'_, '_>,
    key: &[u8],
    value: Option<&StringValue>,
) -> Result<()> {
    match value {
        None => context.out.null(),
        Some(value) => match value.inline() {
            Some(body) => context.out.bulk(body),
            None => context.out.bulk(&context.txn.string_bytes(key, value)?),
        },
    }
    Ok(())
}
