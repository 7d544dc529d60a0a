//! The RDB encoding of values, Redis's own: the payload of DUMP, RESTORE and MIGRATE.
//!
//! The bytes that are read here may come from anybody. Whatever is not valid is `None`.

mod crc64;
mod listpack;
mod lzf;
mod packed;
mod value;
pub(crate) mod write;

pub(crate) use listpack::Listpack;
pub(crate) use packed::listpack;
pub(crate) use value::Value;

use std::borrow::Cow;

use crc64::crc64;

/// The highest version of the form that is read.
pub(crate) const VERSION_MAX: u16 = 10;
/// What is behind a sealed payload: version and checksum.
pub(crate) const SEAL_LEN: usize = 10;

/// Puts a version and a checksum behind a payload.
pub(crate) fn seal(mut payload: Vec<u8>, version: u16) -> Vec<u8> {
    payload.extend_from_slice(&version.to_le_bytes());
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// The payload and its version, if the checksum is right.
pub(crate) fn unseal(sealed: &[u8]) -> Option<(&[u8], u16)> {
    let (checked, checksum) = sealed.split_last_chunk()?;
    let (payload, version) = checked.split_last_chunk()?;
    let is_right = crc64(checked) == u64::from_le_bytes(*checksum);
    is_right.then_some((payload, u16::from_le_bytes(*version)))
}

/// Reads a payload from its front.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'r> {
    rest: &'r [u8],
}

/// A length, or how a text is written that has none.
enum Length {
    Of(u64),
    /// A number in so many bytes.
    Number(usize),
    Compressed,
}

impl<'r> Reader<'r> {
    pub(crate) fn new(bytes: &'r [u8]) -> Reader<'r> {
        Reader { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `len` bytes as they are.
    pub(crate) fn take(&mut self, len: usize) -> Option<&'r [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// The next `len` bytes as they are.
    pub(crate) fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.chunk::<1>().map(|[byte]| byte)
    }

    /// A length, or any other number that is not negative.
    pub(crate) fn length(&mut self) -> Option<u64> {
        match self.any_length()? {
            Length::Of(len) => Some(len),
            Length::Number(_) | Length::Compressed => None,
        }
    }

    fn any_length(&mut self) -> Option<Length> {
        let first = self.byte()?;
        Some(match (first >> 6, first) {
            (0, _) => Length::Of(first.into()),
            (1, _) => Length::Of((u64::from(first & 0x3f) << 8) | u64::from(self.byte()?)),
            (_, 0x80) => Length::Of(u32::from_be_bytes(self.chunk()?).into()),
            (_, 0x81) => Length::Of(u64::from_be_bytes(self.chunk()?)),
            (_, 0xc0) => Length::Number(1),
            (_, 0xc1) => Length::Number(2),
            (_, 0xc2) => Length::Number(4),
            (_, 0xc3) => Length::Compressed,
            _ => return None,
        })
    }

    /// A text: plain, compressed, or as a number.
    pub(crate) fn text(&mut self) -> Option<Cow<'r, [u8]>> {
        match self.any_length()? {
            Length::Of(len) => Some(Cow::Borrowed(self.take(usize::try_from(len).ok()?)?)),
            Length::Number(len) => {
                let number = packed::little_endian(self.take(len)?);
                Some(Cow::Owned(number.to_string().into_bytes()))
            }
            Length::Compressed => {
                let packed_len = usize::try_from(self.length()?).ok()?;
                let len = usize::try_from(self.length()?).ok()?;
                Some(Cow::Owned(lzf::unpack(self.take(packed_len)?, len)?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_texts_are_read_in_every_form() {
        let bytes = b"\x03abc\x40\x03abc\x80\0\0\0\x03abc\xc0\xff\xc1\x00\x01\xc2\xff\xff\xff\x7f\
                      \xc3\x05\x0a\x00a\xe0\x00\x00";
        let mut reader = Reader::new(bytes);
        for text in ["abc", "abc", "abc", "-1", "256", "2147483647", "aaaaaaaaaa"] {
            assert_eq!(reader.text().as_deref(), Some(text.as_bytes()));
        }
        assert!(reader.is_empty());
        assert_eq!(Reader::new(b"\x05abc").text(), None);
        assert_eq!(Reader::new(b"\xff").length(), None);
    }

    #[test]
    fn a_seal_tells_damage() {
        let sealed = seal(b"payload".to_vec(), 7);
        assert_eq!(unseal(&sealed), Some((&b"payload"[..], 7)));
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert_eq!(unseal(&damaged), None);
        }
        assert_eq!(unseal(b"short"), None);
    }
}
