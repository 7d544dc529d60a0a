//! Builds every address of the console; keys of any bytes are text in them.

use std::fmt::Write as _;

use kstone_keyspace::index::Location;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What may stand in a part of an address as it is, beside letters and digits.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

/// Text in a part of an address, with everything escaped that could mean something there.
pub(crate) fn part(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// Bytes as text that reads back: what is no printable UTF-8 is `\x` and two digits, and `\` is `\\`.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                letter if letter.is_control() => {
                    let mut utf8 = [0; 4];
                    for byte in letter.encode_utf8(&mut utf8).bytes() {
                        let _ = write!(text, "\\x{byte:02x}");
                    }
                }
                letter => text.push(letter),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The bytes of such a text. A `\` that begins nothing is itself.
pub(crate) fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after.strip_prefix('x').and_then(|digits| digits.get(..2));
        rest = match digits.and_then(|digits| hex::decode(digits).ok()) {
            Some(byte) => {
                bytes.extend(byte);
                after.get(3..).unwrap_or_default()
            }
            None => {
                bytes.push(b'\\');
                after.strip_prefix('\\').unwrap_or(after)
            }
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

pub(crate) fn pattern(full_name: &str) -> String {
    format!("/keyspaces/{}", part(full_name))
}

pub(crate) fn person(id: &str, tenant: Option<&str>) -> String {
    match tenant {
        Some(tenant) => format!("/people/{}?tenant={}", part(id), part(tenant)),
        None => format!("/people/{}", part(id)),
    }
}

pub(crate) fn export(id: &str, tenant: Option<&str>) -> String {
    let tenant = tenant.map(|tenant| format!("?tenant={}", part(tenant))).unwrap_or_default();
    format!("/people/{}/export{tenant}", part(id))
}

pub(crate) fn erasure(id: &str) -> String {
    format!("/erasures/{}", part(id))
}

pub(crate) fn table(name: &str) -> String {
    format!("/data/tables/{}", part(name))
}

/// `sk` if the table has a sort key.
pub(crate) fn item(table: &str, pk: &[u8], sk: Option<&[u8]>) -> String {
    let sk = sk.map(|sk| format!("&sk={}", part(&text_of(sk)))).unwrap_or_default();
    format!("/data/tables/{}/item?pk={}{sk}", part(table), part(&text_of(pk)))
}

pub(crate) fn keys(db: u8, prefix: &str) -> String {
    format!("/data/keys?db={db}&prefix={}", part(prefix))
}

pub(crate) fn key(db: u8, key: &[u8]) -> String {
    format!("/data/key?db={db}&key={}", part(&text_of(key)))
}

/// Where data of a person is.
pub(crate) fn location(location: &Location) -> String {
    match location {
        Location::Key { db, key: name } | Location::Member { db, key: name, .. } => key(*db, name),
        Location::Item { table, pk, sk } => item(table, pk, sk.as_deref()),
    }
}

pub(crate) fn learner(id: &str) -> String {
    format!("/learn/learners/{}", part(id))
}

pub(crate) fn school(school: &str) -> String {
    format!("/learn/schools/{}", part(school))
}

pub(crate) fn class(school: &str, class: &str) -> String {
    format!("/learn/classes/{}/{}", part(school), part(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_turn_into_text_and_back_whatever_they_are() {
        let cases: [&[u8]; 7] =
            [b"student:s1", b"", b"a\\b", b"\\x41", b"\x00\xff\n", "ümläut".as_bytes(), b"tail\\"];
        for bytes in cases {
            assert_eq!(bytes_of(&text_of(bytes)), bytes, "{}", text_of(bytes));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes_of(&text_of(&all)), all);
        assert_eq!(text_of(b"\x00\xff\n\\"), "\\x00\\xff\\x0a\\\\");
        assert_eq!(bytes_of("C:\\dir"), b"C:\\dir", "a person who types a backslash means it");
    }

    #[test]
    fn nothing_in_an_address_can_end_the_part_that_it_is_in() {
        assert_eq!(part("a/b?c&d=e#f\"<'%"), "a%2Fb%3Fc%26d%3De%23f%22%3C%27%25");
        assert_eq!(person("s 1", Some("a&b")), "/people/s%201?tenant=a%26b");
        assert_eq!(item("t", b"p\xff", Some(b"s")), "/data/tables/t/item?pk=p%5Cxff&sk=s");
    }
}
