//! Keys as text: on the command line, in JSON lines, in messages.
//!
//! A key is bytes, and mostly UTF-8. One that is not appears as hexadecimal digits in a field of
//! its own (`pk_hex`, `sk_hex`), so that no text can be taken for it.

use std::ffi::OsStr;

use anyhow::{Result, anyhow};
use kstone_core::Key;

use crate::json;

/// A key (or a part of one) as it was typed; with `hex`, as hexadecimal digits.
pub fn typed(arg: &OsStr, hex: bool) -> Result<Vec<u8>> {
    let bytes = arg.as_encoded_bytes();
    if !hex {
        return Ok(bytes.to_vec());
    }
    from_hex(bytes)
}

/// A whole key as it was typed.
pub fn typed_key(pk: &OsStr, sk: Option<&OsStr>, hex: bool) -> Result<Key> {
    let pk = typed(pk, hex)?;
    Ok(match sk {
        None => Key::new(pk),
        Some(sk) => Key::with_sk(pk, typed(sk, hex)?),
    })
}

/// Bytes from hexadecimal digits.
pub fn from_hex(digits: &[u8]) -> Result<Vec<u8>> {
    hex::decode(digits).map_err(|_| {
        anyhow!(
            "`{}` is not bytes in hexadecimal: give two digits (0-9, a-f) for each byte",
            String::from_utf8_lossy(digits)
        )
    })
}

/// `"name":"text"`, or `"name_hex":"ff00"` if the bytes are not UTF-8.
pub fn field(name: &str, bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("\"{name}\":{}", json::quote(text)),
        Err(_) => format!("\"{name}_hex\":\"{}\"", hex::encode(bytes)),
    }
}

/// The fields of a key: `"pk":"user#1","sk":"post#001"`; without `sk` if the key has none.
pub fn fields(key: &Key) -> String {
    let mut fields = field("pk", &key.pk);
    if let Some(sk) = &key.sk {
        fields.push(',');
        fields.push_str(&field("sk", sk));
    }
    fields
}

/// The key for a message: `user#1 post#001`, control characters and foreign bytes escaped.
pub fn shown(key: &Key) -> String {
    let part = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => part(bytes),
    };
    match &key.sk {
        None => text(&key.pk),
        Some(sk) => format!("{} {}", text(&key.pk), text(sk)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_and_bytes_turn_into_each_other() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(hex::encode(&bytes).as_bytes()).unwrap(), bytes);
        assert_eq!(from_hex(b"FFa0").unwrap(), [0xff, 0xa0]);
        assert!(from_hex(b"f").is_err() && from_hex(b"zz").is_err());
    }

    #[test]
    fn a_key_that_is_not_text_has_a_field_of_its_own() {
        assert_eq!(
            fields(&Key::with_sk("user \"1\"", vec![0xff, 0])),
            r#""pk":"user \"1\"","sk_hex":"ff00""#
        );
        assert_eq!(shown(&Key::with_sk("a\n", vec![0xff])), r"a\n \xff");
    }
}
