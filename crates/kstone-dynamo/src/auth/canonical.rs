//! The canonical form of a request, which its signature covers.

use sha2::{Digest, Sha256};

use super::{Head, hex, sha256};
use crate::http::Headers;

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
    encode(head.path, true, &mut text);
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
    let mut encoded: Vec<(Vec<u8>, Vec<u8>)> = query
        .iter()
        .filter(|(name, _)| !(in_query && name == "X-Amz-Signature"))
        .map(|(name, value)| {
            let (mut name_out, mut value_out) = (Vec::new(), Vec::new());
            encode(name, false, &mut name_out);
            encode(value, false, &mut value_out);
            (name_out, value_out)
        })
        .collect();
    encoded.sort();
    for (at, (name, value)) in encoded.iter().enumerate() {
        if at > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(name);
        out.push(b'=');
        out.extend_from_slice(value);
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

/// Percent-encodes all characters that are not unreserved; in a path the slash is kept as well.
fn encode(text: &str, is_path: bool, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || (is_path && byte == b'/') {
            out.push(byte);
        } else {
            out.extend_from_slice(&[
                b'%',
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]);
        }
    }
}

/// Undoes percent-encoding. A `%` without two hexadecimal digits is kept.
fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (byte, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                rest = after.get(2..).unwrap_or(&[]);
            }
            _ => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
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
