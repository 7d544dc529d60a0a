//! LZF decompression: runs of plain bytes, and copies of earlier ones.

/// No copy makes more of its bytes than this.
const GROWTH_MAX: usize = 264;
/// The longest text there can be.
const LEN_MAX: usize = 512 << 20;

/// Unpacks to exactly `len` bytes.
pub(super) fn unpack(mut packed: &[u8], len: usize) -> Option<Vec<u8>> {
    if len > packed.len().saturating_mul(GROWTH_MAX).min(LEN_MAX) {
        return None;
    }
    // Room for what is promised comes with what is there.
    let mut out = Vec::with_capacity(len.min(packed.len().saturating_mul(4)));
    let next = |packed: &mut &[u8]| {
        let (&byte, rest) = packed.split_first()?;
        *packed = rest;
        Some(usize::from(byte))
    };
    while let Some(control) = next(&mut packed) {
        if control < 32 {
            let (plain, rest) = packed.split_at_checked(control + 1)?;
            out.extend_from_slice(plain);
            packed = rest;
        } else {
            let more = if control >> 5 == 7 { next(&mut packed)? } else { 0 };
            let count = (control >> 5) + more + 2;
            let back = ((control & 0x1f) << 8) + next(&mut packed)? + 1;
            let from = out.len().checked_sub(back)?;
            for at in from..from + count {
                // A copy may run into what it has just written.
                out.push(*out.get(at)?);
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_may_overlap_itself() {
        let packed = [0, b'a', 0xe0, 0, 0];
        assert_eq!(unpack(&packed, 10), Some(vec![b'a'; 10]));
    }

    #[test]
    fn what_is_cut_off_or_reaches_too_far_back_is_refused() {
        assert_eq!(unpack(&[0, b'a', 0xe0, 0, 0], 9), None);
        assert_eq!(unpack(&[0, b'a', 0xe0, 0], 10), None);
        assert_eq!(unpack(&[0x20, 5], 3), None);
        assert_eq!(unpack(&[5, b'a'], 6), None);
        assert_eq!(unpack(&[], usize::MAX), None);
    }
}
