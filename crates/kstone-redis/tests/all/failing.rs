//! A command that fails among others leaves nothing of itself, and fails alone.

use crate::support::{Client, bulk, error, int, machine, ok};
use kstone::{Database, DatabaseOptions};
use kstone_core::Durability;
use kstone_redis::{Pipeline, Redis, Value};

/// Longer than any key can be.
static TOO_LONG: [u8; 70_000] = [b'k'; 70_000];
/// A key in whose partition no member has room.
static NEARLY_TOO_LONG: [u8; 65_535] = [b'n'; 65_535];

/// The replies to commands that were sent together, and how many were carried out together at
/// first.
fn together(client: &mut Client, commands: &[&[&[u8]]]) -> (usize, Vec<Value>) {
    let mut pipeline = Pipeline::new();
    for command in commands {
        assert!(pipeline.push(command.iter().copied()));
    }
    let (done, mut replies) = client.together(&pipeline);
    assert_eq!(replies.len(), done);
    for command in commands.iter().skip(done) {
        replies.push(client.session.call(command));
    }
    (done, replies)
}

/// The text of INFO.
fn info(client: &mut Client, line: &str) -> String {
    match client.say(line) {
        Value::Bulk(text) | Value::Verbatim(_, text) => String::from_utf8(text).unwrap(),
        other => panic!("no text: {other:?}"),
    }
}

#[test]
fn a_write_that_fails_in_a_pipeline_leaves_nothing_and_spoils_nothing() {
    let mut client = Client::new();
    let (done, replies) = together(
        &mut client,
        &[&[b"SET", b"x", b"1"], &[b"SADD", &TOO_LONG, b"m"], &[b"SADD", &NEARLY_TOO_LONG, b"m"]],
    );
    assert_eq!(done, 0);
    assert_eq!(replies[0], ok());
    assert!(matches!(&replies[1], Value::Error(_)));
    assert!(matches!(&replies[2], Value::Error(_)));
    assert_eq!(client.say("GET x"), bulk("1"));

    let (_, replies) = together(
        &mut client,
        &[&[b"MSET", b"a", b"1", &TOO_LONG, b"2"], &[b"SET", b"x", b"2"], &[b"INCR", b"n"]],
    );
    assert!(matches!(&replies[0], Value::Error(_)));
    assert_eq!(replies[1..], [ok(), int(1)]);
    assert_eq!(client.say("EXISTS a"), int(0));
    assert_eq!(client.say("DBSIZE"), int(2));
    // Later commands are carried out together again.
    let (done, _) = together(&mut client, &[&[b"SET", b"x", b"3"], &[b"SET", b"x", b"4"]]);
    assert_eq!(done, 2);
    // What was begun and taken back does not count.
    let stats = info(&mut client, "INFO commandstats");
    assert!(stats.contains("cmdstat_mset:calls=1,"), "{stats}");
    assert!(stats.contains("cmdstat_set:calls=4,"), "{stats}");
}

#[test]
fn a_command_that_fails_in_a_multi_leaves_nothing_of_itself() {
    let mut client = Client::new();
    client.say("RPUSH list 1 2");
    client.say("MULTI");
    client.say("SET before 1");
    client.say("RPUSH list 3");
    client.call(&[&b"MSET"[..], b"a", b"1", b"before", b"2", &TOO_LONG, b"2"]);
    client.call(&[&b"RENAME"[..], b"list", &TOO_LONG]);
    client.call(&[&b"SADD"[..], &NEARLY_TOO_LONG, b"m"]);
    client.call(&[&b"SUNIONSTORE"[..], &NEARLY_TOO_LONG, b"none"]);
    client.say("RPUSH list 4");
    client.say("SET after 1");
    let Value::Array(replies) = client.say("EXEC") else { panic!("it was refused") };
    let failed: Vec<bool> = replies.iter().map(|one| matches!(one, Value::Error(_))).collect();
    assert_eq!(failed, [false, false, true, true, true, false, false, false]);
    assert_eq!(client.say("EXISTS a"), int(0));
    assert_eq!(client.say("MGET before after"), Value::Array(vec![bulk("1"), bulk("1")]));
    assert_eq!(client.say("LRANGE list 0 -1"), crate::support::bulks(&["1", "2", "3", "4"]));
    assert_eq!(client.say("DBSIZE"), int(3));
}

#[test]
fn a_command_that_fails_in_a_script_leaves_nothing_of_itself() {
    let mut client = Client::new();
    let script = "redis.call('set', 'before', 1) \
                  redis.pcall('mset', 'a', 1, 'before', 2, ARGV[1], 2) \
                  redis.pcall('sadd', ARGV[2], 'm') \
                  redis.pcall('copy', 'before', ARGV[1], 'db', 3) \
                  return redis.call('set', 'after', 1)";
    let reply = client.call(&[&b"EVAL"[..], script.as_bytes(), b"0", &TOO_LONG, &NEARLY_TOO_LONG]);
    assert_eq!(reply, ok());
    assert_eq!(client.say("EXISTS a"), int(0));
    assert_eq!(client.say("MGET before after"), Value::Array(vec![bulk("1"), bulk("1")]));
    assert_eq!(client.say("DBSIZE"), int(2));
}

#[test]
fn a_script_that_selects_another_database_works_there() {
    let mut client = Client::new();
    let script = "redis.call('select', 5) redis.call('set', 'a', 1) return redis.call('dbsize')";
    assert_eq!(client.call(&["EVAL", script, "0"]), int(1));
    assert_eq!(client.say("EXISTS a"), int(0));
    client.say("SELECT 5");
    assert_eq!(client.say("EXISTS a"), int(1));
}

#[test]
fn the_keys_of_a_database_are_opened_once() {
    let (env, _) = machine();
    let database = Database::open_with(env, "db", DatabaseOptions::default()).unwrap();
    let (mut one, mut other) = (Client::of(&database), Client::of(&database));
    one.say("SET a 1");
    other.say("WATCH a");
    one.say("SET a 2");
    other.say("MULTI");
    assert!(matches!(other.say("EXEC"), Value::NullArray | Value::Null));
    let other = match database.durability() {
        Durability::Os => Durability::Sync,
        _ => Durability::Os,
    };
    assert!(Redis::open(&database.with_durability(other)).is_err());
}

#[test]
fn scripts_that_came_by_eval_make_room_for_others() {
    let mut client = Client::new();
    let Value::Bulk(loaded) = client.call(&["SCRIPT", "LOAD", "return 'loaded'"]) else {
        panic!("no digest")
    };
    let first = "return 'first'";
    client.call(&["EVAL", first, "0"]);
    for n in 0..600 {
        let script = format!("return {n}");
        assert_eq!(client.call(&["EVAL", &script, "0"]), int(n));
        if n == 400 {
            client.call(&["EVAL", first, "0"]);
        }
    }
    let info = info(&mut client, "INFO memory");
    assert!(info.contains("number_of_cached_scripts:501"), "{info}");
    let digest = b"EVALSHA".as_slice();
    assert_eq!(client.call(&[digest, &loaded, b"0"]), bulk("loaded"));
    assert!(error(client.call(&["EVALSHA", &"0".repeat(40), "0"])).starts_with("NOSCRIPT"));
}
