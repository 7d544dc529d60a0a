//! Writes values in Redis's simplest encodings, which every version of it reads.

/// The version that is written.
pub(crate) const VERSION: u16 = 10;

/// What a value is, as Redis numbers it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueType {
    String = 0,
    List = 1,
    Set = 2,
    Hash = 4,
    SortedSet = 5,
}

/// A value being written: its elements, until their number is known.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    body: Vec<u8>,
    count: u64,
}

impl Writer {
    /// How long it is so far.
    pub(crate) fn len(&self) -> usize {
        self.body.len()
    }

    /// One element of a list or a set.
    pub(crate) fn element(&mut self, element: &[u8]) {
        self.count += 1;
        text(&mut self.body, element);
    }

    /// A field of a hash.
    pub(crate) fn field(&mut self, name: &[u8], value: &[u8]) {
        self.element(name);
        text(&mut self.body, value);
    }

    /// A member of a sorted set.
    pub(crate) fn member(&mut self, member: &[u8], score: f64) {
        self.element(member);
        self.body.extend_from_slice(&score.to_le_bytes());
    }

    /// All of it, with what it is in front.
    pub(crate) fn finish(self, kind: ValueType) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.body.len() + 10);
        out.push(kind as u8);
        length(&mut out, self.count);
        out.extend_from_slice(&self.body);
        out
    }
}

/// A string.
pub(crate) fn string(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 10);
    out.push(ValueType::String as u8);
    text(&mut out, bytes);
    out
}

/// A length and so many bytes.
pub(crate) fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A length, or any other number that is not negative.
pub(crate) fn length(out: &mut Vec<u8>, len: u64) {
    match (u16::try_from(len), u32::try_from(len)) {
        (Ok(len @ 0..64), _) => out.push(len as u8),
        (Ok(len @ 64..16_384), _) => out.extend_from_slice(&(0x4000 | len).to_be_bytes()),
        (_, Ok(len)) => {
            out.push(0x80);
            out.extend_from_slice(&len.to_be_bytes());
        }
        _ => {
            out.push(0x81);
            out.extend_from_slice(&len.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::Reader;

    #[test]
    fn lengths_of_every_size_are_read_again() {
        for len in [0, 63, 64, 16_383, 16_384, u64::from(u32::MAX), 1 << 40] {
            let mut out = Vec::new();
            length(&mut out, len);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.length(), Some(len));
            assert!(reader.is_empty());
        }
    }
}
