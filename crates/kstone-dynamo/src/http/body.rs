//! Request bodies: at most 16 MiB, decompressed if compressed, with memory reserved in advance.
//!
//! A large body reserves memory twice, from two budgets: for its bytes while they arrive, which takes
//! as long as the client likes, and for what is parsed from them, which does not. So clients that
//! still send do not keep others from being worked on, and a request that is being worked on waits
//! for nobody.

use std::io::Read as _;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use kstone_door::memory::{MemoryBudget, MemoryShare};

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
const ARRIVING_KIB: usize = 128 * 1024;
/// How many KiB are taken by what is made of large bodies: enough for one of the largest and some
/// others, because hardly any is.
const PARSED_KIB: usize = 256 * 1024;
/// A tree, and its text if that was packed, take this many times the text's size at most.
const PARSED_TIMES: usize = TREE_TIMES + 1;
/// A client that gets no memory for this long gets an error, while it still listens: SDKs do for about a minute,
/// and try again.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// No packed byte becomes more than this many.
const UNPACKED_TIMES_MAX: usize = 1032;

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    TooLarge,
    TooSlow,
    /// There is no memory for it: others have it all.
    OutOfMemory,
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

/// A body, and its memory if it is large. To be dropped together, after all that was made of the
/// body.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) bytes: Vec<u8>,
    /// For the body as it was sent.
    pub(super) arriving: Option<MemoryShare>,
    /// For what is parsed from it; none if that is not much.
    pub(super) parsed: Option<MemoryShare>,
}

/// The memory that large bodies share.
#[derive(Debug)]
pub(super) struct BodyMemory {
    arriving: MemoryBudget,
    /// For what is made of bodies that have arrived.
    parsed: MemoryBudget,
}

impl BodyMemory {
    /// Memory for bodies that may take this long to arrive.
    pub(super) fn new(read_timeout: Duration) -> Self {
        let wait_max = read_timeout.min(WAIT_MAX);
        BodyMemory {
            arriving: MemoryBudget::new(ARRIVING_KIB, wait_max),
            parsed: MemoryBudget::new(PARSED_KIB, wait_max),
        }
    }

    /// Memory for the bytes of a body while they come; none for a small one.
    pub(super) async fn for_arriving(&self, bytes: usize) -> Result<Option<MemoryShare>, Unread> {
        take(&self.arriving, bytes, 1).await
    }

    /// Memory for what is made of a body that came whole, and that has up to this many bytes when
    /// it is unpacked; none for a small one.
    pub(super) async fn for_parsed(&self, unpacked: usize) -> Result<Option<MemoryShare>, Unread> {
        take(&self.parsed, unpacked, PARSED_TIMES).await
    }
}

async fn take(
    budget: &MemoryBudget,
    bytes: usize,
    times: usize,
) -> Result<Option<MemoryShare>, Unread> {
    if bytes <= LARGE_BYTES {
        return Ok(None);
    }
    let share = budget.take(bytes.min(BODY_BYTES_MAX) * times).await;
    share.map(Some).map_err(|_| Unread::OutOfMemory)
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

    fn memory() -> BodyMemory {
        BodyMemory::new(Duration::from_secs(60))
    }

    #[tokio::test(start_paused = true)]
    async fn the_largest_of_bodies_find_memory_and_small_ones_need_none() {
        assert!(memory().for_arriving(BODY_BYTES_MAX).await.unwrap().is_some());
        // Packed, it may say of itself that it becomes larger than any may.
        assert!(memory().for_parsed(usize::MAX).await.unwrap().is_some());
        assert!(memory().for_arriving(LARGE_BYTES).await.unwrap().is_none());
        assert!(memory().for_parsed(LARGE_BYTES).await.unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_memory_for_ever() {
        let memory = memory();
        let mut shares = Vec::new();
        let started = tokio::time::Instant::now();
        let refused = loop {
            match memory.for_parsed(BODY_BYTES_MAX).await {
                Ok(share) => shares.push(share),
                Err(refused) => break refused,
            }
        };
        assert_eq!((refused, shares.len()), (Unread::OutOfMemory, 1));
        assert!(started.elapsed() >= WAIT_MAX);
        // Bodies come all the same.
        assert!(memory.for_arriving(BODY_BYTES_MAX).await.is_ok());
        drop(shares);
        assert!(memory.for_parsed(BODY_BYTES_MAX).await.is_ok());
    }
}
