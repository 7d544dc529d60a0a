//! Put, get, delete, iterate, reopen: the promises of the first page of the documentation.

use std::path::Path;
use std::sync::Arc;

use crate::support::{T, put, sim_env, tiny};
use kstone_core::env::{Env, ManualClock, OpenMode};
use kstone_core::{
    Durability, Engine, Error, IngestRecord, Key, Options, PurgeSnapshots, PurgeTarget, Result,
    ScanCursor, WriteBatch, verify,
};
use kstone_sim::{CrashPolicy, SimDisk};

fn all(engine: &Engine) -> Vec<(Key, Vec<u8>)> {
    engine
        .snapshot()
        .scan(T, ScanCursor::start())
        .map(|r| r.map(|r| (r.key, r.record.value.to_vec())))
        .collect::<Result<_>>()
        .unwrap()
}

#[test]
fn what_is_put_is_read_back_before_and_after_flush_compaction_and_crash() {
    let (disk, clock) = (SimDisk::new(1), Arc::new(ManualClock::at(1000)));
    let engine = Engine::open_with(sim_env(&disk, &clock), "db", tiny()).unwrap();
    let mut expected = Vec::new();
    for n in 0..500u32 {
        let key = Key::with_sk(format!("user#{}", n % 7), format!("post#{n:05}"));
        put(&engine, &key, format!("value {n}").as_bytes());
        expected.push((key, format!("value {n}").into_bytes()));
    }
    let check = |engine: &Engine| {
        for (key, value) in &expected {
            let found = engine.get(T, key).unwrap().map(|r| r.value.to_vec());
            assert_eq!(found.as_ref(), Some(value), "{key:?}");
        }
        let mut scanned = all(engine);
        scanned.sort();
        let mut wanted = expected.clone();
        wanted.sort();
        assert_eq!(scanned, wanted);
        for pk in 0..7 {
            let pk = format!("user#{pk}");
            let mut wanted: Vec<_> =
                expected.iter().filter(|(k, _)| k.pk == pk).map(|(k, _)| k.clone()).collect();
            wanted.sort();
            let forward: Vec<_> =
                engine.partition(T, pk.clone()).iter().unwrap().map(|r| r.unwrap().key).collect();
            assert_eq!(forward, wanted);
            let mut backward: Vec<_> =
                engine.partition(T, pk).reverse().iter().unwrap().map(|r| r.unwrap().key).collect();
            backward.reverse();
            assert_eq!(backward, wanted);
        }
    };
    check(&engine);
    let crashed = disk.crash(CrashPolicy::LoseAll);
    let reopened = Engine::open_with(sim_env(&crashed, &clock), "db", tiny()).unwrap();
    check(&reopened);
    reopened.flush().unwrap();
    check(&reopened);
    reopened.compact().unwrap();
    check(&reopened);
    assert!(reopened.stats().total.files > 0);
    drop(reopened);
    let report = verify(&sim_env(&crashed, &clock), "db").unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.entries, 500);
}

#[test]
fn the_real_machine_works_the_same() {
    let dir = std::env::temp_dir().join(format!("kstone-basics-{}", std::process::id()));
    let options = Options { memory_budget_bytes: 1 << 20, ..Options::default() };
    let engine = Engine::open(&dir, options.clone()).unwrap();
    assert!(matches!(Engine::open(&dir, options.clone()), Err(Error::Locked { .. })));
    let mut batch = WriteBatch::new();
    for n in 0..1_000u32 {
        batch.put(T, &Key::new(format!("user#{n}")), &[n as u8; 100]).unwrap();
        if batch.len() == 100 {
            engine.write(&batch, Durability::Os).unwrap().wait().unwrap();
            batch.clear();
        }
    }
    engine.sync().unwrap();
    assert_eq!(all(&engine).len(), 1_000);
    drop(engine);
    let engine = Engine::open(&dir, options).unwrap();
    assert_eq!(all(&engine).len(), 1_000);
    engine.wait_idle().unwrap();
    drop(engine);
    assert!(verify(&Env::system(), Path::new(&dir)).unwrap().is_sound());
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn purge_leaves_no_byte_in_any_file() {
    check_purge(tiny());
}

/// Keys are in the parts of indexes and in their tops, too.
#[test]
fn purge_leaves_no_byte_in_any_file_in_parts() {
    let mut options = tiny();
    options.tuning.parts_beyond_bytes = 0;
    // A block for each record, and files of several parts.
    options.tuning.block_bytes = 1;
    options.tuning.file_bytes = 1 << 20;
    check_purge(options);
}

fn check_purge(mut options: Options) {
    let (disk, clock) = (SimDisk::new(2), Arc::new(ManualClock::at(1000)));
    options.compression = kstone_core::Compression::None;
    options.bottom_compression = kstone_core::Compression::None;
    let engine = Engine::open_with(sim_env(&disk, &clock), "db", options).unwrap();
    for n in 0..200u32 {
        put(&engine, &Key::with_sk(format!("user#{}", n % 5), format!("n{n}")), b"ordinary");
        let mut batch = WriteBatch::new();
        let key = Key::with_sk("subject-SECRETPK", format!("s{n}"));
        batch.put_expiring(T, &key, b"SECRETVALUE", 5000 + u64::from(n)).unwrap();
        engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
    }
    engine.checkpoint("copy").unwrap();
    let holds = |needle: &[u8]| {
        disk.paths()
            .into_iter()
            .any(|path| disk.read_file(&path).unwrap().windows(needle.len()).any(|w| w == needle))
    };
    assert!(holds(b"SECRETPK") && holds(b"SECRETVALUE"));
    let target = PurgeTarget::Partition { table: T, pk: "subject-SECRETPK".into() };
    let purged = engine.purge(&[target], PurgeSnapshots::End).unwrap();
    assert_eq!(purged.checkpoints.len(), 1);
    for path in disk.paths() {
        let bytes = disk.read_file(&path).unwrap();
        for needle in [&b"SECRETPK"[..], b"SECRETVALUE"] {
            assert!(!bytes.windows(needle.len()).any(|w| w == needle), "{path:?} {needle:?}");
        }
    }
    assert_eq!(all(&engine).len(), 200);
}

#[test]
fn what_was_overwritten_or_deleted_before_can_be_purged_without_touching_what_is_there() {
    let (disk, clock) = (SimDisk::new(5), Arc::new(ManualClock::at(1000)));
    let mut options = tiny();
    options.compression = kstone_core::Compression::None;
    options.bottom_compression = kstone_core::Compression::None;
    let engine = Engine::open_with(sim_env(&disk, &clock), "db", options).unwrap();
    let (shared, moved) = (Key::with_sk("batch", "status"), Key::new("SECRETADDRESS"));
    let mut batch = WriteBatch::new();
    batch.put_expiring(T, &shared, b"Ada SECRETNAME Bob", 9000).unwrap();
    batch.put_expiring(T, &moved, b"x", 9000).unwrap();
    engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
    engine.flush().unwrap();
    let early = engine.snapshot();
    let mut batch = WriteBatch::new();
    batch.put(T, &shared, b"Ada Bob").unwrap();
    batch.delete(T, &moved).unwrap();
    engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
    engine.compact().unwrap();
    let holds = |needle: &[u8]| {
        disk.paths()
            .into_iter()
            .any(|path| disk.read_file(&path).unwrap().windows(needle.len()).any(|w| w == needle))
    };
    assert!(holds(b"SECRETNAME") && holds(b"SECRETADDRESS"));
    let earlier = PurgeTarget::RemainsIn { stripe: shared.stripe() };
    engine.purge(&[earlier], PurgeSnapshots::End).unwrap();
    assert!(!holds(b"SECRETNAME"));
    assert!(holds(b"SECRETADDRESS"), "in another stripe, of which nothing was asked");
    engine.purge(&[PurgeTarget::Remains], PurgeSnapshots::End).unwrap();
    assert!(!holds(b"SECRETADDRESS"));
    assert_eq!(engine.get(T, &shared).unwrap().unwrap().value, "Ada Bob");
    assert!(matches!(early.get(T, &shared), Err(Error::SnapshotEnded)));
}

#[test]
fn an_ingest_is_visible_at_once_and_survives() {
    let (disk, clock) = (SimDisk::new(3), Arc::new(ManualClock::at(1000)));
    let engine = Engine::open_with(sim_env(&disk, &clock), "db", tiny()).unwrap();
    put(&engine, &Key::new("k0005"), b"old");
    let record = |n: u32| {
        Ok(IngestRecord {
            table: T,
            key: Key::new(format!("k{n:04}")),
            value: "new".into(),
            expires_at_ms: n.is_multiple_of(2).then_some(2000),
        })
    };
    let ingested = engine.ingest((0..300).map(record)).unwrap();
    assert_eq!(ingested.records, 300);
    put(&engine, &Key::new("k0006"), b"newer");
    let crashed = disk.crash(CrashPolicy::LoseAll);
    let engine = Engine::open_with(sim_env(&crashed, &clock), "db", tiny()).unwrap();
    assert_eq!(all(&engine).len(), 300);
    assert_eq!(engine.get(T, &Key::new("k0005")).unwrap().unwrap().value, "new");
    assert_eq!(engine.get(T, &Key::new("k0006")).unwrap().unwrap().value, "newer");
    clock.set(3000);
    assert_eq!(all(&engine).len(), 151);
    let (expired, _) = engine.expired(0, 1000).unwrap();
    assert_eq!(expired.len(), 149);
    engine.compact().unwrap();
    assert_eq!(engine.expired(0, 1000).unwrap().0.len(), 149);
    assert!(matches!(
        engine.ingest([record(5), record(4)]),
        Err(Error::Invalid { what }) if what.contains("record 1")
    ));
}

#[test]
fn asking_for_a_database_that_is_not_there_leaves_the_folder_as_it_was() {
    let (disk, clock) = (SimDisk::new(4), Arc::new(ManualClock::at(1000)));
    let env = sim_env(&disk, &clock);
    env.vfs.create_dir_all(Path::new("photos")).unwrap();
    let options = Options { create_if_missing: false, ..tiny() };
    for dir in ["photos", "nowhere"] {
        let opened = Engine::open_with(env.clone(), dir, options.clone());
        assert!(matches!(opened, Err(Error::NotFound { .. })), "{opened:?}");
        assert!(matches!(verify(&env, dir), Err(Error::NotFound { .. })));
    }
    assert_eq!(disk.paths(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn what_was_deleted_before_leaves_no_byte_and_what_is_there_stays() {
    let (disk, clock) = (SimDisk::new(2), Arc::new(ManualClock::at(1000)));
    let mut options = tiny();
    options.compression = kstone_core::Compression::None;
    options.bottom_compression = kstone_core::Compression::None;
    let engine = Engine::open_with(sim_env(&disk, &clock), "db", options).unwrap();
    let key = |n: u32| Key::with_sk("p", format!("DELETED{n}"));
    for n in 0..50 {
        put(&engine, &Key::with_sk("p", format!("kept{n}")), b"OVERWRITTEN");
        put(&engine, &Key::with_sk("p", format!("kept{n}")), b"ordinary");
        let mut batch = WriteBatch::new();
        batch.put_expiring(T, &key(n), b"SECRETVALUE", 500_000).unwrap();
        batch.put_expiring(T, &Key::with_sk("p", format!("soon{n}")), b"x", 600_000).unwrap();
        engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
    }
    engine.flush().unwrap();
    for n in 0..50 {
        let mut batch = WriteBatch::new();
        batch.delete(T, &key(n)).unwrap();
        drop(engine.write(&batch, Durability::Os).unwrap());
    }
    let target = PurgeTarget::RemainsIn { stripe: Key::new("p").stripe() };
    engine.purge(&[target], PurgeSnapshots::End).unwrap();
    for path in disk.paths() {
        let bytes = disk.read_file(&path).unwrap();
        for needle in [&b"DELETED"[..], b"SECRETVALUE", b"OVERWRITTEN"] {
            assert!(!bytes.windows(needle.len()).any(|w| w == needle), "{path:?} {needle:?}");
        }
    }
    assert_eq!(all(&engine).len(), 100);
    clock.set(700_000);
    assert_eq!(engine.expired(0, 1000).unwrap().0.len(), 50);
}

/// The files of the log, and their bytes.
fn log_files(env: &Env) -> (usize, u64) {
    let names = env.vfs.list(Path::new("db")).unwrap();
    let logs = names.iter().filter(|name| name.starts_with("wal-"));
    let lens = logs.map(|name| {
        let file = env.vfs.open(&Path::new("db").join(name), OpenMode::Read).unwrap();
        file.len().unwrap()
    });
    lens.fold((0, 0), |(files, bytes), len| (files + 1, bytes + len))
}

#[test]
fn a_closed_database_has_no_room_for_writes_to_come_and_makes_it_when_opened() {
    let (disk, clock) = (SimDisk::new(6), Arc::new(ManualClock::at(1000)));
    let env = sim_env(&disk, &clock);
    let engine = Engine::open_with(env.clone(), "db", tiny()).unwrap();
    let mut most = 0;
    for n in 0..1_000u32 {
        put(&engine, &Key::new(n.to_be_bytes().to_vec()), &[1; 100]);
        if n.is_multiple_of(50) {
            most = most.max(log_files(&env).0);
        }
    }
    assert!(most > 3, "the log had {most} segments");
    drop(engine);
    let (files, bytes) = log_files(&env);
    assert!(files <= 2 && bytes <= tiny().tuning.log_segment_bytes.unwrap(), "{files}: {bytes}");
    for _ in 0..3 {
        let engine = Engine::open_with(env.clone(), "db", tiny()).unwrap();
        assert_eq!(all(&engine).len(), 1_000);
        drop(engine);
        assert!(log_files(&env).1 <= bytes + 64, "{:?} after {bytes}", log_files(&env));
    }
}

#[test]
fn a_closed_database_leaves_less_than_a_mebibyte_of_log() {
    for kilobytes in [10, 500, 3_000, 9_000, 20_000] {
        let (disk, clock) = (SimDisk::new(7), Arc::new(ManualClock::at(1000)));
        let env = sim_env(&disk, &clock);
        let options = Options { memory_budget_bytes: 64 << 20, ..Options::default() };
        let engine = Engine::open_with(env.clone(), "db", options.clone()).unwrap();
        for n in 0..kilobytes {
            put(&engine, &Key::new(u32::to_be_bytes(n).to_vec()), &[1; 1000]);
        }
        drop(engine);
        let (files, bytes) = log_files(&env);
        assert!(files == 1 && bytes <= 1 << 20, "{kilobytes} KB: {files} files, {bytes} bytes");
        let engine = Engine::open_with(env.clone(), "db", options).unwrap();
        assert_eq!(all(&engine).len(), kilobytes as usize);
        assert!(log_files(&env).1 <= 2 << 20, "opened, it makes a small segment first");
    }
}
