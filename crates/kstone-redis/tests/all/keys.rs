//! Commands on keys of any type.

use crate::support::{Client, bulk, bulks, error, int, ok};
use kstone_ports::keys::Value;

/// A list whose elements are `count` times `len` bytes.
fn push_list(client: &mut Client, key: &str, count: usize, len: usize) {
    let element = vec![b'x'; len];
    for chunk in 0..count.div_ceil(64) {
        let mut args = vec![b"RPUSH".to_vec(), key.as_bytes().to_vec()];
        for number in (chunk * 64)..((chunk + 1) * 64).min(count) {
            let mut element = element.clone();
            element.splice(..8, format!("{number:08}").into_bytes());
            args.push(element);
        }
        assert!(matches!(client.call(&args), Value::Integer(_)));
    }
}

fn element_number(value: Value) -> usize {
    let Value::Bulk(bytes) = value else { panic!("not an element: {value:?}") };
    String::from_utf8_lossy(&bytes[..8]).parse().unwrap()
}

#[test]
fn a_renamed_key_keeps_its_value_and_its_expiry() {
    let mut client = Client::new();
    client.say("RPUSH a 1 2 3");
    client.say("PEXPIREAT a 99999999999999");
    client.say("SET b old");
    assert_eq!(client.say("RENAME a b"), ok());
    assert_eq!(client.say("LRANGE b 0 -1"), bulks(&["1", "2", "3"]));
    assert_eq!(client.say("PEXPIRETIME b"), int(99_999_999_999_999));
    assert_eq!(client.say("EXISTS a"), int(0));
    assert_eq!(client.say("DBSIZE"), int(1));
    assert_eq!(error(client.say("RENAME a b")), "ERR no such key");
    assert_eq!(client.say("RENAMENX b b"), int(0));
    assert_eq!(client.say("RENAME b b"), ok());
}

#[test]
fn a_copy_is_a_key_of_its_own() {
    let mut client = Client::new();
    client.say("RPUSH a 1 2");
    assert_eq!(client.say("COPY a b"), int(1));
    client.say("RPUSH b 3");
    assert_eq!(client.say("LRANGE a 0 -1"), bulks(&["1", "2"]));
    assert_eq!(client.say("COPY a b"), int(0));
    assert_eq!(client.say("COPY a b REPLACE"), int(1));
    assert_eq!(client.say("LRANGE b 0 -1"), bulks(&["1", "2"]));
    assert_eq!(client.say("COPY a a DB 3"), int(1));
    assert_eq!(client.say("SELECT 3"), ok());
    assert_eq!(client.say("LLEN a"), int(2));
    assert_eq!(error(client.say("COPY a a")), "ERR source and destination objects are the same");
    assert_eq!(error(client.say("COPY a b DB 16")), "ERR DB index is out of range");
}

#[test]
fn a_moved_key_is_in_the_other_database_alone() {
    let mut client = Client::new();
    client.say("RPUSH a 1 2");
    assert_eq!(client.say("MOVE a 5"), int(1));
    assert_eq!(client.say("EXISTS a"), int(0));
    client.say("SET a 1");
    assert_eq!(client.say("MOVE a 5"), int(0));
    client.say("SELECT 5");
    assert_eq!(client.say("LRANGE a 0 -1"), bulks(&["1", "2"]));
}

#[test]
fn a_key_larger_than_a_commit_is_copied_renamed_and_removed_whole() {
    let mut client = Client::new();
    let (count, len) = (5_000, 16 << 10);
    push_list(&mut client, "a", count, len);
    client.say("SET b old");
    assert_eq!(client.say("COPY a b REPLACE"), int(1));
    assert_eq!(client.say("TYPE b"), Value::Simple("list".into()));
    assert_eq!(client.say("LLEN b"), int(count as i64));
    assert_eq!(element_number(client.say("LINDEX b 4999")), 4_999);
    assert_eq!(client.say("LPUSH b first"), int(count as i64 + 1));
    assert_eq!(element_number(client.say("LINDEX a 0")), 0);
    // What lives in an annex is renamed without being written again, and stays one key.
    assert_eq!(client.say("RENAME b c"), ok());
    assert_eq!(client.say("LPOP c"), bulk("first"));
    assert_eq!(element_number(client.say("LINDEX c 2500")), 2_500);
    assert_eq!(client.say("EXISTS b"), int(0));
    client.say("RPUSH b 1");
    assert_eq!(client.say("LRANGE b 0 -1"), bulks(&["1"]));
    assert_eq!(client.say("EXPIRE c 1000"), int(1));
    assert_eq!(element_number(client.say("LINDEX c 4999")), 4_999);
    assert_eq!(client.say("DEL c"), int(1));
    client.say("RPUSH c 1");
    assert_eq!(client.say("LRANGE c 0 -1"), bulks(&["1"]));
    assert_eq!(client.say("DBSIZE"), int(3));
}

#[test]
fn a_transaction_that_renames_there_and_back_changes_nothing() {
    let mut client = Client::new();
    push_list(&mut client, "a", 1_200, 16 << 10);
    assert_eq!(client.say("COPY a b"), int(1));
    for line in ["MULTI", "RENAME b c", "RPUSH c last", "RENAME c b", "RENAME b d", "DEL d"] {
        client.say(line);
    }
    assert!(matches!(client.say("EXEC"), Value::Array(_)));
    assert_eq!(client.say("DBSIZE"), int(1));
    assert_eq!(client.say("COPY a b"), int(1));
    for line in ["MULTI", "RENAME b c", "RPUSH c last", "RENAME c b"] {
        client.say(line);
    }
    assert!(matches!(client.say("EXEC"), Value::Array(_)));
    assert_eq!(client.say("LLEN b"), int(1_201));
    assert_eq!(client.say("LINDEX b -1"), bulk("last"));
    assert_eq!(element_number(client.say("LINDEX b 1199")), 1_199);
}

#[test]
fn swapped_and_emptied_databases_take_what_a_transaction_writes_to_them() {
    let mut client = Client::new();
    client.say("SET a 0");
    for line in ["MULTI", "SWAPDB 0 7", "SET b 1", "EXEC"] {
        client.say(line);
    }
    assert_eq!(client.say("GET b"), bulk("1"));
    assert_eq!(client.say("EXISTS a"), int(0));
    assert_eq!(client.another().say("GET b"), bulk("1"));
    for line in ["SELECT 9", "MULTI", "FLUSHALL", "SET c 1", "EXEC"] {
        client.say(line);
    }
    assert_eq!(client.say("GET c"), bulk("1"));
    assert_eq!(client.say("DBSIZE"), int(1));
    assert_eq!(error(client.say("SWAPDB x 1")), "ERR invalid first DB index");
    assert_eq!(error(client.say("SWAPDB 1 16")), "ERR DB index is out of range");
    assert_eq!(error(client.say("FLUSHDB NOW")), "ERR syntax error");
    assert_eq!(client.say("FLUSHDB ASYNC"), ok());
}

#[test]
fn keys_and_randomkey_show_what_is_there() {
    let mut client = Client::new();
    assert_eq!(client.say("RANDOMKEY"), Value::Null);
    client.say("MSET one 1 two 2 three 3");
    client.say("RPUSH list 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20");
    client.say("PEXPIREAT two 1");
    let Value::Array(mut found) = client.say("KEYS t*") else { panic!("not a list") };
    assert_eq!(found.pop(), Some(bulk("three")));
    assert_eq!(found, []);
    let Value::Array(found) = client.say("KEYS *") else { panic!("not a list") };
    assert_eq!(found.len(), 3);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let Value::Bulk(key) = client.say("RANDOMKEY") else { panic!("no key") };
        seen.insert(key);
    }
    assert_eq!(seen.len(), 3, "each of three keys comes within 200 times");
}

#[test]
fn object_and_memory_tell_what_a_key_is_like() {
    let mut client = Client::new();
    client.say("SET a 123");
    assert_eq!(client.say("OBJECT ENCODING a"), bulk("int"));
    client.say("SET a hello");
    assert_eq!(client.say("OBJECT ENCODING a"), bulk("embstr"));
    assert_eq!(client.say("OBJECT REFCOUNT a"), int(1));
    assert_eq!(client.say("OBJECT IDLETIME a"), int(0));
    assert_eq!(client.say("OBJECT IDLETIME nothing"), Value::Null);
    assert!(error(client.say("OBJECT FREQ a")).contains("LFU"));
    let Value::Integer(bytes) = client.say("MEMORY USAGE a SAMPLES 5") else { panic!("no size") };
    assert!((6..200).contains(&bytes));
    assert_eq!(client.say("MEMORY USAGE nothing"), Value::Null);
}

#[test]
fn an_encoding_is_the_one_that_redis_would_have_chosen() {
    let mut client = Client::new();
    let long = "x".repeat(65);
    for (make, encoding) in [
        ("SADD k 1 2 3".to_owned(), "intset"),
        ("SADD k a".to_owned(), "hashtable"),
        ("HSET k a 1".to_owned(), "listpack"),
        (format!("HSET k a {long}"), "hashtable"),
        ("ZADD k 1 a".to_owned(), "listpack"),
        (format!("ZADD k 1 {long}"), "skiplist"),
        ("RPUSH k a".to_owned(), "quicklist"),
        (format!("SET k {long}"), "raw"),
    ] {
        client.say("DEL k");
        client.say(&make);
        assert_eq!(client.say("OBJECT ENCODING k"), bulk(encoding), "{make}");
    }
    client.say("CONFIG SET hash-max-listpack-entries 0");
    client.say("HSET h a 1");
    assert_eq!(client.say("OBJECT ENCODING h"), bulk("hashtable"));
}
