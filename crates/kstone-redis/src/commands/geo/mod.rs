//! Geographical positions, kept in sorted sets: a member's score is its position ([`hash`]).

mod hash;
mod places;
mod search;

use crate::command_spec::{Command, CommandName, Keys, RunOnKeys, flag::*};

/// The key, and where the result goes if it is to be stored.
const RADIUS_KEYS: Keys = Keys::Found { listed: (1, 1, 1), find: search::radius_keys };
const fn command(name: CommandName, arity: i32, flags: u32, keys: Keys, run: RunOnKeys) -> Command {
    Command::on_keys(name, arity, flags, keys, "geo", run)
}

pub(super) const COMMANDS: &[Command] = &[
    command("geoadd", -5, WRITE | DENYOOM, Keys::FIRST, places::geoadd),
    command("geopos", -2, READONLY, Keys::FIRST, places::geopos),
    command("geohash", -2, READONLY, Keys::FIRST, places::geohash),
    command("geodist", -4, READONLY, Keys::FIRST, places::geodist),
    command("georadius", -6, WRITE | DENYOOM | MOVABLE_KEYS, RADIUS_KEYS, search::georadius),
    command(
        "georadiusbymember",
        -5,
        WRITE | DENYOOM | MOVABLE_KEYS,
        RADIUS_KEYS,
        search::georadiusbymember,
    ),
    command("georadius_ro", -6, READONLY, Keys::FIRST, search::georadius_ro),
    command("georadiusbymember_ro", -5, READONLY, Keys::FIRST, search::georadiusbymember_ro),
    command("geosearch", -7, READONLY, Keys::FIRST, search::geosearch),
    command("geosearchstore", -8, WRITE | DENYOOM, Keys::FIRST_TWO, search::geosearchstore),
];
