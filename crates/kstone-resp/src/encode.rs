//! Encodes replies as RESP2 or RESP3.

use kstone_redis::{Mark, Sink};

/// A sink that writes RESP.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    pub(crate) bytes: Vec<u8>,
    /// Whether the client asked for RESP3.
    pub(crate) resp3: bool,
}

impl Encoder {
    fn number(&mut self, sign: u8, number: i64) {
        self.bytes.push(sign);
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        let mut left = number.unsigned_abs();
        loop {
            at -= 1;
            if let Some(digit) = digits.get_mut(at) {
                *digit = b'0' + (left % 10) as u8;
            }
            left /= 10;
            if left == 0 {
                break;
            }
        }
        if number < 0 {
            self.bytes.push(b'-');
        }
        self.bytes.extend_from_slice(digits.get(at..).unwrap_or_default());
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn head(&mut self, resp3: u8, len: usize) {
        self.number(if self.resp3 { resp3 } else { b'*' }, len as i64);
    }

    fn fill(&mut self, mark: Mark, resp3: u8, len: usize) {
        let tail = self.bytes.split_off(mark.0);
        self.head(resp3, len);
        self.bytes.extend_from_slice(&tail);
    }
}

impl Sink for Encoder {
    fn simple(&mut self, text: &str) {
        self.bytes.push(b'+');
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }
    fn error(&mut self, message: &[u8]) {
        self.bytes.push(b'-');
        self.bytes.extend_from_slice(message);
        self.bytes.extend_from_slice(b"\r\n");
    }
    fn integer(&mut self, number: i64) {
        self.number(b':', number);
    }
    fn bulk(&mut self, bytes: &[u8]) {
        self.number(b'$', bytes.len() as i64);
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }
    fn null(&mut self) {
        self.bytes.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }
    fn null_array(&mut self) {
        self.bytes.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }
    fn array(&mut self, len: usize) {
        self.number(b'*', len as i64);
    }
    fn map(&mut self, len: usize) {
        self.head(b'%', if self.resp3 { len } else { 2 * len });
    }
    fn set(&mut self, len: usize) {
        self.head(b'~', len);
    }
    fn push(&mut self, len: usize) {
        self.head(b'>', len);
    }
    fn double(&mut self, number: f64) {
        let text = kstone_redis::double_text(number);
        if self.resp3 {
            self.bytes.push(b',');
            self.bytes.extend_from_slice(text.as_bytes());
            self.bytes.extend_from_slice(b"\r\n");
        } else {
            self.bulk(text.as_bytes());
        }
    }
    fn boolean(&mut self, value: bool) {
        match (self.resp3, value) {
            (true, true) => self.bytes.extend_from_slice(b"#t\r\n"),
            (true, false) => self.bytes.extend_from_slice(b"#f\r\n"),
            (false, value) => self.integer(value.into()),
        }
    }
    fn big_number(&mut self, digits: &str) {
        if self.resp3 {
            self.bytes.push(b'(');
            self.bytes.extend_from_slice(digits.as_bytes());
            self.bytes.extend_from_slice(b"\r\n");
        } else {
            self.bulk(digits.as_bytes());
        }
    }
    fn verbatim(&mut self, format: &str, text: &[u8]) {
        if self.resp3 {
            self.number(b'=', text.len() as i64 + 4);
            self.bytes.extend_from_slice(format.as_bytes());
            self.bytes.push(b':');
            self.bytes.extend_from_slice(text);
            self.bytes.extend_from_slice(b"\r\n");
        } else {
            self.bulk(text);
        }
    }
    fn later(&mut self) -> Mark {
        Mark(self.bytes.len())
    }
    fn array_at(&mut self, mark: Mark, len: usize) {
        self.fill(mark, b'*', len);
    }
    fn map_at(&mut self, mark: Mark, len: usize) {
        self.fill(mark, b'%', if self.resp3 { len } else { 2 * len });
    }
    fn set_at(&mut self, mark: Mark, len: usize) {
        self.fill(mark, b'~', len);
    }
    fn speak(&mut self, resp3: bool) {
        self.resp3 = resp3;
    }
    fn position(&self) -> Mark {
        Mark(self.bytes.len())
    }
    fn rewind(&mut self, to: Mark) {
        self.bytes.truncate(to.0);
    }
}
