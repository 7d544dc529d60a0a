//! The index of persons is written with the keys.

use crate::governed::Governed;
use crate::support::{bulk, bulks, error, int};

fn entry(person: &str, key: &str) -> (String, String) {
    (format!("subject#{person}"), format!("r0|{key}"))
}

#[test]
fn a_key_of_a_person_is_in_the_index_as_long_as_it_is_there() {
    let mut governed = Governed::new();
    governed.do_("SET of:ann:a v");
    governed.do_("RPUSH of:ann:b v");
    governed.do_("HSET of:bob:c f v");
    let all = [entry("ann", "of:ann:a"), entry("ann", "of:ann:b"), entry("bob", "of:bob:c")];
    assert_eq!(governed.index(), all);
    governed.do_("DEL of:ann:a");
    governed.do_("LPOP of:ann:b");
    assert_eq!(governed.index(), [entry("bob", "of:bob:c")]);
    governed.do_("RENAME of:bob:c of:eve:c");
    assert_eq!(governed.index(), [entry("eve", "of:eve:c")]);
    governed.do_("PEXPIRE of:eve:c 10");
    governed.clock.advance(10);
    governed.database.run_background().unwrap();
    assert_eq!(governed.index(), []);
}

#[test]
fn a_field_may_name_the_person() {
    let mut governed = Governed::new();
    governed.do_("HSET who:1 color red person ann");
    governed.do_("HSET who:2 color red");
    assert_eq!(governed.index(), [entry("ann", "who:1")]);
    governed.do_("HSET who:2 person bob");
    assert_eq!(governed.index(), [entry("ann", "who:1"), entry("bob", "who:2")]);
    governed.do_("XADD who:3 * person eve");
    assert_eq!(governed.index().len(), 3);
    governed.do_("COPY who:1 who:4");
    assert!(governed.index().contains(&entry("ann", "who:4")));
}

#[test]
fn what_a_transaction_writes_and_takes_away_again_is_not_in_the_index() {
    let mut governed = Governed::new();
    for line in ["MULTI", "SET of:ann:a v", "DEL of:ann:a", "SET of:bob:a v", "EXEC"] {
        governed.do_(line);
    }
    assert_eq!(governed.index(), [entry("bob", "of:bob:a")]);
    for line in ["MULTI", "DEL of:bob:a", "SET of:bob:a v", "EXEC"] {
        governed.do_(line);
    }
    assert_eq!(governed.index(), [entry("bob", "of:bob:a")]);
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}

#[test]
fn keys_that_change_places_all_at_once_are_in_the_index_where_they_are_then() {
    let mut governed = Governed::new();
    for n in 0..600 {
        governed.do_(&format!("SET of:p{n}:a v"));
    }
    governed.do_("SELECT 3");
    governed.do_("HSET who:h person ann");
    for line in ["MULTI", "SET of:bob:a v", "SWAPDB 0 3", "DEL of:p5:a", "EXEC"] {
        governed.do_(line);
    }
    let index = governed.index();
    let at = |person: &str, db: u8, key: &str| {
        index.contains(&(format!("subject#{person}"), format!("r{db}|{key}")))
    };
    assert!((0..600).all(|n| at(&format!("p{n}"), 3, &format!("of:p{n}:a")) == (n != 5)));
    assert!(at("ann", 0, "who:h") && at("bob", 0, "of:bob:a"));
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
    // What cannot be shown to be in the index does not move.
    governed.rules.close("who:h");
    let told = error(governed.say("SWAPDB 0 3"));
    assert!(told.contains("who:h breaks a rule: it is closed"), "{told}");
    assert_eq!(governed.look(), totals);
}

#[test]
fn a_collection_keeps_as_many_members_as_are_declared() {
    let mut governed = Governed::new();
    governed.do_("RPUSH three:back a b c d e");
    assert_eq!(governed.say("LRANGE three:back 0 -1"), bulks(&["c", "d", "e"]));
    governed.do_("RPUSH three:back f");
    assert_eq!(governed.say("LRANGE three:back 0 -1"), bulks(&["d", "e", "f"]));
    governed.do_("LPUSH three:back z");
    assert_eq!(governed.say("LRANGE three:back 0 -1"), bulks(&["z", "d", "e"]));
    governed.do_("LPUSH three:front a b c d e");
    assert_eq!(governed.say("LRANGE three:front 0 -1"), bulks(&["e", "d", "c"]));
    governed.do_("RPUSH three:front x y");
    assert_eq!(governed.say("LRANGE three:front 0 -1"), bulks(&["c", "x", "y"]));
    governed.do_("DEL three:back three:front");

    governed.do_("ZADD three:z 1 a 2 b 3 c 4 d");
    assert_eq!(governed.say("ZRANGE three:z 0 -1"), bulks(&["b", "c", "d"]));
    let held = ["b", "c", "d"].map(|person| entry(person, "three:z"));
    let index: Vec<_> = governed.index().into_iter().filter(|(_, at)| at.ends_with(":z")).collect();
    assert_eq!(index, held);
    governed.do_("ZINCRBY three:z 10 b");
    governed.do_("ZADD three:z 9 e");
    assert_eq!(governed.say("ZRANGE three:z 0 -1"), bulks(&["d", "e", "b"]));
    // Too low to be in it at all.
    governed.do_("ZADD three:z 1 low");
    assert_eq!(governed.say("ZRANGE three:z 0 -1"), bulks(&["d", "e", "b"]));
    assert!(!governed.index().contains(&entry("low", "three:z")));
    governed.do_("ZREM three:z d");
    assert!(!governed.index().contains(&entry("d", "three:z")));

    for n in 1..6 {
        governed.do_(&format!("XADD three:x {n}-0 f {n}"));
    }
    assert_eq!(governed.say("XLEN three:x"), int(3));
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}

#[test]
fn a_copy_too_large_for_one_commit_is_shown_in_full() {
    let mut governed = Governed::new();
    let value = "v".repeat(64 << 10);
    for n in 0..300 {
        governed.client.call(&["HSET", "plain", &format!("f{n}"), &value]);
    }
    governed.client.call(&["HSET", "plain", "person", "ann"]);
    governed.do_("COPY plain who:copy");
    assert_eq!(governed.index(), [entry("ann", "who:copy")]);
    governed.client.call(&["HSET", "plain", "secret", "s"]);
    let told = error(governed.say("COPY plain who:other"));
    assert_eq!(told, "ERR who:other breaks a rule: no secrets");
    assert_eq!(governed.say("EXISTS who:other"), int(0));
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}

#[test]
fn a_key_that_comes_by_a_swap_is_in_the_index_though_one_of_its_name_was_just_deleted() {
    let mut governed = Governed::new();
    governed.do_("SET of:ann:a v");
    governed.do_("SELECT 3");
    governed.do_("SET of:ann:a w");
    for line in ["MULTI", "DEL of:ann:a", "SWAPDB 0 3", "EXEC"] {
        governed.do_(line);
    }
    assert_eq!(governed.say("GET of:ann:a"), bulk("v"));
    let there = ("subject#ann".to_owned(), "r3|of:ann:a".to_owned());
    assert!(governed.index().contains(&there), "{:?}", governed.index());
    // What is deleted after it came is not in the index any more.
    governed.do_("SET of:ann:b w");
    for line in ["MULTI", "DEL of:ann:b", "SWAPDB 0 3", "SWAPDB 0 3", "DEL of:ann:a", "EXEC"] {
        governed.do_(line);
    }
    assert!(!governed.index().contains(&there), "{:?}", governed.index());
}

#[test]
fn what_a_later_command_adds_to_a_key_too_large_for_one_commit_is_shown_too() {
    let mut governed = Governed::new();
    let value = "v".repeat(1 << 20);
    // Each is more than is held back for a commit.
    let fill = |governed: &mut Governed, key: &str, first: &str, (name, of): (&str, &str)| {
        let fields: Vec<String> = (0..18).map(|n| format!("{first}{n}")).collect();
        let mut args = vec!["HSET", key, name, of];
        args.extend(fields.iter().flat_map(|field| [field.as_str(), value.as_str()]));
        governed.client.call(&args)
    };
    governed.do_("MULTI");
    fill(&mut governed, "who:large", "a", ("first", "1"));
    fill(&mut governed, "who:large", "b", ("person", "ann"));
    governed.do_("EXEC");
    assert_eq!(governed.say("HLEN who:large"), int(38));
    assert_eq!(governed.index(), [entry("ann", "who:large")]);
    governed.do_("MULTI");
    fill(&mut governed, "who:other", "a", ("first", "1"));
    fill(&mut governed, "who:other", "b", ("secret", "s"));
    governed.say("EXEC");
    assert_eq!(governed.say("HEXISTS who:other secret"), int(0));
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}
