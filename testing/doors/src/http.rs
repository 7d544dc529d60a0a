//! A client of one connection: as much of HTTP/1.1 as the door and DynamoDB Local answer with.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What both servers take for a signature: neither has keys to check it with.
const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 \
    Credential=proofs/20260101/us-east-1/dynamodb/aws4_request, \
    SignedHeaders=host, Signature=0000";
/// Longer than any answer takes; shorter than anyone's patience.
const TIMEOUT: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The names, in small letters, and values of its headers.
    pub headers: Vec<(String, String)>,
    /// The body, unparsed.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|it| it.0 == name).map(|it| it.1.as_str())
    }
}

/// A connection that is kept open from request to request.
#[derive(Debug)]
pub struct Connection {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Connection {
    /// Connects at the first request.
    pub fn new(address: SocketAddr) -> Self {
        Connection { address, stream: None }
    }

    /// Sends a request of DynamoDB's protocol and reads its answer; see [`send`](Self::send).
    ///
    /// # Errors
    /// If there is no whole answer.
    pub fn post(&mut self, operation: &str, body: &[u8]) -> io::Result<Answer> {
        let headers = format!(
            "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: {operation}\r\n\
             Authorization: {AUTHORIZATION}\r\nX-Amz-Date: 20260101T000000Z\r\n"
        );
        self.send("POST /", &headers, body)
    }

    /// Sends a request, its method and path and then lines of headers, and reads its answer. After an
    /// error nobody knows whether the request was carried out; the next one gets a new connection.
    ///
    /// # Errors
    /// If there is no whole answer.
    pub fn send(&mut self, target: &str, headers: &str, body: &[u8]) -> io::Result<Answer> {
        let answer = self.exchange(target, headers, body);
        if answer.is_err() {
            self.stream = None;
        }
        answer
    }

    fn exchange(&mut self, target: &str, headers: &str, body: &[u8]) -> io::Result<Answer> {
        let reader = match &mut self.stream {
            Some(reader) => reader,
            none => {
                let stream = TcpStream::connect_timeout(&self.address, TIMEOUT)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                none.insert(BufReader::new(stream))
            }
        };
        let mut request = format!(
            "{target} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        reader.get_mut().write_all(&request)?;
        let (answer, is_last) = read_answer(reader)?;
        if is_last {
            self.stream = None;
        }
        Ok(answer)
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

/// The answer, and whether the connection ends with it.
fn read_answer(from: &mut impl BufRead) -> io::Result<(Answer, bool)> {
    let status = read_line(from)?;
    let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| broken("no status"))?;
    let (mut length, mut is_chunked, mut is_last) = (None, false, false);
    let mut headers = Vec::new();
    loop {
        let line = read_line(from)?;
        let Some((name, value)) = line.split_once(':') else {
            if line.is_empty() {
                break;
            }
            return Err(broken("a header without a name"));
        };
        let value = value.trim();
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "content-length" => length = value.parse::<usize>().ok(),
            "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
            "connection" => is_last = value.eq_ignore_ascii_case("close"),
            _ => {}
        }
        headers.push((name, value.to_owned()));
    }
    let body = match (is_chunked, length) {
        // By its nature it has none.
        _ if status == 204 => Vec::new(),
        (true, _) => read_chunks(from)?,
        (false, Some(length)) => read_exactly(from, length)?,
        (false, None) => return Err(broken("no length")),
    };
    Ok((Answer { status, headers, body }, is_last))
}

fn read_exactly(from: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_chunks(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let length = usize::from_str_radix(&read_line(from)?, 16);
        let length = length.map_err(|_| broken("a chunk without a length"))?;
        body.extend(read_exactly(from, length)?);
        read_line(from)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_by_its_length_or_in_chunks() {
        let plain = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}more";
        let (answer, is_last) = read_answer(&mut &plain[..]).unwrap();
        assert_eq!((answer.status, &answer.body[..], is_last), (400, &b"{}"[..], false));
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
            3\r\n{\"a\r\n3\r\n\":1\r\n1\r\n}\r\n0\r\n\r\n";
        let (answer, is_last) = read_answer(&mut &chunked[..]).unwrap();
        assert_eq!((answer.status, &answer.body[..], is_last), (200, &b"{\"a\":1}"[..], true));
        assert_eq!(answer.header("connection"), Some("close"));
        let none = b"HTTP/1.1 204 No Content\r\nETag: 7\r\n\r\nmore";
        let (answer, _) = read_answer(&mut &none[..]).unwrap();
        assert_eq!((answer.status, answer.body.len(), answer.header("etag")), (204, 0, Some("7")));
    }

    #[test]
    fn half_an_answer_is_an_error() {
        for half in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}",
            "HTTP/1.1 200 OK\r\n\r\n",
        ] {
            assert!(read_answer(&mut half.as_bytes()).is_err(), "{half}");
        }
    }
}
