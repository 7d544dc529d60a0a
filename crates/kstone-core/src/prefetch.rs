//! Asks the processor for memory before it is needed.
//!
//! Code that is about to read many places that lie far apart asks for all of them first: the processor
//! then waits for all at once, not for one after the other. It changes how long things take and
//! nothing else: see docs/decisions/0013. `cargo +nightly miri test -p kstone-core --lib prefetch` passes.

/// Whether prefetching does anything on this processor. Where it does not, callers need not search for what to
/// prefetch.
pub const HELPS: bool = cfg!(target_arch = "x86_64");

/// The processor fetches memory in lines of this many bytes.
const LINE_BYTES: usize = 64;

/// Asks for the beginning of a value.
#[inline]
pub fn soon<T>(place: &T) {
    line(std::ptr::from_ref(place).cast());
}

/// Asks for the first bytes of some, up to `len_max` of them.
#[inline]
pub fn bytes_soon(bytes: &[u8], len_max: usize) {
    let bytes = bytes.get(..len_max).unwrap_or(bytes);
    for line_of in bytes.chunks(LINE_BYTES) {
        line(line_of.as_ptr());
    }
}

/// Asks for what lies behind some bytes, `len` of it, for a caller that is about to store there.
#[inline]
pub fn behind(bytes: &[u8], len: usize) {
    let end = bytes.as_ptr_range().end;
    for at in (0..len).step_by(LINE_BYTES) {
        line(end.wrapping_add(at));
    }
}

/// Asks for the first bytes of a value, up to `len_max` of them.
#[inline]
pub fn value_soon<T: ?Sized>(value: &T, len_max: usize) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    for at in (0..size_of_val(value).min(len_max)).step_by(LINE_BYTES) {
        line(start.wrapping_add(at));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn line(place: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch is a hint. It reads nothing that the program could see, writes nothing, and
    // faults at no address; SSE, which has the instruction, is part of every x86_64.
    #[allow(unsafe_code)]
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn line(_place: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_for_memory_changes_nothing_wherever_it_is() {
        let value = [1u64, 2, 3];
        soon(&value);
        soon(&());
        bytes_soon(&[], 100);
        let bytes = vec![7; 1000];
        for len in [0, 1, 63, 64, 65, 1000] {
            bytes_soon(bytes.get(..len).unwrap(), 200);
            bytes_soon(&bytes, len);
            value_soon(&value, len);
            behind(&bytes, len);
        }
        value_soon(&(), 1);
        assert_eq!((value, bytes), ([1, 2, 3], vec![7; 1000]));
    }
}
