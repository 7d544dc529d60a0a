//! The bytes of key attributes, whose order is DynamoDB's: strings and byte strings as bytes,
//! numbers as numbers.
//!
//! A key of one attribute is its bytes as they are. A key of several is a tuple, each part ending
//! by itself, so that the first part that differs decides: a number always does, and a string or
//! byte string is escaped (`00` becomes `00 FF`) and ends in `00 01`, which is below whatever
//! could follow instead.
//!
//! | key | engine pk | engine sk |
//! |---|---|---|
//! | table | single(hash) | single(range) |
//! | local index | the table's pk | part(range), part(table's range) |
//! | global index | single(hash), or a tuple | parts of range, part(table's hash), part(table's range) |
//!
//! Used by tables and indexes; calls only values.

use bytes::Bytes;

use crate::table::KeyType;
use crate::value::{Number, NumberRef, Value, ValueRef};

const ESCAPE: u8 = 0x00;
const ESCAPED_ZERO: u8 = 0xFF;
const END: u8 = 0x01;

/// Appends the only attribute of a key. `false`, and nothing appended, if the value is not of this
/// type.
#[must_use]
pub fn write_single(kind: KeyType, value: ValueRef<'_>, out: &mut Vec<u8>) -> bool {
    let Some(bytes) = bytes_of(kind, value) else { return false };
    out.extend_from_slice(bytes);
    true
}

/// Reads what [`write_single`] wrote.
pub fn read_single(kind: KeyType, bytes: &[u8]) -> Option<Value> {
    match kind {
        KeyType::S => Some(Value::S(std::str::from_utf8(bytes).ok()?.to_owned())),
        KeyType::B => Some(Value::B(Bytes::copy_from_slice(bytes))),
        KeyType::N => {
            let (number, len) = Number::read_ordered(bytes)?;
            (len == bytes.len()).then_some(Value::N(number))
        }
    }
}

/// Appends one attribute of a key of several. `false`, and nothing appended, if the value is not
/// of this type.
#[must_use]
pub fn write_part(kind: KeyType, value: ValueRef<'_>, out: &mut Vec<u8>) -> bool {
    let Some(bytes) = bytes_of(kind, value) else { return false };
    match kind {
        KeyType::N => out.extend_from_slice(bytes),
        KeyType::S | KeyType::B => {
            escape(bytes, out);
            out.extend_from_slice(&[ESCAPE, END]);
        }
    }
    true
}

/// Appends the start of a part: what every part begins with whose attribute begins with `value`.
/// `false`, and nothing appended, for a number or a value that is not of this type.
#[must_use]
pub fn write_part_prefix(kind: KeyType, value: ValueRef<'_>, out: &mut Vec<u8>) -> bool {
    match bytes_of(kind, value) {
        Some(bytes) if kind != KeyType::N => {
            escape(bytes, out);
            true
        }
        _ => false,
    }
}

/// Reads what [`write_part`] wrote off the front of `bytes`, with how many bytes it took.
pub fn read_part(kind: KeyType, bytes: &[u8]) -> Option<(Value, usize)> {
    if kind == KeyType::N {
        let (number, len) = Number::read_ordered(bytes)?;
        return Some((Value::N(number), len));
    }
    let (raw, len) = unescape(bytes)?;
    let value = match kind {
        KeyType::S => Value::S(String::from_utf8(raw).ok()?),
        _ => Value::B(raw.into()),
    };
    Some((value, len))
}

/// How long the part at the front of `bytes` is.
pub fn part_len(kind: KeyType, bytes: &[u8]) -> Option<usize> {
    match kind {
        KeyType::N => NumberRef::read(bytes).map(|number| number.ordered().len()),
        KeyType::S | KeyType::B => {
            let mut at = 0;
            loop {
                at += bytes.get(at..)?.iter().position(|&byte| byte == ESCAPE)? + 2;
                match *bytes.get(at - 1)? {
                    END => return Some(at),
                    ESCAPED_ZERO => {}
                    _ => return None,
                }
            }
        }
    }
}

fn bytes_of(kind: KeyType, value: ValueRef<'_>) -> Option<&[u8]> {
    match (kind, value) {
        (KeyType::S, ValueRef::S(text)) => Some(text.as_bytes()),
        (KeyType::N, ValueRef::N(number)) => Some(number.ordered()),
        (KeyType::B, ValueRef::B(bytes)) => Some(bytes),
        _ => None,
    }
}

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    let mut pieces = bytes.split(|&byte| byte == ESCAPE);
    out.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        out.extend_from_slice(&[ESCAPE, ESCAPED_ZERO]);
        out.extend_from_slice(piece);
    }
}

fn unescape(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut raw = Vec::new();
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        let plain = rest.iter().position(|&byte| byte == ESCAPE)?;
        raw.extend_from_slice(rest.get(..plain)?);
        at += plain + 2;
        match *rest.get(plain + 1)? {
            END => return Some((raw, at)),
            ESCAPED_ZERO => raw.push(ESCAPE),
            _ => return None,
        }
    }
}
