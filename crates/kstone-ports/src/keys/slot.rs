//! The hash slots of a Redis Cluster.

/// How many slots a cluster has.
pub const SLOTS: u16 = 16_384;

/// The slot of a key: CRC16 (XMODEM) of its tag modulo [`SLOTS`]. The tag is what stands between
/// the first `{` and the next `}`, if that is anything; otherwise it is the whole key.
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(tag(key)) % SLOTS
}

fn tag(key: &[u8]) -> &[u8] {
    let position = |bytes: &[u8], wanted| bytes.iter().position(|byte| *byte == wanted);
    let tagged = || {
        let rest = key.get(position(key, b'{')? + 1..)?;
        rest.get(..position(rest, b'}')?)
    };
    tagged().filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// The checksum of each byte alone.
const CRC16: [u16; 256] = {
    const POLYNOMIAL: u16 = 0x1021;
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let (mut crc, mut bit) = ((byte as u16) << 8, 0);
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ POLYNOMIAL };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        let at = usize::from((crc >> 8) as u8 ^ byte);
        (crc << 8) ^ CRC16.get(at).copied().unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"{user1000}.followers"));
        assert_eq!(slot_of(b"foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
        assert_eq!(slot_of(b"foo{bar}{zap}"), slot_of(b"bar"));
        assert_eq!(slot_of(b""), 0);
    }
}
