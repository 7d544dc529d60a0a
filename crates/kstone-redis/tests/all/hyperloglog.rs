//! Counting different elements.

use crate::support::{Client, bulk, error, int, ok};
use kstone_ports::keys::Value;

#[test]
fn elements_are_counted_once() {
    let mut client = Client::new();
    assert_eq!(client.say("PFADD a"), int(1));
    assert_eq!(client.say("PFADD a"), int(0));
    assert_eq!(client.say("PFCOUNT a"), int(0));
    assert_eq!(client.say("PFADD a x y z x"), int(1));
    assert_eq!(client.say("PFADD a z y"), int(0));
    assert_eq!(client.say("PFCOUNT a"), int(3));
    assert_eq!(client.say("PFADD b z 1"), int(1));
    assert_eq!(client.say("PFCOUNT a b missing"), int(4));
    assert_eq!(client.say("PFMERGE c a b"), ok());
    assert_eq!(client.say("PFCOUNT c"), int(4));
    assert_eq!(client.say("PFCOUNT missing"), int(0));
}

#[test]
fn the_bytes_are_those_of_redis() {
    let mut client = Client::new();
    client.say("PFADD a x y z");
    let header = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80";
    let runs = b"a\x84\x80X\xcd\x88E\xa0\x84\x08";
    assert_eq!(client.say("GET a"), bulk([&header[..], runs].concat()));
    assert_eq!(client.say("PFDEBUG ENCODING a"), Value::Simple("sparse".into()));
    // The count is kept until something is added.
    client.say("PFCOUNT a");
    assert_eq!(client.say("GETRANGE a 8 15"), bulk([3, 0, 0, 0, 0, 0, 0, 0]));
    client.say("PFADD a w");
    assert_eq!(client.say("GETRANGE a 15 15"), bulk([0x80]));
}

#[test]
fn many_elements_make_it_dense() {
    let mut client = Client::new();
    for chunk in 0..40 {
        let mut args = vec!["PFADD".to_owned(), "a".to_owned()];
        args.extend((0..100).map(|n| format!("element {}", chunk * 100 + n)));
        client.call(&args);
    }
    assert_eq!(client.say("PFDEBUG ENCODING a"), Value::Simple("dense".into()));
    assert_eq!(client.say("STRLEN a"), int(16 + 12_288));
    let Value::Integer(count) = client.say("PFCOUNT a") else { panic!("no count") };
    assert!((3880..=4120).contains(&count), "{count}");
    client.say("PFADD b x");
    assert_eq!(client.say("PFMERGE b a"), ok());
    assert_eq!(client.say("PFDEBUG ENCODING b"), Value::Simple("dense".into()));
    assert_eq!(client.say("PFDEBUG TODENSE b"), int(0));
    assert_eq!(client.say("PFSELFTEST"), ok());
}

#[test]
fn what_is_no_counter_is_refused() {
    let mut client = Client::new();
    client.say("SET a text");
    let expected = "WRONGTYPE Key is not a valid HyperLogLog string value.";
    assert_eq!(error(client.say("PFADD a x")), expected);
    assert_eq!(error(client.say("PFCOUNT a b")), expected);
    client.say("PFADD b x y z");
    client.say("APPEND b hello");
    let expected = "INVALIDOBJ Corrupted HLL object detected";
    assert_eq!(error(client.say("PFCOUNT b")), expected);
    assert_eq!(error(client.say("PFMERGE c b")), expected);
    assert_eq!(client.say("EXISTS c"), int(0));
    client.say("RPUSH list x");
    assert!(error(client.say("PFADD list x")).starts_with("WRONGTYPE Operation"));
}
