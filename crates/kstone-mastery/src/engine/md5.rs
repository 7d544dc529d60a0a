//! MD5 (RFC 1321), for the one key form whose shard depends on it. It protects nothing here.

const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The digest of some bytes.
pub(super) fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut message = bytes.to_vec();
    message.push(0x80);
    message.resize(message.len().next_multiple_of(64), 0);
    // The length takes the last eight bytes of a block of 64.
    if message.len() - bytes.len() - 1 < 8 {
        message.resize(message.len() + 64, 0);
    }
    let end = message.len() - 8;
    message.truncate(end);
    message.extend_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_le_bytes());

    let mut state: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in message.chunks_exact(64) {
        let mut words = [0u32; 16];
        for (word, four) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = four.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        }
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64usize {
            let (mixed, at) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), 5 * step + 1),
                2 => (b ^ c ^ d, 3 * step + 5),
                _ => (c ^ (b | !d), 7 * step),
            };
            // The whole part of |sin| of the step, in 32 bits.
            let constant = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a.wrapping_add(mixed).wrapping_add(constant).wrapping_add(words[at % 16]);
            let turned = sum.rotate_left(SHIFTS[step / 16][step % 4]);
            (a, d, c, b) = (d, c, b, b.wrapping_add(turned));
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d]) {
            *sum = sum.wrapping_add(part);
        }
    }
    let mut digest = [0; 16];
    for (four, part) in digest.chunks_exact_mut(4).zip(state) {
        four.copy_from_slice(&part.to_le_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::md5;

    #[test]
    fn the_digests_are_those_of_the_rfc() {
        let hex = |text: &str| -> String {
            md5(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
        };
        assert_eq!(hex(""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
        let digits = "1234567890".repeat(8);
        assert_eq!(hex(&digits), "57edf4a22be3c955ac49da2e2107b67a");
        // Lengths around the end of a block.
        assert_eq!(hex(&"a".repeat(55)), "ef1772b6dff9a122358552954ad0df65");
        assert_eq!(hex(&"a".repeat(56)), "3b0c8ac703f828b04c6c197006d17218");
        assert_eq!(hex(&"a".repeat(64)), "014842d480b571495a4a0363793f7367");
    }
}
