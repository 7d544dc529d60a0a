//! The commands, one file or folder for each family. Each function parses the arguments, does the
//! work and replies.

mod acl;
mod bits;
mod client;
mod connection;
mod dump;
pub(crate) mod element_view;
mod expiry;
mod geo;
mod hashes;
mod hyperloglog;
mod keys;
mod lists;
mod pubsub;
mod scan;
pub(crate) mod scripting;
mod server;
mod sets;
mod sort;
mod sorted_sets;
mod streams;
mod strings;

use std::sync::LazyLock;

use hashbrown::HashMap;

use crate::args;
use crate::command_spec::{Command, Context, Flow, Request};
use crate::fault::{Fault, Result};
use crate::store::elements;

/// All families. A static, so that a command has one address.
static FAMILIES: &[&[Command]] = &[
    acl::COMMANDS,
    bits::COMMANDS,
    client::COMMANDS,
    connection::COMMANDS,
    dump::COMMANDS,
    expiry::COMMANDS,
    geo::COMMANDS,
    hashes::COMMANDS,
    hyperloglog::COMMANDS,
    keys::COMMANDS,
    lists::COMMANDS,
    pubsub::COMMANDS,
    scan::COMMANDS,
    scripting::COMMANDS,
    server::COMMANDS,
    sets::COMMANDS,
    sort::COMMANDS,
    sorted_sets::COMMANDS,
    streams::COMMANDS,
    strings::COMMANDS,
];

/// The index of every command and subcommand among [`each`], by its address.
static INDEXES: LazyLock<HashMap<usize, usize>> = LazyLock::new(|| {
    each().enumerate().map(|(index, command)| (address(command), index)).collect()
});

fn address(command: &'static Command) -> usize {
    std::ptr::from_ref(command).addr()
}

/// Every command, and after each its subcommands.
pub(crate) fn each() -> impl Iterator<Item = &'static Command> {
    all().flat_map(|command| std::iter::once(command).chain(command.subcommands))
}

/// The sort key of the member or field that a command is about to look up in its key, if it names
/// one and it is known where.
pub(crate) fn member(Request { command, args }: Request<'_>) -> Option<Vec<u8>> {
    match command.name {
        "hset" | "hget" | "hdel" | "hexists" | "hincrby" | "hincrbyfloat" | "hsetnx" | "sadd"
        | "srem" | "sismember" => args.get(2).map(|member| elements::sort_key(member)),
        "zscore" | "zrem" => args.get(2).map(|member| sorted_sets::member_key(member)),
        "zadd" | "zincrby" if args.len() == 4 => {
            args.get(3).map(|member| sorted_sets::member_key(member))
        }
        _ => None,
    }
}

/// A command's index among [`each`]: its place in tables with an entry for each command.
pub(crate) fn index_of(command: &'static Command) -> usize {
    INDEXES.get(&address(command)).copied().unwrap_or_default()
}

/// No command has a longer name.
const NAME_LEN_MAX: usize = 32;

static BY_NAME: LazyLock<HashMap<&'static [u8], &'static Command>> = LazyLock::new(|| {
    let commands = FAMILIES.iter().flat_map(|family| family.iter());
    commands.map(|command| (command.name.as_bytes(), command)).collect()
});

/// Every command.
pub(crate) fn all() -> impl Iterator<Item = &'static Command> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The command with this name, in any case.
pub(crate) fn named(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; NAME_LEN_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    BY_NAME.get(&*lower).copied()
}

/// The command or subcommand that is asked for, however many arguments it is given.
pub(crate) fn lookup(given: &[&[u8]]) -> Option<&'static Command> {
    let command = named(given.first()?)?;
    match given.get(1) {
        Some(sub) if !command.subcommands.is_empty() => subcommand(command, sub),
        _ => Some(command),
    }
}

/// The command or subcommand that is asked for, if it takes so many arguments.
pub(crate) fn find(given: &[&[u8]]) -> Result<&'static Command> {
    let Some(name) = given.first() else { return Err(unknown_command(given)) };
    let command = named(name).ok_or_else(|| unknown_command(given))?;
    let command = match given.get(1) {
        Some(sub) if !command.subcommands.is_empty() => {
            subcommand(command, sub).ok_or_else(|| unknown_subcommand(given))?
        }
        _ => command,
    };
    if !command.takes(given.len()) {
        return Err(Fault::new(format!(
            "ERR wrong number of arguments for '{}' command",
            command.name
        )));
    }
    Ok(command)
}

/// A subcommand by its own name.
pub(crate) fn subcommand(command: &'static Command, name: &[u8]) -> Option<&'static Command> {
    command.subcommands.iter().find(|sub| {
        let own = sub.name.split_once('|').map_or(sub.name, |(_, own)| own);
        args::is(name, own)
    })
}

/// The error for a subcommand that is unknown.
pub(crate) fn unknown_subcommand(given: &[&[u8]]) -> Fault {
    let command = args::shown(given.first().copied().unwrap_or_default()).to_ascii_uppercase();
    let name: String =
        args::shown(given.get(1).copied().unwrap_or_default()).chars().take(128).collect();
    Fault::new(format!("ERR unknown subcommand '{name}'. Try {command} HELP."))
}

/// The answer to HELP: what each subcommand is for.
pub(crate) fn help(
    context: &mut Context<'_, '_>,
    name: &str,
    lines: &[(&str, &str)],
) -> Result<Flow> {
    let out = &mut *context.out;
    out.array(2 * lines.len() + 3);
    let first = format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    out.simple(&first);
    for (usage, what) in lines.iter().chain(&[("HELP", "Print this help.")]) {
        out.simple(usage);
        out.simple(&format!("    {what}"));
    }
    Ok(Flow::Done)
}

/// The error for an unknown command, with the beginning of its arguments.
fn unknown_command(given: &[&[u8]]) -> Fault {
    let name = args::shown(given.first().copied().unwrap_or_default());
    let mut shown = String::new();
    for arg in given.iter().skip(1) {
        if shown.len() >= 128 {
            break;
        }
        let arg = args::shown(arg);
        let room = 128 - shown.len();
        let cut: String = arg.chars().take(room).collect();
        shown.push_str(&format!("'{cut}' "));
    }
    let name: String = name.chars().take(128).collect();
    Fault::new(format!("ERR unknown command '{name}', with args beginning with: {shown}"))
}
