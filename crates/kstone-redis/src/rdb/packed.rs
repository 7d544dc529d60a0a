//! Reads the packed forms of small collections: listpacks, and the older ziplists, zipmaps and
//! intsets.

use std::borrow::Cow;

use super::Reader;

/// An element: a part of the text, or a number that was written as such.
pub(crate) type Element<'r> = Cow<'r, [u8]>;

/// What ends a listpack, a ziplist and a zipmap.
const END: u8 = 0xff;

/// A signed number of up to eight bytes.
pub(super) fn little_endian(bytes: &[u8]) -> i64 {
    let is_negative = bytes.last().is_some_and(|last| last & 0x80 != 0);
    let mut whole = if is_negative { [0xff; 8] } else { [0; 8] };
    for (to, from) in whole.iter_mut().zip(bytes) {
        *to = *from;
    }
    i64::from_le_bytes(whole)
}

fn number<'r>(number: i64) -> Element<'r> {
    Cow::Owned(number.to_string().into_bytes())
}

/// The elements of a listpack.
pub(crate) fn listpack(bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut reader = Reader::new(bytes);
    let (len, _count) = (u32::from_le_bytes(reader.chunk()?), reader.take(2)?);
    if usize::try_from(len).ok()? != bytes.len() {
        return None;
    }
    let mut elements = Vec::new();
    loop {
        let before = reader.rest.len();
        let first = reader.byte()?;
        let element = match first {
            END => return reader.is_empty().then_some(elements),
            0x00..=0x7f => number(first.into()),
            0x80..=0xbf => Cow::Borrowed(reader.take(usize::from(first & 0x3f))?),
            0xc0..=0xdf => {
                let raw = (i64::from(first & 0x1f) << 8) | i64::from(reader.byte()?);
                number(if raw >= 1 << 12 { raw - (1 << 13) } else { raw })
            }
            0xe0..=0xef => {
                let len = (usize::from(first & 0x0f) << 8) | usize::from(reader.byte()?);
                Cow::Borrowed(reader.take(len)?)
            }
            0xf0 => {
                let len = u32::from_le_bytes(reader.chunk()?);
                Cow::Borrowed(reader.take(usize::try_from(len).ok()?)?)
            }
            0xf1 => number(little_endian(reader.take(2)?)),
            0xf2 => number(little_endian(reader.take(3)?)),
            0xf3 => number(little_endian(reader.take(4)?)),
            0xf4 => number(little_endian(reader.take(8)?)),
            _ => return None,
        };
        elements.push(element);
        // Its length once more, for who reads backwards.
        reader.take(match before - reader.rest.len() {
            0..=127 => 1,
            128..16_383 => 2,
            16_383..2_097_151 => 3,
            2_097_151..268_435_455 => 4,
            _ => 5,
        })?;
    }
}

/// The elements of a ziplist.
pub(super) fn ziplist(bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut reader = Reader::new(bytes);
    let len = u32::from_le_bytes(reader.chunk()?);
    if usize::try_from(len).ok()? != bytes.len() {
        return None;
    }
    // Where the last one is, and how many there are.
    reader.take(6)?;
    let mut elements = Vec::new();
    loop {
        match reader.byte()? {
            END => return reader.is_empty().then_some(elements),
            // How long the one before is.
            0xfe => drop(reader.take(4)?),
            _ => {}
        }
        let first = reader.byte()?;
        elements.push(match first {
            0x00..=0x3f => Cow::Borrowed(reader.take(usize::from(first))?),
            0x40..=0x7f => {
                let len = (usize::from(first & 0x3f) << 8) | usize::from(reader.byte()?);
                Cow::Borrowed(reader.take(len)?)
            }
            0x80 => {
                let len = u32::from_be_bytes(reader.chunk()?);
                Cow::Borrowed(reader.take(usize::try_from(len).ok()?)?)
            }
            0xc0 => number(little_endian(reader.take(2)?)),
            0xd0 => number(little_endian(reader.take(4)?)),
            0xe0 => number(little_endian(reader.take(8)?)),
            0xf0 => number(little_endian(reader.take(3)?)),
            0xfe => number(little_endian(reader.take(1)?)),
            0xf1..=0xfd => number(i64::from(first & 0x0f) - 1),
            _ => return None,
        });
    }
}

/// The fields and values of a zipmap, one after the other.
pub(super) fn zipmap(bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut reader = Reader::new(bytes);
    reader.byte()?;
    let mut elements = Vec::new();
    let length = |reader: &mut Reader<'_>, first: u8| match first {
        0xfe => usize::try_from(u32::from_le_bytes(reader.chunk()?)).ok(),
        END => None,
        len => Some(usize::from(len)),
    };
    loop {
        let first = reader.byte()?;
        if first == END {
            return reader.is_empty().then_some(elements);
        }
        let len = length(&mut reader, first)?;
        elements.push(Cow::Borrowed(reader.take(len)?));
        let first = reader.byte()?;
        let len = length(&mut reader, first)?;
        let free = usize::from(reader.byte()?);
        elements.push(Cow::Borrowed(reader.take(len)?));
        reader.take(free)?;
    }
}

/// The numbers of an intset.
pub(super) fn intset(bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut reader = Reader::new(bytes);
    let width = usize::try_from(u32::from_le_bytes(reader.chunk()?)).ok()?;
    let count = usize::try_from(u32::from_le_bytes(reader.chunk()?)).ok()?;
    let is_right =
        matches!(width, 2 | 4 | 8) && count.checked_mul(width) == Some(reader.rest.len());
    is_right
        .then(|| reader.rest.chunks_exact(width).map(|one| number(little_endian(one))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(elements: Option<Vec<Element<'_>>>) -> Option<Vec<String>> {
        let text = |one: Element<'_>| String::from_utf8_lossy(&one).into_owned();
        Some(elements?.into_iter().map(text).collect())
    }

    #[test]
    fn numbers_keep_their_sign() {
        assert_eq!(little_endian(&[0xff, 0xff]), -1);
        assert_eq!(little_endian(&[0x00, 0x00, 0x80]), -8_388_608);
        assert_eq!(little_endian(&[0xff, 0x7f]), 32_767);
    }

    #[test]
    fn a_listpack_has_numbers_and_texts() {
        let bytes = b"\x15\0\0\0\x04\0\x05\x01\xdf\xff\x02\x83abc\x04\xf1\x00\x80\x03\xff";
        let want = ["5", "-1", "abc", "-32768"].map(str::to_owned).to_vec();
        assert_eq!(texts(listpack(bytes)), Some(want));
        for len in 0..bytes.len() {
            assert_eq!(listpack(&bytes[..len]), None);
        }
    }

    #[test]
    fn a_ziplist_has_numbers_and_texts() {
        let bytes = b"\x17\0\0\0\x12\0\0\0\x03\0\x00\x03abc\x05\xf6\x02\xc0\x00\x80\xff";
        let mut bytes = bytes.to_vec();
        bytes[0] = bytes.len() as u8;
        let want = ["abc", "5", "-32768"].map(str::to_owned).to_vec();
        assert_eq!(texts(ziplist(&bytes)), Some(want));
        for len in 0..bytes.len() {
            assert_eq!(ziplist(&bytes[..len]), None);
        }
    }

    #[test]
    fn an_intset_and_a_zipmap_are_read() {
        let bytes = b"\x02\0\0\0\x02\0\0\0\x01\0\xff\xff";
        assert_eq!(texts(intset(bytes)), Some(vec!["1".to_owned(), "-1".to_owned()]));
        assert_eq!(intset(&bytes[..11]), None);
        let bytes = b"\x01\x01a\x02\x01bc.\xff";
        assert_eq!(texts(zipmap(bytes)), Some(vec!["a".to_owned(), "bc".to_owned()]));
    }
}
