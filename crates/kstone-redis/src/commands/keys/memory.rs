//! MEMORY: how much memory and space keys take.

use std::ops::{Bound, ControlFlow};

use crate::args;
use crate::command_spec::{Command, Context, Flow, Keys, RunOnKeys, flag::*};
use crate::commands::keys::help;
use crate::fault::{Fault, Result};
use crate::server::process;

pub(super) const MEMORY: Command = Command::group(
    "memory",
    &[
        Command::on_keys("memory|usage", -3, READONLY, Keys::SECOND, "", usage),
        plain("memory|doctor", UNLOCKED, doctor),
        plain("memory|malloc-stats", UNLOCKED, malloc_stats),
        plain("memory|purge", UNLOCKED, purge),
        plain("memory|stats", 0, stats),
        plain("memory|help", NO_DATA, memory_help),
    ],
);

const fn plain(name: &'static str, flags: u32, run: RunOnKeys) -> Command {
    Command::on_keys(name, 2, flags, Keys::None, "", run)
}

/// What a record costs beside its key and value.
const RECORD_OVERHEAD_LEN: usize = 24;

fn usage(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, _, key, options @ ..] = args else { return Err(Fault::SYNTAX) };
    match options {
        [] => {}
        [option, samples] if args::is(option, "samples") => {
            if args::integer(samples)? < 0 {
                return Err(Fault::SYNTAX);
            }
        }
        _ => return Err(Fault::SYNTAX),
    }
    let Some(entry) = context.txn.lookup_quietly(key)? else {
        return context.out.reply_null();
    };
    let mut len = key.len() + 1 + entry.body.len() + RECORD_OVERHEAD_LEN;
    if entry.kind.has_parts() {
        context.txn.each_part(key, Bound::Unbounded, Bound::Unbounded, false, |sk, value| {
            len += key.len() + sk.len() + value.len() + RECORD_OVERHEAD_LEN;
            Ok(ControlFlow::Continue(()))
        })?;
    }
    context.out.reply_integer(i64::try_from(len).unwrap_or(i64::MAX))
}

fn doctor(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let text = "Keys are kept on disk; memory holds caches and write buffers within their budget. \
                No problem is known.\n";
    context.out.reply_text(text)
}

fn malloc_stats(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.out.reply_bulk(b"Stats not supported for the current allocator")
}

fn purge(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.out.reply_ok()
}

fn stats(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let used = process::usage().resident_bytes;
    let stats = context.server.engine.stats();
    let (_, hot_bytes) = context.server.hot.size();
    let databases = &context.server.databases;
    let recent_bytes = databases.heads.size().1 + databases.members.size().1;
    let buffers = stats.total.memtable_bytes;
    let caches = stats.cache_bytes + hot_bytes as u64 + recent_bytes as u64;
    let figures = [
        ("peak.allocated", used),
        ("total.allocated", used),
        ("lua.caches", context.server.script_usage().lua_bytes),
        ("block.cache", stats.cache_bytes),
        ("hot.keys", hot_bytes as u64),
        ("recent.records", recent_bytes as u64),
        ("write.buffers", buffers),
        ("overhead.total", used.saturating_sub(caches + buffers)),
        ("keys.count", u64::try_from(context.txn.count_keys()?).unwrap_or_default()),
        ("dataset.bytes", caches + buffers),
    ];
    context.out.map(figures.len());
    for (name, figure) in figures {
        context.out.bulk(name.as_bytes());
        context.out.integer(i64::try_from(figure).unwrap_or(i64::MAX));
    }
    Ok(Flow::Done)
}

fn memory_help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    help(
        context,
        "MEMORY",
        &[
            "DOCTOR",
            "    Problems with memory that are known.",
            "MALLOC-STATS",
            "    What the allocator counts: nothing.",
            "PURGE",
            "    Accepted; there is nothing to give back.",
            "STATS",
            "    How memory is used.",
            "USAGE <key> [SAMPLES <count>]",
            "    How many bytes the key takes, with everything in it.",
        ],
    );
    Ok(Flow::Done)
}
