//! Strings as rows of bits.

use crate::support::{Client, bulk, error, int, ok};
use kstone_ports::keys::Value;

fn ints(numbers: &[i64]) -> Value {
    Value::Array(numbers.iter().map(|number| int(*number)).collect())
}

#[test]
fn a_bit_that_is_set_is_there_and_its_string_grows() {
    let mut client = Client::new();
    assert_eq!(client.say("SETBIT a 7 1"), int(0));
    assert_eq!(client.say("SETBIT a 7 0"), int(1));
    assert_eq!(client.say("SETBIT a 9 1"), int(0));
    assert_eq!(client.say("GET a"), bulk([0, 0x40]));
    assert_eq!(client.say("GETBIT a 9"), int(1));
    assert_eq!(client.say("GETBIT a 100"), int(0));
    assert_eq!(client.say("SETBIT a 4294967295 1"), int(0));
    assert_eq!(client.say("STRLEN a"), int(512 << 20));
    assert_eq!(client.say("GETBIT a 4294967295"), int(1));
    assert_eq!(client.say("GETBIT a 9"), int(1));
    for command in ["SETBIT a 4294967296 1", "SETBIT a -1 1", "GETBIT a x"] {
        let expected = "ERR bit offset is not an integer or out of range";
        assert_eq!(error(client.say(command)), expected);
    }
    assert_eq!(error(client.say("SETBIT a 0 2")), "ERR bit is not an integer or out of range");
}

#[test]
fn bits_are_counted_in_ranges_of_bytes_and_of_bits() {
    let mut client = Client::new();
    client.say("SET a foobar");
    for (range, count) in [
        ("", 26),
        ("0 0", 4),
        ("1 1", 6),
        ("-2 -1", 7),
        ("-1 -2", 0),
        ("5 30 BIT", 17),
        ("7 7 BIT", 0),
        ("6 6 BIT", 1),
        ("0 -1 BYTE", 26),
        ("100 200", 0),
    ] {
        assert_eq!(client.say(&format!("BITCOUNT a {range}")), int(count), "{range}");
    }
    assert_eq!(client.say("BITCOUNT missing"), int(0));
    assert_eq!(error(client.say("BITCOUNT a 0")), "ERR syntax error");
    assert_eq!(error(client.say("BITCOUNT a 0 1 NIBBLE")), "ERR syntax error");
}

#[test]
fn the_first_bit_is_found() {
    let mut client = Client::new();
    client.call(&[b"SET".as_slice(), b"a", b"\xff\xf0\x00"]);
    for (asked, at) in [
        ("0", 12),
        ("1", 0),
        ("1 2", -1),
        ("0 0 0", -1),
        ("0 0", 12),
        ("1 7 15 BIT", 7),
        ("0 7 11 BIT", -1),
        ("0 7 12 BIT", 12),
        ("0 -100 -101", -1),
    ] {
        assert_eq!(client.say(&format!("BITPOS a {asked}")), int(at), "{asked}");
    }
    client.call(&[b"SET".as_slice(), b"a", b"\xff\xff"]);
    assert_eq!(client.say("BITPOS a 0"), int(16));
    assert_eq!(client.say("BITPOS a 0 0 -1"), int(-1));
    assert_eq!(client.say("BITPOS missing 0"), int(0));
    assert_eq!(client.say("BITPOS missing 1"), int(-1));
}

#[test]
fn bits_of_a_long_string_are_counted_and_found_across_its_pieces() {
    let mut client = Client::new();
    for bit in [0, 262_143, 262_144, 8_500_000, 20_000_000] {
        assert_eq!(client.say(&format!("SETBIT a {bit} 1")), int(0));
    }
    assert_eq!(client.say("BITCOUNT a"), int(5));
    assert_eq!(client.say("BITCOUNT a 1 262143 BIT"), int(1));
    assert_eq!(client.say("BITCOUNT a 262143 8500000 BIT"), int(3));
    assert_eq!(client.say("BITPOS a 1 262145 -1 BIT"), int(8_500_000));
    assert_eq!(client.say("BITPOS a 1 1100000"), int(20_000_000));
    assert_eq!(client.say("BITOP NOT b a"), int(2_500_001));
    assert_eq!(client.say("BITPOS b 0 262145 -1 BIT"), int(8_500_000));
    assert_eq!(client.say("BITOP AND c a b"), int(2_500_001));
    assert_eq!(client.say("BITCOUNT c"), int(0));
}

#[test]
fn strings_are_combined_bit_by_bit() {
    let mut client = Client::new();
    client.call(&[b"MSET".as_slice(), b"a", b"\xff\x0f\x01", b"b", b"\x0f\xff"]);
    for (operation, expected) in
        [("AND", [0x0F, 0x0F, 0x00]), ("OR", [0xFF, 0xFF, 0x01]), ("XOR", [0xF0, 0xF0, 0x01])]
    {
        assert_eq!(client.say(&format!("BITOP {operation} c a b")), int(3));
        assert_eq!(client.say("GET c"), bulk(expected), "{operation}");
    }
    assert_eq!(client.say("BITOP NOT c a"), int(3));
    assert_eq!(client.say("GET c"), bulk([0x00, 0xF0, 0xFE]));
    assert_eq!(client.say("BITOP OR c missing"), int(0));
    assert_eq!(client.say("EXISTS c"), int(0));
    let expected = "ERR BITOP NOT must be called with a single source key.";
    assert_eq!(error(client.say("BITOP NOT c a b")), expected);
    assert_eq!(error(client.say("BITOP NAND c a b")), "ERR syntax error");
}

#[test]
fn integers_of_any_width_are_read_and_written() {
    let mut client = Client::new();
    let reply = client.say("BITFIELD a SET i8 0 -100 SET u4 8 15 GET u8 0 GET i4 8");
    assert_eq!(reply, ints(&[0, 0, 156, -1]));
    assert_eq!(client.say("BITFIELD a INCRBY u63 #1 -1"), ints(&[i64::MAX]));
    assert_eq!(client.say("BITFIELD b SET i64 3 -9223372036854775808"), ints(&[0]));
    assert_eq!(client.say("BITFIELD_RO b GET i64 3 GET u1 3"), ints(&[i64::MIN, 1]));
    assert_eq!(client.say("STRLEN b"), int(9));
    assert_eq!(client.say("BITFIELD missing GET u8 0"), ints(&[0]));
    assert_eq!(client.say("EXISTS missing"), int(0));
}

#[test]
fn what_does_not_fit_wraps_saturates_or_fails() {
    let mut client = Client::new();
    client.say("BITFIELD a SET u8 0 250 SET i8 8 120");
    let reply = client.say(
        "BITFIELD a OVERFLOW FAIL INCRBY u8 0 10 OVERFLOW SAT INCRBY u8 0 10 INCRBY i8 8 10 \
         OVERFLOW WRAP INCRBY u8 0 1 INCRBY i8 8 1 SET u8 16 -1",
    );
    let expected = [Value::Null, int(255), int(127), int(0), int(-128), int(0)];
    assert_eq!(reply, Value::Array(expected.to_vec()));
    assert_eq!(client.say("GET a"), bulk([0, 0x80, 0xFF]));
    let expected = "ERR BITFIELD_RO only supports the GET subcommand";
    assert_eq!(error(client.say("BITFIELD_RO a SET u8 0 1")), expected);
    assert!(error(client.say("BITFIELD a GET u64 0")).starts_with("ERR Invalid bitfield type"));
    assert!(error(client.say("BITFIELD a OVERFLOW x")).contains("Invalid OVERFLOW type"));
    assert_eq!(client.say("SET a x"), ok());
}
