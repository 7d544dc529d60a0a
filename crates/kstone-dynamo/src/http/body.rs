//! What is held of bodies: at most 16 MiB of each, unpacked if it is packed, and with a place in
//! memory before it is there.

use std::io::Read as _;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What DynamoDB accepts.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How much of a body that nobody wants is read and thrown away, so that the client, which is still
/// sending, gets to see the answer.
pub(super) const DISCARD_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;
/// Bodies above this take from the common memory, and are worked on beside the executor. Those
/// below are worked on where they are read, so that there are few trees of them at a time.
pub(super) const LARGE_BYTES: usize = 64 * 1024;
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

/// A body, and its place in memory if it is large. To be dropped together, after all that was made
/// of the body.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) bytes: Vec<u8>,
    pub(super) place: Option<Place>,
}

/// A place in the memory that large bodies share.
pub(super) type Place = OwnedSemaphorePermit;

/// The memory that large bodies share.
#[derive(Debug)]
pub(super) struct Memory {
    kib: Arc<Semaphore>,
}

impl Memory {
    pub(super) fn new() -> Self {
        Memory { kib: Arc::new(Semaphore::new(MEMORY_KIB)) }
    }

    /// A place for a body of up to this many bytes and what is made of it; none for a small one.
    /// Whoever waits here holds no place yet, so that nobody waits in a circle.
    pub(super) async fn place(&self, bytes: usize) -> Option<Place> {
        if bytes <= LARGE_BYTES {
            return None;
        }
        let kib = bytes.min(BODY_BYTES_MAX) * TREE_TIMES / 1024;
        self.kib.clone().acquire_many_owned(kib as u32).await.ok()
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
