//! The records of a sorted set: two for each member.
//!
//! `01 member` holds the score, `02 score member` is the index that is read in order. In the index
//! the score is encoded so that bytes sort as numbers do. Minus zero and zero sort as equal; the
//! value of the index record tells them apart.

use bytes::Bytes;
use kstone_core::KEY_LEN_MAX;

use crate::fault::{Fault, Result};

const MEMBER: u8 = 1;
const INDEX: u8 = 2;
/// The index record of a member whose score is minus zero.
const MINUS_ZERO: &[u8] = b"-";

/// The sort key of a member's score.
pub(crate) fn member_key(member: &[u8]) -> Vec<u8> {
    let mut sk = Vec::with_capacity(1 + member.len());
    sk.push(MEMBER);
    sk.extend_from_slice(member);
    sk
}

/// The member whose score is under this sort key.
pub(crate) fn member_of(sk: &[u8]) -> Option<&[u8]> {
    sk.split_first().filter(|(first, _)| **first == MEMBER).map(|(_, member)| member)
}

/// The first sort key of the index, and the first after it.
pub(super) const INDEX_START: &[u8] = &[INDEX];
pub(super) const INDEX_END: &[u8] = &[INDEX + 1];

/// The sort key of a member in the index.
pub(super) fn index_key(score: f64, member: &[u8]) -> Vec<u8> {
    index_place(ordered(score), member)
}

/// A place in the index, whether a member is there or not.
pub(super) fn index_place(ordered: u64, member: &[u8]) -> Vec<u8> {
    let mut sk = Vec::with_capacity(9 + member.len());
    sk.push(INDEX);
    sk.extend_from_slice(&ordered.to_be_bytes());
    sk.extend_from_slice(member);
    sk
}

/// The value of the index record.
pub(super) fn index_value(score: f64) -> &'static [u8] {
    if score == 0.0 && score.is_sign_negative() { MINUS_ZERO } else { b"" }
}

/// Member and score of an index record.
pub(super) fn read_index<'r>(sk: &'r [u8], value: &[u8]) -> Result<(&'r [u8], f64)> {
    let record = sk.get(1..).and_then(|rest| rest.split_first_chunk::<8>());
    let (ordered, member) = record.ok_or(DAMAGED)?;
    let score = if value == MINUS_ZERO { -0.0 } else { score_of(u64::from_be_bytes(*ordered)) };
    Ok((member, score))
}

/// The score in a member's record.
pub(super) fn read_score(value: &[u8]) -> Result<f64> {
    let bits = value.try_into().map_err(|_| DAMAGED)?;
    Ok(f64::from_bits(u64::from_le_bytes(bits)))
}

/// The value of a member's record.
pub(super) fn score_value(score: f64) -> [u8; 8] {
    score.to_bits().to_le_bytes()
}

/// A number that sorts as the score does.
pub(super) fn ordered(score: f64) -> u64 {
    // Adding zero makes minus zero a zero.
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn score_of(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

/// Where in the index all members are: not before `floor`, and before `ceiling`.
///
/// Taking members from one end leaves tombstones there that the engine keeps until it compacts
/// them. Reading from the end over all of them would make a queue slower with each member taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extent {
    floor: Bytes,
    ceiling: Bytes,
}

/// No end is kept at more length: the head, which has them, is written by every addition.
const END_LEN_MAX: usize = 64;

impl Default for Extent {
    fn default() -> Self {
        Extent { floor: Bytes::from_static(INDEX_START), ceiling: Bytes::from_static(INDEX_END) }
    }
}

impl Extent {
    /// The first place of the index that may have a member.
    pub(super) fn floor(&self) -> &[u8] {
        &self.floor
    }

    /// The first place of the index after which there is no member.
    pub(super) fn ceiling(&self) -> &[u8] {
        &self.ceiling
    }

    /// A member was put at this place.
    pub(super) fn include(&mut self, place: &[u8]) {
        if place < &self.floor[..] {
            self.set_floor(place);
        }
        if place >= &self.ceiling[..] {
            self.ceiling = match place.len() < END_LEN_MAX {
                true => [place, &[0]].concat().into(),
                false => Bytes::from_static(INDEX_END),
            };
        }
    }

    /// All members up to this place were taken.
    pub(super) fn set_floor(&mut self, place: &[u8]) {
        // Shorter is before.
        self.floor = Bytes::copy_from_slice(place.get(..END_LEN_MAX).unwrap_or(place));
    }

    /// All members from this place on were taken.
    pub(super) fn set_ceiling(&mut self, place: &[u8]) {
        if place.len() <= END_LEN_MAX {
            self.ceiling = Bytes::copy_from_slice(place);
        }
    }
}

/// A head: how many members there are, and where.
pub(super) fn head(count: u64, extent: &Extent) -> Vec<u8> {
    let mut head = count.to_le_bytes().to_vec();
    if *extent != Extent::default() {
        head.push(extent.floor.len() as u8);
        head.extend_from_slice(&extent.floor);
        head.extend_from_slice(&extent.ceiling);
    }
    head
}

/// Reads a head.
pub(super) fn read_head(head: &Bytes) -> Result<(u64, Extent)> {
    let (count, ends) = head.split_first_chunk::<8>().ok_or(DAMAGED)?;
    let extent = match ends.split_first() {
        None => Extent::default(),
        Some((&len, ends)) => {
            let (floor, ceiling) = ends.split_at_checked(len.into()).ok_or(DAMAGED)?;
            Extent { floor: head.slice_ref(floor), ceiling: head.slice_ref(ceiling) }
        }
    };
    Ok((u64::from_le_bytes(*count), extent))
}

const DAMAGED: Fault = Fault::fixed("MISCONF a stored sorted set is damaged");

/// Refuses a member that is too long for a record.
pub(super) fn check_len(key: &[u8], member: &[u8]) -> Result<()> {
    /// Prefix, score and what the engine adds.
    const ROOM: usize = 64;
    if key.len() + member.len() + ROOM <= KEY_LEN_MAX {
        return Ok(());
    }
    Err(Fault::new(format!(
        "ERR a member of a sorted set and its key together may have {} bytes at most",
        KEY_LEN_MAX - ROOM
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_sort_as_bytes_and_come_back() {
        let scores =
            [f64::NEG_INFINITY, -1e300, -1.5, -1e-310, 0.0, 1e-310, 1.0, 1.5, f64::INFINITY];
        for pair in scores.windows(2) {
            assert!(ordered(pair[0]) < ordered(pair[1]), "{pair:?}");
        }
        assert_eq!(ordered(-0.0), ordered(0.0));
        for score in scores.into_iter().chain([-0.0]) {
            let sk = index_key(score, b"m");
            let (member, read) = read_index(&sk, index_value(score)).unwrap();
            assert_eq!((member, read.to_bits()), (&b"m"[..], score.to_bits()));
        }
    }

    #[test]
    fn an_extent_holds_every_member_whatever_comes_and_goes() {
        let place = |score: f64, name: &str| index_key(score, name.as_bytes());
        let mut extent = Extent::default();
        extent.set_floor(&place(3.0, "c"));
        extent.set_ceiling(&place(5.0, "e"));
        for (score, name) in [(4.0, "x"), (1.0, "a"), (9.0, "z"), (-1.0, &"n".repeat(100))] {
            extent.include(&place(score, name));
            assert!(extent.floor() <= place(score, name).as_slice());
            assert!(extent.ceiling() > place(score, name).as_slice());
        }
        let (count, read) = read_head(&head(7, &extent).into()).unwrap();
        assert_eq!((count, read), (7, extent));
        assert_eq!(head(7, &Extent::default()).len(), 8);
        let mut long = Extent::default();
        long.include(&place(f64::INFINITY, &"n".repeat(100)));
        assert_eq!(long, Extent::default());
    }
}
