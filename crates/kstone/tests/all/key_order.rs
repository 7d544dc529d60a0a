//! The bytes of keys order as the keys do, and give the keys back.

use std::cmp::Ordering;

use kstone::key::{part_len, read_part, read_single, write_part, write_part_prefix, write_single};
use kstone::table::KeyType;
use kstone::{Number, Value};
use proptest::prelude::*;

/// Few characters, the escapes among them, so that prefixes and ties are common.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(2), Just(0xFE), Just(0xFF)], 0..4)
}

fn any_text() -> impl Strategy<Value = String> {
    "[\\x00\\x01ab\u{ff}\u{10ffff}]{0,3}"
}

fn any_number() -> impl Strategy<Value = Number> {
    prop_oneof![
        (-3..3i32).prop_map(Number::from),
        any::<i64>().prop_map(Number::from),
        (-99..99i32, -130..=123i32).prop_map(|(n, e)| format!("{n}e{e}").parse().unwrap()),
    ]
}

fn any_part(kind: KeyType) -> BoxedStrategy<Value> {
    match kind {
        KeyType::S => any_text().prop_map(Value::from).boxed(),
        KeyType::N => any_number().prop_map(Value::from).boxed(),
        KeyType::B => any_bytes().prop_map(|bytes| Value::from(&bytes[..])).boxed(),
    }
}

fn any_kind() -> impl Strategy<Value = KeyType> {
    prop_oneof![Just(KeyType::S), Just(KeyType::N), Just(KeyType::B)]
}

/// Two tuples of the same types.
fn two_tuples() -> impl Strategy<Value = (Vec<KeyType>, Vec<Value>, Vec<Value>)> {
    proptest::collection::vec(any_kind(), 1..5).prop_flat_map(|kinds| {
        let tuple = || kinds.iter().map(|&kind| any_part(kind)).collect::<Vec<_>>();
        (Just(kinds.clone()), tuple(), tuple())
    })
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::S(a), Value::S(b)) => a.cmp(b),
        (Value::N(a), Value::N(b)) => a.cmp(b),
        (Value::B(a), Value::B(b)) => a.cmp(b),
        _ => unreachable!("the two have the same type"),
    }
}

fn tuple_bytes(kinds: &[KeyType], tuple: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    for (&kind, value) in kinds.iter().zip(tuple) {
        assert!(write_part(kind, value.scalar().unwrap(), &mut out));
    }
    out
}

proptest! {
    #[test]
    fn tuples_order_by_the_first_part_that_differs((kinds, a, b) in two_tuples()) {
        let order = a.iter().zip(&b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
        let bytes = tuple_bytes(&kinds, &a).cmp(&tuple_bytes(&kinds, &b));
        prop_assert_eq!(bytes, order.unwrap_or(Ordering::Equal));
    }

    #[test]
    fn a_tuple_gives_its_parts_back((kinds, tuple, _) in two_tuples(), more in any_bytes()) {
        let mut bytes = tuple_bytes(&kinds, &tuple);
        bytes.extend(&more);
        let mut rest = &bytes[..];
        for (&kind, value) in kinds.iter().zip(&tuple) {
            let (read, len) = read_part(kind, rest).unwrap();
            prop_assert_eq!(&read, value);
            prop_assert_eq!(part_len(kind, rest), Some(len));
            rest = &rest[len..];
        }
        prop_assert_eq!(rest, &more[..]);
    }

    #[test]
    fn single_attributes_order_and_come_back((a, b) in any_kind().prop_flat_map(|kind| (any_part(kind), any_part(kind)))) {
        let kind = match a {
            Value::S(_) => KeyType::S,
            Value::N(_) => KeyType::N,
            _ => KeyType::B,
        };
        let bytes = |value: &Value| {
            let mut out = Vec::new();
            assert!(write_single(kind, value.scalar().unwrap(), &mut out));
            out
        };
        prop_assert_eq!(bytes(&a).cmp(&bytes(&b)), compare(&a, &b));
        prop_assert_eq!(read_single(kind, &bytes(&a)), Some(a));
    }

    #[test]
    fn a_part_begins_with_a_prefix_exactly_when_its_attribute_does(part in any_bytes(), start in any_bytes()) {
        let (mut whole, mut prefix) = (Vec::new(), Vec::new());
        prop_assert!(write_part(KeyType::B, Value::from(&part[..]).scalar().unwrap(), &mut whole));
        prop_assert!(write_part_prefix(KeyType::B, Value::from(&start[..]).scalar().unwrap(), &mut prefix));
        prop_assert_eq!(whole.starts_with(&prefix), part.starts_with(&start));
    }

    #[test]
    fn any_bytes_are_read_or_refused(kind in any_kind(), bytes: Vec<u8>) {
        let part = read_part(kind, &bytes);
        if let Some((value, len)) = part {
            prop_assert_eq!(tuple_bytes(&[kind], &[value]), &bytes[..len]);
        }
        if let Some(value) = read_single(kind, &bytes) {
            let mut again = Vec::new();
            prop_assert!(write_single(kind, value.scalar().unwrap(), &mut again));
            prop_assert_eq!(again, bytes);
        }
    }
}

#[test]
fn a_value_of_another_type_is_refused_and_nothing_is_written() {
    let text = Value::from("7");
    let mut out = Vec::new();
    for kind in [KeyType::N, KeyType::B] {
        assert!(!write_single(kind, text.scalar().unwrap(), &mut out));
        assert!(!write_part(kind, text.scalar().unwrap(), &mut out));
        assert!(!write_part_prefix(kind, text.scalar().unwrap(), &mut out));
    }
    let number = Value::from(7);
    assert!(!write_part_prefix(KeyType::N, number.scalar().unwrap(), &mut out));
    assert!(!write_single(KeyType::S, Value::Null.scalar().unwrap(), &mut out));
    assert!(out.is_empty());
}
