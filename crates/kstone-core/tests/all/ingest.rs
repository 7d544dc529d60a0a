//! Bulk ingest: the same files with any number of threads, all of the records or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{T, get, put, scan, sim_env};
use kstone_core::env::{Env, ManualClock, OsThreads};
use kstone_core::{Engine, Error, IngestRecord, Key, Options, Result, Tuning, verify};
use kstone_sim::{CrashPolicy, Fault, FaultPlan, SimDisk};

/// What every file ends with: the only bytes that know the file's id.
const FOOTER_LEN: usize = 108;

/// Several blocks a run, several runs a file, several files a stripe; nothing is compacted.
fn options() -> Options {
    let tuning =
        Tuning { block_bytes: 256, file_bytes: 2 << 10, l1_bytes: 1 << 30, ..Tuning::default() };
    Options { memory_budget_bytes: 1 << 20, tuning, ..Options::default() }
}

fn open(disk: &SimDisk, with_threads: bool) -> Engine {
    let mut env = sim_env(disk, &Arc::new(ManualClock::at(1000)));
    if with_threads {
        env.threads = Some(Arc::new(OsThreads));
    }
    Engine::open_with(env, "db", options()).unwrap()
}

fn record(n: u32) -> IngestRecord {
    // Values that compress a little, each to a length of its own.
    let value = format!("{:x}", u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15)).repeat(4);
    IngestRecord {
        table: T,
        key: Key::with_sk(format!("user#{:03}", n / 250), format!("post#{n:05}")),
        value: value.into(),
        expires_at_ms: n.is_multiple_of(7).then_some(1_000_000 + u64::from(n % 100)),
    }
}

fn records(count: u32) -> impl Iterator<Item = Result<IngestRecord>> {
    (0..count).map(|n| Ok(record(n)))
}

/// The SST files of each stripe without their footers, in no order.
fn files(disk: &SimDisk) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut files: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for path in disk.paths() {
        let name = path.file_name().unwrap().to_str().unwrap();
        if let Some((stripe, _)) = name.split_once('-').filter(|_| name.ends_with(".sst")) {
            let mut bytes = disk.read_file(&path).unwrap();
            bytes.truncate(bytes.len().saturating_sub(FOOTER_LEN));
            files.entry(stripe.to_owned()).or_default().push(bytes);
        }
    }
    files.values_mut().for_each(|files| files.sort());
    files
}

#[test]
fn with_and_without_threads_an_ingest_makes_the_same_files() {
    // More than the queue holds, so that the caller takes part.
    const COUNT: u32 = 20_000;
    let (alone, shared) = (SimDisk::new(1), SimDisk::new(1));
    let one = open(&alone, false).ingest(records(COUNT)).unwrap();
    let engine = open(&shared, true);
    assert_eq!(engine.ingest(records(COUNT)).unwrap(), one);
    assert_eq!((one.records, one.files > 60), (u64::from(COUNT), true));
    assert_eq!(files(&alone), files(&shared));
    assert_eq!(scan(&engine, T).len(), COUNT as usize);
    drop(engine);
    let env = sim_env(&shared, &Arc::new(ManualClock::at(1000)));
    assert_eq!(verify(&env, "db").unwrap().faults, []);
}

#[test]
fn an_ingest_that_has_returned_survives_a_crash_with_any_number_of_threads() {
    for with_threads in [false, true] {
        let disk = SimDisk::new(2);
        let engine = open(&disk, with_threads);
        engine.ingest(records(5000)).unwrap();
        let crashed = disk.crash(CrashPolicy::LoseAll);
        drop(engine);
        assert_eq!(scan(&open(&crashed, false), T).len(), 5000);
    }
}

#[test]
fn an_error_while_files_are_written_reaches_the_caller_and_leaves_no_file() {
    for with_threads in [false, true] {
        // From the first file to be created to the last to be finished.
        for at in [0, 1, 2, 7, 50, 300] {
            let disk = SimDisk::new(3);
            let engine = open(&disk, with_threads);
            put(&engine, &Key::new("old"), b"here");
            disk.fail(FaultPlan::once(Fault::NoSpace, disk.ops() + at));
            let failed = engine.ingest(records(5000));
            assert!(matches!(failed, Err(Error::DiskFull { .. })), "{at}: {failed:?}");
            assert_eq!(files(&disk), BTreeMap::new(), "{at}, threads: {with_threads}");
            disk.heal();
            assert_eq!(get(&engine, &Key::new("old")).as_deref(), Some(&b"here"[..]));
            assert_eq!(scan(&engine, T).len(), 1);
            assert_eq!(engine.ingest(records(5000)).unwrap().records, 5000);
            assert_eq!(scan(&engine, T).len(), 5001);
        }
    }
}

#[test]
fn an_ingest_that_is_given_up_leaves_no_file() {
    for with_threads in [false, true] {
        let disk = SimDisk::new(4);
        let engine = open(&disk, with_threads);
        let mut ingester = engine.ingester().unwrap();
        for n in 0..3000 {
            let IngestRecord { table, key, value, .. } = record(n);
            ingester.add(table, &key, &value, None).unwrap();
        }
        // Threads may not have begun yet.
        assert!(with_threads || !files(&disk).is_empty(), "some were written already");
        drop(ingester);
        assert_eq!(files(&disk), BTreeMap::new());
        let stops = (0..2000).map(|n| if n < 1999 { Ok(record(n)) } else { Err(Error::Closed) });
        assert!(matches!(engine.ingest(stops), Err(Error::Closed)));
        assert_eq!(files(&disk), BTreeMap::new());
        assert_eq!(scan(&engine, T).len(), 0);
    }
}

#[test]
fn a_record_that_is_refused_is_left_out_and_the_others_are_there() {
    let engine = Engine::open_with(Env::memory(), "db", options()).unwrap();
    let mut ingester = engine.ingester().unwrap();
    ingester.add(T, &Key::new("b"), b"1", None).unwrap();
    for behind in ["a", "b"] {
        assert!(matches!(
            ingester.add(T, &Key::new(behind), b"2", None),
            Err(Error::Invalid { what }) if what.contains("record 1")
        ));
    }
    ingester.add(T, &Key::with_sk("b", ""), b"3", None).unwrap();
    ingester.add(T, &Key::new("c"), b"4", None).unwrap();
    assert_eq!(ingester.finish().unwrap().records, 3);
    let found: Vec<_> = scan(&engine, T).into_iter().map(|r| (r.key, r.record.value)).collect();
    let wanted = [("c", None, "4"), ("b", None, "1"), ("b", Some(""), "3")];
    assert_eq!(found.len(), wanted.len());
    for (pk, sk, value) in wanted {
        let key = sk.map_or_else(|| Key::new(pk), |sk| Key::with_sk(pk, sk));
        assert!(found.contains(&(key, value.into())), "{found:?}");
    }
}

#[test]
fn partition_keys_that_begin_alike_go_to_their_own_stripes() {
    let engine = Engine::open_with(Env::memory(), "db", options()).unwrap();
    let pks: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0\0", b"a\0\x01", b"a\0\xff"];
    let sks: [&[u8]; 5] = [b"", b"\0", b"\0\x02", b"\x01", b"\xff\0"];
    let mut keys: Vec<Key> = pks.iter().map(|pk| Key::new(pk.to_vec())).collect();
    for (pk, sk) in pks.iter().flat_map(|pk| sks.iter().map(move |sk| (pk, sk))) {
        keys.push(Key::with_sk(pk.to_vec(), sk.to_vec()));
    }
    keys.sort();
    let mut ingester = engine.ingester().unwrap();
    for (n, key) in keys.iter().enumerate() {
        ingester.add(T, key, n.to_string().as_bytes(), None).unwrap();
    }
    assert_eq!(ingester.finish().unwrap().records, 48);
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(get(&engine, key), Some(n.to_string().into_bytes()), "{key:?}");
    }
    assert_eq!(scan(&engine, T).len(), 48);
}
