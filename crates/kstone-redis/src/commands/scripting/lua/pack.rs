//! `struct`: numbers and texts as the bytes of a C structure, by a format such as `>I2s`.

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::Arguments;
use super::{failure, number};

/// The longest integer.
const INTEGER_BYTES_MAX: usize = 32;
/// What `!` without a number aligns to.
const ALIGN_DEFAULT: usize = 8;

/// A format, read option by option.
struct Format<'a> {
    lua: &'a Lua,
    left: &'a [u8],
    is_big: bool,
    align: usize,
}

impl<'a> Format<'a> {
    fn new(lua: &'a Lua, text: &'a [u8]) -> Self {
        // As in C, a format ends at its first zero byte.
        let left = text.split(|byte| *byte == 0).next().unwrap_or_default();
        Format { lua, left, is_big: false, align: 1 }
    }

    fn number(&mut self, default: usize) -> mlua::Result<usize> {
        let digits = self.left.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, left) = self.left.split_at(digits);
        self.left = left;
        if digits.is_empty() {
            return Ok(default);
        }
        let text = std::str::from_utf8(digits).unwrap_or_default();
        match text.parse::<i32>() {
            Ok(number) => Ok(number as usize),
            Err(_) => failure::raise(self.lua, "integral size overflow"),
        }
    }

    /// The next option and how many bytes it takes, as far as that is known.
    fn next(&mut self) -> mlua::Result<Option<(u8, usize)>> {
        let Some((&option, left)) = self.left.split_first() else { return Ok(None) };
        self.left = left;
        let size = match option {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'f' => 4,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > INTEGER_BYTES_MAX {
                    let text =
                        format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
                    return failure::raise(self.lua, &text);
                }
                size
            }
            _ => 0,
        };
        Ok(Some((option, size)))
    }

    /// How many bytes to skip so that an option of this size is aligned.
    fn padding(&self, at: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let size = size.min(self.align);
        if size == 0 { 0 } else { (size - (at & (size - 1))) & (size - 1) }
    }

    /// An option that is not about data.
    fn control(&mut self, option: u8, args: &Arguments<'_>) -> mlua::Result<()> {
        match option {
            b' ' => {}
            b'>' => self.is_big = true,
            b'<' => self.is_big = false,
            b'!' => {
                let align = self.number(ALIGN_DEFAULT)?;
                if !align.is_power_of_two() {
                    let text = format!("alignment {align} is not a power of 2");
                    return failure::raise(self.lua, &text);
                }
                self.align = align;
            }
            other => {
                let option = char::from(other);
                return args.refuse(1, &format!("invalid format option '{option}'"));
            }
        }
        Ok(())
    }
}

/// The library.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    library.set("pack", lua.create_function(pack)?)?;
    library.set("unpack", lua.create_function(unpack)?)?;
    library.set("size", lua.create_function(size)?)?;
    Ok(library)
}

fn pack(lua: &Lua, values: MultiValue) -> mlua::Result<mlua::LuaString> {
    let args = Arguments::new(lua, "pack", values);
    let text = args.text(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(lua, &text);
    let mut out = Vec::new();
    let mut position = 1;
    while let Some((option, size)) = format.next()? {
        out.resize(out.len() + format.padding(out.len(), option, size), 0);
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                position += 1;
                let given = args.number(position)?;
                let value = if given < 0.0 { number::to_i64(given) as u64 } else { given as u64 };
                let mut bytes = [0; INTEGER_BYTES_MAX];
                if let Some(low) = bytes.get_mut(..8) {
                    low.copy_from_slice(&value.to_le_bytes());
                }
                let bytes = bytes.get(..size).unwrap_or_default();
                if format.is_big {
                    out.extend(bytes.iter().rev());
                } else {
                    out.extend_from_slice(bytes);
                }
            }
            b'x' => out.push(0),
            b'f' => {
                position += 1;
                let number = args.number(position)? as f32;
                let bytes = if format.is_big { number.to_be_bytes() } else { number.to_le_bytes() };
                out.extend_from_slice(&bytes);
            }
            b'd' => {
                position += 1;
                let number = args.number(position)?;
                let bytes = if format.is_big { number.to_be_bytes() } else { number.to_le_bytes() };
                out.extend_from_slice(&bytes);
            }
            b'c' | b's' => {
                position += 1;
                let text = args.text(position)?;
                let text = text.as_bytes();
                let len = if size == 0 { text.len() } else { size };
                match text.get(..len) {
                    Some(text) => out.extend_from_slice(text),
                    None => return args.refuse(position + 1, "string too short"),
                }
                if option == b's' {
                    out.push(0);
                }
            }
            other => format.control(other, &args)?,
        }
    }
    lua.create_string(&out)
}

fn unpack(lua: &Lua, values: MultiValue) -> mlua::Result<MultiValue> {
    let args = Arguments::new(lua, "unpack", values);
    let (text, data) = (args.text(1)?, args.text(2)?);
    let (text, data) = (text.as_bytes(), data.as_bytes());
    let first = args.integer_or(3, 1)?;
    if first < 1 {
        return args.refuse(3, "offset must be 1 or greater");
    }
    let mut format = Format::new(lua, &text);
    let mut at = (first - 1) as usize;
    let mut out = Vec::new();
    while let Some((option, size)) = format.next()? {
        at = at.saturating_add(format.padding(at, option, size));
        let Some(bytes) = at.checked_add(size).and_then(|end| data.get(at..end)) else {
            return args.refuse(2, "data string too short");
        };
        let mut taken = size;
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let is_signed = option.is_ascii_lowercase();
                out.push(Value::Number(read_integer(bytes, format.is_big, is_signed)));
            }
            b'x' => {}
            b'f' => {
                let bytes = bytes.try_into().unwrap_or_default();
                let read = if format.is_big { f32::from_be_bytes } else { f32::from_le_bytes };
                out.push(Value::Number(read(bytes).into()));
            }
            b'd' => {
                let bytes = bytes.try_into().unwrap_or_default();
                let read = if format.is_big { f64::from_be_bytes } else { f64::from_le_bytes };
                out.push(Value::Number(read(bytes)));
            }
            b'c' => {
                let mut bytes = bytes;
                if size == 0 {
                    let Some(len) = out.pop().as_ref().and_then(number::of) else {
                        return failure::raise(lua, "format 'c0' needs a previous size");
                    };
                    taken = len as usize;
                    let Some(found) = at.checked_add(taken).and_then(|end| data.get(at..end))
                    else {
                        return args.refuse(2, "data string too short");
                    };
                    bytes = found;
                }
                out.push(Value::String(lua.create_string(bytes)?));
            }
            b's' => {
                let rest = data.get(at..).unwrap_or_default();
                let Some(end) = rest.iter().position(|byte| *byte == 0) else {
                    return failure::raise(lua, "unfinished string in data");
                };
                let text = rest.get(..end).unwrap_or_default();
                out.push(Value::String(lua.create_string(text)?));
                taken = end + 1;
            }
            other => format.control(other, &args)?,
        }
        at += taken;
    }
    out.push(Value::Integer(at as i64 + 1));
    Ok(MultiValue::from_vec(out))
}

/// An integer of any size; only its lower 64 bits count.
fn read_integer(bytes: &[u8], is_big: bool, is_signed: bool) -> f64 {
    let fold = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
    let value = if is_big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) };
    if !is_signed {
        return value as f64;
    }
    let unused = 64u32.saturating_sub(8 * bytes.len() as u32).min(63);
    ((value << unused) as i64 >> unused) as f64
}

fn size(lua: &Lua, values: MultiValue) -> mlua::Result<i64> {
    let args = Arguments::new(lua, "size", values);
    let text = args.text(1)?;
    let text = text.as_bytes();
    let mut format = Format::new(lua, &text);
    let mut at = 0usize;
    while let Some((option, size)) = format.next()? {
        at = at.saturating_add(format.padding(at, option, size));
        match option {
            b's' => return args.refuse(1, "option 's' has no fixed size"),
            b'c' if size == 0 => return args.refuse(1, "option 'c0' has no fixed size"),
            other if !other.is_ascii_alphanumeric() => format.control(other, &args)?,
            _ => {}
        }
        at = at.saturating_add(size);
    }
    Ok(at as i64)
}
