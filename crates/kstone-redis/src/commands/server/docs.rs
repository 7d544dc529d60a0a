//! COMMAND DOCS.

use crate::command::{Command, Context, Flow};
use crate::commands;
use crate::commands::server::command::by_full_name;
use crate::fault::Result;
use crate::reply::Sink;

pub(super) fn docs(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let names = given.get(2..).unwrap_or_default();
    let found: Vec<&'static Command> = match names {
        [] => commands::all().collect(),
        names => names.iter().filter_map(|name| by_full_name(name)).collect(),
    };
    context.out.map(found.len());
    for command in found {
        context.out.bulk(command.name.as_bytes());
        say(context.out, command);
    }
    Ok(Flow::Done)
}

fn say(out: &mut dyn Sink, command: &'static Command) {
    let has_subcommands = !command.subcommands.is_empty();
    out.map(2 + usize::from(has_subcommands));
    out.bulk(b"summary");
    out.bulk(command.name.replace('|', " ").to_ascii_uppercase().as_bytes());
    out.bulk(b"group");
    out.bulk(group(command).as_bytes());
    if has_subcommands {
        out.bulk(b"subcommands");
        out.map(command.subcommands.len());
        for sub in command.subcommands {
            out.bulk(sub.name.as_bytes());
            say(out, sub);
        }
    }
}

/// The group that documentation lists the command in.
fn group(command: &Command) -> &'static str {
    const GROUPS: [(&str, &str); 13] = [
        ("sortedset", "sorted-set"),
        ("hyperloglog", "hyperloglog"),
        ("bitmap", "bitmap"),
        ("string", "string"),
        ("hash", "hash"),
        ("list", "list"),
        ("set", "set"),
        ("geo", "geo"),
        ("stream", "stream"),
        ("scripting", "scripting"),
        ("transaction", "transactions"),
        ("connection", "connection"),
        ("keyspace", "generic"),
    ];
    let has = |name: &str| command.categories.split(' ').any(|have| have == name);
    if command.has(crate::command::flag::PUBSUB) {
        return "pubsub";
    }
    GROUPS.iter().find(|(category, _)| has(category)).map_or("server", |(_, group)| group)
}
