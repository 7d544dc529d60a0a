//! A reader of its own, by what docs/format.md says and nothing else.

use bytes::Bytes;
use kstone::{Item, Number, Value};
use kstone_core::{Engine, ScanCursor, TableId};

use crate::golden::script::SYSTEM;

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

pub fn take<'a>(bytes: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(len);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> usize {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number as usize;
        }
    }
    panic!("a varint of more than ten bytes");
}

fn prefixed<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let len = varint(bytes);
    take(bytes, len)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A put or a delete of the log, with its stored key taken apart.
#[derive(Debug)]
pub struct Operation<'a> {
    pub table: u32,
    pub pk: Vec<u8>,
    pub sk: Option<&'a [u8]>,
    pub expires_at_ms: Option<u64>,
    /// `None` for a delete.
    pub value: Option<&'a [u8]>,
}

/// The chunks of a log segment, of either version: the payload of each, and where it ends.
fn chunks(log: &[u8]) -> Vec<(&[u8], usize)> {
    let (magic, head): (&[u8], _) = if version(log) == 1 { (b"KChk", 72) } else { (b"K2", 40) };
    let (mut at, mut found) = (64, Vec::new());
    while log[at..].starts_with(magic) {
        let payload = &log[at + head..][..u32_at(log, at + 4) as usize];
        at = (at + head + payload.len()).next_multiple_of(8);
        found.push((payload, at));
    }
    found
}

fn version(log: &[u8]) -> u32 {
    u32_at(log, 8)
}

/// Where the chunks of a log segment end.
pub fn chunk_ends(log: &[u8]) -> Vec<usize> {
    chunks(log).into_iter().map(|(_, end)| end).collect()
}

/// The commits of a log segment: how many numbers each takes, and its operations.
pub fn commits(log: &[u8]) -> Vec<(usize, &[u8])> {
    let mut found = Vec::new();
    for (mut payload, _) in chunks(log) {
        while !payload.is_empty() {
            let (len, numbers) = if version(log) == 1 {
                let head = take(&mut payload, 16);
                (u32_at(head, 0) as usize, u32_at(head, 12) as usize)
            } else {
                (varint(&mut payload), varint(&mut payload))
            };
            found.push((numbers, take(&mut payload, len)));
        }
    }
    found
}

/// What was done to records, in order. What was done to engine tables is left out.
pub fn operations(log: &[u8]) -> Vec<Operation<'_>> {
    let mut found = Vec::new();
    for (_, mut rest) in commits(log) {
        while !rest.is_empty() {
            found.extend(operation(&mut rest));
        }
    }
    found
}

fn operation<'a>(rest: &mut &'a [u8]) -> Option<Operation<'a>> {
    let tag = take(rest, 1)[0];
    if tag == 5 || tag == 6 {
        take(rest, 4);
        return None;
    }
    assert!((1..=3).contains(&tag), "operation {tag}");
    take(rest, 1);
    let mut key = prefixed(rest);
    let expires_at_ms = (tag == 2).then(|| varint(rest) as u64);
    let value = (tag != 3).then(|| prefixed(rest));
    let table = u32::from_be_bytes(*take(&mut key, 4).first_chunk().unwrap());
    if table == u32::MAX {
        // The expiry index.
        return None;
    }
    let mut pk = Vec::new();
    let sk = loop {
        match (take(&mut key, 1)[0], key.first()) {
            (0, Some(0xFF)) => {
                take(&mut key, 1);
                pk.push(0);
            }
            (0, Some(1)) => break None,
            (0, Some(2)) => break Some(&key[1..]),
            (0, other) => panic!("{other:?} behind the partition key"),
            (byte, _) => pk.push(byte),
        }
    };
    Some(Operation { table, pk, sk, expires_at_ms, value })
}

/// An item, all of it.
pub fn item(mut bytes: &[u8]) -> Item {
    assert_eq!(take(&mut bytes, 1), [1], "version");
    let item = map(&mut bytes);
    assert!(bytes.is_empty(), "bytes behind the item");
    item
}

fn map(bytes: &mut &[u8]) -> Item {
    let (mut item, mut last) = (Item::new(), None);
    for _ in 0..varint(bytes) {
        let name = text(prefixed(bytes));
        assert!(last.as_ref().is_none_or(|last| *last < name), "names ascend");
        item.insert(name.clone(), value(bytes));
        last = Some(name);
    }
    item
}

fn value(bytes: &mut &[u8]) -> Value {
    match take(bytes, 1)[0] {
        1 => Value::S(text(prefixed(bytes))),
        2 => Value::N(number(bytes)),
        3 => Value::B(Bytes::copy_from_slice(prefixed(bytes))),
        4 => Value::Bool(false),
        5 => Value::Bool(true),
        6 => Value::Null,
        7 => {
            let mut body = prefixed(bytes);
            let map = map(&mut body);
            assert!(body.is_empty());
            Value::M(map)
        }
        8 => Value::L(counted(bytes, value)),
        9 => Value::Ss(ascending(counted(bytes, |bytes| text(prefixed(bytes))))),
        10 => Value::Ns(ascending(counted(bytes, number))),
        11 => Value::Bs(ascending(counted(bytes, |bytes| Bytes::copy_from_slice(prefixed(bytes))))),
        tag => panic!("a value with tag {tag}"),
    }
}

fn counted<T>(bytes: &mut &[u8], read: impl Fn(&mut &[u8]) -> T) -> Vec<T> {
    let mut body = prefixed(bytes);
    let elements = (0..varint(&mut body)).map(|_| read(&mut body)).collect();
    assert!(body.is_empty());
    elements
}

fn ascending<T: Ord>(elements: Vec<T>) -> Vec<T> {
    assert!(!elements.is_empty() && elements.is_sorted_by(|a, b| a < b), "a set ascends");
    elements
}

/// A number off the front.
pub fn number(bytes: &mut &[u8]) -> Number {
    let head = take(bytes, 1)[0];
    if head == 0x80 {
        return Number::ZERO;
    }
    let flip = if head < 0x80 { 0xFF } else { 0 };
    let mut exponent = i32::from(head ^ flip) - 0xC1;
    if head ^ flip == 0x81 {
        exponent = i32::from(take(bytes, 1)[0] ^ flip) - 65;
    }
    let mut digits = String::new();
    loop {
        let pair = take(bytes, 1)[0] ^ flip;
        digits.push_str(&format!("{:02}", pair / 2));
        if pair.is_multiple_of(2) {
            break;
        }
    }
    let sign = if flip == 0 { "" } else { "-" };
    // As many digits behind the first pair as there are; the first pair is worth 100^exponent.
    let exponent = 2 * exponent + 2 - digits.len() as i32;
    format!("{sign}{digits}E{exponent}").parse().unwrap()
}

/// A part of a key of several attributes, off the front: a string or byte string.
pub fn part(bytes: &mut &[u8]) -> Vec<u8> {
    let mut raw = Vec::new();
    loop {
        match (take(bytes, 1)[0], bytes.first()) {
            (0, Some(0xFF)) => {
                take(bytes, 1);
                raw.push(0);
            }
            (0, Some(1)) => {
                take(bytes, 1);
                return raw;
            }
            (0, other) => panic!("{other:?} in a part"),
            (byte, _) => raw.push(byte),
        }
    }
}

/// The engine tables that the catalogue's records name.
pub fn catalogued(engine: &Engine) -> Vec<u32> {
    let mut ids = Vec::new();
    for record in engine.partition(TableId(SYSTEM), "tables").iter().unwrap() {
        let table: serde_json::Value =
            serde_json::from_slice(&record.unwrap().record.value).unwrap();
        ids.extend(engine_tables(&table));
    }
    ids
}

/// The engine tables that one record of the catalogue names.
pub fn engine_tables(table: &serde_json::Value) -> Vec<u32> {
    let mut ids = vec![&table["id"]];
    for list in ["local", "global", "streams"] {
        ids.extend(table[list].as_array().unwrap().iter().map(|entry| &entry["id"]));
    }
    ids.into_iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// How many notes of unfinished work the catalogue has.
pub fn notes(engine: &Engine) -> usize {
    if !engine.tables().contains(&TableId(SYSTEM)) {
        return 0;
    }
    let records = engine.snapshot().scan(TableId(SYSTEM), ScanCursor::start());
    let pks = records.map(|record| record.unwrap().key.pk);
    pks.filter(|pk| matches!(&pk[..], b"making" | b"dropping")).count()
}
