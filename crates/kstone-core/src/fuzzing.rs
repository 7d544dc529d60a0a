//! An entry point for each decoder of the crate, for the fuzzer and for its short run in the tests.
//!
//! Every function takes any bytes and must neither panic nor take memory out of proportion to
//! them; where bytes are accepted, what was read is written again and compared. [`TARGETS`] lists
//! them all, [`seeds`] gives valid inputs to start from.
//!
//! A checksum stops nearly every mutation at the door. That is its job, and it would keep a fuzzer
//! from ever reaching what lies behind; so the functions for whole files try the bytes as they are
//! and once more *resealed*, with every checksum computed anew.
//!
//! Behind the feature `fuzzing`: no part of an ordinary build.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::batch::{Op, Ops, WriteBatch};
use crate::codec::Reader;
use crate::engine::Engine;
use crate::engine::write::Durability;
use crate::env::{Env, ManualClock, MemoryVfs, OpenMode, SeededRandom, Vfs};
use crate::error::Result;
use crate::expiry;
use crate::key::Key;
use crate::key::internal::{self, Decoded};
use crate::maintenance::verify::verify;
use crate::manifest::{self, Manifest};
use crate::options::{Options, Tuning};
use crate::read::ScanCursor;
use crate::sst::{self, BlockCache, Compression, FileHandles, SstReader};
use crate::sync::Arc;
use crate::table::TableId;
use crate::wal::format::{self, CHUNK_HEADER_LEN, ChunkSeed, ChunkStamp, SEGMENT_HEADER_LEN};
use crate::wal::{self, RecoveryStart, version1};

/// A decoder under its name.
pub type Target = (&'static str, fn(&[u8]));

/// Every decoder.
pub const TARGETS: &[Target] = &[
    ("wal", wal),
    ("manifest", manifest),
    ("manifest_record", manifest_record),
    ("current", current),
    ("sst", sst),
    ("sst_frame", sst_frame),
    ("sst_block", sst_block),
    ("sst_index", sst_index),
    ("sst_filter", sst_filter),
    ("sst_directory", sst_directory),
    ("sst_properties", sst_properties),
    ("batch", batch),
    ("key", key),
    ("scan_cursor", scan_cursor),
];

/// The database that whole files are made for: the first that [`SeededRandom`] 0 gives.
const RANDOM_SEED: u64 = 0;
const DIR: &str = "db";
const FIRST_MANIFEST: &str = "MANIFEST-000001";
const FIRST_SEGMENT: &str = "wal-000000.log";

/// A log of one segment: read as verify does, then opened, used, flushed, closed and verified.
pub fn wal(bytes: &[u8]) {
    let db_id = db_id();
    for bytes in [bytes.to_vec(), reseal_log(bytes, db_id)] {
        let env = env();
        let from = RecoveryStart { log_start: 0, last_seq: 0, expect_log: true };
        write_file(&*env.vfs, FIRST_SEGMENT, &bytes);
        let inspected = wal::inspect(&env.vfs, Path::new(DIR), db_id, from, &mut |commit| {
            batch(commit.ops);
            Ok(())
        });
        if inspected.is_err() {
            continue;
        }
        let env = fresh_database();
        remove_file(&*env.vfs, FIRST_SEGMENT);
        write_file(&*env.vfs, FIRST_SEGMENT, &bytes);
        use_database(&env);
    }
}

/// A manifest, read back after it was rewritten.
pub fn manifest(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), reseal_manifest(bytes)] {
        let env = fresh_database();
        remove_file(&*env.vfs, FIRST_MANIFEST);
        write_file(&*env.vfs, FIRST_MANIFEST, &bytes);
        let dir = Path::new(DIR);
        if let Ok(Some((mut manifest, state, _))) = Manifest::open(&env.vfs, dir) {
            let rewritten = manifest.rewrite(&state);
            assert!(rewritten.is_ok(), "{rewritten:?}");
            let again = Manifest::open(&env.vfs, dir);
            assert!(matches!(again, Ok(Some((_, ref same, _))) if *same == state), "{again:?}");
            use_database(&env);
        }
    }
}

/// The payload of a manifest record.
pub fn manifest_record(bytes: &[u8]) {
    if let Err(error) = manifest::decode_record(bytes) {
        assert!(error.at() <= bytes.len());
    }
}

/// `CURRENT`, in a folder with the manifest that it should name.
pub fn current(bytes: &[u8]) {
    let env = fresh_database();
    remove_file(&*env.vfs, "CURRENT");
    write_file(&*env.vfs, "CURRENT", bytes);
    let _ = Manifest::open(&env.vfs, Path::new(DIR));
}

/// A whole SST: verified, walked in both directions, and every key looked up.
pub fn sst(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), reseal_sst(bytes)] {
        let env = env();
        let name = sst::file_name(0, 1);
        write_file(&*env.vfs, &name, &bytes);
        let path = Path::new(DIR).join(name);
        let Ok((mut meta, ident, _)) = sst::open_standalone(&*env.vfs, &path, None) else {
            continue;
        };
        let _ = sst::open_standalone(&*env.vfs, &path, Some(db_id()));
        for global_seq in [None, Some(7)] {
            meta.global_seq = global_seq;
            // The name is made of what the file says of itself.
            let own_name = sst::file_name(ident.stripe, ident.file_id);
            remove_file(&*env.vfs, &own_name);
            write_file(&*env.vfs, &own_name, &bytes);
            let handles = FileHandles::new(Arc::clone(&env.vfs), DIR.into(), 16);
            let cache = Arc::new(BlockCache::new(1 << 20));
            let meta = Arc::new(meta.clone());
            read_sst(SstReader::open(meta, Arc::new(handles), cache, ident.db_id));
        }
    }
}

/// The wrapping of a part: decompression.
pub fn sst_frame(bytes: &[u8]) {
    let _ = sst::check_frame(bytes);
}

/// A data block.
pub fn sst_block(bytes: &[u8]) {
    let _ = sst::check_block(bytes);
}

/// An index.
pub fn sst_index(bytes: &[u8]) {
    let _ = sst::check_index(bytes);
}

/// A filter.
pub fn sst_filter(bytes: &[u8]) {
    let _ = sst::check_filter(bytes);
}

/// The directory of a filter in pieces.
pub fn sst_directory(bytes: &[u8]) {
    let _ = sst::check_directory(bytes);
}

/// The properties, and a footer.
pub fn sst_properties(bytes: &[u8]) {
    let _ = sst::check_properties(bytes);
    let _ = sst::parse_footer(bytes, bytes.len() as u64);
}

/// The operations of a commit.
pub fn batch(bytes: &[u8]) {
    let mut ops = Ops::new(bytes, 1);
    let mut position = 0;
    loop {
        match ops.next() {
            Ok(Some((_, op))) => {
                assert!(ops.position() > position, "an operation of no bytes");
                position = ops.position();
                if let Op::Entry { entry, .. } = op {
                    key(entry.key);
                }
            }
            Ok(None) => return assert_eq!(position, bytes.len()),
            Err(at) => return assert_eq!(at, position),
        }
    }
}

/// A stored key. What decodes is encoded again to the same bytes, and its partition's bounds are
/// around it.
pub fn key(bytes: &[u8]) {
    let mut mark = Vec::new();
    let _ = internal::mark_of_into(bytes, &mut mark);
    let _ = internal::after_prefix(bytes);
    if let Some((_, stored)) = expiry::parse_index_key(bytes) {
        let _ = internal::decode(stored);
    }
    let Some((table, decoded)) = internal::decode(bytes) else { return };
    let pk = match decoded {
        Decoded::Record(key) => {
            assert_eq!(internal::encode(table, &key), bytes);
            assert_eq!(internal::encoded_len(&key.pk, key.sk.as_deref()), bytes.len());
            key.pk
        }
        Decoded::Mark { pk } => {
            assert_eq!(internal::partition_mark(table, &pk), bytes);
            Bytes::from(pk)
        }
    };
    assert_eq!(internal::pk_of(bytes).as_deref(), Some(&*pk));
    assert_eq!(mark, internal::partition_mark(table, &pk));
    assert!(*mark <= *bytes && *bytes < *internal::partition_end(table, &pk));
    assert!(bytes.starts_with(&internal::partition_prefix(table, &pk)));
}

/// A cursor that a client sends back.
pub fn scan_cursor(bytes: &[u8]) {
    if let Ok(cursor) = ScanCursor::from_bytes(bytes) {
        assert_eq!(cursor.to_bytes(), bytes);
    }
}

/// Valid inputs, with the name of the target that each is for.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (compression, in_parts) in [
        (Compression::None, false),
        (Compression::Lz4, false),
        (Compression::Zstd { level: 3 }, false),
        (Compression::None, true),
    ] {
        let env = env();
        // A seed that cannot be made is a bug in the engine, which its own tests report better.
        let _ = fill(&env, compression, in_parts);
        let names = env.vfs.list(Path::new(DIR)).unwrap_or_default();
        for name in names {
            let mut bytes = read_file(&*env.vfs, &name);
            if name.ends_with(".log") || name.starts_with("MANIFEST-") {
                // The zeros of what was reserved would be nearly all that a mutation meets.
                let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                bytes.truncate((used + 16).next_multiple_of(8));
            }
            let target = match name.as_str() {
                "CURRENT" => "current",
                _ if name.starts_with("MANIFEST-") => "manifest",
                _ if name.ends_with(".log") => "wal",
                _ if name.ends_with(".sst") => "sst",
                _ => continue,
            };
            seeds.extend(parts_of(target, &bytes));
            if target == "wal" {
                seeds.push((target, as_version_1(&bytes, db_id())));
            }
            seeds.push((target, bytes));
        }
    }
    let key = Key::with_sk(&b"p\0k"[..], "sk");
    seeds.push(("key", internal::encode(TableId(1), &key)));
    seeds.push(("key", internal::encode(TableId::DEFAULT, &Key::new(&b"\0"[..]))));
    seeds.push(("key", internal::partition_mark(TableId(2), b"pk")));
    seeds.push(("key", expiry::index_key(1_000, &internal::encode(TableId(1), &key))));
    for cursor in [ScanCursor::start(), ScanCursor::start().after(key)] {
        seeds.push(("scan_cursor", cursor.to_bytes().to_vec()));
    }
    seeds.push(("scan_cursor", ScanCursor::start().after(Key::new("pk")).to_bytes().to_vec()));
    seeds
}

/// A small database with records of all kinds, in files and in the log.
fn fill(env: &Env, compression: Compression, in_parts: bool) -> Result<()> {
    let mut options = Options { compression, bottom_compression: compression, ..options() };
    let mut records = 40;
    if in_parts {
        // A block for each, and more than one part of an index has.
        options.tuning = Tuning { block_bytes: 1, parts_beyond_bytes: 0, ..options.tuning };
        records = 70;
    }
    let engine = Engine::open_with(env.clone(), DIR, options)?;
    let write = |batch: &WriteBatch| engine.write(batch, Durability::Sync)?.wait();
    let table = engine.create_table()?;
    let mut batch = WriteBatch::new();
    for n in 0..records {
        let key = Key::with_sk("partition", format!("sort key {n:03}"));
        batch.put(table, &key, format!("a value of some length, {n}").as_bytes())?;
    }
    batch.put_expiring(TableId::DEFAULT, &Key::new(&b"with\0zero"[..]), b"", 5_000)?;
    write(&batch)?;
    engine.flush()?;
    batch.clear();
    batch.delete(table, &Key::with_sk("partition", "sort key 005"))?;
    batch.drop_partition(TableId::DEFAULT, b"gone")?;
    batch.put(TableId::DEFAULT, &Key::new("partition"), &[7; 300])?;
    write(&batch)?;
    engine.flush()?;
    let dropped = engine.create_table()?;
    batch.put_expiring(dropped, &Key::new("soon"), b"value", 6_000)?;
    write(&batch)?;
    engine.drop_table(dropped)?;
    batch.clear();
    batch.push_nop();
    batch.delete(TableId::DEFAULT, &Key::with_sk("a", "b"))?;
    write(&batch)
}

/// The pieces of a valid file that have decoders, and targets, of their own.
fn parts_of(target: &str, bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut parts = Vec::new();
    match target {
        "wal" => {
            for_each_chunk(bytes, &mut |_, payload| {
                let mut reader = Reader::new(payload);
                while let Some(commit) = format::read_commit(&mut reader, format::VERSION, 1) {
                    parts.push(("batch", commit.ops.to_vec()));
                }
            });
        }
        "manifest" => {
            for_each_record(bytes, &mut |at, len| {
                let payload = bytes.get(at + RECORD_HEADER_LEN..at + RECORD_HEADER_LEN + len);
                parts.push(("manifest_record", payload.unwrap_or_default().to_vec()));
            });
        }
        "sst" => {
            let payload = |(at, len): (usize, usize)| {
                bytes.get(at..at + len.saturating_sub(FRAME_TRAILER_LEN)).unwrap_or_default()
            };
            let footer_at = bytes.len().saturating_sub(FOOTER_LEN);
            let [filter, index, properties] =
                [0, 20, 40].map(|at| handle_at(bytes, footer_at + at).unwrap_or_default());
            let is_in_parts = is_in_parts(bytes, footer_at);
            let filter_kind = if is_in_parts { "sst_directory" } else { "sst_filter" };
            parts.push((filter_kind, payload(filter).to_vec()));
            parts.push(("sst_index", payload(index).to_vec()));
            if is_in_parts {
                return parts;
            }
            parts.push(("sst_properties", payload(properties).to_vec()));
            parts.push(("sst_properties", bytes.get(footer_at..).unwrap_or_default().to_vec()));
            for slot in index_slots(bytes, index) {
                if let Some((at, len)) = handle_at(bytes, slot) {
                    parts.push(("sst_frame", bytes.get(at..at + len).unwrap_or_default().to_vec()));
                    parts.push(("sst_block", payload((at, len)).to_vec()));
                }
            }
        }
        _ => {}
    }
    parts
}

fn options() -> Options {
    Options {
        memory_budget_bytes: 256 << 10,
        tuning: Tuning {
            block_bytes: 256,
            restart_interval: 4,
            log_segment_bytes: Some(16 << 10),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

fn env() -> Env {
    let vfs = MemoryVfs::new();
    let _ = vfs.create_dir_all(Path::new(DIR));
    Env {
        vfs: Arc::new(vfs),
        clock: Arc::new(ManualClock::at(1_000)),
        random: Arc::new(SeededRandom::new(RANDOM_SEED)),
        threads: None,
    }
}

/// The id of the database that [`fresh_database`] makes.
fn db_id() -> [u8; 16] {
    use crate::env::Random;
    let random = SeededRandom::new(RANDOM_SEED);
    let mut db_id = [0; 16];
    for half in db_id.chunks_exact_mut(8) {
        half.copy_from_slice(&random.next_u64().to_le_bytes());
    }
    db_id
}

/// A database without records, closed.
fn fresh_database() -> Env {
    static FILES: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    let files = FILES.get_or_init(|| {
        let env = env();
        let opened = Engine::open_with(env.clone(), DIR, options());
        assert!(opened.is_ok(), "{opened:?}");
        drop(opened);
        let names = env.vfs.list(Path::new(DIR)).unwrap_or_default();
        names.into_iter().map(|name| (name.clone(), read_file(&*env.vfs, &name))).collect()
    });
    let env = env();
    for (name, bytes) in files {
        write_file(&*env.vfs, name, bytes);
    }
    env
}

/// Opens the database and, if that works, does a little of everything. Damage that only shows then
/// is an error; what must not happen is a panic.
fn use_database(env: &Env) {
    if let Ok(engine) = Engine::open_with(env.clone(), DIR, options()) {
        for table in engine.tables() {
            for record in engine.snapshot().scan(table, ScanCursor::start()).take(1000) {
                let Ok(record) = record else { break };
                let _ = engine.get(table, &record.key);
            }
        }
        let _ = engine.expired(0, 10);
        let mut batch = WriteBatch::new();
        let key = Key::new("after recovery");
        if batch.put(TableId::DEFAULT, &key, b"value").is_ok()
            && engine.write(&batch, Durability::Sync).and_then(|commit| commit.wait()).is_ok()
        {
            let found = engine.get(TableId::DEFAULT, &key);
            assert!(matches!(found, Ok(Some(_))), "{found:?}");
        }
        let _ = engine.flush();
        let _ = engine.compact();
    }
    let _ = verify(env, DIR);
}

fn read_sst(reader: SstReader) {
    let reader = Arc::new(reader);
    let sound = {
        let mut faults = 0;
        reader.verify(&mut |_, _| faults += 1).is_ok() && faults == 0
    };
    let mut cursor = reader.cursor(true);
    let mut forward = 0u64;
    let mut moved = cursor.seek_first();
    while let (Ok(()), Some(entry)) = (&moved, cursor.entry()) {
        forward += 1;
        let (key, seq) = (entry.key.to_vec(), entry.seq);
        let hit = reader.get(&key, sst::key_hash(&key), seq);
        if sound {
            assert!(matches!(&hit, Ok(Some(hit)) if hit.seq == seq), "{key:?} {seq}: {hit:?}");
        }
        if forward > 10_000 {
            break;
        }
        moved = cursor.next();
    }
    let mut cursor = reader.cursor(false);
    let mut backward = 0;
    let mut moved = cursor.seek_last();
    while moved.is_ok() && cursor.valid() && backward < forward {
        backward += 1;
        moved = cursor.prev();
    }
    if sound {
        assert_eq!(forward, backward);
    }
    for key in [&b""[..], b"\0\0\0\0", &[0xff; 9]] {
        let _ = cursor.seek(key, 1);
        let _ = cursor.seek_before(key, 1);
    }
}

fn write_file(vfs: &dyn Vfs, name: &str, bytes: &[u8]) {
    let path = Path::new(DIR).join(name);
    let written =
        vfs.open(&path, OpenMode::CreateNew).and_then(|file| file.write_at(bytes, 0)).is_ok();
    assert!(written, "{name}");
}

fn remove_file(vfs: &dyn Vfs, name: &str) {
    let removed = vfs.remove(&Path::new(DIR).join(name));
    let gone =
        removed.or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) });
    assert!(gone.is_ok(), "{name}: {gone:?}");
}

fn read_file(vfs: &dyn Vfs, name: &str) -> Vec<u8> {
    let read = || {
        let file = vfs.open(&Path::new(DIR).join(name), OpenMode::Read)?;
        let mut bytes = vec![0; file.len()? as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok::<_, io::Error>(bytes)
    };
    read().unwrap_or_default()
}

// What follows computes checksums anew. The layouts are those of `wal::format`, `manifest::frame`
// and `sst::footer`; a change there that is forgotten here shows as seeds that no longer reach
// anything (`a_resealed_seed_is_still_valid` below).

const MANIFEST_HEADER_LEN: usize = 44;
const RECORD_HEADER_LEN: usize = 16;
const FOOTER_LEN: usize = 108;
const FRAME_TRAILER_LEN: usize = 13;
const PIECE_FRAME_LEN: usize = 64 * 64 + FRAME_TRAILER_LEN;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Reader::new(bytes.get(at..)?).u32()
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Reader::new(bytes.get(at..)?).u64()
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    if let Some(to) = bytes.get_mut(at..at + field.len()) {
        to.copy_from_slice(field);
    }
}

fn reseal_log(bytes: &[u8], db_id: [u8; 16]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let Some(header) = reseal_segment_header(&mut out, db_id) else { return out };
    let seed = ChunkSeed::new(&db_id);
    for_each_chunk(bytes, &mut |at, payload| {
        let sealed = if header.version == version1::VERSION {
            let field = |i: usize| u64_at(bytes, at + 8 + 8 * i).unwrap_or(0);
            let stamp = version1::writer::Stamp {
                generation: field(0),
                pos: field(1),
                durable_pos: field(2),
                clock_ms: field(3),
                first_seq: field(4),
                last_seq: field(5),
            };
            version1::writer::chunk(payload, stamp, seed)
        } else {
            let stamp = ChunkStamp {
                generation: header.generation,
                offset: at as u64,
                unsynced_bytes: u64::from(u32_at(bytes, at + 24).unwrap_or(0)) * 8,
                clock_ms: u64_at(bytes, at + 28).unwrap_or(0) & ((1 << 48) - 1),
                first_seq: u64_at(bytes, at + 8).unwrap_or(0),
            };
            let mut chunk = Vec::new();
            format::begin_chunk(&mut chunk);
            chunk.extend_from_slice(payload);
            // A payload that is a part of an input is never too long.
            let _ = format::finish_chunk(&mut chunk, stamp, seed);
            chunk
        };
        let len = sealed.len().min(out.len() - at);
        put(&mut out, at, sealed.get(..len).unwrap_or_default());
    });
    out
}

fn reseal_segment_header(out: &mut [u8], db_id: [u8; 16]) -> Option<format::SegmentHeader> {
    let start_pos = u64_at(out, 36)? & !7;
    let header = format::SegmentHeader {
        version: u32_at(out, 8)?.clamp(version1::VERSION, format::VERSION),
        db_id,
        generation: u64_at(out, 28)?,
        start_pos,
        durable_pos: u64_at(out, 44)?.min(start_pos),
    };
    put(out, 0, &header.encode());
    Some(header)
}

/// Calls `each` with the offset and the payload of every chunk, whatever the checksums say.
fn for_each_chunk(bytes: &[u8], each: &mut dyn FnMut(usize, &[u8])) {
    let head_len = match u32_at(bytes, 8) {
        Some(0 | version1::VERSION) => version1::CHUNK_HEADER_LEN,
        _ => CHUNK_HEADER_LEN,
    };
    let mut at = SEGMENT_HEADER_LEN;
    while let Some(chunk) = bytes.get(at..).filter(|b| b.len() >= head_len)
        && format::ChunkHeader::may_start_with(chunk)
    {
        let payload_len = u32_at(chunk, 4).unwrap_or(0) as usize;
        let payload_len = payload_len.min(chunk.len() - head_len);
        each(at, chunk.get(head_len..head_len + payload_len).unwrap_or_default());
        at += (head_len + payload_len).next_multiple_of(8);
    }
}

/// The log as version 1 would have it.
fn as_version_1(bytes: &[u8], db_id: [u8; 16]) -> Vec<u8> {
    let seed = ChunkSeed::new(&db_id);
    let mut out = bytes.get(..SEGMENT_HEADER_LEN).unwrap_or_default().to_vec();
    put(&mut out, 8, &version1::VERSION.to_le_bytes());
    let Some(header) = reseal_segment_header(&mut out, db_id) else { return out };
    for_each_chunk(bytes, &mut |at, payload| {
        let first_seq = u64_at(bytes, at + 8).unwrap_or(0);
        let (mut next_seq, mut commits) = (first_seq, Vec::new());
        let mut reader = Reader::new(payload);
        while let Some(commit) = format::read_commit(&mut reader, format::VERSION, next_seq) {
            let (seq, count) = (commit.first_seq, commit.seq_count);
            commits.extend(version1::writer::commit(seq, count, commit.ops));
            next_seq += u64::from(count);
        }
        let pos = header.identity().pos_of(out.len() as u64);
        let stamp = version1::writer::Stamp {
            generation: header.generation,
            pos,
            durable_pos: pos,
            clock_ms: 1_000,
            first_seq,
            last_seq: next_seq - 1,
        };
        out.extend(version1::writer::chunk(&commits, stamp, seed));
    });
    out.resize(out.len() + 16, 0);
    out
}

fn reseal_manifest(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let Some(head) = bytes.get(..MANIFEST_HEADER_LEN - 8) else { return out };
    let seed = xxh3_64(head);
    put(&mut out, MANIFEST_HEADER_LEN - 8, &seed.to_le_bytes());
    let mut index = 0u32;
    for_each_record(bytes, &mut |at, len| {
        put(&mut out, at, &(len as u32).to_le_bytes());
        put(&mut out, at + 4, &index.to_le_bytes());
        let mut hash = Xxh3::with_seed(seed);
        hash.update(out.get(at..at + 8).unwrap_or_default());
        let payload_at = at + RECORD_HEADER_LEN;
        hash.update(out.get(payload_at..payload_at + len).unwrap_or_default());
        put(&mut out, at + 8, &hash.digest().to_le_bytes());
        index += 1;
    });
    out
}

/// Calls `each` with the offset and the payload's length of every record, until zeros begin.
fn for_each_record(bytes: &[u8], each: &mut dyn FnMut(usize, usize)) {
    let mut at = MANIFEST_HEADER_LEN;
    while let Some(record) = bytes.get(at..).filter(|rest| rest.len() >= RECORD_HEADER_LEN)
        && record.iter().take(RECORD_HEADER_LEN).any(|&byte| byte != 0)
    {
        let len = u32_at(record, 0).unwrap_or(0) as usize;
        let len = len.min(record.len() - RECORD_HEADER_LEN);
        each(at, len);
        at += RECORD_HEADER_LEN + len;
    }
}

fn reseal_sst(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let Some(footer_at) = bytes.len().checked_sub(FOOTER_LEN) else { return out };
    let is_in_parts = is_in_parts(bytes, footer_at);
    if let Some(index) = handle_at(bytes, footer_at + 20) {
        for slot in index_slots(bytes, index) {
            if let Some(part) = handle_at(bytes, slot).filter(|_| is_in_parts) {
                for slot in index_slots(bytes, part) {
                    reseal_frame(&mut out, slot);
                }
            }
            reseal_frame(&mut out, slot);
        }
    }
    if let Some(directory) = handle_at(bytes, footer_at).filter(|_| is_in_parts) {
        reseal_pieces(&mut out, directory);
    }
    for at in [0, 20, 40] {
        reseal_frame(&mut out, footer_at + at);
    }
    let checksum = out.get(footer_at..footer_at + 92).map_or(0, xxh3_64);
    put(&mut out, footer_at + 92, &checksum.to_le_bytes());
    out
}

/// Whether the footer says that filter and index are in parts.
fn is_in_parts(bytes: &[u8], footer_at: usize) -> bool {
    u32_at(bytes, footer_at + 88) == Some(2)
}

/// Computes the checksums of a filter's pieces, and puts them into both places.
fn reseal_pieces(out: &mut [u8], (at, len): (usize, usize)) {
    let first = u64_at(out, at).and_then(|first| usize::try_from(first).ok()).unwrap_or(usize::MAX);
    for nth in 0..len.saturating_sub(13 + FRAME_TRAILER_LEN) / 8 {
        let Some(start) = first.checked_add(nth * PIECE_FRAME_LEN) else { return };
        let Some(body) = out.get(start..).and_then(|rest| rest.get(..PIECE_FRAME_LEN - 8)) else {
            return;
        };
        let checksum = xxh3_64(body).to_le_bytes();
        put(out, start + PIECE_FRAME_LEN - 8, &checksum);
        put(out, at + 13 + 8 * nth, &checksum);
    }
}

/// The frame that the handle at `at` points to, if it lies inside the file.
fn handle_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let offset = usize::try_from(u64_at(bytes, at)?).ok()?;
    let len = usize::try_from(u32_at(bytes, at + 8)?).ok()?;
    (offset.checked_add(len)? <= bytes.len()).then_some((offset, len))
}

/// Where the slots of an index are, given its frame.
fn index_slots(bytes: &[u8], (at, len): (usize, usize)) -> impl Iterator<Item = usize> {
    let count = u32_at(bytes, at).map_or(0, |count| (count as usize).min(len / 40));
    (0..count).map(move |i| at + 8 + 8 * count + 28 * i)
}

/// Computes the checksum of the frame behind a handle, and puts it into both places.
fn reseal_frame(out: &mut [u8], handle: usize) {
    let Some((at, len)) = handle_at(out, handle) else { return };
    let Some(body_len) = len.checked_sub(8) else { return };
    let checksum = out.get(at..at + body_len).map_or(0, xxh3_64);
    put(out, at + body_len, &checksum.to_le_bytes());
    put(out, handle + 12, &checksum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_seed_for_every_target_and_it_passes() {
        let seeds = seeds();
        for &(name, target) in TARGETS {
            let mut count = 0;
            for (_, seed) in seeds.iter().filter(|(for_target, _)| *for_target == name) {
                target(seed);
                count += 1;
            }
            assert!(count > 0, "no seed for {name}");
        }
    }

    #[test]
    fn a_resealed_seed_is_still_valid() {
        for (target, seed) in seeds() {
            let (resealed, damaged) = match target {
                // The first byte of a payload; in version 1, of a field of the header.
                "wal" => (reseal_log(&seed, db_id()), CHUNK_HEADER_LEN + SEGMENT_HEADER_LEN),
                "manifest" => (reseal_manifest(&seed), MANIFEST_HEADER_LEN + RECORD_HEADER_LEN),
                "sst" => (reseal_sst(&seed), 0),
                _ => continue,
            };
            assert!(resealed == seed, "{target}");
            // Resealing is worth something only if it hides damage from the checksums.
            let mut bad = seed.clone();
            bad[damaged] ^= 1;
            let mended = match target {
                "wal" => reseal_log(&bad, db_id()),
                "manifest" => reseal_manifest(&bad),
                _ => reseal_sst(&bad),
            };
            assert!(mended != bad, "{target}");
        }
    }

    #[test]
    fn the_id_is_the_one_that_a_fresh_database_gets() {
        let engine = Engine::open_with(fresh_database(), DIR, options()).unwrap();
        assert_eq!(engine.id(), db_id());
    }

    #[test]
    fn a_log_that_creates_the_reserved_table_is_refused() {
        let live = fresh_database();
        let engine = Engine::open_with(live.clone(), DIR, options()).unwrap();
        let mut batch = WriteBatch::new();
        batch.push_create_table(TableId::EXPIRY);
        let ticket = engine.inner().log.append(batch.ops(), batch.count()).unwrap();
        engine.inner().log.wait_durable(ticket.last_seq).unwrap();
        engine.inner().log.applied(ticket);
        let killed = env();
        for name in live.vfs.list(Path::new(DIR)).unwrap() {
            write_file(&*killed.vfs, &name, &read_file(&*live.vfs, &name));
        }
        let opened = Engine::open_with(killed, DIR, options());
        assert!(matches!(opened, Err(crate::error::Error::Corruption { .. })), "{opened:?}");
    }
}
