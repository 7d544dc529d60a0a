//! The index of persons holds everything that there is of them: whatever their ids look like,
//! however long keys are, whichever key goes first, and which writes came meanwhile.

use std::sync::Arc;

use crate::support::{Fixture, keyspace_of, now, say, sweep_all};
use kstone::Item;
use kstone_keyspace::{Governor, GovernorOptions, Subject};
use kstone_ports::keys::Value as Reply;
use kstone_sim::SimDisk;

const CATALOGUE: &str = r#"
application = "school"
description = "Who is in the index"
table = "state"

[placeholders]
person = "text"
thing = "text"

[pattern.group]
pattern = "group:{thing}"
store = "redis"
type = "json"
ttl = "none"
subject = { field = "students" }
description = "A list of persons in a text"

[pattern.class]
pattern = "class:{thing}"
store = "redis"
type = "set"
ttl = "none"
subject = { members = true }
description = "Members are persons"

[pattern.session]
pattern = "session:{thing}"
store = "redis"
type = "hash"
ttl = "1 hour"
subject = { field = "user_id" }
fields = { user_id = "text", "*" = "any" }
description = "Says whose it is"

[pattern.board]
pattern = "board:{person}"
store = "redis"
type = "string"
ttl = "none"
subject = "person"
description = "Says whose it is by its name"

[pattern.pin]
pattern = "pin:{person}"
store = "redis"
type = "string"
ttl = "none"
subject = { through = "board" }
description = "Belongs to whoever has the board"

[pattern.desk]
pattern = "desk:{thing}"
partition = "desk:{thing}"
store = "item"
type = "json"
ttl = "none"
subject = { field = "owner" }
description = "An item that says whose it is"

[pattern.drawer]
pattern = "drawer:{thing}"
store = "redis"
type = "string"
ttl = "none"
subject = { through = "desk" }
description = "Belongs to whoever has the desk"

[pattern.draft]
pattern = "draft:{thing}"
store = "redis"
type = "string"
ttl = "none"
subject = { through = "session" }
description = "Belongs to whoever has the session"
"#;

fn fixture(disk: &SimDisk) -> Fixture {
    Fixture::of_catalogue(disk, CATALOGUE)
}

impl Fixture {
    /// How many places hold data of a person.
    fn places_of(&self, id: &str) -> usize {
        now(self.eraser.stores().holdings(&Subject::canonical(id, None))).unwrap().len()
    }

    /// What no port passes on.
    fn redis_session(&self, line: &str) {
        let reply = say(&mut self.redis.session(), line);
        assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
    }

    fn index_len(&self) -> usize {
        self.db.table("kstone.subjects").scan().unwrap().len()
    }

    fn erase_person(&self, id: &str) {
        now(self.eraser.erase(&Subject::canonical(id, None), &|_| {})).unwrap();
    }

    fn sweep_all(&self) -> u64 {
        sweep_all(&self.governor, &self.redis, 1)
    }
}

#[test]
fn a_person_whose_id_is_a_number_is_found_and_taken_out_of_a_list() {
    let fixture = fixture(&SimDisk::new(1));
    let long = "98765432109876543210";
    fixture.redis(&format!(r#"SET group:a {{"students":[12345,{long},"12345",7],"n":1.5}}"#));
    fixture.redis(r#"SET group:b {"students":12345}"#);
    assert_eq!((fixture.places_of("12345"), fixture.places_of(long)), (2, 1));
    fixture.erase_person("12345");
    let rest = format!(r#"{{"students":[{long},7],"n":1.5}}"#);
    assert_eq!(fixture.redis("GET group:a"), Reply::bulk(rest));
    assert_eq!(fixture.redis("EXISTS group:b"), Reply::Integer(0));
    let why = fixture.try_redis(r#"SET group:c {"students":[12345]}"#).unwrap_err();
    assert!(why.contains("was erased"), "{why}");
}

#[test]
fn keys_and_members_longer_than_those_of_a_table_are_indexed_recounted_swept_and_erased() {
    let fixture = fixture(&SimDisk::new(2));
    // As long as a part of a key may be, and a member of any length.
    let (thing, person) = ("%2F".repeat(127), "p".repeat(9000));
    let write = |thing: &str| {
        fixture.redis(&format!("SADD class:{thing} {person} OTHER"));
        fixture.redis(&format!("HSET session:{thing} user_id {person}"));
        fixture.redis(&format!("SET draft:{thing} x"));
    };
    write(&thing);
    write(&format!("{thing}2"));
    assert_eq!(fixture.places_of(&person), 6);
    let found = fixture.recount();
    assert_eq!((found.entries, found.too_long), (8, 0));
    for kind in ["class", "draft", "session"] {
        fixture.redis(&format!("DEL {kind}:{thing}"));
    }
    assert_eq!(fixture.sweep_all(), 3);
    assert_eq!(fixture.governor.prune().unwrap(), 0);
    assert_eq!(fixture.places_of(&person), 3);
    fixture.erase_person(&person);
    assert_eq!(fixture.places_of(&person), 0);
    assert_eq!(fixture.redis(&format!("SCARD class:{thing}2")), Reply::Integer(1));
}

#[test]
fn what_was_written_before_and_is_too_long_for_the_index_does_not_keep_the_rest_out_of_it() {
    let fixture = fixture(&SimDisk::new(3));
    fixture.db.ungovern();
    let long = "x".repeat(40_000);
    fixture.redis(&format!("SADD class:a {long} OTHER"));
    fixture.db.govern(fixture.governor.clone()).unwrap();
    let found = fixture.recount();
    assert_eq!((found.entries, found.too_long), (1, 1));
    assert_eq!(fixture.places_of("OTHER"), 1);
}

#[test]
fn what_is_found_through_a_key_is_found_after_that_key_has_gone() {
    let fixture = fixture(&SimDisk::new(4));
    for name in ["ended", "deleted"] {
        fixture.redis(&format!("HSET session:{name} user_id U"));
        fixture.redis(&format!("SET draft:{name} x"));
    }
    fixture.redis("SET board:U-1 x");
    fixture.redis("SET pin:U-1 x");
    fixture.redis("DEL session:deleted");
    fixture.redis("DEL board:U-1");
    fixture.clock.advance(2 * 3_600_000);
    fixture.db.run_background().unwrap();
    assert_eq!(fixture.redis("EXISTS session:ended"), Reply::Integer(0));
    fixture.sweep_all();
    assert_eq!(fixture.places_of("U"), 2);
    assert_eq!(fixture.places_of("U-1"), 1);
    fixture.erase_person("U-1");
    assert_eq!(fixture.redis("EXISTS pin:U-1"), Reply::Integer(0));

    fixture.redis("DEL draft:ended");
    fixture.sweep_all();
    assert_eq!(fixture.index_len(), 2, "the way to what is left");
    fixture.erase_person("U");
    assert_eq!(fixture.redis("EXISTS draft:deleted"), Reply::Integer(0));
    fixture.sweep_all();
    assert_eq!(fixture.index_len(), 0);
}

#[test]
fn what_is_found_through_an_item_is_found_after_that_item_has_gone() {
    let fixture = fixture(&SimDisk::new(5));
    fixture.state("desk:a", "#", r#"{"owner":"U"}"#);
    fixture.redis("SET drawer:a x");
    fixture.db.table("state").delete(Item::new().with("pk", "desk:a").with("sk", "#")).unwrap();
    fixture.sweep_all();
    assert_eq!((fixture.places_of("U"), fixture.index_len()), (1, 2));
    fixture.redis("DEL drawer:a");
    assert_eq!((fixture.sweep_all(), fixture.index_len()), (1, 0));
}

#[test]
fn a_key_that_belongs_to_somebody_else_by_now_is_no_way_to_what_is_theirs() {
    let fixture = fixture(&SimDisk::new(6));
    fixture.redis("HSET session:a user_id U");
    fixture.redis("SET draft:a x");
    fixture.redis("HSET session:a user_id V");
    fixture.sweep_all();
    assert_eq!((fixture.places_of("U"), fixture.places_of("V")), (0, 2));
}

/// What makes a governor look at everything once more.
fn check_looks_again(write: impl FnOnce(&Fixture)) {
    let disk = SimDisk::new(7);
    let first = fixture(&disk);
    assert!(!first.governor.is_counted());
    first.recount();
    drop(first);
    let again = fixture(&disk);
    assert!(again.governor.is_counted(), "nothing happened in between");
    again.governor.close().unwrap();
    again.db.ungovern();
    write(&again);
    drop(again);
    let last = fixture(&disk);
    assert!(!last.governor.is_counted());
    drop(last);
    let last = fixture(&disk);
    assert!(!last.governor.is_counted(), "still not");
    last.count_anew();
    assert_eq!(last.places_of("U"), 1);
    drop(last);
    assert!(fixture(&disk).governor.is_counted());
}

#[test]
fn an_item_that_was_written_without_a_policy_makes_the_next_one_look_again() {
    check_looks_again(|fixture| fixture.state("desk:a", "#", r#"{"owner":"U"}"#));
}

#[test]
fn a_key_that_was_written_without_a_policy_makes_the_next_one_look_again() {
    check_looks_again(|fixture| drop(fixture.redis("SADD class:a U")));
}

#[test]
fn keys_that_changed_places_without_a_policy_make_the_next_one_look_again() {
    let disk = SimDisk::new(10);
    let first = fixture(&disk);
    first.recount();
    first.redis("SADD class:a U");
    first.db.ungovern();
    first.redis_session("SWAPDB 0 3");
    drop(first);
    let next = fixture(&disk);
    next.count_anew();
    assert_eq!(next.places_of("U"), 1);
}

#[test]
fn a_key_that_was_written_under_other_patterns_makes_the_old_ones_look_again() {
    check_looks_again(|fixture| {
        let other = keyspace_of(&CATALOGUE.replace("class:", "course:"));
        let options = GovernorOptions::default();
        let other = Governor::govern(&fixture.db, Arc::new(other), options).unwrap();
        assert!(!other.is_counted());
        fixture.redis("SADD class:a U");
        fixture.db.ungovern();
    });
}

#[test]
fn each_time_that_no_policy_is_in_force_is_noticed_by_itself() {
    let fixture = fixture(&SimDisk::new(8));
    fixture.recount();
    for person in ["U", "V"] {
        fixture.db.ungovern();
        fixture.redis(&format!("SADD class:a {person}"));
        let options = GovernorOptions::default;
        let next =
            Governor::govern(&fixture.db, Arc::new(keyspace_of(CATALOGUE)), options()).unwrap();
        assert!(!next.is_counted());
        next.recount(Some(&fixture.redis), &mut |_| {}).unwrap();
        let next =
            Governor::govern(&fixture.db, Arc::new(keyspace_of(CATALOGUE)), options()).unwrap();
        assert!(next.is_counted());
    }
}

#[test]
fn what_only_ends_or_is_read_while_no_policy_is_in_force_is_no_reason_to_look_again() {
    let fixture = fixture(&SimDisk::new(9));
    fixture.recount();
    for name in ["a", "b"] {
        fixture.redis(&format!("HSET session:{name} user_id U"));
    }
    fixture.db.ungovern();
    fixture.clock.advance(2 * 3_600_000);
    assert_eq!(fixture.redis("HLEN session:a"), Reply::Integer(0));
    fixture.db.run_background().unwrap();
    let options = GovernorOptions::default();
    assert!(
        Governor::govern(&fixture.db, Arc::new(keyspace_of(CATALOGUE)), options)
            .unwrap()
            .is_counted()
    );
}
