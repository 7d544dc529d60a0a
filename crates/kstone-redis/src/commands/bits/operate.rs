//! BITOP: AND, OR, XOR and NOT of whole strings.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::strings::whole;
use crate::fault::{Fault, Result};

pub(super) fn bitop(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, name, target, sources @ ..] = args else { return Err(Fault::SYNTAX) };
    let operation: fn(&mut u8, u8) = match () {
        () if args::is(name, "and") => |result, byte| *result &= byte,
        () if args::is(name, "or") => |result, byte| *result |= byte,
        () if args::is(name, "xor") => |result, byte| *result ^= byte,
        () if args::is(name, "not") => |_, _| {},
        () => return Err(Fault::SYNTAX),
    };
    let is_not = args::is(name, "not");
    if is_not && sources.len() != 1 {
        return Err(Fault::fixed("ERR BITOP NOT must be called with a single source key."));
    }
    let mut strings = Vec::with_capacity(sources.len());
    for key in sources {
        strings.push(whole(context.txn, key)?.unwrap_or_default());
    }
    let len = strings.iter().map(|string| string.len()).max().unwrap_or(0);
    let mut strings = strings.into_iter();
    let mut result = strings.next().unwrap_or_default().to_vec();
    result.resize(len, 0);
    for string in strings {
        // Beyond its end a string is zeros.
        let (covered, rest) = result.split_at_mut(string.len().min(len));
        for (result, byte) in covered.iter_mut().zip(&string) {
            operation(result, *byte);
        }
        for result in rest {
            operation(result, 0);
        }
    }
    if is_not {
        for byte in &mut result {
            *byte = !*byte;
        }
    }
    let old = context.txn.lookup(target)?;
    if len > 0 {
        context.txn.set_string(target, old.as_ref(), &result, None)?;
        context.txn.note_whole();
        context.txn.changed('$', "set", target, 1);
    } else if let Some(old) = old {
        context.txn.remove(target, &old);
        context.txn.notify_counted('g', "del", target, 1);
    }
    context.out.reply_integer(len as i64)
}
