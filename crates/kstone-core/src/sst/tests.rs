//! Whole files: written, read back, walked, damaged.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;

use super::stats::ReadCounts;
use super::*;
use crate::entry::{EntryRef, Kind, SEQ_MAX, Seq, View, entry_order};
use crate::env::{MemoryVfs, OpenMode, Vfs};
use crate::error::Error;

pub(super) const DB: [u8; 16] = *b"a database's id!";
pub(super) const IDENT: FileIdent = FileIdent { db_id: DB, stripe: 7, file_id: 42 };

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    pub(super) seq: Seq,
    pub(super) kind: Kind,
    pub(super) expires_at_ms: u64,
    pub(super) value: Vec<u8>,
}

impl Entry {
    pub(super) fn put(key: impl Into<Vec<u8>>, seq: Seq, value: impl Into<Vec<u8>>) -> Self {
        Entry { key: key.into(), seq, kind: Kind::Put, expires_at_ms: 0, value: value.into() }
    }

    fn as_ref(&self) -> EntryRef<'_> {
        EntryRef {
            key: &self.key,
            seq: self.seq,
            kind: self.kind,
            expires_at_ms: self.expires_at_ms,
            value: &self.value,
        }
    }

    fn from_ref(entry: EntryRef<'_>) -> Self {
        Entry {
            key: entry.key.to_vec(),
            seq: entry.seq,
            kind: entry.kind,
            expires_at_ms: entry.expires_at_ms,
            value: entry.value.to_vec(),
        }
    }
}

/// A finished file, and what is needed to read it.
pub(super) struct Sample {
    pub(super) vfs: Arc<MemoryVfs>,
    pub(super) meta: SstMeta,
}

/// Writes a whole file, whether there is one or not.
fn replace(vfs: &MemoryVfs, path: &Path, bytes: &[u8]) {
    let mode = if vfs.exists(path).unwrap() { OpenMode::ReadWrite } else { OpenMode::CreateNew };
    let file = vfs.open(path, mode).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    file.write_at(bytes, 0).unwrap();
}

pub(super) fn dir() -> &'static Path {
    Path::new("db")
}

pub(super) fn path() -> PathBuf {
    dir().join(file_name(IDENT.stripe, IDENT.file_id))
}

pub(super) fn write(entries: &[Entry], options: SstOptions) -> Sample {
    let vfs = Arc::new(MemoryVfs::default());
    let mut writer = SstWriter::create(&*vfs, dir(), IDENT, options).unwrap();
    for entry in entries {
        writer.add(entry.as_ref()).unwrap();
    }
    let (meta, file) = writer.finish().unwrap();
    assert_eq!(file.len().unwrap(), meta.file_bytes);
    Sample { vfs, meta }
}

impl Sample {
    fn reader_of(&self, meta: SstMeta, db_id: [u8; 16]) -> Arc<SstReader> {
        let handles = Arc::new(FileHandles::new(self.vfs.clone(), dir().to_owned(), 10));
        let cache = Arc::new(BlockCache::new(16 << 20));
        Arc::new(SstReader::open(Arc::new(meta), handles, cache, db_id))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let file = self.vfs.open(&path(), OpenMode::Read).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    pub(super) fn replace(&self, bytes: &[u8]) {
        replace(&self.vfs, &path(), bytes);
    }

    pub(super) fn reader(&self) -> Arc<SstReader> {
        self.reader_of(self.meta.clone(), DB)
    }

    /// A reader with a cache of so many bytes for it alone.
    pub(super) fn reader_with(&self, cache_bytes: u64) -> (Arc<SstReader>, Arc<BlockCache>) {
        let cache = Arc::new(BlockCache::new(cache_bytes));
        (self.reader_in(&cache), cache)
    }

    pub(super) fn reader_in(&self, cache: &Arc<BlockCache>) -> Arc<SstReader> {
        let handles = Arc::new(FileHandles::new(self.vfs.clone(), dir().to_owned(), 10));
        let meta = Arc::new(self.meta.clone());
        Arc::new(SstReader::open(meta, handles, cache.clone(), DB))
    }
}

pub(super) fn faults(reader: &SstReader) -> Vec<String> {
    let mut faults = Vec::new();
    reader.verify(&mut |offset, what| faults.push(format!("{offset}: {what}"))).unwrap();
    faults
}

pub(super) fn get(reader: &SstReader, key: &[u8], max_seq: Seq) -> Option<Entry> {
    reader.get(key, key_hash(key), max_seq).unwrap().map(|hit| Entry {
        key: key.to_vec(),
        seq: hit.seq,
        kind: hit.kind,
        expires_at_ms: hit.expires_at_ms,
        value: hit.value.to_vec(),
    })
}

pub(super) fn current(cursor: &SstCursor) -> Option<Entry> {
    let entry = cursor.entry().map(Entry::from_ref);
    assert_eq!(entry.is_some(), cursor.valid());
    assert_eq!(cursor.value_bytes(), entry.as_ref().map_or(&[][..], |e| &e.value));
    entry
}

pub(super) fn forward(cursor: &mut SstCursor) -> Vec<Entry> {
    let mut all = Vec::new();
    cursor.seek_first().unwrap();
    while let Some(entry) = current(cursor) {
        all.push(entry);
        cursor.next().unwrap();
    }
    all
}

pub(super) fn backward(cursor: &mut SstCursor) -> Vec<Entry> {
    let mut all = Vec::new();
    cursor.seek_last().unwrap();
    while let Some(entry) = current(cursor) {
        all.push(entry);
        cursor.prev().unwrap();
    }
    all.reverse();
    all
}

/// Versions, deletes, marks, expiries, keys that are prefixes of each other, the empty key, a
/// value of several blocks, an empty value.
pub(super) fn varied() -> Vec<Entry> {
    let mut entries = vec![
        Entry::put("", 5, "the empty key"),
        Entry { kind: Kind::DropPartition, ..Entry::put("a", 90, "") },
        Entry { kind: Kind::Delete, ..Entry::put("a", 80, "") },
        Entry { expires_at_ms: 1_700_000_000_000, ..Entry::put("a", 70, "expiring") },
        Entry::put("a\0", 6, ""),
        Entry::put("big", 8, vec![b'x'; 20_000]),
        Entry { expires_at_ms: 5, ..Entry::put("big", 7, "small") },
    ];
    for seq in (1..60).rev() {
        entries.push(Entry::put("hot", seq, format!("version {seq}")));
    }
    for i in 0..300u64 {
        let key = format!("user#{:04}", i * 3);
        entries.push(Entry::put(key, 1000 + i, format!("value {i}").repeat((i % 7) as usize)));
    }
    entries
}

pub(super) fn small() -> SstOptions {
    SstOptions { block_bytes: 200, restart_interval: 4, ..SstOptions::default() }
}

/// With filter and index in parts, however short they are.
pub(super) fn in_parts(options: SstOptions) -> SstOptions {
    SstOptions { parts_beyond_bytes: 0, ..options }
}

const COMPRESSIONS: [Compression; 3] =
    [Compression::None, Compression::Lz4, Compression::Zstd { level: 3 }];

#[test]
fn the_next_visible_key_is_what_looking_at_each_entry_would_find() {
    // Versions over restarts and blocks, tombstones, expired records; keys of two partitions.
    let mut entries = Vec::new();
    for n in 0..300u32 {
        let versions: Seq = if n % 9 == 0 { 40 } else { 1 + Seq::from(n % 3) };
        for seq in (1..=versions).rev() {
            let mut entry = Entry::put(format!("p{}k{n:04}", n / 200), seq, vec![n as u8; 20]);
            // Short and long behind what is shared, and longer than the room for the usual key.
            entry.key.extend(std::iter::repeat_n(b'x', [0, 0, 0, 15, 30, 200][n as usize % 6]));
            match (u64::from(n) + seq) % 7 {
                0 => entry.kind = Kind::Delete,
                1 => entry.expires_at_ms = 1000 * seq,
                _ => {}
            }
            entries.push(entry);
        }
    }
    let options = SstOptions { block_bytes: 256, ..SstOptions::default() };
    let reader = write(&entries, in_parts(options)).reader();
    let mut plain_steps = 0;
    // Ends inside of blocks and between them, of keys that are there and that are not.
    let keys = entries.iter().step_by(37).map(|entry| Some(entry.key.as_slice()));
    let highs = [None, Some(&b"p0k0150"[..]), Some(b"p1"), Some(b"p1k0250x")];
    let highs: Vec<_> = highs.into_iter().chain(keys).collect();
    for seq in [0, 1, 2, 3, 17, 39, 40, SEQ_MAX] {
        for now_ms in [0, 1000, 20_000] {
            for &high in &highs {
                let view = View { seq, now_ms, high };
                let mut expected = Vec::new();
                let mut last: Option<&[u8]> = None;
                for entry in entries.iter().filter(|entry| entry.seq <= seq) {
                    if last != Some(&entry.key) && !view.ends_before(&entry.key) {
                        last = Some(&entry.key);
                        if view.shows(entry.kind, entry.expires_at_ms) {
                            expected.push((entry.key.clone(), entry.seq, entry.value.clone()));
                        }
                    }
                }
                let mut cursor = reader.cursor(true);
                let mut found = Vec::new();
                // One walk after another, from the front: nothing of the last one is left.
                for is_plain_first in [false, true, false, true] {
                    found.clear();
                    let mut is_there = cursor.begin_first().unwrap();
                    while is_there {
                        let is_plain = is_plain_first && !found.is_empty();
                        let plain = if is_plain { cursor.next_plain(&view) } else { None };
                        plain_steps += usize::from(plain.is_some());
                        is_there = plain.unwrap_or_else(|| cursor.next_visible(&view).unwrap());
                        if is_there {
                            let entry = cursor.entry().unwrap();
                            found.push((entry.key.to_vec(), entry.seq, entry.value.to_vec()));
                        }
                    }
                    assert_eq!(found, expected, "{view:?}");
                    cursor.seek_first().unwrap();
                }
            }
        }
    }
    assert!(plain_steps > 10_000, "{plain_steps}");
}

#[test]
fn the_next_key_is_the_next_one_that_is_another_key() {
    // Of some keys so many versions that they go over restarts and blocks.
    let mut entries = Vec::new();
    for n in 0..200u32 {
        let versions: Seq = if n % 9 == 0 { 40 } else { 1 + Seq::from(n % 2) };
        for seq in (1..=versions).rev() {
            entries.push(Entry::put(format!("k{n:04}"), seq, vec![n as u8; 20]));
        }
    }
    let options = SstOptions { block_bytes: 256, ..SstOptions::default() };
    let reader = write(&entries, options).reader();
    for fill_cache in [true, false] {
        let mut cursor = reader.cursor(fill_cache);
        cursor.seek_first().unwrap();
        for n in 0..200u32 {
            assert_eq!(cursor.entry().unwrap().key, format!("k{n:04}").as_bytes());
            cursor.next_key().unwrap();
        }
        assert!(!cursor.valid());
        // From the middle of the versions of a key.
        cursor.seek(b"k0009", 17).unwrap();
        assert_eq!(cursor.entry().unwrap().seq, 17);
        cursor.next_key().unwrap();
        assert_eq!(cursor.entry().unwrap().key, b"k0010");
    }
}

#[test]
fn what_is_written_is_read_back_in_both_directions() {
    let entries = varied();
    for compression in COMPRESSIONS {
        for options in [SstOptions::default(), small(), in_parts(small())] {
            let sample = write(&entries, SstOptions { compression, ..options });
            let reader = sample.reader();
            for fill_cache in [true, false] {
                let mut cursor = reader.cursor(fill_cache);
                assert_eq!(forward(&mut cursor), entries);
                assert_eq!(backward(&mut cursor), entries);
            }
            assert_eq!(faults(&reader), Vec::<String>::new());
        }
    }
}

#[test]
fn a_get_sees_the_newest_version_up_to_its_sequence_number() {
    let entries = varied();
    for options in [small(), in_parts(small())] {
        let reader = write(&entries, options).reader();
        for max_seq in [0, 1, 5, 30, 59, 69, 70, 79, 80, 90, 1100, u64::MAX] {
            let others = [&b"aa"[..], b"hos", b"user#0001", b"z"];
            for key in entries.iter().map(|e| &e.key[..]).chain(others) {
                let expected = entries.iter().find(|e| e.key == key && e.seq <= max_seq);
                assert_eq!(get(&reader, key, max_seq).as_ref(), expected, "{key:?} {max_seq}");
            }
        }
    }
}

#[test]
fn the_meta_counts_what_is_in_the_file() {
    let entries = varied();
    let sample = write(&entries, small());
    let meta = &sample.meta;
    assert_eq!((meta.entries, meta.puts), (entries.len() as u64, entries.len() as u64 - 2));
    assert_eq!((meta.deletes, meta.marks, meta.max_mark_seq, meta.expiring), (1, 1, 90, 2));
    assert_eq!((meta.min_seq, meta.max_seq), (1, 1299));
    assert_eq!((&meta.smallest[..], &meta.largest[..]), (&b""[..], &b"user#0897"[..]));
    assert_eq!(meta.value_bytes, entries.iter().map(|e| e.value.len() as u64).sum::<u64>());
    let (standalone, ident, properties) = open_standalone(&*sample.vfs, &path(), Some(DB)).unwrap();
    assert_eq!((&standalone, ident), (meta, IDENT));
    assert_eq!(properties.distinct_keys, 5 + 300);
    assert_eq!(
        (properties.min_expires_at_ms, properties.max_expires_at_ms),
        (5, 1_700_000_000_000)
    );
}

#[test]
fn entries_out_of_order_are_refused() {
    let vfs = MemoryVfs::default();
    let mut writer = SstWriter::create(&vfs, dir(), IDENT, small()).unwrap();
    writer.add(Entry::put("b", 5, "").as_ref()).unwrap();
    for bad in [
        Entry::put("b", 5, ""),
        Entry::put("b", 6, ""),
        Entry::put("a", 1, ""),
        Entry::put("", 1, ""),
    ] {
        assert!(matches!(writer.add(bad.as_ref()), Err(Error::Invalid { .. })), "{bad:?}");
    }
    writer.add(Entry::put("b", 4, "").as_ref()).unwrap();
    assert!(!writer.is_empty() && writer.estimated_bytes() > 0);
    drop(writer);
    vfs.remove(&path()).unwrap();
    let empty = SstWriter::create(&vfs, dir(), IDENT, small()).unwrap();
    assert!(matches!(empty.finish(), Err(Error::Invalid { .. })));
}

#[test]
fn the_largest_value_makes_a_block_of_its_own() {
    let noise: Vec<u8> =
        (0..2u64 << 20).flat_map(|i| key_hash(&i.to_le_bytes()).to_le_bytes()).collect();
    let entries = [Entry::put("a", 1, "x"), Entry::put("b", 2, noise), Entry::put("c", 3, "z")];
    let reader = write(&entries, SstOptions::default()).reader();
    assert_eq!(forward(&mut reader.cursor(false)), entries);
    assert_eq!(get(&reader, b"b", 9).as_ref(), entries.get(1));
}

#[test]
fn a_global_sequence_number_replaces_the_files_own() {
    for options in [small(), SstOptions { block_bytes: 1, ..in_parts(small()) }] {
        check_global_sequence_number(options);
    }
}

fn check_global_sequence_number(options: SstOptions) {
    let entries: Vec<Entry> = (0..100).map(|i| Entry::put(format!("k{i:02}"), 0, "v")).collect();
    let sample = write(&entries, options);
    let reader = sample.reader_of(SstMeta { global_seq: Some(50), ..sample.meta.clone() }, DB);
    assert_eq!(get(&reader, b"k10", 49), None);
    assert_eq!(get(&reader, b"k10", 50).map(|e| e.seq), Some(50));
    assert_eq!(faults(&reader), Vec::<String>::new());
    let mut cursor = reader.cursor(true);
    let mut key_at = |seek: fn(&mut SstCursor, &[u8], Seq) -> crate::Result<()>, key: &str, seq| {
        seek(&mut cursor, key.as_bytes(), seq).unwrap();
        current(&cursor).map(|e| (String::from_utf8(e.key).unwrap(), e.seq))
    };
    let at = |key: &str| Some((key.to_owned(), 50));
    assert_eq!(key_at(SstCursor::seek, "k10", 50), at("k10"));
    assert_eq!(key_at(SstCursor::seek, "k10", 49), at("k11"));
    assert_eq!(key_at(SstCursor::seek, "k99", 49), None);
    assert_eq!(key_at(SstCursor::seek_before, "k10", 50), at("k09"));
    assert_eq!(key_at(SstCursor::seek_before, "k10", 49), at("k10"));
    assert_eq!(key_at(SstCursor::seek_before, "k101", 49), at("k10"));
    assert_eq!(key_at(SstCursor::seek_before, "z", 49), at("k99"));
    assert_eq!(key_at(SstCursor::seek_before, "k00", 50), None);
    for (seq, expected) in [(49, 0), (50, 100)] {
        let view = View { seq, now_ms: 0, high: None };
        let (mut is_there, mut count) = (cursor.begin_first().unwrap(), 0);
        while is_there {
            let plain = if count > 0 { cursor.next_plain(&view) } else { None };
            is_there = plain.unwrap_or_else(|| cursor.next_visible(&view).unwrap());
            count += usize::from(is_there);
        }
        assert_eq!(count, expected);
    }
}

#[test]
fn the_filter_and_the_cache_are_counted() {
    let entries = varied();
    let sample = write(&entries, small());
    let handles = Arc::new(FileHandles::new(sample.vfs.clone(), dir().to_owned(), 10));
    let cache = Arc::new(BlockCache::new(16 << 20));
    let reader = SstReader::open(Arc::new(sample.meta.clone()), handles, cache.clone(), DB);
    assert_eq!(cache.stats(), ReadCounts::default(), "opening reads nothing");
    assert!(get(&reader, b"user#0003", u64::MAX).is_some());
    let cold = cache.stats();
    assert_eq!((cold.filter_misses, cold.index_misses, cold.data_misses), (1, 1, 1));
    assert_eq!(cold.file_reads, 3);
    assert!(get(&reader, b"user#0003", u64::MAX).is_some());
    let warm = cache.stats();
    assert_eq!((warm.filter_hits, warm.index_hits, warm.data_hits), (1, 1, 1));
    assert_eq!((warm.file_reads, warm.file_read_bytes), (3, cold.file_read_bytes));
    for i in 0..300 {
        assert!(get(&reader, format!("user#{:04}", i * 3 + 1).as_bytes(), u64::MAX).is_none());
    }
    let asked = cache.stats();
    assert_eq!(asked.filter_useful + asked.filter_false_positives, 300, "bounds are not compared");
    assert!(asked.filter_false_positives < 10);
    cache.forget_files(|id| id == IDENT.file_id);
    drop(reader);
    assert_eq!(cache.used_bytes(), 0);
}

#[test]
fn readers_pin_filter_and_index_within_half_of_the_budget_and_give_it_back() {
    let entries = varied();
    let sample = write(&entries, small());
    let handles = Arc::new(FileHandles::new(sample.vfs.clone(), dir().to_owned(), 10));
    let cache = Arc::new(BlockCache::new(256 << 10));
    let open = || {
        let meta = Arc::new(sample.meta.clone());
        SstReader::open(meta, handles.clone(), cache.clone(), DB)
    };
    let mut readers = Vec::new();
    let mut held_bytes = Vec::new();
    for _ in 0..200 {
        let reader = open();
        assert!(get(&reader, b"user#0003", u64::MAX).is_some());
        readers.push(reader);
        cache.forget_files(|_| true);
        held_bytes.push(cache.used_bytes());
    }
    assert!(held_bytes[0] > 0, "the first reader pins");
    let most = *held_bytes.iter().max().unwrap();
    assert!(most <= cache.capacity_bytes() / 2 && most > cache.capacity_bytes() / 4, "{most}");
    assert_eq!(held_bytes.last(), Some(&most), "later readers cache instead");
    drop(readers);
    assert_eq!(cache.used_bytes(), 0);
    assert!(get(&open(), b"user#0003", u64::MAX).is_some());
}

#[test]
fn a_file_without_filter_and_a_cache_without_room_still_answer() {
    let entries = varied();
    let sample = write(&entries, SstOptions { filter_bits_per_key: 0, ..small() });
    let handles = Arc::new(FileHandles::new(sample.vfs.clone(), dir().to_owned(), 1));
    let cache = Arc::new(BlockCache::new(0));
    let reader = Arc::new(SstReader::open(Arc::new(sample.meta.clone()), handles, cache, DB));
    assert_eq!(get(&reader, b"a\0", 9).as_ref(), entries.get(4));
    assert_eq!(get(&reader, b"aa", 9), None);
    assert_eq!(forward(&mut reader.cursor(true)), entries);
    assert_eq!(faults(&reader), Vec::<String>::new());
}

#[test]
fn a_sequential_scan_past_the_cache_reads_in_large_pieces() {
    let entries: Vec<Entry> =
        (0..4000).map(|i| Entry::put(format!("k{i:05}"), 1, vec![b'v'; 500])).collect();
    let sample =
        write(&entries, SstOptions { compression: Compression::None, ..SstOptions::default() });
    let handles = Arc::new(FileHandles::new(sample.vfs.clone(), dir().to_owned(), 10));
    let cache = Arc::new(BlockCache::new(16 << 20));
    let reader =
        Arc::new(SstReader::open(Arc::new(sample.meta.clone()), handles, cache.clone(), DB));
    assert_eq!(forward(&mut reader.cursor(false)).len(), entries.len());
    let stats = cache.stats();
    assert!(stats.file_reads < 20, "{stats:?}");
    assert_eq!(cache.used_bytes(), 0);
    let mut cursor = reader.cursor(false);
    cursor.seek(b"k02000", 1).unwrap();
    assert!(
        cache.stats().file_read_bytes - stats.file_read_bytes < 100_000,
        "a seek reads one block"
    );
}

#[test]
fn a_file_of_another_database_stripe_or_version_is_refused() {
    let sample = write(&varied(), small());
    let refusal = |reader: Arc<SstReader>| reader.get(b"a", key_hash(b"a"), 99).unwrap_err();
    let meta = || sample.meta.clone();
    assert!(matches!(refusal(sample.reader_of(meta(), [0; 16])), Error::ForeignFile { .. }));
    assert!(matches!(
        open_standalone(&*sample.vfs, &path(), Some([0; 16])),
        Err(Error::ForeignFile { .. })
    ));
    let other_footer = SstMeta { footer_checksum: 1, ..meta() };
    assert!(matches!(refusal(sample.reader_of(other_footer, DB)), Error::Corruption { .. }));
    let bytes = sample.bytes();
    for (stripe, file_id) in [(8, 42), (7, 43)] {
        replace(&sample.vfs, &dir().join(file_name(stripe, file_id)), &bytes);
        let renamed = SstMeta { stripe, file_id, ..meta() };
        assert!(matches!(refusal(sample.reader_of(renamed, DB)), Error::Corruption { .. }));
    }
    let mut newer = bytes;
    let footer_at = newer.len() - footer::FOOTER_LEN;
    newer[footer_at + 88] = 3;
    let checksum = key_hash(&newer[footer_at..footer_at + 92]);
    newer[footer_at + 92..footer_at + 100].copy_from_slice(&checksum.to_le_bytes());
    sample.replace(&newer);
    assert!(matches!(refusal(sample.reader()), Error::Version { found: 3, supported: 2, .. }));
    assert!(!faults(&sample.reader()).is_empty());
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for options in [small(), in_parts(small())] {
        let sample = write(&varied()[..20], options);
        let bytes = sample.bytes();
        for len in 0..bytes.len() {
            sample.replace(&bytes[..len]);
            let refused = open_standalone(&*sample.vfs, &path(), Some(DB));
            assert!(matches!(refused, Err(Error::Corruption { .. })), "{len}");
            assert!(!faults(&sample.reader()).is_empty(), "{len}");
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed_by_verify_and_never_read_as_data() {
    let entries = varied();
    let entries = [&entries[..5], &entries[6..10]].concat();
    for compression in [Compression::None, Compression::Lz4] {
        let sample = write(&entries, SstOptions { compression, block_bytes: 60, ..small() });
        let good = sample.bytes();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            sample.replace(&bad);
            let reader = sample.reader();
            assert!(!faults(&reader).is_empty(), "bit {bit} of {}", good.len() * 8);
            for entry in &entries {
                if let Ok(hit) = reader.get(&entry.key, key_hash(&entry.key), entry.seq) {
                    assert_eq!(hit.map(|hit| hit.value.to_vec()).as_ref(), Some(&entry.value));
                }
            }
        }
    }
}

#[test]
fn two_swapped_blocks_of_equal_length_are_noticed() {
    let entries: Vec<Entry> =
        (0..20).map(|i| Entry::put(format!("k{i:02}"), 1, "0123456789")).collect();
    let options = SstOptions { compression: Compression::None, block_bytes: 60, ..small() };
    let sample = write(&entries, options);
    let index = sample.reader().read_index().unwrap();
    let (a, b) = (index.handle(1).unwrap(), index.handle(2).unwrap());
    assert_eq!(a.len, b.len);
    let mut bytes = sample.bytes();
    let range = a.offset as usize..b.end().unwrap() as usize;
    bytes[range].rotate_left(a.len as usize);
    sample.replace(&bytes);
    assert_eq!(faults(&sample.reader()).len(), 2);
    let error = sample.reader().cursor(true).seek(b"k03", 1).unwrap_err();
    assert!(error.to_string().contains("not the one expected"), "{error}");
}

#[test]
fn only_so_many_files_stay_open_and_a_missing_one_is_an_error() {
    let vfs = Arc::new(MemoryVfs::default());
    for id in 0..50 {
        replace(&vfs, &dir().join(file_name(1, id)), &[0]);
    }
    let handles = FileHandles::new(vfs.clone(), dir().to_owned(), 8);
    for id in 0..50 {
        assert_eq!(handles.get(1, id).unwrap().len().unwrap(), 1);
    }
    assert!((1..=8).contains(&handles.open_files()));
    for id in 0..50 {
        handles.evict(id);
    }
    assert_eq!(handles.open_files(), 0);
    assert!(matches!(handles.get(1, 50), Err(Error::Io { op: "open", .. })));
}

#[test]
fn the_cache_stays_within_its_budget_when_that_shrinks() {
    let entries: Vec<Entry> =
        (0..2000).map(|i| Entry::put(format!("k{i:05}"), 1, vec![b'v'; 500])).collect();
    let sample = write(&entries, SstOptions::default());
    let handles = Arc::new(FileHandles::new(sample.vfs.clone(), dir().to_owned(), 10));
    let cache = Arc::new(BlockCache::new(4 << 20));
    let meta = Arc::new(sample.meta.clone());
    let reader = Arc::new(SstReader::open(meta, handles, cache.clone(), DB));
    assert_eq!(forward(&mut reader.cursor(true)), entries);
    assert!(cache.used_bytes() > 1_000_000 && cache.used_bytes() <= cache.capacity_bytes());
    cache.set_capacity(|| 100_000);
    assert!(cache.used_bytes() <= 100_000);
    assert_eq!(forward(&mut reader.cursor(true)), entries);
    assert!(cache.used_bytes() <= 100_000);
}

#[test]
fn what_a_reader_holds_does_not_change_when_its_block_makes_room_for_others() {
    // Values that share their block's memory, and values that do not.
    let value = |i: usize| vec![(i * 7) as u8; if i.is_multiple_of(2) { 3000 } else { 100 }];
    let entries: Vec<Entry> =
        (0..600).map(|i| Entry::put(format!("k{i:05}"), 1, value(i))).collect();
    let sample = write(&entries, small());
    let handles = Arc::new(FileHandles::new(sample.vfs.clone(), dir().to_owned(), 10));
    let cache = Arc::new(BlockCache::new(64 << 10));
    let meta = Arc::new(sample.meta.clone());
    let reader = Arc::new(SstReader::open(meta, handles, cache.clone(), DB));
    let mut cursor = reader.cursor(true);
    cursor.seek(b"k00300", 1).unwrap();
    let held: Vec<_> = (0..600)
        .step_by(11)
        .map(|i| (i, get_hit(&reader, format!("k{i:05}").as_bytes()).value))
        .collect();
    for round in 0..3 {
        for i in (0..600).rev() {
            let found = get_hit(&reader, format!("k{i:05}").as_bytes()).value;
            assert_eq!(found, value(i), "round {round}");
        }
    }
    for (i, found) in held {
        assert_eq!(found, value(i));
    }
    let entry = cursor.entry().unwrap();
    assert_eq!((entry.key, entry.value), (&b"k00300"[..], value(300).as_slice()));
    assert!(cache.stats().data_misses > 600, "the blocks do not all fit");
}

fn get_hit(reader: &SstReader, key: &[u8]) -> SstHit {
    reader.get(key, key_hash(key), u64::MAX).unwrap().unwrap()
}

#[test]
fn a_key_outside_of_a_damaged_file_is_not_looked_for_in_it() {
    let sample = write(&varied(), small());
    sample.replace(b"nothing of what was here");
    let reader = sample.reader();
    let get = |key: &[u8], seq| reader.get(key, key_hash(key), seq);
    assert!(matches!(get(b"zzz", u64::MAX), Ok(None)), "behind its last key");
    let inside = sample.meta.smallest.clone();
    assert!(matches!(get(&inside, u64::MAX), Err(Error::Corruption { .. })));
    if let Some(before) = sample.meta.min_seq.checked_sub(1) {
        assert!(matches!(get(&inside, before), Ok(None)), "older than all it has");
    }
}

#[test]
fn file_names_round_trip_and_nothing_else_parses() {
    for (stripe, id) in [(0, 0), (7, 42), (255, u64::MAX)] {
        assert_eq!(parse_file_name(&file_name(stripe, id)), Some((stripe, id)));
    }
    assert_eq!(file_name(7, 42), "007-42.sst");
    for name in
        ["7-42.sst", "007-042.sst", "256-1.sst", "007-+1.sst", "007-1.sst~", "007-.sst", "x"]
    {
        assert_eq!(parse_file_name(name), None, "{name}");
    }
}

/// The order of entries as a key of a `BTreeMap`.
type Position = (Vec<u8>, std::cmp::Reverse<Seq>);

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    // Few letters: keys share prefixes, repeat, and are prefixes of each other.
    prop_oneof![
        4 => prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', 0xff]), 0..5),
        1 => prop::collection::vec(prop::sample::select(vec![b'a', b'b']), 8..20),
    ]
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let kind = prop_oneof![Just(Kind::Put), Just(Kind::Delete), Just(Kind::DropPartition)];
    let expiry = prop_oneof![Just(0), 1..u64::MAX];
    let value = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..20),
        1 => (0..400usize).prop_map(|len| vec![b'v'; len]),
    ];
    (any_key(), 0..12u64, kind, expiry, value).prop_map(|(key, seq, kind, expires_at_ms, value)| {
        Entry { key, seq, kind, expires_at_ms, value }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_file_answers_like_an_ordered_map(
        entries in prop::collection::vec(any_entry(), 1..120),
        probes in prop::collection::vec((any_key(), 0..13u64, 0..6usize), 0..60),
        block_bytes in 1..300usize,
        restart_interval in 1..20usize,
        compression in prop::sample::select(COMPRESSIONS.to_vec()),
        filter_bits_per_key in 0..20u32,
        parts_beyond_bytes in prop::sample::select(vec![0, PARTS_BEYOND_BYTES]),
        cache_bytes in prop::sample::select(vec![0, 4000, 16 << 20]),
        fill_cache: bool,
    ) {
        let model: BTreeMap<Position, Entry> = entries
            .into_iter()
            .map(|e| ((e.key.clone(), std::cmp::Reverse(e.seq)), e))
            .collect();
        let sorted: Vec<Entry> = model.values().cloned().collect();
        let options = SstOptions {
            block_bytes,
            restart_interval,
            compression,
            filter_bits_per_key,
            parts_beyond_bytes,
        };
        let sample = write(&sorted, options);
        let (reader, _) = sample.reader_with(cache_bytes);
        prop_assert_eq!(faults(&reader), Vec::<String>::new());
        let mut cursor = reader.cursor(fill_cache);
        prop_assert_eq!(&forward(&mut cursor), &sorted);
        prop_assert_eq!(&backward(&mut cursor), &sorted);

        // One cursor for all probes: moves after moves must not leave anything behind.
        let mut position: Option<Position> = None;
        let at = |e: Option<(&Position, &Entry)>| e.map(|(p, _)| p.clone());
        for (key, seq, action) in probes {
            let probe = (key.clone(), std::cmp::Reverse(seq));
            match action {
                0 => {
                    let found = model.range(probe.clone()..).next().map(|(_, e)| e.clone());
                    let found = found.filter(|e| e.key == key);
                    prop_assert_eq!(get(&reader, &key, seq), found);
                }
                1 => {
                    cursor.seek(&key, seq).unwrap();
                    position = at(model.range(probe..).next());
                }
                2 => {
                    cursor.seek_before(&key, seq).unwrap();
                    position = at(model.range(..probe).next_back());
                }
                3 | 4 => {
                    cursor.next().unwrap();
                    position = position.and_then(|p| {
                        at(model.range((Bound::Excluded(p), Bound::Unbounded)).next())
                    });
                }
                _ => {
                    cursor.prev().unwrap();
                    position = position.and_then(|p| at(model.range(..p).next_back()));
                }
            }
            prop_assert_eq!(current(&cursor), position.as_ref().map(|p| model[p].clone()));
        }
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check_block(&bytes);
        check_index(&bytes);
        check_filter(&bytes);
        check_directory(&bytes);
        check_frame(&bytes);
        check_properties(&bytes);
        let _ = parse_footer(&bytes, bytes.len() as u64);
        // A plausible end gets further than noise does.
        bytes.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
        check_block(&bytes);
    }

    #[test]
    fn no_change_to_a_block_makes_it_panic(
        entries in prop::collection::vec(any_entry(), 1..30),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut entries = entries;
        entries.sort_by(|a, b| entry_order(&a.key, a.seq, &b.key, b.seq));
        entries.dedup_by(|a, b| (&a.key, a.seq) == (&b.key, b.seq));
        let mut builder = block::BlockBuilder::new(4);
        let mut last: &[u8] = &[];
        for entry in &entries {
            builder.add(&entry.as_ref(), block::common_prefix_len(last, &entry.key));
            last = &entry.key;
        }
        let mut bytes = builder.finish().to_vec();
        prop_assert!(check_block(&bytes));
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_block(&bytes);
    }
}
