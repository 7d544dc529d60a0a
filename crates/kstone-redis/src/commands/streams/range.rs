//! XLEN, XRANGE and XREVRANGE.

use super::id::Id;
use super::reply;
use super::stream::Stream;
use crate::args;
use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};

pub(super) fn xlen(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key] = args else { return Err(Fault::SYNTAX) };
    let len = Stream::find(context.txn, key)?.map_or(0, |stream| stream.len);
    context.out.reply_integer(len as i64)
}

pub(super) fn xrange(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, start, end, options @ ..] = args else { return Err(Fault::SYNTAX) };
    range(context, key, (start, end), options, false)
}

pub(super) fn xrevrange(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, end, start, options @ ..] = args else { return Err(Fault::SYNTAX) };
    range(context, key, (start, end), options, true)
}

fn range(
    context: &mut Context<'_, '_>,
    key: &[u8],
    (start, end): (&[u8], &[u8]),
    options: &[&[u8]],
    reverse: bool,
) -> Result<Flow> {
    let (start, end) = (Id::parse_start(start)?, Id::parse_end(end)?);
    let mut count = None;
    for option in options.chunks(2) {
        match option {
            [option, given] if args::is(option, "count") => {
                count = Some(u64::try_from(args::integer(given)?).unwrap_or(0));
            }
            _ => return Err(Fault::SYNTAX),
        }
    }
    match Stream::find(context.txn, key)? {
        None => context.out.array(0),
        Some(_) if count == Some(0) => context.out.null_array(),
        Some(stream) => {
            let at = (&*context.txn, key, &stream);
            reply::range(context.out, at, (start, end), reverse, count.unwrap_or(0))?;
        }
    }
    Ok(Flow::Done)
}
