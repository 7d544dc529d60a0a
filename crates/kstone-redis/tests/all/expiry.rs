//! Key expiry: EXPIRE, TTL, PERSIST.

use std::sync::Arc;

use crate::support::{Client, bulk, bulks, error, int, ok};
use kstone::{Database, DatabaseOptions};
use kstone_core::env::{Env, ManualClock};
use kstone_core::{Durability, Key, WriteBatch};
use kstone_redis::{Redis, Value};

/// A database whose time stands still until it is told to go on, and which does its background work
/// when it is told to.
fn standing_still() -> (Arc<ManualClock>, Database) {
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let env = Env { clock: clock.clone(), threads: None, ..Env::memory() };
    let database = Database::open_with(env, "memory", DatabaseOptions::default()).unwrap();
    (clock, database)
}

#[test]
fn a_key_is_there_until_the_very_millisecond() {
    let (clock, database) = standing_still();
    let mut client = Client::of(&database);
    client.say("SET a 1");
    assert_eq!(client.say("PEXPIRE a 100"), int(1));
    assert_eq!(client.say("PTTL a"), int(100));
    assert_eq!(client.say("TTL a"), int(0), "seconds are rounded to the nearest");
    assert_eq!(client.say("PEXPIRETIME a"), int(1_700_000_000_100));
    assert_eq!(client.say("EXPIRETIME a"), int(1_700_000_000));
    clock.advance(99);
    assert_eq!(client.say("GET a"), bulk("1"));
    clock.advance(1);
    assert_eq!(client.say("GET a"), Value::Null);
    assert_eq!(client.say("TTL a"), int(-2));
    assert_eq!(client.say("DBSIZE"), int(0), "who asked for it has removed it");
}

#[test]
fn conditions_compare_with_the_expiry_that_there_is() {
    let (_clock, database) = standing_still();
    let mut client = Client::of(&database);
    client.say("SET a 1");
    for (line, answer, ttl) in [
        ("EXPIRE a 100 XX", 0, -1),
        ("EXPIRE a 100 GT", 0, -1),
        ("EXPIRE a 100 NX", 1, 100),
        ("EXPIRE a 200 NX", 0, 100),
        ("EXPIRE a 100 GT", 0, 100),
        ("EXPIRE a 200 GT", 1, 200),
        ("EXPIRE a 300 LT", 0, 200),
        ("EXPIRE a 50 XX LT", 1, 50),
        ("PERSIST a", 1, -1),
        ("EXPIRE a 300 LT", 1, 300),
    ] {
        assert_eq!(client.say(line), int(answer), "{line}");
        assert_eq!(client.say("TTL a"), int(ttl), "{line}");
    }
    let message = "ERR NX and XX, GT or LT options at the same time are not compatible";
    assert_eq!(error(client.say("EXPIRE a 1 NX GT")), message);
    let message = "ERR GT and LT options at the same time are not compatible";
    assert_eq!(error(client.say("EXPIRE a 1 LT GT")), message);
    assert_eq!(error(client.say("EXPIRE a 1 AB")), "ERR Unsupported option AB");
}

#[test]
fn a_time_that_is_over_removes_the_key_and_one_that_cannot_be_is_refused() {
    let (_clock, database) = standing_still();
    let mut client = Client::of(&database);
    client.say("SET a 1");
    for line in ["EXPIRE a 9223372036854775807", "PEXPIRE a 9223372036854770000"] {
        assert!(error(client.say(line)).starts_with("ERR invalid expire time in"), "{line}");
    }
    assert_eq!(client.say("TTL a"), int(-1));
    assert_eq!(client.say("EXPIREAT a -1"), int(1));
    assert_eq!(client.say("EXISTS a"), int(0));
    assert_eq!(client.say("EXPIRE a 10"), int(0));
}

#[test]
fn changing_a_key_keeps_its_expiry_and_replacing_it_does_not() {
    let (_clock, database) = standing_still();
    let mut client = Client::of(&database);
    client.say("RPUSH a 1");
    client.say("EXPIRE a 100");
    client.say("RPUSH a 2");
    assert_eq!(client.say("TTL a"), int(100));
    assert_eq!(client.say("LRANGE a 0 -1"), bulks(&["1", "2"]));
    client.say("SET a 1");
    assert_eq!(client.say("TTL a"), int(-1));
}

#[test]
fn what_nobody_asks_for_is_removed_in_the_background() {
    let (clock, database) = standing_still();
    let mut client = Client::of(&database);
    client.say("SET stays 1");
    client.say("RPUSH goes 1 2 3");
    client.say("PEXPIRE goes 100");
    clock.advance(100);
    assert_eq!(client.say("DBSIZE"), int(2));
    database.run_background().unwrap();
    assert_eq!(client.say("DBSIZE"), int(1));
    client.say("RPUSH goes 4");
    assert_eq!(client.say("LRANGE goes 0 -1"), bulks(&["4"]), "nothing of it was left");
}

#[test]
fn what_nobody_asks_for_is_removed_without_being_told_to() {
    let mut client = Client::new();
    assert_eq!(client.say("SET a 1 PX 1"), ok());
    let mut counted = 0;
    while client.say("DBSIZE") != int(0) {
        counted += 1;
        assert!(counted < 10_000_000, "the key is still there");
        std::thread::yield_now();
    }
}

#[test]
fn keys_of_redis_are_left_alone_by_who_does_not_know_them() {
    let (clock, database) = standing_still();
    let mut client = Client::of(&database);
    client.say("RPUSH a old1 old2");
    client.say("PEXPIRE a 100");
    drop(client);
    clock.advance(100);
    // Nobody is there who knows what belongs to the key.
    database.run_background().unwrap();
    let mut client = Client::of(&database);
    assert_eq!(client.say("DBSIZE"), int(1));
    client.say("RPUSH a new");
    assert_eq!(client.say("LRANGE a 0 -1"), bulks(&["new"]));
}

#[test]
fn the_number_of_keys_is_known_after_a_restart_of_either_kind() {
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let env = Env { clock: clock.clone(), threads: None, ..Env::memory() };
    let open = || Database::open_with(env.clone(), "m", DatabaseOptions::default()).unwrap();
    let database = open();
    let mut client = Client::of(&database);
    for key in 0..50 {
        client.say(&format!("RPUSH key{key} 1 2 3"));
    }
    client.say("PEXPIRE key0 100");
    client.say("SELECT 4");
    client.say("SET a 1");
    drop(client);
    drop(database);
    clock.advance(100);

    // Closed properly: the numbers were written down. What has expired meanwhile still counts until
    // it is removed.
    let database = open();
    let mut client = Client::of(&database);
    assert_eq!(client.say("DBSIZE"), int(50));
    client.say("DEL key1 key0");
    assert_eq!(client.say("DBSIZE"), int(48));
    client.say("SET b 1 PX 10");
    clock.advance(10);

    // Without the numbers, as after a crash: they are counted, while keys come and go.
    drop(client);
    let mut batch = WriteBatch::new();
    batch.delete(database.side_catalog("redis").unwrap(), &Key::new("counts")).unwrap();
    database.engine().write(&batch, Durability::Sync).unwrap().wait().unwrap();
    let mut client = Client::of(&database);
    client.say("DEL key2");
    client.say("SET c 1");
    database.run_background().unwrap();
    assert_eq!(client.say("DBSIZE"), int(48));
    client.say("DEL c");
    assert_eq!(client.say("DBSIZE"), int(47));
    client.say("SELECT 4");
    assert_eq!(client.say("DBSIZE"), int(1));
    client.say("FLUSHDB");
    assert_eq!(client.say("DBSIZE"), int(0));
}

#[test]
fn keys_go_also_while_no_client_can_come() {
    let (clock, database) = standing_still();
    assert!(Redis::open_if_any(&database).unwrap().is_none());
    assert!(!database.has_side("redis").unwrap(), "asking changes nothing");
    let mut client = Client::of(&database);
    client.say("SET a 1 PX 100");
    drop(client);
    clock.advance(100);
    let without_clients = Redis::open_if_any(&database).unwrap();
    assert!(without_clients.is_some());
    database.run_background().unwrap();
    drop(without_clients);
    assert_eq!(Client::of(&database).say("DBSIZE"), int(0));
}

#[test]
fn nothing_is_removed_while_clients_are_paused_and_what_has_expired_is_not_seen() {
    let (mut client, database, clock) = Client::with_clock();
    let (mut listener, mut watching) = (client.another(), client.another());
    client.say("CONFIG SET notify-keyspace-events Ex");
    listener.say("PSUBSCRIBE __keyevent*");
    listener.session.messages();
    let expired = |client: &mut Client| match client.say("INFO stats") {
        Value::Bulk(text) | Value::Verbatim(_, text) => {
            let text = String::from_utf8(text).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("expired_keys:"));
            line.unwrap().parse::<u32>().unwrap()
        }
        other => panic!("no text: {other:?}"),
    };
    for mode in ["WRITE", "ALL"] {
        let before = expired(&mut client);
        client.say("MSET a 1 b 1 c 1");
        client.say("HSET d f 1");
        for key in ["a", "b", "c", "d"] {
            client.say(&format!("PEXPIRE {key} 10"));
        }
        watching.say("WATCH a");
        client.say(&format!("CLIENT PAUSE 1000 {mode}"));
        clock.advance(10);
        if mode == "WRITE" {
            assert_eq!(client.say("MGET a b"), Value::Array(vec![Value::Null, Value::Null]));
            assert_eq!(client.say("HGET d f"), Value::Null);
            assert_eq!(client.say("KEYS *"), Value::Array(vec![]));
            let script = "return redis.call('exists', 'a', 'c')";
            assert_eq!(client.call(&["EVAL_RO", script, "0"]), int(0));
            for line in ["MULTI", "EXISTS c", "TTL b"] {
                client.say(line);
            }
            assert_eq!(client.say("EXEC"), Value::Array(vec![int(0), int(-2)]));
            // A watched key whose time is over counts as changed.
            watching.say("MULTI");
            watching.say("GET c");
            assert_eq!(watching.say("EXEC"), Value::NullArray);
            assert_eq!(client.say("DBSIZE"), int(4));
            assert_eq!(expired(&mut client), before);
        }
        assert!(database.run_background().is_err());
        assert_eq!(listener.session.messages(), []);
        // The pause is over by itself, or somebody ends it.
        match mode {
            "ALL" => clock.advance(1000),
            _ => drop(client.say("CLIENT UNPAUSE")),
        }
        assert_eq!(client.say("GET a"), Value::Null);
        assert_eq!(listener.session.messages().len(), 1);
        database.run_background().unwrap();
        assert_eq!(listener.session.messages().len(), 3);
        assert_eq!(client.say("DBSIZE"), int(0));
        assert_eq!(expired(&mut client), before + 4);
    }
}
