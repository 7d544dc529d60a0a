//! Writes the compact form: from the tree form, or from pieces that are already encoded.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use crate::value::compact::view::{ListRef, SetKind, SetRef};
use crate::value::compact::{
    ItemBytes, ItemRef, TAG_B, TAG_BS, TAG_FALSE, TAG_L, TAG_M, TAG_N, TAG_NS, TAG_NULL, TAG_S,
    TAG_SS, TAG_TRUE, VERSION, ValueRef, varint,
};
use crate::value::{Item, Value, set};

/// The compact form of an item.
pub(super) fn item(item: &Item) -> Vec<u8> {
    // The size that DynamoDB counts comes near enough to what is written.
    let mut out = Vec::with_capacity(2 + item.size() + 4 * item.len());
    out.push(VERSION);
    write_map(item, &mut out);
    out
}

fn write_map(map: &Item, out: &mut Vec<u8>) {
    varint::write(map.len(), out);
    for (name, value) in map.iter() {
        write_prefixed(name.as_bytes(), out);
        write_value(value, out);
    }
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::S(text) => write_tagged(TAG_S, text.as_bytes(), out),
        Value::N(number) => {
            out.push(TAG_N);
            number.write_ordered(out);
        }
        Value::B(bytes) => write_tagged(TAG_B, bytes, out),
        Value::Bool(false) => out.push(TAG_FALSE),
        Value::Bool(true) => out.push(TAG_TRUE),
        Value::Null => out.push(TAG_NULL),
        Value::M(map) => write_sized(TAG_M, out, |out| write_map(map, out)),
        Value::L(list) => write_sized(TAG_L, out, |out| {
            varint::write(list.len(), out);
            list.iter().for_each(|value| write_value(value, out));
        }),
        Value::Ss(elements) => write_set(TAG_SS, elements, out, |text, out| {
            write_prefixed(text.as_bytes(), out);
        }),
        Value::Ns(elements) => write_set(TAG_NS, elements, out, |number, out| {
            number.write_ordered(out);
        }),
        Value::Bs(elements) => write_set(TAG_BS, elements, out, |bytes, out| {
            write_prefixed(bytes, out);
        }),
    }
}

fn write_set<T: Ord>(tag: u8, set: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    write_sized(tag, out, |out| {
        varint::write(set.len(), out);
        if set.is_sorted() {
            set.iter().for_each(|element| write(element, out));
        } else {
            set::sorted(set).into_iter().for_each(|element| write(element, out));
        }
    });
}

fn write_prefixed(bytes: &[u8], out: &mut Vec<u8>) {
    varint::write(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn write_tagged(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    write_prefixed(bytes, out);
}

/// Writes a tag, then what `write` gives behind its own length.
fn write_sized(tag: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    // One byte is enough for the length of most nested values; the rest are moved up once.
    let start = out.len();
    out.push(0);
    write(out);
    set_varint(start, out.len() - start - 1, out);
}

/// Replaces the one byte kept free at `at` by a varint.
fn set_varint(at: usize, value: usize, out: &mut Vec<u8>) {
    if value < 0x80 {
        out[at] = value as u8;
    } else {
        let mut bytes = Vec::with_capacity(5);
        varint::write(value, &mut bytes);
        out.splice(at..=at, bytes);
    }
}

impl ValueRef<'_> {
    /// Appends the value in its compact form. Nothing inside it is decoded.
    pub fn write_encoded(&self, out: &mut Vec<u8>) {
        match self {
            ValueRef::S(text) => write_tagged(TAG_S, text.as_bytes(), out),
            ValueRef::N(number) => {
                out.push(TAG_N);
                out.extend_from_slice(number.ordered());
            }
            ValueRef::B(bytes) => write_tagged(TAG_B, bytes, out),
            ValueRef::Bool(false) => out.push(TAG_FALSE),
            ValueRef::Bool(true) => out.push(TAG_TRUE),
            ValueRef::Null => out.push(TAG_NULL),
            ValueRef::M(ItemRef { count, entries }) => write_counted(TAG_M, *count, entries, out),
            ValueRef::L(ListRef { count, elements }) => write_counted(TAG_L, *count, elements, out),
            ValueRef::Ss(set) | ValueRef::Ns(set) | ValueRef::Bs(set) => {
                let SetRef { kind, count, elements } = set;
                let tag = match kind {
                    SetKind::Strings => TAG_SS,
                    SetKind::Numbers => TAG_NS,
                    SetKind::Binaries => TAG_BS,
                };
                write_counted(tag, *count, elements, out);
            }
        }
    }
}

fn write_counted(tag: u8, count: usize, elements: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    varint::write(varint::len(count) + elements.len(), out);
    varint::write(count, out);
    out.extend_from_slice(elements);
}

impl ItemRef<'_> {
    /// The attributes whose names pass, as an item of their own; nothing is decoded.
    pub fn filter(&self, keep: impl Fn(&str) -> bool) -> ItemBytes {
        let mut kept = ItemBuilder::new();
        for (name, value) in self.iter() {
            if keep(name) {
                kept.push(name, value);
            }
        }
        kept.finish()
    }
}

/// Builds an item, or a map inside one, from values that are already encoded: for projections.
#[derive(Debug, Clone)]
pub struct ItemBuilder {
    /// The version, one byte kept free for the count, then the entries.
    out: Vec<u8>,
    count: usize,
    /// Where the last name stands.
    last: Range<usize>,
}

impl ItemBuilder {
    const ENTRIES_AT: usize = 2;

    /// No attributes yet.
    pub fn new() -> Self {
        ItemBuilder::with_capacity(0)
    }

    /// No attributes yet, and room for so many bytes of them.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut out = Vec::with_capacity(Self::ENTRIES_AT + bytes);
        out.extend_from_slice(&[VERSION, 0]);
        ItemBuilder { out, count: 0, last: 0..0 }
    }

    /// Adds an attribute; one of the same name is replaced. It costs least when names ascend.
    pub fn push(&mut self, name: &str, value: ValueRef<'_>) {
        let name = name.as_bytes();
        let last = self.out.get(self.last.clone()).unwrap_or_default();
        if self.count > 0 && last >= name {
            self.insert(name, value);
            return;
        }
        varint::write(name.len(), &mut self.out);
        let start = self.out.len();
        self.out.extend_from_slice(name);
        self.last = start..self.out.len();
        value.write_encoded(&mut self.out);
        self.count += 1;
    }

    /// Adds an attribute that does not come last.
    fn insert(&mut self, name: &[u8], value: ValueRef<'_>) {
        let mut entry = Vec::new();
        write_prefixed(name, &mut entry);
        value.write_encoded(&mut entry);
        let entries = ItemRef {
            count: self.count,
            entries: self.out.get(Self::ENTRIES_AT..).unwrap_or_default(),
        };
        let (place, found) = entries.place(name);
        let place = place.start + Self::ENTRIES_AT..place.end + Self::ENTRIES_AT;
        if place.start < self.last.start && place.end <= self.last.start {
            let grown = self.last.start + entry.len() - place.len();
            self.last = grown..grown + self.last.len();
        }
        self.out.splice(place, entry);
        self.count += usize::from(!found);
    }

    /// How many attributes there are so far.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The item.
    pub fn finish(mut self) -> ItemBytes {
        set_varint(1, self.count, &mut self.out);
        ItemBytes { bytes: self.out.into() }
    }

    /// The same as a value of type M, to put into another.
    pub fn finish_map(self) -> EncodedValue {
        let entries = self.out.get(Self::ENTRIES_AT..).unwrap_or_default();
        let mut out = Vec::with_capacity(entries.len() + 8);
        write_counted(TAG_M, self.count, entries, &mut out);
        EncodedValue { bytes: out.into() }
    }
}

impl Default for ItemBuilder {
    fn default() -> Self {
        ItemBuilder::new()
    }
}

/// Builds a list from values that are already encoded: for projections.
#[derive(Debug, Clone, Default)]
pub struct ListBuilder {
    elements: Vec<u8>,
    count: usize,
}

impl ListBuilder {
    /// No elements yet.
    pub fn new() -> Self {
        ListBuilder::default()
    }

    /// Adds an element at the end.
    pub fn push(&mut self, value: ValueRef<'_>) {
        value.write_encoded(&mut self.elements);
        self.count += 1;
    }

    /// How many elements there are so far.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The list, as a value of type L.
    pub fn finish(self) -> EncodedValue {
        let mut out = Vec::with_capacity(self.elements.len() + 8);
        write_counted(TAG_L, self.count, &self.elements, &mut out);
        EncodedValue { bytes: out.into() }
    }
}

/// One value in its compact form, owned: an operand of an expression. Cloning it copies no bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedValue {
    bytes: Bytes,
}

impl EncodedValue {
    /// The compact form of a value.
    pub fn new(value: &Value) -> Self {
        let mut out = Vec::new();
        write_value(value, &mut out);
        EncodedValue { bytes: out.into() }
    }

    /// The bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// The value, borrowed, to look into.
    pub fn as_ref(&self) -> ValueRef<'_> {
        // Always a value: nothing else makes an `EncodedValue`.
        ValueRef::take(&mut &self.bytes[..]).unwrap_or(ValueRef::Null)
    }
}

impl From<&Value> for EncodedValue {
    fn from(value: &Value) -> Self {
        EncodedValue::new(value)
    }
}

impl From<ValueRef<'_>> for EncodedValue {
    fn from(value: ValueRef<'_>) -> Self {
        let mut out = Vec::new();
        value.write_encoded(&mut out);
        EncodedValue { bytes: out.into() }
    }
}

impl fmt::Debug for EncodedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}
