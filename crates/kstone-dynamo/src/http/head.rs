//! The head of a request: its first line and its headers, and what they say about where it ends.
//!
//! Two servers that disagree about where a request ends can be made to see different requests in
//! the same bytes. So what leaves any doubt is refused: a length that is given twice, or beside
//! chunks; a coding other than chunks; a line that ends in less than CR LF, or goes on in the next.

use std::mem::MaybeUninit;

use httparse::Header;

use super::status::Status;

/// Heads of real requests are about 1 KiB; a session token can add a few more.
pub(super) const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 100;

/// Room for the headers of a request, where they are found.
pub(crate) type Slots<'b> = [MaybeUninit<Header<'b>>; HEADERS_MAX];

/// Room without headers yet.
pub(crate) fn slots<'b>() -> Slots<'b> {
    [const { MaybeUninit::uninit() }; HEADERS_MAX]
}

/// The headers of a request in the order in which they came. Names are equal in any case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Headers<'a> {
    list: &'a [Header<'a>],
}

impl<'a> Headers<'a> {
    pub(crate) fn new(list: &'a [Header<'a>]) -> Self {
        Headers { list }
    }

    /// The first header of this name.
    pub(crate) fn get(self, name: &str) -> Option<&'a [u8]> {
        self.get_all(name).next()
    }

    /// All headers of this name.
    pub(crate) fn get_all(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let is_wanted = move |header: &&Header<'a>| header.name.eq_ignore_ascii_case(name);
        self.list.iter().filter(is_wanted).map(|header| header.value)
    }

    /// The first header of this name, if it is plain text.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
        let value = self.get(name).filter(|value| value.iter().all(is_plain))?;
        std::str::from_utf8(value).ok()
    }
}

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// It has so many bytes.
    Length(u64),
    Chunked,
}

/// A head, where it was read.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) headers: Headers<'a>,
    /// How many bytes it has.
    pub(super) bytes: usize,
    pub(super) framing: Framing,
    pub(super) is_http_1_0: bool,
    /// Whether the client would like to send more requests.
    pub(super) keeps_alive: bool,
    /// Whether the client waits for permission to send the body.
    pub(super) expects_continue: bool,
    pub(super) content_type: Option<&'a [u8]>,
    pub(super) content_encoding: Option<&'a [u8]>,
    pub(super) accept_encoding: Option<&'a [u8]>,
    pub(super) target: Option<&'a [u8]>,
}

impl<'a> Head<'a> {
    /// Reads the head at the front of the bytes; `None` if it goes on beyond them.
    ///
    /// # Errors
    /// What to answer to what is no head.
    pub(crate) fn read(
        bytes: &'a [u8],
        slots: &'a mut Slots<'a>,
    ) -> Result<Option<Head<'a>>, Status> {
        let mut request = httparse::Request::new(&mut []);
        let length = match request.parse_with_uninit_headers(bytes, slots) {
            Ok(httparse::Status::Complete(length)) if length <= HEAD_BYTES_MAX => length,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
            Ok(_) => return Err(Status::HeadTooLarge),
            Err(httparse::Error::TooManyHeaders) => return Err(Status::HeadTooLarge),
            Err(_) => return Err(Status::BadRequest),
        };
        let (Some(method), Some(target), Some(version)) =
            (request.method, request.path, request.version)
        else {
            return Err(Status::BadRequest);
        };
        if has_bare_line_feed(bytes.get(..length).unwrap_or(bytes)) {
            return Err(Status::BadRequest);
        }
        let (path, query) = split_target(target);
        let mut head = Head {
            method,
            path,
            query,
            headers: Headers::new(request.headers),
            bytes: length,
            framing: Framing::Length(0),
            is_http_1_0: version == 0,
            keeps_alive: version != 0,
            expects_continue: false,
            content_type: None,
            content_encoding: None,
            accept_encoding: None,
            target: None,
        };
        head.look_at_headers()?;
        Ok(Some(head))
    }

    /// Finds the headers that matter to every request, in one pass.
    fn look_at_headers(&mut self) -> Result<(), Status> {
        let mut length = None;
        let (mut is_chunked, mut is_last) = (false, false);
        for Header { name, value } in self.headers.list {
            let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
            // The first counts, if there are several.
            match name.len() {
                6 if is("expect") => {
                    self.expects_continue |=
                        value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
                }
                10 if is("connection") => is_last |= self.look_at_connection(value),
                12 if is("content-type") => self.content_type = self.content_type.or(Some(value)),
                12 if is("x-amz-target") => self.target = self.target.or(Some(value)),
                14 if is("content-length") => match (length, read_length(value)) {
                    (None, Some(read)) => length = Some(read),
                    _ => return Err(Status::BadRequest),
                },
                15 if is("accept-encoding") => {
                    self.accept_encoding = self.accept_encoding.or(Some(value));
                }
                16 if is("content-encoding") => {
                    self.content_encoding = self.content_encoding.or(Some(value));
                }
                17 if is("transfer-encoding") => {
                    if is_chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                        return Err(Status::BadRequest);
                    }
                    is_chunked = true;
                }
                _ => {}
            }
        }
        self.framing = match (is_chunked, length) {
            (false, length) => Framing::Length(length.unwrap_or(0)),
            // Before 1.1 there were no chunks, and who passes one on may not know them.
            (true, None) if !self.is_http_1_0 => Framing::Chunked,
            (true, _) => return Err(Status::BadRequest),
        };
        self.keeps_alive &= !is_last;
        // There was no waiting for permission either.
        self.expects_continue &= !self.is_http_1_0;
        Ok(())
    }

    /// Whether this is the client's last request, which counts whatever else it says.
    fn look_at_connection(&mut self, value: &[u8]) -> bool {
        let mut is_last = false;
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            is_last |= option.eq_ignore_ascii_case(b"close");
            self.keeps_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
        is_last
    }
}

/// Whether bytes that came after `looked_at` others can be the end of a head. Bytes that trickle in
/// are not worth reading all over again for each of them.
pub(super) fn may_end(bytes: &[u8], looked_at: usize) -> bool {
    let new = bytes.get(looked_at.saturating_sub(3)..).unwrap_or_default();
    let is_end = |at: usize| matches!(new.get(at + 1..), Some([b'\n', ..] | [b'\r', b'\n', ..]));
    looked_at == 0 || memchr::memchr_iter(b'\n', new).any(is_end)
}

/// A line that ends without CR. Without branches, so that the compiler takes many at a time.
fn has_bare_line_feed(head: &[u8]) -> bool {
    let after = head.get(1..).unwrap_or_default();
    let pairs = head.iter().zip(after);
    let found =
        pairs.fold(0, |found, (a, b)| found | (u8::from(*b == b'\n') & u8::from(*a != b'\r')));
    found != 0 || head.first() == Some(&b'\n')
}

/// Digits and nothing else.
fn read_length(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    if value.is_empty() || value.len() > 19 {
        return None;
    }
    value.iter().try_fold(0u64, |length, byte| {
        byte.is_ascii_digit().then(|| length * 10 + u64::from(byte - b'0'))
    })
}

/// The path and the query of `/path?query`, or of `http://host/path?query`, which a proxy is sent.
fn split_target(target: &str) -> (&str, Option<&str>) {
    let absolute = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"));
    let local = match absolute {
        None => target,
        Some(rest) => match rest.find(['/', '?']) {
            Some(at) if rest.as_bytes().get(at) == Some(&b'/') => rest.get(at..).unwrap_or("/"),
            Some(at) => return ("/", rest.get(at + 1..)),
            None => "/",
        },
    };
    match local.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (local, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<(Framing, bool)>, Status> {
        let mut slots = slots();
        let head = Head::read(text.as_bytes(), &mut slots)?;
        Ok(head.map(|head| (head.framing, head.keeps_alive)))
    }

    fn with_headers(headers: &str) -> Result<Option<(Framing, bool)>, Status> {
        read(&format!("POST / HTTP/1.1\r\nHost: x\r\n{headers}\r\n"))
    }

    #[test]
    fn a_request_ends_where_its_length_or_its_chunks_say() {
        assert_eq!(with_headers(""), Ok(Some((Framing::Length(0), true))));
        assert_eq!(with_headers("content-length: 12\r\n"), Ok(Some((Framing::Length(12), true))));
        let chunked = with_headers("Transfer-Encoding: Chunked\r\n");
        assert_eq!(chunked, Ok(Some((Framing::Chunked, true))));
    }

    #[test]
    fn a_request_whose_end_can_be_doubted_is_refused() {
        for headers in [
            "Content-Length: 2\r\nContent-Length: 2\r\n",
            "Content-Length: 2\r\nContent-Length: 3\r\n",
            "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked, identity\r\n",
            "Transfer-Encoding: identity\r\n",
            "Transfer-Encoding: xchunked\r\n",
            "Content-Length: +2\r\n",
            "Content-Length: -2\r\n",
            "Content-Length: 2, 2\r\n",
            "Content-Length: 0x2\r\n",
            "Content-Length: \r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length : 2\r\n",
            " Content-Length: 2\r\n",
            "X-Folded: a\r\n b\r\n",
            "X-Folded: a\r\n\tContent-Length: 2\r\n",
            "X-Bare: a\nContent-Length: 2\r\n",
            "X-Bare: a\rContent-Length: 2\r\n",
            "X-Zero: a\0b\r\n",
            "No colon\r\n",
        ] {
            assert_eq!(with_headers(headers), Err(Status::BadRequest), "{headers:?}");
        }
        for text in [
            "POST / HTTP/1.1\nHost: x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\n\n",
            "\nPOST / HTTP/1.1\r\nHost: x\r\n\r\n",
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/2.0\r\n\r\n",
            "POST  / HTTP/1.1\r\n\r\n",
            "POST /\r\n\r\n",
            "PO(ST / HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(read(text), Err(Status::BadRequest), "{text:?}");
        }
    }

    #[test]
    fn heads_have_limits() {
        assert_eq!(with_headers(&"X-Many: x\r\n".repeat(100)), Err(Status::HeadTooLarge));
        assert!(with_headers(&"X-Many: x\r\n".repeat(99)).is_ok());
        let long = format!("POST / HTTP/1.1\r\nX-Long: {}", "x".repeat(HEAD_BYTES_MAX));
        assert_eq!(read(&long), Err(Status::HeadTooLarge));
    }

    #[test]
    fn a_connection_is_kept_as_the_version_and_the_client_have_it() {
        for (version, connection, is_kept) in [
            ("1.1", "", true),
            ("1.1", "Connection: close\r\n", false),
            ("1.1", "Connection: TE, Close\r\n", false),
            ("1.0", "", false),
            ("1.0", "Connection: Keep-Alive\r\n", true),
            ("1.1", "Connection: close, keep-alive\r\n", false),
            ("1.1", "Connection: close\r\nConnection: keep-alive\r\n", false),
            ("1.0", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ] {
            let head = read(&format!("GET / HTTP/{version}\r\n{connection}\r\n"));
            assert_eq!(head, Ok(Some((Framing::Length(0), is_kept))), "{version} {connection}");
        }
    }

    #[test]
    fn the_target_is_split_wherever_it_is_sent() {
        for (target, path, query) in [
            ("/", "/", None),
            ("/?a=b?c", "/", Some("a=b?c")),
            ("/x/y", "/x/y", None),
            ("http://host:8000/x?a", "/x", Some("a")),
            ("http://host", "/", None),
            ("http://host?a", "/", Some("a")),
            ("*", "*", None),
        ] {
            assert_eq!(split_target(target), (path, query), "{target}");
        }
    }

    #[test]
    fn the_end_of_a_head_is_seen_however_its_bytes_come() {
        let head = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        for looked_at in 1..head.len() {
            assert!(may_end(head, looked_at), "{looked_at}");
        }
        for end in 2..head.len() {
            assert!(!may_end(&head[..end], end - 1), "{end}");
        }
    }
}
