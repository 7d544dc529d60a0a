//! Shortcuts: a hash table beside the index, in memory only, that says which block has a key that was
//! found before.
//!
//! A search in an index of a thousand blocks takes a dozen steps, and most of them wait for memory: heads
//! that lie apart, then the separators of all blocks of a partition, which have the same head. That is
//! what large values come to, of which few go into a block. A shortcut is one line of memory. Files with
//! more keys to a block have shorter indexes, and would pay for a longer table.
//!
//! It may lead to a block that does not have the key, because two keys look alike here or because nothing
//! was noted yet; then the index is searched as ever. What it must not do is lead to an *older* version
//! than another block has. So only files with one version of each key have shortcuts.
//!
//! A walk that begins at a key which is there, as the next page of a query does, is spared the search, too.
//!
//! Made when searches have cost as much as making them, if the cache has memory to give up, as joined parts
//! are ([`join`](super::join)). Called by `reader`, for indexes that are pinned whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::cache::BlockCache;
use super::filter::key_hash;
use super::hot_part::HotPart;
use super::indexed::IndexWithSlots;
use super::join::RequestCounter;
use super::reader::SstReader;
use super::slots::{EvictedPart, Part, Uses, plain_part};

/// An index of fewer blocks stays close to the processor, and is searched as quickly. Few in tests, so
/// that their small files have shortcuts.
const BLOCKS_MIN: usize = if cfg!(test) { 4 } else { 512 };
/// More keys than that for each block are too many.
const BLOCK_KEYS_MAX: usize = 8;
/// The table is made when this share of its keys, the fourth, has been found by searches.
const ASKED_SHARE: usize = 4;
/// Of the keys, one in so many is counted: what is counted is written to, and every get of every core
/// reads what lies beside it.
const COUNTED: u64 = 16;

/// Places in a line of a processor's cache.
const LINE_PLACES: usize = 16;
/// Lines are made for so many keys each: then one in forty has more keys than places.
const LINE_KEYS: usize = 10;
/// A place has the number of a block below, above it about where in that the record is, and above that what
/// is left of the key's hash.
const BLOCK_MASK: u32 = (1 << 16) - 1;
const AT_SHIFT: u32 = 16;
const AT_MAX: u32 = 15;
const TAG_MASK: u32 = !((AT_MAX << AT_SHIFT) | BLOCK_MASK);
/// Where in a block, in steps of so many bytes: sixteen of them are a block of the usual length.
const AT_BYTES: usize = 256;
/// No block has the highest number.
const EMPTY: u32 = u32::MAX;
const MIX: u64 = 0xd1b5_4a32_d192_ed03;

/// The shortcuts of a file, if it has any yet.
#[derive(Debug, Default)]
pub(super) struct Shortcuts {
    table: HotPart<Table>,
    /// Searches that found something in a block that was in memory, less those that had to read one.
    requests: RequestCounter,
}

/// Where a record probably is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shortcut {
    /// The number of its block,
    pub(super) block: usize,
    /// and where its value begins there, or a little before.
    pub(super) at: usize,
}

impl Shortcuts {
    /// Where the record of the key with this [`key_hash`](super::key_hash) probably is.
    #[inline]
    pub(super) fn find(&self, hash: u64) -> Option<Shortcut> {
        self.table.pinned()?.find(hash)
    }

    /// See [`HotPart::unpin`].
    pub(super) fn unpin(&self, cache: &BlockCache) {
        self.table.unpin(cache);
    }
}

impl SstReader {
    /// A get found the record of the key with this hash in a block of the whole index, which was in memory.
    #[inline]
    pub(super) fn note_shortcut(&self, index: &IndexWithSlots, found: Shortcut, hash: u64) {
        if index.count() < BLOCKS_MIN {
            return;
        }
        let shortcuts = self.shortcuts();
        if let Some(table) = shortcuts.table.pinned() {
            table.note(hash, found);
        } else if hash.is_multiple_of(COUNTED) {
            self.count_towards_shortcuts(index);
        }
    }

    /// The same for a walk that began at this key, in a block that was in memory or was not.
    pub(super) fn note_walk(&self, key: &[u8], found: Shortcut, was_kept: bool) {
        let Some(index) = self.hot_index().pinned() else { return };
        if index.count() < BLOCKS_MIN {
            return;
        }
        if was_kept {
            self.note_shortcut(index, found, key_hash(key));
        } else {
            self.note_block_read(key_hash(key));
        }
    }

    /// The number of the block that the key probably is in, if that is in memory: for a walk that begins
    /// there. Asks for it, too.
    pub(super) fn block_by_shortcut(&self, key: &[u8]) -> Option<usize> {
        let table = self.shortcuts().table.pinned()?;
        let Shortcut { block: nth, at } = table.find(key_hash(key))?;
        let mut is_kept = false;
        self.hot_index().pinned()?.blocks.prefetch(nth, |block| {
            block.prefetch_at(at);
            is_kept = true;
        });
        is_kept.then_some(nth)
    }

    /// A block had to be read: shortcuts, which lead to blocks in memory, are worth less.
    #[inline]
    pub(super) fn note_block_read(&self, hash: u64) {
        if hash.is_multiple_of(COUNTED) {
            self.shortcuts().requests.take_back();
        }
    }

    #[inline(never)]
    fn count_towards_shortcuts(&self, index: &IndexWithSlots) {
        let keys = usize::try_from(self.meta().entries).unwrap_or(usize::MAX);
        if keys / BLOCK_KEYS_MAX > index.count() || index.count() > BLOCK_MASK as usize {
            return;
        }
        let Shortcuts { table, requests } = self.shortcuts();
        let make = || {
            // What the file says of itself is read last: mostly it is memory that is wanting.
            let properties = self.read_properties().ok()?;
            (properties.distinct_keys == properties.entries).then(|| Table::new(keys))
        };
        if requests.is_now(keys / ASKED_SHARE / COUNTED as usize)
            && !table.pin_joined(self.cache(), Table::bytes(keys), make)
        {
            requests.refused();
        }
    }
}

/// Sixteen places, which the processor fetches together.
#[derive(Debug)]
#[repr(align(64))]
struct Line([AtomicU32; LINE_PLACES]);

/// Read and written without a lock: whatever a place says is only where to look first.
#[derive(Debug)]
struct Table {
    lines: Box<[Line]>,
    uses: Uses,
}

impl Part for Table {
    fn weight(&self) -> usize {
        size_of_val(&*self.lines)
    }

    plain_part!();
}

impl Table {
    fn new(keys: usize) -> Self {
        let line = || Line([const { AtomicU32::new(EMPTY) }; LINE_PLACES]);
        let lines = std::iter::repeat_with(line).take(Self::lines(keys)).collect();
        Table { lines, uses: Uses::default() }
    }

    fn lines(keys: usize) -> usize {
        keys.div_ceil(LINE_KEYS).max(1)
    }

    /// The weight of one for so many keys.
    fn bytes(keys: usize) -> usize {
        Self::lines(keys) * size_of::<Line>()
    }

    /// The line where a key is noted, and what of its hash.
    #[inline]
    fn line_of(&self, hash: u64) -> Option<(&Line, u32)> {
        // The filter and the hints of a block take bits of the hash itself.
        let mixed = hash.wrapping_mul(MIX);
        let nth = ((mixed >> 32) * self.lines.len() as u64) >> 32;
        Some((self.lines.get(nth as usize)?, mixed as u32 & TAG_MASK))
    }

    #[inline]
    fn find(&self, hash: u64) -> Option<Shortcut> {
        let (line, tag) = self.line_of(hash)?;
        let mut places = line.0.iter().map(|place| place.load(Relaxed));
        let found = places.find(|place| place & TAG_MASK == tag || *place == EMPTY)?;
        (found != EMPTY).then_some(Shortcut {
            block: (found & BLOCK_MASK) as usize,
            at: ((found >> AT_SHIFT) & AT_MAX) as usize * AT_BYTES,
        })
    }

    fn note(&self, hash: u64, Shortcut { block, at }: Shortcut) {
        let Some((line, tag)) = self.line_of(hash) else { return };
        if block >= BLOCK_MASK as usize {
            return;
        }
        let is_free = |place: &&AtomicU32| {
            let place = place.load(Relaxed);
            place & TAG_MASK == tag || place == EMPTY
        };
        // A line that is full gives up somebody's.
        let other = (hash >> 7) as usize % LINE_PLACES;
        if let Some(place) = line.0.iter().find(is_free).or_else(|| line.0.get(other)) {
            let at = (at / AT_BYTES).min(AT_MAX as usize) as u32;
            place.store(tag | at << AT_SHIFT | block as u32, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Seq;
    use crate::sst::tests::{Entry, Sample, get, in_parts, write};
    use crate::sst::{Compression, SstOptions};

    /// One entry to a block; `versions` of each key.
    fn file(keys: u64, versions: u64) -> (Vec<Entry>, Sample) {
        let versions_of = |key: u64| {
            (0..versions).rev().map(move |version| {
                let seq = 1 + key * versions + version;
                Entry::put(format!("user#{:05}", key * 3), seq, format!("{version} of {key}"))
            })
        };
        let entries: Vec<Entry> = (0..keys).flat_map(versions_of).collect();
        let options =
            SstOptions { block_bytes: 1, compression: Compression::None, ..SstOptions::default() };
        let sample = write(&entries, in_parts(options));
        (entries, sample)
    }

    fn keys_with_shortcuts(reader: &SstReader, entries: &[Entry]) -> usize {
        let has_one = |entry: &&Entry| reader.shortcuts().find(key_hash(&entry.key)).is_some();
        entries.iter().filter(has_one).count()
    }

    fn answered_by_shortcut(reader: &SstReader, entry: &Entry) -> bool {
        let hit = reader.search_by_shortcut(&entry.key, key_hash(&entry.key), Seq::MAX);
        hit.is_some_and(|hit| hit.seq == entry.seq && hit.value == entry.value)
    }

    #[test]
    fn gets_find_the_same_with_and_without_shortcuts() {
        let (entries, sample) = file(600, 1);
        // Room for all; for some of the blocks; for hardly any; for nothing.
        for cache_bytes in [16 << 20, 400_000, 30_000, 0] {
            let (reader, cache) = sample.reader_with(cache_bytes);
            for round in 0..6 {
                for i in 0..1800u64 {
                    let key = format!("user#{i:05}");
                    let entry = entries.get(i as usize / 3).filter(|_| i % 3 == 0);
                    for seq in [u64::MAX, i / 3 + 1, i / 3] {
                        let expected = entry.filter(|entry| entry.seq <= seq);
                        let found = get(&reader, key.as_bytes(), seq);
                        assert_eq!(found.as_ref(), expected, "{key} at {seq}, round {round}");
                    }
                    assert!(cache.used_bytes() <= cache_bytes, "{}", cache.used_bytes());
                }
            }
            let shortcuts = keys_with_shortcuts(&reader, &entries);
            match cache_bytes {
                0 => assert_eq!(shortcuts, 0),
                16_777_216 => {
                    assert!(shortcuts > 580, "{shortcuts}");
                    let answers = |entry: &&Entry| answered_by_shortcut(&reader, entry);
                    let answered = entries.iter().filter(answers).count();
                    assert!(answered > 580, "{answered}");
                }
                _ => {}
            }
            drop(reader);
            assert_eq!(cache.used_bytes(), 0);
        }
    }

    #[test]
    fn a_shortcut_that_leads_to_another_keys_block_misleads_nobody() {
        let (entries, sample) = file(600, 1);
        let reader = sample.reader();
        for entry in entries.iter().cycle().take(6 * entries.len()) {
            get(&reader, &entry.key, u64::MAX);
        }
        let table = reader.shortcuts().table.pinned().unwrap();
        for entry in &entries {
            for block in [0, 599, 600, BLOCK_MASK as usize - 1] {
                table.note(key_hash(&entry.key), Shortcut { block, at: 0 });
                assert_eq!(get(&reader, &entry.key, u64::MAX).as_ref(), Some(entry));
            }
        }
    }

    #[test]
    fn walks_begin_where_they_would_without_shortcuts() {
        let (entries, sample) = file(600, 1);
        for is_misled in [false, true] {
            let reader = sample.reader();
            for entry in entries.iter().cycle().take(6 * entries.len()) {
                get(&reader, &entry.key, u64::MAX);
            }
            if is_misled {
                let table = reader.shortcuts().table.pinned().unwrap();
                for (nth, entry) in entries.iter().enumerate() {
                    let block = (nth * 7 + 1) % 650;
                    table.note(key_hash(&entry.key), Shortcut { block, at: 0 });
                }
            }
            // In every order, with cursors that are new and that have been somewhere.
            let mut cursor = reader.cursor(true);
            for i in (0..1800u64).map(|i| i * 791 % 1800) {
                if i % 5 == 0 {
                    cursor = reader.cursor(true);
                }
                for seq in [u64::MAX, i / 3 + 1, i / 3] {
                    cursor.seek(format!("user#{i:05}").as_bytes(), seq).unwrap();
                    let (nth, is_there) = (i as usize / 3, i % 3 == 0);
                    let is_seen = is_there && entries[nth].seq <= seq;
                    let mut expected = entries[nth + usize::from(!is_seen)..].iter().take(3);
                    while let Some(entry) = cursor.entry() {
                        let Some(expected) = expected.next() else { break };
                        assert_eq!((entry.key, entry.seq), (&*expected.key, expected.seq));
                        cursor.next().unwrap();
                    }
                    assert_eq!(expected.next(), None);
                }
            }
        }
    }

    #[test]
    fn walks_note_where_they_began() {
        let (entries, sample) = file(600, 1);
        let reader = sample.reader();
        for entry in &entries {
            get(&reader, &entry.key, u64::MAX);
        }
        assert!(reader.hot_index().pinned().is_some(), "walks do not join it");
        for entry in entries.iter().cycle().take(4 * entries.len()) {
            reader.cursor(true).seek(&entry.key, Seq::MAX).unwrap();
        }
        let led = |entry: &&Entry| {
            reader.block_by_shortcut(&entry.key)
                == entries.binary_search_by(|e| e.key.cmp(&entry.key)).ok()
        };
        let led = entries.iter().filter(led).count();
        assert!(led > 580, "{led}");
    }

    #[test]
    fn a_file_whose_blocks_do_not_stay_in_memory_has_none() {
        let (entries, sample) = file(600, 1);
        // Filter and index are joined, and hardly a block stays.
        let reader = sample.reader();
        for entry in &entries {
            get(&reader, &entry.key, u64::MAX);
        }
        assert!(reader.hot_index().pinned().is_some());
        for nth in 0..20_000 {
            reader.note_block_read(hash(nth));
        }
        // Found as often as it takes, if nothing had to be read.
        let share = entries.iter().take(entries.len() / 2);
        for entry in share {
            get(&reader, &entry.key, u64::MAX);
            reader.note_block_read(key_hash(&entry.key));
        }
        assert_eq!(keys_with_shortcuts(&reader, &entries), 0);
    }

    #[test]
    fn walks_through_blocks_that_do_not_stay_in_memory_make_none() {
        let (entries, sample) = file(600, 1);
        let (reader, cache) = sample.reader_with(16 << 20);
        for entry in &entries {
            get(&reader, &entry.key, u64::MAX);
        }
        assert!(reader.hot_index().pinned().is_some());
        for entry in entries.iter().cycle().take(20 * entries.len()) {
            // As if others had taken its place.
            cache.forget_files(|_| true);
            reader.cursor(true).seek(&entry.key, Seq::MAX).unwrap();
        }
        assert_eq!(keys_with_shortcuts(&reader, &entries), 0);
    }

    #[test]
    fn a_file_with_many_keys_to_a_block_has_none() {
        let entries: Vec<Entry> =
            (0..2000u64).map(|i| Entry::put(format!("user#{i:05}"), 1, "value")).collect();
        let options = SstOptions { block_bytes: 400, ..SstOptions::default() };
        let reader = write(&entries, options).reader();
        for entry in entries.iter().cycle().take(6 * entries.len()) {
            get(&reader, &entry.key, u64::MAX);
        }
        assert!(reader.hot_index().pinned().unwrap().count() > BLOCKS_MIN);
        assert_eq!(keys_with_shortcuts(&reader, &entries), 0);
    }

    #[test]
    fn a_file_with_several_versions_of_a_key_has_none() {
        let (entries, sample) = file(300, 2);
        let reader = sample.reader();
        for _ in 0..6 {
            for entry in &entries {
                assert_eq!(get(&reader, &entry.key, entry.seq).as_ref(), Some(entry));
            }
        }
        assert_eq!(keys_with_shortcuts(&reader, &entries), 0);
    }

    fn shortcut(nth: usize) -> Shortcut {
        Shortcut { block: nth / 3, at: nth % 3 * 1024 }
    }

    fn hash(nth: usize) -> u64 {
        key_hash(&nth.to_le_bytes())
    }

    #[test]
    fn what_was_noted_is_found_but_for_a_few() {
        let keys = 20_000;
        let table = Table::new(keys);
        assert_eq!(table.weight(), Table::bytes(keys));
        assert_eq!((0..keys).filter_map(|nth| table.find(hash(nth))).count(), 0);
        for nth in 0..keys {
            table.note(hash(nth), shortcut(nth));
            assert_eq!(table.find(hash(nth)), Some(shortcut(nth)), "the latest is there");
        }
        let found = (0..keys).filter(|&nth| table.find(hash(nth)) == Some(shortcut(nth))).count();
        assert!(found > keys * 95 / 100, "{found}");
        let strangers = (keys..2 * keys).filter(|&nth| table.find(hash(nth)).is_some()).count();
        assert!(strangers < keys / 100, "{strangers}");
    }

    #[test]
    fn a_key_that_is_noted_again_takes_no_second_place() {
        let table = Table::new(1);
        for nth in 0..100 {
            table.note(hash(1), shortcut(nth));
            assert_eq!(table.find(hash(1)), Some(shortcut(nth)));
        }
        let taken = |line: &Line| line.0.iter().filter(|p| p.load(Relaxed) != EMPTY).count();
        assert_eq!(table.lines.iter().map(taken).sum::<usize>(), 1);
    }

    #[test]
    fn the_last_blocks_that_can_be_numbered() {
        let table = Table::new(1);
        let last = |at| Shortcut { block: BLOCK_MASK as usize - 1, at };
        for nth in 0..100 {
            table.note(hash(nth), last(4095));
            assert_eq!(table.find(hash(nth)), Some(last(4096 - 256)));
            table.note(hash(nth), last(1 << 20));
            assert_eq!(table.find(hash(nth)), Some(last(4096 - 256)), "as far as can be said");
            table.note(hash(nth), Shortcut { block: last(0).block + 1, at: 0 });
            assert_eq!(table.find(hash(nth)), Some(last(4096 - 256)), "it has no number");
        }
        assert_eq!(Table::new(0).find(hash(1)), None);
    }
}
