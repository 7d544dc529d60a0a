//! The `redis` table of Lua: `redis.call`, `redis.log` and the rest.

use mlua::{Lua, MultiValue, Table, Value};
use sha1::{Digest as _, Sha1};

use super::arguments::CommandArgument;
use super::failure::Failure;
use super::{host, reply};

/// The version of Redis whose scripts run here.
const VERSION: &str = "7.0.15";
const VERSION_NUMBER: i64 = 0x0007_000f;

/// The digest that names a script.
pub(in super::super) fn sha1_hex(text: &[u8]) -> String {
    hex::encode(Sha1::digest(text))
}

/// The functions for scripts of EVAL and for functions.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = constants(lua)?;
    library.set("call", lua.create_function(|lua, args| call(lua, &args, true))?)?;
    library.set("pcall", lua.create_function(|lua, args| call(lua, &args, false))?)?;
    library.set("setresp", lua.create_function(set_protocol)?)?;
    library.set("sha1hex", lua.create_function(sha1hex)?)?;
    library.set("error_reply", lua.create_function(error_reply)?)?;
    library.set("status_reply", lua.create_function(status_reply)?)?;
    library.set("set_repl", lua.create_function(set_replication)?)?;
    for (name, flags) in
        [("REPL_NONE", 0), ("REPL_AOF", 1), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2), ("REPL_ALL", 3)]
    {
        library.set(name, flags)?;
    }
    library.set("acl_check_cmd", lua.create_function(may_run)?)?;
    Ok(library)
}

/// What only scripts of EVAL have: remains of how scripts used to be replicated and debugged.
pub(super) fn add_script_functions(lua: &Lua, library: &Table) -> mlua::Result<()> {
    library.set("replicate_commands", lua.create_function(|_, _: MultiValue| Ok(true))?)?;
    library.set("breakpoint", lua.create_function(|_, _: MultiValue| Ok(false))?)?;
    library.set("debug", lua.create_function(|_, _: MultiValue| Ok(()))?)
}

/// What a library may use while it is loaded, beside registering functions.
pub(super) fn constants(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("log", lua.create_function(log)?)?;
    for (level, name) in
        ["LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"].iter().enumerate()
    {
        table.set(*name, level)?;
    }
    table.set("REDIS_VERSION", VERSION)?;
    table.set("REDIS_VERSION_NUM", VERSION_NUMBER)?;
    Ok(table)
}

/// The words of a command.
fn words(args: &MultiValue) -> Result<Vec<CommandArgument>, Failure> {
    if args.is_empty() {
        let text = "Please specify at least one argument for this redis lib call";
        return Err(Failure::reply(text));
    }
    args.iter().map(CommandArgument::of).collect::<Option<_>>().ok_or_else(|| {
        Failure::reply("Lua redis lib command arguments must be strings or integers")
    })
}

fn call(lua: &Lua, args: &MultiValue, raises: bool) -> mlua::Result<Value> {
    if !host::is_running() {
        let text = "redis.call/pcall can only be called inside a script invocation";
        return Failure::reply(text).raise();
    }
    let called = words(args).and_then(|words| {
        let words: Vec<&[u8]> = words.iter().map(CommandArgument::as_bytes).collect();
        host::with(|host| host.call(&words))
            .unwrap_or_else(|| Err(Failure::reply("no script is running")))
    });
    let failure = match called {
        Ok((crate::reply::Value::Error(message), _)) => {
            Failure::Reply { message, is_counted: true }
        }
        Ok((value, is_resp3)) => return reply::to_lua(lua, &value, is_resp3),
        Err(failure) => failure,
    };
    if raises {
        return failure.raise();
    }
    Ok(Value::Table(failure.table(lua)?))
}

fn set_protocol(_: &Lua, args: MultiValue) -> mlua::Result<()> {
    if args.len() != 1 {
        return Failure::reply("redis.setresp() requires one argument.").raise();
    }
    let version = args.front().and_then(super::number::of).unwrap_or_default();
    if version != 2.0 && version != 3.0 {
        return Failure::reply("RESP version must be 2 or 3.").raise();
    }
    if host::with(|host| host.set_protocol(version as u8)).is_none() {
        let text = "redis.setresp can only be called inside a script invocation";
        return Failure::reply(text).raise();
    }
    Ok(())
}

fn sha1hex(lua: &Lua, args: MultiValue) -> mlua::Result<String> {
    match args.front() {
        Some(value) if args.len() == 1 => {
            let text = lua.coerce_string(value.clone()).ok().flatten();
            Ok(sha1_hex(&text.map(|text| text.as_bytes().to_vec()).unwrap_or_default()))
        }
        _ => Failure::reply("wrong number of arguments").raise(),
    }
}

/// The one text that was given.
fn only_text(args: &MultiValue) -> Option<&mlua::LuaString> {
    match args.front() {
        Some(Value::String(text)) if args.len() == 1 => Some(text),
        _ => None,
    }
}

fn error_reply(lua: &Lua, args: MultiValue) -> mlua::Result<Table> {
    let Some(text) = only_text(&args) else {
        return Failure::reply("wrong number or type of arguments").table(lua);
    };
    let text = text.as_bytes();
    let text = text.strip_prefix(b"-").unwrap_or(&text);
    // A text of one word has no code.
    let message = if text.contains(&b' ') { text.to_vec() } else { [b"ERR ", text].concat() };
    let end =
        message.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |at| at + 1);
    let message = message.get(..end).unwrap_or_default().to_vec();
    Failure::Reply { message, is_counted: false }.table(lua)
}

fn status_reply(lua: &Lua, args: MultiValue) -> mlua::Result<Table> {
    let Some(text) = only_text(&args) else {
        return Failure::reply("wrong number or type of arguments").table(lua);
    };
    let table = lua.create_table()?;
    table.raw_set("ok", text.clone())?;
    Ok(table)
}

fn set_replication(_: &Lua, args: MultiValue) -> mlua::Result<()> {
    if !host::is_running() {
        let text = "redis.set_repl can only be called inside a script invocation";
        return Failure::reply(text).raise();
    }
    if args.len() != 1 {
        return Failure::reply("redis.set_repl() requires two arguments.").raise();
    }
    let flags = args.front().and_then(super::number::of).unwrap_or_default();
    if !(0..=3).contains(&super::number::to_i64(flags)) {
        let text = "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        return Failure::reply(text).raise();
    }
    Ok(())
}

fn may_run(_: &Lua, args: MultiValue) -> mlua::Result<bool> {
    if !host::is_running() {
        let text = "redis.acl_check_cmd can only be called inside a script invocation";
        return Failure::reply(text).raise();
    }
    let words = match words(&args) {
        Ok(words) => words,
        Err(failure) => return failure.raise(),
    };
    let words: Vec<&[u8]> = words.iter().map(CommandArgument::as_bytes).collect();
    match host::with(|host| host.may_run(&words)).flatten() {
        Some(may) => Ok(may),
        None => Failure::reply("Invalid command passed to redis.acl_check_cmd()").raise(),
    }
}

/// Checks its arguments; there is no log that a script could write to.
fn log(lua: &Lua, args: MultiValue) -> mlua::Result<()> {
    if args.len() < 2 {
        return Failure::reply("redis.log() requires two arguments or more.").raise();
    }
    let level = lua.coerce_number(args.front().cloned().unwrap_or(Value::Nil))?;
    let Some(level) = level else {
        return Failure::reply("First argument must be a number (log level).").raise();
    };
    if !(0.0..=3.0).contains(&level) {
        return Failure::reply("Invalid debug level.").raise();
    }
    Ok(())
}
