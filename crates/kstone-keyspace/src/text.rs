//! The letters of keys: which bytes an id may have, and how a value with others is escaped.
//!
//! `:` ends a segment, so no value may hold one as it is. Ids refuse it; free text (an IPv6 address,
//! a path) is percent-escaped: each byte that no id may have is `%` and two capital hex digits. There
//! is one escaped form of each text, so equal texts are equal keys.

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
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        match is_id_byte(byte) {
            true => key.push(char::from(byte)),
            false => {
                key.push('%');
                key.push(char::from(HEX[usize::from(byte >> 4)]));
                key.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
}

/// Calls `each` with every byte of the text that was escaped; `None` when this is not the escaped
/// form of anything.
fn unescape(escaped: &[u8], mut each: impl FnMut(u8) -> Option<()>) -> Option<()> {
    let mut rest = escaped;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let byte = match (*first, after) {
            (b'%', [high, low, after @ ..]) => {
                rest = after;
                let byte = hex(*high)? << 4 | hex(*low)?;
                // A byte that needs no escape is not escaped: one form for each text.
                (!is_id_byte(byte)).then_some(byte)?
            }
            (byte, _) => is_id_byte(byte).then_some(byte)?,
        };
        each(byte)?;
    }
    Some(())
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Whether it is the escaped form of 1 to 128 bytes of UTF-8. Does not allocate.
pub(crate) fn is_escaped(escaped: &[u8]) -> bool {
    if is_id(escaped) {
        return true;
    }
    let mut text = [0; VALUE_BYTES_MAX];
    let mut length = 0;
    let whole = unescape(escaped, |byte| {
        *text.get_mut(length)? = byte;
        length += 1;
        Some(())
    });
    whole.is_some() && length > 0 && std::str::from_utf8(&text[..length]).is_ok()
}

/// The text that was escaped.
pub(crate) fn unescaped(escaped: &[u8]) -> Option<String> {
    let mut text = Vec::with_capacity(escaped.len());
    unescape(escaped, |byte| {
        text.push(byte);
        (text.len() <= VALUE_BYTES_MAX).then_some(())
    })?;
    String::from_utf8(text).ok().filter(|text| !text.is_empty())
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
