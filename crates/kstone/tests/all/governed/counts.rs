//! The policy hears of every commit once, also when the locks were too few at first, when writers
//! race, and whatever the order of writes.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use kstone::ops::{TransactKind, Update, WriteRequest};
use kstone::{Database, Item};
use kstone_core::sync::Mutex;
use kstone_ports::items::Items;
use proptest::prelude::*;

use crate::governed::support::{
    AdmitAll, LIFE_MS, Machine, Students, batch, check_exact, create, delete, indexed, key, put,
    transact, update,
};

fn student(n: u8) -> String {
    format!("student:{n}")
}

fn named(n: u8, sk: u8, friend: Option<u8>) -> Item {
    let item = key(&student(n), &sk.to_string());
    match friend {
        Some(friend) => item.with("friend", friend.to_string()),
        None => item,
    }
}

#[derive(Debug, Clone)]
enum Op {
    Put(u8, u8, Option<u8>),
    Befriend(u8, u8),
    Part(u8, u8),
    Delete(u8, u8),
    Batch(Vec<(u8, u8, bool)>),
    Transact(u8, u8, u8),
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let (n, sk) = (0..4u8, 0..3u8);
    prop_oneof![
        (n.clone(), sk.clone(), proptest::option::of(0..4u8))
            .prop_map(|(n, sk, friend)| Op::Put(n, sk, friend)),
        (n.clone(), sk.clone()).prop_map(|(n, sk)| Op::Befriend(n, sk)),
        (n.clone(), sk.clone()).prop_map(|(n, sk)| Op::Part(n, sk)),
        (n.clone(), sk.clone()).prop_map(|(n, sk)| Op::Delete(n, sk)),
        proptest::collection::vec((n.clone(), sk.clone(), any::<bool>()), 1..5).prop_map(Op::Batch),
        (n.clone(), n, sk).prop_map(|(one, two, sk)| Op::Transact(one, two, sk)),
        (1..LIFE_MS).prop_map(Op::Wait),
    ]
}

fn apply(machine: &Machine, db: &Database, op: Op) {
    match op {
        Op::Put(n, sk, friend) => drop(put(db, named(n, sk, friend)).unwrap()),
        Op::Befriend(n, sk) => {
            drop(update(db, &student(n), &sk.to_string(), "SET friend = sk").unwrap())
        }
        Op::Part(n, sk) => drop(update(db, &student(n), &sk.to_string(), "REMOVE friend").unwrap()),
        Op::Delete(n, sk) => drop(delete(db, &student(n), &sk.to_string()).unwrap()),
        Op::Batch(mut writes) => {
            writes.sort_unstable();
            writes.dedup_by_key(|(n, sk, _)| (*n, *sk));
            let request = |(n, sk, puts): &(u8, u8, bool)| match puts {
                true => WriteRequest::Put(named(*n, *sk, Some(*n))),
                false => WriteRequest::Delete(key(&student(*n), &sk.to_string())),
            };
            batch(db, writes.iter().map(request).collect()).unwrap();
        }
        Op::Transact(one, two, _) if one == two => {}
        Op::Transact(one, two, sk) => {
            let text = "SET friend = if_not_exists(friend, sk)".to_owned();
            let kinds = vec![
                TransactKind::Update(key(&student(one), &sk.to_string()), Update::Text(text)),
                TransactKind::Delete(key(&student(two), &sk.to_string())),
            ];
            transact(db, kinds).unwrap();
        }
        Op::Wait(ms) => {
            // Reclaimed at once: an entry that is out of date is allowed, and met elsewhere.
            machine.clock.advance(ms);
            db.run_background().unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn after_any_writes_counts_and_index_are_those_of_the_items(
        ops in proptest::collection::vec(op(), 1..40),
    ) {
        let (machine, db, policy) = Machine::governed();
        for op in ops {
            apply(&machine, &db, op);
        }
        check_exact(&db, &policy);
    }
}

#[test]
fn racing_writers_are_counted_exactly() {
    let db = Database::memory().unwrap().with_durability(kstone::Durability::Os);
    create(&db);
    let policy = Arc::new(Students::default());
    db.govern(policy.clone()).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4u8 {
            let db = &db;
            scope.spawn(move || {
                for round in 0..150u8 {
                    let (n, sk) = (round % 3, (round / 3) % 2);
                    match (round + writer) % 4 {
                        0 => drop(put(db, named(n, sk, Some(writer))).unwrap()),
                        1 => drop(
                            update(db, &student(n), &sk.to_string(), "SET friend = sk").unwrap(),
                        ),
                        2 => drop(delete(db, &student(n), &sk.to_string()).unwrap()),
                        _ => {
                            let kinds = vec![
                                TransactKind::Put(named(n, sk, None)),
                                TransactKind::Delete(key(&student(n + 1), "0")),
                            ];
                            transact(db, kinds).unwrap();
                        }
                    }
                }
            });
        }
    });
    check_exact(&db, &policy);
}

#[test]
fn a_dropped_table_is_told_of() {
    let (_machine, db, policy) = Machine::governed();
    put(&db, key("student:1", "a")).unwrap();
    db.delete_table("state").unwrap();
    assert_eq!(policy.heard().dropped, ["state"]);
    assert_eq!(indexed(&db).len(), 1, "the index may hold more than is true");
}

#[test]
fn who_settles_waits_for_the_writes_that_were_under_way() {
    let db = Database::memory().unwrap();
    create(&db);
    let (entered, has_entered) = mpsc::sync_channel(1);
    let (go, go_on) = mpsc::channel();
    // A writer stands under its locks until it may go on.
    let go_on = Mutex::new(go_on);
    let wait = move || {
        entered.send(()).unwrap();
        go_on.lock().recv().unwrap();
    };
    db.govern(Arc::new(AdmitAll(Box::new(wait)))).unwrap();
    std::thread::scope(|scope| {
        let db = &db;
        scope.spawn(move || put(db, key("x", "a")).unwrap());
        has_entered.recv().unwrap();
        let (settled, has_settled) = mpsc::channel();
        scope.spawn(move || {
            let mut answer = db.settle();
            let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
            assert!(answer.as_mut().poll(context).is_ready());
            settled.send(crate::governed::support::get(db, "x", "a").is_some()).unwrap();
        });
        let early = has_settled.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err(), "it did not wait for the writer");
        go.send(()).unwrap();
        assert!(has_settled.recv().unwrap(), "what was under way is there afterwards");
    });
}
