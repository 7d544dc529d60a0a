//! Any bytes as a connection: what comes back does not depend on how they were cut on the way.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kstone::Database;
use kstone_core::env::{ManualClock, Random as _, SeededRandom};
use kstone_door::Closing;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Builder, Runtime};

use super::connection;
use super::handler::Handler;
use crate::DoorOptions;

thread_local! {
    static SERVER: RefCell<Option<(Runtime, Database)>> = const { RefCell::new(None) };
}

/// A client that sends pieces, and then nothing more.
#[derive(Debug)]
struct Script {
    pieces: VecDeque<Vec<u8>>,
    /// Whether the next piece is not there yet.
    is_late: bool,
    output: Vec<u8>,
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if std::mem::replace(&mut self.is_late, false) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(piece) = self.pieces.front_mut() {
            let rest = piece.split_off(piece.len().min(into.remaining()));
            into.put_slice(piece);
            *piece = rest;
            if piece.is_empty() {
                self.pieces.pop_front();
                self.is_late = true;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // Not all at once either.
        let taken = bytes.len().min(1000);
        self.output.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A connection: the first two bytes say how it is cut into pieces, the rest is what a client sends.
///
/// # Panics
/// If the answers are others when it comes whole, or are no answers.
pub fn connection(bytes: &[u8]) {
    let Some((cuts, sent)) = bytes.split_first_chunk::<2>() else { return };
    let random = SeededRandom::new(u64::from(u16::from_le_bytes(*cuts)));
    let mut pieces = VecDeque::new();
    let mut rest = sent;
    while !rest.is_empty() {
        let most = *[1, 7, 100].get((random.next_u64() % 3) as usize).unwrap_or(&1);
        let length = 1 + (random.next_u64() as usize % most).min(rest.len() - 1);
        let (piece, after) = rest.split_at(length);
        pieces.push_back(piece.to_vec());
        rest = after;
    }
    let whole = answers([sent.to_vec()].into());
    let cut = answers(pieces);
    assert!(whole.is_empty() || whole.starts_with(b"HTTP/1."), "{}", show(&whole));
    // Who waits for permission gets it, or not, depending on what is there already.
    let lower = sent.to_ascii_lowercase();
    let has = |word: &[u8]| lower.windows(word.len()).any(|bytes| bytes == word);
    // The two share a database.
    if !has(b"expect") && !has(b"createtable") {
        assert!(whole == cut, "{}\n--- but cut:\n{}", show(&whole), show(&cut));
    }
}

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn answers(pieces: VecDeque<Vec<u8>>) -> Vec<u8> {
    let mut script = Script { pieces, is_late: false, output: Vec::new() };
    SERVER.with_borrow_mut(|server| {
        let (runtime, database) = server.get_or_insert_with(|| {
            let runtime = Builder::new_current_thread().enable_time().build();
            let runtime = runtime.unwrap_or_else(|error| panic!("{error}"));
            (runtime, Database::memory().unwrap_or_else(|error| panic!("{error}")))
        });
        let options = DoorOptions { clock: Arc::new(ManualClock::at(0)), ..DoorOptions::default() };
        let mut door = Handler::new(database.clone(), options);
        door.ids = SeededRandom::new(1);
        runtime.block_on(connection::serve(&mut script, Arc::new(door), Closing::never()));
    });
    script.output
}

/// Connections to start from: requests as they should be, and as they should not.
pub fn connection_seeds() -> Vec<Vec<u8>> {
    let head = "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n\
                Content-Type: application/x-amz-json-1.0\r\n";
    let sized = format!("{head}Content-Length: 2\r\n\r\n{{}}");
    let chunked =
        format!("{head}Transfer-Encoding: chunked\r\n\r\n1;a\r\n{{\r\n1\r\n}}\r\n0\r\n\r\n");
    let seeds = [
        sized.clone(),
        sized.repeat(3),
        chunked.clone(),
        format!("{chunked}{sized}\r\n{chunked}"),
        chunked.replace("0\r\n\r\n", "0\r\nX-Trailer: x\r\n\r\n") + &sized,
        sized.replace("POST / ", "POST http://x/?a=b ") + &sized,
        sized.replace("POST / ", "PUT /other ") + &sized,
        sized.replace("Content-Length", "Expect: 100-continue\r\nContent-Length"),
        sized.replace("Content-Length", "Connection: close\r\nContent-Length") + &sized,
        sized.replace(
            "Content-Length",
            "Accept-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length",
        ),
        sized.replace("Content-Length", "Content-Length: 2\r\nContent-Length"),
        sized.replace("Content-Length", "Transfer-Encoding: chunked\r\nContent-Length"),
        sized.replace("HTTP/1.1\r\n", "HTTP/1.0\r\nConnection: keep-alive\r\n").repeat(2),
        sized.replace("Content-Length: 2", "Content-Length: 17000000"),
        chunked.replace("1;a", "FFFFFFFF"),
        format!("GET / HTTP/1.1\r\nHost: x\r\n\r\n{sized}"),
        format!("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n{sized}"),
        "*1\r\n$4\r\nPING\r\n".to_owned(),
    ];
    seeds
        .into_iter()
        .enumerate()
        .map(|(n, seed)| [&[n as u8, 0], seed.as_bytes()].concat())
        .collect()
}
