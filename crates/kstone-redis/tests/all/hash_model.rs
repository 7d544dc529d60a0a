//! Random commands on hashes whose fields expire, against a plain model.

use std::collections::BTreeMap;

use crate::support::{Client, machine};
use kstone_core::env::{Random, SeededRandom};
use kstone_ports::keys::Value;

const KEYS: [&str; 3] = ["a", "b", "c"];
const FIELDS: [&str; 6] = ["f0", "f1", "f2", "f3", "f4", "f5"];

/// Fields with their values and when they expire.
type Hash = BTreeMap<String, (i64, Option<u64>)>;

#[derive(Default)]
struct Model {
    hashes: BTreeMap<String, Hash>,
}

impl Model {
    /// Removes what is due.
    fn pass_time(&mut self, now_ms: u64) {
        for hash in self.hashes.values_mut() {
            hash.retain(|_, (_, at_ms)| at_ms.is_none_or(|at_ms| at_ms > now_ms));
        }
        self.hashes.retain(|_, hash| !hash.is_empty());
    }

    fn edit(&mut self, key: &str, change: impl FnOnce(&mut Hash)) {
        change(self.hashes.entry(key.to_owned()).or_default());
        self.hashes.retain(|_, hash| !hash.is_empty());
    }
}

/// One random command on both.
fn act(client: &mut Client, model: &mut Model, random: &SeededRandom, now_ms: u64) -> String {
    let pick = |count: usize| (random.next_u64() % count as u64) as usize;
    let (key, other, field) = (KEYS[pick(3)], KEYS[pick(3)], FIELDS[pick(6)].to_owned());
    let (value, ms) = (pick(100) as i64, pick(40) as u64);
    let at_ms = Some(now_ms + ms).filter(|_| ms > 0);
    let line = match pick(11) {
        0 | 1 => {
            model.edit(key, |hash| {
                hash.insert(field.clone(), (value, None));
            });
            format!("HSET {key} {field} {value}")
        }
        2 => {
            model.edit(key, |hash| {
                hash.remove(&field);
            });
            format!("HDEL {key} {field}")
        }
        3 | 4 => {
            model.edit(key, |hash| {
                match (hash.get_mut(&field), at_ms) {
                    (Some(found), Some(_)) => found.1 = at_ms,
                    _ => drop(hash.remove(&field)),
                };
            });
            format!("HPEXPIRE {key} {ms} FIELDS 1 {field}")
        }
        5 => {
            model.edit(key, |hash| {
                if let Some(found) = hash.get_mut(&field) {
                    found.1 = None;
                }
            });
            format!("HPERSIST {key} FIELDS 1 {field}")
        }
        6 => {
            model.edit(key, |hash| hash.entry(field.clone()).or_insert((0, None)).0 += value);
            format!("HINCRBY {key} {field} {value}")
        }
        7 => {
            model.edit(key, |hash| match at_ms {
                Some(_) => drop(hash.insert(field.clone(), (value, at_ms))),
                None => drop(hash.remove(&field)),
            });
            format!("HSETEX {key} PX {ms} FIELDS 1 {field} {value}")
        }
        8 => {
            model.edit(key, |hash| hash.entry(field.clone()).or_insert((0, None)).0 = value);
            format!("HSETEX {key} KEEPTTL FIELDS 1 {field} {value}")
        }
        9 => {
            if key != other
                && let Some(hash) = model.hashes.get(key).cloned()
            {
                model.hashes.insert(other.to_owned(), hash);
            }
            format!("COPY {key} {other} REPLACE")
        }
        _ => {
            if let Some(hash) = model.hashes.remove(key) {
                model.hashes.insert(other.to_owned(), hash);
            }
            format!("RENAME {key} {other}")
        }
    };
    client.say(&line);
    line
}

/// What the server has under a key, from its replies.
fn read(client: &mut Client, key: &str, now_ms: u64) -> Hash {
    let Value::Map(pairs) = client.call(&["HGETALL", key]) else { panic!("no map") };
    assert_eq!(client.call(&["HLEN", key]), Value::Integer(pairs.len() as i64));
    let text = |value: Value| match value {
        Value::Bulk(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("no text: {other:?}"),
    };
    let mut hash = Hash::new();
    for (name, value) in pairs {
        let name = text(name);
        let ttl = client.call(&["HPTTL", key, "FIELDS", "1", &name]);
        let at_ms = match ttl {
            Value::Array(ttl) if ttl == [Value::Integer(-1)] => None,
            Value::Array(ttl) => match ttl[..] {
                [Value::Integer(left_ms)] => Some(now_ms + left_ms as u64),
                _ => panic!("no time: {ttl:?}"),
            },
            other => panic!("no list: {other:?}"),
        };
        hash.insert(name, (text(value).parse().unwrap(), at_ms));
    }
    hash
}

#[test]
fn hashes_are_what_a_model_says_whatever_is_done_to_them() {
    for seed in 0..6 {
        let random = SeededRandom::new(seed);
        let (env, clock) = machine();
        let (mut client, mut database) = Client::on(&env);
        let (mut model, mut now_ms) = (Model::default(), 1_700_000_000_000);
        let mut history = Vec::new();
        for step in 0..400 {
            history.push(act(&mut client, &mut model, &random, now_ms));
            if random.next_u64().is_multiple_of(4) {
                let passed_ms = random.next_u64() % 15;
                history.push(format!("{passed_ms} ms pass"));
                clock.advance(passed_ms);
                now_ms += passed_ms;
                model.pass_time(now_ms);
            }
            if random.next_u64().is_multiple_of(16) {
                database.run_background().unwrap();
                let count = model.hashes.len() as i64;
                assert_eq!(client.say("DBSIZE"), Value::Integer(count), "{seed}: {history:#?}");
            }
            if step % 100 == 99 {
                drop((client, database));
                (client, database) = Client::on(&env);
            }
            if random.next_u64().is_multiple_of(3) {
                for key in KEYS {
                    let expected = model.hashes.get(key).cloned().unwrap_or_default();
                    let found = read(&mut client, key, now_ms);
                    assert_eq!(found, expected, "seed {seed}, key {key}: {history:#?}");
                }
            }
        }
        // When all that expires has expired, nothing of it is left.
        clock.advance(1000);
        now_ms += 1000;
        model.pass_time(now_ms);
        database.run_background().unwrap();
        assert_eq!(client.say("DBSIZE"), Value::Integer(model.hashes.len() as i64));
    }
}
