//! `cmsgpack`: MessagePack.

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::Arguments;
use super::{failure, number};

/// Tables nested deeper are packed as nil, so that a table in itself comes to an end.
const PACK_DEPTH_MAX: usize = 16;
/// Data nested deeper is refused: no script makes it, and the stack is finite.
const UNPACK_DEPTH_MAX: usize = 200;

/// The library.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    library.set("pack", lua.create_function(pack)?)?;
    library.set(
        "unpack",
        lua.create_function(|lua, values: MultiValue| {
            unpack(&Arguments::new(lua, "unpack", values), lua, None, 0)
        })?,
    )?;
    library.set(
        "unpack_one",
        lua.create_function(|lua, values: MultiValue| {
            let args = Arguments::new(lua, "unpack_one", values);
            let offset = args.integer_or(2, 0)?;
            unpack(&args, lua, Some(1), offset)
        })?,
    )?;
    library.set(
        "unpack_limit",
        lua.create_function(|lua, values: MultiValue| {
            let args = Arguments::new(lua, "unpack_limit", values);
            let limit = number::to_i64(args.number(2)?);
            let offset = args.integer_or(3, 0)?;
            let is_all = limit == 0 && offset == 0;
            unpack(&args, lua, (!is_all).then_some(limit), offset)
        })?,
    )?;
    library.set("_NAME", "cmsgpack")?;
    library.set("_VERSION", "lua-cmsgpack 0.4.0")?;
    Ok(library)
}

fn pack(lua: &Lua, values: MultiValue) -> mlua::Result<mlua::LuaString> {
    if values.is_empty() {
        let text = "bad argument #0 to 'pack' (MessagePack pack needs input.)";
        return failure::raise(lua, text);
    }
    let mut out = Vec::new();
    for value in &values {
        pack_value(&mut out, value, 0)?;
    }
    lua.create_string(&out)
}

fn pack_value(out: &mut Vec<u8>, value: &Value, depth: usize) -> mlua::Result<()> {
    match value {
        Value::String(text) => {
            let text = text.as_bytes();
            match text.len() {
                len @ 0..32 => out.push(0xa0 | len as u8),
                len => pack_len(out, len, [Some(0xd9), Some(0xda), Some(0xdb)]),
            }
            out.extend_from_slice(&text);
        }
        Value::Boolean(value) => out.push(if *value { 0xc3 } else { 0xc2 }),
        Value::Integer(number) => pack_integer(out, *number),
        Value::Number(number) => pack_number(out, *number),
        Value::Table(table) if depth < PACK_DEPTH_MAX => pack_table(out, table, depth)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

/// The length of a text, array or map, with the first byte for lengths of 8, 16 and 32 bits.
fn pack_len(out: &mut Vec<u8>, len: usize, [short, medium, long]: [Option<u8>; 3]) {
    match (short, medium, long) {
        (Some(tag), _, _) if len <= 0xff => out.extend_from_slice(&[tag, len as u8]),
        (_, Some(tag), _) if len <= 0xffff => {
            out.push(tag);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        (_, _, tag) => {
            out.extend(tag);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
}

fn pack_number(out: &mut Vec<u8>, given: f64) {
    if given.is_finite() && given == given.trunc() && given.abs() < 9e18 {
        return pack_integer(out, given as i64);
    }
    if f64::from(given as f32) == given {
        out.push(0xca);
        out.extend_from_slice(&(given as f32).to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend_from_slice(&given.to_be_bytes());
    }
}

fn pack_integer(out: &mut Vec<u8>, number: i64) {
    match number {
        -32..=127 => out.push(number as u8),
        128..=0xff => out.extend_from_slice(&[0xcc, number as u8]),
        0x100..=0xffff => {
            out.push(0xcd);
            out.extend_from_slice(&(number as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend_from_slice(&(number as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            out.push(0xcf);
            out.extend_from_slice(&number.to_be_bytes());
        }
        -128..=-33 => out.extend_from_slice(&[0xd0, number as u8]),
        -32768..=-129 => {
            out.push(0xd1);
            out.extend_from_slice(&(number as i16).to_be_bytes());
        }
        -2_147_483_648..=-32769 => {
            out.push(0xd2);
            out.extend_from_slice(&(number as i32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

fn pack_table(out: &mut Vec<u8>, table: &Table, depth: usize) -> mlua::Result<()> {
    let (mut is_array, mut highest, mut len) = (true, 0.0f64, 0);
    table.for_each(|key: Value, _: Value| {
        match number::of(&key) {
            Some(index) if index > 0.0 && index == index.trunc() => highest = highest.max(index),
            _ => is_array = false,
        }
        len += 1;
        Ok(())
    })?;
    if is_array && highest == len as f64 {
        match len {
            len @ 0..16 => out.push(0x90 | len as u8),
            len => pack_len(out, len, [None, Some(0xdc), Some(0xdd)]),
        }
        for index in 1..=len {
            pack_value(out, &table.raw_get(index)?, depth + 1)?;
        }
    } else {
        match len {
            len @ 0..16 => out.push(0x80 | len as u8),
            len => pack_len(out, len, [None, Some(0xde), Some(0xdf)]),
        }
        table.for_each(|key: Value, value: Value| {
            pack_value(out, &key, depth + 1)?;
            pack_value(out, &value, depth + 1)
        })?;
    }
    Ok(())
}

/// Unpacks all of a text, or some values from an offset on; then the next offset comes first.
fn unpack(
    args: &Arguments<'_>,
    lua: &Lua,
    limit: Option<i64>,
    offset: i64,
) -> mlua::Result<MultiValue> {
    let text = args.text(1)?;
    let data = text.as_bytes();
    if offset < 0 || limit.is_some_and(|limit| limit < 0) {
        let text = format!(
            "Invalid request to unpack with offset of {offset} and limit of {}.",
            data.len()
        );
        return failure::raise(lua, &text);
    }
    let Some(left) = data.get(offset as usize..) else {
        let text = format!("Start offset {offset} greater than input length {}.", data.len());
        return failure::raise(lua, &text);
    };
    let mut reader = Reader { lua, left };
    let mut values = Vec::new();
    let most = limit.unwrap_or(i64::MAX) as usize;
    while !reader.left.is_empty() && values.len() < most {
        values.push(reader.value(0)?);
    }
    if limit.is_some() {
        let next =
            if reader.left.is_empty() { -1 } else { (data.len() - reader.left.len()) as i64 };
        values.insert(0, Value::Integer(next));
    }
    Ok(MultiValue::from_vec(values))
}

struct Reader<'a> {
    lua: &'a Lua,
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> mlua::Result<&'a [u8]> {
        match self.left.split_at_checked(len) {
            Some((taken, left)) => {
                self.left = left;
                Ok(taken)
            }
            None => failure::raise(self.lua, "Missing bytes in input."),
        }
    }

    fn array<const N: usize>(&mut self) -> mlua::Result<[u8; N]> {
        Ok(self.take(N)?.try_into().unwrap_or([0; N]))
    }

    /// A length of so many bytes.
    fn len(&mut self, bytes: usize) -> mlua::Result<usize> {
        Ok(self.take(bytes)?.iter().fold(0, |len, byte| (len << 8) | usize::from(*byte)))
    }

    fn text(&mut self, len: usize) -> mlua::Result<Value> {
        let bytes = self.take(len)?;
        Ok(Value::String(self.lua.create_string(bytes)?))
    }

    fn list(&mut self, len: usize, depth: usize) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        for index in 1..=len {
            let value = self.value(depth + 1)?;
            table.raw_seti(index, value)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, len: usize, depth: usize) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        for _ in 0..len {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            table.raw_set(key, value)?;
        }
        Ok(Value::Table(table))
    }

    fn value(&mut self, depth: usize) -> mlua::Result<Value> {
        if depth > UNPACK_DEPTH_MAX {
            return failure::raise(self.lua, "Bad data format in input.");
        }
        let [tag] = self.array()?;
        Ok(match tag {
            0x00..=0x7f => Value::Integer(tag.into()),
            0xe0..=0xff => Value::Integer((tag as i8).into()),
            0x80..=0x8f => self.map((tag & 0xf).into(), depth)?,
            0x90..=0x9f => self.list((tag & 0xf).into(), depth)?,
            0xa0..=0xbf => self.text((tag & 0x1f).into())?,
            0xc0 => Value::Nil,
            0xc2 => Value::Boolean(false),
            0xc3 => Value::Boolean(true),
            0xca => Value::Number(f32::from_be_bytes(self.array()?).into()),
            0xcb => Value::Number(f64::from_be_bytes(self.array()?)),
            0xcc => Value::Integer(u8::from_be_bytes(self.array()?).into()),
            0xcd => Value::Integer(u16::from_be_bytes(self.array()?).into()),
            0xce => Value::Integer(u32::from_be_bytes(self.array()?).into()),
            0xcf => Value::Number(u64::from_be_bytes(self.array()?) as f64),
            0xd0 => Value::Integer(i8::from_be_bytes(self.array()?).into()),
            0xd1 => Value::Integer(i16::from_be_bytes(self.array()?).into()),
            0xd2 => Value::Integer(i32::from_be_bytes(self.array()?).into()),
            0xd3 => Value::Integer(i64::from_be_bytes(self.array()?)),
            0xd9 => {
                let len = self.len(1)?;
                self.text(len)?
            }
            0xda => {
                let len = self.len(2)?;
                self.text(len)?
            }
            0xdb => {
                let len = self.len(4)?;
                self.text(len)?
            }
            0xdc => {
                let len = self.len(2)?;
                self.list(len, depth)?
            }
            0xdd => {
                let len = self.len(4)?;
                self.list(len, depth)?
            }
            0xde => {
                let len = self.len(2)?;
                self.map(len, depth)?
            }
            0xdf => {
                let len = self.len(4)?;
                self.map(len, depth)?
            }
            _ => return failure::raise(self.lua, "Bad data format in input."),
        })
    }
}
