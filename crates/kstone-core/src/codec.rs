//! Little-endian integers and varints, and a reader that never panics on short input.
//!
//! Every decoder of the crate (log, SST, manifest) reads through [`Reader`], so that "no panic and
//! no unbounded memory on any bytes" is proved in one place.

/// Appends `value` in LEB128, seven bits a byte, at most ten bytes.
pub(crate) fn put_varint(buf: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        buf.push((value as u8) | 0x80);
        value >>= 7;
    }
    buf.push(value as u8);
}

/// How many bytes [`put_varint`] would append.
pub(crate) fn varint_len(value: u64) -> usize {
    ((64 - (value | 1).leading_zeros()) as usize).div_ceil(7)
}

/// Reads fields off the front of a byte slice. Every method answers `None` when the input is too
/// short or malformed; the caller turns that into an error that names file and offset.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    start_len: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes, start_len: bytes.len() }
    }

    /// How many bytes were consumed so far.
    pub(crate) fn position(&self) -> usize {
        self.start_len - self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(len)?;
        self.rest = tail;
        Some(head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        let (first, tail) = self.rest.split_first()?;
        self.rest = tail;
        Some(*first)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        let (head, tail) = self.rest.split_first_chunk::<4>()?;
        self.rest = tail;
        Some(u32::from_le_bytes(*head))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let (head, tail) = self.rest.split_first_chunk::<8>()?;
        self.rest = tail;
        Some(u64::from_le_bytes(*head))
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for (i, &byte) in self.rest.iter().take(10).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if i == 9 && bits > 1 {
                return None;
            }
            value |= bits << (7 * i);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[i + 1..];
                return Some(value);
            }
        }
        None
    }

    /// A varint length followed by that many bytes.
    #[inline]
    pub(crate) fn prefixed(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        self.bytes(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_and_report_their_length() {
        for value in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut buf = Vec::new();
            put_varint(&mut buf, value);
            assert_eq!(buf.len(), varint_len(value), "{value}");
            let mut reader = Reader::new(&buf);
            assert_eq!(reader.varint(), Some(value));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn an_overlong_or_cut_varint_is_refused() {
        assert_eq!(Reader::new(&[0x80; 3]).varint(), None);
        assert_eq!(Reader::new(&[0xff; 11]).varint(), None);
    }
}
