//! A short comparison of an engine with a plain map, made once per engine before anything is
//! timed: an engine that answers wrongly, or an adapter that asks wrongly, has no speed.

use super::dataset::{BenchKey, POSTS_PER_USER, VALUE_LEN, Values, value_of};
use super::engines::{Budget, Durability, Engine};
use crate::Outcome;
use crate::random::Rng;
use std::collections::BTreeMap;
use std::path::Path;

const RECORDS: u32 = 20 * POSTS_PER_USER;
const STEPS: u32 = 20_000;

/// Puts, batches, overwrites and deletes at random, compares reads, ranges and a scan with the
/// map, then does so again after closing and opening, and after a
/// full compaction. The small memory budget makes the engine
/// flush on the way.
pub fn against_a_map<E: Engine>(dir: &Path, seed: u64) -> Outcome<()> {
    let budget = Budget { memory_bytes: 8 << 20, background_threads: 2, every_write_syncs: false };
    let engine = E::open(dir, budget)?;
    let mut model: BTreeMap<u32, u32> = BTreeMap::new();
    let mut rng = Rng::new(seed);
    let mut values = Values::new(10, VALUE_LEN);
    for step in 1..=STEPS {
        let id = rng.below(RECORDS);
        let durability = if step % 500 == 0 { Durability::Sync } else { Durability::Os };
        match rng.below(10) {
            0..6 => {
                engine.put(&values.record(id, step), durability)?;
                model.insert(id, step);
            }
            6..9 => {
                engine.delete(&BenchKey::of(id), durability)?;
                model.remove(&id);
            }
            _ => {
                let ids: Vec<u32> = (0..10).map(|_| rng.below(RECORDS)).collect();
                engine.batch(&values.records(&ids, step), durability)?;
                model.extend(ids.iter().map(|&id| (id, step)));
            }
        }
        if step == STEPS / 2 {
            engine.settle()?;
        }
        if step % 4000 == 0 {
            compare(&engine, &model)?;
        }
    }
    engine.close()?;
    let engine = E::open(dir, budget)?;
    compare(&engine, &model)?;
    engine.settle()?;
    compare(&engine, &model)?;
    engine.compact()?;
    let engine = E::open(dir, budget)?;
    compare(&engine, &model)?;
    engine.close()
}

fn compare<E: Engine>(engine: &E, model: &BTreeMap<u32, u32>) -> Outcome<()> {
    for id in 0..RECORDS {
        let expected = model.get(&id).map(|&version| value_of(id, version, VALUE_LEN));
        if engine.get(&BenchKey::of(id), <[u8]>::to_vec)? != expected {
            return Err(format!("get of record {id} differs from the map").into());
        }
        if engine.get(&BenchKey::absent(id), |_| ())?.is_some() {
            return Err(format!("a key after record {id} exists that was never written").into());
        }
    }
    for user in 0..RECORDS / POSTS_PER_USER {
        let ids = user * POSTS_PER_USER + 13..(user + 1) * POSTS_PER_USER;
        let first = ids.start;
        let expected: Vec<Vec<u8>> = model
            .range(ids)
            .take(20)
            .map(|(&id, &version)| value_of(id, version, VALUE_LEN))
            .collect();
        let mut found = Vec::new();
        engine.range(&BenchKey::of(first), expected.len(), |value| found.push(value.to_vec()))?;
        if found != expected {
            return Err(format!("the range from record {first} differs from the map").into());
        }
    }
    let mut found = BTreeMap::new();
    engine.scan(|key, value| {
        found.insert(key.to_vec(), value.to_vec());
    })?;
    let expected: BTreeMap<Vec<u8>, Vec<u8>> = model
        .iter()
        .map(|(&id, &version)| {
            (BenchKey::of(id).joined().to_vec(), value_of(id, version, VALUE_LEN))
        })
        .collect();
    if found != expected {
        return Err("the scan differs from the map".into());
    }
    Ok(())
}
