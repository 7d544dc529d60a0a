//! A stream that fails when its peer stops reading what is written, or never begins to speak.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::activity::Activity;

/// No client that is worth waiting for reads more slowly.
const BYTES_PER_SECOND_MIN: u64 = 64 * 1024;

/// How long the slowest client takes to read so many bytes.
pub(crate) fn reading_time(bytes: u64) -> Duration {
    Duration::from_secs(bytes / BYTES_PER_SECOND_MIN)
}

/// A stream that fails when nothing of what is to be written is taken for some time, or not all of
/// it for longer than a slow client needs: one that asks and never reads, or a byte now and then,
/// would otherwise keep its answer, and its connection slot, for as long as it likes.
#[derive(Debug)]
pub struct StallGuard<S> {
    stream: S,
    within: Duration,
    /// Runs since the stream last took something; only while it takes nothing.
    waiting: Option<Pin<Box<Sleep>>>,
    /// How long all that is to be written may take, where that is known.
    whole_within: Option<Duration>,
    /// Runs since the stream first did not take all of it at once.
    whole: Option<Pin<Box<Sleep>>>,
    /// How many first bytes are still to come, and by when.
    first_bytes: Option<(usize, Pin<Box<Sleep>>)>,
    /// Told when the peer takes bytes.
    activity: Option<Arc<Activity>>,
}

impl<S> StallGuard<S> {
    /// Of what is written, something must be taken within each such time.
    pub fn new(stream: S, within: Duration) -> Self {
        StallGuard {
            stream,
            within,
            waiting: None,
            whole_within: None,
            whole: None,
            first_bytes: None,
            activity: None,
        }
    }

    /// The same, but reading fails unless the first so many bytes come in time.
    pub fn with_first_bytes(self, bytes: usize, within: Duration) -> Self {
        let deadline = Box::pin(tokio::time::sleep(within));
        StallGuard { first_bytes: Some((bytes, deadline)), ..self }
    }

    /// The same, and tells this connection when its peer takes bytes.
    pub(crate) fn watched_by(self, activity: &Arc<Activity>) -> Self {
        StallGuard { activity: Some(Arc::clone(activity)), ..self }
    }

    /// Begins to count the time for so many bytes, which are to be written next.
    pub fn expect(&mut self, bytes: usize) {
        self.whole_within = Some(self.within + reading_time(bytes as u64));
        self.whole = None;
    }

    /// The result of a write, or an error if nothing was written for too long.
    fn judge<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            if let Some(activity) = &self.activity {
                activity.wrote();
            }
            return written;
        }
        let within = self.within;
        if let Some(whole_within) = self.whole_within {
            let whole =
                self.whole.get_or_insert_with(|| Box::pin(tokio::time::sleep(whole_within)));
            if whole.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if let Some((missing, deadline)) = &mut self.first_bytes {
            let came = into.filled().len() - filled;
            if came >= *missing {
                self.first_bytes = None;
            } else if came > 0 || read.is_pending() {
                *missing -= came;
                if deadline.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
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
        let mut stream = StallGuard::new(server, WITHIN);
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
        let longest = WITHIN + reading_time(bytes as u64);
        let (is_read, took) = read_every(Duration::from_secs(1), 1024, bytes).await;
        assert!(!is_read);
        assert!((longest..=longest + Duration::from_secs(1)).contains(&took), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_begin_in_time_is_cut_off() {
        let mut byte = [0];
        for said in 0..3 {
            let (mut client, server) = tokio::io::duplex(1024);
            let mut stream = StallGuard::new(server, WITHIN).with_first_bytes(2, WITHIN / 2);
            client.write_all(&b"hi"[..said]).await.unwrap();
            for _ in 0..said {
                stream.read_exact(&mut byte).await.unwrap();
            }
            let started = Instant::now();
            let reading = tokio::time::timeout(WITHIN, stream.read_exact(&mut byte)).await;
            let is_cut_off =
                matches!(reading, Ok(Err(error)) if error.kind() == io::ErrorKind::TimedOut);
            assert_eq!(is_cut_off, said < 2, "after {said} bytes");
            assert_eq!(started.elapsed(), if is_cut_off { WITHIN / 2 } else { WITHIN });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_gets_its_answer() {
        // Twice as quick as it has to be.
        let (is_read, took) = read_every(Duration::from_millis(8), 1024, 1 << 20).await;
        assert!(is_read && took > WITHIN, "{took:?}");
    }
}
