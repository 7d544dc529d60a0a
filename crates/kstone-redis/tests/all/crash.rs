//! The power goes while a key is written that is too large for one commit.

use crate::support::{Client, bulk, int, machine_with};
use kstone::{Database, DatabaseOptions};
use kstone_ports::keys::Value;
use kstone_sim::{CrashPolicy, SimDisk, Trigger};

const ELEMENTS: usize = 18;
const ELEMENT_LEN: usize = 1 << 20;

const WRONG_TYPE: &[u8] = b"WRONGTYPE Operation against a key holding the wrong kind of value";

fn open(disk: &SimDisk) -> Database {
    Database::open_with(machine_with(disk), "db", DatabaseOptions::default()).unwrap()
}

/// A disk with a large list at `a` and a string at `b`.
fn prepare() -> SimDisk {
    let disk = SimDisk::new(7);
    let database = open(&disk);
    let mut client = Client::of(&database);
    for number in 0..ELEMENTS {
        let element = vec![number as u8; ELEMENT_LEN];
        assert_eq!(client.call(&[b"RPUSH", &b"a"[..], &element]), int(number as i64 + 1));
    }
    client.say("SET b old");
    disk
}

/// Whether `b` is what `a` is; otherwise it must be what it was.
fn is_copied(client: &mut Client) -> bool {
    if client.say("TYPE b") == Value::Simple("string".into()) {
        assert_eq!(client.say("GET b"), bulk("old"));
        return false;
    }
    assert_eq!(client.say("LLEN b"), int(ELEMENTS as i64));
    for number in 0..ELEMENTS {
        let element = client.say(&format!("LINDEX b {number}"));
        assert!(element == bulk(vec![number as u8; ELEMENT_LEN]), "element {number}");
    }
    true
}

#[test]
fn a_large_copy_is_there_whole_or_not_at_all() {
    let prepared = prepare().crash(CrashPolicy::KeepAll);
    let copy = |disk: &SimDisk, stop_at: Option<u64>| {
        let database = open(disk);
        let mut client = Client::of(&database);
        let before = disk.ops();
        if let Some(at) = stop_at {
            disk.arm(Trigger::AtOp(at));
        }
        let reply = client.say("COPY a b REPLACE");
        (reply == int(1), disk.ops() - before)
    };
    let (is_done, ops) = copy(&prepared.crash(CrashPolicy::KeepAll), None);
    assert!(is_done && ops > 4);
    let (mut copied, mut kept) = (0, 0);
    for (number, at) in (0..ops).step_by((ops as usize / 4).max(1)).chain([ops - 1]).enumerate() {
        let disk = prepared.crash(CrashPolicy::KeepAll);
        let (is_promised, _) = copy(&disk, Some(at));
        let policies = [CrashPolicy::KeepAll, CrashPolicy::LoseAll, CrashPolicy::Random(at)];
        let found = disk.crash(policies[number % 3]);
        let database = open(&found);
        let mut client = Client::of(&database);
        let is_there = is_copied(&mut client);
        assert!(is_there || !is_promised, "a copy that was promised is gone, stopped at {at}");
        if is_there {
            copied += 1
        } else {
            kept += 1
        }
        // What was left behind does not get in the way.
        assert_eq!(
            client.say("RPUSH b last"),
            match is_there {
                true => int(ELEMENTS as i64 + 1),
                false => Value::Error(WRONG_TYPE.to_vec()),
            }
        );
    }
    assert!(kept > 0, "{copied} copies were whole");
}
