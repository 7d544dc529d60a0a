//! What the `k`-th commit of a writer consists of: a rule that the child follows and the check
//! knows.
//!
//! Every commit is one batch over several stripes: it appends to the writer's log, removes what
//! fell out of the window, moves the writer's head, overwrites one of a few shared records. Every
//! other commit also counts up one record under its lock.

use kstone_core::{Engine, Key, Options, Result, TableId, Tuning, WriteBatch};

pub(super) const T: TableId = TableId::DEFAULT;
pub(super) const WRITERS: u64 = 4;
/// How many entries of its log a writer keeps.
pub(super) const WINDOW: u64 = 300;
/// How many records a writer overwrites in turn.
pub(super) const SHARED: u64 = 16;

/// Small enough that flushes and compactions are under way all the time.
pub(super) fn options() -> Options {
    Options {
        memory_budget_bytes: 256 << 10,
        tuning: Tuning {
            block_bytes: 512,
            l0_compact_files: 2,
            l1_bytes: 16 << 10,
            file_bytes: 8 << 10,
            log_segment_bytes: Some(64 << 10),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

pub(super) fn log_key(writer: u64, k: u64) -> Key {
    Key::with_sk(format!("log#{writer}"), k.to_be_bytes().to_vec())
}

pub(super) fn head_key(writer: u64) -> Key {
    Key::new(format!("head#{writer}"))
}

pub(super) fn shared_key(writer: u64, k: u64) -> Key {
    Key::with_sk(format!("shared#{}", k % SHARED), writer.to_be_bytes().to_vec())
}

pub(super) fn total_key() -> Key {
    Key::new("total")
}

/// Whether the commit counts up the total.
pub(super) fn counts(k: u64) -> bool {
    k.is_multiple_of(2)
}

/// The value of a log entry: to be recognised byte by byte, of varied length.
pub(super) fn value(writer: u64, k: u64) -> Vec<u8> {
    let mut z = (writer << 48 | k).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let len = 16 + z % 400;
    let mut bytes = format!("{writer} {k} ").into_bytes();
    while (bytes.len() as u64) < len {
        z = (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bytes.extend_from_slice(&z.to_le_bytes());
    }
    bytes
}

/// The number in a record; 0 if it is absent.
pub(super) fn number(engine: &Engine, key: &Key) -> Result<u64> {
    Ok(engine.get(T, key)?.map_or(0, |record| from_bytes(&record.value)))
}

pub(super) fn from_bytes(bytes: &[u8]) -> u64 {
    // Anything but eight bytes is a number that nobody wrote.
    bytes.try_into().map_or(u64::MAX, u64::from_be_bytes)
}

/// The batch of the commit, less the total.
pub(super) fn batch(writer: u64, k: u64) -> Result<WriteBatch> {
    let mut batch = WriteBatch::new();
    batch.put(T, &log_key(writer, k), &value(writer, k))?;
    batch.put(T, &head_key(writer), &k.to_be_bytes())?;
    batch.put(T, &shared_key(writer, k), &k.to_be_bytes())?;
    if k > WINDOW {
        batch.delete(T, &log_key(writer, k - WINDOW))?;
    }
    Ok(batch)
}
