//! Every way in which a key or an item can name persons: what is theirs alone goes, what others share
//! stays without them.

use crate::support::{Fixture, SECRET, now, say, sightings};
use kstone::table::{KeyAttribute, KeySchema, KeyType};
use kstone::{Item, Value};
use kstone_keyspace::Subject;
use kstone_keyspace::erasure::PatternCount;
use kstone_ports::keys::Value as Reply;
use kstone_sim::SimDisk;

const CATALOGUE: &str = r#"
application = "shapes"
description = "Every way to name a person"
table = "things"

[placeholders]
person = "id"
thing = "id"
number = "int"

[pattern.hash_members]
pattern = "hm:{thing}"
store = "redis"
type = "hash"
ttl = "none"
subject = { members = true }
fields = { "*" = "any" }
description = "Fields are persons"

[pattern.list_members]
pattern = "lm:{thing}"
store = "redis"
type = "list"
ttl = "none"
subject = { members = true }
description = "Elements are persons"

[pattern.set_members]
pattern = "sm:{thing}"
store = "redis"
type = "set"
ttl = "none"
subject = { members = true }
description = "Members are persons"

[pattern.log]
pattern = "log:{thing}"
store = "redis"
type = "stream"
ttl = "none"
subject = { field = "who" }
fields = { who = "id", "*" = "any" }
description = "Each entry names a person"

[pattern.group]
pattern = "group:{thing}"
store = "redis"
type = "json"
ttl = "1 hour"
subject = { field = "persons" }
description = "A list of persons in a text"

[pattern.owned]
pattern = "owned:{thing}"
store = "redis"
type = "json"
ttl = "none"
subject = { field = "owner" }
description = "One person in a text"

[pattern.note]
pattern = "note:{thing}"
store = "redis"
type = "string"
ttl = "none"
subject = { through = "owned" }
description = "Belongs to who owns the thing"

[pattern.team]
pattern = "team:{thing}"
partition = "team:{thing}"
store = "item"
type = "item"
ttl = "none"
subject = { field = "members" }
fields = { members = "any?", "*" = "any" }
description = "A list or a set of persons in an attribute"

[pattern.numbered]
pattern = "{number}:{person}"
partition = "{number}"
table = "numbered"
store = "item"
type = "item"
ttl = "none"
subject = "person"
fields = { "*" = "any" }
description = "In a table whose partition key is a number"
"#;

fn fixture(disk: &SimDisk) -> Fixture {
    let fixture = Fixture::of_catalogue(disk, CATALOGUE);
    if fixture.db.describe_table("things").is_err() {
        let (pk, sk) = (KeyAttribute::string("id"), KeyAttribute::string("part"));
        fixture.make_table("things", KeySchema::hash_range(pk.clone(), sk.clone()));
        let pk = KeyAttribute { kind: KeyType::N, ..pk };
        fixture.make_table("numbered", KeySchema::hash_range(pk, sk));
    }
    fixture
}

fn team(thing: &str, members: Value) -> Item {
    Item::new().with("id", format!("team:{thing}")).with("part", "#").with("members", members)
}

fn fill(fixture: &Fixture) {
    for line in [
        &format!("HSET hm:a {SECRET} 1 OTHER 2"),
        &format!("RPUSH lm:a OTHER {SECRET} LAST {SECRET}"),
        &format!("SADD sm:a {SECRET} OTHER"),
        &format!("SADD sm:alone {SECRET}"),
        &format!("XADD log:a 1-1 who {SECRET} did something"),
        "XADD log:a 2-1 who OTHER did something",
        &format!(r#"SET group:a {{"persons":["OTHER","{SECRET}"],"size":2}}"#),
        &format!(r#"SET owned:a {{"owner":"{SECRET}"}}"#),
        "SET note:a of-SECRETPERSON",
        r#"SET owned:b {"owner":"OTHER"}"#,
        "SET note:b of-OTHER",
    ] {
        fixture.redis(line);
    }
    fixture.redis_in(7, &format!(r#"SET owned:c {{"owner":"{SECRET}"}}"#));
    fixture.redis_in(7, "SET note:c of-SECRETPERSON");
    let things = fixture.db.table("things");
    let list = Value::L(vec![Value::S("OTHER".into()), Value::S(SECRET.into())]);
    things.put(team("list", list)).unwrap();
    let set = Value::string_set(vec![SECRET.to_owned(), "OTHER".to_owned()]).unwrap();
    things.put(team("set", set)).unwrap();
    let alone = Value::string_set(vec![SECRET.to_owned()]).unwrap();
    things.put(team("alone", alone)).unwrap();
    things.put(team("single", Value::S(SECRET.into()))).unwrap();
    let numbered = fixture.db.table("numbered");
    numbered.put(Item::new().with("id", 7).with("part", SECRET).with("x", SECRET)).unwrap();
    numbered.put(Item::new().with("id", 7).with("part", "OTHER").with("x", "y")).unwrap();
}

#[test]
fn a_person_named_in_any_way_is_listed_exported_and_erased() {
    let disk = SimDisk::new(3);
    let fixture = fixture(&disk);
    fill(&fixture);
    let subject = Subject::canonical(SECRET, None);
    let holdings = now(fixture.eraser.stores().holdings(&subject)).unwrap();
    assert_eq!(holdings.len(), 15, "{holdings:#?}");
    let export = now(fixture.eraser.stores().export(&subject, 0)).unwrap().to_string();
    assert!(!export.contains("OTHER") && export.contains("did"), "{export}");

    let receipt = now(fixture.eraser.erase(&subject, &|_| {})).unwrap().receipt;
    assert_eq!(sightings(&disk), Vec::<String>::new());
    let count = |name: &str| receipt.patterns.get(&format!("shapes.{name}")).copied().unwrap();
    let deleted = |deleted| PatternCount { deleted, changed: 0 };
    let changed = |changed| PatternCount { deleted: 0, changed };
    for name in ["hash_members", "list_members", "log", "group"] {
        assert_eq!(count(name), changed(1), "{name}");
    }
    assert_eq!(count("set_members"), changed(2));
    assert_eq!([count("owned"), count("note"), count("numbered")], [2, 2, 1].map(deleted));
    assert_eq!(count("team"), PatternCount { deleted: 1, changed: 3 });
    check_others(&fixture);
}

#[test]
fn after_an_erasure_no_log_shows_what_commands_said_of_the_person() {
    let disk = SimDisk::new(3);
    let fixture = fixture(&disk);
    let mut session = fixture.redis.session();
    let mut say = |line: &str| say(&mut session, line);
    say("CONFIG SET slowlog-log-slower-than 0");
    say(&format!(r#"SET group:a {{"persons":["OTHER","{SECRET}"],"size":2}}"#));
    say("CONFIG SET slowlog-log-slower-than -1");
    assert_ne!(say("SLOWLOG LEN"), Reply::Integer(0));
    fixture.erase();
    assert_eq!(say("GET group:a"), Reply::bulk(r#"{"persons":["OTHER"],"size":2}"#));
    assert_eq!(say("SLOWLOG LEN"), Reply::Integer(0));
}

fn check_others(fixture: &Fixture) {
    assert_eq!(fixture.redis("HGET hm:a OTHER"), Reply::bulk("2"));
    assert_eq!(fixture.redis("HLEN hm:a"), Reply::Integer(1));
    let list = Reply::Array(vec![Reply::bulk("OTHER"), Reply::bulk("LAST")]);
    assert_eq!(fixture.redis("LRANGE lm:a 0 -1"), list);
    assert_eq!(fixture.redis("SCARD sm:a"), Reply::Integer(1));
    assert_eq!(fixture.redis("EXISTS sm:alone"), Reply::Integer(0));
    assert_eq!(fixture.redis("XLEN log:a"), Reply::Integer(1));
    assert_eq!(fixture.redis("GET group:a"), Reply::bulk(r#"{"persons":["OTHER"],"size":2}"#));
    assert!(matches!(fixture.redis("TTL group:a"), Reply::Integer(ttl) if ttl > 0));
    assert_eq!(fixture.redis("GET note:b"), Reply::bulk("of-OTHER"));
    let members = |thing: &str| {
        let key = Item::new().with("id", format!("team:{thing}")).with("part", "#");
        fixture.db.table("things").get(key).unwrap().map(|item| item.get("members").cloned())
    };
    assert_eq!(members("list"), Some(Some(Value::L(vec![Value::S("OTHER".into())]))));
    assert_eq!(members("set"), Some(Some(Value::string_set(vec!["OTHER".to_owned()]).unwrap())));
    assert_eq!(members("alone"), Some(None), "an empty set is no value");
    assert_eq!(members("single"), None);
    let numbered = Item::new().with("id", 7).with("part", "OTHER");
    assert!(fixture.db.table("numbered").get(numbered).unwrap().is_some());
}
