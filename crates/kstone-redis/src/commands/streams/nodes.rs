//! Emulates Redis's stream node boundaries, which `MAXLEN ~` and `MINID ~` depend on.
//!
//! Redis packs the entries of a stream into nodes of a limited size, and `MAXLEN ~` and `MINID ~`
//! remove whole nodes only. Here each entry is a record of its own; but how much such a trim
//! removes is visible to clients, so a stream keeps track of Redis's nodes, to the byte.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::codec;
use super::id::Id;
use crate::args;

/// No node is larger, whatever is configured.
const NODE_BYTES_MAX: u64 = 1 << 30;
/// The length and the number of elements in front, and an end behind.
const FRAME_LEN: u64 = 7;

/// The limits of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// 0 is no limit.
    pub(super) entries: u64,
    /// 0 is no limit.
    pub(super) bytes: u64,
}

/// One node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    /// The entry that it began with, be it there or not.
    pub(super) master: Id,
    /// The last entry that it got, be it there or not.
    pub(super) last: Id,
    /// How many of its entries are there.
    pub(super) live: u64,
    /// How many are not.
    pub(super) deleted: u64,
    /// What it takes, without the two counts.
    bytes: u64,
    /// A digest of the fields of its first entry: later entries do not repeat them.
    fields: u64,
}

impl Node {
    /// A node that is to get this entry first.
    pub(super) fn new(id: Id, fields: &[&[u8]]) -> Node {
        let names = || fields.iter().step_by(2);
        let bytes = FRAME_LEN
            + integer_len((fields.len() / 2) as i64)
            + names().map(|name| element_len(name)).sum::<u64>()
            + integer_len(0);
        Node { master: id, last: id, live: 0, deleted: 0, bytes, fields: digest(fields) }
    }

    /// Whether an entry with these fields and values begins another node.
    pub(super) fn is_full(&self, fields: &[&[u8]], limits: Limits) -> bool {
        let added: usize = fields.iter().map(|field| field.len()).sum();
        let counts = integer_len(self.live as i64) + integer_len(self.deleted as i64);
        let bytes_max = match limits.bytes {
            0 => NODE_BYTES_MAX,
            bytes => bytes.min(NODE_BYTES_MAX),
        };
        self.bytes + counts + added as u64 >= bytes_max
            || (limits.entries > 0 && self.live + self.deleted >= limits.entries)
    }

    /// Notes an entry with these fields and values.
    pub(super) fn add(&mut self, id: Id, fields: &[&[u8]]) {
        let pairs = (fields.len() / 2) as i64;
        let is_same = self.live + self.deleted == 0 || self.fields == digest(fields);
        let (repeated, elements) = match is_same {
            true => (0, 3 + pairs),
            false => {
                let names = fields.iter().step_by(2);
                let names: u64 = names.map(|name| element_len(name)).sum();
                (integer_len(pairs) + names, 4 + 2 * pairs)
            }
        };
        let values = fields.iter().skip(1).step_by(2);
        self.bytes += integer_len(0)
            + integer_len(id.ms.wrapping_sub(self.master.ms) as i64)
            + integer_len(id.seq.wrapping_sub(self.master.seq) as i64)
            + repeated
            + values.map(|value| element_len(value)).sum::<u64>()
            + integer_len(elements);
        self.live += 1;
        self.last = id;
    }

    /// Writes everything but the first name, which is the node's own.
    pub(super) fn put(&self, buf: &mut Vec<u8>) {
        codec::put_id(buf, self.last);
        for number in [self.live, self.deleted, self.bytes] {
            codec::put_number(buf, number);
        }
        buf.extend_from_slice(&self.fields.to_le_bytes());
    }

    /// Takes off the front what [`put`](Node::put) wrote.
    pub(super) fn read(master: Id, bytes: &mut &[u8]) -> Option<Node> {
        let last = codec::id(bytes)?;
        let (live, deleted) = (codec::number(bytes)?, codec::number(bytes)?);
        let len = codec::number(bytes)?;
        let (fields, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(Node { master, last, live, deleted, bytes: len, fields: u64::from_le_bytes(*fields) })
    }
}

/// A digest of the names in `name value name value …`.
fn digest(fields: &[&[u8]]) -> u64 {
    fields.iter().step_by(2).fold(fields.len() as u64, |seed, name| xxh3_64_with_seed(name, seed))
}

/// How many bytes a string takes in a listpack: one that is a number is kept as one.
fn element_len(bytes: &[u8]) -> u64 {
    // No number is longer than 20 characters.
    if let Some(number) = (bytes.len() <= 20).then(|| args::parse_integer(bytes)).flatten() {
        return integer_len(number);
    }
    let len = bytes.len() as u64;
    with_back_len(match len {
        0..64 => 1 + len,
        64..4096 => 2 + len,
        _ => 5 + len,
    })
}

/// How many bytes a number takes in a listpack.
fn integer_len(number: i64) -> u64 {
    1 + match number {
        0..=127 => 1,
        -4096..=4095 => 2,
        -32768..=32767 => 3,
        -8_388_608..=8_388_607 => 4,
        -2_147_483_648..=2_147_483_647 => 5,
        _ => 9,
    }
}

/// An element is followed by its length, seven bits to a byte.
fn with_back_len(len: u64) -> u64 {
    len + match len {
        0..=127 => 1,
        128..=16382 => 2,
        16383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    }
}
