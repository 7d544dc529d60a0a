//! Key design requirements, tested on the engine: ordering, prefixes, ranges, direction.
//!
//! The lines about `Key` itself (both hex forms of `encode`, the three stripes, the chapter's list
//! of five keys, equal stripes for equal partition keys) are unit tests in `src/key/`.
//!
//! `db.put`, `put_with_sk` and `Query::new(pk)` are the embedded database's names for what is tested
//! here on the engine: batches, gets, and `partition(pk)` with prefix, range and direction.

use std::collections::BTreeSet;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::support::{Dice, T, delete, get, pks_of_different_stripes, put, scan, sim_env, tiny};
use kstone_core::env::{Env, ManualClock};
use kstone_core::{
    Compression, Durability, Engine, Error, KEY_LEN_MAX, Key, Options, Result, STRIPES, ScanCursor,
    TableId, Tuning, VALUE_LEN_MAX, WriteBatch, stripe_of, verify,
};
use kstone_sim::{CrashPolicy, SimDisk};
use proptest::prelude::*;

/// A database on a simulated disk, which can be closed, crashed and looked into.
struct Machine {
    disk: SimDisk,
    clock: Arc<ManualClock>,
    options: Options,
}

impl Machine {
    fn new(options: Options) -> Self {
        Machine { disk: SimDisk::new(4), clock: Arc::new(ManualClock::at(1000)), options }
    }

    fn open(&self) -> Engine {
        Engine::open_with(sim_env(&self.disk, &self.clock), "db", self.options.clone()).unwrap()
    }

    fn crash(&mut self) {
        self.disk = self.disk.crash(CrashPolicy::LoseAll);
    }

    /// The names of the SST files.
    fn ssts(&self) -> Vec<String> {
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut names: Vec<_> = self.disk.paths().iter().map(|path| name(path)).collect();
        names.retain(|name| name.ends_with(".sst"));
        names
    }
}

/// Options under which nothing is flushed or merged unless the test says so.
fn by_hand() -> Options {
    Options {
        memory_budget_bytes: 8 << 20,
        tuning: Tuning { l0_compact_files: 100, l0_stop_files: 200, ..Tuning::default() },
        ..Options::default()
    }
}

// Order.

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn within_a_partition_records_come_in_byte_order_of_sort_keys_of_any_length(
        sks in prop::collection::btree_set(prop::collection::vec(any::<u8>(), 0..40), 0..30),
        long in prop::collection::btree_set(prop::collection::vec(0..3u8, 200..2000), 0..3),
        flush in any::<bool>(),
        shuffle in any::<u64>(),
    ) {
        let machine = Machine::new(tiny());
        let engine = machine.open();
        let wanted: BTreeSet<Vec<u8>> = sks.into_iter().chain(long).collect();
        let mut order: Vec<&Vec<u8>> = wanted.iter().collect();
        let mut dice = Dice::new(shuffle);
        for at in (1..order.len()).rev() {
            order.swap(at, dice.below(at as u64 + 1) as usize);
        }
        for sk in order {
            put(&engine, &Key::with_sk("pk", sk.clone()), b"v");
        }
        if flush {
            engine.flush().unwrap();
        }
        let found = |reverse: bool| -> Vec<Vec<u8>> {
            let query = engine.partition(T, "pk");
            let query = if reverse { query.reverse() } else { query };
            query.iter().unwrap().map(|r| r.unwrap().key.sk.unwrap().to_vec()).collect()
        };
        prop_assert!(found(false).iter().eq(&wanted));
        prop_assert!(found(true).iter().eq(wanted.iter().rev()));
    }
}

#[test]
fn the_chapters_five_keys_come_back_in_the_listed_order() {
    let engine = Engine::memory(Options::default()).unwrap();
    let listed = [
        Key::new("user#123"),
        Key::with_sk("user#123", "post#001"),
        Key::with_sk("user#123", "post#002"),
        Key::new("user#124"),
        Key::with_sk("user#124", "post#001"),
    ];
    for key in listed.iter().rev() {
        put(&engine, key, b"v");
    }
    let pks = engine.snapshot().partition_keys(T, b"user#").unwrap();
    let found: Vec<Key> = pks
        .flat_map(|pk| engine.partition(T, pk.unwrap()).iter().unwrap())
        .map(|record| record.unwrap().key)
        .collect();
    assert_eq!(found, listed);
}

// Put, get, delete, query, scan.

#[test]
fn put_get_and_delete_work_with_and_without_a_sort_key() {
    let engine = Engine::memory(Options::default()).unwrap();
    let keys = [Key::new("user#1"), Key::with_sk("user#1", "post#001"), Key::with_sk("user#1", "")];
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(get(&engine, key), None);
        put(&engine, key, &[n as u8]);
    }
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(get(&engine, key), Some(vec![n as u8]));
    }
    delete(&engine, &keys[1]);
    delete(&engine, &keys[1]);
    assert_eq!(keys.map(|key| get(&engine, &key).is_some()), [true, false, true]);
}

#[test]
fn a_query_takes_prefix_range_direction_and_limit() {
    let engine = Engine::memory(Options::default()).unwrap();
    for sk in ["post#001", "post#002", "post#003", "profile", "like#9"] {
        put(&engine, &Key::with_sk("user#1", sk), b"v");
    }
    put(&engine, &Key::with_sk("user#2", "post#001"), b"v");
    let sks = |records: kstone_core::PartitionIter| -> Vec<String> {
        records.map(|r| String::from_utf8(r.unwrap().key.sk.unwrap().to_vec()).unwrap()).collect()
    };
    let query = || engine.partition(T, "user#1");
    let posts = query().prefix("post#").iter().unwrap();
    assert_eq!(sks(posts), ["post#001", "post#002", "post#003"]);
    let between = query().range("post#002"..="profile").iter().unwrap();
    assert_eq!(sks(between), ["post#002", "post#003", "profile"]);
    let newest = query().prefix("post#").reverse().iter().unwrap().take(1);
    assert_eq!(newest.map(|r| r.unwrap().key.sk.unwrap()).collect::<Vec<_>>(), ["post#003"]);
}

#[test]
fn the_segments_of_a_parallel_scan_are_disjoint_and_complete() {
    let engine = Engine::memory(Options::default()).unwrap();
    let keys: BTreeSet<Key> = (0..500).map(|n| Key::new(format!("user#{n}"))).collect();
    keys.iter().for_each(|key| put(&engine, key, b"v"));
    for total in [1, 2, 5, 256, 300] {
        let snapshot = engine.snapshot();
        let segment = &|n: u32| -> Vec<Key> {
            let Some(cursor) = ScanCursor::segment(n, total).unwrap() else { return Vec::new() };
            snapshot.scan(T, cursor).map(|record| record.unwrap().key).collect()
        };
        let found: Vec<Key> = std::thread::scope(|scope| {
            let scanners: Vec<_> = (0..total).map(|n| scope.spawn(move || segment(n))).collect();
            scanners.into_iter().flat_map(|scanner| scanner.join().unwrap()).collect()
        });
        assert_eq!(found.len(), keys.len(), "{total} segments share a record or miss one");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), keys);
    }
}

// Files and stripes.

#[test]
fn files_are_named_after_their_stripe_and_the_log_is_shared() {
    let machine = Machine::new(by_hand());
    let engine = machine.open();
    for pk in ["user#1", "user#2", "user#3"] {
        put(&engine, &Key::new(pk), b"v");
    }
    engine.flush().unwrap();
    let stripes: Vec<String> = machine
        .ssts()
        .iter()
        .map(|name| {
            let (stripe, id) = name.strip_suffix(".sst").unwrap().split_once('-').unwrap();
            assert!(id.parse::<u64>().is_ok() && !id.starts_with('0'), "{name}");
            stripe.to_owned()
        })
        .collect();
    // user#2 lies in stripe 32, user#1 in 154, user#3 in 182.
    assert_eq!(stripes, ["032", "154", "182"]);
}

#[test]
fn one_hot_stripe_flushes_and_the_others_do_not() {
    let machine = Machine::new(Options { stripe_records_max: Some(1000), ..by_hand() });
    let engine = machine.open();
    let hot = stripe_of(b"user#1");
    let cold: Vec<_> =
        (2..60).map(|n| format!("user#{n}")).filter(|pk| stripe_of(pk.as_bytes()) != hot).collect();
    cold.iter().for_each(|pk| put(&engine, &Key::new(pk.clone()), b"v"));
    for n in 0..999 {
        put(&engine, &Key::with_sk("user#1", format!("{n:04}")), b"v");
    }
    assert_eq!(machine.ssts(), Vec::<String>::new());
    put(&engine, &Key::with_sk("user#1", "0999"), b"v");
    let names = machine.ssts();
    assert_eq!(names.len(), 1);
    assert!(names[0].starts_with(&format!("{hot:03}-")), "{names:?}");
    let stats = engine.stats();
    assert_eq!(stats.stripes[usize::from(hot)].memtable_bytes, 0);
    let cold_stripes: BTreeSet<u8> = cold.iter().map(|pk| stripe_of(pk.as_bytes())).collect();
    assert!(cold_stripes.iter().all(|&s| stats.stripes[usize::from(s)].memtable_bytes > 0));
}

#[test]
fn the_newest_sst_wins_after_reopen() {
    let mut machine = Machine::new(by_hand());
    let key = Key::with_sk("user#1", "post#001");
    let engine = machine.open();
    for value in [b"first", b"newer", b"third"] {
        put(&engine, &key, value);
        engine.flush().unwrap();
    }
    assert_eq!(machine.ssts().len(), 3);
    drop(engine);
    assert_eq!(get(&machine.open(), &key).unwrap(), b"third");
    machine.crash();
    assert_eq!(get(&machine.open(), &key).unwrap(), b"third");
    assert_eq!(machine.ssts().len(), 3);
}

#[test]
fn tombstones_survive_flush_and_reopen() {
    let mut machine = Machine::new(by_hand());
    let (gone, kept) = (Key::with_sk("user#1", "a"), Key::with_sk("user#1", "b"));
    let engine = machine.open();
    put(&engine, &gone, b"v");
    put(&engine, &kept, b"v");
    engine.flush().unwrap();
    delete(&engine, &gone);
    machine.crash();
    let engine = machine.open();
    assert_eq!((get(&engine, &gone), get(&engine, &kept)), (None, Some(b"v".to_vec())));
    engine.flush().unwrap();
    drop(engine);
    let engine = machine.open();
    assert_eq!(machine.ssts().len(), 2);
    assert_eq!((get(&engine, &gone), get(&engine, &kept)), (None, Some(b"v".to_vec())));
    assert_eq!(scan(&engine, T).len(), 1);
    engine.compact().unwrap();
    assert_eq!(get(&engine, &gone), None);
    assert_eq!(engine.stats().total.entries, 1, "nothing is left of what was deleted");
}

#[test]
fn sequence_numbers_go_on_after_reopen() {
    let mut machine = Machine::new(by_hand());
    let mut last = 0;
    for round in 0..6 {
        let engine = machine.open();
        let mut batch = WriteBatch::new();
        batch.put(T, &Key::new("k"), b"v").unwrap();
        let commit = engine.write(&batch, Durability::Sync).unwrap();
        let seq = commit.seq();
        commit.wait().unwrap();
        assert!(seq > last, "round {round}: {seq} after {last}");
        assert_eq!(engine.get(T, &Key::new("k")).unwrap().unwrap().version, seq);
        last = seq;
        match round % 3 {
            0 => {}
            1 => engine.flush().unwrap(),
            _ => machine.crash(),
        }
    }
}

#[test]
fn query_and_scan_see_flushed_data_and_what_is_in_memory_alike() {
    let machine = Machine::new(by_hand());
    let engine = machine.open();
    let key = |n: u32| Key::with_sk("user#1", format!("{n:03}"));
    (0..50).for_each(|n| put(&engine, &key(n), b"flushed"));
    engine.flush().unwrap();
    (25..75).for_each(|n| put(&engine, &key(n), b"memory"));
    delete(&engine, &key(0));
    delete(&engine, &key(74));
    let wanted: Vec<(Key, Vec<u8>)> = (1..74)
        .map(|n| (key(n), if n < 25 { b"flushed".to_vec() } else { b"memory".to_vec() }))
        .collect();
    let check = |engine: &Engine| {
        let pair = |r: kstone_core::KeyedRecord| (r.key, r.record.value.to_vec());
        let queried = engine.partition(T, "user#1").iter().unwrap().map(|r| pair(r.unwrap()));
        assert!(queried.eq(wanted.iter().cloned()));
        assert!(scan(engine, T).into_iter().map(pair).eq(wanted.iter().cloned()));
    };
    check(&engine);
    drop(engine);
    check(&machine.open());
}

// The five key-design patterns of the chapter.

#[test]
fn pattern_1_hierarchical_keys_are_listed_by_prefix() {
    let engine = Engine::memory(Options::default()).unwrap();
    for pk in ["tenant#beta:user#456", "tenant#acme:user#123", "tenant#acme:order#789"] {
        put(&engine, &Key::new(pk), b"{}");
    }
    let acme: Vec<_> = engine
        .snapshot()
        .partition_keys(T, b"tenant#acme:")
        .unwrap()
        .collect::<Result<_>>()
        .unwrap();
    assert_eq!(acme, ["tenant#acme:order#789", "tenant#acme:user#123"]);
}

#[test]
fn pattern_2_timestamps_as_sort_keys_give_time_ranges() {
    let engine = Engine::memory(Options::default()).unwrap();
    for hour in 8..14 {
        let sk = format!("2024-01-15T{hour:02}:00:00Z");
        put(&engine, &Key::with_sk("sensor#temperature", sk), b"21.5");
    }
    let range = "2024-01-15T09:30:00Z".."2024-01-15T12:00:00Z";
    assert_eq!(engine.partition(T, "sensor#temperature").range(range).iter().unwrap().count(), 2);
    for timestamp in [1_705_312_800, 1_705_399_200, 1_705_226_400_i64] {
        let sk = format!("{:020}", i64::MAX - timestamp);
        put(&engine, &Key::with_sk("user#123:posts", sk), &timestamp.to_be_bytes());
    }
    let latest = engine.partition(T, "user#123:posts").iter().unwrap().next().unwrap().unwrap();
    assert_eq!(latest.record.value[..], 1_705_399_200_i64.to_be_bytes());
}

#[test]
fn pattern_3_composite_sort_keys_order_by_several_attributes() {
    let engine = Engine::memory(Options::default()).unwrap();
    for (category, cents, id) in [("book", 1999, "b"), ("book", 250, "a"), ("album", 99_999, "c")] {
        put(&engine, &Key::with_sk("products", format!("{category}#{cents:010}#{id}")), b"{}");
    }
    let sks: Vec<_> = engine
        .partition(T, "products")
        .prefix("book#")
        .iter()
        .unwrap()
        .map(|record| record.unwrap().key.sk.unwrap())
        .collect();
    assert_eq!(sks, ["book#0000000250#a", "book#0000001999#b"]);
}

#[test]
fn pattern_4_the_latest_version_is_the_first_in_reverse() {
    let engine = Engine::memory(Options::default()).unwrap();
    for version in ["v1", "v2", "v3"] {
        put(&engine, &Key::with_sk("doc#readme", version), version.as_bytes());
    }
    let latest = engine.partition(T, "doc#readme").reverse().iter().unwrap().next();
    assert_eq!(latest.unwrap().unwrap().record.value, "v3");
}

#[test]
fn pattern_5_aggregates_live_beside_what_they_sum_up() {
    let engine = Engine::memory(Options::default()).unwrap();
    for sk in ["2024-01-15#user#123", "2024-01-15#user#456", "daily#2024-01-15", "monthly#2024-01"]
    {
        put(&engine, &Key::with_sk("stats#page:/home", sk), b"{}");
    }
    let count = |prefix: &'static str| {
        engine.partition(T, "stats#page:/home").prefix(prefix).iter().unwrap().count()
    };
    assert_eq!((count("2024-01-15#"), count("daily#"), count("monthly#")), (2, 1, 1));
}

// Limits.

#[test]
fn a_second_open_is_refused_with_the_lock_error_until_the_first_is_closed() {
    let machine = Machine::new(tiny());
    let engine = machine.open();
    let open = || Engine::open_with(sim_env(&machine.disk, &machine.clock), "db", tiny());
    let Err(error) = open() else { panic!("opened twice") };
    assert!(matches!(error, Error::Locked { .. }));
    assert!(error.to_string().contains("in use by another process"), "{error}");
    drop(engine);
    open().unwrap();
}

#[test]
fn a_value_of_16_mib_round_trips_and_one_byte_more_is_refused() {
    let env = Env { ..Env::memory() };
    let options = Options { bottom_compression: Compression::Lz4, ..Options::default() };
    let engine = Engine::open_with(env.clone(), "db", options.clone()).unwrap();
    let mut value = vec![0; VALUE_LEN_MAX + 1];
    let mut dice = Dice::new(16);
    value.iter_mut().step_by(7).for_each(|byte| *byte = dice.below(256) as u8);
    assert_eq!(VALUE_LEN_MAX, 16 * 1024 * 1024);
    let key = Key::new("large");
    let mut batch = WriteBatch::new();
    let refused = batch.put(T, &key, &value);
    assert!(matches!(refused, Err(Error::ValueTooLong { len, .. }) if len == VALUE_LEN_MAX + 1));
    assert!(batch.is_empty());
    value.pop();
    put(&engine, &key, &value);
    assert!(get(&engine, &key).unwrap() == value);
    engine.flush().unwrap();
    assert!(get(&engine, &key).unwrap() == value);
    drop(engine);
    let engine = Engine::open_with(env, "db", options).unwrap();
    assert!(get(&engine, &key).unwrap() == value);
}

#[test]
fn a_key_of_64_kib_round_trips_and_one_byte_more_is_refused() {
    let machine = Machine::new(tiny());
    let engine = machine.open();
    assert_eq!(KEY_LEN_MAX, 64 * 1024);
    let longest = Key::with_sk(vec![0; KEY_LEN_MAX - 100], vec![0xff; 100]);
    put(&engine, &longest, b"v");
    engine.flush().unwrap();
    assert_eq!(get(&engine, &longest).unwrap(), b"v");
    assert_eq!(engine.partition(T, longest.pk.clone()).iter().unwrap().count(), 1);
    let longer = Key::with_sk(longest.pk.clone(), vec![0xff; 101]);
    let mut batch = WriteBatch::new();
    for refused in [batch.put(T, &longer, b"v"), batch.delete(T, &longer)] {
        assert!(matches!(refused, Err(Error::KeyTooLong { len, .. }) if len == KEY_LEN_MAX + 1));
    }
    assert!(batch.is_empty());
}

// Dropping.

#[test]
fn dropping_a_table_costs_the_same_whatever_it_holds_and_gives_the_room_back() {
    let machine = Machine::new(by_hand());
    let engine = machine.open();
    let (empty, full) = (engine.create_table().unwrap(), engine.create_table().unwrap());
    let mut batch = WriteBatch::new();
    for n in 0..5000 {
        batch.put(full, &Key::new(format!("user#{n}")), &[7; 100]).unwrap();
    }
    engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
    engine.flush().unwrap();
    assert_eq!(engine.stats().total.files, STRIPES as u64);
    let cost = |table: TableId| {
        let before = engine.stats().log_bytes_written;
        engine.drop_table(table).unwrap();
        engine.stats().log_bytes_written - before
    };
    assert_eq!(cost(full), cost(empty));
    assert!(matches!(engine.get(full, &Key::new("user#1")), Err(Error::NoSuchTable { .. })));
    assert!(matches!(engine.drop_table(full), Err(Error::NoSuchTable { .. })));
    assert!(engine.create_table().unwrap() > full, "ids are not used twice");
    engine.compact().unwrap();
    assert_eq!((engine.stats().total.files, machine.ssts().len()), (0, 0));
}

#[test]
fn dropping_a_partition_costs_the_same_whatever_it_holds_and_gives_the_room_back() {
    let machine = Machine::new(by_hand());
    let engine = machine.open();
    for n in 0..2000 {
        put(&engine, &Key::with_sk("full", format!("{n:05}")), &[7; 100]);
    }
    put(&engine, &Key::with_sk("bystander", "a"), b"v");
    engine.flush().unwrap();
    let cost = |pk: &str| {
        let before = engine.stats().log_bytes_written;
        let mut batch = WriteBatch::new();
        batch.drop_partition(T, pk.as_bytes()).unwrap();
        engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
        engine.stats().log_bytes_written - before
    };
    assert_eq!(cost("full"), cost("none"));
    assert_eq!(engine.partition(T, "full").iter().unwrap().count(), 0);
    put(&engine, &Key::with_sk("full", "again"), b"v");
    engine.compact().unwrap();
    assert_eq!(engine.stats().total.entries, 2, "what was dropped is gone, marks included");
    assert_eq!(scan(&engine, T).len(), 2);
    drop(engine);
    assert_eq!(verify(&sim_env(&machine.disk, &machine.clock), "db").unwrap().entries, 2);
}

// Iterators.

#[test]
fn iterators_hold_no_lock_while_the_caller_works() {
    let machine = Machine::new(tiny());
    let engine = machine.open();
    let key = |n: u32| Key::with_sk("user#1", format!("{n:03}"));
    (0..40).for_each(|n| put(&engine, &key(n), b"before"));
    let (mut queried, mut scanned) = (0, 0);
    // The same thread writes to the same stripe, flushes, merges and drops while it iterates.
    for (n, record) in engine.partition(T, "user#1").iter().unwrap().enumerate() {
        assert_eq!(record.unwrap().record.value, "before");
        put(&engine, &key(n as u32), b"after");
        delete(&engine, &key(39 - n as u32));
        if n % 10 == 0 {
            engine.compact().unwrap();
        }
        queried += 1;
    }
    put(&engine, &key(0), b"left");
    for record in engine.snapshot().scan(T, ScanCursor::start()) {
        record.unwrap();
        let mut batch = WriteBatch::new();
        batch.drop_partition(T, b"user#1").unwrap();
        let locked = engine.lock([&key(0)]).unwrap();
        locked.commit(&batch, Durability::Sync).unwrap().wait().unwrap();
        engine.compact().unwrap();
        scanned += 1;
    }
    assert_eq!(queried, 40);
    assert!(scanned > 0);
    assert_eq!(scan(&engine, T), []);
}

// Commits as futures.

/// Counts how often it was woken, and wakes the thread that made it.
struct Alarm {
    rings: AtomicU64,
    thread: std::thread::Thread,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let alarm = Arc::new(Alarm { rings: AtomicU64::new(0), thread: std::thread::current() });
    let waker = Waker::from(Arc::clone(&alarm));
    let mut future = pin!(future);
    let mut heard = 0;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        // Only the waker ends the wait: a future that forgets it hangs here.
        while alarm.rings.load(Ordering::SeqCst) == heard {
            std::thread::park();
        }
        heard = alarm.rings.load(Ordering::SeqCst);
    }
}

fn commit(engine: &Engine, n: u32) -> kstone_core::Commit {
    let mut batch = WriteBatch::new();
    batch.put(T, &Key::new(format!("user#{n}")), b"v").unwrap();
    engine.write(&batch, Durability::Sync).unwrap()
}

#[test]
fn a_commit_can_be_awaited() {
    let engine = Engine::memory(tiny()).unwrap();
    for n in 0..50 {
        let commit = commit(&engine, n);
        let seq = commit.seq();
        block_on(commit.into_future()).unwrap();
        assert!(engine.durable_seq() >= seq);
        block_on(engine.durable(seq)).unwrap();
    }
}

#[test]
fn a_commit_is_visible_before_it_is_durable_so_that_commits_can_be_pipelined() {
    let engine = Engine::memory(Options::default()).unwrap();
    let before = engine.stats().syncs;
    let commits: Vec<_> = (0..500).map(|n| commit(&engine, n)).collect();
    assert_eq!(scan(&engine, T).len(), 500);
    let last = commits.last().unwrap().seq();
    // Waiting for the last is waiting for all.
    for commit in commits.into_iter().rev() {
        block_on(commit.into_future()).unwrap();
    }
    assert!(engine.durable_seq() >= last);
    let syncs = engine.stats().syncs - before;
    assert!(syncs <= 50, "{syncs} syncs for 500 pipelined commits");
}

// Bounds.

#[test]
fn memory_and_files_stay_bounded_while_writers_push() {
    const BUFFER_BYTES: u64 = 128 << 10;
    const THREADS: u64 = 4;
    let mut options = tiny();
    options.stripe_records_max = None;
    assert_eq!(options.memory_budget_bytes as u64, 2 * BUFFER_BYTES);
    let engine = Engine::memory(options.clone()).unwrap();
    let pks = pks_of_different_stripes(16);
    let highest = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, pks, highest, options) = (&engine, &pks, &highest, &options);
            scope.spawn(move || {
                let mut dice = Dice::new(thread + 1);
                for n in 0..2500 {
                    let pk = pks[dice.below(16) as usize].clone();
                    let key = Key::with_sk(pk, dice.below(50).to_be_bytes().to_vec());
                    let mut batch = WriteBatch::new();
                    batch.put(T, &key, &[n as u8; 300]).unwrap();
                    engine.write(&batch, Durability::Os).unwrap().wait().unwrap();
                    if n % 50 == 0 {
                        let stats = engine.stats();
                        highest.fetch_max(stats.memtable_bytes, Ordering::Relaxed);
                        let l0_files = stats.stripes.iter().map(|s| s.l0_files).max();
                        assert!(l0_files <= Some(options.tuning.l0_stop_files as u64));
                    }
                }
            });
        }
    });
    // Each writer may have been let in with its one record when the buffer was all but full.
    let highest = highest.into_inner();
    assert!(highest <= BUFFER_BYTES + THREADS * 4096, "{highest} bytes of memtables");
    assert!(highest > BUFFER_BYTES / 4, "the writers never came near the limit");
    engine.flush().unwrap();
    engine.wait_idle().unwrap();
    let stats = engine.stats();
    assert_eq!(scan(&engine, T).len(), 800);
    // 800 records live, 10,000 written: files hold the live ones and a few overwritten ones.
    assert!(stats.total.entries < 4 * 800, "{} entries", stats.total.entries);
    assert!(stats.stripes.iter().all(|s| s.l0_files < options.tuning.l0_compact_files as u64));
    assert!(stats.log_bytes <= 4 * BUFFER_BYTES, "{} bytes of log", stats.log_bytes);
}
