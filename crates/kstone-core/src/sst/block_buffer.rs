//! One allocation for a block header and the payload still to be read.
//!
//! Its length is one of few, and the memory of an evicted block serves for the next of the same length. Called
//! by `reader`, which unpacks into it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::block::{Block, Malformed};

/// Memory into which a block is read.
#[derive(Debug)]
pub(super) enum BlockBuffer {
    /// The only reference to it.
    OnePiece(Arc<Block>),
    /// A longer payload is for itself: values in it are shared, not copied.
    Long(BytesMut),
}

impl BlockBuffer {
    /// One for a payload that takes `padded_len` bytes of memory, one of the lengths that
    /// [`padded_len`](super::frame::padded_len) gives. `spare` is a block that is needed no more, of whatever
    /// length.
    pub(super) fn new(padded_len: usize, spare: Option<Arc<Block>>) -> Self {
        if let Some(mut spare) = spare
            && Arc::get_mut(&mut spare).is_some_and(|spare| spare.clear() == padded_len)
        {
            return BlockBuffer::OnePiece(spare);
        }
        match one_piece(padded_len) {
            Some(block) => BlockBuffer::OnePiece(block),
            None => BlockBuffer::Long(BytesMut::zeroed(padded_len)),
        }
    }

    /// The block, when the first `len` bytes are its payload.
    pub(super) fn finish(self, len: usize) -> Result<Arc<Block>, Malformed> {
        match self {
            BlockBuffer::OnePiece(mut block) => {
                Arc::get_mut(&mut block).ok_or(Malformed)?.parse_payload(len)?;
                Ok(block)
            }
            BlockBuffer::Long(bytes) => Block::parse_padded(bytes.freeze(), len),
        }
    }
}

impl AsMut<[u8]> for BlockBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        match self {
            BlockBuffer::OnePiece(block) => {
                Arc::get_mut(block).map(Block::room).unwrap_or_default()
            }
            BlockBuffer::Long(bytes) => bytes,
        }
    }
}

/// A block with room for so many bytes; `None` if there is none of that length.
fn one_piece(len: usize) -> Option<Arc<Block>> {
    #[inline(never)]
    fn of<const LEN: usize>() -> Arc<Block> {
        Arc::new(Block::unparsed(Bytes::new(), [0; LEN]))
    }
    macro_rules! one_of {
        ($($len:literal)*) => {
            match len {
                $($len => Some(of::<$len>()),)*
                _ => None,
            }
        };
    }
    one_of!(
        256 512 768 1024 1280 1536 1792 2048 2304 2560 2816 3072 3328 3584 3840 4096
        4608 5120 5632 6144 6656 7168 7680 8192
        9216 10240 11264 12288 13312 14336 15360 16384
    )
}

#[cfg(test)]
mod tests {
    use super::super::block::BlockBuilder;
    use super::super::frame::padded_len;
    use super::super::slots::Part;
    use super::*;
    use crate::entry::{EntryRef, Kind, Seq};

    fn payload(value_len: usize) -> Vec<u8> {
        let mut builder = BlockBuilder::new(16);
        let value = vec![7; value_len];
        let entry =
            EntryRef { key: b"key", seq: 5, kind: Kind::Put, expires_at_ms: 0, value: &value };
        builder.add(&entry, 0);
        builder.finish().to_vec()
    }

    fn filled(payload: &[u8], spare: Option<Arc<Block>>) -> Arc<Block> {
        let mut blank = BlockBuffer::new(padded_len(payload.len()), spare);
        let room = blank.as_mut();
        assert_eq!(room.len(), padded_len(payload.len()));
        room[..payload.len()].copy_from_slice(payload);
        blank.finish(payload.len()).unwrap()
    }

    #[test]
    fn blocks_of_every_length_up_to_the_longest_are_one_piece() {
        for len in 1..=16_384 {
            assert!(one_piece(padded_len(len)).is_some(), "{len}");
        }
        assert!(one_piece(padded_len(16_385)).is_none());
    }

    #[test]
    fn what_was_put_into_it_is_found() {
        for value_len in [0, 100, 2000, 3000, 9000, 16_000, 17_000, 100_000] {
            let payload = payload(value_len);
            let block = filled(&payload, None);
            assert_eq!(block.payload(), payload);
            assert!(block.weight() > padded_len(payload.len()));
            let found = block.get(b"key", Seq::MAX).unwrap().unwrap();
            assert_eq!(block.piece(found.value), vec![7; value_len]);
        }
    }

    #[test]
    fn a_block_serves_for_the_next_of_the_same_length_if_nobody_else_has_it() {
        for value_len in [100, 3000] {
            let (first, second) = (payload(value_len), payload(value_len - 50));
            let block = filled(&first, None);
            let is_found = |block: &Block, value_len| {
                let hash = super::super::key_hash(b"key");
                let found = block.get_again(b"key", hash, Seq::MAX).unwrap();
                found.is_some_and(|found| found.value.len() == value_len)
            };
            assert!(is_found(&block, value_len));
            let held = Arc::clone(&block);
            let other = filled(&second, Some(block));
            assert!(!Arc::ptr_eq(&other, &held));
            assert!(is_found(&held, value_len) && is_found(&other, value_len - 50));
            let place = Arc::as_ptr(&other).cast::<u8>();
            let again = filled(&first, Some(other));
            assert_eq!(Arc::as_ptr(&again).cast::<u8>(), place);
            assert!(is_found(&again, value_len), "nothing is left of the hints of before");
        }
    }

    #[test]
    fn a_spare_of_another_length_is_not_used() {
        let spare = filled(&payload(100), None);
        assert_eq!(filled(&payload(3000), Some(spare)).payload(), payload(3000));
    }

    #[test]
    fn a_payload_that_is_none_is_refused() {
        for len in [0, 3, 256] {
            assert!(BlockBuffer::new(256, None).finish(len).is_err());
        }
        assert!(BlockBuffer::new(1 << 20, None).finish(1 << 20).is_err());
    }
}
