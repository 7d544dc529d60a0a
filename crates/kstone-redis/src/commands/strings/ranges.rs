//! GETRANGE, SETRANGE and APPEND.

use std::ops::Range;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::strings::check_len;
use crate::fault::{Fault, Result};

pub(super) fn append(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, more] = args else { return Err(Fault::SYNTAX) };
    let old = context.txn.string(key)?;
    let len = old.as_ref().map_or(0, |old| old.len());
    check_len(context, len, more.len() as u64)?;
    let len = context.txn.write_string(key, old.as_ref(), len, more)?;
    context.txn.changed('$', "append", key, 1);
    context.out.reply_integer(len as i64)
}

pub(super) fn setrange(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, offset, value] = args else { return Err(Fault::SYNTAX) };
    let offset = u64::try_from(args::integer(offset)?)
        .map_err(|_| Fault::fixed("ERR offset is out of range"))?;
    let old = context.txn.string(key)?;
    let mut len = old.as_ref().map_or(0, |old| old.len());
    if !value.is_empty() {
        check_len(context, offset, value.len() as u64)?;
        len = context.txn.write_string(key, old.as_ref(), offset, value)?;
        context.txn.changed('$', "setrange", key, 1);
    }
    context.out.reply_integer(len as i64)
}

/// GETRANGE, and SUBSTR, its old name.
pub(super) fn getrange(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, start, end] = args else { return Err(Fault::SYNTAX) };
    let (start, end) = (args::integer(start)?, args::integer(end)?);
    let value = context.txn.string(key)?;
    let range = value.as_ref().and_then(|value| range(start, end, value.len()));
    match (value, range) {
        (Some(value), Some(range)) => {
            context.out.bulk(&context.txn.string_range(key, &value, range)?);
        }
        _ => context.out.bulk(b""),
    }
    Ok(Flow::Done)
}

/// What lies between two positions, both included, of which negative ones count from the end. None
/// if nothing does.
pub(in crate::commands) fn range(start: i64, end: i64, len: u64) -> Option<Range<u64>> {
    if start < 0 && end < 0 && start > end {
        return None;
    }
    let len = i64::try_from(len).ok()?;
    let from_end = |at: i64| if at < 0 { at.saturating_add(len).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(len - 1));
    (start <= end).then(|| start as u64..end as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_positions_count_from_the_end() {
        for (start, end, expected) in [
            (0, -1, Some(0..5)),
            (1, 2, Some(1..3)),
            (-2, -1, Some(3..5)),
            (-100, 100, Some(0..5)),
            (-100, -100, Some(0..1)),
            (3, 1, None),
            (-1, -2, None),
            (5, 9, None),
            (i64::MIN, i64::MAX, Some(0..5)),
        ] {
            assert_eq!(range(start, end, 5), expected, "{start} {end}");
        }
        assert_eq!(range(0, -1, 0), None);
    }
}
