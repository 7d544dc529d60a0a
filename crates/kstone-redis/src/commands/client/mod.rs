//! CLIENT and its subcommands.

mod list;
mod tracking;

use crate::args;
use crate::command_spec::{Command, Context, Flow, Run, flag::*};
use crate::fault::{Fault, Result};
use crate::server::clients::state;
use crate::server::pause::Paused;
use crate::session::Replies;

const FLAGS: u32 = NOSCRIPT | NO_DATA;
const ADMIN_FLAGS: u32 = FLAGS | ADMIN;

pub(super) const COMMANDS: &[Command] = &[Command::group(
    "client",
    &[
        Command::new("client|caching", 3, FLAGS, "connection", Run::Keys(tracking::caching)),
        Command::new("client|getname", 2, FLAGS, "connection", Run::Keys(get_name)),
        Command::new("client|getredir", 2, FLAGS, "connection", Run::Keys(tracking::redirect)),
        Command::new("client|help", 2, NO_DATA, "connection", Run::Keys(help)),
        Command::new("client|id", 2, FLAGS, "connection", Run::Keys(id)),
        Command::new("client|info", 2, FLAGS, "connection", Run::Keys(list::info)),
        Command::new("client|kill", -3, ADMIN_FLAGS, "connection", Run::Keys(list::kill)),
        Command::new("client|list", -2, ADMIN_FLAGS, "connection", Run::Keys(list::list)),
        Command::new("client|no-evict", 3, ADMIN_FLAGS, "connection", Run::Keys(no_evict)),
        Command::new("client|no-touch", 3, FLAGS, "connection", Run::Keys(no_touch)),
        Command::new("client|pause", -3, ADMIN_FLAGS, "connection", Run::Keys(pause)),
        Command::new("client|reply", 3, FLAGS, "connection", Run::Keys(reply)),
        Command::new("client|setname", 3, FLAGS, "connection", Run::Keys(set_own_name)),
        Command::new("client|setinfo", 4, FLAGS, "connection", Run::Keys(set_info)),
        Command::new("client|tracking", -3, FLAGS, "connection", Run::Keys(tracking::tracking)),
        Command::new("client|trackinginfo", 2, FLAGS, "connection", Run::Keys(tracking::info)),
        Command::new("client|unblock", -3, ADMIN_FLAGS, "connection", Run::Keys(unblock)),
        Command::new("client|unpause", 2, ADMIN_FLAGS, "connection", Run::Keys(unpause)),
    ],
)];

fn id(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.out.reply_integer(context.client.id as i64)
}

fn get_name(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let name = context.client.peer.name.lock().clone();
    context.out.reply_bulk_or_null((!name.is_empty()).then_some(&*name))
}

/// Gives the client a name.
pub(super) fn set_name(context: &mut Context<'_, '_>, name: &[u8]) -> Result<()> {
    if name.iter().any(|byte| !(b'!'..=b'~').contains(byte)) {
        return Err(Fault::fixed(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ));
    }
    *context.client.peer.name.lock() = name.to_vec();
    Ok(())
}

fn set_own_name(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    set_name(context, args.get(2).copied().unwrap_or_default())?;
    context.out.reply_ok()
}

/// What newer clients say of themselves when they connect. Nothing shows it in Redis 7.0.
fn set_info(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let [_, _, attribute, value] = given else { return Err(Fault::SYNTAX) };
    if !args::is(attribute, "lib-name") && !args::is(attribute, "lib-ver") {
        let attribute = args::shown(attribute);
        return Err(Fault::new(format!("ERR Unrecognized option '{attribute}'")));
    }
    if value.iter().any(|byte| !(b'!'..=b'~').contains(byte)) {
        let attribute = args::shown(attribute).to_ascii_lowercase();
        return Err(Fault::new(format!(
            "ERR {attribute} cannot contain spaces, newlines or special characters."
        )));
    }
    context.out.reply_ok()
}

fn on_or_off(arg: Option<&&[u8]>) -> Result<bool> {
    match arg {
        Some(arg) if args::is(arg, "on") => Ok(true),
        Some(arg) if args::is(arg, "off") => Ok(false),
        _ => Err(Fault::SYNTAX),
    }
}

fn no_evict(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    context.client.peer.set(state::NO_EVICT, on_or_off(args.get(2))?);
    context.out.reply_ok()
}

fn no_touch(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    context.client.peer.set(state::NO_TOUCH, on_or_off(args.get(2))?);
    context.out.reply_ok()
}

fn reply(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let mode = given.get(2).copied().unwrap_or_default();
    if args::is(mode, "on") {
        context.client.replies = Replies::On;
        context.out.ok();
    } else if args::is(mode, "off") {
        context.client.replies = Replies::Off;
    } else if args::is(mode, "skip") {
        if context.client.replies != Replies::Off {
            context.client.replies = Replies::SkipNext;
        }
    } else {
        return Err(Fault::SYNTAX);
    }
    Ok(Flow::Done)
}

fn unblock(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let with_error = match given.get(3) {
        None => false,
        Some(reason) if args::is(reason, "timeout") => false,
        Some(reason) if args::is(reason, "error") => true,
        Some(_) => {
            return Err(Fault::fixed("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
    };
    if given.len() > 4 {
        return Err(Fault::SYNTAX);
    }
    let id = args::integer(given.get(2).copied().unwrap_or_default())?;
    let id = u64::try_from(id).unwrap_or(0);
    let was_blocked = context.server.blocked.unblock(id, with_error);
    context.out.reply_integer(was_blocked.into())
}

fn pause(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let paused = match given.get(3) {
        None => Paused::Everything,
        Some(mode) if args::is(mode, "all") => Paused::Everything,
        Some(mode) if args::is(mode, "write") => Paused::Writes,
        Some(_) => return Err(Fault::fixed("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    if given.len() > 4 {
        return Err(Fault::SYNTAX);
    }
    let timeout = given.get(2).copied().and_then(args::parse_integer);
    let Some(timeout) = timeout else {
        return Err(Fault::fixed("ERR timeout is not an integer or out of range"));
    };
    let Ok(timeout) = u64::try_from(timeout) else { return Err(Fault::NEGATIVE_TIMEOUT) };
    let now_ms = context.txn.now_ms();
    context.server.pause.start(paused, now_ms.saturating_add(timeout), now_ms);
    context.out.reply_ok()
}

fn unpause(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.server.pause.end();
    context.out.reply_ok()
}

fn help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    crate::commands::help(
        context,
        "CLIENT",
        &[
            ("CACHING (YES|NO)", "Whether the next command's keys are tracked (OPTIN, OPTOUT)."),
            ("GETNAME", "This connection's name."),
            ("GETREDIR", "The client that is told of changes instead of this one."),
            ("ID", "This connection's number."),
            ("INFO", "This connection, as LIST shows it."),
            ("KILL <ip:port>", "Close the connection from an address."),
            (
                "KILL <option> <value> [<option> <value> ...]",
                "Close connections. Options: ID, TYPE, USER, ADDR, LADDR, SKIPME.",
            ),
            ("LIST [TYPE <type> | ID <id> [<id> ...]]", "The connections, one in a line."),
            ("NO-EVICT (ON|OFF)", "Keep this connection when memory is short."),
            ("NO-TOUCH (ON|OFF)", "Let commands not change when keys were last used."),
            ("PAUSE <milliseconds> [WRITE|ALL]", "Let commands wait for some time."),
            ("REPLY (ON|OFF|SKIP)", "Whether this connection wants replies."),
            ("SETINFO <LIB-NAME|LIB-VER> <value>", "Say which client library this is."),
            ("SETNAME <name>", "Give this connection a name."),
            (
                "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> ...] [OPTIN] [OPTOUT] [NOLOOP]",
                "Be told when keys change that were read.",
            ),
            ("TRACKINGINFO", "How this connection tracks."),
            ("UNBLOCK <id> [TIMEOUT|ERROR]", "End a blocking command of another connection."),
            ("UNPAUSE", "End a pause."),
        ],
    )
}
