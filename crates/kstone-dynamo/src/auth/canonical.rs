//! The canonical form of a request, which its signature covers.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::{Digest, Sha256};

use super::{Head, hex, sha256};
use crate::http::Headers;

/// What is encoded in a query string: all but the unreserved characters.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// In a path the slash is not encoded either.
const PATH: &AsciiSet = &QUERY.remove(b'/');

/// The parameters of a query string, decoded.
pub(super) fn pairs(query: &str) -> Vec<(String, String)> {
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    let split = parameters.map(|one| one.split_once('=').unwrap_or((one, "")));
    split.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

/// The hash of the canonical request.
pub(super) fn hash(head: &Head<'_>, body: &[u8], signed_headers: &str, in_query: bool) -> [u8; 32] {
    let mut text = Vec::with_capacity(1024);
    text.extend_from_slice(head.method.as_bytes());
    text.push(b'\n');
    // The path is percent-encoded once more; this protocol has no path other than `/`.
    text.extend(utf8_percent_encode(head.path, PATH).flat_map(str::as_bytes));
    text.push(b'\n');
    write_query(&head.query, in_query, &mut text);
    text.push(b'\n');
    for name in signed_headers.split(';') {
        text.extend_from_slice(name.as_bytes());
        text.push(b':');
        write_header(head.headers, name, &mut text);
        text.push(b'\n');
    }
    text.push(b'\n');
    text.extend_from_slice(signed_headers.as_bytes());
    text.push(b'\n');
    text.extend_from_slice(&hex(&sha256(body)));
    Sha256::digest(&text).into()
}

fn write_query(query: &[(String, String)], in_query: bool, out: &mut Vec<u8>) {
    let mut encoded: Vec<[String; 2]> = query
        .iter()
        .filter(|(name, _)| !(in_query && name == "X-Amz-Signature"))
        .map(|(name, value)| [name, value].map(|it| utf8_percent_encode(it, QUERY).to_string()))
        .collect();
    encoded.sort();
    for (at, [name, value]) in encoded.iter().enumerate() {
        if at > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        out.extend_from_slice(value.as_bytes());
    }
}

/// Writes the values of a header, trimmed, with each run of spaces reduced to one.
fn write_header(headers: Headers<'_>, name: &str, out: &mut Vec<u8>) {
    for (at, value) in headers.get_all(name).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let value = value.trim_ascii();
        let mut after_space = false;
        for byte in value {
            if *byte != b' ' || !after_space {
                out.push(*byte);
            }
            after_space = *byte == b' ';
        }
    }
}

/// Undoes percent-encoding. A `%` without two hexadecimal digits is kept.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_string_is_decoded_and_encoded_again() {
        let parameters = pairs("b=%2Fx&a=1&a=%zz&c");
        let want = [("b", "/x"), ("a", "1"), ("a", "%zz"), ("c", "")];
        assert_eq!(parameters, want.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let mut out = Vec::new();
        write_query(&parameters, false, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "a=%25zz&a=1&b=%2Fx&c=");
    }
}
