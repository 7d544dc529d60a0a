//! A client's socket with its read and write buffers and timeouts. What the bytes mean is
//! [`super::connection`]'s business.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BufMut as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Sleep;

use kstone_door::stall_guard::StallGuard;

/// Room for a request as most are, which every idle connection keeps.
const INBOUND_BYTES: usize = 4 * 1024;
/// A read is not worth its call for less room than this.
const ROOM_BYTES_MIN: usize = 2 * 1024;
/// Answers are kept together up to this while more requests wait, and copied up to this.
const OUTBOUND_BYTES: usize = 64 * 1024;
/// Into so many parts a time limit is cut: it may last one part longer.
const TICKS: u32 = 4;
/// How long a client that was told to stop may go on sending before it is cut off.
const LINGER: Duration = Duration::from_secs(2);

/// Completes when the door is being closed.
pub(super) type CloseRequested = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why no more bytes come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The client went away.
    Gone,
    TooSlow,
    /// The door is being closed, and nothing is under way.
    Closing,
}

pub(super) struct ClientSocket<S> {
    stream: StallGuard<S>,
    inbound: Vec<u8>,
    /// How many bytes at the front of `inbound` are done with.
    done: usize,
    outbound: Vec<u8>,
    alarm: Alarm,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientSocket<S> {
    pub(super) fn new(stream: S, within: Duration) -> Self {
        ClientSocket {
            stream: StallGuard::new(stream, within),
            inbound: Vec::with_capacity(INBOUND_BYTES),
            done: 0,
            outbound: Vec::new(),
            alarm: Alarm::new(within),
        }
    }

    /// What came and was not taken yet.
    pub(super) fn inbound(&self) -> &[u8] {
        self.inbound.get(self.done..).unwrap_or_default()
    }

    /// Takes bytes off the front of what came.
    pub(super) fn take(&mut self, bytes: usize) {
        self.done += bytes;
        if self.done >= self.inbound.len() {
            self.inbound.clear();
            self.done = 0;
        }
    }

    /// Takes an empty line off the front of what came, if there is one.
    pub(super) fn take_empty_line(&mut self) -> bool {
        let is_there = self.inbound().starts_with(b"\r\n");
        if is_there {
            self.take(2);
        }
        is_there
    }

    /// Takes bytes out of the middle of what came.
    pub(super) fn cut(&mut self, from: usize, bytes: usize) {
        let from = (self.done + from).min(self.inbound.len());
        let to = (from + bytes).min(self.inbound.len());
        self.inbound.drain(from..to);
    }

    /// What is to go.
    pub(super) fn outbound(&mut self) -> &mut Vec<u8> {
        &mut self.outbound
    }

    /// Gives the client its time anew.
    pub(super) fn restart_alarm(&mut self) {
        self.alarm.restart();
    }

    /// Waits for a request, or for the rest of its head. `close_requested` ends only the wait
    /// for one that has not begun.
    pub(super) async fn await_request(
        &mut self,
        close_requested: &mut CloseRequested,
    ) -> Result<(), Stop> {
        self.make_room(ROOM_BYTES_MIN);
        let is_idle = self.inbound.is_empty();
        let ClientSocket { stream, inbound, outbound, alarm, .. } = self;
        poll_fn(|context| {
            if let Poll::Ready(read) = pin!(stream.read_buf(inbound)).poll(context) {
                return Poll::Ready(came(read));
            }
            if is_idle && close_requested.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(Stop::Closing));
            }
            match alarm.poll(context) {
                Poll::Ready(Ring::Up) => Poll::Ready(Err(Stop::TooSlow)),
                Poll::Ready(Ring::Tick) | Poll::Pending => {
                    if is_idle && alarm.ticks > 0 {
                        // What a long request needed is not kept through the night.
                        inbound.shrink_to(INBOUND_BYTES);
                        outbound.shrink_to(0);
                    }
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Waits for more bytes, however long that takes.
    pub(super) async fn fill(&mut self) -> Result<(), Stop> {
        self.make_room(ROOM_BYTES_MIN);
        came(self.stream.read_buf(&mut self.inbound).await)
    }

    /// Waits for bytes and puts them behind others, `most` of them at a time.
    pub(super) async fn read_onto(&mut self, body: &mut Vec<u8>, most: usize) -> Result<(), Stop> {
        came(self.stream.read_buf(&mut body.limit(most)).await)
    }

    /// Makes room for so many bytes behind those that came.
    pub(super) fn make_room(&mut self, bytes: usize) {
        if self.inbound.capacity() - self.inbound.len() < bytes {
            self.inbound.drain(..self.done);
            self.done = 0;
            self.inbound.reserve(bytes);
        }
    }

    /// Sends what is to go if it is much; little waits for more.
    pub(super) async fn flush_much(&mut self) -> io::Result<()> {
        match self.outbound.len() > OUTBOUND_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Sends what is to go.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if !self.outbound.is_empty() {
            self.stream.expect(self.outbound.len());
            self.stream.write_all(&self.outbound).await?;
            self.outbound.clear();
        }
        Ok(())
    }

    /// Sends what is to go, and then these bytes: without copying them, if they are many.
    pub(super) async fn send_body(&mut self, body: &[u8]) -> io::Result<()> {
        if body.len() <= OUTBOUND_BYTES {
            self.outbound.extend_from_slice(body);
            return self.flush_much().await;
        }
        self.flush().await?;
        self.stream.expect(body.len());
        self.stream.write_all(body).await
    }

    /// Sends what is to go and ends a connection that nothing is under way on.
    pub(super) async fn close(&mut self) {
        if self.flush().await.is_ok() {
            let _ = self.stream.shutdown().await;
        }
    }

    /// The same behind an answer, to a client that may still be sending: closing at once would make
    /// its machine throw away the answer. Who closes too, as it was told to, is not waited for.
    pub(super) async fn close_behind_answer(&mut self) {
        self.close().await;
        self.inbound.clear();
        self.done = 0;
        let listening = async {
            while self.fill().await.is_ok() {
                self.inbound.clear();
            }
        };
        let _ = tokio::time::timeout(LINGER, listening).await;
    }
}

fn came(read: io::Result<usize>) -> Result<(), Stop> {
    match read {
        Ok(0) | Err(_) => Err(Stop::Gone),
        Ok(_) => Ok(()),
    }
}

/// How long a client may take for its next request. Set once for a connection, not for each
/// request: a request only says that the time begins anew, and is not charged for a timer.
struct Alarm {
    sleep: Pin<Box<Sleep>>,
    tick: Duration,
    /// How often it rang since the time began.
    ticks: u32,
}

enum Ring {
    Tick,
    /// The time is up.
    Up,
}

impl Alarm {
    fn new(within: Duration) -> Self {
        let tick = within / TICKS;
        Alarm { sleep: Box::pin(tokio::time::sleep(tick)), tick, ticks: 0 }
    }

    fn restart(&mut self) {
        self.ticks = 0;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Ring> {
        ready!(self.sleep.as_mut().poll(context));
        self.ticks += 1;
        self.sleep.set(tokio::time::sleep(self.tick));
        // The first may ring at once.
        if self.ticks > TICKS {
            return Poll::Ready(Ring::Up);
        }
        // To be woken by the new one, it has to be polled.
        match self.sleep.as_mut().poll(context) {
            Poll::Pending => Poll::Ready(Ring::Tick),
            Poll::Ready(()) => Poll::Ready(Ring::Up),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;
    use tokio::time::{Instant, sleep};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(4);

    fn link() -> (DuplexStream, ClientSocket<DuplexStream>, CloseRequested) {
        let (client, server) = tokio::io::duplex(1024);
        (client, ClientSocket::new(server, WITHIN), Box::pin(std::future::pending()))
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_begins_anew_with_each_request_and_with_nothing_less() {
        let (mut client, mut link, mut closing) = link();
        for _ in 0..10 {
            link.restart_alarm();
            let sending = async {
                sleep(WITHIN - Duration::from_secs(1)).await;
                client.write_all(b"request").await.unwrap();
            };
            let (came, ()) = tokio::join!(link.await_request(&mut closing), sending);
            assert_eq!(came, Ok(()));
            link.take(7);
        }
        // A byte now and then is no request.
        link.restart_alarm();
        let started = Instant::now();
        let trickling = async {
            loop {
                sleep(Duration::from_secs(1)).await;
                client.write_all(b"x").await.unwrap();
            }
        };
        let waiting = async { while link.await_request(&mut closing).await.is_ok() {} };
        tokio::select! {
            () = waiting => {}
            () = trickling => {}
        }
        let took = started.elapsed();
        let longest = WITHIN + WITHIN / TICKS + Duration::from_millis(10);
        assert!((WITHIN..=longest).contains(&took), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_keeps_little_memory() {
        let (mut client, mut link, mut closing) = link();
        link.make_room(1 << 20);
        link.outbound().reserve(1 << 20);
        let sending = async {
            sleep(WITHIN / 2).await;
            client.write_all(b"request").await.unwrap();
        };
        let (came, ()) = tokio::join!(link.await_request(&mut closing), sending);
        assert_eq!(came, Ok(()));
        assert!(link.inbound.capacity() <= INBOUND_BYTES, "{}", link.inbound.capacity());
        assert_eq!(link.outbound.capacity(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_the_door_ends_an_idle_connection_and_no_request_that_began() {
        let (mut client, mut link, _) = link();
        let mut closing: CloseRequested = Box::pin(std::future::ready(()));
        client.write_all(b"requ").await.unwrap();
        assert_eq!(link.await_request(&mut closing).await, Ok(()));
        let sending = async {
            sleep(Duration::from_secs(1)).await;
            client.write_all(b"est").await.unwrap();
        };
        let (came, ()) = tokio::join!(link.await_request(&mut closing), sending);
        assert_eq!((came, link.inbound()), (Ok(()), &b"request"[..]));
        link.take(7);
        assert_eq!(link.await_request(&mut closing).await, Err(Stop::Closing));
    }
}
