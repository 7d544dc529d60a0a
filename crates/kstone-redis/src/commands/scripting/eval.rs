//! EVAL, EVALSHA, and SCRIPT with its subcommands.

use super::execute::{ScriptCall, execute, keys_and_args};
use super::running::Origin;
use crate::args;
use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};

const NO_SCRIPT: Fault = Fault::fixed("NOSCRIPT No matching script. Please use EVAL.");

pub(super) fn eval(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    run(context, args, false, false)
}

pub(super) fn eval_ro(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    run(context, args, false, true)
}

pub(super) fn evalsha(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    run(context, args, true, false)
}

pub(super) fn evalsha_ro(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    run(context, args, true, true)
}

fn run(
    context: &mut Context<'_, '_>,
    args: &[&[u8]],
    is_digest: bool,
    is_read_only: bool,
) -> Result<Flow> {
    let given = args.get(1).copied().unwrap_or_default();
    if is_digest && given.len() != 40 {
        return Err(NO_SCRIPT);
    }
    let (keys, rest) = keys_and_args(args, Fault::NOT_INTEGER)?;
    let server = context.server;
    server.scripts.with_cache(server, |cache| {
        let (digest, script) = if is_digest {
            let digest = args::shown(given).to_ascii_lowercase();
            let script = cache.take_up(&digest).ok_or(NO_SCRIPT)?;
            (digest, script)
        } else {
            cache.add(given, false)?
        };
        let call = ScriptCall {
            origin: Origin::Script,
            name: &digest,
            flags: script.flags,
            is_read_only,
            command: args,
            keys,
        };
        execute(context, &call, &mut cache.interpreter, |interpreter| {
            interpreter.run_script(&script.function, keys, rest)
        })
    })
}

pub(super) fn load(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let body = args.get(2).copied().unwrap_or_default();
    let server = context.server;
    let (digest, _) = server.scripts.with_cache(server, |cache| cache.add(body, true))?;
    context.out.reply_bulk(digest.as_bytes())
}

pub(super) fn exists(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let digests = args.get(2..).unwrap_or_default();
    let server = context.server;
    context.out.array(digests.len());
    server.scripts.with_cache(server, |cache| {
        for digest in digests {
            let is_there = std::str::from_utf8(digest).is_ok_and(|text| cache.get(text).is_some());
            context.out.integer(is_there.into());
        }
        Ok(())
    })?;
    Ok(Flow::Done)
}

pub(super) fn flush(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    match args.get(2..).unwrap_or_default() {
        [] => {}
        [mode] if args::is(mode, "sync") || args::is(mode, "async") => {}
        _ => return Err(Fault::fixed("ERR SCRIPT FLUSH only support SYNC|ASYNC option")),
    }
    context.server.scripts.forget_scripts();
    context.out.reply_ok()
}

pub(super) fn kill(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.server.scripts.running.kill(Origin::Script)?;
    context.out.reply_ok()
}

pub(super) fn debug(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let mode = args.get(2).copied().unwrap_or_default();
    if args::is(mode, "no") {
        return context.out.reply_ok();
    }
    if args::is(mode, "yes") || args::is(mode, "sync") {
        return Err(Fault::fixed("ERR this server has no debugger for scripts"));
    }
    Err(Fault::fixed("ERR Use SCRIPT DEBUG YES/SYNC/NO"))
}

/// What SCRIPT can do.
pub(super) const HELP: &[&str] = &[
    "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DEBUG NO",
    "    There is no debugger for scripts: NO is all that can be chosen.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Tell for each digest whether the cache has a script with it.",
    "FLUSH [ASYNC|SYNC]",
    "    Forget all scripts. It takes no time either way.",
    "KILL",
    "    End the script that is running, if it has not written anything.",
    "LOAD <script>",
    "    Put a script into the cache without running it.",
    "HELP",
    "    Print this help.",
];
