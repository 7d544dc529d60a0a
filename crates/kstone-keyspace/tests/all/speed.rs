//! What it costs to find a key's pattern.

use std::hint::black_box;
use std::time::Instant;

use kstone_keyspace::{Catalogue, KeyStore, Keyspace, SHIPPED};

use crate::support::redis_pattern;

/// The shipped catalogues and sixty more patterns among the keys of Redis.
fn keyspace() -> Keyspace {
    let mut more = String::from(
        "application = \"more\"\ndescription = \"b\"\n[placeholders]\nid = \"id\"\nday = \"date\"\n",
    );
    for at in 0..60 {
        let pattern = format!("word{at}:{{id}}:part{at}:{{day}}");
        more += &redis_pattern(&format!("p{at}"), &pattern);
    }
    let mut catalogues: Vec<Catalogue> =
        SHIPPED.iter().map(|(file, text)| Catalogue::parse(file, text).unwrap()).collect();
    catalogues.push(Catalogue::parse("more.toml", &more).unwrap());
    Keyspace::new(catalogues).unwrap()
}

#[test]
#[ignore = "a measurement: run it alone, with --release and --nocapture"]
fn finding_a_pattern_costs_well_under_200_ns() {
    const BATCH: u32 = 2_000;
    const BATCHES: usize = 501;
    let keyspace = keyspace();
    let redis = keyspace.patterns().iter().filter(|it| it.partition() == it.to_string()).count();
    println!(
        "{} patterns, about {redis} of them among the keys of Redis",
        keyspace.patterns().len()
    );
    let mut worst = 0.0_f64;
    let state = KeyStore::Table("state");
    for (place, key) in [
        (KeyStore::Redis, "session:550e8400-e29b-41d4-a716-446655440000"),
        (KeyStore::Redis, "ratelimit:submit:student_12345"),
        (KeyStore::Redis, "ratelimit:global:2001%3Adb8%3A%3A1"),
        (KeyStore::Redis, "word42:student_12345:part42:2026-01-14"),
        (KeyStore::Redis, "feature_flag_cache"),
        (state, "student:student_12345:profile:current_mastery"),
        (state, "student:student_12345:mastery:2026-01-14:consistency"),
        (state, "student:student_12345:events:1768386600000:550e8400-e29b-41d4-a716-446655440000"),
        (KeyStore::Table("reviews-SEASON-2026"), "learner-12345:Q-UUID-123"),
        (KeyStore::Redis, "nobody:knows:this:one"),
    ] {
        let batch = |_| {
            let start = Instant::now();
            for _ in 0..BATCH {
                black_box(keyspace.find(black_box(place), black_box(key.as_bytes())));
            }
            start.elapsed().as_nanos() as f64 / f64::from(BATCH)
        };
        // The median: other programs on the machine disturb some of the batches.
        let mut batches: Vec<f64> = (0..BATCHES).map(batch).collect();
        batches.sort_by(f64::total_cmp);
        let ns = batches[BATCHES / 2];
        println!("{ns:6.1} ns  {key}");
        worst = worst.max(ns);
    }
    assert!(worst < 200.0, "{worst} ns");
}
