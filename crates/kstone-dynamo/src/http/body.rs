//! What is held of bodies: at most 16 MiB of each, unpacked if it is packed, and with a place in
//! memory before it is there.
//!
//! A large body takes two places, one after the other: for its bytes while they come, which takes
//! as long as the client likes, and for what is made of them while they are worked on, which does
//! not. They are of different memories: so those who still send do not keep others from being
//! worked on, and who has the second place waits for nobody.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::json::TREE_TIMES;

/// What DynamoDB accepts.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How much of a body that nobody wants is read and thrown away, so that the client, which is still
/// sending, gets to see the answer.
pub(super) const DISCARD_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;
/// Bodies above this take from the common memory, and are worked on beside the executor. Those
/// below are worked on where they are read, so that there are few trees of them at a time.
pub(super) const LARGE_BYTES: usize = 64 * 1024;
/// How many KiB large bodies take at a time, as they are sent; others wait for their turn. Enough
/// for eight of the largest.
const BODIES_KIB: usize = 128 * 1024;
/// How many KiB are taken by what is made of large bodies: enough for one of the largest and some
/// others, because hardly any is.
const TREES_KIB: usize = 256 * 1024;
/// A tree, and its text if that was packed, take this many times the text's size at most.
const WORK_TIMES: usize = TREE_TIMES + 1;
/// Who gets no place for this long is told so, while it still listens: SDKs do for about a minute,
/// and try again.
const TURN_MAX: Duration = Duration::from_secs(10);
/// No packed byte becomes more than this many.
const UNPACKED_TIMES_MAX: usize = 1032;

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    TooLarge,
    TooSlow,
    /// There is no memory for it: others have it all.
    Crowded,
    /// The client went away, or sent what is not HTTP.
    Broken,
}

/// How a body is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    /// In a way that nobody here knows.
    Unknown,
}

impl Packing {
    pub(super) fn of(content_encoding: Option<&[u8]>) -> Self {
        match content_encoding {
            None | Some(b"identity" | b"") => Packing::Plain,
            Some(coding) if coding.eq_ignore_ascii_case(b"gzip") => Packing::Gzip,
            Some(_) => Packing::Unknown,
        }
    }

    /// How long a body of so many bytes can become.
    pub(super) fn unpacked_max(self, bytes: usize) -> usize {
        match self {
            Packing::Gzip => bytes.saturating_mul(UNPACKED_TIMES_MAX),
            Packing::Plain | Packing::Unknown => bytes,
        }
    }
}

/// A body, where it was read.
#[derive(Debug)]
pub(super) enum Body {
    /// Behind the head, so many bytes of it.
    InPlace(usize),
    Apart(Held),
}

/// A body, and its places in memory if it is large. To be dropped together, after all that was made
/// of the body.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) bytes: Vec<u8>,
    /// Of the body as it was sent.
    pub(super) place: Option<Place>,
    /// Of what is made of it; none if that is not much.
    pub(super) work_place: Option<Place>,
}

/// A place in a memory that large bodies share.
pub(super) type Place = OwnedSemaphorePermit;

/// The memories that large bodies share.
#[derive(Debug)]
pub(super) struct Memory {
    bodies_kib: Arc<Semaphore>,
    trees_kib: Arc<Semaphore>,
    turn_max: Duration,
}

impl Memory {
    /// Memory for bodies that may take this long to arrive.
    pub(super) fn new(read_timeout: Duration) -> Self {
        Memory {
            bodies_kib: Arc::new(Semaphore::new(BODIES_KIB)),
            trees_kib: Arc::new(Semaphore::new(TREES_KIB)),
            turn_max: read_timeout.min(TURN_MAX),
        }
    }

    /// A place for the bytes of a body while they come; none for a small one.
    pub(super) async fn place(&self, bytes: usize) -> Result<Option<Place>, Unread> {
        self.take(&self.bodies_kib, bytes, 1).await
    }

    /// A place for what is made of a body that came whole, and that has up to this many bytes when
    /// it is unpacked; none for a small one.
    pub(super) async fn work_place(&self, unpacked: usize) -> Result<Option<Place>, Unread> {
        self.take(&self.trees_kib, unpacked, WORK_TIMES).await
    }

    async fn take(
        &self,
        kib: &Arc<Semaphore>,
        bytes: usize,
        times: usize,
    ) -> Result<Option<Place>, Unread> {
        if bytes <= LARGE_BYTES {
            return Ok(None);
        }
        let wanted = (bytes.min(BODY_BYTES_MAX) * times).div_ceil(1024) as u32;
        let turn = tokio::time::timeout(self.turn_max, Arc::clone(kib).acquire_many_owned(wanted));
        match turn.await {
            Ok(Ok(place)) => Ok(Some(place)),
            _ => Err(Unread::Crowded),
        }
    }
}

/// Unpacks a body sent with `Content-Encoding: gzip`. What unpacks to more than a body may be is
/// refused before it is unpacked.
pub(super) fn unpack(packed: &[u8]) -> Result<Vec<u8>, Unread> {
    let mut whole = Vec::new();
    let most = BODY_BYTES_MAX as u64 + 1;
    let read = MultiGzDecoder::new(packed).take(most).read_to_end(&mut whole);
    read.map_err(|_| Unread::Broken)?;
    if whole.len() > BODY_BYTES_MAX { Err(Unread::TooLarge) } else { Ok(whole) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        Memory::new(Duration::from_secs(60))
    }

    #[tokio::test(start_paused = true)]
    async fn the_largest_of_bodies_find_a_place_and_small_ones_need_none() {
        assert!(memory().place(BODY_BYTES_MAX).await.unwrap().is_some());
        // Packed, it may say of itself that it becomes larger than any may.
        assert!(memory().work_place(usize::MAX).await.unwrap().is_some());
        assert!(memory().place(LARGE_BYTES).await.unwrap().is_none());
        assert!(memory().work_place(LARGE_BYTES).await.unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_place_for_ever() {
        let memory = memory();
        let mut places = Vec::new();
        let started = tokio::time::Instant::now();
        let refused = loop {
            match memory.work_place(BODY_BYTES_MAX).await {
                Ok(place) => places.push(place),
                Err(refused) => break refused,
            }
        };
        assert_eq!((refused, places.len()), (Unread::Crowded, 1));
        assert!(started.elapsed() >= TURN_MAX);
        // Bodies come all the same.
        assert!(memory.place(BODY_BYTES_MAX).await.is_ok());
        drop(places);
        assert!(memory.work_place(BODY_BYTES_MAX).await.is_ok());
    }
}
