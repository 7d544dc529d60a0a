//! Cursors: where a list goes on, as text in an address.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kstone_ports::value::{Item, Value};

use crate::pages::links;

/// Any bytes.
pub(super) fn of_bytes(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes; `None` of text that is no cursor.
pub(super) fn to_bytes(cursor: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(cursor).ok()
}

/// The key of an item: names with types and values.
pub(super) fn of_key(key: &Item) -> String {
    let attributes: Vec<[String; 3]> = key
        .iter()
        .filter_map(|(name, value)| {
            let (kind, text) = match value {
                Value::S(text) => ("S", text.clone()),
                Value::N(number) => ("N", number.to_string()),
                Value::B(bytes) => ("B", links::text_of(bytes)),
                // No key has any other.
                _ => return None,
            };
            Some([name.to_owned(), kind.to_owned(), text])
        })
        .collect();
    of_bytes(serde_json::json!(attributes).to_string().as_bytes())
}

/// The key; `None` of text that is no cursor.
pub(super) fn to_key(cursor: &str) -> Option<Item> {
    let attributes: Vec<[String; 3]> = serde_json::from_slice(&to_bytes(cursor)?).ok()?;
    let mut key = Item::new();
    for [name, kind, text] in attributes {
        let value = match kind.as_str() {
            "S" => Value::S(text),
            "N" => Value::N(text.parse().ok()?),
            "B" => Value::B(links::bytes_of(&text).into()),
            _ => return None,
        };
        key.insert(name, value);
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_into_an_address_and_comes_back() {
        let key = Item::new()
            .with("pk", "a/b&c")
            .with("sk", Value::B(vec![0, 255, b'\\'].into()))
            .with("n", 12_u64);
        assert_eq!(to_key(&of_key(&key)), Some(key));
        for bad in ["", "!", "AAAA", &of_bytes(b"[[\"a\",\"X\",\"b\"]]")] {
            assert_eq!(to_key(bad), None, "{bad}");
        }
    }
}
