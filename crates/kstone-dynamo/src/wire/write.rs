//! Writes the JSON body of a response, attribute values directly from the stored form of an item.

use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kstone::{Item, ItemBytes, ItemRef, ValueRef};

use crate::error::Fault;
use crate::json::plain_prefix;

/// The deepest nesting that is written. DynamoDB allows less, so only a damaged item is deeper.
const LEVELS_MAX: usize = 64;

/// A capacity that suffices for most responses.
const BODY_BYTES: usize = 2048;

/// A larger buffer is not kept for the next response.
const SPARE_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    /// The buffer of the last response: allocating one for each costs as much as finding its item.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Keeps the buffer of a response that was sent for the next [`JsonWriter::new`].
pub(crate) fn give_back(mut bytes: Vec<u8>) {
    if bytes.capacity() <= SPARE_BYTES_MAX {
        bytes.clear();
        SPARE.set(bytes);
    }
}

/// Writes JSON to a buffer. It puts the commas between members and elements itself.
#[derive(Debug)]
pub(crate) struct JsonWriter {
    bytes: Vec<u8>,
    /// Whether a stored item was shorter than its own length says. Its bytes had passed their
    /// checksum, so this is a defect, and a response without the missing attributes would hide it.
    is_damaged: bool,
}

impl JsonWriter {
    /// A writer with a reused buffer, if there is one.
    pub(crate) fn new() -> Self {
        let mut bytes = SPARE.take();
        bytes.reserve(BODY_BYTES);
        JsonWriter { bytes, is_damaged: false }
    }

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        JsonWriter { bytes: Vec::with_capacity(capacity), is_damaged: false }
    }

    /// The body that was written.
    pub(crate) fn finish(self) -> Result<Vec<u8>, Fault> {
        if self.is_damaged {
            return Err(Fault::internal("A stored item is damaged; run `kstone verify`"));
        }
        Ok(self.bytes)
    }

    /// Writes an object with the members that `write` writes.
    pub(crate) fn object(&mut self, write: impl FnOnce(&mut JsonWriter)) {
        self.bytes.push(b'{');
        write(self);
        self.bytes.push(b'}');
    }

    /// Writes the name of the next member of an object; its value has to follow.
    #[inline]
    pub(crate) fn name(&mut self, name: &str) -> &mut JsonWriter {
        self.separate();
        self.text(name);
        self.bytes.push(b':');
        self
    }

    /// Writes a member whose value is an object.
    pub(crate) fn object_member(&mut self, name: &str, write: impl FnOnce(&mut JsonWriter)) {
        self.name(name).object(write);
    }

    /// Writes a member whose value is a text.
    pub(crate) fn text_member(&mut self, name: &str, text: &str) {
        self.name(name).text(text);
    }

    /// Writes a list, each element by `write`.
    pub(crate) fn list<T>(
        &mut self,
        elements: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut JsonWriter, T),
    ) {
        self.bytes.push(b'[');
        for element in elements {
            self.separate();
            write(self, element);
        }
        self.bytes.push(b']');
    }

    /// Writes a comma, unless nothing or an opening bracket precedes.
    #[inline]
    fn separate(&mut self) {
        if !matches!(self.bytes.last(), Some(b'{' | b'[') | None) {
            self.bytes.push(b',');
        }
    }

    /// Writes a string.
    #[inline]
    pub(crate) fn text(&mut self, text: &str) {
        self.between(b"\"", |out| escape(text.as_bytes(), &mut out.bytes), b"\"");
    }

    /// Writes a whole number.
    pub(crate) fn integer(&mut self, number: impl Into<i128>) {
        self.bytes.extend_from_slice(number.into().to_string().as_bytes());
    }

    /// Writes a number with a fraction, even if that is zero.
    pub(crate) fn decimal(&mut self, number: f64) {
        self.bytes.extend_from_slice(format!("{number:?}").as_bytes());
    }

    /// Writes a time, given in milliseconds since 1970, as DynamoDB does: in seconds with a fraction.
    pub(crate) fn time(&mut self, ms: u64) {
        let (seconds, rest) = (ms / 1000, ms % 1000);
        let text = match rest {
            0 => seconds.to_string(),
            _ => format!("{seconds}.{rest:03}"),
        };
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Writes a boolean.
    pub(crate) fn boolean(&mut self, value: bool) {
        self.bytes.extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Writes a stored item as a map of attribute values.
    pub(crate) fn item(&mut self, item: &ItemBytes) {
        let item_ref = item.as_ref();
        // Reserve once: the stored bytes, and quotes, brackets and a type for each attribute.
        self.bytes.reserve(item.as_slice().len() + 16 * item_ref.len());
        self.attributes(item_ref, LEVELS_MAX);
    }

    /// Writes stored items as a list.
    pub(crate) fn items(&mut self, items: &[ItemBytes]) {
        // A page of items is long, so reserve once: a quarter more than is stored, for the brackets.
        let stored: usize = items.iter().map(|item| item.as_slice().len()).sum();
        self.bytes.reserve(stored + stored / 4);
        self.list(items, JsonWriter::item);
    }

    fn attributes(&mut self, item: ItemRef<'_>, levels: usize) {
        self.bytes.push(b'{');
        let mut left = item.len();
        for (name, value) in item.iter_as::<[u8]>() {
            if left < item.len() {
                self.bytes.push(b',');
            }
            self.bytes.push(b'"');
            escape(name, &mut self.bytes);
            self.bytes.extend_from_slice(b"\":");
            self.value(value, levels);
            left -= 1;
        }
        self.is_damaged |= left > 0;
        self.bytes.push(b'}');
    }

    /// Writes a stored value with its type.
    fn value(&mut self, value: ValueRef<'_, [u8]>, levels: usize) {
        let Some(below) = levels.checked_sub(1) else {
            self.is_damaged = true;
            return;
        };
        match value {
            ValueRef::S(text) => {
                self.between(b"{\"S\":\"", |out| escape(text, &mut out.bytes), b"\"}");
            }
            ValueRef::N(number) => {
                self.between(b"{\"N\":\"", |out| number.write_decimal(&mut out.bytes), b"\"}");
            }
            ValueRef::B(bytes) => self.between(b"{\"B\":", |out| out.base64(bytes), b"}"),
            ValueRef::Bool(true) => self.bytes.extend_from_slice(b"{\"BOOL\":true}"),
            ValueRef::Bool(false) => self.bytes.extend_from_slice(b"{\"BOOL\":false}"),
            ValueRef::Null => self.bytes.extend_from_slice(b"{\"NULL\":true}"),
            ValueRef::M(map) => {
                self.between(b"{\"M\":", |out| out.attributes(map, below), b"}");
            }
            ValueRef::L(list) => {
                let write = |out: &mut Self, value| out.value(value, below);
                let elements = |out: &mut Self| out.elements(list.len(), list.iter_as(), write);
                self.between(b"{\"L\":", elements, b"}");
            }
            ValueRef::Ss(set) | ValueRef::Ns(set) | ValueRef::Bs(set) => self.object(|out| {
                out.name(value.type_name()).elements(set.len(), set.iter_as(), Self::set_element);
            }),
        }
    }

    /// Writes the elements of a stored list or set, which says how many it has.
    fn elements<T>(
        &mut self,
        count: usize,
        elements: impl Iterator<Item = T>,
        write: impl Fn(&mut Self, T),
    ) {
        let mut left = count;
        self.list(elements, |out, element| {
            write(out, element);
            left -= 1;
        });
        self.is_damaged |= left > 0;
    }

    /// Writes an element of a set: a value without its type.
    fn set_element(&mut self, element: ValueRef<'_, [u8]>) {
        match element {
            ValueRef::S(text) => {
                self.between(b"\"", |out| escape(text, &mut out.bytes), b"\"");
            }
            ValueRef::N(number) => {
                self.between(b"\"", |out| number.write_decimal(&mut out.bytes), b"\"");
            }
            ValueRef::B(bytes) => self.base64(bytes),
            _ => self.is_damaged = true,
        }
    }

    #[inline]
    fn between(&mut self, before: &[u8], write: impl FnOnce(&mut Self), after: &[u8]) {
        self.bytes.extend_from_slice(before);
        write(self);
        self.bytes.extend_from_slice(after);
    }

    fn base64(&mut self, bytes: &[u8]) {
        self.bytes.push(b'"');
        let start = self.bytes.len();
        let length = base64::encoded_len(bytes.len(), true).unwrap_or(0);
        self.bytes.resize(start + length, 0);
        if BASE64.encode_slice(bytes, &mut self.bytes[start..]).is_err() {
            self.is_damaged = true;
        }
        self.bytes.push(b'"');
    }

    /// Writes a map of attribute values that is not in the stored form, such as a page's last key.
    pub(crate) fn tree(&mut self, item: &Item) {
        self.item(&ItemBytes::encode(item));
    }
}

/// Writes the inside of a JSON string.
pub(crate) fn escape(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    loop {
        let plain = plain_prefix(rest);
        let (before, after) = rest.split_at(plain);
        out.extend_from_slice(before);
        let Some((&byte, after)) = after.split_first() else { return };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        escape(text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_byte_is_escaped_or_not_as_json_asks_wherever_it_stands() {
        for code in 0..0x80u8 {
            for at in 0..20 {
                let mut text = "äx".repeat(8);
                let place = text.char_indices().map(|(place, _)| place).nth(at % 16).unwrap();
                text.insert(place, char::from(code));
                let json = format!("\"{}\"", escaped(&text));
                let back: String = serde_json::from_str(&json).unwrap();
                assert_eq!(back, text);
            }
        }
    }

    #[test]
    fn commas_put_themselves() {
        let mut out = JsonWriter::with_capacity(0);
        out.object(|out| {
            out.text_member("a", "x\"y");
            out.name("b").list([1, 2], |out, n| out.integer(n));
            out.object_member("c", |_| {});
            out.name("d").list(Vec::<u8>::new(), |_, _| {});
            out.name("e").decimal(1.0);
            out.name("f").time(1500);
        });
        let want = r#"{"a":"x\"y","b":[1,2],"c":{},"d":[],"e":1.0,"f":1.500}"#;
        assert_eq!(String::from_utf8(out.finish().unwrap()).unwrap(), want);
    }

    #[test]
    fn an_item_that_is_cut_short_is_an_error_not_a_shorter_item() {
        let whole = ItemBytes::encode(&Item::new().with("a", "text").with("b", "more"));
        let bytes = whole.as_slice();
        let cut = bytes::Bytes::copy_from_slice(&bytes[..bytes.len() - 3]);
        let cut = ItemBytes::from_bytes(cut).unwrap();
        let mut out = JsonWriter::with_capacity(0);
        out.item(&cut);
        assert!(out.finish().is_err());
    }
}
