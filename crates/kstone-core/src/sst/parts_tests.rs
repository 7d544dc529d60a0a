//! Whole files that have filter and index in parts.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::filter_parts::Directory;
use super::index::{Handle, Index};
use super::indexed::PART_BLOCKS;
use super::join::Joinable;
use super::tests::*;
use super::*;
use crate::error::Error;

/// One entry to a block, in some hundred blocks: several parts, the last of them not full.
fn many() -> Vec<Entry> {
    (0..300u64)
        .map(|i| Entry::put(format!("user#{:05}", i * 3), 1000 + i, format!("value of {i}")))
        .collect()
}

fn tiny_blocks() -> SstOptions {
    SstOptions { block_bytes: 1, compression: Compression::None, ..in_parts(small()) }
}

/// Enough keys for several pieces of a filter.
fn large() -> Vec<Entry> {
    (0..8000u64).map(|i| Entry::put(format!("user#{:06}", i * 3), 1, vec![i as u8; 100])).collect()
}

/// Where everything of a file is.
struct Layout {
    pieces: Vec<Handle>,
    parts: Vec<Handle>,
    blocks: Vec<Handle>,
    directory: Handle,
    top: Handle,
}

fn layout(sample: &Sample) -> Layout {
    let reader = sample.reader();
    let footer = reader.footer().unwrap();
    assert!(footer.is_in_parts());
    let top = reader.read_index().unwrap();
    let handles = |index: &Index| (0..index.count()).map(|i| index.handle(i).unwrap()).collect();
    let parts: Vec<Handle> = handles(&top);
    let each = |nth| reader.read_part(&top, nth, parts[nth]).unwrap();
    let blocks = (0..parts.len()).flat_map(|nth| -> Vec<Handle> { handles(&each(nth)) }).collect();
    let directory: Directory = reader.read_directory().unwrap();
    let pieces = (0..directory.count()).map(|nth| directory.handle(nth).unwrap()).collect();
    Layout { pieces, parts, blocks, directory: footer.filter, top: footer.index }
}

fn range(handle: &Handle) -> Range<usize> {
    handle.offset as usize..handle.end().unwrap() as usize
}

#[test]
fn only_a_long_filter_or_index_is_written_in_parts() {
    let version = |entries: &[Entry], options: SstOptions| {
        write(entries, options).reader().footer().unwrap().version
    };
    assert_eq!(version(&varied(), SstOptions::default()), 1);
    assert_eq!(version(&many(), SstOptions { block_bytes: 1, ..SstOptions::default() }), 1);
    // 8000 keys of 14 bits are 14 KB; of 40 bits, 40 KB.
    let entries = large();
    assert_eq!(version(&entries, SstOptions::default()), 1);
    let long_filter = SstOptions { filter_bits_per_key: 40, ..SstOptions::default() };
    assert_eq!(version(&entries, long_filter), 2);
    let long_index = SstOptions { block_bytes: 500, ..SstOptions::default() };
    assert_eq!(version(&entries, long_index), 2);
}

#[test]
fn the_parts_lie_back_to_back() {
    let sample = write(&many(), tiny_blocks());
    let layout = layout(&sample);
    assert_eq!((layout.blocks.len(), layout.parts.len(), layout.pieces.len()), (300, 5, 1));
    let all = layout.blocks.iter().chain(&layout.pieces).chain(&layout.parts);
    let mut end = 0;
    for handle in all.chain([&layout.directory, &layout.top]) {
        assert_eq!(handle.offset, end);
        end = handle.end().unwrap();
    }
    assert!(self::layout(&write(&large(), in_parts(SstOptions::default()))).pieces.len() > 2);
}

#[test]
fn a_file_in_parts_answers_the_same_with_any_cache() {
    let entries = many();
    for options in [tiny_blocks(), SstOptions { filter_bits_per_key: 0, ..tiny_blocks() }] {
        let sample = write(&entries, options);
        // All of it; some of it; less than a part; nothing.
        for cache_bytes in [16 << 20, 30_000, 3000, 0] {
            let (reader, cache) = sample.reader_with(cache_bytes);
            for round in 0..2 {
                for i in 0..900u64 {
                    let key = format!("user#{i:05}");
                    let expected = entries.get(i as usize / 3).filter(|_| i % 3 == 0);
                    let found = get(&reader, key.as_bytes(), u64::MAX);
                    assert_eq!(found.as_ref(), expected, "{key}, round {round}");
                    assert!(cache.used_bytes() <= cache_bytes, "{}", cache.used_bytes());
                }
            }
            for fill_cache in [true, false] {
                let mut cursor = reader.cursor(fill_cache);
                assert_eq!(forward(&mut cursor), entries);
                assert_eq!(backward(&mut cursor), entries);
            }
            assert_eq!(faults(&reader), Vec::<String>::new());
            drop(reader);
            assert_eq!(cache.used_bytes(), 0);
        }
    }
}

#[test]
fn the_versions_of_one_key_may_fill_several_parts() {
    let mut entries = vec![Entry::put("a", 1, "first")];
    entries.extend((0..200u64).map(|i| Entry::put("key", 1000 - i, format!("version {i}"))));
    entries.push(Entry::put("z", 1, "last"));
    let sample = write(&entries, tiny_blocks());
    assert_eq!(layout(&sample).parts.len(), 4);
    for cache_bytes in [16 << 20, 3000] {
        let (reader, _) = sample.reader_with(cache_bytes);
        for i in 0..200u64 {
            let found = get(&reader, b"key", 1000 - i);
            assert_eq!(found.as_ref(), entries.get(1 + i as usize), "at {}", 1000 - i);
        }
        assert_eq!(get(&reader, b"key", 800), None, "it is older than them all");
        assert_eq!(get(&reader, b"z", u64::MAX).as_ref(), entries.last());
        let mut cursor = reader.cursor(true);
        assert_eq!(forward(&mut cursor), entries);
        assert_eq!(backward(&mut cursor), entries);
        assert_eq!(faults(&reader), Vec::<String>::new());
    }
}

#[test]
fn a_cursor_crosses_the_borders_of_parts_from_anywhere() {
    let entries = many();
    let sample = write(&entries, tiny_blocks());
    for (cache_bytes, fill_cache) in [(16 << 20, true), (3000, true), (16 << 20, false)] {
        let (reader, _) = sample.reader_with(cache_bytes);
        // One cursor for all: nothing is left of where it was before.
        let mut cursor = reader.cursor(fill_cache);
        for border in [0, PART_BLOCKS, 2 * PART_BLOCKS, 4 * PART_BLOCKS, entries.len()] {
            for i in border.saturating_sub(2)..(border + 2).min(entries.len()) {
                let entry = &entries[i];
                let neighbours = [i.checked_sub(1), Some(i + 1)];
                let [before, behind] = neighbours.map(|at| at.and_then(|at| entries.get(at)));
                cursor.seek(&entry.key, entry.seq).unwrap();
                assert_eq!(current(&cursor).as_ref(), Some(entry));
                cursor.next().unwrap();
                assert_eq!(current(&cursor).as_ref(), behind);
                cursor.seek_before(&entry.key, entry.seq).unwrap();
                assert_eq!(current(&cursor).as_ref(), before);
                cursor.seek(&entry.key, entry.seq - 1).unwrap();
                assert_eq!(current(&cursor).as_ref(), behind);
                cursor.prev().unwrap();
                assert_eq!(current(&cursor).is_some(), behind.is_some());
                cursor.seek_before(&entry.key, entry.seq - 1).unwrap();
                assert_eq!(current(&cursor).as_ref(), Some(entry));
                cursor.prev().unwrap();
                assert_eq!(current(&cursor).as_ref(), before);
            }
        }
        cursor.seek(b"z", 1).unwrap();
        assert!(!cursor.valid());
        cursor.seek_last().unwrap();
        assert_eq!(current(&cursor).as_ref(), entries.last());
    }
}

#[test]
fn damage_to_any_part_is_reported_where_it_is_and_never_read_as_data() {
    let entries = many();
    let sample = write(&entries, tiny_blocks());
    let good = sample.bytes();
    let layout = layout(&sample);
    let kinds = [
        ("piece", &layout.pieces),
        ("part", &layout.parts),
        ("directory", &vec![layout.directory]),
        ("top", &vec![layout.top]),
    ];
    for (kind, handles) in kinds {
        for handle in handles {
            for at in [0, 4, handle.len as usize / 2, handle.len as usize - 1] {
                let mut bad = good.clone();
                bad[range(handle)][at] ^= 0x10;
                sample.replace(&bad);
                let expected = format!("{}: ", handle.offset);
                let found = faults(&sample.reader());
                assert!(found.iter().any(|fault| fault.starts_with(&expected)), "{kind} {found:?}");
                let reader = sample.reader();
                let mut refused = 0;
                for entry in &entries {
                    match reader.get(&entry.key, key_hash(&entry.key), entry.seq) {
                        Ok(hit) => assert_eq!(hit.unwrap().value, entry.value, "{kind}"),
                        Err(Error::Corruption { offset, .. }) => {
                            assert_eq!(offset, handle.offset, "{kind}");
                            refused += 1;
                        }
                        Err(other) => panic!("{kind}: {other}"),
                    }
                }
                // One part of several; the others say no less than before.
                let expected = match kind {
                    "part" if handle.offset == layout.parts[4].offset => 300 % PART_BLOCKS,
                    "part" => PART_BLOCKS,
                    _ => entries.len(),
                };
                assert_eq!(refused, expected, "{kind}");
                for fill_cache in [true, false] {
                    let mut cursor = reader.cursor(fill_cache);
                    let mut next = 0;
                    let mut moved = cursor.seek_first();
                    while let (Ok(()), Some(entry)) = (&moved, current(&cursor)) {
                        assert_eq!(entry, entries[next]);
                        next += 1;
                        moved = cursor.next();
                    }
                    let reads_it = kind == "part" || kind == "top";
                    assert_eq!(moved.is_err(), reads_it, "{kind}");
                    assert!(!cursor.valid());
                }
            }
        }
    }
}

#[test]
fn every_flipped_byte_is_noticed_by_verify() {
    let entries = &many()[..70];
    let sample = write(entries, tiny_blocks());
    let good = sample.bytes();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        sample.replace(&bad);
        assert!(!faults(&sample.reader()).is_empty(), "byte {at} of {}", good.len());
    }
}

#[test]
fn swapped_parts_and_pieces_are_noticed() {
    let entries = large();
    let sample =
        write(&entries, SstOptions { block_bytes: 500, ..in_parts(SstOptions::default()) });
    let good = sample.bytes();
    let layout = layout(&sample);
    let is_pair = |pair: &&[Handle]| pair[0].len == pair[1].len;
    let parts = layout.parts.windows(2).find(is_pair).expect("two parts of one length");
    for pair in [&layout.pieces[..2], parts] {
        let mut bad = good.clone();
        bad[range(&pair[0]).start..range(&pair[1]).end].rotate_left(pair[0].len as usize);
        sample.replace(&bad);
        assert_eq!(faults(&sample.reader()).len(), 2);
        let reader = sample.reader();
        let errors = entries.iter().filter_map(|e| reader.get(&e.key, key_hash(&e.key), 9).err());
        let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
        assert!(!errors.is_empty() && errors.len() < entries.len());
        assert!(errors.iter().all(|error| error.contains("not the one expected")), "{errors:?}");
    }
}

#[test]
fn a_get_in_a_file_that_does_not_fit_reads_a_piece_a_part_and_a_block() {
    let entries: Vec<Entry> =
        (0..100_000u64).map(|i| Entry::put(format!("user#{i:08}"), 1, vec![7; 100])).collect();
    let options = SstOptions { compression: Compression::None, ..SstOptions::default() };
    let whole = SstOptions { parts_beyond_bytes: usize::MAX, ..options };
    let bytes_per_get = |options: SstOptions| {
        let sample = write(&entries, options);
        let (reader, cache) = sample.reader_with(256 << 10);
        let get = |i: u64| {
            let key = format!("user#{:08}", i * 7919 % 100_000);
            assert!(get(&reader, key.as_bytes(), 1).is_some());
        };
        (0..1000).for_each(get);
        let before = cache.stats();
        (1000..2000).for_each(get);
        let after = cache.stats();
        assert!(cache.used_bytes() <= 256 << 10);
        let reads = (after.file_reads - before.file_reads) as f64 / 1000.0;
        (reads, (after.file_read_bytes - before.file_read_bytes) / 1000)
    };
    let (whole, in_parts) = (bytes_per_get(whole), bytes_per_get(options));
    println!("reads and bytes per get: whole {whole:?}, in parts {in_parts:?}");
    assert!(in_parts.0 <= 3.0 && in_parts.1 <= 13_000, "{in_parts:?}");
    assert!(whole.1 > 10 * in_parts.1, "{whole:?} {in_parts:?}");
}

#[test]
fn what_is_asked_for_of_filter_and_index_is_counted() {
    let (reader, cache) = write(&many(), tiny_blocks()).reader_with(16 << 20);
    assert!(get(&reader, b"user#00003", u64::MAX).is_some());
    let cold = cache.stats();
    // The directory and a piece, the top and a part, a block.
    assert_eq!((cold.filter_misses, cold.index_misses, cold.data_misses), (2, 2, 1));
    assert_eq!(cold.file_reads, 5);
    for _ in 0..2 {
        assert!(get(&reader, b"user#00003", u64::MAX).is_some());
    }
    let warm = cache.stats();
    assert_eq!((warm.filter_hits, warm.index_hits, warm.data_hits), (2, 2, 2));
    assert_eq!(warm.file_reads, 5);
    assert!(get(&reader, b"user#00600", u64::MAX).is_some());
    let other = cache.stats();
    assert_eq!((other.filter_hits, other.index_misses, other.data_misses), (3, 3, 2));
    assert_eq!(other.file_reads, 7, "of an index only the part that is needed");
}

#[test]
fn a_scan_past_the_cache_reads_each_part_once_and_keeps_none() {
    let entries = large();
    let options = SstOptions { compression: Compression::None, ..in_parts(SstOptions::default()) };
    let sample = write(&entries, options);
    let (reader, cache) = sample.reader_with(16 << 20);
    assert_eq!(forward(&mut reader.cursor(false)), entries);
    let stats = cache.stats();
    assert!(stats.file_read_bytes <= sample.meta.file_bytes, "nothing is read twice");
    assert!(stats.file_reads < 20, "{stats:?}");
    assert_eq!(cache.used_bytes(), 0);
    let mut cursor = reader.cursor(false);
    cursor.seek(b"user#012000", 1).unwrap();
    let read = cache.stats().file_read_bytes - stats.file_read_bytes;
    assert!(read < 12_000, "a seek reads top, part and block: {read}");
}

#[test]
fn what_is_forgotten_of_a_file_is_forgotten_in_all_its_parts() {
    let entries = many();
    let sample = write(&entries, tiny_blocks());
    // With room for all of it, before the parts are joined, and for little.
    for (cache_bytes, gets) in [(16 << 20, 4), (8000, 300)] {
        let (reader, cache) = sample.reader_with(cache_bytes);
        for entry in entries.iter().take(gets) {
            assert!(get(&reader, &entry.key, u64::MAX).is_some());
        }
        let before = cache.stats();
        cache.forget_files(|id| id == IDENT.file_id);
        // Its filter is one piece, and joined at once where there is room.
        let is_joined = reader.hot_filter().pinned().is_some();
        assert_eq!(is_joined, gets == 4);
        let filter = if is_joined { 4200 } else { 0 };
        assert!(cache.used_bytes() < 2000 + filter, "no more than top and directory");
        assert!(get(&reader, &entries[0].key, u64::MAX).is_some());
        let after = cache.stats();
        assert_eq!(after.data_misses, before.data_misses + 1);
        assert!(after.index_misses > before.index_misses);
        assert!(after.filter_misses > before.filter_misses || is_joined);
    }
}

#[test]
fn parts_that_are_asked_for_often_are_joined_where_they_fit() {
    let entries = large();
    let options = SstOptions { block_bytes: 400, ..in_parts(SstOptions::default()) };
    let sample = write(&entries, options);
    let Layout { parts, pieces, blocks, .. } = layout(&sample);
    assert!(parts.len() > 20 && pieces.len() > 2);
    // The filter takes 14 KB, the index more than a tenth of a megabyte.
    for (cache_bytes, fits) in [(8 << 20, true), (40 << 10, false)] {
        let (reader, cache) = sample.reader_with(cache_bytes);
        let get_all = || {
            for entry in &entries {
                let found = get(&reader, &entry.key, u64::MAX).map(|hit| hit.value);
                assert_eq!(found.as_deref(), Some(entry.value.as_slice()));
                assert!(get(&reader, &[&entry.key[..], b"!"].concat(), u64::MAX).is_none());
            }
        };
        get_all();
        let misses = cache.stats().data_misses;
        assert!(
            !fits || misses == blocks.len() as u64,
            "what the parts had found is not read anew"
        );
        assert_eq!(reader.hot_index().pinned().is_some(), fits);
        assert_eq!(reader.hot_filter().pinned().is_some(), fits);
        let before = cache.stats();
        get_all();
        let after = cache.stats();
        assert_eq!(after.index_misses == before.index_misses, fits);
        assert!(after.filter_misses == before.filter_misses || !fits);
        if let Some(joined) = reader.hot_index().pinned() {
            assert_eq!(joined.check(), Ok(()));
            let handles: Vec<_> = (0..joined.count()).map(|i| joined.handle(i).unwrap()).collect();
            assert_eq!(handles, blocks);
            let mut cursor = reader.cursor(true);
            cursor.seek_first().unwrap();
            assert_eq!(
                cursor.entry().map(|entry| entry.key.to_vec()),
                Some(entries[0].key.clone())
            );
        }
        if fits {
            cache.forget_files(|id| id == IDENT.file_id);
            let before = cache.stats();
            assert!(get(&reader, &entries[0].key, u64::MAX).is_some());
            assert_eq!(cache.stats().data_misses, before.data_misses + 1, "no block is left");
        }
        let used = cache.used_bytes();
        drop(reader);
        assert!(used > 0 && cache.used_bytes() == 0, "what was pinned is given back");
    }
}

#[test]
fn where_somebody_joins_for_them_gets_only_wish() {
    let entries = large();
    let options = SstOptions { block_bytes: 400, ..in_parts(SstOptions::default()) };
    let sample = write(&entries, options);
    let (reader, cache) = sample.reader_with(8 << 20);
    let calls = Arc::new(AtomicUsize::new(0));
    let called = Arc::clone(&calls);
    let is_there = Arc::new(AtomicBool::new(true));
    let answer = Arc::clone(&is_there);
    cache.join_requests().serve(move || {
        called.fetch_add(1, Ordering::Relaxed);
        answer.load(Ordering::Relaxed)
    });
    let get_all = || {
        for entry in &entries {
            assert!(get(&reader, &entry.key, u64::MAX).is_some());
        }
    };
    get_all();
    assert!(reader.hot_index().pinned().is_none() && reader.hot_filter().pinned().is_none());
    assert_eq!(calls.load(Ordering::Relaxed), 2, "what is wished for already is not called for");
    let mut wished = Vec::new();
    while cache.join_requests().run_next(|wish| {
        wished.push(wish);
        get_all();
        assert_eq!(calls.load(Ordering::Relaxed), 2, "nor what is under way");
        reader.join(wish.what);
    }) {}
    wished.sort_by_key(|wish| wish.what == Joinable::Index);
    let wish = |what| JoinRequest { stripe: IDENT.stripe, file_id: IDENT.file_id, what };
    assert_eq!(wished, [wish(Joinable::Filter), wish(Joinable::Index)]);
    assert!(reader.is_joined());
    let misses = cache.stats().data_misses;
    get_all();
    assert_eq!(cache.stats().data_misses, misses, "what the parts had found is not read anew");
    assert!(!cache.join_requests().run_next(|_| ()));

    // Nobody is called where there is no memory for it, and who is not there any more is not waited for.
    let calls_before = calls.load(Ordering::Relaxed);
    drop(reader);
    let small = sample.reader_with(40 << 10);
    small.1.join_requests().serve(|| panic!("nobody is called"));
    let again = sample.reader_in(&cache);
    is_there.store(false, Ordering::Relaxed);
    for entry in &entries {
        assert!(get(&small.0, &entry.key, u64::MAX).is_some());
        assert!(get(&again, &entry.key, u64::MAX).is_some());
    }
    assert!(!small.0.is_joined() && again.is_joined());
    assert_eq!(calls.load(Ordering::Relaxed), calls_before + 2);
}

#[test]
fn a_damaged_part_keeps_the_others_from_being_joined_and_from_nothing_else() {
    let entries = many();
    let sample = write(&entries, tiny_blocks());
    let damaged = layout(&sample).parts[2];
    let mut bytes = sample.bytes();
    bytes[range(&damaged)][9] ^= 1;
    sample.replace(&bytes);
    let (reader, _) = sample.reader_with(16 << 20);
    for _ in 0..20 {
        for entry in entries.iter().take(2 * PART_BLOCKS) {
            assert!(get(&reader, &entry.key, u64::MAX).is_some());
        }
    }
    assert!(reader.hot_index().pinned().is_none());
    let key = &entries[2 * PART_BLOCKS].key;
    match reader.get(key, key_hash(key), u64::MAX) {
        Err(Error::Corruption { offset, .. }) => assert_eq!(offset, damaged.offset),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_search_sees_the_separators_of_parts_and_of_the_top() {
    let sample = write(&many(), tiny_blocks());
    let (reader, _) = sample.reader_with(0);
    let mut shown = Vec::new();
    reader.each_payload(&mut |payload| shown.push(payload.to_vec())).unwrap();
    assert_eq!(shown.len(), 300 * 2 + 5, "a block and a separator each; those of the top");
    let top = reader.read_index().unwrap();
    let (separator, _) = top.separator(2).unwrap();
    assert_eq!(shown.iter().filter(|payload| **payload == separator).count(), 2);
}
