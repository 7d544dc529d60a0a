//! A connection whose client has to keep reading.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// No client that is worth waiting for reads more slowly.
const BYTES_PER_SECOND_MIN: u64 = 64 * 1024;

/// A stream that fails when nothing of what is to be written is taken for some time, or not all of
/// it for longer than a slow client needs: one that asks and never reads, or a byte now and then,
/// would otherwise keep its answer, and its place, for as long as it likes.
#[derive(Debug)]
pub(super) struct Progress<S> {
    stream: S,
    within: Duration,
    /// Runs since the stream last took something; only while it takes nothing.
    waiting: Option<Pin<Box<Sleep>>>,
    /// How long all that is to be written may take.
    whole_within: Duration,
    /// Runs since the stream first did not take all of it at once.
    whole: Option<Pin<Box<Sleep>>>,
}

impl<S> Progress<S> {
    pub(super) fn new(stream: S, within: Duration) -> Self {
        Progress { stream, within, waiting: None, whole_within: within, whole: None }
    }

    /// Begins to count the time for so many bytes, which are to be written next.
    pub(super) fn expect(&mut self, bytes: usize) {
        let reading = Duration::from_secs(bytes as u64 / BYTES_PER_SECOND_MIN);
        self.whole_within = self.within + reading;
        self.whole = None;
    }

    /// What a write came to, unless it has come to nothing for too long.
    fn judge<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let (within, whole_within) = (self.within, self.whole_within);
        let whole = self.whole.get_or_insert_with(|| Box::pin(tokio::time::sleep(whole_within)));
        if whole.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Progress<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Progress<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::{Instant, sleep};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(4);

    /// How long a client takes to get so many bytes, or to be cut off, that reads this often.
    async fn read_every(pause: Duration, at_a_time: usize, bytes: usize) -> (bool, Duration) {
        let (mut client, server) = tokio::io::duplex(1024);
        let mut stream = Progress::new(server, WITHIN);
        stream.expect(bytes);
        let started = Instant::now();
        let answer = vec![0; bytes];
        let reading = async {
            let mut read = vec![0; at_a_time];
            loop {
                sleep(pause).await;
                let _ = client.read(&mut read).await;
            }
        };
        tokio::select! {
            written = stream.write_all(&answer) => (written.is_ok(), started.elapsed()),
            () = reading => unreachable!("it reads for ever"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_trickles_its_answer_loses_it() {
        let bytes = 1 << 20;
        let longest = WITHIN + Duration::from_secs(bytes as u64 / BYTES_PER_SECOND_MIN);
        let (is_read, took) = read_every(Duration::from_secs(1), 1024, bytes).await;
        assert!(!is_read);
        assert!((longest..=longest + Duration::from_secs(1)).contains(&took), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_gets_its_answer() {
        // Twice as quick as it has to be.
        let (is_read, took) = read_every(Duration::from_millis(8), 1024, 1 << 20).await;
        assert!(is_read && took > WITHIN, "{took:?}");
    }
}
