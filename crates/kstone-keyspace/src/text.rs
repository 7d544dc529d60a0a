//! Characters of keys: which bytes an id may have, and how other text is escaped.
//!
//! `:` ends a segment, so no value may hold one as it is. Ids refuse it; free text (an IPv6 address,
//! a path) is percent-escaped: each byte that no id may have is `%` and two capital hex digits. There
//! is one escaped form of each text, so equal texts are equal keys.

use percent_encoding::{
    AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode, utf8_percent_encode,
};

/// Every ASCII character that no id may have.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'@').remove(b'-');

/// How long an id or a free text (before escaping) may be.
pub(crate) const VALUE_BYTES_MAX: usize = 128;

const ID_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let letter = byte as u8;
        table[byte] = letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'.' | b'@' | b'-');
        byte += 1;
    }
    table
};

pub(crate) fn is_id_byte(byte: u8) -> bool {
    ID_BYTES[usize::from(byte)]
}

/// Whether it is an id: 1 to 128 of `A-Z a-z 0-9 _ . @ -`.
pub(crate) fn is_id(value: &[u8]) -> bool {
    (1..=VALUE_BYTES_MAX).contains(&value.len()) && value.iter().all(|byte| is_id_byte(*byte))
}

/// Adds a text to a key, escaped.
pub(crate) fn escape_into(text: &str, key: &mut String) {
    key.extend(utf8_percent_encode(text, ESCAPED));
}

/// Whether `escaped` is the one escaped form of a text: bytes that need no escape have none.
fn is_form_of(escaped: &[u8], text: &[u8]) -> bool {
    percent_encode(text, ESCAPED).flat_map(str::as_bytes).eq(escaped)
}

/// Whether it is the escaped form of 1 to 128 bytes of UTF-8. Does not allocate.
pub(crate) fn is_escaped(escaped: &[u8]) -> bool {
    if is_id(escaped) {
        return true;
    }
    let (mut text, mut length) = ([0; VALUE_BYTES_MAX], 0);
    for byte in percent_decode(escaped) {
        let Some(space) = text.get_mut(length) else { return false };
        *space = byte;
        length += 1;
    }
    let text = &text[..length];
    length > 0 && is_form_of(escaped, text) && std::str::from_utf8(text).is_ok()
}

/// The text that was escaped.
pub(crate) fn unescaped(escaped: &[u8]) -> Option<String> {
    let text = percent_decode(escaped).decode_utf8().ok()?;
    let is_text =
        (1..=VALUE_BYTES_MAX).contains(&text.len()) && is_form_of(escaped, text.as_bytes());
    is_text.then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut key = String::new();
        escape_into(text, &mut key);
        key
    }

    #[test]
    fn an_address_with_colons_is_escaped_and_read_back() {
        assert_eq!(escaped("2001:db8::1"), "2001%3Adb8%3A%3A1");
        assert_eq!(unescaped(b"2001%3Adb8%3A%3A1").as_deref(), Some("2001:db8::1"));
        assert_eq!(escaped("100%"), "100%25");
        assert_eq!(unescaped(escaped("straße/ü").as_bytes()).as_deref(), Some("straße/ü"));
    }

    #[test]
    fn there_is_one_escaped_form_only() {
        for wrong in ["", "%", "%3", "%3a", "%41", "a b", "%ZZ", "%C3", "%+1"] {
            assert!(!is_escaped(wrong.as_bytes()), "{wrong}");
            assert_eq!(unescaped(wrong.as_bytes()), None, "{wrong}");
        }
        assert!(is_escaped("%C3%A4".as_bytes()));
    }

    #[test]
    fn a_text_is_at_most_128_bytes_before_it_is_escaped() {
        assert!(is_escaped(escaped(&":".repeat(128)).as_bytes()));
        assert!(!is_escaped(escaped(&":".repeat(129)).as_bytes()));
        assert_eq!(unescaped(escaped(&":".repeat(129)).as_bytes()), None);
    }

    #[test]
    fn an_id_has_no_byte_that_means_something_in_a_key_or_a_glob() {
        assert!(is_id(b"student_12345") && is_id(b"user@email.com") && is_id(b"a.b-C"));
        for wrong in ["", "a:b", "a*", "a?", "[a", "{a}", "a\n", "a b", "\u{e4}", "a%3A"] {
            assert!(!is_id(wrong.as_bytes()), "{wrong}");
        }
        assert!(is_id(&[b'x'; 128]) && !is_id(&[b'x'; 129]));
    }
}
