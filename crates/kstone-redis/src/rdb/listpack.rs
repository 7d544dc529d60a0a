//! Writes listpacks: the form in which Redis packs a small list of texts and numbers.

use crate::args;

/// What ends a listpack.
const END: u8 = 0xff;
/// From here on the header does not say how many elements there are.
const COUNT_UNKNOWN: u16 = u16::MAX;

/// A listpack being written.
#[derive(Debug, Default)]
pub(crate) struct Listpack {
    elements: Vec<u8>,
    count: usize,
}

impl Listpack {
    /// A text. One that is a number is written as such, as Redis does.
    pub(crate) fn text(&mut self, text: &[u8]) {
        if let Some(number) = args::parse_integer(text) {
            return self.number(number);
        }
        let start = self.elements.len();
        match (text.len(), u16::try_from(text.len())) {
            (len @ 0..64, _) => self.elements.push(0x80 | len as u8),
            (_, Ok(len @ 64..4096)) => {
                self.elements.extend_from_slice(&(0xe000 | len).to_be_bytes());
            }
            (len, _) => {
                self.elements.push(0xf0);
                self.elements.extend_from_slice(&(len as u32).to_le_bytes());
            }
        }
        self.elements.extend_from_slice(text);
        self.end_element(start);
    }

    /// A number.
    pub(crate) fn number(&mut self, number: i64) {
        let start = self.elements.len();
        let bytes = number.to_le_bytes();
        let (mark, len) = match number {
            0..=127 => (None, 1),
            -4096..=4095 => {
                let short = 0xc000 | (number as u16 & 0x1fff);
                self.elements.extend_from_slice(&short.to_be_bytes());
                return self.end_element(start);
            }
            -32768..=32767 => (Some(0xf1), 2),
            -8_388_608..=8_388_607 => (Some(0xf2), 3),
            -2_147_483_648..=2_147_483_647 => (Some(0xf3), 4),
            _ => (Some(0xf4), 8),
        };
        self.elements.extend(mark);
        self.elements.extend(bytes.iter().take(len));
        self.end_element(start);
    }

    /// An element is followed by its length for who comes from behind: seven bits to a byte, all
    /// but the first marked.
    fn end_element(&mut self, start: usize) {
        self.count += 1;
        let len = self.elements.len() - start;
        let bytes: u32 = match len {
            0..=127 => 1,
            128..16_383 => 2,
            16_383..2_097_151 => 3,
            2_097_151..268_435_455 => 4,
            _ => 5,
        };
        for byte in (0..bytes).rev() {
            let mark = if byte + 1 == bytes { 0 } else { 0x80 };
            self.elements.push((len >> (7 * byte)) as u8 & 0x7f | mark);
        }
    }

    /// All of it.
    pub(crate) fn finish(self) -> Vec<u8> {
        let len = self.elements.len() + 7;
        let mut out = Vec::with_capacity(len);
        out.extend_from_slice(&(len as u32).to_le_bytes());
        let count = u16::try_from(self.count).unwrap_or(COUNT_UNKNOWN);
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&self.elements);
        out.push(END);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::listpack;

    #[test]
    fn what_was_packed_is_unpacked() {
        let numbers = [0, 127, 128, -1, -4096, 4095, 4096, -32768, 8_388_607, -8_388_609, i64::MIN];
        let texts = [0, 1, 63, 64, 127, 4095, 4096, 20_000].map(|len| "x".repeat(len));
        let mut pack = Listpack::default();
        numbers.iter().for_each(|number| pack.number(*number));
        texts.iter().for_each(|text| pack.text(text.as_bytes()));
        pack.text(b"123");
        let packed = pack.finish();
        let expected = numbers.iter().map(i64::to_string).chain(texts).chain(["123".to_owned()]);
        let unpacked = listpack(&packed).unwrap();
        assert!(unpacked.iter().map(|one| one.to_vec()).eq(expected.map(String::into_bytes)));
    }
}
