//! ACL: users and their permissions.

use crate::args;
use crate::command_spec::{Command, Context, Flow, Run, flag::*};
use crate::commands;
use crate::fault::{Fault, Result};
use crate::server::acl::{self, CATEGORIES, Denied, Selector};
use crate::server::config;
use kstone_core::env::{Random, SystemRandom};

const FLAGS: u32 = NOSCRIPT | NO_DATA;
const ADMIN_FLAGS: u32 = FLAGS | ADMIN;

pub(super) const COMMANDS: &[Command] = &[Command::group(
    "acl",
    &[
        Command::new("acl|cat", -2, FLAGS, "", Run::Keys(categories)),
        Command::new("acl|deluser", -3, ADMIN_FLAGS, "", Run::Keys(delete_user)),
        Command::new("acl|dryrun", -4, ADMIN_FLAGS, "", Run::Keys(dry_run)),
        Command::new("acl|genpass", -2, FLAGS, "", Run::Keys(make_password)),
        Command::new("acl|getuser", 3, ADMIN_FLAGS, "", Run::Keys(get_user)),
        Command::new("acl|help", 2, NO_DATA, "", Run::Keys(help)),
        Command::new("acl|list", 2, ADMIN_FLAGS, "", Run::Keys(list)),
        Command::new("acl|load", 2, ADMIN_FLAGS, "", Run::Keys(no_file)),
        Command::new("acl|log", -2, ADMIN_FLAGS, "", Run::Keys(log)),
        Command::new("acl|save", 2, ADMIN_FLAGS, "", Run::Keys(no_file)),
        Command::new("acl|setuser", -3, ADMIN_FLAGS, "", Run::Keys(set_user)),
        Command::new("acl|users", 2, ADMIN_FLAGS, "", Run::Keys(users)),
        Command::new("acl|whoami", 2, FLAGS, "", Run::Keys(who_am_i)),
    ],
)];

fn who_am_i(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.out.reply_bulk(context.client.user.name.as_bytes())
}

fn users(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let users = context.server.acl.users();
    let names: Vec<&[u8]> = users.iter().map(|user| user.name.as_bytes()).collect();
    context.out.reply_bulks(&names)
}

fn list(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let users = context.server.acl.users();
    context.out.array(users.len());
    for user in users {
        context.out.bulk(user.show().as_bytes());
    }
    Ok(Flow::Done)
}

fn set_user(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let name = given.get(2).copied().unwrap_or_default();
    if name.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0) {
        return Err(Fault::fixed("ERR Usernames can't contain spaces or null characters"));
    }
    let rules = given.get(3..).unwrap_or_default();
    let all_channels = context.server.config.number(config::ACL_PUBSUB_DEFAULT) == 0;
    context.server.acl.set(&args::shown(name), rules, all_channels)?;
    context.out.reply_ok()
}

fn delete_user(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let names = given.get(2..).unwrap_or_default();
    if names.iter().any(|name| *name == acl::DEFAULT.as_bytes()) {
        return Err(Fault::fixed("ERR The 'default' user cannot be removed"));
    }
    let mut removed = 0;
    for name in names {
        let name = args::shown(name);
        if !context.server.acl.remove(&name) {
            continue;
        }
        removed += 1;
        for peer in context.server.clients.all() {
            if *peer.user.lock() == *name {
                peer.kill();
            }
        }
    }
    context.out.reply_integer(removed)
}

fn get_user(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let name = args::shown(given.get(2).copied().unwrap_or_default());
    let Some(user) = context.server.acl.user(&name) else {
        return context.out.reply_null();
    };
    let out = &mut *context.out;
    out.map(6);
    out.bulk(b"flags");
    let flags = user.flags();
    out.set(flags.len());
    for flag in flags {
        out.bulk(flag.as_bytes());
    }
    out.bulk(b"passwords");
    out.array(user.passwords.len());
    for hash in &user.passwords {
        out.bulk(hash.as_bytes());
    }
    let mut write_reply = |selector: &Selector| {
        for (name, text) in [
            ("commands", selector.show_commands()),
            ("keys", selector.show_keys()),
            ("channels", selector.show_channels()),
        ] {
            out.bulk(name.as_bytes());
            out.bulk(text.as_bytes());
        }
    };
    if let Some(own) = user.selectors.first() {
        write_reply(own);
    }
    let others = user.selectors.get(1..).unwrap_or_default();
    context.out.bulk(b"selectors");
    context.out.array(others.len());
    for selector in others {
        context.out.map(3);
        for (name, text) in [
            ("commands", selector.show_commands()),
            ("keys", selector.show_keys()),
            ("channels", selector.show_channels()),
        ] {
            context.out.bulk(name.as_bytes());
            context.out.bulk(text.as_bytes());
        }
    }
    Ok(Flow::Done)
}

fn categories(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    match given.get(2..).unwrap_or_default() {
        [] => {
            let names: Vec<&[u8]> = CATEGORIES.iter().map(|name| name.as_bytes()).collect();
            context.out.bulks(&names);
        }
        [name] => {
            let Some(category) = CATEGORIES.into_iter().find(|have| args::is(name, have)) else {
                let name = args::shown(name);
                return Err(Fault::new(format!("ERR Unknown category '{name}'")));
            };
            let inside: Vec<&[u8]> = commands::each()
                .filter(|command| acl::is_in(command, category))
                .map(|command| command.name.as_bytes())
                .collect();
            context.out.bulks(&inside);
        }
        _ => return Err(commands::unknown_subcommand(given)),
    }
    Ok(Flow::Done)
}

fn make_password(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let bits = match given.get(2) {
        None => 256,
        Some(bits) => match args::parse_integer(bits) {
            Some(bits @ 1..=4096) => bits.unsigned_abs() as usize,
            _ => {
                return Err(Fault::fixed(
                    "ERR ACL GENPASS argument must be the number of bits for the output password, \
                     a positive number up to 4096",
                ));
            }
        },
    };
    let digits = bits.div_ceil(4);
    let mut password = String::new();
    while password.len() < digits {
        password.push_str(&format!("{:016x}", SystemRandom.next_u64()));
    }
    password.truncate(digits);
    context.out.reply_bulk(password.as_bytes())
}

fn dry_run(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let [_, _, name, rest @ ..] = given else { return Err(Fault::SYNTAX) };
    let name = args::shown(name);
    let Some(user) = context.server.acl.user(&name) else {
        return Err(Fault::new(format!("ERR User '{name}' not found")));
    };
    let command = args::shown(rest.first().copied().unwrap_or_default());
    if commands::named(command.as_bytes()).is_none() {
        return Err(Fault::new(format!("ERR Command '{command}' not found")));
    }
    let command = commands::find(rest)?;
    let reason = match user.check(command, rest) {
        Ok(()) => {
            return context.out.reply_ok();
        }
        Err(Denied::Command) => format!("run the '{}' command", command.name),
        Err(Denied::Key(key)) => format!("access the '{}' key", args::shown(&key)),
        Err(Denied::Channel(channel)) => {
            format!("access the '{}' channel", args::shown(&channel))
        }
    };
    context.out.bulk(format!("This user has no permissions to {reason}").as_bytes());
    Ok(Flow::Done)
}

fn log(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let most = match given.get(2) {
        None => 10,
        Some(reset) if args::is(reset, "reset") => {
            context.server.acl.log.clear();
            return context.out.reply_ok();
        }
        Some(count) => usize::try_from(args::integer(count)?).unwrap_or(0),
    };
    let entries = context.server.acl.log.newest(most);
    let now_ms = context.txn.now_ms();
    let out = &mut *context.out;
    out.array(entries.len());
    for entry in entries {
        out.map(7);
        out.bulk(b"count");
        out.integer(entry.count as i64);
        for (name, text) in [
            ("reason", entry.reason.as_bytes()),
            ("context", entry.context.as_bytes()),
            ("object", &*entry.object),
            ("username", entry.user.as_bytes()),
        ] {
            out.bulk(name.as_bytes());
            out.bulk(text);
        }
        out.bulk(b"age-seconds");
        out.double(now_ms.saturating_sub(entry.at_ms) as f64 / 1000.0);
        out.bulk(b"client-info");
        out.bulk(entry.client.as_bytes());
    }
    Ok(Flow::Done)
}

/// Users are not kept in a file.
fn no_file(_: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    Err(Fault::fixed(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify \
         users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a \
         Redis configuration file set) in order to store users in the Redis configuration.",
    ))
}

fn help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    commands::help(
        context,
        "ACL",
        &[
            ("CAT [<category>]", "The categories, or the commands in one."),
            ("DELUSER <username> [<username> ...]", "Remove users and close their connections."),
            ("DRYRUN <username> <command> [<arg> ...]", "Whether a user could run a command."),
            ("GENPASS [<bits>]", "Make up a password, of 256 bits if not told otherwise."),
            ("GETUSER <username>", "What a user may do."),
            ("LIST", "All users as rules."),
            ("LOAD", "Read users from the ACL file."),
            ("LOG [<count> | RESET]", "What was refused last, or forget it."),
            ("SAVE", "Write users to the ACL file."),
            ("SETUSER <username> <rule> [<rule> ...]", "Make or change a user."),
            ("USERS", "The names of all users."),
            ("WHOAMI", "Who this connection is."),
        ],
    )
}
