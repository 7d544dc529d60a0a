//! Request bodies: each bounded in length and in time, the large ones together in memory.

use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use crate::memory::{MemoryBudget, MemoryShare};

/// Bodies up to this length take nothing from the shared budget.
const SMALL_BYTES: usize = 4 * 1024;
/// How long a client waits for memory before it is told that there is none: SDKs listen for about a
/// minute, and try again.
const MEMORY_WAIT_MAX: Duration = Duration::from_secs(10);
/// So many times what a body may be is thrown away of one that is longer.
const DISCARDED_TIMES_MAX: usize = 2;
/// The memory that the bodies of one door may take at a time.
const MEMORY_KIB: usize = 128 * 1024;

/// What bodies may be.
#[derive(Debug, Clone)]
pub struct BodyLimits {
    bytes_max: usize,
    timeout: Duration,
    memory: MemoryBudget,
}

/// A body that has arrived, with its share of the memory. Keep the share for as long as the bytes,
/// and what was made of them, are needed.
#[derive(Debug)]
pub struct HeldBody {
    /// The bytes.
    pub bytes: Bytes,
    /// None if the body is small.
    pub memory: Option<MemoryShare>,
}

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is longer than a body may be. The rest of it was not read.
    #[error("the body is longer than {bytes_max} bytes")]
    TooLarge {
        /// How long a body may be.
        bytes_max: usize,
    },
    /// It did not come in time.
    #[error("the body did not come in time")]
    TooSlow,
    /// Other bodies have all the memory.
    #[error("too many large requests at a time; try again")]
    OutOfMemory,
    /// The client went away, or sent what is not HTTP.
    #[error("the body broke off")]
    Broken(Box<dyn std::error::Error + Send + Sync>),
}

impl BodyLimits {
    /// Bodies of up to so many bytes, each of which may take so long to arrive.
    pub fn new(bytes_max: usize, timeout: Duration) -> BodyLimits {
        let memory = MemoryBudget::new(MEMORY_KIB, MEMORY_WAIT_MAX.min(timeout));
        BodyLimits { bytes_max, timeout, memory }
    }

    /// The same, with the same memory, for bodies of up to so many bytes.
    pub fn with_bytes_max(&self, bytes_max: usize) -> BodyLimits {
        BodyLimits { bytes_max, ..self.clone() }
    }

    /// How long a body may be.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Reads the whole of a body.
    ///
    /// # Errors
    /// If it is too long or too slow, breaks off, or finds no memory.
    pub async fn collect<B>(&self, body: B) -> Result<HeldBody, BodyError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.collect_announced(body, |_| None).await
    }

    /// The same for a body whose first bytes tell how long it is, if one knows its format.
    /// One that tells nothing reserves memory for the longest.
    ///
    /// # Errors
    /// As [`BodyLimits::collect`]; also if it is longer than it says.
    pub async fn collect_announced<B>(
        &self,
        body: B,
        length_of: impl Fn(&[u8]) -> Option<usize>,
    ) -> Result<HeldBody, BodyError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut body = pin!(body);
        let hint = body.size_hint();
        if hint.lower() > self.bytes_max as u64 {
            return self.refuse(body).await;
        }
        let (mut bytes, mut memory) = (BytesMut::new(), None);
        // What is announced may be large; what is not announced may turn out to be.
        let announced = hint.exact().map(|exact| exact as usize);
        let mut has_ended = false;
        if announced.is_none_or(|announced| announced <= SMALL_BYTES) {
            has_ended = self.read_onto(&mut bytes, body.as_mut(), SMALL_BYTES).await?;
        }
        if !has_ended {
            let most = announced.or_else(|| length_of(&bytes)).unwrap_or(self.bytes_max);
            if most > self.bytes_max || bytes.len() > most {
                return self.refuse(body).await;
            }
            // Waiting for memory is not taken off the client's time.
            let share = self.memory.take(most).await.map_err(|_| BodyError::OutOfMemory)?;
            memory = Some(share);
            has_ended = self.read_onto(&mut bytes, body.as_mut(), most).await?;
            has_ended &= bytes.len() <= most;
        }
        if !has_ended || bytes.len() > self.bytes_max {
            drop((bytes, memory));
            return self.refuse(body).await;
        }
        Ok(HeldBody { bytes: bytes.freeze(), memory })
    }

    /// Refuses a body that is too long. A part of it is read and thrown away, because a client that
    /// is still sending does not see the answer when its connection is reset.
    async fn refuse<B>(&self, mut body: Pin<&mut B>) -> Result<HeldBody, BodyError>
    where
        B: Body<Data = Bytes>,
    {
        let mut left = self.bytes_max.saturating_mul(DISCARDED_TIMES_MAX);
        let discarding = async {
            while let Some(Ok(frame)) = body.frame().await {
                let length = frame.data_ref().map_or(0, Bytes::len);
                match left.checked_sub(length) {
                    Some(fewer) => left = fewer,
                    None => break,
                }
            }
        };
        let _ = timeout(self.timeout, discarding).await;
        Err(BodyError::TooLarge { bytes_max: self.bytes_max })
    }

    /// Reads until the body ends, or is longer than `most`. Answers whether it has ended.
    async fn read_onto<B>(
        &self,
        bytes: &mut BytesMut,
        mut body: Pin<&mut B>,
        most: usize,
    ) -> Result<bool, BodyError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let reading = async {
            while bytes.len() <= most {
                let Some(frame) = body.frame().await else { return Ok(true) };
                let frame = frame.map_err(|error| BodyError::Broken(error.into()))?;
                if let Ok(data) = frame.into_data() {
                    bytes.extend_from_slice(&data);
                }
            }
            Ok(false)
        };
        timeout(self.timeout, reading).await.unwrap_or(Err(BodyError::TooSlow))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    use super::*;

    const BYTES_MAX: usize = 64 * 1024;

    fn limits() -> BodyLimits {
        BodyLimits::new(BYTES_MAX, Duration::from_secs(5))
    }

    /// A body that does not say how long it is.
    fn unannounced(bytes: usize) -> impl Body<Data = Bytes, Error = Infallible> {
        let frames = (0..bytes.div_ceil(1000)).map(move |at| {
            let length = 1000.min(bytes - at * 1000);
            Ok(Frame::data(Bytes::from(vec![b'x'; length])))
        });
        StreamBody::new(Frames(frames))
    }

    /// What is there at once, as a stream.
    struct Frames<I>(I);

    impl<I: Iterator + Unpin> futures_core::Stream for Frames<I> {
        type Item = I::Item;

        fn poll_next(
            mut self: Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<I::Item>> {
            std::task::Poll::Ready(self.0.next())
        }
    }

    #[tokio::test]
    async fn a_body_is_read_whole_and_one_that_is_too_long_is_refused() {
        let limits = limits();
        for bytes in [0, 1, SMALL_BYTES, SMALL_BYTES + 1, BYTES_MAX] {
            let announced =
                limits.collect(Full::new(Bytes::from(vec![b'x'; bytes]))).await.unwrap();
            let unannounced = limits.collect(unannounced(bytes)).await.unwrap();
            for held in [announced, unannounced] {
                assert_eq!(held.bytes.len(), bytes);
                assert_eq!(held.memory.is_some(), bytes > SMALL_BYTES, "{bytes}");
            }
        }
        let announced = limits.collect(Full::new(Bytes::from(vec![b'x'; BYTES_MAX + 1]))).await;
        let unannounced = limits.collect(unannounced(BYTES_MAX + 1)).await;
        for refused in [announced, unannounced] {
            assert!(matches!(refused, Err(BodyError::TooLarge { bytes_max: BYTES_MAX })));
        }
        let tiny = limits.with_bytes_max(10).collect(self::unannounced(11)).await;
        assert!(matches!(tiny, Err(BodyError::TooLarge { bytes_max: 10 })));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let never = StreamBody::new(Never);
        assert!(matches!(limits().collect(never).await, Err(BodyError::TooSlow)));
    }

    /// A body of which nothing comes.
    struct Never;

    impl futures_core::Stream for Never {
        type Item = Result<Frame<Bytes>, Infallible>;

        fn poll_next(
            self: Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Self::Item>> {
            std::task::Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_wait_for_memory_and_small_ones_need_none() {
        let limits = limits();
        let all = limits.memory.take(MEMORY_KIB * 1024).await.unwrap();
        let large = || Full::new(Bytes::from(vec![b'x'; BYTES_MAX]));
        assert!(matches!(limits.collect(large()).await, Err(BodyError::OutOfMemory)));
        assert!(limits.collect(unannounced(SMALL_BYTES)).await.is_ok());
        drop(all);
        assert!(limits.collect(large()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_says_its_length_in_its_first_bytes_takes_no_more_memory() {
        let limits = limits();
        let _most = limits.memory.take((MEMORY_KIB - 32) * 1024).await.unwrap();
        let held = limits.collect_announced(unannounced(20_000), |_| Some(20_000)).await.unwrap();
        assert_eq!((held.bytes.len(), held.memory.is_some()), (20_000, true));
        drop(held);
        assert!(matches!(limits.collect(unannounced(20_000)).await, Err(BodyError::OutOfMemory)));
        let liar = limits.collect_announced(unannounced(20_000), |_| Some(10_000)).await;
        assert!(matches!(liar, Err(BodyError::TooLarge { .. })));
    }
}
