//! The load generator: one thread, one epoll, kept connections with one request under way on each.
//!
//! It shares the machine's cores with the server that it measures, so it does as little as it can: a
//! `write` of bytes that were ready before, a `read`, a look at the answer.

use super::request::{Expect, Prepared};
use crate::Outcome;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A server that has said nothing for so long hangs.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// When a connection has asked enough.
#[derive(Clone, Copy)]
pub enum Until {
    /// After this time; requests are sent again from the first when all were sent.
    Elapsed(Duration),
    /// When it has sent each of its requests once more.
    OnceThrough,
}

/// What came of it.
pub struct Load {
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// How long each answer took, in microseconds, in no order.
    pub latencies_us: Vec<u32>,
}

/// Connections to one server, each with the requests that it sends in turn.
pub struct Generator {
    poll: Poll,
    connections: Vec<Connection>,
}

struct Connection {
    stream: TcpStream,
    requests: Vec<Prepared>,
    /// How many requests were sent, over all loads.
    sent: usize,
    /// How much of the request under way was written.
    written: usize,
    sent_at: Instant,
    answer: Vec<u8>,
    answer_len: usize,
}

impl Generator {
    /// Opens a connection for each of `shares`.
    pub fn connect(address: SocketAddr, shares: Vec<Vec<Prepared>>) -> Outcome<Self> {
        let poll = Poll::new()?;
        let mut connections = Vec::new();
        for requests in shares {
            if requests.is_empty() {
                return Err("a connection has nothing to send".into());
            }
            let stream = std::net::TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut stream, Token(connections.len()), interest)?;
            connections.push(Connection {
                stream,
                requests,
                sent: 0,
                written: 0,
                sent_at: Instant::now(),
                answer: vec![0; 64 << 10],
                answer_len: 0,
            });
        }
        Ok(Generator { poll, connections })
    }

    /// How many requests each connection has sent, over all loads; each was answered.
    pub fn sent(&self) -> impl Iterator<Item = usize> {
        self.connections.iter().map(|connection| connection.sent)
    }

    /// Asks on all connections at once, each for the next when it has its answer. A wrong answer
    /// ends the benchmark.
    pub fn run(&mut self, until: Until) -> Outcome<Load> {
        let start = Instant::now();
        let deadline = match until {
            Until::Elapsed(limit) => Some(start + limit),
            Until::OnceThrough => None,
        };
        let mut left: Vec<usize> = match until {
            Until::Elapsed(_) => vec![usize::MAX; self.connections.len()],
            Until::OnceThrough => self.connections.iter().map(|c| c.requests.len()).collect(),
        };
        let mut latencies_us = Vec::with_capacity(1 << 18);
        let mut events = Events::with_capacity(self.connections.len());
        let mut under_way = self.connections.len();
        for connection in &mut self.connections {
            connection.send_next(start)?;
        }
        let mut now = start;
        while under_way > 0 {
            match self.poll.poll(&mut events, Some(SILENCE_MAX)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            if events.is_empty() {
                return Err("the server says nothing".into());
            }
            for event in &events {
                let nth = event.token().0;
                let connection = &mut self.connections[nth];
                if event.is_writable() {
                    connection.write_on()?;
                }
                if !event.is_readable() || !connection.read_answer()? {
                    continue;
                }
                now = Instant::now();
                latencies_us.push((now - connection.sent_at).as_micros() as u32);
                left[nth] -= 1;
                if left[nth] > 0 && deadline.is_none_or(|deadline| now < deadline) {
                    connection.send_next(now)?;
                } else {
                    under_way -= 1;
                }
            }
        }
        Ok(Load { elapsed: now - start, latencies_us })
    }
}

impl Connection {
    fn send_next(&mut self, now: Instant) -> Outcome<()> {
        self.sent_at = now;
        self.sent += 1;
        self.written = 0;
        self.answer_len = 0;
        self.write_on()
    }

    fn current(&self) -> &Prepared {
        &self.requests[(self.sent - 1) % self.requests.len()]
    }

    fn write_on(&mut self) -> Outcome<()> {
        // Writable is also what a connection is before its first request.
        while self.sent > 0 && self.written < self.current().bytes.len() {
            let bytes = &self.requests[(self.sent - 1) % self.requests.len()].bytes;
            match self.stream.write(&bytes[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads what is there; true when the answer is whole, and right.
    fn read_answer(&mut self) -> Outcome<bool> {
        loop {
            if self.answer_len == self.answer.len() {
                self.answer.resize(self.answer.len() * 2, 0);
            }
            match self.stream.read(&mut self.answer[self.answer_len..]) {
                Ok(0) => return Err("the server closed a connection".into()),
                Ok(read) => self.answer_len += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            // A socket that gave less than it was asked for is empty, and says when it no longer
            // is: another `read` only to hear so would be a third of this thread's calls.
            let answer = &self.answer[..self.answer_len];
            if check_answer(answer, &self.current().expect)? {
                return Ok(true);
            }
            if self.answer_len < self.answer.len() {
                return Ok(false);
            }
        }
    }
}

/// Whether the answer is whole; an error if it is not the one that was expected.
fn check_answer(answer: &[u8], expect: &Expect) -> Outcome<bool> {
    let Some((head, body)) = split_head(answer) else { return Ok(false) };
    let body_len = content_length(head).ok_or("an answer without a length")?;
    if body.len() < body_len {
        return Ok(false);
    }
    if body.len() > body_len || !head.starts_with(b"HTTP/1.1 200 ") || !expect.accepts(body) {
        return Err(format!("a wrong answer: {}", String::from_utf8_lossy(answer)).into());
    }
    Ok(true)
}

/// Divides what has arrived after the empty line that ends the head.
pub fn split_head(answer: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memmem::find(answer, b"\r\n\r\n")?;
    Some((&answer[..end], &answer[end + 4..]))
}

/// What the head says of the body's length.
pub fn content_length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    head.split(|&byte| byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(NAME.len())?;
        let value = name.eq_ignore_ascii_case(NAME).then(|| value.trim_ascii())?;
        str::from_utf8(value).ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_its_bodys_length_in_any_case() {
        assert_eq!(content_length(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nX: 1"), Some(12));
        assert_eq!(content_length(b"HTTP/1.1 200 OK\r\ncontent-length:7"), Some(7));
        assert_eq!(content_length(b"HTTP/1.1 200 OK\r\nx-content-length: 7"), None);
    }

    #[test]
    fn a_body_begins_after_the_first_empty_line() {
        let answer = b"HTTP/1.1 200 OK\r\na: b\r\n\r\none\r\n\r\ntwo";
        let (head, body) = split_head(answer).unwrap();
        assert_eq!(head, b"HTTP/1.1 200 OK\r\na: b");
        assert_eq!(body, b"one\r\n\r\ntwo");
        assert!(split_head(&answer[..24]).is_none());
    }
}
