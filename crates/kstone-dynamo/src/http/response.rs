//! HTTP responses, with the headers that AWS clients read.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use kstone_core::env::{Random as _, SeededRandom};

use super::status::Status;
use crate::error::Fault;
use crate::operations;
use crate::wire;

pub(super) const JSON_1_0: &str = "application/x-amz-json-1.0";
pub(super) const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

/// Below this a packed body saves less than it costs.
const PACK_BYTES_MIN: usize = 1024;

/// Above this a body is packed beside the executor.
const PACK_INLINE_BYTES_MAX: usize = 64 * 1024;

/// An answer, whose body is sent behind its head.
#[derive(Debug)]
pub(super) struct HttpResponse {
    status: Status,
    content_type: &'static str,
    pub(super) body: Vec<u8>,
    is_packed: bool,
    /// Whether the connection ends behind it.
    pub(super) closes: bool,
}

impl HttpResponse {
    /// An answer in the protocol's JSON.
    pub(super) fn json(status: Status, body: Vec<u8>, content_type: &'static str) -> Self {
        HttpResponse { status, content_type, body, is_packed: false, closes: false }
    }

    /// The answer of an operation, packed if the client may like that.
    pub(super) async fn packed(body: Vec<u8>, content_type: &'static str) -> Self {
        if body.len() < PACK_BYTES_MIN {
            return HttpResponse::json(Status::Ok, body, content_type);
        }
        let packed = match body.len() > PACK_INLINE_BYTES_MAX {
            true => operations::run_blocking(move || pack(body)).await,
            false => Ok(pack(body)),
        };
        match packed {
            Ok((body, is_packed)) => {
                HttpResponse { is_packed, ..HttpResponse::json(Status::Ok, body, content_type) }
            }
            Err(failed) => HttpResponse::fault(&failed, content_type),
        }
    }

    /// An error.
    pub(super) fn fault(fault: &Fault, content_type: &'static str) -> Self {
        HttpResponse::json(fault.status(), fault.body(), content_type)
    }

    /// A plain text.
    pub(super) fn text(status: Status, text: &str) -> Self {
        HttpResponse::json(status, text.as_bytes().to_vec(), TEXT)
    }

    /// What AWS answers to what is not this protocol at all.
    pub(super) fn not_found() -> Self {
        HttpResponse::text(Status::NotFound, "<UnknownOperationException/>\n")
    }

    /// The same answer, after which the connection ends.
    #[must_use]
    pub(super) fn closing(self) -> Self {
        HttpResponse { closes: true, ..self }
    }

    /// Keeps the memory of the body for answers to come.
    pub(super) fn give_back(self) {
        wire::give_back(self.body);
    }

    /// Writes the head.
    pub(super) fn write_head(&self, manner: &ResponseHeaders, out: &mut Vec<u8>) {
        out.reserve(320);
        out.extend_from_slice(if manner.is_http_1_0 { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
        out.extend_from_slice(self.status.line().as_bytes());
        out.extend_from_slice(b"\r\nx-amzn-requestid: ");
        out.extend_from_slice(&manner.request_id);
        // Over the bytes as they are sent: packed, if they are.
        out.extend_from_slice(b"\r\nx-amz-crc32: ");
        write_decimal(crc32fast::hash(&self.body).into(), out);
        out.extend_from_slice(b"\r\ncontent-type: ");
        out.extend_from_slice(self.content_type.as_bytes());
        if self.is_packed {
            out.extend_from_slice(b"\r\ncontent-encoding: gzip");
        }
        out.extend_from_slice(b"\r\ncontent-length: ");
        write_decimal(self.body.len() as u64, out);
        if self.closes {
            out.extend_from_slice(b"\r\nconnection: close");
        } else if manner.is_http_1_0 {
            out.extend_from_slice(b"\r\nconnection: keep-alive");
        }
        out.extend_from_slice(b"\r\ndate: ");
        out.extend_from_slice(&manner.date);
        out.extend_from_slice(b"\r\n\r\n");
    }
}

/// What the head of an answer says that does not depend on the answer.
#[derive(Debug)]
pub(super) struct ResponseHeaders {
    /// The client speaks no later version.
    pub(super) is_http_1_0: bool,
    pub(super) request_id: [u8; 52],
    pub(super) date: [u8; 29],
}

/// 52 characters, as AWS gives them: 260 random bits.
pub(super) fn request_id(ids: &SeededRandom) -> [u8; 52] {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHIJKLMNOPQRSTUV";
    // Two at a time.
    const PAIRS: [[u8; 2]; 1024] = {
        let mut pairs = [[0; 2]; 1024];
        let mut at = 0;
        while at < pairs.len() {
            pairs[at] = [DIGITS[at & 31], DIGITS[at >> 5]];
            at += 1;
        }
        pairs
    };
    let mut id = [0; 52];
    for part in id.chunks_mut(12) {
        let mut bits = ids.next_u64();
        for pair in part.as_chunks_mut::<2>().0 {
            *pair = PAIRS[(bits & 1023) as usize];
            bits >>= 10;
        }
    }
    id
}

fn write_decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The date of answers, which is written once a second.
#[derive(Debug)]
pub(super) struct Dates {
    second: u64,
    text: [u8; 29],
}

impl Dates {
    pub(super) fn new() -> Self {
        Dates { second: u64::MAX, text: [b' '; 29] }
    }

    /// The date as HTTP has it: `Sun, 30 Aug 2015 12:36:00 GMT`.
    pub(super) fn at(&mut self, now_ms: u64) -> [u8; 29] {
        let second = now_ms / 1000;
        if second != self.second {
            self.second = second;
            let time = i64::try_from(second).ok().and_then(|it| Timestamp::from_second(it).ok());
            let text = time
                .and_then(|time| DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok());
            if let Some(text) = text.and_then(|text| text.as_bytes().try_into().ok()) {
                self.text = text;
            }
        }
        self.text
    }
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
pub(super) fn accepts_gzip(accepted: &[u8]) -> bool {
    let Ok(accepted) = std::str::from_utf8(accepted) else { return false };
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
        assert!(one.iter().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()));
    }

    #[test]
    fn numbers_are_written_as_numbers() {
        for number in [0, 9, 10, 4_294_967_295, u64::MAX] {
            let mut out = Vec::new();
            write_decimal(number, &mut out);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }

    #[test]
    fn the_date_moves_on_with_the_seconds() {
        let mut dates = Dates::new();
        assert_eq!(&dates.at(1_440_938_160_999), b"Sun, 30 Aug 2015 12:36:00 GMT");
        assert_eq!(&dates.at(1_440_938_161_000), b"Sun, 30 Aug 2015 12:36:01 GMT");
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
            assert_eq!(accepts_gzip(accepted.as_bytes()), answer, "{accepted}");
        }
    }
}
