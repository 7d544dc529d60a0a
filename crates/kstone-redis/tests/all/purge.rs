//! What is purged is in no file any more, and what is not is where it was.

use crate::support::{Client, bulk, int, machine_with, now};
use bytes::Bytes;
use kstone::{Database, DatabaseOptions, Durability};
use kstone_core::{Compression, Options};
use kstone_ports::Error;
use kstone_ports::items::PurgeReport;
use kstone_ports::keys::{Keys, PurgeKeys};
use kstone_redis::{Pipeline, Redis, Value};
use kstone_sim::{CrashPolicy, SimDisk, Trigger};

const SECRET: &[u8] = b"SECRET";

fn open(disk: &SimDisk) -> Database {
    let engine = Options {
        compression: Compression::None,
        bottom_compression: Compression::None,
        ..Options::default()
    };
    Database::open_with(
        machine_with(disk),
        "db",
        DatabaseOptions { engine, durability: Durability::Interval },
    )
    .unwrap()
}

/// The files that hold the secret.
fn files_with_it(disk: &SimDisk) -> Vec<String> {
    let holds = |bytes: &[u8]| memchr::memmem::find(bytes, SECRET).is_some();
    let paths = disk.paths().into_iter();
    let paths = paths.filter(|path| holds(&disk.read_file(path).unwrap()));
    paths.map(|path| path.display().to_string()).collect()
}

/// Every type with the secret in it: as keys of their own, and as members of keys that stay.
fn fill(client: &mut Client) {
    for line in [
        "SET SECRET:string SECRETold",
        "SET SECRET:string SECRETnew EX 1000",
        "HSET SECRET:hash SECRETfield SECRETvalue",
        "HPEXPIRE SECRET:hash 50000 FIELDS 1 SECRETfield",
        "RPUSH SECRET:list SECRETelement",
        "SADD SECRET:set SECRETmember",
        "ZADD SECRET:zset 1 SECRETmember",
        "XADD SECRET:stream 1-1 SECRETfield SECRETvalue",
        "HSET hash SECRETfield SECRETvalue other kept",
        "HPEXPIRE hash 50000 FIELDS 1 SECRETfield",
        "RPUSH list a SECRETelement b SECRETelement c",
        "SADD set SECRETmember other",
        "ZADD zset 1 a 2 SECRETmember 3 b",
        "XADD stream 1-1 field SECRETvalue",
        "XADD stream 2-1 field kept",
        "SET kept 1",
        "SET gone:SECRET x",
        "DEL gone:SECRET",
    ] {
        assert!(!matches!(client.say(line), Value::Error(_)), "{line}");
    }
    let long = b"SECRET".repeat(20_000);
    client.call(&[b"SET", &b"SECRET:long"[..], &long]);
    client.say("SETRANGE SECRET:long 60000 SECRETSECRET");
}

fn array<const N: usize>(values: [Value; N]) -> Value {
    Value::Array(values.to_vec())
}

fn shown(client: &mut Client) -> Vec<Value> {
    let lines =
        ["HGETALL hash", "LRANGE list 0 -1", "SMEMBERS set", "ZRANGE zset 0 -1", "GET kept"];
    let mut shown: Vec<Value> = lines.iter().map(|line| client.say(line)).collect();
    shown.push(client.say("XRANGE stream - +"));
    shown
}

fn kept() -> Vec<Value> {
    let entry = array([bulk("2-1"), array([bulk("field"), bulk("kept")])]);
    vec![
        Value::Map(vec![(bulk("other"), bulk("kept"))]),
        array([bulk("a"), bulk("b"), bulk("c")]),
        Value::Set(vec![bulk("other")]),
        array([bulk("a"), bulk("b")]),
        bulk("1"),
        array([entry]),
    ]
}

fn request() -> PurgeKeys {
    let keys = ["string", "hash", "list", "set", "zset", "stream", "long"];
    let keys = keys.map(|name| (0, Bytes::from(format!("SECRET:{name}"))));
    let members = [
        ("hash", "SECRETfield"),
        ("list", "SECRETelement"),
        ("set", "SECRETmember"),
        ("zset", "SECRETmember"),
        ("stream", "1-1"),
        ("stream", "no ID"),
        ("missing", "SECRETmember"),
    ];
    let members = members.map(|(key, member)| (0, Bytes::from(key), Bytes::from(member)));
    let (keys, members) = (keys.to_vec(), members.to_vec());
    PurgeKeys { keys, members, remains: true, ..PurgeKeys::default() }
}

fn purge(redis: &Redis) -> Result<PurgeReport, Error> {
    now(redis.keys(0).unwrap().purge(&request()))
}

#[test]
fn a_purge_leaves_no_byte_of_any_type_in_any_file_and_the_rest_as_it_was() {
    let disk = SimDisk::new(1);
    let database = open(&disk);
    let mut client = Client::of(&database);
    fill(&mut client);
    database.engine().checkpoint("copy").unwrap();
    database.engine().flush().unwrap();
    client.say("SET SECRET:string SECRETlast");
    assert!(files_with_it(&disk).len() > 2);
    let report = purge(&client.redis).unwrap();
    assert_eq!(report.records, 13);
    assert_eq!((report.stripes, report.checkpoints), (256, 1));
    assert!(report.first_seq < report.last_seq);
    assert_eq!(files_with_it(&disk), Vec::<String>::new());
    assert_eq!(shown(&mut client), kept());
    let copy = database.open_checkpoint("copy").unwrap().unwrap();
    assert_eq!(shown(&mut Client::of(&copy)), kept());
    // Asked for again, there is nothing to delete.
    drop(copy);
    assert_eq!(purge(&client.redis).unwrap().records, 0);
}

#[test]
fn a_purge_of_some_keys_rewrites_only_their_stripes() {
    let disk = SimDisk::new(1);
    let database = open(&disk);
    let mut client = Client::of(&database);
    for number in 0..50 {
        client.say(&format!("SET kept{number} 1"));
    }
    client.say("SET SECRET:a SECRET EX 1000");
    client.say("SADD shared SECRET other");
    database.engine().flush().unwrap();
    // What is gone already is removed from the files all the same.
    client.say("DEL SECRET:a");
    let request = PurgeKeys {
        keys: vec![(0, Bytes::from_static(b"SECRET:a"))],
        members: vec![(0, Bytes::from_static(b"shared"), Bytes::from_static(b"SECRET"))],
        ..PurgeKeys::default()
    };
    // First without the files, as somebody asks who has more to delete.
    let later = PurgeKeys { files_later: true, ..request.clone() };
    let report = now(client.redis.keys(3).unwrap().purge(&later)).unwrap();
    assert_eq!((report.records, report.stripes), (1, 0));
    assert_eq!(client.say("SMEMBERS shared"), Value::Set(vec![bulk("other")]));
    assert!(!files_with_it(&disk).is_empty());
    let report = now(client.redis.keys(3).unwrap().purge(&request)).unwrap();
    assert_eq!((report.records, report.stripes), (0, 2));
    assert_eq!(files_with_it(&disk), Vec::<String>::new());
    assert_eq!(client.say("SMEMBERS shared"), Value::Set(vec![bulk("other")]));
}

#[test]
fn what_pipelines_wrote_just_now_is_purged_too() {
    let disk = SimDisk::new(1);
    let database = open(&disk);
    let mut client = Client::of(&database);
    let commands: Vec<[&[u8]; 3]> =
        (0..4).map(|_| [&b"SET"[..], b"SECRET:string", b"SECRETvalue"]).collect();
    let mut pipeline = Pipeline::new();
    for command in &commands {
        assert!(pipeline.push(command.iter().copied()));
    }
    assert_eq!(client.together(&pipeline).0, 4);
    purge(&client.redis).unwrap();
    assert_eq!(files_with_it(&disk), Vec::<String>::new());
}

#[test]
fn a_key_too_large_for_one_commit_is_purged_with_its_annex() {
    let disk = SimDisk::new(1);
    let database = open(&disk);
    let mut client = Client::of(&database);
    let element = b"SECRET".repeat(170_000);
    for _ in 0..18 {
        client.call(&[b"RPUSH", &b"SECRET:list"[..], &element]);
    }
    client.say("COPY SECRET:list copied");
    client.say("DEL SECRET:list");
    let keys = vec![(0, Bytes::from_static(b"SECRET:list")), (0, Bytes::from_static(b"copied"))];
    let request = PurgeKeys { keys, ..PurgeKeys::default() };
    let report = now(client.redis.keys(0).unwrap().purge(&request)).unwrap();
    assert_eq!((report.records, report.stripes), (1, 256));
    assert_eq!(files_with_it(&disk), Vec::<String>::new());
    assert_eq!(client.say("DBSIZE"), int(0));
}

#[test]
fn the_slow_log_forgets_commands_that_named_it() {
    let disk = SimDisk::new(1);
    let database = open(&disk);
    let mut client = Client::of(&database);
    client.say("CONFIG SET slowlog-log-slower-than 0");
    client.say("SET SECRET:string 1");
    client.say("SET kept 1");
    client.say("CONFIG SET slowlog-log-slower-than -1");
    let some = PurgeKeys { remains: false, ..request() };
    now(client.redis.keys(0).unwrap().purge(&some)).unwrap();
    let log = format!("{:?}", client.say("SLOWLOG GET"));
    // Bytes are shown as numbers.
    assert!(!log.contains(&format!("{:?}", b"SECRET:string")));
    assert!(log.contains(&format!("{:?}", b"kept")));
}

#[test]
fn who_purges_the_remains_leaves_no_command_in_the_logs() {
    let disk = SimDisk::new(1);
    let database = open(&disk);
    let mut client = Client::of(&database);
    let all = PurgeKeys { remains: true, ..PurgeKeys::default() };
    let later = PurgeKeys { files_later: true, ..PurgeKeys::default() };
    for request in [all, later] {
        client.say("CONFIG SET slowlog-log-slower-than 0");
        // The person is named in a value, and the key stays.
        client.say(r#"SET group:a {"persons":["SECRET","OTHER"]}"#);
        client.say("CONFIG SET slowlog-log-slower-than -1");
        client.say("AUTH SECRET wrong");
        assert!(client.say("SLOWLOG LEN") != int(0));
        assert!(client.say("ACL LOG") != array([]));
        now(client.redis.keys(0).unwrap().purge(&request)).unwrap();
        assert_eq!(client.say("SLOWLOG LEN"), int(0));
        assert_eq!(client.say("ACL LOG"), array([]));
    }
}

#[test]
fn a_purge_that_the_power_ended_is_done_when_it_is_asked_for_again() {
    let prepared = {
        let disk = SimDisk::new(5);
        fill(&mut Client::of(&open(&disk)));
        disk.crash(CrashPolicy::KeepAll)
    };
    let mut request = request();
    request.keys.push((0, Bytes::from_static(b"gone:SECRET")));
    request.remains = false;
    let purge = |redis: &Redis| now(redis.keys(0).unwrap().purge(&request));
    let mut stops = 0;
    for stop_at in (0..).step_by(5) {
        let disk = prepared.crash(CrashPolicy::KeepAll);
        let is_done = {
            let redis = Redis::open(&open(&disk)).unwrap();
            disk.arm(Trigger::BeforeSync(stop_at));
            purge(&redis).is_ok()
        };
        let disk = disk.crash(CrashPolicy::LoseAll);
        let database = open(&disk);
        let mut client = Client::of(&database);
        purge(&client.redis).unwrap();
        assert_eq!(files_with_it(&disk), Vec::<String>::new(), "{stop_at}");
        assert_eq!(shown(&mut client), kept(), "{stop_at}");
        if is_done {
            break;
        }
        stops += 1;
    }
    assert!(stops > 2);
}
