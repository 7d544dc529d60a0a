//! The memtable against a plain sorted map, and beside concurrent readers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;

use super::arena::INLINE_VALUE_LEN_MAX;
use super::*;

type EntryKey = (Vec<u8>, Reverse<Seq>);
type Model = BTreeMap<EntryKey, (Kind, u64, Vec<u8>)>;

/// A memtable, a cursor that stays open on it, and what both should do.
struct Pair {
    memtable: Arc<Memtable>,
    pool: ChunkPool,
    cursor: MemCursor,
    model: Model,
    model_cursor: Option<EntryKey>,
}

impl Pair {
    fn new() -> Self {
        let memtable = Arc::new(Memtable::new());
        let cursor = memtable.cursor();
        Pair { memtable, pool: ChunkPool::none(), cursor, model: Model::new(), model_cursor: None }
    }

    fn insert(&mut self, key: &[u8], seq: Seq, kind: Kind, expires_at_ms: u64, value: &[u8]) {
        let is_warm = seq.is_multiple_of(64);
        self.memtable.insert(
            EntryRef { key, seq, kind, expires_at_ms, value },
            is_warm,
            &self.pool,
        );
        self.model.insert((key.to_vec(), Reverse(seq)), (kind, expires_at_ms, value.to_vec()));
    }

    fn put(&mut self, key: &[u8], seq: Seq) {
        self.insert(key, seq, Kind::Put, 0, &seq.to_le_bytes());
    }

    fn check_get(&self, key: &[u8], max_seq: Seq) {
        let expected = self
            .model
            .range((key.to_vec(), Reverse(max_seq))..)
            .next()
            .filter(|((found, _), _)| found == key)
            .map(|((_, seq), (kind, expires_at_ms, value))| MemHit {
                seq: seq.0,
                kind: *kind,
                expires_at_ms: *expires_at_ms,
                value: value.clone().into(),
            });
        assert_eq!(self.memtable.get(key, max_seq), expected, "{key:?} at {max_seq}");
    }

    fn step(&mut self, step: &Step) {
        let model = &self.model;
        let here = self.model_cursor.take();
        let place = |key: &Vec<u8>, seq: &Seq| (key.clone(), Reverse(*seq));
        self.model_cursor = match step {
            Step::Seek(key, seq) => model.range(place(key, seq)..).next(),
            Step::SeekBefore(key, seq) => model.range(..place(key, seq)).next_back(),
            Step::First => model.first_key_value(),
            Step::Last => model.last_key_value(),
            Step::Next => here.and_then(|here| model.range((Excluded(here), Unbounded)).next()),
            Step::Prev => here.and_then(|here| model.range(..here).next_back()),
        }
        .map(|(place, _)| place.clone());
        match step {
            Step::Seek(key, seq) => self.cursor.seek(key, *seq),
            Step::SeekBefore(key, seq) => self.cursor.seek_before(key, *seq),
            Step::First => self.cursor.seek_first(),
            Step::Last => self.cursor.seek_last(),
            Step::Next => self.cursor.next(),
            Step::Prev => self.cursor.prev(),
        }
        let expected = self.model_cursor.as_ref().map(|place| {
            let (kind, expires_at_ms, value) = &model[place];
            let (key, Reverse(seq)) = place;
            EntryRef { key, seq: *seq, kind: *kind, expires_at_ms: *expires_at_ms, value }
        });
        assert_eq!(self.cursor.entry(), expected, "after {step:?}");
        assert_eq!(self.cursor.valid(), expected.is_some());
        assert_eq!(self.cursor.value_bytes(), expected.map_or(&[][..], |entry| entry.value));
    }

    fn check_everything(&mut self) {
        for (first, onward) in [(Step::First, Step::Next), (Step::Last, Step::Prev)] {
            self.step(&first);
            for _ in 0..self.model.len() {
                assert!(self.cursor.valid());
                self.step(&onward);
            }
            assert!(!self.cursor.valid());
        }
        for (key, Reverse(seq)) in self.model.keys() {
            self.check_get(key, *seq);
            self.check_get(key, seq - 1);
            self.check_get(key, Seq::MAX);
        }
        let count = |kind| self.model.values().filter(|(other, ..)| *other == kind).count() as u64;
        let memtable = &self.memtable;
        assert_eq!(memtable.len(), self.model.len() as u64);
        assert_eq!(memtable.is_empty(), self.model.is_empty());
        assert_eq!(memtable.puts(), count(Kind::Put));
        assert_eq!(memtable.deletes(), count(Kind::Delete));
        assert_eq!(memtable.marks(), count(Kind::DropPartition));
        assert_eq!(
            memtable.expiring(),
            self.model.values().filter(|(_, expires_at_ms, _)| *expires_at_ms != 0).count() as u64
        );
        assert_eq!(memtable.key_bytes(), self.model.keys().map(|(k, _)| k.len() as u64).sum());
        let value_bytes = self.model.values().map(|(.., value)| value.len() as u64).sum();
        assert_eq!(memtable.value_bytes(), value_bytes);
        let seqs = || self.model.keys().map(|(_, seq)| seq.0);
        assert_eq!((memtable.min_seq(), memtable.max_seq()), (seqs().min(), seqs().max()));
    }
}

#[derive(Debug, Clone)]
enum Step {
    Seek(Vec<u8>, Seq),
    SeekBefore(Vec<u8>, Seq),
    First,
    Last,
    Next,
    Prev,
}

#[derive(Debug, Clone)]
enum Op {
    Insert(Vec<u8>, Seq, Kind, u64, Vec<u8>),
    Get(Vec<u8>, Seq),
    Step(Step),
}

/// Keys that share prefixes shorter and longer than what a node can keep, and end in few distinct
/// bytes, zeros among them: heads that are filled up with zeros must not be taken for equal keys.
fn any_key() -> impl Strategy<Value = Vec<u8>> {
    let prefix = prop::sample::select(vec![
        Vec::new(),
        b"\0\0\0\0user#".to_vec(),
        b"\0\0\0\0user#1234567\0\x02post#".to_vec(),
        [b'p'; 60].to_vec(),
        vec![0xff; 4],
    ]);
    let rest = proptest::collection::vec(prop::sample::select(vec![0u8, 1, b'p', 0xff]), 0..12);
    (prefix, rest).prop_map(|(mut key, rest)| {
        key.extend(rest);
        key
    })
}

fn any_insert() -> impl Strategy<Value = Op> {
    let kind = prop::sample::select(vec![Kind::Put, Kind::Delete, Kind::DropPartition]);
    let value = prop_oneof![
        9 => proptest::collection::vec(any::<u8>(), 0..40),
        1 => Just(vec![7; INLINE_VALUE_LEN_MAX + 1]),
    ];
    (any_key(), 1u64..9, kind, prop::sample::select(vec![0, 5]), value)
        .prop_map(|(key, seq, kind, expires, value)| Op::Insert(key, seq, kind, expires, value))
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => any_insert(),
        2 => (any_key(), 0u64..10).prop_map(|(key, seq)| Op::Get(key, seq)),
        1 => (any_key(), 0u64..10).prop_map(|(key, seq)| Op::Step(Step::Seek(key, seq))),
        1 => (any_key(), 0u64..10).prop_map(|(key, seq)| Op::Step(Step::SeekBefore(key, seq))),
        1 => prop::sample::select(vec![Step::First, Step::Last]).prop_map(Op::Step),
        6 => prop::sample::select(vec![Step::Next, Step::Prev]).prop_map(Op::Step),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_memtable_and_its_open_cursor_behave_like_a_sorted_map(
        filling in proptest::collection::vec(any_insert(), 0..300),
        ops in proptest::collection::vec(any_op(), 0..300),
    ) {
        let mut pair = Pair::new();
        for op in filling.into_iter().chain(ops) {
            match op {
                Op::Insert(key, seq, kind, expires, value) => {
                    pair.insert(&key, seq, kind, expires, &value);
                }
                Op::Get(key, seq) => pair.check_get(&key, seq),
                Op::Step(step) => pair.step(&step),
            }
        }
        pair.check_everything();
    }
}

fn numbered_key(number: u64) -> Vec<u8> {
    format!("\0\0\0\0student:{number:012}\0\x02state").into_bytes()
}

/// Spreads `i` over a million, without repeating itself.
fn scattered(i: u64) -> u64 {
    i * 700_001 % 1_000_003
}

#[test]
fn a_tree_of_three_levels_holds_every_order_of_arrival() {
    const COUNT: u64 = 12_000;
    let orders: [fn(u64) -> u64; 4] = [
        |i| i,
        |i| COUNT - i,
        scattered,
        // Many runs that grow side by side, each in order: events of a hundred partitions.
        |i| (i % 100) * 1_000_000 + i,
    ];
    for order in orders {
        let mut pair = Pair::new();
        for i in 0..COUNT {
            pair.put(&numbered_key(order(i)), i + 1);
        }
        pair.check_everything();
        pair.check_get(b"\0\0\0\0student:5", Seq::MAX);
    }
}

#[test]
fn every_version_of_a_hot_key_is_found_at_its_sequence_number() {
    let mut pair = Pair::new();
    pair.put(&numbered_key(1), 1);
    pair.put(&numbered_key(3), 2);
    for seq in 3..6_000 {
        pair.put(&numbered_key(2), seq);
    }
    pair.check_everything();
}

#[test]
fn keys_that_are_prefixes_of_each_other_stay_apart() {
    let mut pair = Pair::new();
    for len in (0..300).rev() {
        pair.put(&vec![0; len], 2);
        pair.put(&vec![0; len], 1);
    }
    pair.check_everything();
}

#[test]
fn an_empty_memtable_is_small_and_has_nothing() {
    let mut pair = Pair::new();
    assert!(pair.memtable.bytes() < 200, "{}", pair.memtable.bytes());
    assert_eq!(pair.memtable.bytes(), size_of::<Memtable>());
    pair.check_everything();
    pair.check_get(b"k", Seq::MAX);
    pair.step(&Step::Seek(Vec::new(), Seq::MAX));
    // A cursor from before the first insert works after it.
    pair.put(b"k", 1);
    pair.step(&Step::Last);
}

#[test]
fn the_memory_of_small_records_is_close_to_their_length() {
    for order in [|i| i, |i| 30_000 - i, scattered] {
        let mut pair = Pair::new();
        for i in 0..30_000 {
            pair.insert(&numbered_key(order(i)), i + 1, Kind::Put, 0, &[1; 100]);
        }
        let payload = pair.memtable.key_bytes() + pair.memtable.value_bytes();
        let per_record = (pair.memtable.bytes() as u64 - payload) / 30_000;
        // A header of 16; a slot of 17 in leaves that are at least half full; inner nodes and the
        // last chunk.
        assert!((33..=16 + 17 * 2 + 10).contains(&per_record), "{per_record}");
    }
}

#[test]
fn the_memory_of_a_large_value_is_counted_once_and_given_back_when_replaced() {
    let mut pair = Pair::new();
    pair.put(b"small", 1);
    let before = pair.memtable.bytes();
    let large = vec![1; 1 << 20];
    for _ in 0..3 {
        pair.insert(b"large", 2, Kind::Put, 0, &large);
    }
    let held = pair.memtable.bytes() - before;
    assert!((large.len()..large.len() + 4096).contains(&held), "{held}");
    let (a, b) = (pair.memtable.get(b"large", 2).unwrap(), pair.memtable.get(b"large", 2).unwrap());
    assert_eq!(a.value.as_ptr(), b.value.as_ptr(), "readers share a large value");
    pair.check_everything();
}

#[test]
fn what_waits_for_its_place_is_found_and_reading_it_changes_no_figure() {
    let memtable = Arc::new(Memtable::new());
    let pool = ChunkPool::none();
    let insert = |n: u64, is_warm| {
        let (key, value) = (numbered_key(scattered(n)), (n + 1).to_le_bytes());
        let (seq, kind, value) = (n + 1, Kind::Put, &value[..]);
        memtable.insert(EntryRef { key: &key, seq, kind, expires_at_ms: 0, value }, is_warm, &pool);
    };
    let waiting = || memtable.arrivals.load(Ordering::Relaxed);
    let mut most = 0;
    for n in 0..1000 {
        insert(n, n % 300 == 299);
        most = most.max(waiting());
        if n % 300 == 299 {
            assert_eq!(waiting(), 0, "a warm tree takes everything in at once");
        }
    }
    assert!((100..200).contains(&most), "{most}");
    insert(1000, false);
    let (bytes, waited) = (memtable.bytes(), waiting());
    assert!(waited > 0);
    // The count of all memtables' memory learns of it from inserts only.
    assert_eq!(memtable.get(&numbered_key(scattered(1000)), 1001).map(|hit| hit.seq), Some(1001));
    assert_eq!((memtable.bytes(), memtable.len(), waiting()), (bytes, 1001, 0));
    assert_eq!(walk(&memtable, Seq::MAX, true), 1001);
}

#[test]
fn the_longest_keys_waste_no_chunks() {
    let mut pair = Pair::new();
    for i in 0..200u64 {
        let mut key = vec![b'k'; 128 * 1024];
        key.extend(scattered(i).to_be_bytes());
        pair.put(&key, i + 1);
    }
    let payload = pair.memtable.key_bytes() as usize;
    assert!(pair.memtable.bytes() < payload + payload / 20, "{}", pair.memtable.bytes());
    assert_eq!(pair.memtable.get(&[b'k'; 128 * 1024], Seq::MAX), None);
    pair.step(&Step::First);
    pair.step(&Step::Next);
}

#[test]
fn readers_beside_a_writer_see_all_that_was_there_and_in_order() {
    const COUNT: u64 = 20_000;
    let memtable = Arc::new(Memtable::new());
    let pool = ChunkPool::none();
    let applied = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let start = Barrier::new(3);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            start.wait();
            for seq in 1..=COUNT {
                // Lets the readers in even where there are fewer cores than threads.
                if seq % 8 == 0 {
                    std::thread::yield_now();
                }
                let key = numbered_key(scattered(seq));
                let value = &seq.to_le_bytes();
                let kind = Kind::Put;
                memtable.insert(
                    EntryRef { key: &key, seq, kind, expires_at_ms: 0, value },
                    false,
                    &pool,
                );
                applied.store(seq, Ordering::Release);
            }
            done.store(true, Ordering::Release);
        });
        for forward in [true, false] {
            let (memtable, applied, done, start) = (&memtable, &applied, &done, &start);
            scope.spawn(move || {
                start.wait();
                while !done.load(Ordering::Acquire) {
                    let snapshot = applied.load(Ordering::Acquire);
                    assert!(memtable.len() >= snapshot);
                    if snapshot > 0 {
                        let hit = memtable.get(&numbered_key(scattered(snapshot)), snapshot);
                        assert_eq!(hit.map(|hit| hit.seq), Some(snapshot));
                    }
                    assert_eq!(walk(memtable, snapshot, forward), snapshot);
                }
            });
        }
    });
    assert_eq!(walk(&memtable, Seq::MAX, true), COUNT);
}

/// Walks the whole memtable, checks the order, and counts what the snapshot sees.
fn walk(memtable: &Arc<Memtable>, snapshot: Seq, forward: bool) -> u64 {
    let mut cursor = memtable.cursor();
    if forward {
        cursor.seek_first()
    } else {
        cursor.seek_last()
    }
    let mut before: Option<Vec<u8>> = None;
    let mut seen = 0;
    while let Some(entry) = cursor.entry() {
        if let Some(before) = &before {
            assert!(if forward { before[..] < *entry.key } else { before[..] > *entry.key });
        }
        assert_eq!(entry.value, entry.seq.to_le_bytes());
        seen += u64::from(entry.seq <= snapshot);
        before = Some(entry.key.to_vec());
        if forward { cursor.next() } else { cursor.prev() }
    }
    seen
}
