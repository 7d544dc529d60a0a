//! `cjson.encode`: writes JSON.

use std::sync::atomic::Ordering;

use mlua::{Lua, Table, Value};

use super::super::number;
use super::{Settings, fail};

/// How many pairs of a table are held at a time, and of how many tables in each other. Lua lets us
/// hold some thousand values; asking for one pair after the other takes longer.
const PAIRS_HELD: usize = 32;
const DEPTH_HELD: usize = 32;

/// A table that is being written, and how far it is.
enum OpenContainer {
    Array {
        table: Table,
        next: usize,
        len: usize,
    },
    /// With all its pairs, if they are few and there is not much else open.
    Small {
        pairs: std::vec::IntoIter<(Value, Value)>,
        is_first: bool,
    },
    Object {
        table: Table,
        last: Value,
    },
}

/// A value as JSON. Tables in tables are kept on a stack of our own: how deep they may go is the
/// script's choice.
pub(super) fn encode(lua: &Lua, value: &Value, settings: &Settings) -> mlua::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut open = Vec::new();
    encode_one(lua, value, settings, &mut out, &mut open)?;
    while let Some(last) = open.last_mut() {
        let value = match last {
            OpenContainer::Array { table, next, len } => {
                if *next > *len {
                    out.push(b']');
                    open.pop();
                    continue;
                }
                if *next > 1 {
                    out.push(b',');
                }
                let value = table.raw_get(*next)?;
                *next += 1;
                value
            }
            OpenContainer::Small { pairs, is_first } => {
                let Some((key, value)) = pairs.next() else {
                    out.push(b'}');
                    open.pop();
                    continue;
                };
                if !std::mem::take(is_first) {
                    out.push(b',');
                }
                encode_key(lua, &key, settings, &mut out)?;
                value
            }
            OpenContainer::Object { table, last } => {
                let (key, value): (Value, Value) = settings.next.call((&*table, &*last))?;
                if key.is_nil() {
                    out.push(b'}');
                    open.pop();
                    continue;
                }
                if !last.is_nil() {
                    out.push(b',');
                }
                encode_key(lua, &key, settings, &mut out)?;
                *last = key;
                value
            }
        };
        encode_one(lua, &value, settings, &mut out, &mut open)?;
    }
    Ok(out)
}

/// Writes a value, or the beginning of a table.
fn encode_one(
    lua: &Lua,
    value: &Value,
    settings: &Settings,
    out: &mut Vec<u8>,
    open: &mut Vec<OpenContainer>,
) -> mlua::Result<()> {
    match value {
        Value::String(text) => encode_text(&text.as_bytes(), out),
        Value::Integer(_) | Value::Number(_) => encode_number(lua, value, settings, out)?,
        Value::Boolean(true) => out.extend_from_slice(b"true"),
        Value::Boolean(false) => out.extend_from_slice(b"false"),
        Value::Table(table) => {
            let depth = open.len() as i64 + 1;
            if depth > settings.encode_depth_max.load(Ordering::Relaxed) {
                return fail(lua, &format!("Cannot serialise, excessive nesting ({depth})"));
            }
            let may_hold = open.len() < DEPTH_HELD;
            open.push(begin(lua, table, settings, may_hold, out)?);
        }
        Value::Nil => out.extend_from_slice(b"null"),
        value if value.is_null() => out.extend_from_slice(b"null"),
        other => {
            let what = other.type_name();
            return fail(lua, &format!("Cannot serialise {what}: type not supported"));
        }
    }
    Ok(())
}

/// Decides whether a table is an array, and opens it.
fn begin(
    lua: &Lua,
    table: &Table,
    settings: &Settings,
    may_hold: bool,
    out: &mut Vec<u8>,
) -> mlua::Result<OpenContainer> {
    let mut pairs = Vec::new();
    let (mut is_array, mut highest, mut len) = (true, 0.0f64, 0);
    table.for_each(|key: Value, value: Value| {
        match number::of(&key) {
            Some(index) if index >= 1.0 && index == index.floor() => highest = highest.max(index),
            _ => is_array = false,
        }
        len += 1;
        if may_hold && !is_array && pairs.len() < PAIRS_HELD {
            pairs.push((key, value));
        }
        Ok(())
    })?;
    let ratio = settings.sparse_ratio.load(Ordering::Relaxed);
    let is_sparse = ratio > 0
        && highest > f64::from(len) * ratio as f64
        && highest > settings.sparse_safe.load(Ordering::Relaxed) as f64;
    if is_array && is_sparse {
        if !settings.sparse_convert.load(Ordering::Relaxed) {
            return fail(lua, "Cannot serialise table: excessively sparse array");
        }
        is_array = false;
    }
    if is_array && highest > 0.0 {
        out.push(b'[');
        Ok(OpenContainer::Array { table: table.clone(), next: 1, len: highest as usize })
    } else {
        out.push(b'{');
        if pairs.len() == len as usize {
            return Ok(OpenContainer::Small { pairs: pairs.into_iter(), is_first: true });
        }
        Ok(OpenContainer::Object { table: table.clone(), last: Value::Nil })
    }
}

fn encode_key(lua: &Lua, key: &Value, settings: &Settings, out: &mut Vec<u8>) -> mlua::Result<()> {
    match key {
        Value::String(text) => encode_text(&text.as_bytes(), out),
        Value::Integer(_) | Value::Number(_) => {
            out.push(b'"');
            encode_number(lua, key, settings, out)?;
            out.push(b'"');
        }
        other => {
            let what = other.type_name();
            let text = format!("Cannot serialise {what}: table key must be a number or string");
            return fail(lua, &text);
        }
    }
    out.push(b':');
    Ok(())
}

fn encode_number(
    lua: &Lua,
    value: &Value,
    settings: &Settings,
    out: &mut Vec<u8>,
) -> mlua::Result<()> {
    let given = number::of(value).unwrap_or_default();
    if !given.is_finite() {
        match settings.encode_invalid.load(Ordering::Relaxed) {
            0 => return fail(lua, "Cannot serialise number: must not be NaN or Inf"),
            1 if given.is_nan() => out.extend_from_slice(b"nan"),
            1 => out.extend_from_slice(number::general(given, 14).as_bytes()),
            _ => out.extend_from_slice(b"null"),
        }
        return Ok(());
    }
    let digits = settings.precision.load(Ordering::Relaxed) as usize;
    out.extend_from_slice(number::general(given, digits).as_bytes());
    Ok(())
}

fn encode_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'/' => out.extend_from_slice(b"\\/"),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0..0x20 | 0x7f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
