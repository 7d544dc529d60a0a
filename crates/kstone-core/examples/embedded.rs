//! The engine inside a program: `cargo run --example embedded [DIR]`.
//!
//! Opens a database, writes a batch, queries a partition, reads from a snapshot while the data
//! changes, counts under a lock, lets a record expire, and makes a checkpoint.
#![allow(clippy::disallowed_methods, reason = "a program of the real machine")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kstone_core::{Durability, Engine, Key, Options, TableId, WriteBatch};

/// Every database has this table.
const T: TableId = TableId::DEFAULT;

fn main() -> Result<(), Box<dyn Error>> {
    let own = std::env::args_os().nth(1).map(PathBuf::from);
    let dir = own.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("kstone-embedded-{}", std::process::id()))
    });
    run(&dir)?;
    if own.is_none() {
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

/// The whole tour, in `dir`, which must be new or empty.
pub fn run(dir: &Path) -> Result<(), Box<dyn Error>> {
    let db = dir.join("db");
    let engine = Engine::open(&db, Options::default())?;
    println!("opened {}", db.display());

    // A batch is all or nothing, over any number of partitions. `wait` returns once it is on disk.
    let mut batch = WriteBatch::new();
    batch.put(T, &Key::new("user#1"), br#"{"name":"Ada"}"#)?;
    for n in 1..=5 {
        let key = Key::with_sk("user#1", format!("post#{n:03}"));
        batch.put(T, &key, format!(r#"{{"title":"Post {n}"}}"#).as_bytes())?;
    }
    let commit = engine.write(&batch, Durability::Sync)?;
    println!("committed {} records, version {}", batch.len(), commit.seq());
    commit.wait()?;

    // A partition is sorted by sort key; reading it backwards gives the newest first.
    println!("the two newest posts:");
    for found in engine.partition(T, "user#1").prefix("post#").reverse().iter()?.take(2) {
        let found = found?;
        let sk = found.key.sk.unwrap_or_default();
        println!("  {} {}", text(&sk), text(&found.record.value));
    }

    // A snapshot does not move, whatever is written meanwhile.
    let snapshot = engine.snapshot();
    let mut batch = WriteBatch::new();
    batch.put(T, &Key::new("user#1"), br#"{"name":"Ada Lovelace"}"#)?;
    engine.write(&batch, Durability::Sync)?.wait()?;
    let then = snapshot.get(T, &Key::new("user#1"))?.ok_or("it was there")?;
    let now = engine.get(T, &Key::new("user#1"))?.ok_or("it is there")?;
    println!("the snapshot still reads {}, now it is {}", text(&then.value), text(&now.value));
    assert_ne!(then.value, now.value);

    // Read, change, write, with nobody in between: four threads count to 400 together.
    let counter = Key::new("visits");
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..100).try_for_each(|_| add_one(&engine, &counter))))
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let visits = read_count(engine.get(T, &counter)?.map(|record| record.value).as_deref());
    println!("four threads counted to {visits}");
    assert_eq!(visits, 400);

    // From its moment on, an expired record is not there. Its room is reclaimed by a delete.
    let session = Key::new("session#9");
    let mut batch = WriteBatch::new();
    batch.put_expiring(T, &session, b"{}", engine.now_ms() + 50)?;
    engine.write(&batch, Durability::Interval)?.wait()?;
    let started = Instant::now();
    while engine.get(T, &session)?.is_some() {
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("the session was gone after {} ms", started.elapsed().as_millis());
    let (expired, _) = engine.expired(0, 100)?;
    assert_eq!(expired.len(), 1);
    for record in &expired {
        let locked = engine.lock([&record.key])?;
        // Somebody may have written the key anew since.
        if locked.get(T, &record.key)?.is_none() {
            let mut batch = WriteBatch::new();
            batch.reclaim(record)?;
            locked.commit(&batch, Durability::Os)?.wait()?;
        }
    }
    println!("{} expired record reclaimed", expired.len());

    // A checkpoint is a database of its own, made while this one is in use.
    let checkpoint = engine.checkpoint(dir.join("copy"))?;
    let mut batch = WriteBatch::new();
    batch.delete(T, &Key::new("user#1"))?;
    engine.write(&batch, Durability::Sync)?.wait()?;
    let copy = Engine::open(&checkpoint.path, Options::default())?;
    assert!(copy.get(T, &Key::new("user#1"))?.is_some());
    assert!(engine.get(T, &Key::new("user#1"))?.is_none());
    println!("the copy in {} still has what was deleted here", checkpoint.path.display());
    Ok(())
}

fn add_one(engine: &Engine, key: &Key) -> kstone_core::Result<()> {
    let locked = engine.lock([key])?;
    let count = read_count(locked.get(T, key)?.map(|record| record.value).as_deref());
    let mut batch = WriteBatch::new();
    batch.put(T, key, (count + 1).to_string().as_bytes())?;
    // `Os`: a counter of visits may lose the last second in a power cut. `Sync` would not.
    locked.commit(&batch, Durability::Os)?.wait()
}

fn read_count(value: Option<&[u8]>) -> u64 {
    value.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
