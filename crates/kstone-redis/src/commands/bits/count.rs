//! BITCOUNT and BITPOS: counting and finding bits.

use std::ops::Range;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::strings::range;
use crate::fault::{Fault, Result};
use crate::store::strings::StringValue;

/// Bytes that are read at a time, so that a long string is never in memory as a whole.
const WINDOW_LEN: u64 = 1 << 20;

pub(super) fn bitcount(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, bounds @ ..] = args else { return Err(Fault::SYNTAX) };
    let Some(value) = context.txn.string(key)? else {
        return context.out.reply_integer(0);
    };
    let bits = match bounds {
        [] => Some(0..value.len() * 8),
        [start, end] | [start, end, _] => {
            let (start, end) = (args::integer(start)?, args::integer(end)?);
            // Redis looks at the unit only if the range may hold anything.
            match bounds.get(2) {
                _ if start < 0 && end < 0 && start > end => None,
                Some(unit) if Unit::parse(unit)? == Unit::Bit => range(start, end, value.len() * 8),
                _ => bytes_range(start, end, value.len()),
            }
        }
        _ => return Err(Fault::SYNTAX),
    };
    let mut count = 0;
    each_byte_run(context, key, &value, bits.unwrap_or(0..0), 0, |_, bytes| {
        count += bytes.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
        None::<()>
    })?;
    context.out.reply_integer(count as i64)
}

pub(super) fn bitpos(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, bit, bounds @ ..] = args else { return Err(Fault::SYNTAX) };
    let bit = match args::integer(bit)? {
        0 => false,
        1 => true,
        _ => return Err(Fault::fixed("ERR The bit argument must be 1 or 0.")),
    };
    let Some(value) = context.txn.string(key)? else {
        context.out.integer(if bit { -1 } else { 0 });
        return Ok(Flow::Done);
    };
    let (bits, has_end) = match bounds {
        [] => (Some(0..value.len() * 8), false),
        [start] => (bytes_range_from(args::integer(start)?, -1, value.len()), false),
        [start, end] | [start, end, _] => {
            let start = args::integer(start)?;
            let unit = bounds.get(2).map_or(Ok(Unit::Byte), |unit| Unit::parse(unit))?;
            let end = args::integer(end)?;
            let bits = match unit {
                Unit::Bit => range_from(start, end, value.len() * 8),
                Unit::Byte => bytes_range_from(start, end, value.len()),
            };
            (bits, true)
        }
        _ => return Err(Fault::SYNTAX),
    };
    let Some(bits) = bits.filter(|bits| !bits.is_empty()) else {
        return context.out.reply_integer(-1);
    };
    // Bits outside of the range are made what is not looked for.
    let hidden = if bit { 0x00 } else { 0xFF };
    let end = bits.end;
    let found = each_byte_run(context, key, &value, bits, hidden, |first, bytes| {
        let at = bytes.iter().position(|byte| *byte != hidden)?;
        let byte = bytes.get(at)? ^ hidden;
        Some((first + at as u64) * 8 + u64::from(byte.leading_zeros()))
    })?;
    context.out.integer(match found {
        Some(at) => at as i64,
        // Beyond the string there are zeros, unless somebody said where to stop.
        None if !bit && !has_end => end as i64,
        None => -1,
    });
    Ok(Flow::Done)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Byte,
    Bit,
}

impl Unit {
    fn parse(arg: &[u8]) -> Result<Unit> {
        match () {
            () if args::is(arg, "bit") => Ok(Unit::Bit),
            () if args::is(arg, "byte") => Ok(Unit::Byte),
            () => Err(Fault::SYNTAX),
        }
    }
}

/// The bits of a range of bytes.
fn bytes_range(start: i64, end: i64, len: u64) -> Option<Range<u64>> {
    range(start, end, len).map(|bytes| bytes.start * 8..bytes.end * 8)
}

/// As [`range`], for BITPOS: two positions before the beginning are the beginning.
fn range_from(start: i64, end: i64, len: u64) -> Option<Range<u64>> {
    let from_end = |at: i64| if at < 0 { at.saturating_add(len as i64).max(0) } else { at };
    range(from_end(start), from_end(end), len)
}

fn bytes_range_from(start: i64, end: i64, len: u64) -> Option<Range<u64>> {
    range_from(start, end, len).map(|bytes| bytes.start * 8..bytes.end * 8)
}

/// Shows the bytes that hold a range of bits, with the position of the first one, until it gets an
/// answer. Bits of the first and the last byte that are outside of the range are those of `hidden`.
fn each_byte_run<T>(
    context: &Context<'_, '_>,
    key: &[u8],
    value: &StringValue,
    bits: Range<u64>,
    hidden: u8,
    mut see: impl FnMut(u64, &[u8]) -> Option<T>,
) -> Result<Option<T>> {
    let end = bits.end.div_ceil(8);
    let mut start = bits.start / 8;
    while start < end {
        let to = end.min(start + WINDOW_LEN);
        let run = context.txn.string_range(key, value, start..to)?;
        let is_first = start == bits.start / 8 && !bits.start.is_multiple_of(8);
        let is_last = to == end && !bits.end.is_multiple_of(8);
        let answer = if is_first || is_last {
            let mut run = run.to_vec();
            let hide = |byte: &mut u8, mask: u8| *byte = *byte & !mask | hidden & mask;
            if let Some(first) = run.first_mut().filter(|_| is_first) {
                hide(first, !(0xFF >> (bits.start % 8)));
            }
            if let Some(last) = run.last_mut().filter(|_| is_last) {
                hide(last, 0xFF >> (bits.end % 8));
            }
            see(start, &run)
        } else {
            see(start, &run)
        };
        if answer.is_some() {
            return Ok(answer);
        }
        start = to;
    }
    Ok(None)
}
