//! The answers, with the headers that AWS clients look at.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::Full;
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use hyper::{Response, StatusCode};
use kstone_core::env::{Random as _, SeededRandom};

use crate::error::Fault;
use crate::operations;

pub(crate) type Answer = Response<Full<Bytes>>;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");
const CHECKSUM: HeaderName = HeaderName::from_static("x-amz-crc32");
pub(super) const JSON_1_0: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.0");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// Below this a packed body saves less than it costs.
const PACK_BYTES_MIN: usize = 1024;

/// Above this a body is packed beside the executor.
const PACK_INLINE_BYTES_MAX: usize = 64 * 1024;

/// The answer of an operation, packed if the client may like that.
pub(super) async fn json_packed(
    ids: &SeededRandom,
    body: Vec<u8>,
    content_type: HeaderValue,
    may_pack: bool,
) -> Answer {
    if !may_pack || body.len() < PACK_BYTES_MIN {
        return json(ids, StatusCode::OK, body, content_type);
    }
    let packed = match body.len() > PACK_INLINE_BYTES_MAX {
        true => operations::beside(move || pack(body)).await,
        false => Ok(pack(body)),
    };
    match packed {
        Ok((body, is_packed)) => {
            let mut answer = json(ids, StatusCode::OK, body, content_type);
            if is_packed {
                answer.headers_mut().insert(CONTENT_ENCODING, GZIP);
            }
            answer
        }
        Err(failed) => fault(ids, &failed, content_type),
    }
}

/// An answer in the protocol's JSON.
pub(super) fn json(
    ids: &SeededRandom,
    status: StatusCode,
    body: Vec<u8>,
    content_type: HeaderValue,
) -> Answer {
    with_body(ids, status, body.into(), content_type)
}

/// An error.
pub(super) fn fault(ids: &SeededRandom, fault: &Fault, content_type: HeaderValue) -> Answer {
    json(ids, fault.status(), fault.body(), content_type)
}

/// A plain text.
pub(super) fn text(ids: &SeededRandom, status: StatusCode, text: impl Into<Bytes>) -> Answer {
    with_body(ids, status, text.into(), TEXT)
}

/// What AWS answers to what is not this protocol at all.
pub(super) fn not_found(ids: &SeededRandom) -> Answer {
    text(ids, StatusCode::NOT_FOUND, "<UnknownOperationException/>\n")
}

/// The same answer, after which the connection ends.
pub(super) fn closing(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(CONNECTION, CLOSE);
    answer
}

fn with_body(
    ids: &SeededRandom,
    status: StatusCode,
    body: Bytes,
    content_type: HeaderValue,
) -> Answer {
    let mut headers = HeaderMap::with_capacity(6);
    headers.insert(REQUEST_ID, request_id(ids));
    // Over the bytes as they are sent: packed, if they are.
    headers.insert(CHECKSUM, HeaderValue::from(crc32fast::hash(&body)));
    headers.insert(CONTENT_TYPE, content_type);
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    answer
}

/// 52 characters, as AWS gives them: 260 random bits.
fn request_id(ids: &SeededRandom) -> HeaderValue {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHIJKLMNOPQRSTUV";
    let mut id = [0; 52];
    for part in id.chunks_mut(12) {
        let mut bits = ids.next_u64();
        for character in part {
            *character = DIGITS[(bits & 31) as usize];
            bits >>= 5;
        }
    }
    // Every digit is a character that headers may have.
    HeaderValue::from_bytes(&id).unwrap_or(CLOSE)
}

fn pack(body: Vec<u8>) -> (Vec<u8>, bool) {
    let mut packed = GzEncoder::new(Vec::with_capacity(body.len() / 2), Compression::fast());
    // Writing to memory does not fail; if it did, the body goes out as it is.
    match packed.write_all(&body).and_then(|()| packed.finish()) {
        Ok(packed) => (packed, true),
        Err(_) => (body, false),
    }
}

/// Whether the client unpacks gzip.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let Some(accepted) = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    accepted.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let is_refused = parts.any(|weight| {
            weight.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0))
        });
        is_gzip && !is_refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_are_52_letters_and_digits_and_differ() {
        let ids = SeededRandom::new(1);
        let [one, other] = [request_id(&ids), request_id(&ids)];
        assert_ne!(one, other);
        assert_eq!(one.len(), 52);
        assert!(one.as_bytes().iter().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()));
    }

    #[test]
    fn gzip_is_used_only_when_it_is_asked_for() {
        for (accepted, answer) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("identity", false),
            ("gzip;q=0", false),
            ("gzipped", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            assert_eq!(accepts_gzip(&headers), answer, "{accepted}");
        }
    }
}
