//! The compact form: it gives back what was put in, agrees with the tree form, and no bytes upset it.

use bytes::Bytes;
use kstone_ports::value::{
    Corrupt, EncodedValue, Item, ItemBuilder, ItemBytes, ItemRef, ListBuilder, Number, SetRef,
    Value, ValueRef,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;

fn any_number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::from),
        (any::<i32>(), -130..=110i32).prop_map(|(n, e)| format!("{n}e{e}").parse().unwrap()),
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,6}", "[a-d]{0,2}", "x{120,300}"]
}

fn any_bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..6).prop_map(Bytes::from)
}

fn any_scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any_text().prop_map(Value::S),
        any_number().prop_map(Value::N),
        any_bytes().prop_map(Value::B),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
        btree_set(any_text(), 1..4).prop_map(|set| Value::Ss(set.into_iter().rev().collect())),
        btree_set(any_number(), 1..4).prop_map(|set| Value::Ns(set.into_iter().rev().collect())),
        btree_set(any_bytes(), 1..4).prop_map(|set| Value::Bs(set.into_iter().rev().collect())),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    any_scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::L),
            btree_map(any_text(), inner, 0..4).prop_map(|map| Value::M(map.into_iter().collect())),
        ]
    })
}

fn any_item() -> impl Strategy<Value = Item> {
    btree_map(any_text(), any_value(), 0..6).prop_map(|map| map.into_iter().collect())
}

/// Looks at all that can be reached, and gives back how much that was.
fn walk(item: ItemRef<'_>) -> usize {
    let mut seen = item.size() + item.len();
    for (name, value) in item {
        // A name that comes out of order may not be found again; it must not upset anything.
        let _ = item.get(name);
        seen += walk_value(value);
    }
    let _ = (item.decode(), item.check(), format!("{item:?}"));
    seen
}

fn walk_value(value: ValueRef<'_>) -> usize {
    let mut again = Vec::new();
    value.write_encoded(&mut again);
    let _ = (value.decode(), value.compare(value));
    match value {
        ValueRef::N(number) => number.decimal().as_str().len(),
        ValueRef::L(list) => list.get(list.len()).map_or(0, |_| 1) + list.iter().count(),
        ValueRef::M(map) => map.iter().count() + usize::from(map.contains("a")),
        ValueRef::Ss(set) | ValueRef::Ns(set) | ValueRef::Bs(set) => {
            set.iter().count() + usize::from(set.contains(ValueRef::S("a")))
        }
        _ => again.len(),
    }
}

/// The same item, read with texts as bytes and put together again.
fn through_bytes(item: ItemRef<'_>) -> Item {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    item.iter_as::<[u8]>().map(|(name, value)| (text(name), value_through_bytes(value))).collect()
}

fn value_through_bytes(value: ValueRef<'_, [u8]>) -> Value {
    match value {
        ValueRef::S(bytes) => Value::S(String::from_utf8(bytes.to_vec()).unwrap()),
        ValueRef::N(number) => Value::N(number.to_number()),
        ValueRef::B(bytes) => Value::B(Bytes::copy_from_slice(bytes)),
        ValueRef::Bool(value) => Value::Bool(value),
        ValueRef::Null => Value::Null,
        ValueRef::M(map) => Value::M(through_bytes(map)),
        ValueRef::L(list) => Value::L(list.iter_as().map(value_through_bytes).collect()),
        ValueRef::Ss(set) => Value::Ss(elements(set, |value| match value {
            Value::S(text) => text,
            other => panic!("{other:?} in a set of strings"),
        })),
        ValueRef::Ns(set) => Value::Ns(elements(set, |value| value.as_number().unwrap())),
        ValueRef::Bs(set) => Value::Bs(elements(set, |value| match value {
            Value::B(bytes) => bytes,
            other => panic!("{other:?} in a set of bytes"),
        })),
    }
}

fn elements<T>(set: SetRef<'_>, own: impl Fn(Value) -> T) -> Vec<T> {
    set.iter_as().map(value_through_bytes).map(own).collect()
}

proptest! {
    #[test]
    fn texts_read_as_bytes_are_the_same_texts(item in any_item()) {
        let bytes = ItemBytes::encode(&item);
        prop_assert_eq!(through_bytes(bytes.as_ref()), item);
    }

    #[test]
    fn an_item_comes_back_as_it_was(item in any_item()) {
        let encoded = ItemBytes::encode(&item);
        let read = ItemBytes::from_bytes(Bytes::copy_from_slice(encoded.as_slice())).unwrap();
        prop_assert_eq!(read.as_ref().check(), Ok(()));
        prop_assert_eq!(read.decode().unwrap(), item);
    }

    #[test]
    fn the_compact_form_agrees_with_the_tree(item in any_item(), other in any_text()) {
        let encoded = ItemBytes::encode(&item);
        let view = encoded.as_ref();
        prop_assert_eq!(view.len(), item.len());
        prop_assert_eq!(view.size(), item.size());
        prop_assert_eq!(view.get(&other).is_some(), item.get(&other).is_some());
        let names: Vec<&str> = view.iter().map(|(name, _)| name).collect();
        prop_assert_eq!(names, item.iter().map(|(name, _)| name).collect::<Vec<_>>());
        for (name, value) in item.iter() {
            let found = view.get(name).unwrap();
            prop_assert_eq!(found.type_name(), value.type_name());
            prop_assert_eq!(found.size(), value.size());
            prop_assert_eq!(&found.decode().unwrap(), value);
            prop_assert!(found.eq_value(EncodedValue::new(value).as_ref()));
            prop_assert_eq!(EncodedValue::from(found), EncodedValue::new(value));
            if let Value::L(list) = value {
                let ValueRef::L(found) = found else { panic!("not a list") };
                for (at, element) in list.iter().enumerate() {
                    prop_assert_eq!(&found.get(at).unwrap().decode().unwrap(), element);
                }
                prop_assert!(found.get(list.len()).is_none());
            }
        }
    }

    #[test]
    fn values_are_equal_when_their_encodings_are(a in any_value(), b in any_value()) {
        let (x, y) = (EncodedValue::new(&a), EncodedValue::new(&b));
        prop_assert_eq!(x.as_ref().eq_value(y.as_ref()), a == b);
        prop_assert!(x.as_ref().eq_value(EncodedValue::new(&a.clone()).as_ref()));
    }

    #[test]
    fn an_item_built_from_pieces_in_any_order_is_the_item(item in any_item(), seed in vec(any::<prop::sample::Index>(), 6)) {
        let encoded = ItemBytes::encode(&item);
        let mut entries: Vec<_> = encoded.as_ref().iter().collect();
        let mut builder = ItemBuilder::new();
        for index in seed {
            if !entries.is_empty() {
                let (name, value) = entries.remove(index.index(entries.len()));
                // Once with something else, which is replaced.
                builder.push(name, ValueRef::Null);
                builder.push(name, value);
            }
        }
        prop_assert_eq!(builder.len(), item.len());
        prop_assert_eq!(builder.clone().finish(), encoded);
        prop_assert_eq!(builder.finish_map(), EncodedValue::new(&Value::M(item)));
    }

    #[test]
    fn a_list_built_from_pieces_is_the_list(list in vec(any_value(), 0..5)) {
        let mut builder = ListBuilder::new();
        for value in &list {
            builder.push(EncodedValue::new(value).as_ref());
        }
        prop_assert_eq!(builder.finish(), EncodedValue::new(&Value::L(list)));
    }

    #[test]
    fn damaged_bytes_never_panic(item in any_item(), damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in any::<prop::sample::Index>()) {
        let mut bytes = ItemBytes::encode(&item).as_slice().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(item) = ItemRef::from_slice(&bytes) {
            walk(item);
            // What decodes is whole: it encodes to the same bytes.
            if let Ok(decoded) = item.decode() {
                let again = ItemBytes::encode(&decoded);
                prop_assert_eq!(again.as_slice(), &bytes[..]);
            }
        }
        bytes.truncate(cut.index(bytes.len()));
        if let Ok(item) = ItemRef::from_slice(&bytes) {
            walk(item);
        }
    }

    #[test]
    fn random_bytes_never_panic(mut bytes in vec(prop_oneof![0..16u8, any::<u8>()], 0..64)) {
        bytes.insert(0, 1);
        let item = ItemBytes::from_bytes(bytes.into()).unwrap();
        walk(item.as_ref());
    }

    #[test]
    fn a_cut_item_is_never_taken_for_whole(item in any_item(), cut in any::<prop::sample::Index>()) {
        let bytes = ItemBytes::encode(&item).into_bytes();
        let cut = bytes.slice(..cut.index(bytes.len()));
        prop_assert_eq!(ItemBytes::from_bytes(cut).and_then(|item| item.decode()), Err(Corrupt));
    }
}

#[test]
fn nesting_without_end_is_refused_and_not_followed() {
    // A list in a list in a list, written from the inside out.
    let mut value = vec![6];
    for _ in 0..20_000 {
        let mut outer = vec![8];
        let mut len = value.len() + 1;
        while len >= 0x80 {
            outer.push((len as u8) | 0x80);
            len >>= 7;
        }
        outer.push(len as u8);
        outer.push(1);
        outer.extend(value);
        value = outer;
    }
    let mut bytes = vec![1, 1, 1, b'a'];
    bytes.extend(value);
    let item = ItemBytes::from_bytes(bytes.into()).unwrap();
    assert_eq!(item.decode(), Err(Corrupt));
    assert!(item.as_ref().size() < 300);
    assert!(item.as_ref().get("a").is_some());
    assert!(format!("{item:?} {:?}", item.as_ref().get("a")).len() < 300);
}

#[test]
fn a_version_that_is_not_known_is_refused() {
    assert_eq!(ItemBytes::from_bytes(Bytes::new()), Err(Corrupt));
    assert_eq!(ItemBytes::from_bytes(Bytes::from_static(&[2, 0])), Err(Corrupt));
    assert_eq!(ItemBytes::from_bytes(Bytes::from_static(&[1, 0])), Ok(ItemBytes::default()));
}

#[test]
fn more_than_127_attributes_are_found() {
    let item: Item = (0..1000).map(|n| (format!("{n:04}"), n)).collect();
    let encoded = ItemBytes::encode(&item);
    assert_eq!(encoded.as_ref().get("0999").unwrap().decode().unwrap(), Value::from(999));
    let mut builder = ItemBuilder::new();
    for (name, value) in encoded.as_ref() {
        builder.push(name, value);
    }
    assert_eq!(builder.finish(), encoded);
}

/// A change of these bytes is a change of the format on disk: it needs a new version.
#[test]
fn the_format_is_what_it_was() {
    let item = Item::new()
        .with("b", true)
        .with("a", "x")
        .with("n", -12)
        .with("bin", &[0u8, 255][..])
        .with("none", Value::Null)
        .with("list", vec![Value::from(1), Value::Bool(false)])
        .with("map", Item::new().with("k", "v"))
        .with("ss", Value::Ss(vec!["b".into(), "a".into()]))
        .with("ns", Value::Ns(vec![Number::from(2), Number::from(-150)]))
        .with("bs", Value::Bs(vec![Bytes::from_static(b"z")]));
    let expected: &[&[u8]] = &[
        &[1, 10],
        &[1, b'a', 1, 1, b'x'],
        &[1, b'b', 5],
        &[3, b'b', b'i', b'n', 3, 2, 0, 255],
        &[2, b'b', b's', 11, 3, 1, 1, b'z'],
        &[4, b'l', b'i', b's', b't', 8, 5, 2, 2, 0xC1, 2, 4],
        &[3, b'm', b'a', b'p', 7, 6, 1, 1, b'k', 1, 1, b'v'],
        &[1, b'n', 2, 0x3E, 255 - 24],
        &[4, b'n', b'o', b'n', b'e', 6],
        &[2, b'n', b's', 10, 6, 2, 0x3D, 255 - 3, 255 - 100, 0xC1, 4],
        &[2, b's', b's', 9, 5, 2, 1, b'a', 1, b'b'],
    ];
    assert_eq!(ItemBytes::encode(&item).as_slice(), expected.concat());
}
