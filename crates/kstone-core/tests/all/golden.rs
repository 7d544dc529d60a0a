//! Files of every format version, kept as they were written: today's engine must read them, and must
//! still write those of the newest byte for byte.
//!
//! `tests/all/golden/v2/plain` is uncompressed and compared in full. `tests/all/golden/v2/packed` holds the
//! same records under LZ4 (its L0) and Zstandard (its last level); another version of those
//! libraries may choose other bytes, so it is only read. `tests/all/golden/v2/parts` is uncompressed too, with
//! a block for each entry and with filters and indexes in parts. `tests/all/golden/v1` is the same from before
//! the log's version 2, and only read.
//!
//! `KSTONE_BLESS=1 cargo test -p kstone-core --test all golden` writes the files of the newest version
//! anew. That is right while it has not been released; afterwards a change of the bytes is a new
//! version, with files of its own beside these.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kstone_core::env::{Env, ManualClock, MemoryVfs, OpenMode, SeededRandom};
use kstone_core::{
    Compression, Durability, Engine, IngestRecord, Key, Options, ScanCursor, Snapshot, TableId,
    Tuning, WriteBatch, verify,
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const DIR: &str = "db";
const OLD: &str = "v1";
const NEWEST: &str = "v2";
const NOW_MS: u64 = 1_700_000_000_000;
const T: TableId = TableId::DEFAULT;
/// The ids that the engine gives to the tables of the script, in order.
const POSTS: TableId = TableId(1);
const DROPPED: TableId = TableId(2);
const LATE: TableId = TableId(3);

/// What is done to the database, in order.
enum Step {
    CreateTable(TableId),
    DropTable(TableId),
    /// One commit.
    Batch(Vec<Write>),
    Ingest(Vec<(TableId, Key, Vec<u8>, Option<u64>)>),
    Flush,
    Compact,
    Checkpoint(&'static str),
    /// A snapshot of now, held to the end: what it sees stays in the files.
    Snapshot,
    /// Closed and opened again.
    Reopen,
}

enum Write {
    Put(TableId, Key, Vec<u8>),
    PutExpiring(TableId, Key, Vec<u8>, u64),
    Delete(TableId, Key),
    DropPartition(TableId, &'static str),
}

fn script() -> Vec<Step> {
    use Step::*;
    use Write::*;
    let user = |n: u32| Key::with_sk("user#1", format!("post#{n:03}"));
    let text = |n: u32| format!("post number {n}, the same words in every post").into_bytes();
    let soon = NOW_MS + 60_000;
    let posts = (0..64).map(|n| Put(POSTS, user(n), text(n))).collect();
    vec![
        CreateTable(POSTS),
        Batch(posts),
        Batch(vec![
            Put(T, Key::new("user#1"), b"Ada".to_vec()),
            Put(T, Key::with_sk("user#1", ""), b"an empty sort key is not none".to_vec()),
            Put(T, Key::new(&b"zero\0inside"[..]), Vec::new()),
            Put(T, Key::new(""), b"the empty partition key".to_vec()),
            PutExpiring(T, Key::new("session"), b"token".to_vec(), soon),
            Put(T, Key::with_sk("gone", "a"), b"dropped with its partition".to_vec()),
        ]),
        Flush,
        Reopen,
        Batch(vec![Put(POSTS, user(6), b"overwritten".to_vec())]),
        // Opening goes on in a fresh manifest, so what is to be seen in it comes after this. The
        // log goes on in its first file, whose old chunks are longer than what comes.
        Reopen,
        Batch(vec![Delete(POSTS, user(5)), DropPartition(T, "gone")]),
        Batch(vec![Put(T, Key::with_sk("gone", "b"), b"written after the drop".to_vec())]),
        Compact,
        CreateTable(DROPPED),
        Batch(vec![
            Put(DROPPED, Key::new("user#1"), b"not for long".to_vec()),
            PutExpiring(DROPPED, Key::new("user#1"), b"nor this".to_vec(), soon),
        ]),
        Batch(vec![Put(T, Key::new("large"), (0..3000u32).map(|n| (n / 7) as u8).collect())]),
        // For it, the records of the dropped table are kept; otherwise the flush leaves them out.
        Snapshot,
        DropTable(DROPPED),
        Flush,
        Checkpoint("copy"),
        Ingest(vec![
            (T, Key::new("ingest#1"), b"one".to_vec(), None),
            (T, Key::new("ingest#2"), b"two".to_vec(), Some(soon)),
            (POSTS, user(7), b"replaced by the ingest".to_vec(), None),
        ]),
        // Marks and tombstones that stay in L0, above what they hide.
        Batch(vec![Delete(POSTS, user(8)), DropPartition(T, "ingest#1"), Delete(T, user(9))]),
        Flush,
        // What only the log holds.
        CreateTable(LATE),
        Batch(vec![
            Put(LATE, Key::with_sk("tail", &b"\xff\0"[..]), b"one of three".to_vec()),
            PutExpiring(LATE, Key::new("tail"), b"two of three".to_vec(), soon + 1),
            Delete(POSTS, user(10)),
        ]),
        Batch(vec![DropPartition(LATE, "nobody"), Put(POSTS, user(11), b"last".to_vec())]),
    ]
}

/// What the script leaves: the records and their expiry.
fn expected() -> BTreeMap<(TableId, Key), (Vec<u8>, Option<u64>)> {
    let mut records = BTreeMap::new();
    for step in script() {
        match step {
            Step::DropTable(table) => records.retain(|(t, _), _| *t != table),
            Step::Batch(writes) => {
                for write in writes {
                    match write {
                        Write::Put(t, key, value) => drop(records.insert((t, key), (value, None))),
                        Write::PutExpiring(t, key, value, at_ms) => {
                            records.insert((t, key), (value, Some(at_ms)));
                        }
                        Write::Delete(t, key) => drop(records.remove(&(t, key))),
                        Write::DropPartition(table, pk) => {
                            records.retain(|(t, key), _| (*t, &*key.pk) != (table, pk.as_bytes()));
                        }
                    }
                }
            }
            Step::Ingest(ingested) => {
                for (t, key, value, at_ms) in ingested {
                    records.insert((t, key), (value, at_ms));
                }
            }
            Step::CreateTable(_) | Step::Flush | Step::Compact | Step::Reopen => {}
            Step::Checkpoint(_) | Step::Snapshot => {}
        }
    }
    records
}

fn options(compression: Compression, bottom_compression: Compression) -> Options {
    Options {
        memory_budget_bytes: 256 << 10,
        compression,
        bottom_compression,
        tuning: Tuning {
            block_bytes: 512,
            restart_interval: 4,
            log_segment_bytes: Some(8192),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

fn plain() -> Options {
    options(Compression::None, Compression::None)
}

fn packed() -> Options {
    options(Compression::Lz4, Compression::Zstd { level: 3 })
}

fn env() -> Env {
    Env {
        vfs: Arc::new(MemoryVfs::new()),
        clock: Arc::new(ManualClock::at(NOW_MS)),
        random: Arc::new(SeededRandom::new(1)),
        threads: None,
    }
}

fn parts() -> Options {
    let plain = plain();
    let tuning = Tuning { block_bytes: 1, parts_beyond_bytes: 0, ..plain.tuning };
    Options { tuning, ..plain }
}

/// A folder's files by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Runs the script and answers the files that it would leave if the process were killed then.
fn generate(options: &Options) -> Files {
    let env = env();
    let engine = run_script(&env, options);
    // Read while it is open: closing would flush what is to stay in the log.
    let files = files_of(&env);
    drop(engine);
    files
}

fn run_script(env: &Env, options: &Options) -> (Engine, Vec<Snapshot>) {
    let open = || Engine::open_with(env.clone(), DIR, options.clone()).unwrap();
    let mut engine = Some(open());
    let mut snapshots = Vec::new();
    for step in script() {
        let db = engine.as_ref().unwrap();
        match step {
            Step::CreateTable(table) => assert_eq!(db.create_table().unwrap(), table),
            Step::DropTable(table) => db.drop_table(table).unwrap(),
            Step::Batch(writes) => {
                let mut batch = WriteBatch::new();
                for write in &writes {
                    match write {
                        Write::Put(t, key, value) => batch.put(*t, key, value),
                        Write::PutExpiring(t, key, value, at_ms) => {
                            batch.put_expiring(*t, key, value, *at_ms)
                        }
                        Write::Delete(t, key) => batch.delete(*t, key),
                        Write::DropPartition(t, pk) => batch.drop_partition(*t, pk.as_bytes()),
                    }
                    .unwrap();
                }
                db.write(&batch, Durability::Sync).unwrap().wait().unwrap();
            }
            Step::Ingest(records) => {
                let records = records.into_iter().map(|(table, key, value, expires_at_ms)| {
                    Ok(IngestRecord { table, key, value: value.into(), expires_at_ms })
                });
                db.ingest(records).unwrap();
            }
            Step::Flush => db.flush().unwrap(),
            Step::Compact => db.compact().unwrap(),
            Step::Checkpoint(folder) => drop(db.checkpoint(folder).unwrap()),
            Step::Snapshot => snapshots.push(db.snapshot()),
            Step::Reopen => {
                drop(engine.take());
                engine = Some(open());
            }
        }
    }
    (engine.unwrap(), snapshots)
}

fn files_of(env: &Env) -> Files {
    let mut files = Files::new();
    for name in env.vfs.list(Path::new(DIR)).unwrap() {
        let file = env.vfs.open(&Path::new(DIR).join(&name), OpenMode::Read).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        files.insert(name.clone(), without_reserve(&name, bytes));
    }
    files
}

/// Log and manifest are allocated ahead of what is written to them; those zeros mean nothing, and
/// are not worth keeping. Some are left, so that a reader that needs them to stop is not let down.
fn without_reserve(name: &str, mut bytes: Vec<u8>) -> Vec<u8> {
    if name.ends_with(".log") || name.starts_with("MANIFEST-") {
        let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        bytes.truncate((used + 64).next_multiple_of(64));
    }
    bytes
}

fn folder(version: &str, variant: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/golden").join(version).join(variant)
}

/// The golden files of `variant`, those of the newest version written anew first if that is asked
/// for.
fn golden(version: &str, variant: &str) -> Files {
    static BLESS: std::sync::Once = std::sync::Once::new();
    BLESS.call_once(|| {
        if std::env::var_os("KSTONE_BLESS").is_some() {
            for (variant, options) in [("plain", plain()), ("packed", packed()), ("parts", parts())]
            {
                let folder = folder(NEWEST, variant);
                let _ = std::fs::remove_dir_all(&folder);
                std::fs::create_dir_all(&folder).unwrap();
                for (name, bytes) in generate(&options) {
                    std::fs::write(folder.join(name), bytes).unwrap();
                }
            }
        }
    });
    let folder = folder(version, variant);
    let mut files = Files::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        files.insert(name, std::fs::read(entry.path()).unwrap());
    }
    files
}

fn env_with(files: &Files) -> Env {
    let env = env();
    env.vfs.create_dir_all(Path::new(DIR)).unwrap();
    for (name, bytes) in files {
        let file = env.vfs.open(&Path::new(DIR).join(name), OpenMode::CreateNew).unwrap();
        file.write_at(bytes, 0).unwrap();
    }
    env
}

fn check(version: &str, variant: &str, options: &Options) {
    let env = env_with(&golden(version, variant));
    let report = verify(&env, DIR).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert!(report.files > 0 && report.commits > 0 && report.leftovers.is_empty(), "{report:?}");

    let engine = Engine::open_with(env.clone(), DIR, options.clone()).unwrap();
    assert_eq!(engine.tables(), [T, POSTS, LATE]);
    let records = |engine: &Engine| {
        let mut found = BTreeMap::new();
        for table in engine.tables() {
            for record in engine.snapshot().scan(table, ScanCursor::start()) {
                let record = record.unwrap();
                let value = (record.record.value.to_vec(), record.record.expires_at_ms);
                found.insert((table, record.key), value);
            }
        }
        found
    };
    assert_eq!(records(&engine), expected());
    for ((table, key), (value, _)) in expected() {
        assert_eq!(engine.get(table, &key).unwrap().unwrap().value, value, "{key:?}");
    }
    assert_eq!(engine.next_expiry_ms().unwrap(), Some(NOW_MS + 60_000));

    // What is read can also be worked with.
    engine.compact().unwrap();
    assert_eq!(records(&engine), expected());
    drop(engine);
    let report = verify(&env, DIR).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[test]
fn an_uncompressed_database_of_version_1_is_read() {
    check(OLD, "plain", &plain());
}

#[test]
fn a_compressed_database_of_version_1_is_read() {
    check(OLD, "packed", &packed());
}

#[test]
fn an_uncompressed_database_is_read() {
    check(NEWEST, "plain", &plain());
}

#[test]
fn a_compressed_database_is_read() {
    check(NEWEST, "packed", &packed());
}

#[test]
fn a_database_with_files_in_parts_is_read() {
    check(NEWEST, "parts", &parts());
    // By who would write them whole.
    check(NEWEST, "parts", &plain());
}

/// Killed under version 1, killed again under version 2 before anything was flushed: the log then
/// is of both.
#[test]
fn a_log_of_version_1_goes_on_in_version_2() {
    let env = env_with(&golden(OLD, "plain"));
    let engine = Engine::open_with(env.clone(), DIR, plain()).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(T, &Key::new("after"), b"the upgrade").unwrap();
    engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
    let files = files_of(&env);
    let logs = files.iter().filter(|(name, _)| name.ends_with(".log"));
    let versions: BTreeSet<_> = logs.map(|(_, file)| u32_at(file, 8)).collect();
    assert!(versions.into_iter().eq([1, 2]));

    let env = env_with(&files);
    let report = verify(&env, DIR).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let engine = Engine::open_with(env, DIR, plain()).unwrap();
    for ((table, key), (value, _)) in expected() {
        assert_eq!(engine.get(table, &key).unwrap().unwrap().value, value, "{key:?}");
    }
    assert_eq!(engine.get(T, &Key::new("after")).unwrap().unwrap().value, &b"the upgrade"[..]);
}

#[test]
fn the_same_writes_still_give_the_same_bytes() {
    for (variant, options) in [("plain", plain()), ("parts", parts())] {
        check_bytes(&golden(NEWEST, variant), &generate(&options));
    }
}

fn check_bytes(golden: &Files, generated: &Files) {
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(generated), names(golden));
    for (name, bytes) in golden {
        let differ = bytes.iter().zip(&generated[name]).position(|(a, b)| a != b);
        assert!(
            generated[name] == *bytes,
            "{name} differs from offset {:#x} on: a change of the format needs a new version",
            differ.unwrap_or(bytes.len().min(generated[name].len()))
        );
    }
}

// A reader of its own, by the offsets of docs/format.md and nothing else.

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

fn db_id(files: &Files) -> [u8; 16] {
    let (_, manifest) = files.iter().find(|(name, _)| name.starts_with("MANIFEST-")).unwrap();
    *manifest[12..].first_chunk().unwrap()
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
    }
    panic!("a varint of more than ten bytes");
}

fn take<'a>(bytes: &mut &'a [u8], len: u64) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(len as usize);
    *bytes = rest;
    taken
}

/// The frame that a handle points to: its bytes, and how its payload is compressed.
fn frame(file: &[u8], handle: usize) -> (&[u8], u8) {
    let (offset, len) = (u64_at(file, handle) as usize, u32_at(file, handle + 8) as usize);
    let frame = &file[offset..offset + len];
    let checksum = u64_at(frame, len - 8);
    assert_eq!(checksum, xxh3_64(&frame[..len - 8]));
    assert_eq!(checksum, u64_at(file, handle + 12));
    (&frame[..len - 13], frame[len - 13])
}

#[test]
fn sst_files_are_laid_out_as_the_format_says() {
    let (mut kinds, mut entries) = (BTreeMap::new(), BTreeSet::new());
    let mut most_parts = 0;
    let versions =
        [(OLD, "plain"), (OLD, "packed"), (NEWEST, "plain"), (NEWEST, "packed"), (NEWEST, "parts")];
    for (version, variant) in versions {
        let files = golden(version, variant);
        for (name, file) in files.iter().filter(|(name, _)| name.ends_with(".sst")) {
            let footer = file.len() - 108;
            assert_eq!(&file[footer + 100..], b"KSTNSST\n");
            assert_eq!(u64_at(file, footer + 92), xxh3_64(&file[footer..footer + 92]));
            assert_eq!(file[footer + 60..footer + 76], db_id(&files));
            let (id, stripe) = (u64_at(file, footer + 76), file[footer + 84]);
            assert_eq!(*name, format!("{stripe:03}-{id}.sst"));
            let is_in_parts = variant == "parts";
            assert_eq!(u32_at(file, footer + 88), if is_in_parts { 2 } else { 1 });
            let top_slots = index_slots(file, footer + 20);
            let slots = if is_in_parts {
                most_parts = most_parts.max(top_slots.len());
                top_slots.iter().flat_map(|&slot| index_slots(file, slot)).collect()
            } else {
                top_slots.clone()
            };
            let mut end = 0;
            let mut keys = Vec::new();
            for slot in slots {
                let (block, kind) = frame(file, slot);
                assert_eq!(u64_at(file, slot), end);
                end += u64::from(u32_at(file, slot + 8));
                *kinds.entry((variant, kind)).or_insert(0) += 1;
                if kind == 0 {
                    let restarts = u32_at(block, block.len() - 4) as usize;
                    let entries_end = block.len() - 4 - 4 * restarts;
                    assert_eq!(u32_at(block, entries_end), 0);
                    let mut rest = &block[..entries_end];
                    let mut key = Vec::new();
                    while !rest.is_empty() {
                        let (shared, unshared) = (varint(&mut rest), varint(&mut rest));
                        let tag = varint(&mut rest);
                        let has_expiry = tag & 4 != 0;
                        let expires_at = if has_expiry { varint(&mut rest) } else { 0 };
                        assert_eq!(expires_at != 0, has_expiry);
                        let value_len = varint(&mut rest);
                        key.truncate(shared as usize);
                        key.extend_from_slice(take(&mut rest, unshared));
                        take(&mut rest, value_len);
                        let table = u32::from_be_bytes(*key.first_chunk().unwrap());
                        entries.insert((table, tag & 3, has_expiry));
                        keys.push(key.clone());
                    }
                }
            }
            if is_in_parts {
                end = look_at_pieces(file, footer, end, &keys);
                for (nth, &slot) in top_slots.iter().enumerate() {
                    assert_eq!(u64_at(file, slot), end);
                    end += u64::from(u32_at(file, slot + 8));
                    let blocks = index_slots(file, slot);
                    assert!(blocks.len() == 64 || nth + 1 == top_slots.len());
                    assert_eq!(
                        u64_at(file, slot + 20),
                        u64_at(file, blocks[blocks.len() - 1] + 20)
                    );
                }
            }
            assert_eq!(end, u64_at(file, footer));
        }
    }
    assert!(most_parts > 1, "one of the indexes has several parts");
    let kinds: Vec<_> = kinds.into_keys().collect();
    assert_eq!(kinds, [("packed", 0), ("packed", 1), ("packed", 2), ("parts", 0), ("plain", 0)]);
    // Puts, deletes and drop marks; a table that was dropped; the expiry index.
    for entry in [(0, 1, false), (0, 1, true), (1, 2, false), (0, 3, false), (2, 1, true)] {
        assert!(entries.contains(&entry), "{entry:?} is not among {entries:?}");
    }
    assert!(entries.contains(&(u32::MAX, 1, false)), "{entries:?}");
}

/// Where the slots of the index are that the handle at `handle` points to.
fn index_slots(file: &[u8], handle: usize) -> Vec<usize> {
    let (index, kind) = frame(file, handle);
    assert_eq!(kind, 0);
    let (at, count) = (u64_at(file, handle) as usize, u32_at(index, 0) as usize);
    (0..count).map(|i| at + 8 + 8 * count + 28 * i).collect()
}

/// Follows a filter in pieces, which begins at `start` and has these keys; answers where it ends.
fn look_at_pieces(file: &[u8], footer: usize, start: u64, keys: &[Vec<u8>]) -> u64 {
    let (directory, _) = frame(file, footer);
    assert_eq!(u64_at(directory, 0), start);
    let (lines, probes) = (u64::from(u32_at(directory, 8)), directory[12]);
    assert_eq!(directory.len() as u64, 13 + 8 * lines / 64);
    let piece = |nth: u64| &file[(start + nth * 4109) as usize..][..4109];
    for nth in 0..lines / 64 {
        let checksum = u64_at(directory, 13 + 8 * nth as usize);
        assert_eq!(checksum, u64_at(piece(nth), 4101));
        assert_eq!(checksum, xxh3_64(&piece(nth)[..4101]));
    }
    for key in keys {
        let hash = xxh3_64(key);
        let line = ((hash >> 32) * lines) >> 32;
        let bits = &piece(line / 64)[(line % 64) as usize * 64..][..64];
        let mut source = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for probe in 0..probes {
            if probe > 0 && probe % 7 == 0 {
                source = source.wrapping_mul(0xd6e8_feb8_6659_fd93);
            }
            let bit = (source << (9 * (probe % 7))) >> 55;
            assert!(bits[bit as usize / 8] >> (bit % 8) & 1 == 1, "{key:?}");
        }
    }
    start + lines / 64 * 4109
}

/// What the chunks of some segments turned out to hold.
#[derive(Default)]
struct LogSeen {
    chunks: usize,
    tags: BTreeSet<u8>,
    has_mark: bool,
    has_stale: bool,
}

impl LogSeen {
    fn operations(&mut self, mut ops: &[u8]) {
        while !ops.is_empty() {
            self.tags.insert(skip_operation(&mut ops));
        }
    }

    fn check(self, segments: usize) {
        assert!(segments > 1 && self.chunks > 3, "{segments} segments, {} chunks", self.chunks);
        assert!(self.tags.into_iter().eq(1..=7), "every operation is there");
        assert!(self.has_mark, "one chunk is the mark of a clean shutdown");
        assert!(self.has_stale, "one file was used before, and shows it behind its end");
    }
}

/// The log segments of a golden folder by generation, after a look at their headers.
fn segments(files: &Files, version: u32) -> Vec<&Vec<u8>> {
    let logs = files.iter().filter(|(name, _)| name.ends_with(".log"));
    let mut segments: Vec<_> = logs.map(|(_, file)| file).collect();
    segments.sort_by_key(|file| u64_at(file, 28));
    for file in &segments {
        assert_eq!(&file[..8], b"KSTNWAL\n");
        assert_eq!(u32_at(file, 8), version);
        assert_eq!(file[12..28], db_id(files));
        assert!(u64_at(file, 44) <= u64_at(file, 36));
        assert_eq!(u64_at(file, 52), xxh3_64(&file[..52]));
    }
    segments
}

/// What a closed database leaves: the log ends in a mark.
fn closed() -> Files {
    let env = env();
    drop(run_script(&env, &plain()));
    files_of(&env)
}

/// A log that goes on in files which it used before.
fn recycled() -> Files {
    let env = env();
    let engine = Engine::open_with(env.clone(), DIR, plain()).unwrap();
    for n in 0..24 {
        let mut batch = WriteBatch::new();
        batch.put(T, &Key::new(format!("{n}")), &[1; 1000]).unwrap();
        engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
        if n % 10 == 9 {
            engine.flush().unwrap();
        }
    }
    files_of(&env)
}

#[test]
fn log_segments_are_laid_out_as_the_format_says() {
    let mut seen = LogSeen::default();
    let count: usize = [golden(NEWEST, "plain"), closed(), recycled()]
        .iter()
        .map(|files| look_at_log(files, &mut seen))
        .sum();
    seen.check(count);
}

/// Follows the chunks of version 2, and answers how many segments there are.
fn look_at_log(files: &Files, seen: &mut LogSeen) -> usize {
    let seed = xxh3_64(&db_id(files));
    let segments = segments(files, 2);
    let mut next_seq = None;
    for file in &segments {
        let mut at = 64;
        while let Some(head) = file.get(at..at + 40) {
            let place = [file[28..36].to_vec(), (at as u64).to_le_bytes().to_vec()].concat();
            let sum = xxh3_64_with_seed(&[&head[..34], &place].concat(), seed);
            if head[34..] != sum.to_le_bytes()[..6] {
                break;
            }
            assert_eq!((&head[..2], &head[2..4]), (&b"K2"[..], &file[28..30]));
            let payload_len = u32_at(head, 4) as usize;
            let mut payload = &file[at + 40..at + 40 + payload_len];
            let first_seq = u64_at(head, 8);
            assert_eq!(u64_at(head, 16), xxh3_64_with_seed(payload, seed));
            assert_eq!(u32_at(head, 24), 0, "each commit was synced before the next");
            assert_eq!(head[28..34], NOW_MS.to_le_bytes()[..6]);
            let mut seq = first_seq;
            while !payload.is_empty() {
                let (ops_len, count) = (varint(&mut payload), varint(&mut payload));
                seen.operations(take(&mut payload, ops_len));
                seq += count;
            }
            assert!(next_seq.is_none_or(|next| next == first_seq));
            next_seq = Some(seq);
            seen.has_mark |= payload_len == 0;
            seen.chunks += 1;
            at = (at + 40 + payload_len).next_multiple_of(8);
        }
        let rest = file.get(at..).unwrap_or_default();
        seen.has_stale |= rest.chunks(8).any(|bytes| bytes.starts_with(b"K2"));
    }
    segments.len()
}

#[test]
fn log_segments_of_version_1_are_laid_out_as_the_format_says() {
    let files = golden(OLD, "plain");
    let seed = xxh3_64(&db_id(&files));
    let segments = segments(&files, 1);
    let mut seen = LogSeen::default();
    for file in &segments {
        let (generation, start_pos) = (u64_at(file, 28), u64_at(file, 36));
        let mut at = 64;
        while file[at..].starts_with(b"KChk") && u64_at(file, at + 8) == generation {
            assert_eq!(u64_at(file, at + 64), xxh3_64_with_seed(&file[at..at + 64], seed));
            let payload_len = u32_at(file, at + 4) as usize;
            let payload = &file[at + 72..at + 72 + payload_len];
            assert_eq!(u64_at(file, at + 56), xxh3_64_with_seed(payload, seed));
            assert_eq!(u64_at(file, at + 16), start_pos + at as u64 - 64);
            assert_eq!(u64_at(file, at + 32), NOW_MS);
            let (mut commit, mut next_seq) = (0, u64_at(file, at + 40));
            while commit < payload_len {
                let ops_len = u32_at(payload, commit) as usize;
                assert_eq!(u64_at(payload, commit + 4), next_seq);
                next_seq += u64::from(u32_at(payload, commit + 12));
                seen.operations(&payload[commit + 16..commit + 16 + ops_len]);
                commit += 16 + ops_len;
            }
            seen.has_mark |= payload_len == 0;
            assert_eq!(u64_at(file, at + 48) + 1, next_seq);
            seen.chunks += 1;
            at = (at + 72 + payload_len).next_multiple_of(8);
        }
        seen.has_stale |= file[at..].windows(4).any(|bytes| bytes == b"KChk");
    }
    seen.check(segments.len());
}

/// Steps over an operation, and answers its tag.
fn skip_operation(ops: &mut &[u8]) -> u8 {
    let tag = take(ops, 1)[0];
    match tag {
        1..=4 => {
            take(ops, 1);
            let key_len = varint(ops);
            take(ops, key_len);
            if tag == 2 {
                varint(ops);
            }
            if tag <= 2 {
                let value_len = varint(ops);
                take(ops, value_len);
            }
        }
        5 | 6 => drop(take(ops, 4)),
        _ => assert_eq!(tag, 7),
    }
    tag
}

#[test]
fn the_manifest_and_current_are_laid_out_as_the_format_says() {
    let files = golden(NEWEST, "plain");
    let current = String::from_utf8(files["CURRENT"].clone()).unwrap();
    let (name, checksum) = current.strip_suffix('\n').unwrap().split_once(' ').unwrap();
    assert_eq!(checksum, format!("{:016x}", xxh3_64(name.as_bytes())));
    let file = &files[name];
    assert_eq!(&file[..8], b"KSTNMANI");
    assert_eq!(u32_at(file, 8), 1);
    assert_eq!(name, format!("MANIFEST-{:06}", u64_at(file, 28)));
    let seed = u64_at(file, 36);
    assert_eq!(seed, xxh3_64(&file[..36]));
    let (mut at, mut records, mut tags) = (44, 0, BTreeSet::new());
    while file[at..].iter().take(16).any(|&byte| byte != 0) {
        let len = u32_at(file, at) as usize;
        assert_eq!(u32_at(file, at + 4), records);
        let payload = &file[at + 16..at + 16 + len];
        let summed = [&file[at..at + 8], payload].concat();
        assert_eq!(u64_at(file, at + 8), xxh3_64_with_seed(&summed, seed));
        let mut fields = payload;
        while !fields.is_empty() {
            tags.insert(varint(&mut fields));
            let body_len = varint(&mut fields);
            take(&mut fields, body_len);
        }
        records += 1;
        at += 16 + len;
    }
    assert!(file[at..].iter().all(|&byte| byte == 0), "nothing yet");
    assert!(records > 3, "{records}");
    // Nobody writes 4 and 12 yet; only a purge writes 14.
    assert!(tags.into_iter().eq([1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 13]));
}

/// Every dump of docs/format.md shows what is in the golden files: offset, bytes in 38 columns (or to an
/// ellipsis), then the remark.
#[test]
fn the_dumps_of_the_format_description_are_of_these_files() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (files, in_parts) = (golden(NEWEST, "plain"), golden(NEWEST, "parts"));
    assert!(text.contains(std::str::from_utf8(&files["CURRENT"]).unwrap()), "CURRENT");
    let (mut file, mut checked) = (None, BTreeMap::new());
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("##") {
            file = match heading {
                " MANIFEST-n" => Some((&files, "MANIFEST-000003")),
                " wal-n.log" => Some((&files, "wal-000000.log")),
                " SSS-id.sst" => Some((&files, "000-9.sst")),
                "# Version 2: in parts" => Some((&in_parts, "154-11.sst")),
                _ if heading.starts_with('#') => file,
                _ => None,
            };
        }
        let (Some((files, name)), Some((at, rest))) = (file, line.split_once("  ")) else {
            continue;
        };
        let (Ok(at), 3..=4) = (usize::from_str_radix(at, 16), at.len()) else { continue };
        let shown = rest.chars().take(38).take_while(|&c| c != '…');
        let shown: String = shown.filter(|c| !c.is_whitespace()).collect();
        let bytes = &files[name][at..at + shown.len() / 2];
        let real: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown, real, "{name}: {line}");
        *checked.entry(name).or_insert(0) += bytes.len();
    }
    assert_eq!(checked.len(), 4, "{checked:?}");
    assert!(checked.values().all(|&bytes| bytes > 100), "{checked:?}");
}
