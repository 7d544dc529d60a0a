//! How long it takes to list and to erase somebody of whom there is much. Figures depend on the
//! machine, so these are run by hand:
//! `cargo test --release -p kstone-keyspace --test all erasure_speed -- --ignored --nocapture`

use std::time::{Duration, Instant};

use crate::support::{Fixture, MASTERY, SECRET, now};
use kstone_core::Compression;
use kstone_sim::SimDisk;

const ITEMS: usize = 5_000;
const KEYS: usize = 5_000;

/// A person with ten thousand places, half of them items and half of them keys of Redis.
fn filled(disk: &SimDisk) -> Fixture {
    let fixture = Fixture::open(disk, Compression::Lz4);
    for at in 0..ITEMS {
        let sk = format!("skill:s{at}");
        let value = r#"{"rating":1.5,"answers":3}"#;
        fixture.state(&format!("student:{SECRET}"), &sk, value);
    }
    for at in 0..KEYS {
        fixture.redis(&format!("SET hint:cooldown:{SECRET}:t{at} locked EX 5"));
    }
    fixture.state(&format!("student:{SECRET}"), "mastery:2026-01-14", MASTERY);
    fixture
}

#[test]
#[ignore = "a measurement"]
fn ten_thousand_keys_of_a_person_are_listed_and_erased() {
    let disk = SimDisk::new(1);
    let fixture = filled(&disk);
    let subject = fixture.subject();
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        let holdings = now(fixture.eraser.stores().holdings(&subject)).unwrap();
        best = best.min(began.elapsed());
        assert_eq!(holdings.len(), ITEMS + KEYS + 1);
    }
    println!("listed {} places in {best:?}", ITEMS + KEYS + 1);
    let began = Instant::now();
    let receipt = fixture.erase().receipt;
    println!("erased in {:?}; purge {:?}", began.elapsed(), receipt.purge);
    assert!(best < Duration::from_millis(50), "{best:?}");
}
