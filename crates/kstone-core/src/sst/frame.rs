//! Frames: every part of a file is a payload, maybe compressed, with its checksum.
//!
//! ```text
//! payload            n bytes, compressed as the next byte says
//! compression        u8: 0 none, 1 LZ4 (block format), 2 Zstandard (one frame)
//! uncompressed_len   u32
//! checksum           u64: xxh3-64 of everything before it
//! ```
//!
//! Pure bytes to bytes: the writer seals frames, the reader and `verify` open them.
//!
//! Invariant: opening a frame allocates at most [`GROWTH_MAX`] times the frame's own length (plus
//! a page, and an eighth of it all where the payload is padded), and never more than [`PAYLOAD_LEN_MAX`] unless the frame itself is longer. The writer
//! stays inside these limits, so that the reader may refuse what is outside.

use std::cell::RefCell;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::Compression;
use crate::codec::Reader;
use crate::error::{Error, Result};

/// Bytes that a frame adds to its payload.
pub(super) const TRAILER_LEN: usize = 1 + 4 + 8;
const CHECKSUM_LEN: usize = 8;

/// The longest payload that is ever compressed: the largest value and key, with a margin.
pub(super) const PAYLOAD_LEN_MAX: usize = 64 << 20;

/// The most that decompression may multiply. LZ4 cannot exceed 255; Zstandard can, and the writer
/// falls back to LZ4 where it would.
const GROWTH_MAX: usize = 256;
const GROWTH_SLACK: usize = 4096;

/// What a kept payload's length is rounded up to, at least.
const PAD_MIN: usize = 256;

const NONE: u8 = 0;
const LZ4: u8 = 1;
const ZSTD: u8 = 2;

/// Why bytes are not the frame they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameFault {
    #[error("the block is cut short")]
    Short,
    #[error("the block's checksum is {stored:016x}, its bytes give {computed:016x}")]
    Checksum { stored: u64, computed: u64 },
    #[error("the block is intact but not the one expected here (a misdirected read or write)")]
    Misplaced,
    #[error("unknown compression {0}")]
    UnknownCompression(u8),
    #[error("implausible uncompressed length {0}")]
    ImplausibleLen(u32),
    #[error("the block does not decompress")]
    Undecodable,
}

/// Appends frames to a buffer; keeps memory from one frame to the next.
pub(super) struct FrameSealer {
    compression: Compression,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    /// Room for the longest payload so far; it is not cleared for the next one.
    packed: Vec<u8>,
}

impl std::fmt::Debug for FrameSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameSealer")
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

impl FrameSealer {
    pub(super) fn new(compression: Compression) -> Result<Self> {
        let zstd = match compression {
            Compression::Zstd { level } => Some(
                zstd::bulk::Compressor::new(level)
                    .map_err(|e| Error::invalid(format!("zstd level {level}: {e}")))?,
            ),
            Compression::None | Compression::Lz4 => None,
        };
        Ok(FrameSealer { compression, zstd, packed: Vec::new() })
    }

    /// Appends the frame of `payload` to `out`, compressed if that pays; answers its checksum.
    pub(super) fn seal(&mut self, payload: &[u8], out: &mut Vec<u8>) -> u64 {
        match self.compress(payload) {
            Some((kind, len)) => {
                append(self.packed.get(..len).unwrap_or_default(), kind, payload.len(), out)
            }
            None => append(payload, NONE, payload.len(), out),
        }
    }

    /// Compresses into `self.packed`; answers how, and the length. `None` if that saves less than an
    /// eighth (or cannot be done, which is then no reason to fail: the payload is stored as it is).
    fn compress(&mut self, payload: &[u8]) -> Option<(u8, usize)> {
        if payload.len() > PAYLOAD_LEN_MAX {
            return None;
        }
        let (kind, len) = match self.compression {
            Compression::None => return None,
            Compression::Lz4 => self.compress_lz4(payload)?,
            Compression::Zstd { .. } => match self.compress_zstd(payload) {
                Some((kind, len)) if payload.len() <= growth_limit(len) => (kind, len),
                _ => self.compress_lz4(payload)?,
            },
        };
        let saved = payload.len().checked_sub(len)?;
        (saved >= payload.len() / 8 && saved > 0).then_some((kind, len))
    }

    fn compress_lz4(&mut self, payload: &[u8]) -> Option<(u8, usize)> {
        self.room(lz4::block::compress_bound(payload.len()).ok()?);
        Some((LZ4, lz4::block::compress_to_buffer(payload, None, false, &mut self.packed).ok()?))
    }

    fn compress_zstd(&mut self, payload: &[u8]) -> Option<(u8, usize)> {
        self.room(zstd::zstd_safe::compress_bound(payload.len()));
        let zstd = self.zstd.as_mut()?;
        Some((ZSTD, zstd.compress_to_buffer(payload, self.packed.as_mut_slice()).ok()?))
    }

    /// Zeros are written only where there was nothing before: it would cost as much as a copy.
    fn room(&mut self, len: usize) {
        if self.packed.len() < len {
            self.packed.resize(len, 0);
        }
    }
}

/// Appends an uncompressed frame: for the parts that are read once and do not compress.
pub(super) fn seal_raw(payload: &[u8], out: &mut Vec<u8>) -> u64 {
    append(payload, NONE, payload.len(), out)
}

fn append(packed: &[u8], kind: u8, uncompressed_len: usize, out: &mut Vec<u8>) -> u64 {
    let start = out.len();
    out.extend_from_slice(packed);
    out.push(kind);
    out.extend_from_slice(&(uncompressed_len as u32).to_le_bytes());
    let checksum = xxh3_64(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Checks a frame against its own checksum and the one its parent keeps, and unpacks it. An
/// uncompressed payload is a slice of `frame`, not a copy.
pub(super) fn open(frame: Bytes, parent_checksum: u64) -> Result<Bytes, FrameFault> {
    check(&frame, parent_checksum)?;
    unpack(frame)
}

/// The same for a payload that is never compressed, and of which nothing is kept.
pub(super) fn open_raw(frame: &[u8], parent_checksum: u64) -> Result<&[u8], FrameFault> {
    check(frame, parent_checksum)?;
    let packed = Packed::parse(frame)?;
    if packed.kind == NONE {
        Ok(packed.bytes)
    } else {
        Err(FrameFault::UnknownCompression(packed.kind))
    }
}

/// The same for a payload that will be kept among many: answers a copy in a buffer of one of a few
/// lengths, and how much of that is the payload. `buffer` makes one of the length that it is told, whatever
/// it holds.
pub(super) fn open_padded<B: AsMut<[u8]>>(
    frame: &[u8],
    parent_checksum: u64,
    buffer: impl FnOnce(usize) -> B,
) -> Result<(B, usize), FrameFault> {
    check(frame, parent_checksum)?;
    let packed = Packed::parse(frame)?;
    let mut buf = buffer(padded_len(packed.len));
    let (payload, padding) = buf.as_mut().split_at_mut_checked(packed.len).unwrap_or_default();
    packed.unpack_into(payload)?;
    // What the buffer held before is nobody's business.
    padding.fill(0);
    Ok((buf, packed.len))
}

fn check(frame: &[u8], parent_checksum: u64) -> Result<(), FrameFault> {
    let body_len = frame.len().checked_sub(CHECKSUM_LEN).ok_or(FrameFault::Short)?;
    let (body, stored) = frame.split_at_checked(body_len).ok_or(FrameFault::Short)?;
    let stored = Reader::new(stored).u64().ok_or(FrameFault::Short)?;
    let computed = xxh3_64(body);
    if computed != stored {
        return Err(FrameFault::Checksum { stored, computed });
    }
    if stored != parent_checksum {
        return Err(FrameFault::Misplaced);
    }
    Ok(())
}

/// The next of sixteen lengths up to each power of two, and of no more than one for [`PAD_MIN`] bytes.
pub(super) fn padded_len(len: usize) -> usize {
    len.next_multiple_of((len.next_power_of_two() / 16).max(PAD_MIN))
}

/// Unpacks a frame whose checksum has been seen to (or is of no interest: the fuzzer's way in).
fn unpack(frame: Bytes) -> Result<Bytes, FrameFault> {
    let packed = Packed::parse(&frame)?;
    if packed.kind == NONE {
        return Ok(frame.slice(..packed.len));
    }
    let mut payload = vec![0; packed.len];
    packed.unpack_into(&mut payload)?;
    Ok(Bytes::from(payload))
}

/// What a frame holds.
struct Packed<'a> {
    kind: u8,
    bytes: &'a [u8],
    /// Of the payload; it has been seen that this is plausible.
    len: usize,
}

impl<'a> Packed<'a> {
    fn parse(frame: &'a [u8]) -> Result<Self, FrameFault> {
        let packed_len = frame.len().checked_sub(TRAILER_LEN).ok_or(FrameFault::Short)?;
        let (bytes, trailer) = frame.split_at_checked(packed_len).ok_or(FrameFault::Short)?;
        let mut trailer = Reader::new(trailer);
        let kind = trailer.u8().ok_or(FrameFault::Short)?;
        let uncompressed_len = trailer.u32().ok_or(FrameFault::Short)?;
        let len = uncompressed_len as usize;
        let is_plausible = match kind {
            NONE => len == packed_len,
            _ => len <= PAYLOAD_LEN_MAX && len <= growth_limit(packed_len),
        };
        if !is_plausible {
            return Err(FrameFault::ImplausibleLen(uncompressed_len));
        }
        Ok(Packed { kind, bytes, len })
    }

    /// Into a place that is as long as the payload.
    fn unpack_into(&self, payload: &mut [u8]) -> Result<(), FrameFault> {
        let unpacked = match self.kind {
            NONE => {
                payload.copy_from_slice(self.bytes);
                Some(self.len)
            }
            LZ4 => decompress_lz4(self.bytes, payload),
            ZSTD => decompress_zstd(self.bytes, payload),
            other => return Err(FrameFault::UnknownCompression(other)),
        };
        if unpacked == Some(self.len) { Ok(()) } else { Err(FrameFault::Undecodable) }
    }
}

fn growth_limit(packed_len: usize) -> usize {
    packed_len.saturating_mul(GROWTH_MAX).saturating_add(GROWTH_SLACK)
}

fn decompress_lz4(packed: &[u8], payload: &mut [u8]) -> Option<usize> {
    // The library takes lengths of 31 bits, and does not ask whether its source's is one.
    i32::try_from(packed.len()).ok()?;
    let len = i32::try_from(payload.len()).ok()?;
    lz4::block::decompress_to_buffer(packed, Some(len), payload).ok()
}

thread_local! {
    /// A decompressor is 150 KiB of tables: made once per thread, not once per block.
    static UNZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

fn decompress_zstd(packed: &[u8], payload: &mut [u8]) -> Option<usize> {
    UNZSTD.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Some(zstd::bulk::Decompressor::new().ok()?);
        }
        slot.as_mut()?.decompress_to_buffer(packed, payload).ok()
    })
}

/// Unpacks any bytes as a frame, without regard to the checksum. For fuzzing.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_frame(bytes: &[u8]) -> bool {
    unpack(Bytes::copy_from_slice(bytes)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Compression; 3] =
        [Compression::None, Compression::Lz4, Compression::Zstd { level: 3 }];

    fn sealed(compression: Compression, payload: &[u8]) -> (Bytes, u64) {
        let mut out = Vec::new();
        let checksum = FrameSealer::new(compression).unwrap().seal(payload, &mut out);
        (Bytes::from(out), checksum)
    }

    #[test]
    fn every_compression_gives_back_what_was_sealed() {
        let noise: Vec<u8> =
            (0..5000u64).flat_map(|i| xxh3_64(&i.to_le_bytes()).to_le_bytes()).collect();
        for payload in [&b""[..], b"a", &[7; 100_000], &noise] {
            for compression in ALL {
                let (frame, checksum) = sealed(compression, payload);
                assert!(frame.len() <= payload.len() + TRAILER_LEN);
                assert_eq!(open(frame, checksum).unwrap(), payload);
            }
        }
    }

    #[test]
    fn a_payload_that_shrinks_beyond_belief_stays_readable() {
        let zeros = vec![0; 16 << 20];
        for compression in ALL {
            let (frame, checksum) = sealed(compression, &zeros);
            assert_eq!(open(frame, checksum).unwrap().len(), zeros.len());
        }
    }

    #[test]
    fn a_payload_fits_into_a_buffer_that_held_another() {
        let payloads: [Vec<u8>; 5] = [
            Vec::new(),
            vec![7; 300],
            (0..300u32).map(|n| ((n * n) >> 3) as u8).collect(),
            b"abc".repeat(1300),
            vec![1; 10_000],
        ];
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd { level: 3 }] {
            let mut sealer = FrameSealer::new(compression).unwrap();
            for payload in &payloads {
                let mut frame = Vec::new();
                let checksum = sealer.seal(payload, &mut frame);
                let fresh = open_padded(&frame, checksum, |len| vec![0; len]).unwrap();
                assert_eq!(&fresh.0[..fresh.1], payload);
                let dirty = open_padded(&frame, checksum, |len| vec![0xee; len]).unwrap();
                assert_eq!(dirty, fresh, "nothing is left of before");
                assert!(open_padded(&frame, checksum ^ 1, |len| vec![0; len]).is_err());
            }
        }
    }

    #[test]
    fn noise_is_stored_as_it_is() {
        let noise: Vec<u8> =
            (0..512u64).flat_map(|i| xxh3_64(&i.to_le_bytes()).to_le_bytes()).collect();
        for compression in ALL {
            assert_eq!(sealed(compression, &noise).0.len(), noise.len() + TRAILER_LEN);
        }
    }

    #[test]
    fn a_short_frame_cannot_claim_a_long_payload() {
        for kind in [NONE, LZ4, ZSTD] {
            let mut frame = vec![0; 20];
            frame.push(kind);
            frame.extend_from_slice(&(60u32 << 20).to_le_bytes());
            frame.extend_from_slice(&[0; 8]);
            assert_eq!(unpack(Bytes::from(frame)), Err(FrameFault::ImplausibleLen(60 << 20)));
        }
    }

    #[test]
    fn an_intact_frame_from_another_place_is_refused() {
        let (frame, checksum) = sealed(Compression::Lz4, &[1; 500]);
        assert_eq!(open(frame, checksum ^ 1), Err(FrameFault::Misplaced));
    }
}
