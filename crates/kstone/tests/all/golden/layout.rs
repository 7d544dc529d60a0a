//! The records of the golden database are laid out as docs/format.md says.

use std::collections::BTreeSet;

use kstone::{Item, ItemBytes, Number, Value};
use xxhash_rust::xxh3::xxh3_128;

use crate::golden::reader::{self, Operation, number, part, take, u32_at, u64_at};
use crate::golden::script::{
    BY_GENRE, BY_LEVEL, BY_OWNER, BY_PRICE, BY_TITLE, HOUR_MS, KEYS_STREAM, MUSIC, SCORES,
    START_MS, STREAM, SYSTEM, TOKEN, every_type, expiring, score,
};
use crate::golden::{LOG, golden};

fn with_operations(check: impl FnOnce(&[Operation<'_>])) {
    check(&reader::operations(&golden()[LOG]));
}

fn string(item: &Item, name: &str) -> Vec<u8> {
    match &item.get(name).unwrap() {
        Value::S(text) => text.as_bytes().to_vec(),
        Value::B(bytes) => bytes.to_vec(),
        other => panic!("{other:?}"),
    }
}

fn decimal(item: &Item, name: &str) -> Number {
    item.get(name).unwrap().as_number().unwrap()
}

#[test]
fn items_are_laid_out_as_the_format_says() {
    with_operations(|operations| {
        let tables = [0, MUSIC, BY_TITLE, BY_GENRE, BY_OWNER, SCORES, BY_LEVEL, BY_PRICE];
        let mut seen = BTreeSet::new();
        for put in operations.iter().filter(|operation| tables.contains(&operation.table)) {
            let Some(value) = put.value else { continue };
            let item = reader::item(value);
            assert_eq!(ItemBytes::copy_from_slice(value).unwrap().decode().unwrap(), item);
            assert_eq!(ItemBytes::encode(&item).as_slice(), value);
            // Index entries expire with their items.
            let ends = item.get("ends").is_some() || item.get("title") == Some(&"Ends".into());
            assert_eq!(put.expires_at_ms, ends.then_some(START_MS + HOUR_MS), "{item:?}");
            seen.insert(put.table);
        }
        assert!(seen.into_iter().eq(tables), "every table had an item");
        let mut first = operations.iter().filter(|operation| operation.table == MUSIC);
        assert_eq!(reader::item(first.next().unwrap().value.unwrap()), every_type());
        assert_eq!(reader::item(first.next().unwrap().value.unwrap()), expiring());
        let score_put = operations.iter().find(|operation| operation.table == SCORES).unwrap();
        assert_eq!(reader::item(score_put.value.unwrap()), score());
    });
}

#[test]
fn keys_are_laid_out_as_the_format_says() {
    with_operations(|operations| {
        for put in operations {
            let Some(value) = put.value else { continue };
            let (mut pk, mut sk) = (&put.pk[..], put.sk.unwrap_or_default());
            let item = || reader::item(value);
            let year = |mut bytes: &[u8]| {
                let year = number(&mut bytes);
                assert!(bytes.is_empty());
                year
            };
            match put.table {
                MUSIC => {
                    assert_eq!(take(&mut pk, put.pk.len()), string(&item(), "artist"));
                    assert_eq!(number(&mut sk), decimal(&item(), "year"));
                }
                SCORES => {
                    assert_eq!(number(&mut pk), decimal(&item(), "player"));
                    assert_eq!(put.sk, None);
                }
                BY_TITLE => {
                    assert_eq!(take(&mut pk, put.pk.len()), string(&item(), "artist"));
                    assert_eq!(part(&mut sk), string(&item(), "title"));
                    assert_eq!(year(&part(&mut sk)), decimal(&item(), "year"));
                }
                BY_GENRE => {
                    assert_eq!(part(&mut pk), string(&item(), "genre"));
                    assert_eq!(part(&mut pk), string(&item(), "label"));
                    assert_eq!(number(&mut sk), decimal(&item(), "rating"));
                    assert_eq!(part(&mut sk), string(&item(), "artist"));
                    assert_eq!(year(&part(&mut sk)), decimal(&item(), "year"));
                }
                BY_OWNER | BY_PRICE => {
                    if put.table == BY_OWNER {
                        assert_eq!(take(&mut pk, put.pk.len()), string(&item(), "owner"));
                    } else {
                        assert_eq!(number(&mut pk), decimal(&item(), "price"));
                    }
                    assert_eq!(part(&mut sk), string(&item(), "artist"));
                    assert_eq!(year(&part(&mut sk)), decimal(&item(), "year"));
                }
                BY_LEVEL => {
                    assert_eq!(number(&mut pk), decimal(&item(), "level"));
                    assert_eq!(year(&part(&mut sk)), decimal(&item(), "player"));
                }
                _ => continue,
            }
            assert!(pk.is_empty() && sk.is_empty(), "{put:?}");
        }
    });
}

#[test]
fn stream_records_are_laid_out_as_the_format_says() {
    with_operations(|operations| {
        let (mut all_flags, mut last) = (BTreeSet::new(), 0);
        for put in operations.iter().filter(|put| [STREAM, KEYS_STREAM].contains(&put.table)) {
            let value = put.value.unwrap();
            let (version, flags, created_ms) = (value[0], value[1], u64_at(value, 2));
            assert_eq!(version, 1);
            assert_eq!(put.expires_at_ms, Some(created_ms + (24 * 60 + 15) * 60_000));
            let number = u64::from_be_bytes(put.sk.unwrap().try_into().unwrap());
            assert_eq!(number >> 16, created_ms);
            assert!(number > last, "numbers grow with every record of the database");
            last = number;
            let mut rest = &value[10..];
            let mut image = || {
                let len = u32_at(take(&mut rest, 4), 0) as usize;
                reader::item(take(&mut rest, len))
            };
            let keys = image();
            assert_eq!(keys.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["artist", "year"]);
            for flag in [8, 16] {
                if flags & flag != 0 {
                    let image = image();
                    assert!(keys.iter().all(|(name, value)| image.get(name) == Some(value)));
                }
            }
            assert!(rest.is_empty());
            // In the stripe of the item, under the smallest two bytes that hash to it.
            let artist = string(&keys, "artist");
            let stripe = kstone_core::stripe_of(&artist);
            let smallest = (0..=u16::MAX).map(u16::to_be_bytes);
            let pk = smallest.into_iter().find(|pk| kstone_core::stripe_of(pk) == stripe);
            assert_eq!(put.pk, pk.unwrap());
            all_flags.insert((put.table, flags));
        }
        let expected = [
            (STREAM, 8 | 16),
            (STREAM, 1 | 16),
            (STREAM, 2 | 8),
            (KEYS_STREAM, 1),
            (KEYS_STREAM, 2 | 4),
        ];
        assert_eq!(all_flags, BTreeSet::from(expected));
    });
}

#[test]
fn the_catalogue_is_laid_out_as_the_format_says() {
    with_operations(|operations| {
        let system = || operations.iter().filter(|operation| operation.table == SYSTEM);
        let first = system().next().unwrap();
        assert_eq!((&first.pk[..], first.sk, first.value), (&b"form"[..], None, Some(&[1][..])));
        let (mut kinds, mut newest) = (BTreeSet::new(), Vec::new());
        for operation in system() {
            let Operation { pk, sk, value, expires_at_ms, .. } = operation;
            kinds.insert((text(pk.split(|&byte| byte == b'#').next().unwrap()), value.is_some()));
            assert_eq!(expires_at_ms.is_some(), pk.starts_with(b"token#") && value.is_some());
            match (&pk[..], value) {
                (b"form", value) => assert_eq!(*value, Some(&[1][..])),
                (b"making", Some(value)) => {
                    newest.push(u32::from_le_bytes((*value).try_into().unwrap()));
                }
                (b"dropping", value) => {
                    assert_eq!(sk.unwrap(), BY_OWNER.to_be_bytes());
                    assert!(value.is_none_or(<[u8]>::is_empty));
                }
                (b"tables", Some(value)) => {
                    let record: serde_json::Value = serde_json::from_slice(value).unwrap();
                    assert_eq!(record["spec"]["name"].as_str().unwrap().as_bytes(), sk.unwrap());
                    assert!(reader::engine_tables(&record).iter().all(|&id| id > SYSTEM));
                }
                (token, Some(value)) if token.starts_with(b"token#") => {
                    assert_eq!((value[0], value.len(), *sk), (1, 17, None));
                }
                (_, None) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(newest, [SYSTEM, STREAM, BY_LEVEL, KEYS_STREAM], "one note for each change");
        let expected = [
            ("dropping", false),
            ("dropping", true),
            ("form", true),
            ("making", false),
            ("making", true),
            ("tables", false),
            ("tables", true),
            ("token", false),
            ("token", true),
        ];
        assert!(kinds.iter().map(|(kind, put)| (&kind[..], *put)).eq(expected), "{kinds:?}");
        let token = system().find(|put| put.pk == format!("token#{TOKEN}").as_bytes()).unwrap();
        assert_eq!(token.expires_at_ms, Some(START_MS + 1 + 10 * 60_000));
        assert_eq!(token.value.unwrap()[1..], fingerprint());
    });
}

/// The fingerprint of the script's transaction.
fn fingerprint() -> [u8; 16] {
    let bytes = |bytes: &[u8]| [&(bytes.len() as u64).to_be_bytes(), bytes].concat();
    let item = |item: &Item| bytes(ItemBytes::encode(item).as_slice());
    let key = |artist: &str, year: i32| Item::new().with("artist", artist).with("year", year);
    let count = |count: u64| count.to_be_bytes().to_vec();
    let update = [
        bytes(b"music"),
        vec![4],
        item(&key("Ada", 1978)),
        vec![1],
        bytes(b"SET price = :p REMOVE words"),
        vec![0],
        count(0),
        count(1),
        bytes(b":p"),
        bytes(&[0x02, 0xC1, 0x13, 0xC6]),
        vec![0],
    ];
    let put =
        [bytes(b"music"), vec![2], item(&key("Cleo", 0)), vec![0], count(0), count(0), vec![0]];
    let all = [vec![1], update.concat(), put.concat()].concat();
    xxh3_128(&all).to_be_bytes()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
