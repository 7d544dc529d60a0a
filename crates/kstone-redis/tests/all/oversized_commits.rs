//! MULTI and scripts that write more than one commit can hold.

use crate::support::{Client, bulk, error, int, ok};
use kstone_ports::keys::Value;

const MIB: usize = 1 << 20;
const REFUSED: &str = "can write at most 64 MiB at once";

/// The command that sets a key to so many bytes.
fn set(key: &str, len: usize) -> Vec<Vec<u8>> {
    vec![b"SET".to_vec(), key.as_bytes().to_vec(), vec![b'x'; len]]
}

#[test]
fn the_command_of_a_multi_that_writes_too_much_fails_alone() {
    let mut client = Client::new();
    client.say("SET large before");
    client.say("MULTI");
    for n in 0..5 {
        client.call(&set(&format!("a{n}"), 10 * MIB));
    }
    client.call(&set("large", 15 * MIB));
    client.say("INCR counter");
    let Value::Array(replies) = client.say("EXEC") else { panic!("it was refused") };
    assert_eq!(replies[..5], [ok(), ok(), ok(), ok(), ok()]);
    assert!(error(replies[5].clone()).contains(REFUSED));
    assert_eq!(replies[6], int(1));
    assert_eq!(client.say("STRLEN a4"), int(10 * MIB as i64));
    assert_eq!(client.say("GET large"), bulk("before"));
    assert_eq!(client.say("DBSIZE"), int(7));
}

#[test]
fn a_script_is_told_by_the_call_that_writes_too_much() {
    let mut client = Client::new();
    let script = "local text = string.rep('x', 10 * 1024 * 1024)
                  for n = 1, 6 do redis.call('set', 'a' .. n, text) end
                  local told = redis.pcall('set', 'b', text)
                  redis.call('del', 'a1')
                  redis.call('set', 'c', text)
                  return told.err";
    let Value::Bulk(told) = client.call(&["EVAL", script, "0"]) else { panic!("it failed") };
    assert!(String::from_utf8(told).unwrap().contains(REFUSED));
    // What was removed again made room.
    assert_eq!(client.say("EXISTS a1 a2 a6 b c"), int(3));

    client.say("FLUSHALL");
    let script = "local text = string.rep('x', 10 * 1024 * 1024)
                  for n = 1, 9 do redis.call('set', 'a' .. n, text) end";
    let told = error(client.call(&["EVAL", script, "0"]));
    assert!(told.contains(REFUSED), "{told}");
    // As in Redis, what was done before the error stays.
    assert_eq!(client.say("DBSIZE"), int(6));
}

#[test]
fn a_key_may_be_written_again_and_again() {
    let mut client = Client::new();
    client.say("MULTI");
    for _ in 0..10 {
        client.call(&set("a", 10 * MIB));
    }
    let Value::Array(replies) = client.say("EXEC") else { panic!("it was refused") };
    assert_eq!(replies, vec![ok(); 10]);
}

#[test]
fn whatever_is_accepted_is_committed() {
    // Everything that takes room in a commit, until there is none.
    let script = "local n, name = 0, string.rep('\\0', 200)
        while true do
            n = n + 1
            local key = name .. n
            local told = redis.pcall('set', 's' .. key, n, 'px', 1000000)
            if not told.err then told = redis.pcall('hset', key, 'f', n, 'g', n) end
            if type(told) == 'number' then
                told = redis.pcall('hpexpire', key, 100000, 'fields', 1, 'f')
                if not told.err then told = redis.pcall('del', 'old' .. n) end
            end
            if type(told) == 'number' then
                told = redis.pcall('zadd', 'z', n, key, n, n)
            end
            if type(told) == 'table' and told.err then
                return told.err
            end
        end";
    let mut client = Client::new();
    for n in 0..1000 {
        client.say(&format!("SADD old{n} a"));
    }
    let told = client.call(&["EVAL", script, "0"]);
    let Value::Bulk(told) = told else { panic!("it failed: {told:?}") };
    assert!(String::from_utf8(told).unwrap().contains(REFUSED));
    assert!(matches!(client.say("ZCARD z"), Value::Integer(10_000..)));
}

#[test]
fn a_command_that_writes_too_much_on_its_own_says_so() {
    let mut client = Client::new();
    let large = vec![b'x'; 15 * MIB];
    client.say("RPUSH l a");
    let mut push = vec![b"RPUSH".to_vec(), b"l".to_vec()];
    push.extend(vec![large; 5]);
    assert!(error(client.call(&push)).contains(REFUSED));
    assert_eq!(client.say("LLEN l"), int(1));
}
