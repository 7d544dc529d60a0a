//! WAIT and WAITAOF: what they answer, and when.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::stalled::Disk;
use crate::support::{Client, bulk, error, int, ok};
use kstone::{Database, DatabaseOptions};
use kstone_core::Durability;
use kstone_core::env::Env;
use kstone_ports::keys::Value;

/// A client of a database on a disk that can be stalled.
fn open() -> (Client, Disk) {
    let disk = Disk::default();
    let env = Env { vfs: Arc::new(disk.clone()), ..Env::memory() };
    let database = Database::open_with(env, "db", DatabaseOptions::default()).unwrap();
    let mut client = Client::of(&database.with_durability(Durability::Interval));
    // The first key makes the table of its database, for which the disk is waited.
    client.say("SET first 1");
    (client, disk)
}

fn acknowledged(local: i64) -> Value {
    Value::Array(vec![int(local), int(0)])
}

#[test]
fn who_waits_for_the_disk_is_told_after_its_time_that_it_was_not_reached() {
    let (mut client, disk) = open();
    client.say("SET a 1");
    assert_eq!(client.say("WAITAOF 1 0 0"), acknowledged(1));
    let stall = disk.stall();
    client.say("SET a 2");
    let begun = Instant::now();
    assert_eq!(client.say("WAITAOF 1 0 30"), acknowledged(0));
    assert!(begun.elapsed() >= Duration::from_millis(30));
    assert_eq!(client.say("WAITAOF 0 0 0"), acknowledged(0));
    drop(stall);
    assert_eq!(client.say("WAITAOF 1 0 0"), acknowledged(1));
    assert_eq!(client.redis.blocked_clients(), 0);
}

#[test]
fn others_go_on_while_a_client_waits_for_the_disk() {
    let (mut client, disk) = open();
    let mut other = client.another();
    let stall = disk.stall();
    client.say("SET a 1");
    let mut waiting = client.begin("WAITAOF 1 0 0");
    assert_eq!(waiting.left(), None);
    assert_eq!(client.redis.blocked_clients(), 1);
    assert_eq!(other.say("SET b 1"), ok());
    assert_eq!(other.say("GET a"), bulk("1"));
    assert_eq!(client.served(&mut waiting), None);
    drop(stall);
    let end = Instant::now() + Duration::from_secs(20);
    let told = loop {
        assert!(Instant::now() < end, "it was never told");
        match client.served(&mut waiting) {
            Some(told) => break told,
            None => std::thread::yield_now(),
        }
    };
    assert_eq!(told, acknowledged(1));
    assert_eq!(client.redis.blocked_clients(), 0);
}

#[test]
fn who_wants_a_replica_waits_out_its_time() {
    let (mut client, _disk) = open();
    client.say("SET a 1");
    for (line, expected) in [
        ("WAIT 1 20", int(0)),
        ("WAITAOF 0 1 20", acknowledged(1)),
        ("WAITAOF 1 1 20", acknowledged(1)),
    ] {
        assert_eq!(client.say("WAITAOF 1 0 0"), acknowledged(1));
        let begun = Instant::now();
        assert_eq!(client.say(line), expected, "{line}");
        assert!(begun.elapsed() >= Duration::from_millis(20), "{line}");
    }
    assert_eq!(client.say("WAIT 0 0"), int(0));
    assert_eq!(client.say("WAIT -1 0"), int(0));
}

#[test]
fn who_waits_for_a_replica_can_be_told_to_go_on() {
    let (client, disk) = open();
    let (mut waiting, mut other) = (client.another(), client.another());
    let Value::Integer(id) = waiting.say("CLIENT ID") else { panic!("no number") };
    for (line, told) in [("WAIT 1 0", int(0)), ("WAITAOF 1 1 0", acknowledged(0))] {
        let _stall = disk.stall();
        waiting.say("SET a 1");
        let mut wait = waiting.begin(line);
        assert_eq!(waiting.served(&mut wait), None);
        assert_eq!(other.say(&format!("CLIENT UNBLOCK {id}")), int(1));
        assert_eq!(waiting.served(&mut wait), Some(told), "{line}");
        let mut wait = waiting.begin(line);
        assert_eq!(other.say(&format!("CLIENT UNBLOCK {id} ERROR")), int(1));
        let told = waiting.served(&mut wait).expect("it was told");
        assert!(error(told).starts_with("UNBLOCKED"), "{line}");
        // Who goes waits no longer.
        drop(waiting.begin(line));
        assert_eq!(client.redis.blocked_clients(), 0);
    }
}

#[test]
fn nobody_waits_inside_a_transaction() {
    let (mut client, disk) = open();
    client.say("SET a 1");
    assert_eq!(client.say("WAITAOF 1 0 0"), acknowledged(1));
    let _stall = disk.stall();
    client.say("SET a 2");
    client.say("MULTI");
    for line in ["WAIT 1 0", "WAITAOF 1 0 0", "WAITAOF 0 1 0"] {
        client.say(line);
    }
    let told = vec![int(0), acknowledged(0), acknowledged(0)];
    assert_eq!(client.say("EXEC"), Value::Array(told));
}

#[test]
fn waiting_is_refused_in_redis_words() {
    let (mut client, _disk) = open();
    for (line, expected) in [
        ("WAIT a 0", "ERR value is not an integer or out of range"),
        ("WAIT 0 a", "ERR timeout is not an integer or out of range"),
        ("WAIT 0 -1", "ERR timeout is negative"),
        ("WAITAOF 2 0 0", "ERR value is out of range, must be between 0 and 1"),
        ("WAITAOF 1 -1 0", "ERR value is out of range, must be positive"),
        ("WAITAOF 1 0 -1", "ERR timeout is negative"),
    ] {
        assert_eq!(error(client.say(line)), expected, "{line}");
    }
}
