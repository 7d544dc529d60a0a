//! A database of version 1, kept as it was written: today's code must read its records, and must
//! still write them byte for byte.
//!
//! The engine's own golden files are with the engine. Here it is what the embedded database stores
//! on it: items, keys, index entries, stream records, the catalogue with its notes, tokens. The log
//! has them all, in the order in which they were written, because nothing is ever flushed. The log
//! itself is of its own version 1, which is no longer written; so its commits are compared, and how
//! they lie in the log is left to the engine's golden files.
//!
//! `KSTONE_BLESS=1 cargo test -p kstone --test all golden` writes the files anew (with the log in its
//! version of today, which moves the offsets in docs/format.md). That is right while version 1 has
//! not been released; afterwards a change of the bytes is a new version, with files of its own
//! beside these.

mod description;
mod layout;
mod newer;
mod reader;
mod script;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kstone::ops::{Scan, TransactWrite};
use kstone::stream::{ShardPosition, StreamRecord};
use kstone::table::TableDescription;
use kstone::{Database, DatabaseOptions, Error, Item};
use kstone_core::env::{Env, ManualClock, MemoryVfs, OpenMode, SeededRandom};
use kstone_core::{Compression, Options, Tuning, verify};

use crate::golden::script::{HOUR_MS, START_MS};

const DIR: &str = "db";
const LOG: &str = "wal-000000.log";

/// A folder's files by name.
type Files = BTreeMap<String, Vec<u8>>;

/// A machine without threads or chance: every run is the same.
fn machine(now_ms: u64) -> (Env, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(now_ms));
    let env = Env {
        vfs: Arc::new(MemoryVfs::new()),
        clock: Arc::clone(&clock) as _,
        random: Arc::new(SeededRandom::new(1)),
        threads: None,
    };
    (env, clock)
}

fn open(env: &Env) -> Result<Database, Error> {
    let engine = Options {
        compression: Compression::None,
        bottom_compression: Compression::None,
        tuning: Tuning { log_segment_bytes: Some(64 << 10), ..Tuning::default() },
        ..Options::default()
    };
    Database::open_with(env.clone(), DIR, DatabaseOptions { engine, ..Default::default() })
}

/// Runs the script; the database is still open.
fn generate() -> (Database, Files) {
    let (env, clock) = machine(START_MS);
    let db = open(&env).unwrap();
    script::run(&db, &clock);
    // Read while it is open: closing would flush what is to stay in the log.
    let mut files = Files::new();
    for name in env.vfs.list(Path::new(DIR)).unwrap() {
        let file = env.vfs.open(&Path::new(DIR).join(&name), OpenMode::Read).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        files.insert(name, without_reserve(bytes));
    }
    (db, files)
}

/// Log and manifest are allocated ahead of what is written to them; those zeros mean nothing, and
/// are not worth keeping. Some are left, so that a reader that needs them to stop is not let down.
fn without_reserve(mut bytes: Vec<u8>) -> Vec<u8> {
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let kept = (used + 64).next_multiple_of(64).min(bytes.len());
    bytes.truncate(kept);
    bytes
}

/// The golden files, written anew first if that is asked for.
fn golden() -> Files {
    static BLESS: std::sync::Once = std::sync::Once::new();
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/golden/v1");
    BLESS.call_once(|| {
        if std::env::var_os("KSTONE_BLESS").is_some() {
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).unwrap();
            for (name, bytes) in generate().1 {
                std::fs::write(folder.join(name), bytes).unwrap();
            }
        }
    });
    let mut files = Files::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        files
            .insert(entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap());
    }
    files
}

/// A machine that has these files, at the time when they were left.
fn machine_with(files: &Files) -> Env {
    let (env, _) = machine(START_MS + HOUR_MS);
    env.vfs.create_dir_all(Path::new(DIR)).unwrap();
    for (name, bytes) in files {
        let file = env.vfs.open(&Path::new(DIR).join(name), OpenMode::CreateNew).unwrap();
        file.write_at(bytes, 0).unwrap();
    }
    env
}

/// Everything that a user of the database can see of it.
#[derive(Debug, PartialEq)]
struct Seen {
    tables: Vec<TableDescription>,
    /// By index; the table itself is "".
    items: BTreeMap<String, Vec<Item>>,
    /// By the label of the stream.
    records: BTreeMap<String, Vec<StreamRecord>>,
    default_table: Vec<(kstone::Key, Item)>,
}

fn look(db: &Database) -> Seen {
    let names = db.list_tables(None, 10).0;
    let mut items = BTreeMap::new();
    for index in ["", "by-title", "by-genre", "by-price"] {
        let scan = Scan {
            table: "music".to_owned(),
            index: (!index.is_empty()).then(|| index.to_owned()),
            ..Scan::default()
        };
        let found = db.scan_items(&scan).wait().unwrap().items.unwrap();
        items.insert(index.to_owned(), found.iter().map(|item| item.decode().unwrap()).collect());
    }
    let mut records = BTreeMap::new();
    for stream in db.list_streams(None, None, 10).0 {
        let mut found = Vec::new();
        for shard in db.describe_stream(&stream, None, 10).unwrap().shards {
            let iterator = db.shard_iterator(&stream, &shard.id, ShardPosition::TrimHorizon);
            found.extend(db.stream_records(&iterator.unwrap(), 100).wait().unwrap().records);
        }
        found.sort_by(|a, b| a.sequence_number.cmp(&b.sequence_number));
        records.insert(stream.label, found);
    }
    let default_table = db.scan(kstone::Scan::new()).unwrap();
    Seen {
        tables: names.iter().map(|name| db.describe_table(name).unwrap()).collect(),
        items,
        records,
        default_table: default_table.map(|entry| entry.unwrap()).map(|e| (e.key, e.item)).collect(),
    }
}

#[test]
fn a_database_of_version_1_is_read() {
    let env = machine_with(&golden());
    let report = verify(&env, DIR).unwrap();
    assert!(report.is_sound(), "{report:?}");

    let db = open(&env).unwrap();
    let seen = look(&db);
    assert_eq!(seen, look(&generate().0));
    assert_eq!(seen.default_table.len(), 2);
    assert_eq!(seen.records.values().map(Vec::len).collect::<Vec<_>>(), [5, 2]);
    let counts: Vec<_> = seen.items.iter().map(|(name, items)| (&name[..], items.len())).collect();
    assert_eq!(counts, [("", 2), ("by-genre", 1), ("by-price", 1), ("by-title", 1)]);

    // A token is known again: repeated, nothing happens; for something else it is refused.
    let late = TransactWrite { token: Some("late".to_owned()), ..script::transaction() };
    db.transact_write(&late).wait().unwrap();
    assert_eq!(look(&db), seen);
    let mut other = late;
    other.actions.truncate(1);
    let refused = db.transact_write(&other).wait();
    assert!(matches!(refused, Err(Error::IdempotentParameterMismatch(_))), "{refused:?}");
}

#[test]
fn the_same_writes_still_give_the_same_bytes() {
    let (golden, generated) = (golden(), generate().1);
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&generated), names(&golden));
    let (commits, again) = (reader::commits(&golden[LOG]), reader::commits(&generated[LOG]));
    assert!(commits.len() > 10, "{}", commits.len());
    for (n, (commit, again)) in commits.iter().zip(&again).enumerate() {
        assert_eq!(commit, again, "commit {n}: a change of the format needs a new version");
    }
    assert_eq!(commits.len(), again.len());
    for (name, bytes) in golden.iter().filter(|(name, _)| *name != LOG) {
        let differ = bytes.iter().zip(&generated[name]).position(|(a, b)| a != b);
        assert!(
            generated[name] == *bytes,
            "{name} differs from offset {:#x} on: a change of the format needs a new version",
            differ.unwrap_or(bytes.len().min(generated[name].len()))
        );
    }
}

/// Wherever the power had been cut, what the notes in the catalogue speak of is cleaned up.
#[test]
fn the_log_of_version_1_cut_after_any_commit_leaves_no_engine_table_behind() {
    let mut files = golden();
    let log = files[LOG].clone();
    let (mut noted, mut cleaned) = (0, 0);
    for end in reader::chunk_ends(&log) {
        let mut cut = log[..end].to_vec();
        cut.resize(end + 128, 0);
        files.insert(LOG.to_owned(), cut);
        let env = machine_with(&files);
        let before = kstone_core::Engine::open_with(env.clone(), DIR, Options::default()).unwrap();
        let left = before.tables();
        let notes = reader::notes(&before);
        drop(before);
        let db = open(&env).unwrap();
        let mut named = vec![0, script::SYSTEM];
        named.extend(reader::catalogued(db.engine()));
        named.sort_unstable();
        let kept: Vec<u32> = db.engine().tables().iter().map(|table| table.0).collect();
        assert_eq!(kept, named, "the log cut at {end:#x}");
        assert_eq!(reader::notes(db.engine()), 0, "the log cut at {end:#x}");
        noted += notes;
        cleaned += left.len().saturating_sub(kept.len());
    }
    assert!(noted > 3 && cleaned > 3, "{noted} notes, {cleaned} engine tables");
}
