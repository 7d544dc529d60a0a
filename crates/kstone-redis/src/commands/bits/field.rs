//! BITFIELD: integers of any width at any bit of a string.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::bits::checked_offset;
use crate::commands::strings::len_max;
use crate::fault::{Fault, Result};

pub(super) fn bitfield(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let operations = Operation::parse(rest, len_max(context))?;
    run(context, key, &operations)
}

pub(super) fn bitfield_ro(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let operations = Operation::parse(rest, len_max(context))?;
    if operations.iter().any(Operation::writes) {
        return Err(Fault::fixed("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    run(context, key, &operations)
}

fn run(context: &mut Context<'_, '_>, key: &[u8], operations: &[Operation]) -> Result<Flow> {
    let mut value = context.txn.string(key)?;
    let writes = operations.iter().filter(|operation| operation.writes());
    let last = writes.map(|operation| operation.offset + u64::from(operation.field.bits) - 1).max();
    let len = value.as_ref().map_or(0, |value| value.len());
    // The string is made as long as all writes together need before the first of them.
    let grown = last.map(|last| last / 8 + 1).filter(|needed| *needed > len);
    if let Some(len) = grown {
        context.txn.write_string(key, value.as_ref(), len - 1, &[0])?;
        value = context.txn.string(key)?;
    }
    let mut changes = 0;
    context.out.array(operations.len());
    for operation in operations {
        let (offset, field) = (operation.offset, operation.field);
        let (first, shift) = (offset / 8, (offset % 8) as u32);
        let bytes = match &value {
            Some(value) => context.txn.string_range(key, value, first..first + 9)?,
            None => Default::default(),
        };
        let mut window = [0; 16];
        for (into, byte) in window.iter_mut().zip(&bytes) {
            *into = *byte;
        }
        let window = u128::from_be_bytes(window);
        let old = field.read(window, shift);
        let (new, reply) = match operation.verb {
            Verb::Get => {
                context.out.integer(old);
                continue;
            }
            Verb::Set(number) => (field.fit(field.as_given(number), operation.overflow), None),
            Verb::Add(number) => {
                let sum = i128::from(old) + i128::from(number);
                let new = field.fit(sum, operation.overflow);
                (new, new)
            }
        };
        let Some(new) = new else {
            context.out.null();
            continue;
        };
        context.out.integer(reply.unwrap_or(old));
        if new != old {
            let window = field.write(window, shift, new).to_be_bytes();
            let used = (shift + field.bits).div_ceil(8) as usize;
            let bytes = window.get(..used).unwrap_or_default();
            context.txn.write_string(key, value.as_ref(), first, bytes)?;
            value = context.txn.string(key)?;
        }
        changes += u64::from(grown.is_some() || new != old);
    }
    if changes > 0 {
        context.txn.changed('$', "setbit", key, changes);
    }
    Ok(Flow::Done)
}

/// What to do with a number that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

/// The type of an integer in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    is_signed: bool,
    /// 1 to 64, or 63 without a sign.
    bits: u32,
}

impl Field {
    fn parse(arg: &[u8]) -> Result<Field> {
        const BAD_TYPE: Fault = Fault::fixed(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported \
             but i64 is.",
        );
        let (is_signed, digits) = match arg {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            _ => return Err(BAD_TYPE),
        };
        let bits = args::parse_integer(digits).ok_or(BAD_TYPE)?;
        let most = if is_signed { 64 } else { 63 };
        if !(1..=most).contains(&bits) {
            return Err(BAD_TYPE);
        }
        Ok(Field { is_signed, bits: bits as u32 })
    }

    fn max(self) -> i128 {
        (1 << (self.bits - u32::from(self.is_signed))) - 1
    }

    fn min(self) -> i128 {
        if self.is_signed { -self.max() - 1 } else { 0 }
    }

    /// A number that is to be set: one without a sign is taken as it looks in 64 bits.
    fn as_given(self, number: i64) -> i128 {
        if self.is_signed { number.into() } else { (number as u64).into() }
    }

    /// The number, or what becomes of it if it does not fit; none if then nothing is to be done.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let fitting = match overflow {
            _ if (self.min()..=self.max()).contains(&number) => number,
            Overflow::Fail => return None,
            Overflow::Saturate => number.clamp(self.min(), self.max()),
            Overflow::Wrap => return Some(self.number_in(number as u128)),
        };
        Some(fitting as i64)
    }

    /// The number that the lowest bits are.
    fn number_in(self, bits: u128) -> i64 {
        let unused = 128 - self.bits;
        let high = bits << unused;
        if self.is_signed { (high as i128 >> unused) as i64 } else { (high >> unused) as i64 }
    }

    /// The number that begins at a bit of the window, counted from the highest.
    fn read(self, window: u128, shift: u32) -> i64 {
        self.number_in(window >> (128 - shift - self.bits))
    }

    fn write(self, window: u128, shift: u32, number: i64) -> u128 {
        let low = 128 - shift - self.bits;
        let mask = ((1 << self.bits) - 1) << low;
        window & !mask | ((number as u128) << low) & mask
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Get,
    Set(i64),
    Add(i64),
}

#[derive(Debug)]
struct Operation {
    verb: Verb,
    field: Field,
    /// The first bit.
    offset: u64,
    overflow: Overflow,
}

impl Operation {
    fn writes(&self) -> bool {
        self.verb != Verb::Get
    }

    fn parse(args: &[&[u8]], len_max: u64) -> Result<Vec<Operation>> {
        let mut overflow = Overflow::Wrap;
        let mut operations = Vec::new();
        let mut rest = args;
        while let [name, after @ ..] = rest {
            if args::is(name, "overflow")
                && let [how, after @ ..] = after
            {
                overflow = match () {
                    () if args::is(how, "wrap") => Overflow::Wrap,
                    () if args::is(how, "sat") => Overflow::Saturate,
                    () if args::is(how, "fail") => Overflow::Fail,
                    () => return Err(Fault::fixed("ERR Invalid OVERFLOW type specified")),
                };
                rest = after;
                continue;
            }
            let (field, offset, number, after) = match after {
                [field, offset, after @ ..] if args::is(name, "get") => {
                    (field, offset, None, after)
                }
                [field, offset, number, after @ ..]
                    if args::is(name, "set") || args::is(name, "incrby") =>
                {
                    (field, offset, Some(number), after)
                }
                _ => return Err(Fault::SYNTAX),
            };
            let field = Field::parse(field)?;
            let offset = match offset {
                [b'#', digits @ ..] => {
                    let number = args::parse_integer(digits);
                    number.and_then(|number| number.checked_mul(field.bits.into()))
                }
                _ => args::parse_integer(offset),
            };
            let offset = checked_offset(len_max, offset)?;
            let verb = match number {
                None => Verb::Get,
                Some(number) if args::is(name, "set") => Verb::Set(args::integer(number)?),
                Some(number) => Verb::Add(args::integer(number)?),
            };
            operations.push(Operation { verb, field, offset, overflow });
            rest = after;
        }
        Ok(operations)
    }
}
