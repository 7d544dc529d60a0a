//! Strings as arrays of bits: SETBIT, GETBIT, and the commands of the submodules.

mod count;
mod field;
mod operate;

use crate::args;
use crate::command_spec::{Command, CommandName, Context, Flow, Keys, RunOnKeys, flag::*};
use crate::commands::strings::len_max;
use crate::fault::{Fault, Result};

pub(super) const COMMANDS: &[Command] = &[
    command("bitcount", -2, READONLY, Keys::FIRST, count::bitcount),
    command("bitfield", -2, WRITE | DENYOOM, Keys::FIRST, field::bitfield),
    command("bitfield_ro", -2, READONLY | FAST, Keys::FIRST, field::bitfield_ro),
    command("bitop", -4, WRITE | DENYOOM, FROM_SECOND, operate::bitop),
    command("bitpos", -3, READONLY, Keys::FIRST, count::bitpos),
    command("getbit", 3, READONLY | FAST, Keys::FIRST, getbit),
    command("setbit", 4, WRITE | DENYOOM, Keys::FIRST, setbit),
];

const FROM_SECOND: Keys = Keys::Range { first: 2, last: -1, step: 1 };

const fn command(name: CommandName, arity: i32, flags: u32, keys: Keys, run: RunOnKeys) -> Command {
    Command::on_keys(name, arity, flags, keys, "bitmap", run)
}

fn setbit(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const BAD_BIT: Fault = Fault::fixed("ERR bit is not an integer or out of range");
    let [_, key, offset, bit] = args else { return Err(Fault::SYNTAX) };
    let offset = bit_offset(context, offset)?;
    let bit = match args::parse_integer(bit) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(BAD_BIT),
    };
    let txn = &mut *context.txn;
    let old = txn.string(key)?;
    let at = offset / 8;
    let byte = match &old {
        Some(old) => txn.string_range(key, old, at..at + 1)?.first().copied(),
        None => None,
    };
    let mask = 0x80 >> (offset % 8);
    let old_bit = byte.is_some_and(|byte| byte & mask != 0);
    // A string that is too short grows even if the bit was as good as there.
    if byte.is_none() || old_bit != bit {
        let byte = byte.unwrap_or(0);
        let byte = if bit { byte | mask } else { byte & !mask };
        txn.write_string(key, old.as_ref(), at, &[byte])?;
        txn.changed('$', "setbit", key, 1);
    }
    context.out.reply_integer(i64::from(old_bit))
}

fn getbit(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, offset] = args else { return Err(Fault::SYNTAX) };
    let offset = bit_offset(context, offset)?;
    let at = offset / 8;
    let byte = match context.txn.string(key)? {
        Some(value) => context.txn.string_range(key, &value, at..at + 1)?.first().copied(),
        None => None,
    };
    let bit = byte.is_some_and(|byte| byte & (0x80 >> (offset % 8)) != 0);
    context.out.reply_integer(i64::from(bit))
}

const BAD_OFFSET: Fault = Fault::fixed("ERR bit offset is not an integer or out of range");

/// The position of a bit, the highest bit of the first byte being 0.
fn bit_offset(context: &Context<'_, '_>, arg: &[u8]) -> Result<u64> {
    checked_offset(len_max(context), args::parse_integer(arg))
}

/// A position in a string of this length.
fn checked_offset(len_max: u64, offset: Option<i64>) -> Result<u64> {
    let offset = offset.and_then(|offset| u64::try_from(offset).ok());
    offset.filter(|offset| offset / 8 < len_max).ok_or(BAD_OFFSET)
}
