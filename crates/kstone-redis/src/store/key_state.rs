//! A key's type, size and expiry at one moment, as policies count them.

use kstone::policy::KeySize;

use crate::store::changes::Head;
use crate::store::{Entry, Kind, annex};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyState {
    pub(crate) kind: Kind,
    /// Bytes of the key and of a string's value; members of a collection; when it ends.
    pub(crate) key_size: KeySize,
    /// The place of a list's first element; 0 of what is no list.
    pub(crate) first: u64,
}

impl KeyState {
    /// What a head says of its key; `None` if it is of no type that is known.
    // A call would hand it over in memory, to be copied on at once, which is what it would cost
    // most.
    #[inline(always)]
    pub(super) fn of(key: &[u8], head: &Head) -> Option<KeyState> {
        let tag = head.value.first().map(|first| first & !annex::ANNEXED)?;
        let (kind, body) = (Kind::from_tag(tag)?, annex::body_of(&head.value));
        Some(KeyState::new(key, kind, body, head.expires_at_ms))
    }

    /// What a key is that was found.
    pub(crate) fn of_entry(key: &[u8], entry: &Entry) -> KeyState {
        KeyState::new(key, entry.kind, &entry.body, entry.expires_at_ms)
    }

    #[inline(always)]
    fn new(key: &[u8], kind: Kind, body: &[u8], expires_at_ms: Option<u64>) -> KeyState {
        let (value_bytes, members, first) = match kind {
            Kind::String => (body.len() as u64, 0, 0),
            Kind::LongString => (number_at(body, 0), 0, 0),
            Kind::Set | Kind::SortedSet | Kind::Hash => (0, number_at(body, 0), 0),
            Kind::List => (0, number_at(body, 8), number_at(body, 0)),
            Kind::Stream => (0, short_number(body), 0),
        };
        let bytes = key.len() as u64 + value_bytes;
        let key_size = KeySize { bytes, members, expires_at_ms };
        KeyState { kind, key_size, first }
    }
}

/// The number of eight bytes at a place of a head.
fn number_at(body: &[u8], at: usize) -> u64 {
    let number = body.get(at..).and_then(|rest| rest.first_chunk());
    number.map_or(0, |number| u64::from_le_bytes(*number))
}

/// The number of as many bytes as it needs that a stream's head begins with.
fn short_number(body: &[u8]) -> u64 {
    let mut number = 0;
    for (byte, shift) in body.iter().zip((0..64).step_by(7)) {
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}
