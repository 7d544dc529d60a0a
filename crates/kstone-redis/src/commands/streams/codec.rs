//! Encoding of numbers in the records of streams: as many bytes as each needs.

use super::id::Id;
use crate::fault::Fault;

pub(super) const DAMAGED: Fault = Fault::fixed("MISCONF a stored stream is damaged");

pub(super) fn put_number(buf: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        buf.push(number as u8 | 0x80);
        number >>= 7;
    }
    buf.push(number as u8);
}

pub(super) fn put_id(buf: &mut Vec<u8>, id: Id) {
    put_number(buf, id.ms);
    put_number(buf, id.seq);
}

pub(super) fn put_bytes(buf: &mut Vec<u8>, bytes: &[u8]) {
    put_number(buf, bytes.len() as u64);
    buf.extend_from_slice(bytes);
}

/// Takes a number off the front.
pub(super) fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Takes a name off the front.
pub(super) fn id(bytes: &mut &[u8]) -> Option<Id> {
    Some(Id { ms: number(bytes)?, seq: number(bytes)? })
}

/// Takes bytes with their length off the front.
pub(super) fn bytes<'b>(from: &mut &'b [u8]) -> Option<&'b [u8]> {
    let len = usize::try_from(number(from)?).ok()?;
    let (taken, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let mut buf = Vec::new();
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        numbers.iter().for_each(|number| put_number(&mut buf, *number));
        put_bytes(&mut buf, b"abc");
        let mut rest = buf.as_slice();
        assert!(numbers.iter().all(|expected| number(&mut rest) == Some(*expected)));
        assert_eq!((bytes(&mut rest), rest.len()), (Some(b"abc".as_slice()), 0));
        assert_eq!(number(&mut rest), None);
        assert_eq!(bytes(&mut b"\x05abc".as_slice()), None);
    }
}
