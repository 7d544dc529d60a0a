//! One connection, from its first request to its last answer: HTTP/1.1, and 1.0.
//!
//! Requests are answered one after the other. Answers to requests that came together go together:
//! what is to go is sent before anything is waited for that the client has to do.

use std::sync::Arc;

use kstone_door::Closing;
use tokio::io::{AsyncRead, AsyncWrite};

use super::body::{BODY_BYTES_MAX, Body, DISCARD_BYTES_MAX, Held, LARGE_BYTES, Unread};
use super::chunked::Chunks;
use super::handler::{Call, Handler};
use super::head::{self, Framing, Head, slots};
use super::response::{Dates, HttpResponse, ResponseHeaders, request_id};
use super::socket::{ClientSocket, CloseRequested, Stop};
use super::status::Status;

/// Some clients send a line too many behind a body, and HTTP has it that they are forgiven.
const EMPTY_LINES_MAX: usize = 4;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Serves a connection until it ends.
pub(super) async fn serve<S>(stream: S, door: Arc<Handler>, closing: Closing)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let link = ClientSocket::new(stream, door.read_timeout);
    let mut requested = closing.clone();
    let close_requested = Box::pin(async move { requested.requested().await });
    let mut connection = Connection { link, door, closing, dates: Dates::new() };
    match connection.serve(close_requested).await {
        End::Gone => {}
        End::Idle => connection.link.close().await,
        End::Answered => connection.link.close_behind_answer().await,
    }
}

struct Connection<S> {
    link: ClientSocket<S>,
    door: Arc<Handler>,
    closing: Closing,
    dates: Dates,
}

/// How a connection ends.
enum End {
    /// There is nobody to tell.
    Gone,
    /// Before a request.
    Idle,
    /// Behind an answer, maybe in the midst of what the client sends.
    Answered,
}

/// What is kept of a head.
struct Request {
    head_bytes: usize,
    framing: Framing,
    expects_continue: bool,
    is_http_1_0: bool,
    /// Whether it asks for an answer without its body.
    wants_head: bool,
    keeps_alive: bool,
    /// What to do, or what to answer whatever the body is.
    admitted: Result<Call, HttpResponse>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn serve(&mut self, mut close_requested: CloseRequested) -> End {
        loop {
            let request = match self.next_request(&mut close_requested).await {
                Ok(request) => request,
                Err(end) => return end,
            };
            let (is_http_1_0, wants_head) = (request.is_http_1_0, request.wants_head);
            let keeps_alive = request.keeps_alive;
            let (mut answer, is_read) = self.answer(request).await;
            answer.closes |= !keeps_alive || !is_read || self.closing.is_requested();
            if self.send(&answer, is_http_1_0, wants_head).await.is_err() {
                return End::Gone;
            }
            if answer.closes {
                return End::Answered;
            }
            answer.give_back();
        }
    }

    /// Waits for the head of a request.
    async fn next_request(&mut self, close_requested: &mut CloseRequested) -> Result<Request, End> {
        self.link.restart_alarm();
        let (mut looked_at, mut empty_lines) = (0, 0);
        loop {
            while self.link.take_empty_line() {
                (looked_at, empty_lines) = (0, empty_lines + 1);
                if empty_lines > EMPTY_LINES_MAX {
                    return Err(self.refuse(Status::BadRequest).await);
                }
            }
            let bytes = self.link.inbound();
            let is_long = bytes.len() >= head::HEAD_BYTES_MAX;
            if bytes.first() == Some(&b'\n') {
                return Err(self.refuse(Status::BadRequest).await);
            }
            if is_long || (!bytes.is_empty() && head::may_end(bytes, looked_at)) {
                match self.read_head() {
                    Ok(Some(request)) => return Ok(request),
                    Ok(None) => {}
                    Err(status) => return Err(self.refuse(status).await),
                }
            }
            looked_at = self.link.inbound().len();
            if self.link.flush().await.is_err() {
                return Err(End::Gone);
            }
            match self.link.await_request(close_requested).await {
                Ok(()) => {}
                Err(Stop::TooSlow | Stop::Closing) => return Err(End::Idle),
                // It may have stopped sending only, and be owed a word about what it sent.
                Err(Stop::Gone) => match self.read_head() {
                    Err(status) if !self.link.inbound().is_empty() => {
                        return Err(self.refuse(status).await);
                    }
                    _ => return Err(End::Gone),
                },
            }
        }
    }

    /// Answers to what is no request.
    async fn refuse(&mut self, status: Status) -> End {
        let answer = HttpResponse::text(status, "").closing();
        match self.send(&answer, false, false).await {
            Ok(()) => End::Answered,
            Err(_) => End::Gone,
        }
    }

    fn read_head(&self) -> Result<Option<Request>, Status> {
        let mut slots = slots();
        let head = Head::read(self.link.inbound(), &mut slots)?;
        Ok(head.map(|head| Request {
            head_bytes: head.bytes,
            framing: head.framing,
            expects_continue: head.expects_continue,
            is_http_1_0: head.is_http_1_0,
            wants_head: head.method == "HEAD",
            keeps_alive: head.keeps_alive,
            admitted: self.door.admit(&head),
        }))
    }

    /// The answer to a request, and whether all of the request was read.
    async fn answer(&mut self, request: Request) -> (HttpResponse, bool) {
        let head_bytes = request.head_bytes;
        let call = match request.admitted {
            Ok(call) => call,
            // A client that is still sending does not read, so its body is thrown away as it comes;
            // one that asks before it sends is answered at once.
            Err(answer)
                if request.expects_continue && !self.is_here(head_bytes, request.framing) =>
            {
                return (answer, false);
            }
            Err(answer) => {
                self.link.take(head_bytes);
                let discarded = self.discard(request.framing).await;
                return (answer, discarded.is_ok());
            }
        };
        if request.expects_continue && !self.is_here(head_bytes, request.framing) {
            if matches!(request.framing, Framing::Length(length) if length > BODY_BYTES_MAX as u64)
            {
                return (self.door.refuse(Unread::TooLarge, call), false);
            }
            self.link.outbound().extend_from_slice(CONTINUE);
        }
        match self.read_body(head_bytes, request.framing, call).await {
            Ok(Body::InPlace(body_bytes)) => {
                let bytes = self.link.inbound();
                let (head, rest) = bytes.split_at(head_bytes.min(bytes.len()));
                let body = rest.get(..body_bytes).unwrap_or(rest);
                let answer = self.door.answer_small(call, head, body).await;
                self.link.take(head_bytes + body_bytes);
                (answer, true)
            }
            Ok(Body::Apart(mut held)) => {
                let bytes = self.link.inbound();
                let head = bytes.get(..head_bytes).unwrap_or(bytes);
                let unpacked_max = call.packing.unpacked_max(held.bytes.len());
                let answer = match self.door.memory.for_parsed(unpacked_max).await {
                    Ok(None) => self.door.answer_small(call, head, &held.bytes).await,
                    Ok(parsed) => {
                        held.parsed = parsed;
                        self.door.answer_large(call, head, held).await
                    }
                    Err(unread) => self.door.refuse(unread, call),
                };
                self.link.take(head_bytes);
                (answer, true)
            }
            Err(unread) => (self.door.refuse(unread, call), false),
        }
    }

    /// Whether a body with a length came with its head.
    fn is_here(&self, head_bytes: usize, framing: Framing) -> bool {
        let here = self.link.inbound().len().saturating_sub(head_bytes) as u64;
        matches!(framing, Framing::Length(length) if length <= here)
    }

    /// Reads all of a body. The head stays where it is.
    async fn read_body(
        &mut self,
        head_bytes: usize,
        framing: Framing,
        call: Call,
    ) -> Result<Body, Unread> {
        let length = match framing {
            Framing::Chunked => return self.read_chunks(head_bytes).await,
            Framing::Length(length) => usize::try_from(length).unwrap_or(usize::MAX),
        };
        if length > BODY_BYTES_MAX {
            self.link.take(head_bytes);
            return match self.discard(framing).await {
                Err(Unread::TooSlow) => Err(Unread::TooSlow),
                _ => Err(Unread::TooLarge),
            };
        }
        let is_here = self.is_here(head_bytes, framing);
        if !is_here {
            self.flush().await?;
        }
        if call.packing.unpacked_max(length) <= LARGE_BYTES {
            if !is_here {
                let whole = head_bytes + length;
                let missing = whole.saturating_sub(self.link.inbound().len());
                self.link.make_room(missing);
                self.within_time(async |link| {
                    while link.inbound().len() < whole {
                        link.fill().await?;
                    }
                    Ok(())
                })
                .await?;
            }
            return Ok(Body::InPlace(length));
        }
        let arriving = self.door.memory.for_arriving(length).await?;
        let here = self.link.inbound().get(head_bytes..).unwrap_or_default();
        let mut bytes = here.get(..length.min(here.len())).unwrap_or(here).to_vec();
        self.link.cut(head_bytes, bytes.len());
        self.within_time(async |link| {
            while bytes.len() < length {
                let missing = length - bytes.len();
                link.read_onto(&mut bytes, missing).await?;
            }
            Ok(())
        })
        .await?;
        Ok(Body::Apart(Held { bytes, arriving, parsed: None }))
    }

    /// Reads a body that does not say how long it is. It takes memory, for the longest that it
    /// can become, when it turns out to be large.
    async fn read_chunks(&mut self, head_bytes: usize) -> Result<Body, Unread> {
        self.flush().await?;
        let (mut chunks, mut bytes, mut arriving) = (Chunks::new(), Vec::new(), None);
        self.read_chunks_onto(&mut bytes, &mut chunks, head_bytes, LARGE_BYTES).await?;
        if !chunks.is_done() {
            // Waiting for memory is not taken off the client's time, which begins anew.
            arriving = self.door.memory.for_arriving(BODY_BYTES_MAX).await?;
            self.read_chunks_onto(&mut bytes, &mut chunks, head_bytes, BODY_BYTES_MAX).await?;
        }
        if bytes.len() > BODY_BYTES_MAX {
            drop((bytes, arriving));
            let _ = self.discard_chunks(chunks, head_bytes).await;
            return Err(Unread::TooLarge);
        }
        Ok(Body::Apart(Held { bytes, arriving, parsed: None }))
    }

    /// Reads chunks until they are done, or there is more of them than this.
    async fn read_chunks_onto(
        &mut self,
        bytes: &mut Vec<u8>,
        chunks: &mut Chunks,
        head_bytes: usize,
        most: usize,
    ) -> Result<(), Unread> {
        self.within_time(async |link| {
            loop {
                let here = link.inbound().get(head_bytes..).unwrap_or_default();
                let taken = chunks.feed(here, |data| bytes.extend_from_slice(data));
                let taken = taken.map_err(|_| Unread::Broken)?;
                link.cut(head_bytes, taken);
                if chunks.is_done() || bytes.len() > most {
                    return Ok(());
                }
                link.fill().await?;
            }
        })
        .await
    }

    /// Reads a body that nobody wants, and keeps none of it. Nothing of its head is left.
    async fn discard(&mut self, framing: Framing) -> Result<(), Unread> {
        let Framing::Length(length) = framing else {
            return self.discard_chunks(Chunks::new(), 0).await;
        };
        let here = self.link.inbound().len() as u64;
        if length <= here {
            self.link.take(length as usize);
            return Ok(());
        }
        self.flush().await?;
        self.within_time(async |link| {
            let mut left = length;
            let mut most = DISCARD_BYTES_MAX;
            loop {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(link.inbound().len());
                link.take(here);
                left -= here as u64;
                most = most.checked_sub(here).ok_or(Unread::TooLarge)?;
                if left == 0 {
                    return Ok(());
                }
                link.fill().await?;
            }
        })
        .await
    }

    /// The rest of chunks, behind so many other bytes.
    async fn discard_chunks(&mut self, mut chunks: Chunks, behind: usize) -> Result<(), Unread> {
        self.flush().await?;
        self.within_time(async |link| {
            let mut most = DISCARD_BYTES_MAX;
            loop {
                let here = link.inbound().get(behind..).unwrap_or_default();
                let taken = chunks.feed(here, |_| {}).map_err(|_| Unread::Broken)?;
                link.cut(behind, taken);
                most = most.checked_sub(taken).ok_or(Unread::TooLarge)?;
                if chunks.is_done() {
                    return Ok(());
                }
                link.fill().await?;
            }
        })
        .await
    }

    async fn within_time<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut ClientSocket<S>) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        let worked = tokio::time::timeout(self.door.read_timeout, work(&mut self.link)).await;
        worked.unwrap_or(Err(Unread::TooSlow))
    }

    async fn flush(&mut self) -> Result<(), Unread> {
        self.link.flush().await.map_err(|_| Unread::Broken)
    }

    async fn send(
        &mut self,
        answer: &HttpResponse,
        is_http_1_0: bool,
        wants_head: bool,
    ) -> std::io::Result<()> {
        let manner = ResponseHeaders {
            is_http_1_0,
            request_id: request_id(&self.door.ids),
            date: self.dates.at(self.door.clock.now_ms()),
        };
        answer.write_head(&manner, self.link.outbound());
        let body = if wants_head { &[] } else { answer.body.as_slice() };
        self.link.send_body(body).await
    }
}

impl From<Stop> for Unread {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::TooSlow => Unread::TooSlow,
            Stop::Gone | Stop::Closing => Unread::Broken,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kstone::Database;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use kstone_door::memory::MemoryShare;

    use super::*;
    use crate::DoorOptions;

    const HEAD: &str = "POST / HTTP/1.1\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n\
                        Content-Type: application/x-amz-json-1.0\r\n";

    fn connect() -> (DuplexStream, Arc<Handler>) {
        let door = Arc::new(Handler::new(Database::memory().unwrap(), DoorOptions::default()));
        let (client, server) = tokio::io::duplex(1 << 20);
        tokio::spawn(serve(server, Arc::clone(&door), Closing::never()));
        (client, door)
    }

    /// All the memory that there is.
    async fn fill<F: Future<Output = Result<Option<MemoryShare>, Unread>>>(
        take: impl Fn(usize) -> F,
    ) -> Vec<Option<MemoryShare>> {
        let mut shares = Vec::new();
        for bytes in [BODY_BYTES_MAX, LARGE_BYTES + 1] {
            // Without the wait, there is none when it is not there at once.
            while let Ok(Ok(taken)) = tokio::time::timeout(Duration::ZERO, take(bytes)).await {
                shares.push(taken);
            }
        }
        shares
    }

    async fn answer(client: &mut DuplexStream) -> String {
        let mut answer = vec![0; 64 * 1024];
        let read = client.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..read]).into_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_finds_no_memory_is_told_so_and_does_not_wait_for_ever() {
        for framing in ["Content-Length: 100000", "Transfer-Encoding: chunked"] {
            let (mut client, door) = connect();
            let shares = fill(|bytes| door.memory.for_arriving(bytes)).await;
            assert!(shares.len() >= 8);
            let start = format!("{HEAD}{framing}\r\n\r\n186a0\r\n{}", "x".repeat(70_000));
            client.write_all(start.as_bytes()).await.unwrap();
            let answer = answer(&mut client).await;
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
            assert!(answer.contains("connection: close"), "{answer}");
            assert!(answer.contains("#ServiceUnavailableException"), "{answer}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_came_whole_and_finds_no_memory_leaves_its_connection_of_use() {
        let (mut client, door) = connect();
        let shares = fill(|bytes| door.memory.for_parsed(bytes)).await;
        assert!(!shares.is_empty());
        let body = "{}".to_owned() + &" ".repeat(99_998);
        let large = format!("{HEAD}Content-Length: 100000\r\n\r\n{body}");
        client.write_all(large.as_bytes()).await.unwrap();
        let refused = answer(&mut client).await;
        assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
        drop(shares);
        client.write_all(large.as_bytes()).await.unwrap();
        let answered = answer(&mut client).await;
        assert!(answered.starts_with("HTTP/1.1 200 "), "{answered}");
    }
}
