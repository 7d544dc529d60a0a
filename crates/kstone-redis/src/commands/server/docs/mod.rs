//! COMMAND DOCS: describes each command and its arguments.

mod syntax;
mod table;

use crate::command_spec::{Command, Context, Flow};
use crate::commands;
use crate::commands::server::command::by_full_name;
use crate::fault::Result;
use crate::reply::Sink;
use syntax::{Argument, ArgumentKind};

pub(super) fn docs(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let names = given.get(2..).unwrap_or_default();
    let found: Vec<&'static Command> = match names {
        [] => commands::all().collect(),
        names => names.iter().filter_map(|name| by_full_name(name)).collect(),
    };
    context.out.map(found.len());
    for command in found {
        context.out.bulk(command.name.as_bytes());
        write_reply(context.out, command);
    }
    Ok(Flow::Done)
}

fn write_reply(out: &mut dyn Sink, command: &'static Command) {
    let doc = table::of(command.name);
    let texts = [
        ("summary", doc.summary),
        ("since", doc.since),
        ("group", doc.group),
        ("complexity", doc.complexity),
    ];
    let has_subcommands = !command.subcommands.is_empty();
    out.map(texts.len() + 1 + usize::from(has_subcommands));
    for (name, text) in texts {
        out.bulk(name.as_bytes());
        out.bulk(text.as_bytes());
    }
    // Where this is missing, redis-cli shows "(null)" for them.
    out.bulk(b"arguments");
    write_arguments(out, &syntax::parse(doc.syntax));
    if has_subcommands {
        out.bulk(b"subcommands");
        out.map(command.subcommands.len());
        for sub in command.subcommands {
            out.bulk(sub.name.as_bytes());
            write_reply(out, sub);
        }
    }
}

fn write_arguments(out: &mut dyn Sink, arguments: &[Argument<'_>]) {
    out.array(arguments.len());
    for argument in arguments {
        let inner = match &argument.kind {
            ArgumentKind::OneOf(inner) | ArgumentKind::All(inner) => Some(inner),
            ArgumentKind::Token | ArgumentKind::Value => None,
        };
        let name = argument.name();
        let flags = argument.flags();
        let is_value = matches!(argument.kind, ArgumentKind::Value);
        let texts = [
            ("name", Some(name.as_ref())),
            ("type", Some(argument.kind())),
            ("display_text", Some(name.as_ref()).filter(|_| is_value)),
            ("token", argument.token),
        ];
        let texts = texts.iter().filter_map(|(field, text)| Some((field, (*text)?)));
        let has_more = usize::from(!flags.is_empty()) + usize::from(inner.is_some());
        out.map(texts.clone().count() + has_more);
        for (field, text) in texts {
            out.bulk(field.as_bytes());
            out.bulk(text.as_bytes());
        }
        if !flags.is_empty() {
            out.bulk(b"flags");
            out.set(flags.len());
            flags.iter().for_each(|flag| out.simple(flag));
        }
        if let Some(inner) = inner {
            out.bulk(b"arguments");
            write_arguments(out, inner);
        }
    }
}
