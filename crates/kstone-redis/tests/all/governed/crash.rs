//! The power goes: a key and its entries in the index of persons are both there, or neither is.

use std::sync::Arc;

use kstone::{Database, DatabaseOptions};
use kstone_ports::keys::Value;
use kstone_sim::{CrashPolicy, SimDisk, Trigger};

use crate::governed::index_of;
use crate::governed::policy::Rules;
use crate::support::{Client, machine_with};

const COMMANDS: [&str; 12] = [
    "SET of:ann:a v",
    "HSET of:ann:b f v",
    "RENAME of:ann:a of:bob:a",
    "MSET of:ann:c 1 of:bob:c 2",
    "MULTI",
    "DEL of:ann:b",
    "SET of:ann:d v",
    "DEL of:ann:c",
    "EXEC",
    "RPUSH of:eve:l a",
    "LPOP of:eve:l",
    "COPY of:bob:a of:eve:a",
];

fn open(disk: &SimDisk) -> Database {
    let database =
        Database::open_with(machine_with(disk), "db", DatabaseOptions::default()).unwrap();
    database.govern(Arc::new(Rules::default())).unwrap();
    database
}

/// Runs the commands until one fails; whether none did.
fn run(client: &mut Client) -> bool {
    COMMANDS.iter().all(|line| !matches!(client.say(line), Value::Error(_)))
}

/// The entries that the keys that are there should have.
fn entries_of(client: &mut Client) -> Vec<(String, String)> {
    let Value::Array(keys) = client.say("KEYS of:*") else { panic!("no keys") };
    let entry = |key: Value| {
        let Value::Bulk(key) = key else { panic!("no key: {key:?}") };
        let key = String::from_utf8(key).unwrap();
        (format!("subject#{}", key.split(':').nth(1).unwrap()), format!("r0|{key}"))
    };
    let mut entries: Vec<_> = keys.into_iter().map(entry).collect();
    entries.sort();
    entries
}

#[test]
fn a_key_and_its_entry_in_the_index_survive_together_or_not_at_all() {
    let disk = SimDisk::new(11);
    let ops = {
        let database = open(&disk);
        let mut client = Client::of(&database);
        // So that the tables are there.
        client.say("SET first v");
        let begun = disk.ops();
        assert!(run(&mut client));
        disk.ops() - begun
    };
    let mut seen = std::collections::BTreeSet::new();
    for at in 0..ops {
        let disk = SimDisk::new(11);
        {
            let database = open(&disk);
            let mut client = Client::of(&database);
            client.say("SET first v");
            disk.arm(Trigger::AtOp(at));
            run(&mut client);
        }
        for policy in [CrashPolicy::KeepAll, CrashPolicy::LoseAll, CrashPolicy::Random(at)] {
            let found = disk.crash(policy);
            let database = open(&found);
            let mut client = Client::of(&database);
            let keys = entries_of(&mut client);
            assert_eq!(index_of(&database), keys, "stopped at {at}, {policy:?}");
            seen.insert(keys.len());
        }
    }
    assert!(seen.len() > 3, "the crashes are too much alike: {seen:?}");
}
