//! A tenant of Redis's keys: whatever it asks for, it reads and changes nothing of another.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use kstone::{Database, DatabaseOptions, Durability};
use kstone_core::env::ManualClock;
use kstone_keyspace::{Tenant, TenantKeys};
use kstone_ports::Error;
use kstone_ports::keys::{Keys, PortCommand, PurgeKeys, ScanKeys, slot_of};
use kstone_redis::port::known_commands;
use kstone_redis::{Redis, Value};

use crate::support::{keyspace_of, memory_env, now, words};

const CATALOGUE: &str = r#"
application = "schools"
description = "Schools, and what they share"
[placeholders]
school_id = "id"
name = "id"
[pattern.of_school]
pattern = "school:{school_id}:{name}"
store = "redis"
type = "string"
ttl = "none"
subject = "none"
tenant = "school_id"
description = "A school's"
[pattern.shared]
pattern = "shared:{name}"
store = "redis"
type = "string"
ttl = "none"
subject = "none"
description = "Nobody's"
"#;

/// Commands whose replies are not the same each time, even for the same keys.
const BY_CHANCE: [&str; 5] = ["time", "spop", "srandmember", "hrandfield", "zrandmember"];

/// Keys of a school for each type, all in the same slot.
fn keys_of(school: &str) -> Vec<String> {
    static FOUND: LazyLock<[Vec<String>; 2]> = LazyLock::new(|| ["a", "b"].map(find_keys));
    FOUND[usize::from(school == "b")].clone()
}

fn find_keys(school: &str) -> Vec<String> {
    let slot = slot_of(b"school:a:slot");
    let kinds = ["string", "number", "hash", "list", "set", "zset", "stream", "missing"];
    let of_kind = |kind: &&str| {
        let names = (0..).map(|number| format!("school:{school}:{kind}{number}"));
        names.into_iter().find(|name| slot_of(name.as_bytes()) == slot).unwrap()
    };
    kinds.iter().map(of_kind).collect()
}

struct World {
    all: Arc<dyn Keys>,
    a: TenantKeys,
}

impl World {
    fn new(schools: &[&str]) -> World {
        let env = memory_env(&Arc::new(ManualClock::at(1_700_000_000_000)));
        let options =
            DatabaseOptions { durability: Durability::Interval, ..DatabaseOptions::default() };
        let database = Database::open_with(env, "db", options).unwrap();
        let redis = Redis::open(&database).unwrap();
        let all: Arc<dyn Keys> = Arc::new(redis.keys(0).unwrap());
        let a = Tenant::new(Arc::new(keyspace_of(CATALOGUE)), "a").keys(Arc::clone(&all));
        let world = World { all, a };
        for school in schools {
            let keys = keys_of(school);
            let [string, number, hash, list, set, zset, stream, _] = keys.as_slice() else {
                panic!("a kind is missing")
            };
            for line in [
                format!("SET {string} {school}-SECRET"),
                format!("SET {number} 7"),
                format!("HSET {hash} f {school}-SECRET g 1"),
                format!("RPUSH {list} {school}-SECRET 2 3"),
                format!("SADD {set} {school}-SECRET 2"),
                format!("ZADD {zset} 1 {school}-SECRET 2 b"),
                format!("XADD {stream} 1-1 f {school}-SECRET"),
                format!("XGROUP CREATE {stream} g 0"),
            ] {
                now(world.all.command(&words(&line))).unwrap();
            }
        }
        world
    }

    /// Everything of a school.
    fn state(&self, school: &str) -> Vec<(Bytes, Value, Value)> {
        let pattern = Bytes::from(format!("school:{school}:*"));
        let mut request = ScanKeys { pattern: Some(pattern), ..ScanKeys::default() };
        let mut found = Vec::new();
        loop {
            let page = now(self.all.scan(&request)).unwrap();
            for key in page.keys {
                let ask = |name: &'static str| {
                    now(self.all.command(&[Bytes::from_static(name.as_bytes()), key.clone()]))
                };
                let (dump, until) = (ask("DUMP").unwrap(), ask("PEXPIRETIME").unwrap());
                found.push((key, dump, until));
            }
            request.after = page.next;
            if request.after.is_none() {
                break;
            }
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found
    }
}

/// A sequence of numbers that look like chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % most
    }
}

/// Every command with arguments of all kinds, mostly wrong ones.
fn walk() -> Vec<Vec<Bytes>> {
    const OPTIONS: [&str; 40] = [
        "0",
        "1",
        "2",
        "-1",
        "f",
        "g",
        "b",
        "*",
        "-",
        "+",
        "1-1",
        "$",
        ">",
        "a-SECRET",
        "COUNT",
        "MATCH",
        "STORE",
        "STOREDIST",
        "BY",
        "GET",
        "LIMIT",
        "NX",
        "XX",
        "EX",
        "GROUP",
        "STREAMS",
        "REPLACE",
        "WEIGHTS",
        "LEFT",
        "RIGHT",
        "MIN",
        "KEYS",
        "FIELDS",
        "DB",
        "ALPHA",
        "AND",
        "FROMMEMBER",
        "BYRADIUS",
        "km",
        "shared:x",
    ];
    let (own, other) = (keys_of("a"), keys_of("b"));
    let mut chance = Chance(1);
    let mut commands = Vec::new();
    for command in known_commands() {
        for _ in 0..40 {
            let mut args: Vec<String> = command.name.split('|').map(str::to_owned).collect();
            let wanted = command.args_min.max(args.len()) + chance.below(5);
            while args.len() < wanted {
                args.push(match chance.below(8) {
                    0 => other[chance.below(other.len())].clone(),
                    1..5 => own[chance.below(own.len())].clone(),
                    _ => OPTIONS[chance.below(OPTIONS.len())].to_owned(),
                });
            }
            commands.push(args.into_iter().map(Bytes::from).collect());
        }
    }
    commands
}

/// Commands on several keys, with those of one school in every place beside those of another.
fn pairs() -> Vec<Vec<Bytes>> {
    let mut commands = Vec::new();
    let (own, other) = (keys_of("a"), keys_of("b"));
    for (own, other) in own.iter().zip(&other) {
        for (x, y) in [(other, other), (other, own), (own, other)] {
            for line in [
                format!("MGET {x} {y}"),
                format!("EXISTS {x} {y}"),
                format!("TOUCH {x} {y}"),
                format!("LCS {x} {y}"),
                format!("BITOP OR {x} {y}"),
                format!("PFMERGE {x} {y}"),
                format!("PFCOUNT {x} {y}"),
                format!("LMOVE {x} {y} LEFT RIGHT"),
                format!("RPOPLPUSH {x} {y}"),
                format!("LMPOP 2 {x} {y} LEFT"),
                format!("SMOVE {x} {y} 2"),
                format!("SUNION {x} {y}"),
                format!("SDIFFSTORE {x} {y} {y}"),
                format!("SINTERCARD 2 {x} {y}"),
                format!("ZUNIONSTORE {x} 1 {y}"),
                format!("ZRANGESTORE {x} {y} 0 -1"),
                format!("ZMPOP 2 {x} {y} MIN"),
                format!("SORT {x} ALPHA STORE {y}"),
                format!("SORT {x} BY nosort GET {y}"),
                format!("GEORADIUS {x} 0 0 1 km STORE {y}"),
                format!("XREAD STREAMS {x} {y} 0 0"),
                format!("XREADGROUP GROUP g c STREAMS {x} {y} > >"),
                format!("EVAL return(1) 2 {x} {y}"),
                format!("BLPOP {x} {y} 0"),
                format!("WATCH {x} {y}"),
                format!("RENAME {x} {y}"),
                format!("RENAMENX {x} {y}"),
                format!("COPY {x} {y} REPLACE"),
                format!("MSET {x} 1 {y} 2"),
                format!("MSETNX {x} 1 {y} 2"),
                format!("DEL {x} {y}"),
                format!("UNLINK {x} {y}"),
            ] {
                commands.push(words(&line));
            }
        }
    }
    commands
}

#[test]
fn whatever_a_tenant_sends_is_answered_as_if_there_were_no_other_and_changes_nothing_of_another() {
    let (with, without) = (World::new(&["a", "b"]), World::new(&["a"]));
    let before = with.state("b");
    assert_eq!(before.len(), 7);
    let mut done = 0;
    for given in pairs().into_iter().chain(walk()) {
        let answered = now(with.a.command(&given));
        let expected = now(without.a.command(&given));
        done += usize::from(!matches!(answered, Err(Error::Refused(_))));
        let is_by_chance = BY_CHANCE.iter().any(|name| given[0] == *name);
        if is_by_chance {
            // They may have taken different members away.
            continue;
        }
        assert_eq!(format!("{answered:?}"), format!("{expected:?}"), "{given:?}");
        assert!(!format!("{answered:?}").contains(&format!("{:?}", b"b-SECRET")), "{given:?}");
    }
    assert!(done > 300, "only {done} commands were tried");
    assert_eq!(with.state("b"), before);
}

#[test]
fn without_a_tenant_the_same_commands_do_read_and_change_what_is_anothers() {
    let (with, without) = (World::new(&["a", "b"]), World::new(&["a"]));
    let before = with.state("b");
    let differing = pairs().into_iter().filter(|given| {
        let reply = |world: &World| format!("{:?}", now(world.all.command(given)));
        reply(&with) != reply(&without)
    });
    let differing = differing.count();
    assert!(differing > 20, "{differing}");
    assert_ne!(with.state("b"), before);
}

#[test]
fn every_command_that_names_anothers_key_is_refused() {
    let world = World::new(&["a", "b"]);
    for given in pairs() {
        let refused = now(world.a.command(&given)).unwrap_err();
        assert!(matches!(refused, Error::Refused(_)), "{given:?}: {refused}");
    }
    for line in ["GET school:b:x", "GET shared:x", "GET anything", "GET school:a", "PUBLISH c m"] {
        let refused = now(world.a.command(&words(line))).unwrap_err();
        assert!(matches!(refused, Error::Refused(_)), "{line}: {refused}");
    }
    let refused = now(world.a.command(&words("GET school:b:x"))).unwrap_err();
    assert_eq!(refused.to_string(), "ERR `school:b:x` is not declared as a key of the tenant `a`");
}

#[test]
fn one_foreign_key_refuses_all_of_a_pipeline_transaction_watch_or_purge() {
    let world = World::new(&["a", "b"]);
    let (own, other) = (keys_of("a").remove(0), keys_of("b").remove(0));
    let before = (world.state("a"), world.state("b"));
    let commands = [words(&format!("SET {own} new")), words(&format!("SET {other} new"))];
    now(world.a.pipeline(&commands)).unwrap_err();
    now(world.a.transaction(&commands)).unwrap_err();
    now(world.a.watch(&[Bytes::from(own.clone()), Bytes::from(other.clone())])).unwrap_err();
    let mut watch = now(world.a.watch(&[Bytes::from(own.clone())])).unwrap();
    now(watch.command(&words(&format!("GET {other}")))).unwrap_err();
    now(watch.commit(&commands)).unwrap_err();
    let database = world.a.database(1).unwrap();
    now(database.command(&words(&format!("SET {other} 1")))).unwrap_err();
    for request in [
        PurgeKeys { keys: vec![(0, other.clone().into())], ..PurgeKeys::default() },
        PurgeKeys {
            members: vec![(0, other.clone().into(), Bytes::from_static(b"2"))],
            ..PurgeKeys::default()
        },
        PurgeKeys { remains: true, ..PurgeKeys::default() },
    ] {
        now(world.a.purge(&request)).unwrap_err();
    }
    assert_eq!((world.state("a"), world.state("b")), before);
}

#[test]
fn a_tenant_works_with_its_own_keys_as_with_any_port() {
    let world = World::new(&["a", "b"]);
    let keys = keys_of("a");
    let own = &keys[0];
    let replies = now(world.a.transaction(&[
        words(&format!("SET {own} 1")),
        words(&format!("INCR {own}")),
        words(&format!("LPUSH {own} x")),
    ]))
    .unwrap();
    assert_eq!(replies[1], Ok(Value::Integer(2)));
    assert!(replies[2].as_ref().unwrap_err().message().starts_with("WRONGTYPE"));
    let mut watch = now(world.a.watch(&[Bytes::from(own.clone())])).unwrap();
    assert_eq!(now(watch.command(&words(&format!("GET {own}")))).unwrap(), Value::bulk("2"));
    now(world.a.command(&words(&format!("SET {own} raced")))).unwrap();
    assert_eq!(now(watch.commit(&[words(&format!("SET {own} 3"))])).unwrap(), None);
    let request = PurgeKeys { keys: vec![(0, own.clone().into())], ..PurgeKeys::default() };
    assert_eq!(now(world.a.purge(&request)).unwrap().records, 1);
    now(world.a.settle()).unwrap();
}

#[test]
fn a_walk_over_the_keys_shows_a_tenant_its_own() {
    let world = World::new(&["a", "b"]);
    for line in ["SET shared:x 1", "SET other 1", "SET school:a:with:more 1"] {
        now(world.all.command(&words(line))).unwrap();
    }
    for pattern in [None, Some(Bytes::from_static(b"*"))] {
        let mut request = ScanKeys { pattern, count: 3, ..ScanKeys::default() };
        let mut found = Vec::new();
        loop {
            let page = now(world.a.scan(&request)).unwrap();
            found.extend(page.keys);
            request.after = page.next;
            if request.after.is_none() {
                break;
            }
        }
        found.sort();
        let mut expected: Vec<Bytes> = keys_of("a").into_iter().take(7).map(Bytes::from).collect();
        expected.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn the_keys_that_the_port_finds_are_those_of_the_command_table() {
    for given in pairs() {
        if let Ok(asked) = PortCommand::of(&given) {
            let named = asked.keys.iter().map(|at| &given[*at]);
            let schools = given.iter().filter(|arg| arg.starts_with(b"school:"));
            assert!(named.eq(schools), "{given:?}");
        }
    }
}
