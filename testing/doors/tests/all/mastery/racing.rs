//! `update_with_version`: of a hundred that have read the same version, exactly one writes the next.

use std::sync::Barrier;

use kstone_keyspace::keys::mastery::CurrentMastery;
use kstone_keyspace::typed::TypedKey;
use kstone_redis::Value;
use serde_json::{Value as Json, json};

use crate::mastery::doors::{Dapr, Doors, Dynamo, item, place, text, value};
use crate::mastery::keys::{mastery, student};

const RACERS: usize = 100;
/// The next race is for what the winner of the last one wrote.
const RACES: u64 = 5;

fn key() -> CurrentMastery {
    CurrentMastery { student_id: student("s1") }
}

/// The next version, as this racer writes it.
fn next(version: u64, racer: usize) -> Json {
    let mut next = mastery("s1", racer as f64 / 100.0);
    next["version"] = json!(version + 1);
    next
}

/// Has all race: each has its client and reads, and when the last has read, all write.
/// `write` says whether it was this one that wrote. Gives the winner.
fn race<C: Send, R: Send>(
    clients: &mut [C],
    read: impl Fn(usize, &mut C) -> R + Sync,
    write: impl Fn(usize, &mut C, R) -> bool + Sync,
) -> usize {
    let start = Barrier::new(clients.len());
    let won: Vec<bool> = std::thread::scope(|scope| {
        let (start, read, write) = (&start, &read, &write);
        let mut racers = Vec::new();
        for (racer, client) in clients.iter_mut().enumerate() {
            racers.push(scope.spawn(move || {
                let read = read(racer, client);
                start.wait();
                write(racer, client, read)
            }));
        }
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    let winners: Vec<usize> = (0..won.len()).filter(|&racer| won[racer]).collect();
    assert_eq!(winners.len(), 1, "these won: {winners:?}");
    winners[0]
}

fn etag(dapr: &mut Dapr) -> String {
    dapr.get(&key().key()).header("etag").unwrap().to_owned()
}

fn save(dapr: &mut Dapr, etag: &str, value: &Json) -> bool {
    let options = json!({"concurrency": "first-write"});
    let state = json!({"key": key().key(), "value": value, "etag": etag, "options": options});
    match dapr.try_save(&json!([state])) {
        204 => true,
        409 => false,
        other => panic!("{other}"),
    }
}

/// Writes a value if an attribute holds what was read.
fn put_if(dynamo: &mut Dynamo, attribute: &str, read: &Json, put: &Json) -> bool {
    let request = json!({
        "Item": put,
        "ConditionExpression": "#name = :read",
        "ExpressionAttributeNames": {"#name": attribute},
        "ExpressionAttributeValues": {":read": read},
    });
    match dynamo.call("PutItem", request) {
        Ok(_) => true,
        Err(refused) if refused == "ConditionalCheckFailedException" => false,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn of_100_racing_updates_with_an_etag_exactly_one_wins() {
    let doors = Doors::open();
    let mut racers: Vec<Dapr> = (0..RACERS).map(|_| doors.dapr()).collect();
    racers[0].save_one(&key(), &mastery("s1", 0.5));
    for version in 1..=RACES {
        let write = |racer, dapr: &mut Dapr, etag: String| save(dapr, &etag, &next(version, racer));
        let winner = race(&mut racers, |_, dapr| etag(dapr), write);
        assert_eq!(racers[0].value(&key().key()), Some(next(version, winner)));
    }
}

#[test]
fn of_100_racing_updates_with_a_condition_exactly_one_wins() {
    let doors = Doors::open();
    let mut racers: Vec<Dynamo> = (0..RACERS).map(|_| doors.dynamo()).collect();
    let request = json!({"Item": item(&key(), &mastery("s1", 0.5))});
    racers[0].call("PutItem", request).unwrap();
    for version in 1..=RACES {
        let read = |_, dynamo: &mut Dynamo| dynamo.item(&key()).unwrap()["value"].clone();
        let write = |racer, dynamo: &mut Dynamo, read: Json| {
            put_if(dynamo, "value", &read, &item(&key(), &next(version, racer)))
        };
        let winner = race(&mut racers, read, write);
        assert_eq!(value(&racers[0].item(&key()).unwrap()), next(version, winner));
    }
}

#[test]
fn of_100_racing_updates_of_a_watched_key_exactly_one_wins() {
    let doors = Doors::open();
    let mut racers: Vec<_> = (0..RACERS).map(|_| doors.redis()).collect();
    racers[0].say("SET version:s1 1").unwrap();
    for version in 1..=RACES {
        let read = |_, wire: &mut kstone_door_tests::redis::wire::Wire| {
            wire.say("WATCH version:s1").unwrap();
            let read = wire.say("GET version:s1").unwrap();
            let Value::Bulk(read) = read else { panic!("{read:?}") };
            // The winner's name is after a dot.
            let read = String::from_utf8(read).unwrap();
            assert_eq!(read.split('.').next(), Some(version.to_string().as_str()));
        };
        let write = |racer, wire: &mut kstone_door_tests::redis::wire::Wire, ()| {
            wire.say("MULTI").unwrap();
            wire.say(&format!("SET version:s1 {}.{racer}", version + 1)).unwrap();
            match wire.say("EXEC").unwrap() {
                Value::Array(replies) => replies.len() == 1,
                _ => false,
            }
        };
        let winner = race(&mut racers, read, write);
        let now = racers[0].say("GET version:s1").unwrap();
        assert_eq!(now, Value::Bulk(format!("{}.{winner}", version + 1).into_bytes()));
    }
}

/// Half of them at each door, for one item: a client of one door never overwrites what came through
/// another since it read.
#[test]
fn of_100_racing_updates_of_one_item_through_two_doors_exactly_one_wins() {
    enum Client {
        Dapr(Dapr),
        Dynamo(Dynamo),
    }
    let doors = Doors::open();
    let client = |n: usize| match n % 2 {
        0 => Client::Dapr(doors.dapr()),
        _ => Client::Dynamo(doors.dynamo()),
    };
    let mut racers: Vec<Client> = (0..RACERS).map(client).collect();
    doors.dapr().save_one(&key(), &mastery("s1", 0.5));
    for version in 1..=RACES {
        let read = |_, client: &mut Client| match client {
            Client::Dapr(dapr) => Json::from(etag(dapr)),
            Client::Dynamo(dynamo) => dynamo.item(&key()).unwrap(),
        };
        let write = |racer, client: &mut Client, read: Json| {
            let next = next(version, racer);
            match client {
                Client::Dapr(dapr) => save(dapr, read.as_str().unwrap(), &next),
                Client::Dynamo(dynamo) => {
                    let version: u64 = read["etag"]["N"].as_str().unwrap().parse().unwrap();
                    let mut put = item(&key(), &next);
                    put["etag"] = json!({"N": (version + 1).to_string()});
                    put_if(dynamo, "etag", &read["etag"], &put)
                }
            }
        };
        let winner = race(&mut racers, read, write);
        assert_eq!(doors.dapr().value(&key().key()), Some(next(version, winner)));
        let item = doors.dynamo().item(&key()).unwrap();
        assert_eq!(text(&item, "pk"), place(&key())["pk"]["S"].as_str().unwrap());
        assert_eq!(value(&item), next(version, winner));
    }
}
