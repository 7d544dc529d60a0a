//! Streams: [`stream`] and [`group`] keep one on the engine's records, [`dump`] and [`restore`]
//! write and read one in Redis's form, the other files are the commands.

mod claim;
mod codec;
pub(super) mod dump;
mod group;
mod id;
mod info;
mod nodes;
mod pending;
mod range;
mod read;
mod reply;
pub(super) mod restore;
mod stream;
mod write;
mod xgroup;

pub(crate) use stream::{Fields, fields_of, keep_newest};

use crate::command_spec::{Command, CommandName, Keys, RunOnKeys, flag::*};

const fn command(name: CommandName, arity: i32, flags: u32, keys: Keys, run: RunOnKeys) -> Command {
    let categories = if flags & BLOCKING != 0 { "stream blocking" } else { "stream" };
    Command::on_keys(name, arity, flags, keys, categories, run)
}

/// Those behind `STREAMS`.
const LISTED: Keys = Keys::Found { listed: (0, 0, 0), find: read::key_positions };

pub(super) const COMMANDS: &[Command] = &[
    command("xadd", -5, WRITE | DENYOOM | FAST, Keys::FIRST, write::xadd),
    command("xtrim", -4, WRITE, Keys::FIRST, write::xtrim),
    command("xdel", -3, WRITE | FAST, Keys::FIRST, write::xdel),
    command("xsetid", -3, WRITE | DENYOOM | FAST, Keys::FIRST, write::xsetid),
    command("xlen", 2, READONLY | FAST, Keys::FIRST, range::xlen),
    command("xrange", -4, READONLY, Keys::FIRST, range::xrange),
    command("xrevrange", -4, READONLY, Keys::FIRST, range::xrevrange),
    command("xread", -4, READONLY | BLOCKING | MOVABLE_KEYS, LISTED, read::xread),
    command("xreadgroup", -7, WRITE | BLOCKING | MOVABLE_KEYS, LISTED, read::xreadgroup),
    command("xack", -4, WRITE | FAST, Keys::FIRST, pending::xack),
    command("xpending", -3, READONLY, Keys::FIRST, pending::xpending),
    command("xclaim", -6, WRITE | FAST, Keys::FIRST, claim::xclaim),
    command("xautoclaim", -6, WRITE | FAST, Keys::FIRST, claim::xautoclaim),
    Command::group("xgroup", XGROUP),
    Command::group("xinfo", XINFO),
];

const XGROUP: &[Command] = &[
    command("xgroup|create", -5, WRITE | DENYOOM, Keys::SECOND, xgroup::create),
    command("xgroup|setid", -5, WRITE, Keys::SECOND, xgroup::setid),
    command("xgroup|destroy", 4, WRITE, Keys::SECOND, xgroup::destroy),
    command("xgroup|createconsumer", 5, WRITE | DENYOOM, Keys::SECOND, xgroup::createconsumer),
    command("xgroup|delconsumer", 5, WRITE, Keys::SECOND, xgroup::delconsumer),
    command("xgroup|help", 2, NO_DATA, Keys::None, xgroup::help),
];

const XINFO: &[Command] = &[
    command("xinfo|stream", -3, READONLY, Keys::SECOND, info::stream),
    command("xinfo|groups", 3, READONLY, Keys::SECOND, info::groups),
    command("xinfo|consumers", 4, READONLY, Keys::SECOND, info::consumers),
    command("xinfo|help", 2, NO_DATA, Keys::None, info::help),
];
