//! Commands about the connection: AUTH, HELLO, SELECT, PING, QUIT, RESET, MULTI and the like.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::args;
use crate::command_spec::{Command, Context, Flow, Keys, Run, flag::*};
use crate::commands::client::set_name;
use crate::commands::server::REDIS_VERSION;
use crate::fault::{Fault, Result};
use crate::reply::Out;
use crate::server::acl;
use crate::server::clients::state;
use crate::session::{Replies, Session};
use crate::store::databases::DATABASES;

/// The flags of what a client may ask for at any time.
const ANY_TIME: u32 = FAST | NOSCRIPT | LOADING | STALE | ALLOW_BUSY;

pub(super) const COMMANDS: &[Command] = &[
    Command::new("ping", -1, FAST | UNLOCKED, "connection", Run::Keys(ping)),
    Command::new("echo", 2, FAST | NO_DATA, "connection", Run::Keys(echo)),
    Command::new("select", 2, FAST | NO_DATA, "connection", Run::Keys(select)),
    Command::new("quit", -1, ANY_TIME | NO_AUTH, "connection", Run::Session(quit)),
    Command::new("auth", -2, ANY_TIME | NO_AUTH | UNLOCKED, "connection", Run::Keys(auth)),
    Command::new("hello", -1, ANY_TIME | NO_AUTH | UNLOCKED, "connection", Run::Keys(hello)),
    Command::new("reset", 1, ANY_TIME | NO_AUTH, "connection", Run::Session(reset)),
    Command::new("readonly", 1, FAST | NO_DATA, "connection", Run::Keys(no_cluster)),
    Command::new("readwrite", 1, FAST | NO_DATA, "connection", Run::Keys(no_cluster)),
    Command::new("asking", 1, FAST | UNLOCKED, "connection", Run::Keys(no_cluster)),
    Command::new("multi", 1, ANY_TIME, "transaction", Run::Session(Session::multi)),
    Command::new("discard", 1, ANY_TIME, "transaction", Run::Session(Session::discard)),
    Command::new("unwatch", 1, ANY_TIME, "transaction", Run::Session(Session::unwatch)),
    Command {
        name: "watch",
        arity: -2,
        flags: ANY_TIME,
        keys: Keys::ALL,
        categories: "transaction",
        run: Run::Waiting(Session::watch),
        subcommands: &[],
    },
    Command::new(
        "exec",
        1,
        NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG,
        "transaction",
        Run::Waiting(Session::exec),
    ),
];

fn ping(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let text = match args {
        [_] => None,
        [_, text] => Some(*text),
        _ => return Err(Fault::fixed("ERR wrong number of arguments for 'ping' command")),
    };
    if context.client.peer.is(state::PUBSUB) && !context.client.resp3 {
        context.out.bulks(&[b"pong", text.unwrap_or_default()]);
    } else {
        match text {
            Some(text) => context.out.bulk(text),
            None => context.out.simple("PONG"),
        }
    }
    Ok(Flow::Done)
}

fn echo(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    context.out.reply_bulk(args.get(1).copied().unwrap_or_default())
}

fn quit(_: &mut Session, _: &[&[u8]], out: Out<'_>) -> Result<Flow> {
    out.ok();
    Ok(Flow::Close)
}

fn select(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let db = args.get(1).copied().unwrap_or_default();
    let Some(db) = args::parse_integer(db) else {
        return Err(Fault::fixed("ERR invalid DB index"));
    };
    if !(0..DATABASES as i64).contains(&db) {
        return Err(Fault::fixed("ERR DB index is out of range"));
    }
    context.client.db = db as u8;
    context.txn.select(db as u8);
    context.out.reply_ok()
}

/// Says who the client is, if the password is right.
fn authenticate(
    context: &mut Context<'_, '_>,
    name: &[u8],
    password: &[u8],
    command: &str,
) -> Result<()> {
    let name = args::shown(name);
    match context.server.acl.authenticate(&name, password) {
        Some(user) => {
            *context.client.peer.user.lock() = user.name.clone();
            context.client.user = user;
            context.client.is_authenticated = true;
            Ok(())
        }
        None => {
            let object = command.as_bytes().to_vec();
            context.server.note_refused(context.client, "auth", "toplevel", object, &name);
            Err(Fault::fixed("WRONGPASS invalid username-password pair or user is disabled."))
        }
    }
}

fn auth(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    match args {
        [_, password] => {
            let default = context.server.acl.user(acl::DEFAULT);
            if default.is_some_and(|user| user.no_password) {
                return Err(Fault::fixed(
                    "ERR AUTH <password> called without any password configured for the default \
                     user. Are you sure your configuration is correct?",
                ));
            }
            authenticate(context, acl::DEFAULT.as_bytes(), password, "auth")?;
        }
        [_, name, password] => authenticate(context, name, password, "auth")?,
        _ => return Err(Fault::SYNTAX),
    }
    context.out.reply_ok()
}

fn hello(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let mut version = None;
    if let Some(wanted) = given.get(1) {
        version = match args::parse_integer(wanted) {
            None => {
                return Err(Fault::fixed("ERR Protocol version is not an integer or out of range"));
            }
            Some(2) => Some(false),
            Some(3) => Some(true),
            Some(_) => return Err(Fault::fixed("NOPROTO unsupported protocol version")),
        };
    }
    let mut rest = given.get(2..).unwrap_or_default();
    while let [option, more @ ..] = rest {
        rest = match more {
            [name, password, more @ ..] if args::is(option, "auth") => {
                authenticate(context, name, password, "hello")?;
                more
            }
            [name, more @ ..] if args::is(option, "setname") => {
                set_name(context, name)?;
                more
            }
            _ => {
                let option = args::shown(option);
                return Err(Fault::new(format!("ERR Syntax error in HELLO option '{option}'")));
            }
        };
    }
    if !context.client.is_authenticated {
        return Err(Fault::fixed(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO AUTH <user> <pass> option can be used to authenticate the client and select \
             the RESP protocol version at the same time",
        ));
    }
    if let Some(resp3) = version {
        context.client.resp3 = resp3;
        context.client.peer.is_resp3.store(resp3, Ordering::Relaxed);
        context.out.speak(resp3);
    }
    let out = &mut *context.out;
    out.map(7);
    out.bulk(b"server");
    out.bulk(b"redis");
    out.bulk(b"version");
    out.bulk(REDIS_VERSION.as_bytes());
    out.bulk(b"proto");
    out.integer(if context.client.resp3 { 3 } else { 2 });
    out.bulk(b"id");
    out.integer(context.client.id as i64);
    out.bulk(b"mode");
    out.bulk(b"standalone");
    out.bulk(b"role");
    out.bulk(b"master");
    out.bulk(b"modules");
    out.array(0);
    Ok(Flow::Done)
}

/// As if the client had just connected.
fn reset(session: &mut Session, _: &[&[u8]], out: Out<'_>) -> Result<Flow> {
    session.abandon();
    let server = Arc::clone(&session.server);
    let client = &mut session.client;
    server.pubsub.forget(&client.peer);
    server.tracking.stop(&client.peer);
    server.monitors.remove(&client.peer);
    client.tracking = None;
    client.db = 0;
    client.resp3 = false;
    client.replies = Replies::On;
    client.peer.is_resp3.store(false, Ordering::Relaxed);
    client.peer.set(state::NO_EVICT | state::NO_TOUCH, false);
    client.peer.name.lock().clear();
    client.user = server.acl.user(acl::DEFAULT).unwrap_or_default();
    client.is_authenticated = client.user.is_on && client.user.no_password;
    *client.peer.user.lock() = acl::DEFAULT.to_owned();
    out.speak(false);
    out.reply_simple("RESET")
}

fn no_cluster(_: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    Err(Fault::fixed("ERR This instance has cluster support disabled"))
}
