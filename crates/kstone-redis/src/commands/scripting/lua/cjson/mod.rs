//! `cjson`: JSON.

mod decode;
mod encode;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};

use mlua::{Function, Lua, MultiValue, Table, Value};

use super::arguments::Arguments;
use super::failure;

/// What scripts may set. It stays for the scripts after them.
#[derive(Debug)]
struct Settings {
    sparse_convert: AtomicBool,
    sparse_ratio: AtomicI64,
    sparse_safe: AtomicI64,
    encode_depth_max: AtomicI64,
    decode_depth_max: AtomicI64,
    precision: AtomicI64,
    keep_buffer: AtomicBool,
    /// 0: refused, 1: written as they are, 2: written as null.
    encode_invalid: AtomicU8,
    decode_invalid: AtomicBool,
    /// Lua's own, which gives a table's next pair.
    next: Function,
}

impl Settings {
    fn new(next: Function) -> Self {
        Settings {
            next,
            sparse_convert: AtomicBool::new(false),
            sparse_ratio: AtomicI64::new(2),
            sparse_safe: AtomicI64::new(10),
            encode_depth_max: AtomicI64::new(1000),
            decode_depth_max: AtomicI64::new(1000),
            precision: AtomicI64::new(14),
            keep_buffer: AtomicBool::new(true),
            encode_invalid: AtomicU8::new(0),
            decode_invalid: AtomicBool::new(true),
        }
    }
}

/// The library, with settings of its own. `next` is Lua's own function.
pub(super) fn library(lua: &Lua, next: Function) -> mlua::Result<Table> {
    let again = next.clone();
    let settings = Arc::new(Settings::new(next));
    let library = lua.create_table()?;
    let add = |name: &'static str,
               work: fn(&Arguments<'_>, &Lua, &Settings) -> mlua::Result<MultiValue>|
     -> mlua::Result<()> {
        let settings = Arc::clone(&settings);
        let function = lua.create_function(move |lua, values: MultiValue| {
            work(&Arguments::new(lua, name, values), lua, &settings)
        })?;
        library.set(name, function)
    };
    add("encode", |args, lua, settings| {
        let text = encode::encode(lua, only(args)?, settings)?;
        one(Value::String(lua.create_string(&text)?))
    })?;
    add("decode", |args, lua, settings| {
        only(args)?;
        let text = args.text(1)?;
        let text = text.as_bytes();
        one(decode::decode(lua, &text, settings)?)
    })?;
    add("encode_sparse_array", |args, lua, settings| {
        at_most(args, 3)?;
        let convert = switch(args, 1, &settings.sparse_convert)?;
        let ratio = whole(args, 2, &settings.sparse_ratio, 0, i32::MAX)?;
        let safe = whole(args, 3, &settings.sparse_safe, 0, i32::MAX)?;
        lua.pack_multi((convert, ratio, safe))
    })?;
    add("encode_max_depth", |args, _, settings| {
        at_most(args, 1)?;
        one(whole(args, 1, &settings.encode_depth_max, 1, i32::MAX)?)
    })?;
    add("decode_max_depth", |args, _, settings| {
        at_most(args, 1)?;
        one(whole(args, 1, &settings.decode_depth_max, 1, i32::MAX)?)
    })?;
    add("encode_number_precision", |args, _, settings| {
        at_most(args, 1)?;
        one(whole(args, 1, &settings.precision, 1, 14)?)
    })?;
    add("encode_keep_buffer", |args, _, settings| {
        at_most(args, 1)?;
        one(switch(args, 1, &settings.keep_buffer)?)
    })?;
    add("encode_invalid_numbers", |args, lua, settings| {
        at_most(args, 1)?;
        let setting = &settings.encode_invalid;
        match args.get(1) {
            None | Some(Value::Nil) => {}
            Some(Value::Boolean(value)) => setting.store(u8::from(*value), Ordering::Relaxed),
            Some(_) => setting.store(option(args, &["off", "on", "null"])?, Ordering::Relaxed),
        }
        match setting.load(Ordering::Relaxed) {
            2 => one(Value::String(lua.create_string("null")?)),
            other => one(Value::Boolean(other == 1)),
        }
    })?;
    add("decode_invalid_numbers", |args, _, settings| {
        at_most(args, 1)?;
        one(switch(args, 1, &settings.decode_invalid)?)
    })?;
    library.set(
        "new",
        lua.create_function(move |lua, _: MultiValue| self::library(lua, again.clone()))?,
    )?;
    library.set("null", Value::NULL)?;
    library.set("_NAME", "cjson")?;
    library.set("_VERSION", "2.1.0")?;
    Ok(library)
}

fn one(value: Value) -> mlua::Result<MultiValue> {
    Ok(MultiValue::from_vec(vec![value]))
}

/// The one argument.
fn only<'a>(args: &'a Arguments<'_>) -> mlua::Result<&'a Value> {
    match args.get(1) {
        Some(value) if args.len() == 1 => Ok(value),
        _ => args.refuse(1, "expected 1 argument"),
    }
}

fn at_most(args: &Arguments<'_>, count: usize) -> mlua::Result<()> {
    if args.len() > count {
        return args.refuse(count + 1, "found too many arguments");
    }
    Ok(())
}

/// Sets a number if it is given; returns what it is.
fn whole(
    args: &Arguments<'_>,
    position: usize,
    setting: &AtomicI64,
    least: i32,
    most: i32,
) -> mlua::Result<Value> {
    if !matches!(args.get(position), None | Some(Value::Nil)) {
        let value = args.integer_or(position, 0)?;
        if !(i64::from(least)..=i64::from(most)).contains(&value) {
            return args.refuse(1, &format!("expected integer between {least} and {most}"));
        }
        setting.store(value, Ordering::Relaxed);
    }
    Ok(Value::Integer(setting.load(Ordering::Relaxed)))
}

/// Sets a switch if it is given; returns what it is.
fn switch(args: &Arguments<'_>, position: usize, setting: &AtomicBool) -> mlua::Result<Value> {
    match args.get(position) {
        None | Some(Value::Nil) => {}
        Some(Value::Boolean(value)) => setting.store(*value, Ordering::Relaxed),
        Some(_) => setting.store(option(args, &["off", "on"])? == 1, Ordering::Relaxed),
    }
    Ok(Value::Boolean(setting.load(Ordering::Relaxed)))
}

/// Which of these words the first argument is.
fn option(args: &Arguments<'_>, words: &[&str]) -> mlua::Result<u8> {
    let given = args.text(1)?;
    let given = given.to_string_lossy();
    match words.iter().position(|word| *word == given) {
        Some(place) => Ok(place as u8),
        None => args.refuse(1, &format!("invalid option '{given}'")),
    }
}

/// Raises an error of this library.
fn fail<T>(lua: &Lua, text: &str) -> mlua::Result<T> {
    failure::raise(lua, text)
}
