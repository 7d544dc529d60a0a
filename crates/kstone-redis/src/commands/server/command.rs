//! COMMAND and its subcommands: lists the commands.

use crate::args;
use crate::command_spec::{Command, Context, Flow, Keys, Run, access, flag, flag::*};
use crate::commands;
use crate::commands::server::docs;
use crate::fault::{Fault, Result};
use crate::glob;
use crate::reply::Sink;
use crate::server::acl;

pub(super) const SUBCOMMANDS: &[Command] = &[
    Command::new("command|count", 2, NO_DATA, "connection", Run::Keys(count)),
    Command::new("command|docs", -2, NO_DATA, "connection", Run::Keys(docs::docs)),
    Command::new("command|getkeys", -3, NO_DATA, "connection", Run::Keys(get_keys)),
    Command::new("command|getkeysandflags", -3, NO_DATA, "connection", Run::Keys(keys_and_flags)),
    Command::new("command|help", 2, NO_DATA, "connection", Run::Keys(help)),
    Command::new("command|info", -2, NO_DATA, "connection", Run::Keys(info)),
    Command::new("command|list", -2, NO_DATA, "connection", Run::Keys(list)),
];

/// The flags in the order in which they are listed.
const NAMES: [(u32, &str); 17] = [
    (flag::WRITE, "write"),
    (flag::READONLY, "readonly"),
    (flag::DENYOOM, "denyoom"),
    (flag::ADMIN, "admin"),
    (flag::PUBSUB, "pubsub"),
    (flag::NOSCRIPT, "noscript"),
    (flag::BLOCKING, "blocking"),
    (flag::LOADING, "loading"),
    (flag::STALE, "stale"),
    (flag::SKIP_MONITOR, "skip_monitor"),
    (flag::SKIP_SLOWLOG, "skip_slowlog"),
    (flag::FAST, "fast"),
    (flag::NO_AUTH, "no_auth"),
    (flag::MAY_REPLICATE, "may_replicate"),
    (flag::NO_MULTI, "no_multi"),
    (flag::MOVABLE_KEYS, "movablekeys"),
    (flag::ALLOW_BUSY, "allow_busy"),
];

pub(super) fn all(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.out.array(commands::all().count());
    for command in commands::all() {
        write_reply(context.out, command);
    }
    Ok(Flow::Done)
}

fn count(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.out.reply_integer(commands::all().count() as i64)
}

fn info(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let names = given.get(2..).unwrap_or_default();
    if names.is_empty() {
        return all(context, given);
    }
    context.out.array(names.len());
    for name in names {
        match by_full_name(name) {
            Some(command) => write_reply(context.out, command),
            None => context.out.null_array(),
        }
    }
    Ok(Flow::Done)
}

/// A command or a subcommand, as `config|get`.
pub(super) fn by_full_name(name: &[u8]) -> Option<&'static Command> {
    let mut words = name.splitn(2, |byte| *byte == b'|');
    let command = commands::named(words.next()?)?;
    match words.next() {
        None => Some(command),
        Some(sub) => commands::subcommand(command, sub),
    }
}

/// First, last and step of the keys, as far as positions alone tell.
fn listed(keys: &Keys) -> (i32, i32, i32) {
    match *keys {
        Keys::None => (0, 0, 0),
        Keys::Range { first, last, step } => (first, last, step),
        Keys::Counted { also: 0, .. } => (0, 0, 0),
        Keys::Counted { also, .. } => (also as i32, also as i32, 1),
        Keys::Found { listed, .. } => listed,
    }
}

fn flags_of(command: &Command) -> Vec<&'static str> {
    let is_movable = matches!(command.keys, Keys::Counted { .. } | Keys::Found { .. });
    NAMES
        .iter()
        .filter(|(flag, name)| command.has(*flag) || is_movable && *name == "movablekeys")
        .map(|(_, name)| *name)
        .collect()
}

fn write_reply(out: &mut dyn Sink, command: &'static Command) {
    out.array(10);
    out.bulk(command.name.as_bytes());
    out.integer(command.arity.into());
    let flags = flags_of(command);
    out.set(flags.len());
    flags.iter().for_each(|flag| out.simple(flag));
    let (first, last, step) = listed(&command.keys);
    out.integer(first.into());
    out.integer(last.into());
    out.integer(step.into());
    let categories = acl::categories_of(command);
    out.set(categories.len());
    categories.iter().for_each(|category| out.simple(&format!("@{category}")));
    out.array(0);
    write_key_specs(out, command);
    out.array(command.subcommands.len());
    for sub in command.subcommands {
        write_reply(out, sub);
    }
}

/// Where the keys are, as clients of clusters want to know.
fn write_key_specs(out: &mut dyn Sink, command: &'static Command) {
    let spec =
        |out: &mut dyn Sink, order: usize, at: Option<i32>, find: (&str, [(&str, i32); 3])| {
            out.map(3);
            out.bulk(b"flags");
            let words: Vec<&str> = access::of(command, &[], order).words.split(' ').collect();
            out.set(words.len());
            words.iter().for_each(|word| out.simple(word));
            out.bulk(b"begin_search");
            out.map(2);
            out.bulk(b"type");
            match at {
                Some(at) => {
                    out.bulk(b"index");
                    out.bulk(b"spec");
                    out.map(1);
                    out.bulk(b"index");
                    out.integer(at.into());
                }
                None => {
                    out.bulk(b"unknown");
                    out.bulk(b"spec");
                    out.map(0);
                }
            }
            out.bulk(b"find_keys");
            out.map(2);
            out.bulk(b"type");
            out.bulk(find.0.as_bytes());
            out.bulk(b"spec");
            if find.0 == "unknown" {
                out.map(0);
                return;
            }
            out.map(3);
            for (name, number) in find.1 {
                out.bulk(name.as_bytes());
                out.integer(number.into());
            }
        };
    let range =
        |last: i32, step: i32| ("range", [("lastkey", last), ("keystep", step), ("limit", 0)]);
    match command.keys {
        Keys::None => out.array(0),
        Keys::Range { first, last, step } => {
            out.array(1);
            let last = if last < 0 { last } else { last - first };
            spec(out, 0, Some(first), range(last, step));
        }
        Keys::Counted { count, also } => {
            let numbers = [("keynumidx", 0), ("firstkey", 1), ("keystep", 1)];
            out.array(if also > 0 { 2 } else { 1 });
            if also > 0 {
                spec(out, 0, Some(also as i32), range(0, 1));
            }
            spec(out, usize::from(also > 0), Some(count as i32), ("keynum", numbers));
        }
        Keys::Found { .. } => {
            out.array(1);
            spec(out, 0, None, ("unknown", [("", 0); 3]));
        }
    }
}

/// The command that is asked about, and where its keys are.
fn keys_of(given: &[&[u8]]) -> Result<(&'static Command, Vec<usize>)> {
    let name = given.first().copied().unwrap_or_default();
    let command = commands::named(name)
        .and_then(|command| match given.get(1) {
            Some(sub) if !command.subcommands.is_empty() => commands::subcommand(command, sub),
            _ => Some(command),
        })
        .ok_or(Fault::fixed("ERR Invalid command specified"))?;
    if matches!(command.keys, Keys::None) {
        return Err(Fault::fixed("ERR The command has no key arguments"));
    }
    if !command.takes(given.len()) {
        return Err(Fault::fixed("ERR Invalid number of arguments specified for command"));
    }
    let positions: Vec<usize> = command.keys.positions(given).collect();
    let may_have_none = matches!(command.keys, Keys::Counted { also: 0, .. })
        && !command.has(flag::READONLY | flag::WRITE);
    let is_script = command.categories.split(' ').any(|category| category == "scripting");
    if positions.is_empty() && !may_have_none && !is_script {
        return Err(Fault::fixed("ERR Invalid arguments specified for command"));
    }
    Ok((command, positions))
}

fn get_keys(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let given = given.get(2..).unwrap_or_default();
    let (_, positions) = keys_of(given)?;
    context.out.array(positions.len());
    for position in positions {
        context.out.bulk(given.get(position).copied().unwrap_or_default());
    }
    Ok(Flow::Done)
}

fn keys_and_flags(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let given = given.get(2..).unwrap_or_default();
    let (command, positions) = keys_of(given)?;
    context.out.array(positions.len());
    for (order, position) in positions.into_iter().enumerate() {
        context.out.array(2);
        context.out.bulk(given.get(position).copied().unwrap_or_default());
        let words: Vec<&str> = access::of(command, given, order).words.split(' ').collect();
        context.out.set(words.len());
        words.iter().for_each(|word| context.out.simple(word));
    }
    Ok(Flow::Done)
}

fn list(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    enum Filter<'a> {
        None,
        Module,
        Category(String),
        Pattern(&'a [u8]),
    }
    let filter = match given.get(2..).unwrap_or_default() {
        [] => Filter::None,
        [by, kind, arg] if args::is(by, "filterby") => match &*kind.to_ascii_lowercase() {
            b"module" => Filter::Module,
            b"aclcat" => Filter::Category(args::shown(arg).to_ascii_lowercase()),
            b"pattern" => Filter::Pattern(arg),
            _ => return Err(Fault::SYNTAX),
        },
        _ => return Err(Fault::SYNTAX),
    };
    let names: Vec<&[u8]> = commands::each()
        .filter(|command| match &filter {
            Filter::None => true,
            Filter::Module => false,
            Filter::Category(category) => acl::is_in(command, category),
            Filter::Pattern(pattern) => glob::matches_any_case(pattern, command.name.as_bytes()),
        })
        .map(|command| command.name.as_bytes())
        .collect();
    context.out.reply_bulks(&names)
}

fn help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let lines = [
        ("(no subcommand)", "Everything about every command."),
        ("COUNT", "How many commands there are."),
        ("DOCS [<command> ...]", "What commands are for."),
        ("GETKEYS <command> [<arg> ...]", "Which arguments of a command are keys."),
        ("GETKEYSANDFLAGS <command> [<arg> ...]", "The same, and what is done with them."),
        ("INFO [<command> ...]", "Everything about some commands."),
        ("LIST [FILTERBY (MODULE|ACLCAT|PATTERN) <arg>]", "The names of commands."),
    ];
    commands::help(context, "COMMAND", &lines)
}
