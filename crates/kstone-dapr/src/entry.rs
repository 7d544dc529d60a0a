//! Conversion between a key's value with its settings and the item that stores them.

use bytes::Bytes;
use kstone_ports::value::{Item, Value};

use crate::etag::Etag;
use crate::key::ItemKey;

pub(crate) const PK: &str = "pk";
pub(crate) const SK: &str = "sk";
pub(crate) const VALUE: &str = "value";
pub(crate) const ETAG: &str = "etag";
pub(crate) const TTL: &str = "ttl";

/// The state of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The value, mostly JSON.
    pub value: Bytes,
    /// Which state of the key this is.
    pub etag: Etag,
    /// The second since 1970 at which it expires, if it does.
    pub expires_at_s: Option<u64>,
}

/// When an item expires, as its attribute `ttl` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// No attribute: the catalogue's default applies, if there is one.
    Default,
    /// At this second since 1970.
    AtSecond(u64),
    /// Never, even if the catalogue has a default.
    Never,
}

/// The item that stores a value. Text is stored as text, so that it is readable at every door.
pub(crate) fn item(item_key: &ItemKey, value: Bytes, etag: u64, expiry: Expiry) -> Item {
    let value = match String::from_utf8(value.into()) {
        Ok(text) => Value::S(text),
        Err(not_text) => Value::B(not_text.into_bytes().into()),
    };
    let item = item_key.to_item().with(VALUE, value).with(ETAG, etag);
    match expiry {
        Expiry::AtSecond(second) => item.with(TTL, second),
        Expiry::Never => item.with(TTL, Value::Null),
        Expiry::Default => item,
    }
}

/// The state that an item stores, unless it has expired.
pub(crate) fn read(item: Item, now_ms: u64) -> Option<Entry> {
    is_live(&item, now_ms).then(|| {
        let (etag, expires_at_s) = (Etag::of(&item), expires_at_s(&item));
        Entry { etag, value: value(item), expires_at_s }
    })
}

/// Whether an item has not expired.
pub(crate) fn is_live(item: &Item, now_ms: u64) -> bool {
    expires_at_s(item).is_none_or(|second| second.saturating_mul(1000) > now_ms)
}

fn expires_at_s(item: &Item) -> Option<u64> {
    match item.get(TTL) {
        Some(Value::N(second)) => {
            second.to_u64().or_else(|| Some(second.to_f64() as u64)).filter(|second| *second > 0)
        }
        _ => None,
    }
}

/// The value as this door stored it, or the content of an item of another door as JSON.
fn value(mut item: Item) -> Bytes {
    match item.remove(VALUE) {
        Some(Value::S(text)) => text.into(),
        Some(Value::B(bytes)) => bytes,
        Some(other) => other.to_json().to_string().into(),
        None => {
            for name in [PK, SK, ETAG, TTL] {
                item.remove(name);
            }
            item.to_json().to_string().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item_key() -> ItemKey {
        ItemKey { pk: "student:s1".to_owned(), sk: "mastery:2026-01-14".to_owned() }
    }

    #[test]
    fn a_value_comes_back_byte_for_byte() {
        for value in [&b"{\"a\": 1.0}"[..], b"", b"\"x\"", b"\xff\x00", "\u{e9}".as_bytes()] {
            let item = item(&item_key(), Bytes::copy_from_slice(value), 7, Expiry::AtSecond(9));
            let entry = read(item, 8_999).unwrap();
            assert_eq!(&entry.value[..], value);
            assert_eq!(entry.expires_at_s, Some(9));
        }
    }

    #[test]
    fn an_item_whose_second_has_come_is_absent() {
        let item = item(&item_key(), Bytes::from_static(b"1"), 7, Expiry::AtSecond(9));
        assert!(read(item.clone(), 8_999).is_some());
        assert_eq!(read(item, 9_000), None);
    }

    #[test]
    fn what_another_door_put_is_read_as_json() {
        let fields = item_key().to_item().with("score", 1).with("level", "expert");
        let entry = read(fields, 0).unwrap();
        assert_eq!(entry.value, "{\"level\":\"expert\",\"score\":1}");
        let map = Value::M(Item::new().with("a", true));
        assert_eq!(read(item_key().to_item().with(VALUE, map), 0).unwrap().value, "{\"a\":true}");
    }
}
