//! What a random sequence consists of, and how it is drawn.
//!
//! Keys come from a small pool, so that sequences collide: overwrite, delete and drop what they
//! wrote before. The pool holds what breaks encodings: the empty key, bytes 0x00 and 0xff, keys
//! that are prefixes of each other, an empty sort key beside no sort key, several partitions of
//! one stripe.

use std::fmt;
use std::ops::Bound;
use std::sync::LazyLock;

use bytes::Bytes;
use kstone_core::{Durability, Key, stripe_of};
use kstone_sim::CrashPolicy;
use proptest::prelude::*;

use crate::settings::{Settings, settings};

static PKS: LazyLock<Vec<Bytes>> = LazyLock::new(|| {
    let mut pks: Vec<Bytes> = [
        &b"a"[..],
        b"",
        b"\0",
        b"\0\xff",
        b"\xff",
        b"\xff\xff",
        b"a\0",
        b"a\0\0",
        b"a\0\x01",
        b"a\xff",
        b"ab",
    ]
    .map(Bytes::from_static)
    .into();
    let same_stripe =
        (0..).map(|n| format!("a{n}")).filter(|pk| stripe_of(pk.as_bytes()) == stripe_of(b"a"));
    pks.extend(same_stripe.take(2).map(Bytes::from));
    pks
});

const SKS: [&[u8]; 12] = [
    b"a",
    b"",
    b"\0",
    b"\0\0",
    b"\x01",
    b"a\0",
    b"a\0\x01",
    b"a\xff",
    b"ab",
    b"b",
    b"\xff",
    b"\xff\xff",
];

/// A partition key of the pool.
#[derive(Clone, Copy)]
pub struct Pk(u8);

/// A sort key of the pool.
#[derive(Clone, Copy)]
pub struct Sk(u8);

/// A key of the pool.
#[derive(Clone, Copy)]
pub struct KeyNo(Pk, Option<Sk>);

impl Pk {
    /// The bytes.
    pub fn bytes(self) -> Bytes {
        PKS.get(usize::from(self.0) % PKS.len()).cloned().unwrap_or_default()
    }
}

impl Sk {
    /// The bytes.
    pub fn bytes(self) -> Bytes {
        Bytes::from_static(SKS.get(usize::from(self.0) % SKS.len()).copied().unwrap_or_default())
    }
}

impl KeyNo {
    /// The key.
    pub fn key(self) -> Key {
        Key { pk: self.0.bytes(), sk: self.1.map(Sk::bytes) }
    }
}

impl fmt::Debug for Pk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.bytes())
    }
}

impl fmt::Debug for Sk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.bytes())
    }
}

impl fmt::Debug for KeyNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}", self.0, self.1)
    }
}

/// Which table: 0 is the default one, the others count the tables created so far, dropped ones
/// included.
pub type Slot = u8;

/// A value, small in a printed sequence whatever its length.
#[derive(Debug, Clone, Copy)]
pub struct Value {
    /// Tells values apart.
    pub fill: u8,
    /// How long it is.
    pub len: u16,
}

impl Value {
    /// The bytes.
    pub fn bytes(self) -> Vec<u8> {
        (0..self.len).map(|i| self.fill ^ (i.wrapping_mul(37) >> 4) as u8).collect()
    }
}

/// One change of a batch.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// Sets a record, perhaps with a time to live in milliseconds.
    Put(Slot, KeyNo, Value, Option<u16>),
    /// Removes one.
    Delete(Slot, KeyNo),
    /// Removes a partition.
    DropPartition(Slot, Pk),
}

/// A question.
#[derive(Debug, Clone)]
pub enum Read {
    /// One record.
    Get(Slot, KeyNo),
    /// Several.
    MultiGet(Slot, Vec<KeyNo>),
    /// Records of a partition.
    Query {
        /// Table.
        table: Slot,
        /// Partition.
        pk: Pk,
        /// Start of the sort key.
        prefix: Option<Sk>,
        /// Lower bound.
        low: Bound<Sk>,
        /// Upper bound.
        high: Bound<Sk>,
        /// Direction.
        reverse: bool,
        /// At most so many.
        limit: usize,
    },
    /// All records, so many at a time, going on from a cursor that was turned into bytes.
    Scan(Slot, usize),
    /// All records, in so many segments.
    Segments(Slot, u32),
    /// Partition keys by prefix.
    PartitionKeys(Slot, Pk),
}

/// What to purge.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// A record.
    Record(Slot, KeyNo),
    /// A partition.
    Partition(Slot, Pk),
}

impl Target {
    /// The table.
    pub fn slot(&self) -> Slot {
        match self {
            Target::Record(slot, _) | Target::Partition(slot, _) => *slot,
        }
    }
}

/// One step of a sequence.
#[derive(Debug, Clone)]
pub enum Op {
    /// A batch.
    Write(Vec<Change>, Durability),
    /// Read-modify-write under locks; with a stray key, the batch also touches that one, which is
    /// not locked.
    Locked {
        /// Table.
        table: Slot,
        /// What is locked, read and changed.
        keys: Vec<KeyNo>,
        /// What is changed without having been locked.
        stray: Option<KeyNo>,
    },
    /// Creates a table.
    CreateTable,
    /// Drops one.
    DropTable(Slot),
    /// Reads what is there now.
    Read(Read),
    /// Takes a snapshot.
    TakeSnapshot,
    /// Reads from one of the snapshots.
    ReadSnapshot(u8, Read),
    /// Gives one back.
    DropSnapshot(u8),
    /// Writes memory to files.
    Flush,
    /// Merges everything.
    Compact,
    /// Waits for background work.
    WaitIdle,
    /// Closes and opens, perhaps with other settings, and with the clock set back that far.
    Reopen(Option<Box<Settings>>, u16),
    /// Syncs, loses the power or the process, and opens.
    Crash(CrashPolicy),
    /// Lets time pass.
    Advance(u16),
    /// Reclaims what has expired, so many at a time.
    ExpiredRecordHandler(usize),
    /// Bulk ingest; `true` gives the records in the wrong order.
    Ingest(Vec<(Slot, KeyNo, Value, Option<u16>)>, bool),
    /// Makes a checkpoint, opens it and compares.
    Checkpoint,
    /// Opens an earlier checkpoint and compares.
    OpenCheckpoint(u8),
    /// Purges; `true` ends the snapshots in the way.
    Purge(Vec<Target>, bool),
}

fn pk() -> impl Strategy<Value = Pk> {
    // Half of all keys fall into three partitions.
    prop_oneof![(0..3u8).prop_map(Pk), (0..PKS.len() as u8).prop_map(Pk)]
}

fn sk() -> impl Strategy<Value = Sk> {
    (0..SKS.len() as u8).prop_map(Sk)
}

fn key() -> impl Strategy<Value = KeyNo> {
    (pk(), prop::option::weighted(0.8, sk())).prop_map(|(pk, sk)| KeyNo(pk, sk))
}

fn slot() -> impl Strategy<Value = Slot> {
    prop_oneof![3 => Just(0u8), 2 => 1..4u8]
}

fn value() -> impl Strategy<Value = Value> {
    let len = prop_oneof![8 => 0..40u16, 1 => 100..1000u16, 1 => 4000..6000u16];
    (any::<u8>(), len).prop_map(|(fill, len)| Value { fill, len })
}

fn ttl() -> impl Strategy<Value = Option<u16>> {
    prop::option::weighted(0.25, 0..60u16)
}

fn durability() -> impl Strategy<Value = Durability> {
    prop_oneof![Just(Durability::Sync), Just(Durability::Interval), Just(Durability::Os)]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        10 => (slot(), key(), value(), ttl()).prop_map(|(t, k, v, ttl)| Change::Put(t, k, v, ttl)),
        4 => (slot(), key()).prop_map(|(t, k)| Change::Delete(t, k)),
        1 => (slot(), pk()).prop_map(|(t, pk)| Change::DropPartition(t, pk)),
    ]
}

fn bound() -> impl Strategy<Value = Bound<Sk>> {
    prop_oneof![
        Just(Bound::Unbounded),
        sk().prop_map(Bound::Included),
        sk().prop_map(Bound::Excluded)
    ]
}

fn read() -> impl Strategy<Value = Read> {
    let limit = prop_oneof![4 => Just(usize::MAX), 1 => 0..4usize];
    let query = (slot(), pk(), prop::option::of(sk()), bound(), bound(), any::<bool>(), limit);
    prop_oneof![
        4 => (slot(), key()).prop_map(|(t, k)| Read::Get(t, k)),
        2 => (slot(), prop::collection::vec(key(), 0..6)).prop_map(|(t, k)| Read::MultiGet(t, k)),
        8 => query.prop_map(|(table, pk, prefix, low, high, reverse, limit)| {
            Read::Query { table, pk, prefix, low, high, reverse, limit }
        }),
        2 => (slot(), 1..20usize).prop_map(|(t, page)| Read::Scan(t, page)),
        1 => (slot(), prop::sample::select(vec![1, 2, 3, 7, 256, 300]))
            .prop_map(|(t, total)| Read::Segments(t, total)),
        2 => (slot(), pk()).prop_map(|(t, pk)| Read::PartitionKeys(t, pk)),
    ]
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        (slot(), key()).prop_map(|(t, k)| Target::Record(t, k)),
        (slot(), pk()).prop_map(|(t, pk)| Target::Partition(t, pk)),
    ]
}

/// One random step.
pub fn op() -> impl Strategy<Value = Op> {
    let crash = prop_oneof![
        Just(CrashPolicy::LoseAll),
        Just(CrashPolicy::KeepAll),
        any::<u64>().prop_map(CrashPolicy::Random)
    ];
    let ingested = prop::collection::vec((slot(), key(), value(), ttl()), 0..12);
    prop_oneof![
        40 => (prop::collection::vec(change(), 1..2), durability())
            .prop_map(|(c, d)| Op::Write(c, d)),
        12 => (prop::collection::vec(change(), 0..8), durability())
            .prop_map(|(c, d)| Op::Write(c, d)),
        // Large enough to go in stripe by stripe.
        1 => (prop::collection::vec(change(), 64..100), durability())
            .prop_map(|(c, d)| Op::Write(c, d)),
        5 => (slot(), prop::collection::vec(key(), 1..4), prop::option::weighted(0.2, key()))
            .prop_map(|(table, keys, stray)| Op::Locked { table, keys, stray }),
        3 => Just(Op::CreateTable),
        1 => slot().prop_map(Op::DropTable),
        25 => read().prop_map(Op::Read),
        5 => Just(Op::TakeSnapshot),
        8 => (any::<u8>(), read()).prop_map(|(n, read)| Op::ReadSnapshot(n, read)),
        3 => any::<u8>().prop_map(Op::DropSnapshot),
        3 => Just(Op::Flush),
        3 => Just(Op::Compact),
        1 => Just(Op::WaitIdle),
        2 => (prop::option::of(settings().prop_map(Box::new)), prop_oneof![Just(0), 1..100u16])
            .prop_map(|(settings, back)| Op::Reopen(settings, back)),
        2 => crash.prop_map(Op::Crash),
        6 => (1..40u16).prop_map(Op::Advance),
        3 => (1..20usize).prop_map(Op::ExpiredRecordHandler),
        3 => (ingested, prop::bool::weighted(0.1)).prop_map(|(records, bad)| Op::Ingest(records, bad)),
        1 => Just(Op::Checkpoint),
        1 => any::<u8>().prop_map(Op::OpenCheckpoint),
        1 => (prop::collection::vec(target(), 1..3), any::<bool>())
            .prop_map(|(targets, end)| Op::Purge(targets, end)),
    ]
}

/// A random sequence.
pub fn ops(len_max: usize) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..len_max)
}
