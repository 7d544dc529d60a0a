//! Commands about the server itself.

mod command;
mod config;
mod debug;
mod docs;
mod info;
mod lifecycle;
mod observe;
mod standalone;

use crate::command_spec::{Command, Run, flag::*};

pub(super) use info::REDIS_VERSION;

const READ: u32 = NO_DATA;
const ADMINS: u32 = ADMIN | NOSCRIPT | NO_DATA;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        subcommands: command::SUBCOMMANDS,
        ..Command::new("command", -1, READ, "connection", Run::Keys(command::all))
    },
    Command::group("config", config::SUBCOMMANDS),
    Command::new(
        "debug",
        -2,
        ADMIN | NOSCRIPT | LOADING | STALE | EXCLUSIVE,
        "",
        Run::Keys(debug::debug),
    ),
    Command::new("info", -1, READ, "dangerous", Run::Keys(info::info)),
    Command::group("latency", observe::LATENCY),
    Command::new("monitor", 1, ADMINS, "", Run::Keys(observe::monitor)),
    Command::group("slowlog", observe::SLOWLOG),
    Command::new("time", 1, READ | FAST, "", Run::Keys(lifecycle::time)),
    Command::new("lolwut", -1, READONLY | FAST | UNLOCKED, "", Run::Keys(lifecycle::lolwut)),
    Command::new(
        "shutdown",
        -1,
        ADMINS | NO_MULTI | ALLOW_BUSY,
        "",
        Run::Keys(lifecycle::shutdown),
    ),
    Command::new("save", 1, ADMINS | NO_MULTI, "", Run::Keys(lifecycle::save)),
    Command::new("bgsave", -1, ADMINS, "", Run::Keys(lifecycle::background_save)),
    Command::new("bgrewriteaof", 1, ADMINS, "", Run::Keys(lifecycle::rewrite)),
    Command::new("lastsave", 1, READ | FAST, "admin dangerous", Run::Keys(lifecycle::last_save)),
    Command::group("cluster", standalone::CLUSTER),
    Command::group("module", standalone::MODULE),
    Command::new("role", 1, READ | FAST | NOSCRIPT, "admin dangerous", Run::Keys(standalone::role)),
    Command::new("replicaof", 3, ADMINS, "", Run::Keys(standalone::replica_of)),
    Command::new("slaveof", 3, ADMINS, "", Run::Keys(standalone::replica_of)),
    Command::new("failover", -1, ADMINS, "", Run::Keys(standalone::fail_over)),
    Command::new("sync", 1, ADMINS | NO_MULTI, "", Run::Keys(standalone::no_replicas)),
    Command::new("psync", -3, ADMINS | NO_MULTI, "", Run::Keys(standalone::no_replicas)),
    Command::new("replconf", -1, ADMINS | ALLOW_BUSY, "", Run::Keys(standalone::no_replicas)),
];
