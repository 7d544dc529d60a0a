//! Commands on strings.

mod counters;
mod lcs;
mod ranges;
mod read;
mod write;

pub(super) use ranges::range;

use bytes::Bytes;

use crate::command_spec::{Command, CommandName, Context, Keys, RunOnKeys, flag::*};
use crate::fault::{Fault, Result};
use crate::server::config;
use crate::store::Txn;

pub(super) const COMMANDS: &[Command] = &[
    command("append", 3, WRITE | DENYOOM | FAST, Keys::FIRST, ranges::append),
    command("decr", 2, WRITE | DENYOOM | FAST, Keys::FIRST, counters::decr),
    command("decrby", 3, WRITE | DENYOOM | FAST, Keys::FIRST, counters::decrby),
    command("get", 2, READONLY | FAST, Keys::FIRST, read::get),
    command("getdel", 2, WRITE | FAST, Keys::FIRST, write::getdel),
    command("getex", -2, WRITE | FAST, Keys::FIRST, write::getex),
    command("getrange", 4, READONLY, Keys::FIRST, ranges::getrange),
    command("getset", 3, WRITE | DENYOOM | FAST, Keys::FIRST, write::getset),
    command("incr", 2, WRITE | DENYOOM | FAST, Keys::FIRST, counters::incr),
    command("incrby", 3, WRITE | DENYOOM | FAST, Keys::FIRST, counters::incrby),
    command("incrbyfloat", 3, WRITE | DENYOOM | FAST, Keys::FIRST, counters::incrbyfloat),
    command("lcs", -3, READONLY, Keys::FIRST_TWO, lcs::lcs),
    command("mget", -2, READONLY | FAST, Keys::ALL, read::mget),
    command("mset", -3, WRITE | DENYOOM, EVERY_OTHER, write::mset),
    command("msetnx", -3, WRITE | DENYOOM, EVERY_OTHER, write::msetnx),
    command("psetex", 4, WRITE | DENYOOM, Keys::FIRST, write::psetex),
    command("set", -3, WRITE | DENYOOM, Keys::FIRST, write::set),
    command("setex", 4, WRITE | DENYOOM, Keys::FIRST, write::setex),
    command("setnx", 3, WRITE | DENYOOM | FAST, Keys::FIRST, write::setnx),
    command("setrange", 4, WRITE | DENYOOM, Keys::FIRST, ranges::setrange),
    command("strlen", 2, READONLY | FAST, Keys::FIRST, read::strlen),
    command("substr", 4, READONLY, Keys::FIRST, ranges::getrange),
];

const EVERY_OTHER: Keys = Keys::Range { first: 1, last: -1, step: 2 };

const fn command(name: CommandName, arity: i32, flags: u32, keys: Keys, run: RunOnKeys) -> Command {
    Command::on_keys(name, arity, flags, keys, "string", run)
}

/// The whole string of a key, if there is one; an error if the key holds something else.
pub(crate) fn whole(txn: &mut Txn<'_>, key: &[u8]) -> Result<Option<Bytes>> {
    let Some(value) = txn.string(key)? else { return Ok(None) };
    txn.string_bytes(key, &value).map(Some)
}

/// The longest string there may be.
pub(super) fn len_max(context: &Context<'_, '_>) -> u64 {
    context.server.config.size(config::BULK_LEN_MAX)
}

/// Refuses a string that would be longer than there may be.
fn check_len(context: &Context<'_, '_>, len: u64, more: u64) -> Result<()> {
    if len.checked_add(more).is_none_or(|len| len > len_max(context)) {
        return Err(Fault::fixed("ERR string exceeds maximum allowed size (proto-max-bulk-len)"));
    }
    Ok(())
}
