//! The body of an answer, as it is written.

use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kstone::{Item, ItemBytes, ItemRef, ValueRef};

use crate::error::Fault;
use crate::json::plain_prefix;

/// Beyond what DynamoDB allows values to be nested: only damage goes deeper.
const LEVELS_MAX: usize = 64;

/// Room for most answers.
const ANSWER_BYTES: usize = 2048;

/// What is kept of memory that was given back.
const SPARE_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    /// The memory of the last answer: allocating it for each costs as much as looking up its item.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Keeps memory for [`Out::new`].
pub(crate) fn give_back(mut bytes: Vec<u8>) {
    if bytes.capacity() <= SPARE_BYTES_MAX {
        bytes.clear();
        SPARE.set(bytes);
    }
}

/// JSON in the making. Commas put themselves: none comes after an opening bracket.
#[derive(Debug)]
pub(crate) struct Out {
    bytes: Vec<u8>,
    /// A stored item was shorter than it says. Its bytes had passed their checksum, so this is a
    /// defect; an answer without the missing attributes would hide it.
    is_damaged: bool,
}

impl Out {
    /// With room for most answers.
    pub(crate) fn new() -> Self {
        let mut bytes = SPARE.take();
        bytes.reserve(ANSWER_BYTES);
        Out { bytes, is_damaged: false }
    }

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Out { bytes: Vec::with_capacity(capacity), is_damaged: false }
    }

    /// The body.
    pub(crate) fn finish(self) -> Result<Vec<u8>, Fault> {
        if self.is_damaged {
            return Err(Fault::internal("A stored item is damaged; run `kstone verify`"));
        }
        Ok(self.bytes)
    }

    /// An object with the members that `write` writes.
    pub(crate) fn object(&mut self, write: impl FnOnce(&mut Out)) {
        self.bytes.push(b'{');
        write(self);
        self.bytes.push(b'}');
    }

    /// The name of the next member of an object.
    #[inline]
    pub(crate) fn name(&mut self, name: &str) -> &mut Out {
        self.separate();
        self.text(name);
        self.bytes.push(b':');
        self
    }

    /// A member whose value is an object.
    pub(crate) fn object_member(&mut self, name: &str, write: impl FnOnce(&mut Out)) {
        self.name(name).object(write);
    }

    /// A member that is a text.
    pub(crate) fn text_member(&mut self, name: &str, text: &str) {
        self.name(name).text(text);
    }

    /// A list, each element written by `write`.
    pub(crate) fn list<T>(
        &mut self,
        elements: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Out, T),
    ) {
        self.bytes.push(b'[');
        for element in elements {
            self.separate();
            write(self, element);
        }
        self.bytes.push(b']');
    }

    #[inline]
    fn separate(&mut self) {
        if !matches!(self.bytes.last(), Some(b'{' | b'[') | None) {
            self.bytes.push(b',');
        }
    }

    /// A string.
    #[inline]
    pub(crate) fn text(&mut self, text: &str) {
        self.bytes.push(b'"');
        escape(text.as_bytes(), &mut self.bytes);
        self.bytes.push(b'"');
    }

    /// A whole number.
    pub(crate) fn integer(&mut self, number: impl Into<i128>) {
        self.bytes.extend_from_slice(number.into().to_string().as_bytes());
    }

    /// A number with a fraction, which is written even if it is zero.
    pub(crate) fn decimal(&mut self, number: f64) {
        self.bytes.extend_from_slice(format!("{number:?}").as_bytes());
    }

    /// Milliseconds since 1970 as DynamoDB writes times: seconds with a fraction.
    pub(crate) fn time(&mut self, ms: u64) {
        let (seconds, rest) = (ms / 1000, ms % 1000);
        let text = match rest {
            0 => seconds.to_string(),
            _ => format!("{seconds}.{rest:03}"),
        };
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// True or false.
    pub(crate) fn boolean(&mut self, value: bool) {
        self.bytes.extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// A stored item as a map of attribute values.
    pub(crate) fn item(&mut self, item: &ItemBytes) {
        let item_ref = item.as_ref();
        // Room once: what is stored, and quotes, brackets and types around each attribute.
        self.bytes.reserve(item.as_slice().len() + 16 * item_ref.len());
        self.attributes(item_ref, LEVELS_MAX);
    }

    /// Stored items as a list.
    pub(crate) fn items(&mut self, items: &[ItemBytes]) {
        // A page of items is long: make room once. A quarter more is for names and brackets.
        let stored: usize = items.iter().map(|item| item.as_slice().len()).sum();
        self.bytes.reserve(stored + stored / 4);
        self.list(items, Out::item);
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

    /// A stored value.
    fn value(&mut self, value: ValueRef<'_, [u8]>, levels: usize) {
        let Some(below) = levels.checked_sub(1) else {
            self.is_damaged = true;
            return;
        };
        match value {
            ValueRef::S(text) => {
                self.bytes.extend_from_slice(b"{\"S\":\"");
                escape(text, &mut self.bytes);
                self.bytes.extend_from_slice(b"\"}");
            }
            ValueRef::N(number) => {
                self.bytes.extend_from_slice(b"{\"N\":\"");
                number.write_decimal(&mut self.bytes);
                self.bytes.extend_from_slice(b"\"}");
            }
            ValueRef::B(bytes) => {
                self.bytes.extend_from_slice(b"{\"B\":");
                self.base64(bytes);
                self.bytes.push(b'}');
            }
            ValueRef::Bool(true) => self.bytes.extend_from_slice(b"{\"BOOL\":true}"),
            ValueRef::Bool(false) => self.bytes.extend_from_slice(b"{\"BOOL\":false}"),
            ValueRef::Null => self.bytes.extend_from_slice(b"{\"NULL\":true}"),
            ValueRef::M(map) => {
                self.bytes.extend_from_slice(b"{\"M\":");
                self.attributes(map, below);
                self.bytes.push(b'}');
            }
            ValueRef::L(list) => {
                self.bytes.extend_from_slice(b"{\"L\":");
                let mut left = list.len();
                self.list(list.iter_as(), |out, value| {
                    out.value(value, below);
                    left -= 1;
                });
                self.is_damaged |= left > 0;
                self.bytes.push(b'}');
            }
            ValueRef::Ss(set) | ValueRef::Ns(set) | ValueRef::Bs(set) => {
                self.bytes.push(b'{');
                self.name(value.type_name());
                let mut left = set.len();
                self.list(set.iter_as(), |out, element| {
                    out.element(element);
                    left -= 1;
                });
                self.is_damaged |= left > 0;
                self.bytes.push(b'}');
            }
        }
    }

    /// An element of a set: a value without its type.
    fn element(&mut self, element: ValueRef<'_, [u8]>) {
        match element {
            ValueRef::S(text) => {
                self.bytes.push(b'"');
                escape(text, &mut self.bytes);
                self.bytes.push(b'"');
            }
            ValueRef::N(number) => {
                self.bytes.push(b'"');
                number.write_decimal(&mut self.bytes);
                self.bytes.push(b'"');
            }
            ValueRef::B(bytes) => self.base64(bytes),
            _ => self.is_damaged = true,
        }
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

    /// A map of attribute values in the tree form: a key to go on from, or a key not processed.
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
        let mut out = Out::with_capacity(0);
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
        let mut out = Out::with_capacity(0);
        out.item(&cut);
        assert!(out.finish().is_err());
    }
}
