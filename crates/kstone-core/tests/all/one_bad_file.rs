//! A damaged file does not stop compaction of other stripes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{T, get, put, tiny};
use kstone_core::env::{Env, OsThreads, SystemClock};
use kstone_core::{Engine, Error, Key, Options};
use kstone_sim::SimDisk;

#[test]
fn a_stripe_that_cannot_be_compacted_does_not_keep_the_others_waiting() {
    let disk = SimDisk::new(1);
    let env = Env {
        vfs: Arc::new(disk.clone()),
        clock: Arc::new(SystemClock::new()),
        threads: Some(Arc::new(OsThreads)),
        ..Env::system()
    };
    let options = Options { stripe_records_max: None, ..tiny() };
    let engine = Engine::open_with(env, "db", options).unwrap();
    let (bad, good) = (Key::new("user#1"), Key::new("user#2"));
    assert_ne!(bad.stripe(), good.stripe());

    put(&engine, &bad, b"lost to a bad sector");
    engine.flush().unwrap();
    let file = sst_of(&disk, bad.stripe());
    disk.corrupt(&file, 3, 0xff).unwrap();
    // Four L0 files where two are due: this stripe now has the highest score of all, for good.
    for n in 0..3 {
        put(&engine, &Key::with_sk("user#1", format!("{n}")), b"healthy");
        engine.flush().unwrap();
    }
    for value in ["one", "two"] {
        put(&engine, &good, value.as_bytes());
        engine.flush().unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    let l0_files = |key: &Key| engine.stats().stripes[usize::from(key.stripe())].l0_files;
    while l0_files(&good) >= 2 {
        assert!(Instant::now() < deadline, "the healthy stripe was never compacted");
        std::thread::yield_now();
    }
    assert!(l0_files(&bad) >= 2, "the damaged stripe cannot have been compacted");
    assert_eq!(get(&engine, &good), Some(b"two".to_vec()));
    put(&engine, &good, b"three");
    assert!(matches!(
        engine.get(T, &bad),
        Err(Error::Corruption { path, .. }) if path == file
    ));
}

fn sst_of(disk: &SimDisk, stripe: u8) -> PathBuf {
    let prefix = format!("{stripe:03}-");
    let is_ours = |path: &&PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
    };
    disk.paths().iter().find(is_ours).map(|path| Path::new(path).to_owned()).unwrap()
}
