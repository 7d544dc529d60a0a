//! Records of a form that this build does not know are refused by name, never misread.

use kstone::Database;
use kstone_core::Key;
use kstone_redis::{Redis, Value};

use crate::golden::records::{self, CATALOG, KEYS, Record};
use crate::golden::{VERSION_1, machine_with};
use crate::support::{Client, error, machine};

/// The golden database after something was done to one record.
fn with_changed(key: &Key, change: impl Fn(&mut Vec<u8>)) -> kstone::Result<(Client, Database)> {
    let mut golden = records::parse(VERSION_1);
    let tables = [CATALOG, KEYS];
    let is_wanted = |record: &&mut Record| tables.contains(&record.table) && record.key == *key;
    change(&mut golden.iter_mut().find(is_wanted).unwrap().value);
    let env = machine_with(&golden);
    let database = Database::open_with(env, "db", Default::default()).unwrap();
    let redis = Redis::open(&database)?;
    let session = redis.session();
    Ok((Client { redis, session }, database))
}

#[test]
fn a_type_of_a_later_version_is_refused_and_other_keys_are_served() {
    for tag in [0, 8, 0x7f] {
        let later = with_changed(&Key::new("profile"), |head| head[0] = tag);
        let (mut client, _database) = later.unwrap();
        let refused = "MISCONF a stored key is of a type that this version does not know";
        for command in ["HGETALL profile", "TYPE profile", "SET profile 1", "DEL profile"] {
            assert_eq!(error(client.say(command)), refused, "{command}");
        }
        assert_eq!(client.say("GET greeting"), Value::bulk("hello"));
    }
}

#[test]
fn a_head_that_says_more_than_this_build_understands_is_refused() {
    let commands = [
        ("page", "GET page"),
        ("tasks", "LPUSH tasks x"),
        ("colors", "SADD colors x"),
        ("profile", "HSET profile x 1"),
        ("events", "XADD events * k v"),
    ];
    for (key, command) in commands {
        let (mut client, _database) = with_changed(&Key::new(key), |head| head.push(0)).unwrap();
        let refused = error(client.say(command));
        assert!(refused.starts_with("MISCONF "), "{command}: {refused}");
    }
}

#[test]
fn a_layout_of_a_later_version_keeps_redis_closed_and_the_database_open() {
    let change: [fn(&mut Vec<u8>); 2] = [|layout| layout[0] = 2, |layout| layout.push(0)];
    for change in change {
        let refused = with_changed(&Key::new("layout"), change).err().unwrap().to_string();
        assert!(refused.contains("its list of Redis databases"), "{refused}");
    }
}

#[test]
fn counts_of_a_later_version_are_counted_anew() {
    let (mut client, _database) =
        with_changed(&Key::new("counts"), |counts| counts[..2].copy_from_slice(&[2, 99])).unwrap();
    assert_eq!(client.say("DBSIZE"), Value::Integer(13));
}

/// What DUMP gives of a hash with a field that expires; Redis's form has no room for that.
const DUMPED: &str = "
    \"K\" 05                                                a mark, and the head's tag
    14000000 0200000000000000 02000000 90c7e6cf8b010000   the head's body
    09000000 01 0c354ecc \"name\"                           the parts: sort key,
    08000000 00 00000000 \"Ada\"                            value
    09000000 01 d9b92ab0 \"lang\"
    0f000000 01 01000000 90c7e6cf8b010000 \"en\"
    11000000 02 0000018bcfe6c790 d9b92ab0 \"lang\"
    00000000
    014b                                                  version
";

#[test]
fn dumps_of_our_own_are_of_version_1_and_others_are_refused() {
    let (env, _) = machine();
    let (mut client, _database) = Client::on(&env);
    let content = DUMPED.lines().map(|line| line.split("   ").find(|part| !part.trim().is_empty()));
    let content: String = content.flatten().collect::<Vec<_>>().join(" ");
    let content = records::bytes(&content).unwrap();
    client.say("HSET profile name Ada lang en");
    client.say("HPEXPIREAT profile 1700000090000 FIELDS 1 lang");
    let Value::Bulk(dumped) = client.say("DUMP profile") else { panic!("no dump") };
    assert_eq!(dumped[..dumped.len() - 8], content);
    assert_eq!(dumped[dumped.len() - 8..], CHECKSUM.to_le_bytes());
    client.say("DEL profile");
    assert_eq!(client.call(&[b"RESTORE", &b"copy"[..], b"0", &dumped]), Value::Simple("OK".into()));
    assert_eq!(
        crate::golden::script::text(&client.say("HPEXPIRETIME copy FIELDS 2 name lang")),
        "[-1 1700000090000]"
    );
    let mut later = dumped;
    let version_at = later.len() - 10;
    later[version_at] += 1;
    let refused = error(client.call(&[b"RESTORE", &b"other"[..], b"0", &later]));
    assert_eq!(refused, "ERR DUMP payload version or checksum are wrong");
}

/// CRC-64 as Redis has it, of all before.
const CHECKSUM: u64 = 0x387e_a403_4322_aa3f;
