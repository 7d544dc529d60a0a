//! Reading a request's body: at most 16 MiB, within a time, unpacked if it is packed, and with a
//! place in memory before it is there.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What DynamoDB accepts.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How much of a body that nobody wants is read and thrown away, so that the client, which is still
/// sending, gets to see the answer.
const DISCARD_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;
/// Bodies above this take from the common memory, and are worked on beside the executor. Those
/// below are worked on where they are read, so that there are few trees of them at a time.
const LARGE_BYTES: usize = 64 * 1024;
/// How many KiB large bodies take at a time, with what is made of them; others wait for their turn.
/// Enough for three of the largest.
const MEMORY_KIB: usize = 256 * 1024;
/// A body and its tree take this many times the body's size: a tree of typed values is about four
/// times as large as its text.
const TREE_TIMES: usize = 5;
/// No packed byte becomes more than this many.
const UNPACKED_TIMES_MAX: usize = 1032;

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    TooLarge,
    TooSlow,
    /// The client went away, or sent what is not HTTP.
    Broken,
}

/// A body, and its place in memory if it is large. To be dropped together, after all that was made
/// of the body.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) bytes: Bytes,
    place: Option<OwnedSemaphorePermit>,
}

impl Held {
    /// Whether it is too much work for the executor's thread.
    pub(super) fn is_large(&self) -> bool {
        self.place.is_some()
    }
}

/// The memory that large bodies share.
#[derive(Debug)]
pub(super) struct Memory {
    kib: Arc<Semaphore>,
}

impl Memory {
    pub(super) fn new() -> Self {
        Memory { kib: Arc::new(Semaphore::new(MEMORY_KIB)) }
    }

    /// A place for a body of up to this many bytes and what is made of it. Whoever waits here holds
    /// no place yet, so that nobody waits in a circle.
    async fn place(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        if bytes <= LARGE_BYTES {
            return None;
        }
        let kib = bytes.min(BODY_BYTES_MAX) * TREE_TIMES / 1024;
        self.kib.clone().acquire_many_owned(kib as u32).await.ok()
    }

    /// Reads all of a body.
    pub(super) async fn read(
        &self,
        mut body: Incoming,
        is_packed: bool,
        within: Duration,
    ) -> Result<Held, Unread> {
        if body.is_end_stream() {
            return Ok(Held { bytes: Bytes::new(), place: None });
        }
        let announced = body.size_hint().exact().map(|bytes| bytes as usize);
        if announced.is_some_and(|bytes| bytes > BODY_BYTES_MAX) {
            return match discard(&mut body, within).await {
                Err(Unread::TooSlow) => Err(Unread::TooSlow),
                _ => Err(Unread::TooLarge),
            };
        }
        let unpacked_max = |bytes: usize| match is_packed {
            true => bytes.saturating_mul(UNPACKED_TIMES_MAX),
            false => bytes,
        };
        let mut place = self.place(announced.map_or(0, unpacked_max)).await;
        let reading = self.read_all(&mut body, &mut place);
        let read = match tokio::time::timeout(within, reading).await {
            Ok(read) => read,
            Err(_) => Err(Unread::TooSlow),
        };
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(Unread::TooLarge) => {
                drop(place);
                let _ = discard(&mut body, within).await;
                return Err(Unread::TooLarge);
            }
            Err(unread) => return Err(unread),
        };
        if place.is_none() {
            place = self.place(unpacked_max(bytes.len())).await;
        }
        Ok(Held { bytes, place })
    }

    /// Reads up to what a body may be; one without an announced length takes its place, for the
    /// longest that it can become, when it turns out to be large.
    async fn read_all(
        &self,
        body: &mut Incoming,
        place: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<Bytes, Unread> {
        let mut first = Bytes::new();
        let mut whole = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
            let length = first.len() + whole.len() + data.len();
            if length > BODY_BYTES_MAX {
                return Err(Unread::TooLarge);
            }
            if length > LARGE_BYTES && place.is_none() {
                *place = self.place(BODY_BYTES_MAX).await;
            }
            if first.is_empty() && whole.is_empty() {
                // Nearly every body is one piece, and stays where it was read.
                first = data;
            } else {
                if whole.is_empty() {
                    whole.extend_from_slice(&std::mem::take(&mut first));
                }
                whole.extend_from_slice(&data);
            }
        }
        if whole.is_empty() { Ok(first) } else { Ok(whole.freeze()) }
    }
}

/// Reads a body that nobody wants, and keeps none of it.
pub(super) async fn discard(body: &mut Incoming, within: Duration) -> Result<(), Unread> {
    let discarding = async {
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Unread::Broken)?;
            length += frame.data_ref().map_or(0, Bytes::len);
            if length > DISCARD_BYTES_MAX {
                return Err(Unread::TooLarge);
            }
        }
        Ok(())
    };
    match tokio::time::timeout(within, discarding).await {
        Ok(discarded) => discarded,
        Err(_) => Err(Unread::TooSlow),
    }
}

/// Unpacks a body sent with `Content-Encoding: gzip`. What unpacks to more than a body may be is
/// refused before it is unpacked.
pub(super) fn unpack(packed: &[u8]) -> Result<Bytes, Unread> {
    let mut whole = Vec::new();
    let most = BODY_BYTES_MAX as u64 + 1;
    let read = MultiGzDecoder::new(packed).take(most).read_to_end(&mut whole);
    read.map_err(|_| Unread::Broken)?;
    if whole.len() > BODY_BYTES_MAX { Err(Unread::TooLarge) } else { Ok(whole.into()) }
}
