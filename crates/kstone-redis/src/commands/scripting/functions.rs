//! FCALL, and FUNCTION with its subcommands.

use super::execute::{ScriptCall, execute, keys_and_args};
use super::libraries::Policy;
use super::running::Origin;
use super::{payload, shebang};
use crate::args;
use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};
use crate::glob;

pub(super) fn fcall(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    run(context, args, false)
}

pub(super) fn fcall_ro(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    run(context, args, true)
}

fn run(context: &mut Context<'_, '_>, args: &[&[u8]], is_read_only: bool) -> Result<Flow> {
    let server = context.server;
    let mut libraries = server.scripts.libraries(server)?;
    let function = libraries.function(args.get(1).copied().unwrap_or_default());
    let function = function.ok_or(Fault::fixed("ERR Function not found"))?;
    let (keys, rest) = keys_and_args(args, Fault::fixed("ERR Bad number of keys provided"))?;
    let call = ScriptCall {
        origin: Origin::Function,
        name: &function.name,
        flags: Some(function.flags),
        is_read_only,
        command: args,
        keys,
    };
    let interpreter = libraries.interpreter()?;
    execute(context, &call, interpreter, |interpreter| {
        interpreter.run_function(&function.callback, keys, rest)
    })
}

pub(super) fn load(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let (text, options) = match args.get(2..).and_then(<[_]>::split_last) {
        Some((text, options)) => (*text, options),
        None => return Err(Fault::fixed("ERR Function code is missing")),
    };
    let mut replaces = false;
    for option in options {
        if !args::is(option, "replace") {
            let option = args::shown(option);
            return Err(Fault::new(format!("ERR Unknown option given: {option}")));
        }
        replaces = true;
    }
    let server = context.server;
    let mut libraries = server.scripts.libraries(server)?;
    let name = libraries.load(server, context.txn, text, replaces)?;
    server.scripts.count_libraries(&libraries);
    context.txn.count_changes(1);
    context.out.reply_bulk(name.as_bytes())
}

pub(super) fn delete(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let server = context.server;
    let mut libraries = server.scripts.libraries(server)?;
    libraries.delete(context.txn, args.get(2).copied().unwrap_or_default())?;
    server.scripts.count_libraries(&libraries);
    context.txn.count_changes(1);
    context.out.reply_ok()
}

/// More arguments than a subcommand takes.
fn too_many(name: &str) -> Fault {
    Fault::new(format!(
        "ERR unknown subcommand or wrong number of arguments for '{name}'. Try FUNCTION HELP."
    ))
}

pub(super) fn flush(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    match args.get(2..).unwrap_or_default() {
        [] => {}
        [mode] if args::is(mode, "sync") || args::is(mode, "async") => {}
        [_] => return Err(Fault::fixed("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")),
        _ => return Err(too_many(&args::shown(args.get(1).copied().unwrap_or_default()))),
    }
    let server = context.server;
    let mut libraries = server.scripts.libraries(server)?;
    libraries.flush(context.txn)?;
    server.scripts.count_libraries(&libraries);
    context.txn.count_changes(1);
    context.out.reply_ok()
}

pub(super) fn dump(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let server = context.server;
    let libraries = server.scripts.libraries(server)?;
    let texts = libraries.iter().map(|(_, library)| library.text.as_slice());
    context.out.reply_bulk(&payload::write(texts))
}

pub(super) fn restore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let policy = match args.get(3..).unwrap_or_default() {
        [] => Policy::Append,
        [policy] if args::is(policy, "append") => Policy::Append,
        [policy] if args::is(policy, "replace") => Policy::Replace,
        [policy] if args::is(policy, "flush") => Policy::Flush,
        [_] => {
            return Err(Fault::fixed(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
        _ => return Err(too_many(&args::shown(args.get(1).copied().unwrap_or_default()))),
    };
    let texts = payload::read(args.get(2).copied().unwrap_or_default())?;
    let server = context.server;
    let mut libraries = server.scripts.libraries(server)?;
    libraries.restore(server, context.txn, &texts, policy)?;
    server.scripts.count_libraries(&libraries);
    context.txn.count_changes(1);
    context.out.reply_ok()
}

pub(super) fn list(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let (mut with_code, mut pattern) = (false, None);
    let mut options = args.iter().skip(2);
    while let Some(option) = options.next() {
        if !with_code && args::is(option, "withcode") {
            with_code = true;
        } else if pattern.is_none() && args::is(option, "libraryname") {
            let given = options.next();
            pattern = Some(given.ok_or(Fault::fixed("ERR library name argument was not given"))?);
        } else {
            return Err(Fault::new(format!("ERR Unknown argument {}", args::shown(option))));
        }
    }
    let server = context.server;
    let libraries = server.scripts.libraries(server)?;
    let matches =
        |name: &str| pattern.is_none_or(|pattern| glob::matches_any_case(pattern, name.as_bytes()));
    let found: Vec<_> = libraries.iter().filter(|(name, _)| matches(name)).collect();
    let out = &mut *context.out;
    out.array(found.len());
    for (name, library) in found {
        out.map(if with_code { 4 } else { 3 });
        out.bulk(b"library_name");
        out.bulk(name.as_bytes());
        out.bulk(b"engine");
        out.bulk(b"LUA");
        out.bulk(b"functions");
        out.array(library.functions.len());
        for function in library.functions.iter() {
            out.map(3);
            out.bulk(b"name");
            out.bulk(function.name.as_bytes());
            out.bulk(b"description");
            out.bulk_or_null(function.description.as_deref());
            out.bulk(b"flags");
            let names = shebang::flag::NAMES.iter().filter(|(_, flag)| function.flags & flag != 0);
            out.set(names.clone().count());
            for (name, _) in names {
                out.simple(name);
            }
        }
        if with_code {
            out.bulk(b"library_code");
            out.bulk(&library.text);
        }
    }
    Ok(Flow::Done)
}

pub(super) fn kill(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.server.scripts.running.kill(Origin::Function)?;
    context.out.reply_ok()
}

pub(super) fn stats(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let server = context.server;
    let current = server.scripts.running.current();
    if let Some(execution) = &current {
        execution.refuse_unless(Origin::Function)?;
    }
    let usage = server.scripts.usage();
    let out = &mut *context.out;
    out.map(2);
    out.bulk(b"running_script");
    match current {
        None => out.null(),
        Some(execution) => {
            out.map(3);
            out.bulk(b"name");
            out.bulk(execution.name.as_bytes());
            out.bulk(b"command");
            out.array(execution.command.len());
            for arg in &execution.command {
                out.bulk(arg);
            }
            out.bulk(b"duration_ms");
            let took_ms = server.engine.now_ms().saturating_sub(execution.started_ms);
            out.integer(i64::try_from(took_ms).unwrap_or(i64::MAX));
        }
    }
    out.bulk(b"engines");
    out.map(1);
    out.bulk(b"LUA");
    out.map(2);
    out.bulk(b"libraries_count");
    out.integer(usage.libraries as i64);
    out.bulk(b"functions_count");
    out.reply_integer(usage.functions as i64)
}

/// What FUNCTION can do.
pub(super) const HELP: &[&str] = &[
    "FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "LOAD [REPLACE] <library code>",
    "    Load a library; its first line names it.",
    "DELETE <library name>",
    "    Delete a library with all its functions.",
    "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
    "    List the libraries, or those whose names match, with their functions.",
    "STATS",
    "    Tell which function runs now and for how long, and how many there are.",
    "KILL",
    "    End the function that is running, if it has not written anything.",
    "FLUSH [ASYNC|SYNC]",
    "    Delete all libraries.",
    "DUMP",
    "    Reply with all libraries in a form that RESTORE takes.",
    "RESTORE <payload> [FLUSH|APPEND|REPLACE]",
    "    Load what DUMP gave: instead of what is there, beside it, or over it.",
    "HELP",
    "    Print this help.",
];
