//! The port to keys, on the keys of this process.

use std::sync::Arc;

use crate::support::{Client, bulk, int, now, ok};
use bytes::Bytes;
use kstone_ports::Error;
use kstone_ports::keys::{Keys, ScanKeys};
use kstone_redis::{Redis, Value};

fn words(line: &str) -> Vec<Bytes> {
    line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

fn port(redis: &Redis) -> Arc<dyn Keys> {
    Arc::new(redis.keys(0).unwrap())
}

fn say(keys: &Arc<dyn Keys>, line: &str) -> Result<Value, Error> {
    now(keys.command(&words(line)))
}

#[test]
fn a_command_is_answered_with_its_reply_and_an_error_is_an_error() {
    let client = Client::with_clock().0;
    let keys = port(&client.redis);
    assert_eq!(say(&keys, "SET a 1"), Ok(ok()));
    assert_eq!(say(&keys, "GET a"), Ok(bulk("1")));
    let Err(Error::Reply(fault)) = say(&keys, "LPUSH a x") else { panic!("no error") };
    assert_eq!(fault.code(), "WRONGTYPE");
    assert!(matches!(say(&keys, "MGET a b"), Err(Error::Refused(_))));
    assert_eq!(say(&keys, "MGET {a}1 {a}2"), Ok(Value::Array(vec![Value::Null, Value::Null])));
}

#[test]
fn a_handle_is_for_one_database_and_knows_its_neighbours() {
    let mut client = Client::with_clock().0;
    let keys = port(&client.redis);
    let third = keys.database(3).unwrap();
    assert_eq!(say(&third, "SET a there"), Ok(ok()));
    assert_eq!(say(&keys, "GET a"), Ok(Value::Null));
    client.say("SELECT 3");
    assert_eq!(client.say("GET a"), bulk("there"));
    assert_eq!((third.db(), keys.database(16).is_none()), (3, true));
}

#[test]
fn a_pipeline_answers_each_command_and_one_that_fails_leaves_the_others() {
    let client = Client::with_clock().0;
    let keys = port(&client.redis);
    let mut commands: Vec<Vec<Bytes>> =
        (0..150).map(|number| words(&format!("SET key{number} {number}"))).collect();
    commands.insert(70, words("RPUSH key3 x"));
    commands.insert(71, words("COPY {a}1 {a}2"));
    commands.push(words("GET key149"));
    let replies = now(keys.pipeline(&commands)).unwrap();
    assert_eq!(replies.len(), 153);
    assert_eq!(replies[70].as_ref().unwrap_err().code(), "WRONGTYPE");
    assert_eq!(replies[71], Ok(int(0)));
    assert_eq!(replies[152], Ok(bulk("149")));
    // One that is no command for the port refuses all of them.
    now(keys.pipeline(&[words("SET key0 new"), words("FLUSHALL")])).unwrap_err();
    assert_eq!(say(&keys, "GET key0"), Ok(bulk("0")));
}

#[test]
fn a_transaction_is_of_one_slot_and_done_as_one() {
    let client = Client::with_clock().0;
    let keys = port(&client.redis);
    let replies =
        now(keys.transaction(&[words("INCR {a}n"), words("LPUSH {a}n x"), words("PING")]));
    let replies = replies.unwrap();
    assert_eq!(replies[0], Ok(int(1)));
    assert_eq!(replies[1].as_ref().unwrap_err().code(), "WRONGTYPE");
    let refused = now(keys.transaction(&[words("INCR a"), words("INCR b")])).unwrap_err();
    assert!(refused.to_string().starts_with("CROSSSLOT"), "{refused}");
    assert_eq!(say(&keys, "GET a"), Ok(Value::Null));
    assert_eq!(now(keys.transaction(&[])).unwrap(), []);
}

#[test]
fn of_two_who_watch_the_same_key_one_commits() {
    let client = Client::with_clock().0;
    let keys = port(&client.redis);
    let key = [Bytes::from_static(b"counter")];
    let begin = || {
        let mut watch = now(keys.watch(&key)).unwrap();
        now(watch.command(&words("GET counter"))).unwrap();
        watch
    };
    let (one, other) = (begin(), begin());
    assert!(now(one.commit(&[words("SET counter 1")])).unwrap().is_some());
    assert_eq!(now(other.commit(&[words("SET counter 2")])).unwrap(), None);
    assert_eq!(say(&keys, "GET counter"), Ok(bulk("1")));
    let mut watch = begin();
    now(watch.command(&words("GET another"))).unwrap_err();
    now(watch.commit(&[words("SET another 2")])).unwrap_err();
    // Who only watched, and went away, is in nobody's way.
    drop(begin());
    assert!(now(begin().commit(&[words("SET counter 3")])).unwrap().is_some());
}

#[test]
fn a_walk_over_the_keys_shows_each() {
    let client = Client::with_clock().0;
    let keys = port(&client.redis);
    for number in 0..300 {
        say(&keys, &format!("SET key{number} 1")).unwrap();
    }
    say(&keys, "SADD set a").unwrap();
    let all = |mut request: ScanKeys| {
        let mut found = Vec::new();
        loop {
            let page = now(keys.scan(&request)).unwrap();
            found.extend(page.keys);
            request.after = page.next;
            if request.after.is_none() {
                found.sort();
                found.dedup();
                return found.len();
            }
        }
    };
    assert_eq!(all(ScanKeys { count: 7, ..ScanKeys::default() }), 301);
    assert_eq!(all(ScanKeys { kind: Some("set"), ..ScanKeys::default() }), 1);
    let pattern = Some(Bytes::from_static(b"key1*"));
    assert_eq!(all(ScanKeys { pattern, ..ScanKeys::default() }), 111);
}

#[test]
fn the_port_is_not_bound_by_what_users_of_the_door_may_do() {
    let mut client = Client::with_clock().0;
    let keys = port(&client.redis);
    client.say("CONFIG SET min-replicas-to-write 1");
    assert!(crate::support::error(client.say("SET a 1")).starts_with("NOREPLICAS"));
    say(&keys, "SET a 1").unwrap();
    client.redis.require_password("secret");
    assert_eq!(say(&keys, "GET a"), Ok(bulk("1")));
    assert_eq!(say(&port(&client.redis), "GET a"), Ok(bulk("1")));
}

#[test]
fn while_clients_are_paused_the_port_says_so() {
    let mut client = Client::with_clock().0;
    let keys = port(&client.redis);
    client.say("CLIENT PAUSE 1000 WRITE");
    assert!(matches!(say(&keys, "SET a 1"), Err(Error::Unavailable(_))));
    assert_eq!(say(&keys, "GET a"), Ok(Value::Null));
    client.say("CLIENT UNPAUSE");
    assert_eq!(say(&keys, "SET a 1"), Ok(ok()));
}

#[test]
fn time_that_a_session_was_idle_is_not_counted_as_the_commands() {
    let (mut client, _database, clock) = Client::with_clock();
    let keys = port(&client.redis);
    say(&keys, "SET a 1").unwrap();
    clock.advance(60_000);
    say(&keys, "SET a 2").unwrap();
    assert_eq!(client.say("SLOWLOG LEN"), int(0));
}

#[test]
fn who_only_watches_does_not_hold_up_settling() {
    let client = Client::with_clock().0;
    let keys = port(&client.redis);
    let _watch = now(keys.watch(&[Bytes::from_static(b"a")])).unwrap();
    now(keys.settle()).unwrap();
}
