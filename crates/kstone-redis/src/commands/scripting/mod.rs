//! Lua scripts and functions.
//!
//! [`eval`] and [`functions`] hold the commands. Both run Lua ([`lua`]) through [`execute`], which
//! gives the script its transaction, its permissions and its reply; through [`running`], other
//! clients learn about it and can kill it meanwhile. A script has the whole keyspace to itself, and
//! everything it does is one commit, whether it ends or fails halfway.

mod eval;
mod execute;
mod functions;
mod libraries;
mod lua;
mod payload;
mod running;
mod shebang;
mod state;

pub(crate) use state::Scripts;

use crate::command_spec::{Command, Context, Flow, Keys, Run, flag::*};
use crate::fault::Result;

/// How scripts are run.
const RUNS: u32 = NOSCRIPT | STALE | SKIP_MONITOR | MOVABLE_KEYS | MAY_REPLICATE | EXCLUSIVE;
const READS: u32 = NOSCRIPT | STALE | SKIP_MONITOR | MOVABLE_KEYS | READONLY | EXCLUSIVE;
/// How libraries are added.
const ADDS: u32 = NOSCRIPT | WRITE | DENYOOM | EXCLUSIVE;

const fn runs(name: &'static str, flags: u32, run: Run) -> Command {
    let (categories, subcommands) = ("scripting", &[]);
    Command { name, arity: -3, flags, keys: Keys::COUNTED_SECOND, categories, run, subcommands }
}

const fn sub(name: &'static str, arity: i32, flags: u32, run: Run) -> Command {
    Command::new(name, arity, flags, "scripting", run)
}

pub(super) const COMMANDS: &[Command] = &[
    runs("eval", RUNS, Run::Keys(eval::eval)),
    runs("eval_ro", READS, Run::Keys(eval::eval_ro)),
    runs("evalsha", RUNS, Run::Keys(eval::evalsha)),
    runs("evalsha_ro", READS, Run::Keys(eval::evalsha_ro)),
    runs("fcall", RUNS, Run::Keys(functions::fcall)),
    runs("fcall_ro", READS, Run::Keys(functions::fcall_ro)),
    Command::group("script", SCRIPT),
    Command::group("function", FUNCTION),
];

const SCRIPT: &[Command] = &[
    sub("script|debug", 3, NOSCRIPT | UNLOCKED, Run::Keys(eval::debug)),
    sub("script|exists", -3, NOSCRIPT | EXCLUSIVE, Run::Keys(eval::exists)),
    sub("script|flush", -2, NOSCRIPT | EXCLUSIVE, Run::Keys(eval::flush)),
    sub("script|help", 2, NO_DATA, Run::Keys(|context, _| help(context, eval::HELP))),
    sub("script|kill", 2, NOSCRIPT | ALLOW_BUSY | UNLOCKED, Run::Keys(eval::kill)),
    sub("script|load", 3, NOSCRIPT | STALE | EXCLUSIVE, Run::Keys(eval::load)),
];

const FUNCTION: &[Command] = &[
    sub("function|delete", 3, NOSCRIPT | WRITE | EXCLUSIVE, Run::Keys(functions::delete)),
    sub("function|dump", 2, NOSCRIPT | EXCLUSIVE, Run::Keys(functions::dump)),
    sub("function|flush", -2, NOSCRIPT | WRITE | EXCLUSIVE, Run::Keys(functions::flush)),
    sub("function|help", 2, NO_DATA, Run::Keys(|context, _| help(context, functions::HELP))),
    sub("function|kill", 2, NOSCRIPT | ALLOW_BUSY | UNLOCKED, Run::Keys(functions::kill)),
    sub("function|list", -2, NOSCRIPT | EXCLUSIVE, Run::Keys(functions::list)),
    sub("function|load", -3, ADDS, Run::Keys(functions::load)),
    sub("function|restore", -3, ADDS, Run::Keys(functions::restore)),
    sub("function|stats", 2, NOSCRIPT | ALLOW_BUSY | UNLOCKED, Run::Keys(functions::stats)),
];

fn help(context: &mut Context<'_, '_>, lines: &[&str]) -> Result<Flow> {
    context.out.array(lines.len());
    lines.iter().for_each(|line| context.out.simple(line));
    Ok(Flow::Done)
}
