//! Loading a library: its code runs once, and registers functions.

use std::sync::Arc;

use mlua::{Lua, MultiValue, Table, Value};

use super::failure::Failure;
use super::sandbox::Sandbox;
use super::{Compiled, api, compiled, host};
use crate::commands::scripting::shebang::{BAD_NAME, flag, valid_name};

/// A function of a library.
#[derive(Debug, Clone)]
pub(in super::super) struct Registered {
    pub(in super::super) name: String,
    pub(in super::super) description: Option<Vec<u8>>,
    /// [`flag`]s.
    pub(in super::super) flags: u32,
    pub(in super::super) callback: Compiled,
}

/// The functions that a library registered, in that order.
pub(in super::super) type Library = Vec<Registered>;

/// Whether the time to load a library is over.
pub(in super::super) type Deadline = Arc<dyn Fn() -> bool + Send + Sync>;

/// A library that is being loaded.
struct Loading {
    functions: Library,
    is_over: Deadline,
}

/// What scripts find while a library is loaded, under this name in the registry.
const LOADING_GLOBALS: &str = "loading globals";

/// Makes what a library finds while it is loaded.
pub(super) fn prepare(sandbox: &Sandbox) -> mlua::Result<()> {
    let lua = &sandbox.lua;
    let missing = sandbox.missing()?;
    let redis = api::constants(lua)?;
    redis.set("register_function", lua.create_function(register)?)?;
    redis.set_metatable(Some(lua.create_table_from([("__index", missing.clone())])?))?;
    let globals = lua.create_table()?;
    globals.set("redis", sandbox.protect(redis)?)?;
    globals.set_metatable(Some(lua.create_table_from([("__index", missing)])?))?;
    lua.set_named_registry_value(LOADING_GLOBALS, globals)
}

/// Runs a library's code; returns what it registered, or why it could not.
pub(super) fn load(sandbox: &Sandbox, code: &[u8], is_over: Deadline) -> Result<Library, String> {
    let compiled = sandbox
        .compile(code, "@user_function")
        .map_err(|message| format!("Error compiling function: {message}"))?;
    let lua = &sandbox.lua;
    let ran = (|| {
        let globals: Table = lua.named_registry_value(LOADING_GLOBALS)?;
        sandbox.within.raw_set("__index", globals)?;
        lua.set_app_data(Loading { functions: Vec::new(), is_over });
        sandbox.call_bare(&compiled)
    })();
    let restored = sandbox.within.raw_set("__index", sandbox.globals.clone());
    let loading = lua.remove_app_data::<Loading>();
    match ran.and(restored) {
        Ok(()) => Ok(loading.map(|loading| loading.functions).unwrap_or_default()),
        Err(error) => {
            let message = match Failure::of(&error) {
                Failure::Text(text) => [b"ERR ", text.as_slice()].concat(),
                failure => failure.message(),
            };
            let message = String::from_utf8_lossy(&message).into_owned();
            Err(format!("Error registering functions: {message}"))
        }
    }
}

/// Ends a library that takes too long to load, or a function that somebody killed.
pub(super) fn interrupt(lua: &Lua) -> Result<(), Failure> {
    if host::with(|host| host.is_killed()) == Some(true) {
        return Err(Failure::Killed);
    }
    match lua.app_data_ref::<Loading>() {
        Some(loading) if (loading.is_over)() => Err(Failure::LoadTimeout),
        _ => Ok(()),
    }
}

/// `redis.register_function`.
fn register(lua: &Lua, args: MultiValue) -> mlua::Result<()> {
    if lua.app_data_ref::<Loading>().is_none() {
        let text = "redis.register_function can only be called on FUNCTION LOAD command";
        return Failure::reply(text).raise();
    }
    let registered = match (args.len(), args.front(), args.get(1)) {
        (1, Some(named), _) => named_arguments(lua, named),
        (2, Some(name), Some(callback)) => positional_arguments(lua, name, callback),
        _ => Err("wrong number of arguments to redis.register_function".to_owned()),
    };
    let registered = match registered {
        Ok(registered) => registered,
        Err(text) => return Failure::reply(&text).raise(),
    };
    let Some(mut loading) = lua.app_data_mut::<Loading>() else { return Ok(()) };
    if loading.functions.iter().any(|have| have.name == registered.name) {
        return Failure::reply("Function already exists in the library").raise();
    }
    loading.functions.push(registered);
    Ok(())
}

fn function_name(name: &[u8]) -> Result<String, String> {
    let refused = || BAD_NAME.message().trim_start_matches("ERR ").to_owned();
    valid_name(name).ok_or_else(refused)
}

/// A text.
fn text(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

fn positional_arguments(lua: &Lua, name: &Value, callback: &Value) -> Result<Registered, String> {
    let name = text(name).ok_or("first argument to redis.register_function must be a string")?;
    let Value::Function(callback) = callback else {
        return Err("second argument to redis.register_function must be a function".to_owned());
    };
    let name = function_name(&name)?;
    let callback = compiled(lua, callback.clone()).map_err(|error| error.to_string())?;
    Ok(Registered { name, description: None, flags: 0, callback })
}

fn named_arguments(lua: &Lua, named: &Value) -> Result<Registered, String> {
    let Value::Table(named) = named else {
        return Err(
            "calling redis.register_function with a single argument is only applicable to \
                    Lua table (representing named arguments)."
                .to_owned(),
        );
    };
    let (mut name, mut description, mut callback, mut flags) = (None, None, None, 0);
    for pair in named.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|error| error.to_string())?;
        let key = text(&key)
            .ok_or("named argument key given to redis.register_function is not a string")?;
        match key.to_ascii_lowercase().as_slice() {
            b"function_name" => {
                name = Some(text(&value).ok_or(
                    "function_name argument given to redis.register_function must be a string",
                )?);
            }
            b"description" => {
                description = Some(text(&value).ok_or(
                    "description argument given to redis.register_function must be a string",
                )?);
            }
            b"callback" => match value {
                Value::Function(given) => callback = Some(given),
                _ => {
                    return Err("callback argument given to redis.register_function must be a \
                                function"
                        .to_owned());
                }
            },
            b"flags" => match value {
                Value::Table(given) => {
                    flags = read_flags(&given).ok_or("unknown flag given")?;
                }
                _ => {
                    return Err("flags argument to redis.register_function must be a table \
                                representing function flags"
                        .to_owned());
                }
            },
            _ => return Err("unknown argument given to redis.register_function".to_owned()),
        }
    }
    let name = name.ok_or("redis.register_function must get a function name argument")?;
    let callback = callback.ok_or("redis.register_function must get a callback argument")?;
    let callback = compiled(lua, callback).map_err(|error| error.to_string())?;
    Ok(Registered { name: function_name(&name)?, description, flags, callback })
}

fn read_flags(given: &Table) -> Option<u32> {
    let mut flags = 0;
    for value in given.sequence_values::<Value>() {
        let name = text(&value.ok()?)?;
        let known =
            flag::NAMES.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(&name))?;
        flags |= known.1;
    }
    Some(flags)
}
