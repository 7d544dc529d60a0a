//! DUMP and RESTORE.

use crate::support::{Client, bulk, bulks, error, int, ok};
use kstone_ports::keys::Value;

fn dump(client: &mut Client, key: &str) -> Vec<u8> {
    match client.call(&["DUMP", key]) {
        Value::Bulk(payload) => payload,
        other => panic!("no payload: {other:?}"),
    }
}

fn restore(client: &mut Client, key: &str, time: &str, payload: &[u8], options: &[&str]) -> Value {
    let mut args: Vec<&[u8]> = vec![b"RESTORE", key.as_bytes(), time.as_bytes(), payload];
    args.extend(options.iter().map(|option| option.as_bytes()));
    client.call(&args)
}

#[test]
fn a_key_of_every_type_comes_back_as_it_was() {
    let mut client = Client::new();
    let long = "x".repeat(200_000);
    for (make, ask) in [
        ("SET k value".to_owned(), "GET k"),
        (format!("SET k {long}"), "GET k"),
        ("RPUSH k 1 2 3".to_owned(), "LRANGE k 0 -1"),
        ("SADD k a b c".to_owned(), "SMEMBERS k"),
        ("HSET k a 1 b 2".to_owned(), "HGETALL k"),
        ("ZADD k 1 a 2.5 b -3 c".to_owned(), "ZRANGE k 0 -1 WITHSCORES"),
    ] {
        client.say("FLUSHALL");
        client.say(&make);
        let before = client.say(ask);
        assert!(!matches!(before, Value::Error(_)), "{before:?}");
        let payload = dump(&mut client, "k");
        client.say("DEL k");
        assert_eq!(restore(&mut client, "k", "0", &payload, &[]), ok());
        assert_eq!(client.say(ask), before);
        assert_eq!(client.say("TTL k"), int(-1));
        let mut other = Client::new();
        assert_eq!(restore(&mut other, "k", "5000", &payload, &[]), ok(), "in another database");
        assert_eq!(other.say(ask), before);
    }
    assert_eq!(client.say("DUMP nothing"), Value::Null);
}

#[test]
fn what_is_in_the_way_is_replaced_only_on_demand() {
    let mut client = Client::new();
    client.say("RPUSH a 1 2");
    let payload = dump(&mut client, "a");
    client.say("SET b 1");
    assert_eq!(
        error(restore(&mut client, "b", "0", b"nonsense", &[])),
        "BUSYKEY Target key name already exists."
    );
    assert_eq!(restore(&mut client, "b", "0", &payload, &["REPLACE"]), ok());
    assert_eq!(client.say("LRANGE b 0 -1"), bulks(&["1", "2"]));
    assert_eq!(restore(&mut client, "b", "1000", &payload, &["REPLACE", "ABSTTL"]), ok());
    assert_eq!(client.say("EXISTS b"), int(0), "1970 is over");
    let idle = &["IDLETIME", "3"];
    assert_eq!(restore(&mut client, "c", "0", &payload, idle), ok());
    let both = &["IDLETIME", "3", "FREQ", "1"];
    assert_eq!(error(restore(&mut client, "d", "0", &payload, both)), "ERR syntax error");
    assert!(error(restore(&mut client, "d", "-1", &payload, &[])).contains("Invalid TTL"));
}

#[test]
fn a_payload_with_any_byte_changed_is_refused() {
    let mut client = Client::new();
    client.say("RPUSH a one two three");
    let payload = dump(&mut client, "a");
    for at in 0..payload.len() {
        let mut damaged = payload.clone();
        damaged[at] ^= 0x41;
        let message = error(restore(&mut client, "b", "0", &damaged, &[]));
        assert_eq!(message, "ERR DUMP payload version or checksum are wrong", "byte {at}");
        assert!(matches!(restore(&mut client, "b", "0", &payload[..at], &[]), Value::Error(_)));
    }
    assert_eq!(client.say("EXISTS b"), int(0));
    assert_eq!(restore(&mut client, "b", "0", &payload, &[]), ok());
    assert_eq!(client.say("LINDEX b 1"), bulk("two"));
}

#[test]
fn what_redis_has_dumped_is_restored() {
    for (payload, ask, want) in [
        (&b"\x00\xc1\x39\x30\x0a\x00\x9d\x94\xea\x27\x93\xfc\x08\xb9"[..], "GET k", bulk("12345")),
        (
            b"\x00\xc3\x0a\x40\xc8\x02\x61\x62\x61\xe0\xba\x01\x01\x61\x62\x0a\x00\x24\xa6\xe8\x41\
              \x70\xc0\xc6\x8c",
            "GET k",
            bulk("ab".repeat(100)),
        ),
        (
            b"\x12\x01\x02\xc3\x2a\x41\x4f\x15\x4f\x01\x00\x00\x06\x00\x81\x61\x02\xdf\xfb\x02\xc1\
              \x2c\x02\xf2\x90\xee\xfe\x04\xf4\x00\x40\x00\x20\x18\x03\x09\xe1\x2c\x78\xe0\xff\x00\
              \xe0\x1a\x00\x02\x02\xae\xff\x0a\x00\x56\x74\xa6\x2a\x6c\x43\xfd\x8f",
            "LRANGE k 0 4",
            bulks(&["a", "-5", "300", "-70000", "1099511627776"]),
        ),
        (
            b"\x0b\x0e\x02\x00\x00\x00\x03\x00\x00\x00\xfe\xff\x01\x00\x2c\x01\x0a\x00\x5b\x0a\xa8\
              \x62\xf7\x94\x60\x0a",
            "SORT k",
            bulks(&["-2", "1", "300"]),
        ),
        (
            b"\x10\x1c\x1c\x00\x00\x00\x06\x00\x81\x61\x02\x01\x01\x81\x62\x02\x83\x74\x77\x6f\x04\
              \x81\x63\x02\xf2\x79\x29\xed\x04\xff\x0a\x00\x9b\xe2\x19\xd4\x21\x3c\xe7\xb7",
            "HMGET k a b c",
            bulks(&["1", "two", "-1234567"]),
        ),
        (
            b"\x11\xc3\x30\x3a\x16\x3a\x00\x00\x00\x08\x00\x81\x63\x02\x84\x2d\x69\x6e\x66\x05\x81\
              \x64\x02\x98\x2d\x32\x2e\x39\xe0\x06\x00\x13\x65\x2b\x31\x30\x30\x19\x81\x61\x02\x01\
              \x01\x81\x62\x02\x83\x32\x2e\x35\x04\xff\x0a\x00\xfe\xbd\xfe\x16\x1b\x4b\x6a\x3e",
            "ZRANGE k 0 -1 WITHSCORES",
            Value::Array(vec![
                bulk("c"),
                Value::Double(f64::NEG_INFINITY),
                bulk("d"),
                Value::Double(-3e100),
                bulk("a"),
                Value::Double(1.0),
                bulk("b"),
                Value::Double(2.5),
            ]),
        ),
    ] {
        let mut client = Client::new();
        assert_eq!(restore(&mut client, "k", "100000", payload, &[]), ok());
        assert_eq!(client.say(ask), want);
        assert_eq!(client.say("TTL k"), int(100));
        let mut damaged = payload.to_vec();
        damaged[2] ^= 1;
        assert!(error(restore(&mut client, "l", "0", &damaged, &[])).contains("checksum"));
    }
}
