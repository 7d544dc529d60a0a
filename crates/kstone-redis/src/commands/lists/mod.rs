//! Lists: [`list`] keeps one on the engine's records, the other files are the commands.

mod editing;
mod ends;
mod list;
mod moving;
mod reading;
mod window;

pub(crate) use list::{End, List};

use crate::args;
use crate::command_spec::{Command, CommandName, Keys, RunOnKeys, flag::*};
use crate::fault::{Fault, Result};

const fn command(name: CommandName, arity: i32, flags: u32, keys: Keys, run: RunOnKeys) -> Command {
    let categories = if flags & BLOCKING != 0 { "list blocking" } else { "list" };
    Command::on_keys(name, arity, flags, keys, categories, run)
}

/// The flags of what waits for an element.
const WAITS: u32 = WRITE | NOSCRIPT | BLOCKING;

pub(super) const COMMANDS: &[Command] = &[
    command("lpush", -3, WRITE | DENYOOM | FAST, Keys::FIRST, ends::lpush),
    command("rpush", -3, WRITE | DENYOOM | FAST, Keys::FIRST, ends::rpush),
    command("lpushx", -3, WRITE | DENYOOM | FAST, Keys::FIRST, ends::lpushx),
    command("rpushx", -3, WRITE | DENYOOM | FAST, Keys::FIRST, ends::rpushx),
    command("lpop", -2, WRITE | FAST, Keys::FIRST, ends::lpop),
    command("rpop", -2, WRITE | FAST, Keys::FIRST, ends::rpop),
    command("lmpop", -4, WRITE | MOVABLE_KEYS, Keys::COUNTED, ends::lmpop),
    command("blpop", -3, WAITS, Keys::ALL_BUT_LAST, ends::blpop),
    command("brpop", -3, WAITS, Keys::ALL_BUT_LAST, ends::brpop),
    command("blmpop", -5, WRITE | BLOCKING | MOVABLE_KEYS, Keys::COUNTED_SECOND, ends::blmpop),
    command("llen", 2, READONLY | FAST, Keys::FIRST, reading::llen),
    command("lrange", 4, READONLY, Keys::FIRST, reading::lrange),
    command("lindex", 3, READONLY, Keys::FIRST, reading::lindex),
    command("lpos", -3, READONLY, Keys::FIRST, reading::lpos),
    command("lset", 4, WRITE | DENYOOM, Keys::FIRST, editing::lset),
    command("linsert", 5, WRITE | DENYOOM, Keys::FIRST, editing::linsert),
    command("lrem", 4, WRITE, Keys::FIRST, editing::lrem),
    command("ltrim", 4, WRITE, Keys::FIRST, editing::ltrim),
    command("lmove", 5, WRITE | DENYOOM, Keys::FIRST_TWO, moving::lmove),
    command("rpoplpush", 3, WRITE | DENYOOM, Keys::FIRST_TWO, moving::rpoplpush),
    command("blmove", 6, WAITS | DENYOOM, Keys::FIRST_TWO, moving::blmove),
    command("brpoplpush", 4, WAITS | DENYOOM, Keys::FIRST_TWO, moving::brpoplpush),
];

/// `LEFT` or `RIGHT`.
fn end(arg: &[u8]) -> Result<End> {
    match arg {
        _ if args::is(arg, "left") => Ok(End::Front),
        _ if args::is(arg, "right") => Ok(End::Back),
        _ => Err(Fault::SYNTAX),
    }
}
