//! Unordered elements as records: the members of a set, the fields of a hash.
//!
//! Each is a part of its key under `0x01 | digest (4, big-endian) | element`. The digest spreads
//! the elements evenly over 32 bits of sort keys, whatever they look like, which gives two things
//! for nothing: a fair random element is a random point in that range, and a scan's cursor is a
//! point in the range, which stays valid whatever comes and goes meanwhile.
//!
//! An element too long for a sort key is kept in the value, under a wider digest of it; the lowest
//! bit of the first digest tells. The value is then `length (4) | element | payload`, else just the
//! payload.

use std::borrow::Cow;
use std::ops::{Bound, ControlFlow};

use bytes::Bytes;
use hashbrown::HashSet;
use kstone_core::VALUE_LEN_MAX;
use kstone_core::env::Random;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::fault::{Fault, Result};
use crate::store::Txn;

/// The first byte of an element's sort key.
pub(crate) const ELEMENT: u8 = 1;
/// Longer elements are kept in the value.
const SHORT_LEN_MAX: usize = 4096;
/// Up to so many elements are looked through rather than searched at random.
const FEW: u64 = 128;
/// How many elements a random range of sort keys has on average, and how many at most: that a range
/// has more is less likely than a defect of the machine.
const RANGE_LEN: u64 = 32;
const RANGE_LEN_MAX: u64 = 96;

/// An element with what belongs to it.
pub(crate) type Element = (Vec<u8>, Vec<u8>);

/// The sort key of an element.
pub(crate) fn sort_key(element: &[u8]) -> Vec<u8> {
    let digest = (xxh3_64(element) >> 32) as u32;
    let is_long = element.len() > SHORT_LEN_MAX;
    let digest = (digest & !1) | u32::from(is_long);
    let wide = is_long.then(|| xxh3_128(element).to_be_bytes());
    let rest = wide.as_ref().map_or(element, |wide| wide.as_slice());
    let mut sk = Vec::with_capacity(5 + rest.len());
    sk.push(ELEMENT);
    sk.extend_from_slice(&digest.to_be_bytes());
    sk.extend_from_slice(rest);
    sk
}

/// Where in the 32 bits an element is.
pub(crate) fn digest(sk: &[u8]) -> u32 {
    sk.get(1..5).and_then(|digest| digest.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// The element and its payload in what was found under a sort key.
pub(crate) fn split<'a>(sk: &'a [u8], value: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    if digest(sk) & 1 == 0 {
        return (sk.get(5..).unwrap_or_default(), value);
    }
    let split = value.split_first_chunk::<4>();
    let split =
        split.and_then(|(len, rest)| rest.split_at_checked(u32::from_le_bytes(*len) as usize));
    split.unwrap_or_default()
}

/// The element that has this sort key, if that says it all.
pub(crate) fn short_name(sk: &[u8]) -> Option<&[u8]> {
    sk.get(5..).filter(|_| digest(sk) & 1 == 0)
}

/// An error unless an element with a payload of this length can be stored.
pub(crate) fn check_len(element: &[u8], payload_len: usize) -> Result<()> {
    const TOO_LONG: Fault = Fault::fixed("ERR element too long: the limit is 16 MiB");
    if element.len() + payload_len + 8 > VALUE_LEN_MAX { Err(TOO_LONG) } else { Ok(()) }
}

/// The payload of an element, if it is there. `sk` is its [`sort_key`].
pub(crate) fn get(txn: &Txn<'_>, key: &[u8], sk: &[u8], element: &[u8]) -> Result<Option<Bytes>> {
    const TWINS: Fault = Fault::fixed("ERR two long elements of the key have the same digest");
    let Some(value) = txn.member(key, sk)? else { return Ok(None) };
    if digest(sk) & 1 == 0 {
        return Ok(Some(value));
    }
    let (stored, payload) = split(sk, &value);
    if stored != element {
        return Err(TWINS);
    }
    Ok(Some(value.slice_ref(payload)))
}

/// Writes an element.
pub(crate) fn put(txn: &mut Txn<'_>, key: &[u8], sk: &[u8], element: &[u8], payload: Vec<u8>) {
    if digest(sk) & 1 == 0 {
        return txn.put_member(key, sk, payload);
    }
    let mut value = Vec::with_capacity(4 + element.len() + payload.len());
    value.extend_from_slice(&(element.len() as u32).to_le_bytes());
    value.extend_from_slice(element);
    value.extend_from_slice(&payload);
    txn.put_member(key, sk, value);
}

/// Shows the elements from a place on, with their sort keys, until told to stop.
pub(crate) fn each_from(
    txn: &Txn<'_>,
    key: &[u8],
    from: u32,
    see: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let low = edge(u64::from(from));
    txn.each_part(key, Bound::Included(&low), Bound::Excluded(&[ELEMENT + 1]), false, see)
}

/// Shows every element and its payload, until told to stop.
pub(crate) fn each(
    txn: &Txn<'_>,
    key: &[u8],
    mut see: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>>,
) -> Result<()> {
    each_from(txn, key, 0, |sk, value| {
        let (element, payload) = split(sk, value);
        see(element, payload)
    })
}

/// The sort key that every element at or behind a place comes after.
fn edge(place: u64) -> Vec<u8> {
    match u32::try_from(place) {
        Ok(place) => [&[ELEMENT], place.to_be_bytes().as_slice()].concat(),
        Err(_) => vec![ELEMENT + 1],
    }
}

/// A random element of a key that has `count`, each as likely as any other.
pub(crate) fn random(
    txn: &Txn<'_>,
    key: &[u8],
    count: u64,
    random: &impl Random,
) -> Result<Option<Element>> {
    if count <= FEW {
        let nth = random.next_u64() % count.max(1);
        return nth_between(txn, key, 0, 1 << 32, nth);
    }
    // A range of sort keys at random, then one of so many places in it: if nobody is there, again.
    // So every element is as likely as the other, however many there are in its range.
    let ranges = count / RANGE_LEN;
    for _ in 0..100 {
        let range = random.next_u64() % ranges;
        let edge_of = |range: u64| ((u128::from(range) << 32) / u128::from(ranges)) as u64;
        let nth = random.next_u64() % RANGE_LEN_MAX;
        let found = nth_between(txn, key, edge_of(range), edge_of(range + 1), nth)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    // Only if somebody chose the elements for their digests.
    let from = random.next_u64() >> 32;
    match nth_between(txn, key, from, 1 << 32, 0)? {
        None => nth_between(txn, key, 0, 1 << 32, 0),
        found => Ok(found),
    }
}

fn nth_between(
    txn: &Txn<'_>,
    key: &[u8],
    low: u64,
    high: u64,
    nth: u64,
) -> Result<Option<Element>> {
    let (low, high) = (edge(low), edge(high));
    let (mut passed, mut found) = (0, None);
    txn.each_part(key, Bound::Included(&low), Bound::Excluded(&high), false, |sk, value| {
        if passed < nth {
            passed += 1;
            return Ok(ControlFlow::Continue(()));
        }
        let (element, payload) = split(sk, value);
        found = Some((element.to_vec(), payload.to_vec()));
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Shows `wanted` different elements at random of a key that has `count`.
pub(crate) fn sample(
    txn: &Txn<'_>,
    key: &[u8],
    count: u64,
    wanted: u64,
    random: &impl Random,
    mut see: impl FnMut(&[u8], &[u8]),
) -> Result<()> {
    if count > FEW && wanted < count / 3 {
        let mut seen = HashSet::new();
        while (seen.len() as u64) < wanted {
            let Some((element, payload)) = self::random(txn, key, count, random)? else { break };
            if !seen.contains(&element) {
                see(&element, &payload);
                seen.insert(element);
            }
        }
        return Ok(());
    }
    // Everyone that comes by is taken with the chance that is left for it.
    let (mut left, mut missing) = (count, wanted.min(count));
    each(txn, key, |element, payload| {
        if missing == 0 {
            return Ok(ControlFlow::Break(()));
        }
        if random.next_u64() % left.max(1) < missing {
            see(element, payload);
            missing -= 1;
        }
        left = left.saturating_sub(1);
        Ok(ControlFlow::Continue(()))
    })
}

/// Shows `wanted` elements at random of a key that has `count`, each time any of them.
pub(crate) fn draw(
    txn: &Txn<'_>,
    key: &[u8],
    count: u64,
    wanted: u64,
    random: &impl Random,
    mut see: impl FnMut(&[u8], &[u8]),
) -> Result<()> {
    // Who wants about as many as there are gets them from a copy.
    let copy = if wanted > 1 && (count <= FEW || wanted >= count / 4) {
        let mut all: Vec<Element> = Vec::new();
        each(txn, key, |element, payload| {
            all.push((element.to_vec(), payload.to_vec()));
            Ok(ControlFlow::Continue(()))
        })?;
        all
    } else {
        Vec::new()
    };
    for _ in 0..wanted {
        let drawn = match copy.get((random.next_u64() % (copy.len() as u64).max(1)) as usize) {
            Some((element, payload)) => Some((Cow::Borrowed(element), Cow::Borrowed(payload))),
            None => self::random(txn, key, count, random)?
                .map(|(element, payload)| (Cow::Owned(element), Cow::Owned(payload))),
        };
        let Some((element, payload)) = drawn else { break };
        see(&element, &payload);
    }
    Ok(())
}
