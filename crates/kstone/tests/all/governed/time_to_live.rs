//! The life that a policy gives an item is in the attribute by which its table expires.

use kstone::ops::{TransactKind, WriteRequest};
use kstone::policy::{Effect, RequestedTtl};
use kstone::{Error, Item};

use crate::governed::support::{
    LIFE_MS, Machine, START_MS, batch, check_exact, create_plain, delete, get, indexed, key, put,
    statement, transact, update,
};

/// The second in which an item ends that was given so many milliseconds at the start.
fn second(life_ms: u64) -> u64 {
    (START_MS + life_ms).div_ceil(1000)
}

fn ttl(db: &kstone::Database, pk: &str) -> Option<u64> {
    get(db, pk, "a")?.get("ttl")?.as_number()?.to_u64()
}

#[test]
fn an_item_gets_the_life_of_its_pattern_by_every_way_that_makes_one() {
    let (_machine, db, policy) = Machine::governed();
    put(&db, key("student:1", "a")).unwrap();
    let shown = update(&db, "student:2", "a", "SET n = pk").unwrap().attributes.unwrap();
    batch(&db, vec![WriteRequest::Put(key("student:3", "a"))]).unwrap();
    transact(&db, vec![TransactKind::Put(key("student:4", "a"))]).unwrap();
    statement(&db, "INSERT INTO state VALUE {'pk':'student:5','sk':'a'}").unwrap();
    for n in 1..=5 {
        assert_eq!(ttl(&db, &format!("student:{n}")), Some(second(LIFE_MS)), "{n}");
    }
    assert_eq!(shown.decode().unwrap(), get(&db, "student:2", "a").unwrap());
    check_exact(&db, &policy);
}

#[test]
fn an_item_never_ends_early_and_is_gone_with_all_that_belongs_to_it() {
    let (machine, db, policy) = Machine::governed();
    put(&db, key("student:1", "a").with("friend", "9")).unwrap();
    machine.clock.set(second(LIFE_MS) * 1000 - 1);
    assert!(get(&db, "student:1", "a").is_some());
    assert!(second(LIFE_MS) * 1000 >= START_MS + LIFE_MS);
    machine.clock.set(second(LIFE_MS) * 1000);
    assert!(get(&db, "student:1", "a").is_none());
    assert_eq!((policy.heard().keys, indexed(&db).len()), (1, 2), "until it is reclaimed");
    db.run_background().unwrap();
    check_exact(&db, &policy);
    let heard = policy.heard();
    assert_eq!((heard.keys, heard.bytes, heard.writes), (0, 0, 1), "what only ended is no write");
}

#[test]
fn what_a_write_says_about_the_life_is_what_the_policy_hears() {
    let (_machine, db, policy) = Machine::governed();
    let (makes, changes) = (Effect::Makes, Effect::Changes);
    let last = || *policy.heard().asked.last().unwrap();
    let at = |life_ms: u64| START_MS / 1000 + life_ms / 1000;
    put(&db, key("student:1", "a")).unwrap();
    assert_eq!(last(), (makes, RequestedTtl::Unsaid));
    update(&db, "student:1", "a", "SET n = pk").unwrap();
    assert_eq!(last(), (changes, RequestedTtl::Unsaid), "the same attribute as before");
    put(&db, key("student:1", "a").with("ttl", at(90_000))).unwrap();
    assert_eq!(last(), (makes, RequestedTtl::Ms(90_000 - START_MS % 1000)));
    assert_eq!(ttl(&db, "student:1"), Some(at(90_000)));
    put(&db, key("student:1", "a").with("ttl", at(90_000_000))).unwrap();
    assert_eq!(ttl(&db, "student:1"), Some(second(10 * LIFE_MS)), "as long as the rule allows");
    put(&db, key("student:1", "a").with("ttl", "soon")).unwrap();
    assert_eq!(last(), (makes, RequestedTtl::Unsaid), "no number is no time");
    assert_eq!(ttl(&db, "student:1"), Some(second(LIFE_MS)));
    update(&db, "student:1", "a", "REMOVE #t").unwrap();
    assert_eq!(last(), (changes, RequestedTtl::Never));
    assert_eq!(ttl(&db, "student:1"), None);
    update(&db, "student:1", "a", "SET n = sk").unwrap();
    assert_eq!(last(), (changes, RequestedTtl::Unsaid), "there was none and is none");
    put(&db, key("student:1", "a").with("ttl", kstone::Value::Null)).unwrap();
    assert_eq!(last(), (makes, RequestedTtl::Never), "a put says so by NULL");
    assert!(!get(&db, "student:1", "a").unwrap().iter().any(|(name, _)| name == "ttl"));
    check_exact(&db, &policy);
}

#[test]
fn a_write_over_an_item_whose_time_is_over_makes_a_new_one() {
    let (machine, db, policy) = Machine::governed();
    put(&db, key("student:1", "a").with("friend", "2")).unwrap();
    machine.clock.advance(2 * LIFE_MS);
    update(&db, "student:1", "a", "SET n = pk").unwrap();
    assert_eq!(*policy.heard().asked.last().unwrap(), (Effect::Makes, RequestedTtl::Unsaid));
    assert_eq!((policy.heard().keys, policy.heard().writes), (1, 2));
    delete(&db, "student:1", "a").unwrap();
    assert_eq!((policy.heard().keys, policy.heard().bytes), (0, 0));
    // The friend was named by an item that nobody could read any more: the index may hold more
    // than is true, never less.
    assert!(indexed(&db).len() <= 1);
}

#[test]
fn a_table_that_nothing_expires_in_refuses_an_item_that_must_end() {
    let (_machine, db, _policy) = Machine::governed();
    db.delete_table("state").unwrap();
    create_plain(&db, "state");
    let Err(Error::Refused(message)) = put(&db, key("student:1", "a")) else {
        panic!("it was not refused")
    };
    assert!(message.contains("table state") && message.contains("UpdateTimeToLive"), "{message}");
    put(&db, Item::new().with("pk", "x").with("sk", "a")).unwrap();
}

#[test]
fn a_table_that_begins_or_ceases_to_expire_its_items_is_counted_anew() {
    let (machine, db, policy) = Machine::governed();
    put(&db, key("student:1", "a")).unwrap();
    db.update_ttl("state", "ttl", false).unwrap();
    db.run_background().unwrap();
    assert_eq!(policy.heard().ends.into_iter().collect::<Vec<_>>(), [(0, 1)]);
    db.update_ttl("state", "ttl", true).unwrap();
    db.run_background().unwrap();
    check_exact(&db, &policy);
    assert_eq!(policy.heard().writes, 1, "nobody wrote it");
    machine.clock.advance(2 * LIFE_MS);
    db.run_background().unwrap();
    assert_eq!((policy.heard().keys, policy.heard().ends.len()), (0, 0));
}
