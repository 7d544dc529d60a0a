//! Lengths and counts: seven bits a byte, the lowest first.

/// Appends a length. Items are far below four gigabytes.
pub(super) fn write(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes [`write`] appends.
pub(super) fn len(value: usize) -> usize {
    ((usize::BITS - (value | 1).leading_zeros()) as usize).div_ceil(7)
}

/// Reads a length off the front. `None` if it is cut off, or takes more than five bytes
/// or more than it needs.
#[inline]
pub(super) fn take(input: &mut &[u8]) -> Option<usize> {
    let (&first, rest) = input.split_first()?;
    if first < 0x80 {
        *input = rest;
        return Some(usize::from(first));
    }
    take_long(input)
}

fn take_long(input: &mut &[u8]) -> Option<usize> {
    let mut value = 0u64;
    for (at, &byte) in input.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            if byte == 0 {
                return None;
            }
            *input = input.get(at + 1..)?;
            return usize::try_from(value).ok();
        }
    }
    None
}

/// Reads a length and that many bytes off the front.
#[inline]
pub(super) fn take_prefixed<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = take(input)?;
    let (head, tail) = input.split_at_checked(len)?;
    *input = tail;
    Some(head)
}
