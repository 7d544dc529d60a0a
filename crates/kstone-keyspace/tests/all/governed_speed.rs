//! What a keyspace in force costs a write to a declared key that is there already.

use std::hint::black_box;
use std::time::Instant;

use kstone::ops::{PutItem, ReturnValues};
use kstone::policy::{
    Counted, Effect, KeyKind, KeySize, KeyWrite, PatternId, RequestedTtl, WritePolicy,
};
use kstone::table::{KeyAttribute, KeySchema, TableSpec};
use kstone::{Database, Item};
use kstone_core::env::Env;
use kstone_keyspace::UnknownKeys;
use kstone_redis::Redis;

use crate::support::{govern, open_unsynced};

/// So short that most batches are done without somebody else's turn in between.
const BATCH: u32 = 200;
const BATCHES: usize = 1501;
const MEDIAN: usize = BATCHES / 2;

fn ns(mut work: impl FnMut()) -> f64 {
    let mut batches: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = Instant::now();
            (0..BATCH).for_each(|_| work());
            start.elapsed().as_nanos() as f64 / f64::from(BATCH)
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    batches[MEDIAN]
}

fn database() -> Database {
    let db = open_unsynced(Env::memory());
    let key = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk"));
    db.create_table(&TableSpec { name: "state".to_owned(), key, ..TableSpec::default() }).unwrap();
    db.update_ttl("state", "ttl", true).unwrap();
    db
}

/// What to measure, after what was said to both databases: keys end in both, since an expiry costs
/// the engine something, with or without a keyspace.
const COMMANDS: [(&[&str], &str); 4] = [
    (&[], "SET feature_flag:new_editor percentage:50 EX 300"),
    (
        &["INCR ratelimit:submit:student_12345", "EXPIRE ratelimit:submit:student_12345 60"],
        "INCR ratelimit:submit:student_12345",
    ),
    (
        &["HSET anticheat:student_12345 tab_switches 1", "EXPIRE anticheat:student_12345 86400"],
        "HSET anticheat:student_12345 tab_switches 2",
    ),
    (&[], "SET mastery:student_12345 {\"mastery_score\":0.86,\"level\":\"proficient\"} EX 300"),
];

/// What two kinds of work take, done in turn, so that what disturbs the one disturbs the other.
fn both(mut one: impl FnMut(), mut other: impl FnMut()) -> (f64, f64) {
    let batch = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..BATCH).for_each(|_| work());
        start.elapsed().as_nanos() as f64 / f64::from(BATCH)
    };
    let mut pairs: Vec<(f64, f64)> =
        (0..BATCHES).map(|_| (batch(&mut one), batch(&mut other))).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let first = pairs[MEDIAN].0;
    pairs.sort_by(|a, b| a.1.total_cmp(&b.1));
    (first, pairs[MEDIAN].1)
}

#[test]
#[ignore = "a measurement: run it alone, with --release and --nocapture"]
fn what_a_declared_key_costs_more_per_write() {
    let (plain, ruled) = (database(), database());
    let _governor = govern(&ruled, UnknownKeys::Allow);
    let session = |db: &Database| Redis::open(db).unwrap().session();
    let (mut without, mut with) = (session(&plain), session(&ruled));
    let words =
        |command: &'static str| -> Vec<&[u8]> { command.split(' ').map(str::as_bytes).collect() };
    let mut figures = Vec::new();
    for (first, command) in COMMANDS {
        for command in first {
            drop((without.call(&words(command)), with.call(&words(command))));
        }
        let words = words(command);
        let (before, after) =
            both(|| drop(black_box(without.call(&words))), || drop(black_box(with.call(&words))));
        figures.push((command, before, after));
    }
    // One that has to be read anyway, as every put under a keyspace is.
    let put = PutItem {
        table: "state".to_owned(),
        item: Item::new()
            .with("pk", "student:student_12345")
            .with("sk", "skill:fractions")
            .with("rating", 1500)
            .with("answers", 12),
        ..PutItem::default()
    };
    let read = PutItem { return_values: ReturnValues::AllOld, ..put.clone() };
    let write = |db: &Database, put: &PutItem| drop(black_box(db.put_item(put).wait().unwrap()));
    let (before, after) = both(|| write(&plain, &put), || write(&ruled, &put));
    figures.push(("PutItem of a skill", before, after));
    let (before, after) = both(|| write(&plain, &read), || write(&ruled, &read));
    figures.push(("PutItem of a skill that returns the old one", before, after));
    for (what, before, after) in &figures {
        println!("{before:8.1} ns without, {after:8.1} with, {:6.1} more  {what}", after - before);
    }
}

#[test]
#[ignore = "a measurement: run it alone, with --release and --nocapture"]
fn what_the_governor_itself_takes() {
    let db = database();
    let governor = govern(&db, UnknownKeys::Allow);
    let key_size = KeySize { bytes: 40, members: 0, expires_at_ms: Some(9_000_000_000_000) };
    let before = Some(key_size);
    let write = |key: &'static [u8], kind, value: Option<&'static [u8]>| KeyWrite {
        db: 0,
        key,
        kind,
        effect: Effect::Changes,
        asked: RequestedTtl::Unsaid,
        pattern: None,
        value,
        value_len: value.map(|value| value.len() as u64),
        fields: &[],
        members: &[],
        removed: &[],
        members_after: None,
        before,
        now_ms: 1_768_386_600_000,
    };
    let fields: [(&[u8], &[u8]); 1] = [(b"hints_used", b"1")];
    let cases = [
        ("flag", write(b"feature_flag:new_editor", KeyKind::String, Some(b"true"))),
        ("counter", write(b"ratelimit:submit:student_12345", KeyKind::String, None)),
        ("hash field", KeyWrite { fields: &fields, ..write(b"session:s-1", KeyKind::Hash, None) }),
        (
            "JSON",
            write(
                b"mastery:student_12345",
                KeyKind::String,
                Some(b"{\"mastery_score\":0.86,\"level\":\"proficient\"}"),
            ),
        ),
        ("no pattern", write(b"nobody:knows:this", KeyKind::String, Some(b"1"))),
    ];
    for (what, write) in &cases {
        let admit = ns(|| drop(black_box(governor.admit_key(black_box(write)))));
        println!("{admit:6.1} ns  admit, {what}");
    }
    let change = Counted {
        pattern: PatternId(20),
        db: 0,
        before,
        after: before,
        members_written: 0,
        member_bytes_written: 0,
        is_write: true,
    };
    println!("{:6.1} ns  count", ns(|| governor.committed(black_box(&[change]))));
    let after = Some(KeySize { expires_at_ms: Some(9_000_000_300_000), ..key_size });
    let moved = Counted { after, ..change };
    println!("{:6.1} ns  count, with another end", ns(|| governor.committed(black_box(&[moved]))));
}
