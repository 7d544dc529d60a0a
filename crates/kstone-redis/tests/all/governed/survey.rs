//! A newly installed policy is shown all existing keys.

use std::collections::BTreeMap;

use kstone::policy::{Effect, KeyKind};
use kstone_redis::Fault;

use crate::governed::policy::Totals;
use crate::support::Client;

#[test]
fn every_key_is_shown_with_all_that_it_holds() {
    let (mut client, _, clock) = Client::with_clock();
    let long = "x".repeat(100_000);
    client.call(&["SET", "long", &long]);
    for n in 0..600 {
        client.call(&["SET", &format!("s{n}"), "value"]);
    }
    for line in [
        "HSET h a 1 b 2",
        "RPUSH l a b a",
        "SADD s a b",
        "XADD x 1-0 f 1",
        "XADD x 2-0 g 2",
        "XADD empty 1-0 f 1",
        "XTRIM empty MAXLEN 0",
        "SET gone v PX 5",
        "HSET half a 1 b 2",
        "HPEXPIRE half 5 FIELDS 1 a",
        "SELECT 7",
        "SET there v PX 5000",
    ] {
        client.say(line);
    }
    for n in 0..9000 {
        client.call(&["ZADD", "z", "1", &format!("m{n}")]);
    }
    clock.advance(5);
    let mut totals: BTreeMap<u8, Totals> = BTreeMap::new();
    let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut members: BTreeMap<String, usize> = BTreeMap::new();
    let walked: Result<(), Fault> = client.redis.survey(|key| {
        let (write, name) = (&key.write, String::from_utf8_lossy(key.write.key).into_owned());
        assert!(write.effect == Effect::Makes && write.before.is_none());
        if let Some(key_size) = key.key_size {
            let totals = totals.entry(write.db).or_default();
            totals.keys += 1;
            totals.bytes += key_size.bytes as i64;
            totals.members += key_size.members as i64;
            assert_eq!(key_size.expires_at_ms.is_some(), name == "there");
        }
        for (field, value) in write.fields {
            let text = [*field, *value].map(String::from_utf8_lossy).join("=");
            fields.entry(name.clone()).or_default().push(text);
        }
        *members.entry(name.clone()).or_default() += write.members.len();
        assert_eq!(write.kind == KeyKind::String, write.value.is_some());
        if name == "long" {
            assert_eq!(write.value, Some(long.as_bytes()));
        }
        Ok(())
    });
    walked.unwrap();
    let names = |count: i64| -> i64 { (0..count).map(|n| format!("s{n}").len() as i64 + 5).sum() };
    let rest: i64 = ["h", "l", "s", "x", "empty", "half"].iter().map(|it| it.len() as i64).sum();
    let zero = Totals { keys: 607, bytes: 100_004 + names(600) + rest, members: 10 };
    assert_eq!(
        totals,
        BTreeMap::from([(0, zero), (7, Totals { keys: 2, bytes: 7, members: 9000 })])
    );
    let sorted = |name: &str| {
        let mut fields = fields[name].clone();
        fields.sort();
        fields
    };
    assert_eq!(sorted("h"), ["a=1", "b=2"]);
    assert_eq!(sorted("x"), ["f=1", "g=2"]);
    assert_eq!(sorted("half"), ["b=2"]);
    assert_eq!((members["l"], members["s"], members["z"], members["empty"]), (3, 2, 9000, 0));
}
