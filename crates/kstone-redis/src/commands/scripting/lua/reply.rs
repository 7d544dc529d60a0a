//! Converts replies of commands to Lua values, and the value that a script returns to a reply.

use mlua::{Function, Lua, Table, Value};

use super::failure::Failure;
use super::number;
use crate::reply::{self, Mark, Sink};

/// Tables nested deeper are not replied: a table in itself would never end.
const DEPTH_MAX: usize = 1000;

/// A command's reply for a script, in the protocol that the script chose.
pub(super) fn to_lua(lua: &Lua, reply: &reply::Value, is_resp3: bool) -> mlua::Result<Value> {
    use reply::Value as Reply;
    let text = |bytes: &[u8]| Ok(Value::String(lua.create_string(bytes)?));
    let wrapped = |name: &str, value: Value| {
        let table = lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Integer(number) => Ok(Value::Integer(*number)),
        Reply::Bulk(bytes) => text(bytes),
        Reply::Simple(status) => wrapped("ok", text(status.as_bytes())?),
        Reply::Error(message) => {
            let failure = Failure::Reply { message: message.clone(), is_counted: true };
            Ok(Value::Table(failure.table(lua)?))
        }
        Reply::Null | Reply::NullArray if is_resp3 => Ok(Value::Nil),
        Reply::Null | Reply::NullArray => Ok(Value::Boolean(false)),
        Reply::Array(items) | Reply::Push(items) => list(lua, items.iter(), is_resp3),
        Reply::Set(items) if is_resp3 => {
            let set = lua.create_table_with_capacity(0, items.len())?;
            for item in items {
                set.raw_set(to_lua(lua, item, is_resp3)?, true)?;
            }
            wrapped("set", Value::Table(set))
        }
        Reply::Set(items) => list(lua, items.iter(), is_resp3),
        Reply::Map(pairs) if is_resp3 => {
            let map = lua.create_table_with_capacity(0, pairs.len())?;
            for (key, value) in pairs {
                map.raw_set(to_lua(lua, key, is_resp3)?, to_lua(lua, value, is_resp3)?)?;
            }
            wrapped("map", Value::Table(map))
        }
        Reply::Map(pairs) => {
            list(lua, pairs.iter().flat_map(|(key, value)| [key, value]), is_resp3)
        }
        Reply::Double(number) if is_resp3 => wrapped("double", Value::Number(*number)),
        Reply::Double(number) => text(crate::float::double_text(*number).as_bytes()),
        Reply::Boolean(value) if is_resp3 => Ok(Value::Boolean(*value)),
        Reply::Boolean(value) => Ok(Value::Integer((*value).into())),
        Reply::BigNumber(digits) if is_resp3 => wrapped("big_number", text(digits.as_bytes())?),
        Reply::BigNumber(digits) => text(digits.as_bytes()),
        Reply::Verbatim(format, bytes) if is_resp3 => {
            let table = lua.create_table_with_capacity(0, 2)?;
            table.raw_set("string", text(bytes)?)?;
            table.raw_set("format", format.as_str())?;
            wrapped("verbatim_string", Value::Table(table))
        }
        Reply::Verbatim(_, bytes) => text(bytes),
    }
}

fn list<'v>(
    lua: &Lua,
    items: impl Iterator<Item = &'v reply::Value>,
    is_resp3: bool,
) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(items.size_hint().0, 0)?;
    for (index, item) in items.enumerate() {
        table.raw_seti(index + 1, to_lua(lua, item, is_resp3)?)?;
    }
    Ok(Value::Table(table))
}

/// A collection that is being replied, and how far it is. Its values are taken one by one: Lua lets
/// us hold a few thousand at a time.
enum OpenContainer {
    Array { table: Table, next: usize, mark: Mark },
    Pairs { table: Table, last: Value, value: Option<Value>, len: usize, is_map: bool, mark: Mark },
}

/// An error that a script returned.
#[derive(Debug)]
pub(in super::super) struct Returned {
    pub(in super::super) message: Vec<u8>,
    /// Whether the statistics have counted it.
    pub(in super::super) is_counted: bool,
}

/// Says what a script returned. Returns the errors in it. Tables are read past their metatables,
/// so that none of the script's code runs any more; `next` is Lua's own function.
pub(super) fn write(
    value: &Value,
    is_resp3: bool,
    next: &Function,
    out: &mut dyn Sink,
) -> mlua::Result<Vec<Returned>> {
    let mut errors = Vec::new();
    let mut open = Vec::new();
    write_one(value, is_resp3, out, &mut open, &mut errors)?;
    while let Some(last) = open.last_mut() {
        let value = match last {
            OpenContainer::Array { table, next, mark } => match table.raw_get::<Value>(*next)? {
                Value::Nil => {
                    out.array_at(*mark, *next - 1);
                    open.pop();
                    continue;
                }
                value => {
                    *next += 1;
                    value
                }
            },
            OpenContainer::Pairs { value: value @ Some(_), .. } => {
                value.take().unwrap_or(Value::Nil)
            }
            OpenContainer::Pairs { table, last, value, len, is_map, mark } => {
                let (key, of_key): (Value, Value) = next.call((&*table, &*last))?;
                if key.is_nil() {
                    if *is_map {
                        out.map_at(*mark, *len);
                    } else {
                        out.set_at(*mark, *len);
                    }
                    open.pop();
                    continue;
                }
                *len += 1;
                *last = key.clone();
                *value = is_map.then_some(of_key);
                key
            }
        };
        write_one(&value, is_resp3, out, &mut open, &mut errors)?;
    }
    Ok(errors)
}

fn write_one(
    value: &Value,
    is_resp3: bool,
    out: &mut dyn Sink,
    open: &mut Vec<OpenContainer>,
    errors: &mut Vec<Returned>,
) -> mlua::Result<()> {
    match value {
        Value::String(text) => out.bulk(&text.as_bytes()),
        Value::Integer(number) => out.integer(*number),
        Value::Number(number) => out.integer(number::to_i64(*number)),
        Value::Boolean(value) if is_resp3 => out.boolean(*value),
        Value::Boolean(true) => out.integer(1),
        Value::Table(_) if open.len() >= DEPTH_MAX => {
            let message = b"ERR reached lua stack limit".to_vec();
            out.error(&message);
            errors.push(Returned { message, is_counted: false });
        }
        Value::Table(table) => write_table(table, out, open, errors)?,
        _ => out.null(),
    }
    Ok(())
}

fn write_table(
    table: &Table,
    out: &mut dyn Sink,
    open: &mut Vec<OpenContainer>,
    errors: &mut Vec<Returned>,
) -> mlua::Result<()> {
    if let Value::String(message) = table.raw_get("err")? {
        let message = on_one_line(&message.as_bytes());
        out.error(&message);
        let counted = table.raw_get::<Value>(super::failure::COUNTED)?;
        errors.push(Returned { message, is_counted: counted == Value::Boolean(true) });
        return Ok(());
    }
    if let Value::String(status) = table.raw_get("ok")? {
        let status = on_one_line(&status.as_bytes());
        out.simple(&String::from_utf8_lossy(&status));
        return Ok(());
    }
    if let Some(number) = number::of(&table.raw_get("double")?) {
        out.double(number);
        return Ok(());
    }
    if let Value::String(digits) = table.raw_get("big_number")? {
        let digits = on_one_line(&digits.as_bytes());
        out.big_number(&String::from_utf8_lossy(&digits));
        return Ok(());
    }
    if let Value::Table(verbatim) = table.raw_get("verbatim_string")?
        && let Value::String(format) = verbatim.raw_get("format")?
        && let Value::String(text) = verbatim.raw_get("string")?
    {
        let format: String =
            format.to_string_lossy().chars().chain("   ".chars()).take(3).collect();
        out.verbatim(&format, &text.as_bytes());
        return Ok(());
    }
    for (name, is_map) in [("map", true), ("set", false)] {
        if let Value::Table(pairs) = table.raw_get(name)? {
            let (last, value, mark) = (Value::Nil, None, out.later());
            open.push(OpenContainer::Pairs { table: pairs, last, value, len: 0, is_map, mark });
            return Ok(());
        }
    }
    open.push(OpenContainer::Array { table: table.clone(), next: 1, mark: out.later() });
    Ok(())
}

/// A status or an error is one line.
pub(in super::super) fn on_one_line(text: &[u8]) -> Vec<u8> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect()
}
