//! How much of a file is in memory, and having as much of the file that takes its place.
//!
//! A get that is the first to ask a new file would read its footer, its filter and its index, or, of a large
//! one, join their parts, and then its block: tens to hundreds of microseconds, by somebody who waits for
//! an answer. Flushes and merges make new files all the time. So what was in memory of the files that a new
//! one replaces or covers, because somebody has asked for it, is there of the new one, too, before anybody
//! can ask; what was not is left to those who need it. Blocks are copied before they go to the file, as far
//! as the cache has memory that nobody uses; filter and index are read back.
//!
//! It cools down by itself: what nobody asks for in one file is not there of the next.
//!
//! Called by flushes and merges, for whom a failure here is none: whatever is wrong with the file is told
//! by those who read it.

use std::sync::Arc;

use super::blank::Blank;
use super::block::{Block, Malformed};
use super::cache::item_bytes;
use super::frame::padded_len;
use super::indexed::AnyIndex;
use super::reader::SstReader;
use super::slots::Part;
use crate::error::Result;

/// Of the blocks of each file so many are looked for, evenly spread.
const SAMPLED: usize = 32;
/// One in so many blocks has to have been asked for, or the next file's are not worth their copies: to
/// read and unpack a block takes a get as long as it takes a merge to copy a dozen or two.
const ASKED_SHARE: u64 = 16;

/// How much of some files is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Warmth {
    /// The filter, or the directory of its pieces.
    has_filter: bool,
    /// The index, or its top.
    has_index: bool,
    /// Both as a whole, whatever they are in the file.
    is_whole: bool,
    has_blocks: bool,
}

impl Warmth {
    /// Nothing.
    pub(crate) const COLD: Warmth =
        Warmth { has_filter: false, has_index: false, is_whole: false, has_blocks: false };

    /// Of some files: what at least half of their bytes have. What nobody has asked has nothing.
    pub(crate) fn of<'a>(readers: impl Iterator<Item = &'a Arc<SstReader>>) -> Self {
        let (mut all, mut with_filter, mut with_index, mut whole) = (0, 0, 0, 0);
        let (mut kept, mut asked) = (0, 0);
        for reader in readers {
            let bytes = reader.meta().file_bytes;
            all += bytes;
            if !reader.was_asked() {
                continue;
            }
            let has_filter = reader.held_filter().pinned().is_some();
            with_filter +=
                if has_filter || reader.held_pieces().pinned().is_some() { bytes } else { 0 };
            let Some(index) = reader.held_index().pinned() else {
                with_index += if reader.held_top().pinned().is_some() { bytes } else { 0 };
                continue;
            };
            with_index += bytes;
            whole += bytes;
            let step = index.count().div_ceil(SAMPLED).max(1);
            let sampled = index.count().div_ceil(step).max(1) as u64;
            for block in (0..index.count()).step_by(step).filter_map(|nth| index.blocks.peek(nth)) {
                kept += bytes / sampled;
                asked += if block.uses().is_some() { bytes / sampled } else { 0 };
            }
        }
        let is_half = |part: u64| part > 0 && 2 * part >= all;
        Warmth {
            has_filter: is_half(with_filter),
            has_index: is_half(with_index),
            is_whole: is_half(whole),
            // What is lost by division is less than a byte for each sample.
            has_blocks: is_half(kept + all / 64) && ASKED_SHARE * asked >= kept && asked > 0,
        }
    }

    /// Whether the blocks of a new file are wanted.
    pub(crate) fn has_blocks(self) -> bool {
        self.has_blocks
    }
}

/// The blocks of a file that is being written, as its readers will want them.
#[derive(Debug, Default)]
pub(crate) struct FreshBlocks {
    blocks: Vec<Arc<Block>>,
    /// What the cache would count them as, and the most that this may be.
    bytes: u64,
    bytes_max: u64,
}

impl FreshBlocks {
    /// None yet, and no more than so many bytes.
    pub(super) fn new(bytes_max: u64) -> Self {
        FreshBlocks { bytes_max, ..FreshBlocks::default() }
    }

    /// The next block has this payload; answers whether there was room for it.
    pub(super) fn add(&mut self, payload: &[u8]) -> Result<bool, Malformed> {
        let mut blank = Blank::new(padded_len(payload.len()), None);
        blank.as_mut().get_mut(..payload.len()).ok_or(Malformed)?.copy_from_slice(payload);
        let block = blank.finish(payload.len())?;
        self.bytes += item_bytes(block.weight());
        self.blocks.push(block);
        Ok(self.bytes <= self.bytes_max)
    }
}

impl SstReader {
    /// Has as much of the file in memory as there was of others.
    pub(crate) fn warm_up(&self, warmth: Warmth, fresh: &FreshBlocks) -> Result<()> {
        if warmth.has_filter {
            self.load_filter(warmth.is_whole)?;
        }
        if !warmth.has_index {
            return Ok(());
        }
        let index = match self.index(true)? {
            AnyIndex::InParts(top) if warmth.is_whole && self.join_index(&top) => {
                self.held_index().get()
            }
            AnyIndex::InParts(_) => None,
            AnyIndex::Whole(index) => Some(index),
        };
        // Memtables may have taken what was unused when the file was begun; and what is free is not
        // divided evenly.
        if let Some(index) = index
            && index.count() == fresh.blocks.len()
            && self.cache().unused_bytes() >= fresh.bytes + fresh.bytes / 16
        {
            for (nth, block) in fresh.blocks.iter().enumerate() {
                index.blocks.put(nth, block);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestVfs;
    use super::super::tests::*;
    use super::super::{BlockCache, FileHandles, NewSst, SstOptions, SstWriter};
    use super::*;
    use crate::entry::{EntryRef, Kind, Seq};

    const FILTER: Warmth = Warmth { has_filter: true, ..Warmth::COLD };
    const PARTS: Warmth = Warmth { has_index: true, ..FILTER };
    const WHOLE: Warmth = Warmth { is_whole: true, ..PARTS };
    const BLOCKS: Warmth = Warmth { has_blocks: true, ..WHOLE };

    fn entries() -> Vec<Entry> {
        (0..300u64).map(|n| Entry::put(format!("user#{n:05}"), n + 1, vec![n as u8; 90])).collect()
    }

    fn options(is_in_parts: bool) -> SstOptions {
        if is_in_parts { in_parts(small()) } else { small() }
    }

    fn write_keeping(options: SstOptions, bytes_max: u64) -> (Sample, FreshBlocks) {
        let vfs = Arc::new(TestVfs::default());
        let mut writer = SstWriter::create(&*vfs, dir(), IDENT, options).unwrap();
        writer.keep_blocks(bytes_max);
        for Entry { key, seq, value, .. } in &entries() {
            let (seq, kind) = (*seq, Kind::Put);
            writer.add(EntryRef { key, seq, kind, expires_at_ms: 0, value }).unwrap();
        }
        let NewSst { meta, fresh, .. } = writer.finish().unwrap();
        (Sample { vfs, meta }, fresh)
    }

    fn warmth(reader: &Arc<SstReader>) -> Warmth {
        Warmth::of([reader].into_iter())
    }

    fn misses(reader: &SstReader) -> [u64; 3] {
        let counts = reader.cache().stats();
        [counts.data_misses, counts.index_misses, counts.filter_misses]
    }

    fn get_all(reader: &SstReader) {
        for entry in entries() {
            assert_eq!(get(reader, &entry.key, Seq::MAX), Some(entry));
        }
    }

    #[test]
    fn a_file_that_begins_with_its_blocks_is_read_without_its_file() {
        for is_in_parts in [false, true] {
            let (sample, fresh) = write_keeping(options(is_in_parts), u64::MAX);
            let reader = sample.reader();
            reader.warm_up(BLOCKS, &fresh).unwrap();
            assert_eq!(warmth(&reader), Warmth::COLD, "nobody has asked yet");
            let before = misses(&reader);
            get_all(&reader);
            assert_eq!(get(&reader, b"user#00007x", Seq::MAX), None);
            assert_eq!(misses(&reader), before, "in parts: {is_in_parts}");
            assert_eq!(warmth(&reader), BLOCKS);
        }
    }

    #[test]
    fn as_much_is_in_memory_as_was_asked_for_and_answers_are_the_same() {
        for is_in_parts in [false, true] {
            let sample = write(&entries(), options(is_in_parts));
            for wanted in [Warmth::COLD, FILTER, PARTS, WHOLE, BLOCKS] {
                let reader = sample.reader();
                reader.warm_up(wanted, &FreshBlocks::default()).unwrap();
                // A key that the filter denies asks for no more than that.
                assert_eq!(get(&reader, b"user#00007x", Seq::MAX), None);
                let found = warmth(&reader);
                let case = format!("{is_in_parts} {wanted:?} {found:?}");
                assert!(found.has_filter && !found.has_blocks, "{case}");
                assert_eq!(found.has_index, wanted.has_index, "{case}");
                let is_whole = wanted.is_whole || (wanted.has_index && !is_in_parts);
                assert_eq!(found.is_whole, is_whole, "{case}");
                get_all(&reader);
            }
        }
    }

    #[test]
    fn blocks_are_kept_up_to_a_limit_and_make_no_others_go() {
        // Of 16 shards, each with about as much.
        const CACHE_BYTES: u64 = 128 << 20;
        let (_, fresh) = write_keeping(small(), u64::MAX);
        assert!(write_keeping(small(), fresh.bytes - 1).1.blocks.is_empty());
        let (sample, fresh) = write_keeping(small(), fresh.bytes);
        assert!(!fresh.blocks.is_empty());
        for has_room in [false, true] {
            let cache = Arc::new(BlockCache::new(CACHE_BYTES));
            let handles = Arc::new(FileHandles::new(sample.vfs.clone(), dir().to_owned(), 10));
            let open = |meta| {
                Arc::new(SstReader::open(Arc::new(meta), handles.clone(), cache.clone(), DB))
            };
            let other = open(sample.meta.clone());
            get_all(&other);
            let used = cache.used_bytes();
            // What filter and index of the second need as well, and a little.
            let room = if has_room { 2 * fresh.bytes } else { fresh.bytes };
            cache.set_capacity(|| used + room);
            let reader = open(sample.meta.clone());
            reader.warm_up(BLOCKS, &fresh).unwrap();
            let kept = |reader: &Arc<SstReader>| {
                let index = reader.held_index().pinned().unwrap();
                (0..index.count()).filter(|&nth| index.blocks.peek(nth).is_some()).count()
            };
            assert_eq!(kept(&other), fresh.blocks.len(), "{has_room}");
            assert_eq!(kept(&reader), if has_room { fresh.blocks.len() } else { 0 });
        }
    }

    #[test]
    fn files_are_as_warm_as_half_of_them() {
        let sample = write(&entries(), small());
        let reader = sample.reader();
        assert_eq!(warmth(&reader), Warmth::COLD);
        // The first time a block is read, the second time it is asked for.
        for (nth, entry) in entries().iter().enumerate() {
            for _ in 0..2 {
                assert!(get(&reader, &entry.key, Seq::MAX).is_some());
            }
            match nth {
                0..130 => assert_eq!(warmth(&reader), WHOLE, "{nth}"),
                170.. => assert_eq!(warmth(&reader), BLOCKS, "{nth}"),
                _ => {}
            }
        }
        let cold = sample.reader();
        let both = || [&reader, &cold].into_iter();
        assert_eq!(Warmth::of(both()), BLOCKS, "half of both");
        assert_eq!(Warmth::of(both().chain([&cold])), Warmth::COLD);
    }

    #[test]
    fn blocks_that_nobody_asks_for_are_not_wanted_again() {
        let (sample, fresh) = write_keeping(small(), u64::MAX);
        let reader = sample.reader();
        reader.warm_up(BLOCKS, &fresh).unwrap();
        assert!(get(&reader, b"user#00000", Seq::MAX).is_some());
        assert_eq!(warmth(&reader), WHOLE);
        for entry in entries().iter().step_by(3) {
            assert!(get(&reader, &entry.key, Seq::MAX).is_some());
        }
        assert_eq!(warmth(&reader), BLOCKS);
    }
}
