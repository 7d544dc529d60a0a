//! L0 is merged when reading its files has cost more than merging them: by gets, ranges and scans alike.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{T, put};
use kstone_core::env::{Env, OsThreads, SystemClock};
use kstone_core::{Engine, Key, Options, ScanCursor};
use kstone_sim::SimDisk;

/// Three files in L0 of one stripe, which are too few to be merged for their own sake.
fn engine() -> Engine {
    let env = Env {
        vfs: Arc::new(SimDisk::new(1)),
        clock: Arc::new(SystemClock::new()),
        threads: Some(Arc::new(OsThreads)),
        ..Env::system()
    };
    let engine = Engine::open_with(env, "db", Options::default()).unwrap();
    for file in 0..3 {
        for n in 0..400 {
            put(&engine, &Key::with_sk("user#1", format!("{n:04}-{file}")), b"post");
        }
        engine.flush().unwrap();
    }
    assert_eq!(l0_files(&engine), 3);
    engine
}

fn l0_files(engine: &Engine) -> u64 {
    engine.stats().stripes.iter().map(|stripe| stripe.l0_files).sum()
}

/// Reads until the files are one; reading is all there is to make them so.
fn reads_merge(engine: &Engine, mut read: impl FnMut(&Engine)) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while l0_files(engine) > 0 {
        assert!(Instant::now() < deadline, "nobody merged what is read all the time");
        read(engine);
    }
}

#[test]
fn gets_pay() {
    reads_merge(&engine(), |engine| {
        assert!(engine.get(T, &Key::with_sk("user#1", "0007-0")).unwrap().is_some());
    });
}

#[test]
fn short_ranges_pay() {
    reads_merge(&engine(), |engine| {
        assert_eq!(engine.partition(T, "user#1").prefix("0007").iter().unwrap().count(), 3);
    });
}

#[test]
fn scans_pay() {
    reads_merge(&engine(), |engine| {
        let mut records = engine.snapshot().scan(T, ScanCursor::start());
        let mut seen = 0;
        while records.next_ref().unwrap().is_some() {
            seen += 1;
        }
        assert_eq!(seen, 1200);
    });
}
