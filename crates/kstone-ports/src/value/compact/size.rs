//! The size of an item as DynamoDB counts it, for its limit and for capacity units. Every read and
//! write asks for it, so it is taken from the lengths without looking at what they are lengths of.

use crate::value::compact::varint::{self, take_prefixed};
use crate::value::compact::{
    DEPTH_MAX, ItemRef, TAG_B, TAG_BS, TAG_FALSE, TAG_L, TAG_M, TAG_N, TAG_NS, TAG_NULL, TAG_S,
    TAG_SS, TAG_TRUE, ValueRef,
};
use crate::value::number::NumberRef;

impl ItemRef<'_> {
    /// Its size as DynamoDB counts it: the bytes of names and values. Damage counts for nothing.
    pub fn size(&self) -> usize {
        map_size(self.count, self.entries, DEPTH_MAX)
    }

    /// Whether its size is surely no more than this: without a look at it, from the bytes that it
    /// takes. Those are at least half as many as are counted.
    pub fn is_surely_within(&self, size_max: usize) -> bool {
        self.entries.len().saturating_mul(2) <= size_max
    }
}

impl ValueRef<'_> {
    /// How many bytes it counts for in the size of an item.
    pub fn size(&self) -> usize {
        match self {
            ValueRef::S(text) => text.len(),
            ValueRef::N(number) => number.size(),
            ValueRef::B(bytes) => bytes.len(),
            ValueRef::Bool(_) | ValueRef::Null => 1,
            ValueRef::M(map) => 3 + map.count + map_size(map.count, map.entries, DEPTH_MAX),
            ValueRef::L(list) => 3 + list_size(list.count, list.elements, DEPTH_MAX),
            ValueRef::Ss(set) | ValueRef::Ns(set) | ValueRef::Bs(set) => {
                set.iter().map(|element| element.size()).sum()
            }
        }
    }
}

fn map_size(count: usize, mut entries: &[u8], levels: usize) -> usize {
    let entry = |_| Some(take_prefixed(&mut entries)?.len() + take_size(&mut entries, levels)?);
    (0..count).map_while(entry).sum()
}

fn list_size(count: usize, mut elements: &[u8], levels: usize) -> usize {
    (0..count).map_while(|_| Some(1 + take_size(&mut elements, levels)?)).sum()
}

/// Passes over a value and gives its size. At most `levels` values inside each other are looked at.
fn take_size(input: &mut &[u8], levels: usize) -> Option<usize> {
    let below = levels.checked_sub(1)?;
    let (&tag, rest) = input.split_first()?;
    *input = rest;
    if tag == TAG_N {
        return take_number_size(input);
    }
    if matches!(tag, TAG_FALSE | TAG_TRUE | TAG_NULL) {
        return Some(1);
    }
    let mut body = take_prefixed(input)?;
    if matches!(tag, TAG_S | TAG_B) {
        return Some(body.len());
    }
    let count = varint::take(&mut body)?;
    match tag {
        TAG_M => Some(3 + count + map_size(count, body, below)),
        TAG_L => Some(3 + list_size(count, body, below)),
        TAG_NS => Some((0..count).map_while(|_| take_number_size(&mut body)).sum()),
        TAG_SS | TAG_BS => {
            Some((0..count).map_while(|_| take_prefixed(&mut body)).map(<[u8]>::len).sum())
        }
        _ => None,
    }
}

fn take_number_size(input: &mut &[u8]) -> Option<usize> {
    let (number, rest) = input.split_at_checked(NumberRef::skip(input)?)?;
    *input = rest;
    Some(NumberRef::size_of(number))
}
