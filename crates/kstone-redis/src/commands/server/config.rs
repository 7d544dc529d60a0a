//! CONFIG and its subcommands.

use crate::command_spec::{Command, Context, Flow, Run, flag::*};
use crate::fault::{Fault, Result};

const FLAGS: u32 = ADMIN | NOSCRIPT | NO_DATA;

pub(super) const SUBCOMMANDS: &[Command] = &[
    Command::new("config|get", -3, FLAGS, "", Run::Keys(get)),
    Command::new("config|set", -4, FLAGS, "", Run::Keys(set)),
    Command::new("config|resetstat", 2, FLAGS, "", Run::Keys(reset_stat)),
    Command::new("config|rewrite", 2, FLAGS, "", Run::Keys(rewrite)),
    Command::new("config|help", 2, NO_DATA, "", Run::Keys(help)),
];

fn get(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let found = context.server.config.matching(args.get(2..).unwrap_or_default());
    context.out.map(found.len());
    for (name, value) in found {
        context.out.bulk(name.as_bytes());
        context.out.bulk(value.as_bytes());
    }
    Ok(Flow::Done)
}

fn set(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    context.server.configure(args.get(2..).unwrap_or_default())?;
    context.out.reply_ok()
}

fn reset_stat(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.server.stats.reset();
    context.out.reply_ok()
}

/// There is no file of Redis's kind that this server was started with.
fn rewrite(_: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    Err(Fault::fixed("ERR The server is running without a config file"))
}

fn help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    crate::commands::help(
        context,
        "CONFIG",
        &[
            (
                "GET <pattern> [<pattern> ...]",
                "The parameters whose names match, and their values.",
            ),
            ("SET <name> <value> [<name> <value> ...]", "Change parameters: all of them or none."),
            ("RESETSTAT", "Set what INFO counts to zero."),
            ("REWRITE", "Write the parameters to the file the server was started with."),
        ],
    )
}
