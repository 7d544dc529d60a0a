//! An erasure always completes, whatever data or other erasures exist.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::support::{Fixture, SECRET, now, sightings, sweep_all};
use kstone::Item;
use kstone::table::{KeyAttribute, KeySchema};
use kstone_keyspace::erasure::{ErasureState, Progress};
use kstone_keyspace::{Governor, Subject};
use kstone_ports::keys::Value as Reply;
use kstone_sim::SimDisk;

const CATALOGUE: &str = r#"
application = "stuck"
description = "What is refused when it is written"
table = "things"

[placeholders]
thing = "id"

[pattern.group]
pattern = "group:{thing}"
store = "redis"
type = "json"
ttl = "none"
subject = { field = "persons" }
fields = { persons = "any", size = "int" }
description = "A list of persons in a text"

[pattern.team]
pattern = "team:{thing}"
partition = "team:{thing}"
store = "item"
type = "item"
ttl = "none"
subject = { field = "members" }
fields = { members = "any", size = "int" }
description = "A list of persons in an attribute"

[pattern.few]
pattern = "few:{thing}"
store = "redis"
type = "set"
ttl = "none"
subject = { members = true }
limits = { members = 2 }
description = "A small set of persons"

[pattern.log]
pattern = "log:{thing}"
store = "redis"
type = "stream"
ttl = "none"
subject = { field = "who" }
fields = { who = "id" }
limits = { members = 2, over = "refuse" }
description = "Each entry names a person"
"#;

fn fixture(disk: &SimDisk) -> Fixture {
    let fixture = Fixture::of_catalogue(disk, CATALOGUE);
    if fixture.db.describe_table("things").is_err() {
        let key = KeySchema::hash_range(KeyAttribute::string("id"), KeyAttribute::string("part"));
        fixture.make_table("things", key);
    }
    fixture
}

fn team(members: &[&str]) -> Item {
    let members: Vec<kstone::Value> = members.iter().map(|id| (*id).into()).collect();
    let key = Item::new().with("id", "team:t").with("part", "#");
    key.with("members", kstone::Value::L(members))
}

fn members_of_team(fixture: &Fixture) -> kstone::Value {
    let key = Item::new().with("id", "team:t").with("part", "#");
    fixture.db.table("things").get(key).unwrap().unwrap().get("members").unwrap().clone()
}

fn person(id: &str) -> Subject {
    Subject::canonical(id, None)
}

/// Begins to erase somebody, and breaks off before anything of them is deleted.
fn interrupted(fixture: &Fixture, id: &str) {
    let stop = |progress| {
        if progress == Progress::Deleting {
            resume_unwind(Box::new("enough"));
        }
    };
    let erasing = || now(fixture.eraser.erase(&person(id), &stop)).map(drop);
    catch_unwind(AssertUnwindSafe(erasing)).unwrap_err();
}

#[test]
fn two_persons_in_one_list_whose_erasures_were_interrupted_are_both_erased() {
    let disk = SimDisk::new(1);
    {
        let fixture = fixture(&disk);
        fixture.redis(&format!(r#"SET group:g {{"persons":["{SECRET}","B","C"],"size":3}}"#));
        fixture.db.table("things").put(team(&[SECRET, "B", "C"]).with("size", 3)).unwrap();
        interrupted(&fixture, SECRET);
        interrupted(&fixture, "B");
    }
    {
        let fixture = fixture(&disk);
        let group = format!(r#"{{"persons":["{SECRET}","B","C"],"size":3}}"#);
        assert_eq!(fixture.redis("GET group:g"), Reply::bulk(&group), "it stopped before");
        // A third person need not wait for the two.
        now(fixture.eraser.erase(&person("C"), &|_| {})).unwrap();
        assert_eq!(now(fixture.eraser.stores().holdings(&person("B"))).unwrap().len(), 2);
        let refused = fixture.try_redis(r#"SET group:new {"persons":["B"],"size":1}"#);
        assert!(refused.unwrap_err().contains("was erased"), "others write as before");
        assert_eq!(now(fixture.eraser.resume(&|_| {})).unwrap().len(), 2);
        assert_eq!(fixture.redis("GET group:g"), Reply::bulk(r#"{"persons":[],"size":3}"#));
        assert_eq!(members_of_team(&fixture), kstone::Value::L(Vec::new()));
        let refused = fixture.try_redis(r#"SET group:g {"persons":["B"],"size":1}"#);
        assert!(refused.unwrap_err().contains("was erased"));
        let refused = fixture.db.table("things").put(team(&["B"]).with("size", 1));
        assert!(refused.unwrap_err().to_string().contains("was erased"));
    }
    assert_eq!(sightings(&disk), Vec::<String>::new());
}

#[test]
fn who_is_in_data_that_is_older_than_the_rules_is_erased_from_it() {
    let disk = SimDisk::new(1);
    {
        let fixture = fixture(&disk);
        Governor::suspend(&fixture.db).unwrap();
        fixture.db.ungovern();
        fixture.redis(&format!(r#"SET group:g {{"persons":["{SECRET}","B"],"old":1}}"#));
        fixture.db.table("things").put(team(&[SECRET, "B"]).with("old", 1)).unwrap();
        fixture.redis(&format!("SADD few:f {SECRET} B C D"));
        for at in 1..5 {
            fixture.redis(&format!("XADD log:l {at}-1 who {}", [SECRET, "B"][at % 2]));
        }
        fixture.db.engine().checkpoint("copy").unwrap();
    }
    let fixture = fixture(&disk);
    fixture.count_anew();
    fixture.erase();
    assert_eq!(fixture.redis("GET group:g"), Reply::bulk(r#"{"persons":["B"],"old":1}"#));
    assert_eq!(members_of_team(&fixture), kstone::Value::L(vec!["B".into()]));
    assert_eq!(fixture.redis("SCARD few:f"), Reply::Integer(3));
    assert_eq!(fixture.redis("XLEN log:l"), Reply::Integer(2));
    assert_eq!(sightings(&disk), Vec::<String>::new());
    assert!(fixture.try_redis(r#"SET group:g {"persons":["B"],"old":1}"#).is_err());
}

#[test]
fn removals_are_not_held_to_the_rules() {
    let disk = SimDisk::new(1);
    {
        let fixture = fixture(&disk);
        Governor::suspend(&fixture.db).unwrap();
        fixture.db.ungovern();
        fixture.redis("SADD few:f A B C D E");
        // It ought to be a set.
        fixture.redis("ZADD few:z 1 A 2 B");
        (1..6).for_each(|at| drop(fixture.redis(&format!("XADD log:l {at}-1 who A"))));
    }
    let fixture = fixture(&disk);
    fixture.count_anew();
    assert_eq!(fixture.redis("SREM few:f A"), Reply::Integer(1));
    assert_eq!(fixture.redis("ZREM few:z A"), Reply::Integer(1));
    assert_eq!(fixture.redis("XDEL log:l 1-1"), Reply::Integer(1));
    assert_eq!(now(fixture.eraser.stores().holdings(&person("A"))).unwrap().len(), 1);
    for more in ["SADD few:f F", "ZADD few:z 3 F", "XADD log:l 9-1 who F"] {
        assert!(fixture.try_redis(more).is_err(), "{more}");
    }
}

#[test]
fn an_erasure_that_cannot_go_on_does_not_stop_the_next_one() {
    let disk = SimDisk::new(1);
    let fixture = fixture(&disk);
    fixture.redis(&format!("SADD few:f B {SECRET}"));
    interrupted(&fixture, "B");
    interrupted(&fixture, SECRET);
    let [first, _] = &now(fixture.eraser.erasures()).unwrap()[..] else {
        panic!("two are running")
    };
    forget_whom(&fixture, &first.id);
    let error = now(fixture.eraser.resume(&|_| {})).unwrap_err().to_string();
    assert!(error.contains(&first.id) && error.contains("whom it is about"), "{error}");
    let states = now(fixture.eraser.erasures()).unwrap();
    assert!(matches!(states[0].state, ErasureState::Running));
    assert!(matches!(states[1].state, ErasureState::Done(_)));
}

#[test]
fn a_value_that_names_the_person_alone_and_others_in_a_list_is_theirs() {
    let disk = SimDisk::new(1);
    let fixture = fixture(&disk);
    fixture.redis(&format!(r#"SET group:g {{"persons":"{SECRET}","persons":["B"],"size":1}}"#));
    fixture.redis(&format!(r#"SET group:h {{"persons":"B","persons":["{SECRET}"],"size":1}}"#));
    let json = format!(r#"{{"members":"{SECRET}"}}"#);
    fixture.db.ungovern();
    fixture.db.table("things").put(team(&["B"]).with("value", json)).unwrap();
    Governor::suspend(&fixture.db).unwrap();
    drop(fixture);
    let fixture = self::fixture(&disk);
    fixture.count_anew();
    fixture.erase();
    assert_eq!(fixture.redis("EXISTS group:g"), Reply::Integer(0));
    assert_eq!(
        fixture.redis("GET group:h"),
        Reply::bulk(r#"{"persons":"B","persons":[],"size":1}"#)
    );
    let key = Item::new().with("id", "team:t").with("part", "#");
    assert_eq!(fixture.db.table("things").get(key).unwrap(), None);
    assert_eq!(sightings(&disk), Vec::<String>::new());
}

#[test]
fn a_checkpoint_gets_nothing_that_was_written_after_it() {
    let disk = SimDisk::new(1);
    let fixture = fixture(&disk);
    fixture.db.table("things").put(team(&[SECRET, "B"]).with("size", 2)).unwrap();
    fixture.db.engine().checkpoint("copy").unwrap();
    fixture.db.table("things").put(team(&[SECRET, "LATER"]).with("size", 2)).unwrap();
    fixture.erase();
    assert_eq!(members_of_team(&fixture), kstone::Value::L(vec!["LATER".into()]));
    assert_eq!(sightings(&disk), Vec::<String>::new());
    let copy = fixture.db.open_checkpoint("copy").unwrap().unwrap();
    let key = Item::new().with("id", "team:t").with("part", "#");
    let members = copy.table("things").get(key).unwrap().unwrap().get("members").cloned();
    assert_eq!(members, Some(kstone::Value::L(vec!["B".into()])));
}

#[test]
fn who_is_erased_in_one_tenant_is_not_named_in_the_index_any_more() {
    let disk = SimDisk::new(1);
    let fixture = fixture(&disk);
    let named = |id: &str| format!(r#"{{"persons":"{id}","size":1}}"#);
    let theirs = format!("university_abc_{SECRET}");
    let subject = Subject::canonical(&theirs, None);
    assert!(subject.tenant.is_some(), "{subject:?}");
    fixture.redis(&format!("SET group:now {}", named(&theirs)));
    fixture.redis(&format!("SET group:before {}", named(&theirs)));
    fixture.redis(&format!("SET group:copied {}", named(&theirs)));
    fixture.redis(&format!("SET group:copied {}", named("B")));
    fixture.db.engine().checkpoint("copy").unwrap();
    // Swept here, and in the checkpoint the index still names them.
    sweep_all(&fixture.governor, &fixture.redis, 100);
    fixture.redis(&format!("SET group:before {}", named("B")));
    now(fixture.eraser.erase(&subject, &|_| {})).unwrap();
    assert_eq!(fixture.redis("GET group:before"), Reply::bulk(named("B")));
    assert_eq!(sightings(&disk), Vec::<String>::new());
}

/// Takes away what an erasure remembers of its person.
fn forget_whom(fixture: &Fixture, erasure: &str) {
    let key = Item::new().with("pk", format!("running#{erasure}")).with("sk", "job");
    let gone = fixture.db.internal().table("kstone.erasures").delete(key).unwrap();
    assert!(gone.is_some());
}
