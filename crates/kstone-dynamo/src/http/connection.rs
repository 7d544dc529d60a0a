//! One connection, from its first request to its last answer: HTTP/1.1, and 1.0.
//!
//! Requests are answered one after the other. Answers to requests that came together go together:
//! what is to go is sent before anything is waited for that the client has to do.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::io::{AsyncRead, AsyncWrite};

use super::body::{BODY_BYTES_MAX, Body, DISCARD_BYTES_MAX, Held, LARGE_BYTES, Unread};
use super::chunked::Chunks;
use super::door::{Call, Door};
use super::head::{self, Framing, Head, slots};
use super::link::{Closing, Link, Stop};
use super::response::{Answer, Dates, Manner, request_id};
use super::status::Status;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Serves a connection until it ends.
pub(super) async fn serve<S>(stream: S, door: Arc<Door>, closing: Closing)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let link = Link::new(stream, door.read_timeout);
    let mut connection = Connection { link, door, dates: Dates::new() };
    match connection.serve(closing).await {
        End::Gone => {}
        End::Closed => connection.link.close().await,
        End::Cut => connection.link.close_on_sender().await,
    }
}

struct Connection<S> {
    link: Link<S>,
    door: Arc<Door>,
    dates: Dates,
}

/// How a connection ends.
enum End {
    /// There is nobody to tell.
    Gone,
    /// Behind an answer, or before a request.
    Closed,
    /// In the midst of what the client sends.
    Cut,
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
    admitted: Result<Call, Answer>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn serve(&mut self, mut closing: Closing) -> End {
        loop {
            let request = match self.next_request(&mut closing).await {
                Ok(request) => request,
                Err(end) => return end,
            };
            let (is_http_1_0, wants_head) = (request.is_http_1_0, request.wants_head);
            let keeps_alive = request.keeps_alive;
            let (mut answer, is_read) = self.answer(request).await;
            answer.closes |=
                !keeps_alive || !is_read || self.door.is_closing.load(Ordering::Relaxed);
            if self.send(&answer, is_http_1_0, wants_head).await.is_err() {
                return End::Gone;
            }
            if answer.closes {
                return if is_read { End::Closed } else { End::Cut };
            }
            answer.give_back();
        }
    }

    /// Waits for the head of a request.
    async fn next_request(&mut self, closing: &mut Closing) -> Result<Request, End> {
        self.link.restart_alarm();
        let mut looked_at = 0;
        loop {
            let bytes = self.link.inbound();
            let is_long = bytes.len() >= head::HEAD_BYTES_MAX;
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
            match self.link.await_request(closing).await {
                Ok(()) => {}
                Err(Stop::TooSlow | Stop::Closing) => return Err(End::Closed),
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
        let answer = Answer::text(status, "").closing();
        match self.send(&answer, false, false).await {
            Ok(()) => End::Cut,
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
    async fn answer(&mut self, request: Request) -> (Answer, bool) {
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
                return (self.door.refuse(Unread::TooLarge), false);
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
            Ok(Body::Apart(held)) => {
                let bytes = self.link.inbound();
                let head = bytes.get(..head_bytes).unwrap_or(bytes);
                let answer = match held.place {
                    Some(_) => self.door.answer_large(call, head, held).await,
                    None => self.door.answer_small(call, head, &held.bytes).await,
                };
                self.link.take(head_bytes);
                (answer, true)
            }
            Err(unread) => (self.door.refuse(unread), false),
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
            Framing::Chunked => return self.read_chunks(head_bytes, call).await,
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
        let door = Arc::clone(&self.door);
        let Some(place) = door.memory.place(call.packing.unpacked_max(length)).await else {
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
        };
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
        Ok(Body::Apart(Held { bytes, place: Some(place) }))
    }

    /// Reads a body that does not say how long it is. It takes its place, for the longest that it
    /// can become, when it turns out to be large.
    async fn read_chunks(&mut self, head_bytes: usize, call: Call) -> Result<Body, Unread> {
        self.flush().await?;
        let door = Arc::clone(&self.door);
        let (mut chunks, mut bytes, mut place) = (Chunks::new(), Vec::new(), None);
        let read = self.within_time(async |link| {
            loop {
                let here = link.inbound().get(head_bytes..).unwrap_or_default();
                let taken = chunks.feed(here, |data| bytes.extend_from_slice(data));
                let taken = taken.map_err(|_| Unread::Broken)?;
                link.cut(head_bytes, taken);
                if bytes.len() > BODY_BYTES_MAX {
                    return Err(Unread::TooLarge);
                }
                if bytes.len() > LARGE_BYTES && place.is_none() {
                    place = door.memory.place(BODY_BYTES_MAX).await;
                }
                if chunks.is_done() {
                    return Ok(());
                }
                link.fill().await?;
            }
        });
        match read.await {
            Ok(()) => {}
            Err(Unread::TooLarge) => {
                drop((bytes, place));
                let _ = self.discard_chunks(chunks, head_bytes).await;
                return Err(Unread::TooLarge);
            }
            Err(unread) => return Err(unread),
        }
        if place.is_none() {
            place = door.memory.place(call.packing.unpacked_max(bytes.len())).await;
        }
        Ok(Body::Apart(Held { bytes, place }))
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
        work: impl AsyncFnOnce(&mut Link<S>) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        let worked = tokio::time::timeout(self.door.read_timeout, work(&mut self.link)).await;
        worked.unwrap_or(Err(Unread::TooSlow))
    }

    async fn flush(&mut self) -> Result<(), Unread> {
        self.link.flush().await.map_err(|_| Unread::Broken)
    }

    async fn send(
        &mut self,
        answer: &Answer,
        is_http_1_0: bool,
        wants_head: bool,
    ) -> std::io::Result<()> {
        let manner = Manner {
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
