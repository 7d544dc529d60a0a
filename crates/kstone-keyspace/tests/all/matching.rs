//! From a key to its pattern and back, for all patterns that ship and for patterns at random.

use std::sync::LazyLock;

use kstone_keyspace::{
    Catalogue, ItemKeyParts, KeyStore, Keyspace, Kind, Pattern, Segment, Store, Tenancy, WHOLE_KEY,
    shipped,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::redis_pattern;

const STATE: KeyStore<'static> = KeyStore::Table("state");
static SHIPPED: LazyLock<Keyspace> = LazyLock::new(|| shipped().unwrap());

fn place(pattern: &Pattern) -> KeyStore<'_> {
    match &pattern.store {
        Store::Redis => KeyStore::Redis,
        Store::Table(Segment::Literal(name)) => KeyStore::Table(name),
        Store::Table(Segment::Slot(slot)) if slot.prefix == "reviews-" => {
            KeyStore::Table("reviews-SEASON-2026")
        }
        Store::Table(_) => KeyStore::Table("archived-reviews-SEASON-2026"),
    }
}

/// A value of a placeholder's type.
fn value(kind: &Kind) -> BoxedStrategy<String> {
    match kind {
        Kind::Id => "[A-Za-z0-9_.@-]{1,20}".boxed(),
        Kind::Text => "[ -~äß:%]{1,20}".boxed(),
        Kind::Date => (1970..9999_u16, 1..13_u8, 1..29_u8)
            .prop_map(|(year, month, day)| format!("{year}-{month:02}-{day:02}"))
            .boxed(),
        Kind::Uuid => "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}".boxed(),
        Kind::Millis => "[0-9]{13}".boxed(),
        Kind::Int { min, max } => (*min..=*max).prop_map(|number| number.to_string()).boxed(),
        Kind::OneOf(words) => select(words.clone()).boxed(),
    }
}

/// A pattern that ships, and a value for each of its placeholders.
fn filled() -> impl Strategy<Value = (String, Vec<(String, String)>)> {
    let keyspace = &*SHIPPED;
    any::<Index>().prop_flat_map(move |index| {
        let pattern = index.get(keyspace.patterns());
        let values: Vec<_> = pattern
            .placeholders()
            .map(|placeholder| {
                let accepted = placeholder.clone();
                let value = value(&placeholder.kind)
                    .prop_filter("excepted", move |value| accepted.write(value).is_ok());
                (Just(placeholder.name.clone()), value)
            })
            .collect();
        (Just(pattern.full_name()), values)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_key_that_was_built_is_found_with_what_it_was_built_from((name, values) in filled()) {
        let keyspace = &*SHIPPED;
        let pattern = keyspace.pattern(&name).unwrap();
        let given: Vec<(&str, &str)> =
            values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let key = pattern.build(&given).unwrap();
        let found = keyspace.find(place(pattern), key.as_bytes()).unwrap();
        prop_assert_eq!(found.pattern.full_name(), name);
        for (name, value) in &values {
            prop_assert_eq!(found.value(name), Some(value.clone()));
        }
        prop_assert_eq!(found.captures().count(), values.len());

        let parts = found.parts(key.as_bytes());
        prop_assert_eq!(parts.key(), key.as_bytes());
        if let KeyStore::Table(table) = place(pattern) {
            prop_assert_eq!(keyspace.split(table, key.as_bytes()), parts);
            let item = keyspace.find_item(table, parts).unwrap();
            prop_assert_eq!(item.pattern.full_name(), pattern.full_name());
            let pk_segments = parts.pk.split(|byte| *byte == b':').count();
            prop_assert_eq!(pk_segments, pattern.partition_segments);
        }
    }

    #[test]
    fn no_bytes_are_too_strange_to_look_up(key in any::<Vec<u8>>(), text in "[a-z:{}#%0-9-]{0,40}") {
        let keyspace = &*SHIPPED;
        for key in [&key[..], text.as_bytes()] {
            for place in [KeyStore::Redis, STATE, KeyStore::Table("workflows")] {
                if let Some(found) = keyspace.find(place, key) {
                    for (placeholder, part) in found.captures() {
                        prop_assert!(placeholder.accepts(part));
                    }
                }
            }
            prop_assert_eq!(keyspace.split("state", key).key(), key);
        }
    }
}

/// A pattern for one kind of segment: few words, so that many patterns overlap.
fn segment() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "n1", "{id}", "{text}", "{int}", "{date}", "n{int}", "{word}"])
        .prop_map(str::to_owned)
}

fn patterns() -> impl Strategy<Value = Vec<String>> {
    let pattern = prop::collection::vec(segment(), 1..4).prop_map(|segments| {
        // A placeholder's name may stand once in a pattern.
        let named = segments
            .iter()
            .enumerate()
            .map(|(at, segment)| segment.replace('}', &format!("_{at}}}")));
        named.collect::<Vec<_>>().join(":")
    });
    prop::collection::vec(pattern, 1..8)
}

fn catalogue(patterns: &[String]) -> String {
    let mut text = String::from("application = \"a\"\ndescription = \"b\"\n[placeholders]\n");
    for at in 0..4 {
        for kind in ["id", "text", "int", "date"] {
            text += &format!("{kind}_{at} = \"{kind}\"\n");
        }
        text += &format!("word_{at} = [\"a\", \"c\", \"1\"]\n");
    }
    for (at, pattern) in patterns.iter().enumerate() {
        text += &redis_pattern(&format!("p{at}"), pattern);
    }
    text
}

/// How literal a segment of a pattern is.
fn rank(segment: &Segment) -> u8 {
    match segment {
        Segment::Literal(_) => 3,
        Segment::Slot(slot) => match (&slot.placeholder.kind, slot.prefix.is_empty()) {
            (Kind::OneOf(_), _) => 2,
            (_, false) => 1,
            (_, true) => 0,
        },
    }
}

fn matches(pattern: &Pattern, key: &str) -> bool {
    let segments: Vec<&str> = key.split(':').collect();
    segments.len() == pattern.segments.len()
        && pattern.segments.iter().zip(segments).all(|(a, b)| a.accepts(b.as_bytes()))
}

/// Whether the one is nowhere less literal than the other.
fn beats(one: &Pattern, other: &Pattern) -> bool {
    one.segments.iter().zip(&other.segments).all(|(a, b)| rank(a) >= rank(b))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_tree_finds_what_a_look_at_all_patterns_finds(
        patterns in patterns(),
        keys in prop::collection::vec(
            prop::collection::vec(select(vec!["a", "b", "c", "1", "n1", "2026-01-14", "x%3A"]), 1..4),
            20,
        ),
    ) {
        let catalogue = Catalogue::parse("a.toml", &catalogue(&patterns)).unwrap();
        let declared = catalogue.patterns.clone();
        let keys: Vec<String> = keys.iter().map(|segments| segments.join(":")).collect();
        let keyspace = Keyspace::new(vec![catalogue]);
        for key in &keys {
            let candidates: Vec<&Pattern> = declared.iter().filter(|it| matches(it, key)).collect();
            let best: Vec<&&Pattern> = candidates
                .iter()
                .filter(|one| candidates.iter().all(|other| beats(one, other)))
                .collect();
            match &keyspace {
                // What was accepted has one answer for every key.
                Ok(keyspace) => {
                    let found = keyspace.find(KeyStore::Redis, key.as_bytes());
                    prop_assert_eq!(best.len(), usize::from(!candidates.is_empty()));
                    let expected = best.first().map(|pattern| &pattern.name);
                    prop_assert_eq!(found.as_ref().map(|found| &found.pattern.name), expected);
                }
                // What is refused names two patterns.
                Err(problems) => {
                    prop_assert!(problems.0.iter().all(|it| it.what.contains("may match both")));
                }
            }
        }
    }

    #[test]
    fn patterns_with_a_key_that_two_of_them_claim_alike_are_refused(patterns in patterns()) {
        let catalogue = Catalogue::parse("a.toml", &catalogue(&patterns)).unwrap();
        let twice = (catalogue.patterns.iter().enumerate()).any(|(at, one)| {
            catalogue.patterns.iter().take(at).any(|other| {
                one.segments.len() == other.segments.len()
                    && one.segments.iter().zip(&other.segments).all(|(a, b)| rank(a) == rank(b) && {
                        let words = ["a", "b", "c", "1", "n1", "2026-01-14"];
                        words.iter().any(|it| a.accepts(it.as_bytes()) && b.accepts(it.as_bytes()))
                    })
            })
        });
        if twice {
            prop_assert!(Keyspace::new(vec![catalogue]).is_err());
        }
    }
}

#[test]
fn an_item_belongs_to_a_pattern_only_if_its_partition_ends_where_the_pattern_says() {
    let keyspace = &*SHIPPED;
    let find = |pk: &'static str, sk: &'static str| {
        let parts = ItemKeyParts { pk: pk.as_bytes(), sk: sk.as_bytes() };
        keyspace.find_item("state", parts).map(|found| found.pattern.name.clone())
    };
    assert_eq!(find("student:s1", "mastery:2026-01-14").as_deref(), Some("daily_mastery"));
    assert_eq!(find("student:s1:mastery", "2026-01-14"), None);
    assert_eq!(find("student:s1:mastery:2026-01-14", "#"), None);
    assert_eq!(find("processed:e1", "#").as_deref(), Some("processed_event"));
    assert_eq!(find("processed", "e1"), None);
}

#[test]
fn a_key_that_nobody_declares_is_a_partition_by_itself() {
    let keyspace = &*SHIPPED;
    let parts = keyspace.split("state", b"what:ever");
    assert_eq!(parts, ItemKeyParts { pk: b"what:ever", sk: WHOLE_KEY });
    assert_eq!(parts.key(), b"what:ever");
    let declared = keyspace.split("state", b"student:s1:mastery:2026-01-14");
    assert_eq!(declared, ItemKeyParts { pk: b"student:s1", sk: b"mastery:2026-01-14" });
}

#[test]
fn behind_the_name_of_an_application_the_same_keys_are_declared_in_tables() {
    let keyspace = &*SHIPPED;
    for owner in ["shop||", "prod.shop||", "shop||Actor||7||"] {
        let key = format!("{owner}student:s1:mastery:2026-01-14");
        let found = keyspace.find(STATE, key.as_bytes()).unwrap();
        assert_eq!(found.pattern.name, "daily_mastery");
        assert_eq!(found.value("student_id").as_deref(), Some("s1"));
        let parts = keyspace.split("state", key.as_bytes());
        let pk = format!("{owner}student:s1");
        assert_eq!(parts, ItemKeyParts { pk: pk.as_bytes(), sk: b"mastery:2026-01-14" });
        assert_eq!(keyspace.find_item("state", parts).unwrap().pattern.name, "daily_mastery");
        let short = format!("{owner}st:s1:m:2026-01-14");
        let short = keyspace.find(STATE, short.as_bytes()).unwrap();
        assert_eq!(short.long_form(), Some(key));
    }
    for other in ["shop|student:s1:mastery:2026-01-14", "shop:||student:s1:mastery:2026-01-14"] {
        assert!(keyspace.find(STATE, other.as_bytes()).is_none(), "{other}");
    }
    let session = SHIPPED.patterns().iter().find(|it| it.store == Store::Redis).unwrap();
    let example = &session.examples[0].key;
    assert!(keyspace.find(KeyStore::Redis, example.as_bytes()).is_some());
    assert!(keyspace.find(KeyStore::Redis, format!("shop||{example}").as_bytes()).is_none());
}

#[test]
fn a_tenant_reaches_its_own_keys_and_no_others() {
    let keyspace = &*SHIPPED;
    let tenancy = |key: &str, tenant: &str| keyspace.tenancy(STATE, key.as_bytes(), tenant);
    let key = "school:university_abc:student:12345:profile:current_mastery";
    assert_eq!(tenancy(key, "university_abc"), Tenancy::Own);
    for other in ["university", "university_abc:student", "school_xyz", "", "university_abcd"] {
        assert_eq!(tenancy(key, other), Tenancy::Other, "{other}");
    }
    assert_eq!(
        tenancy("student:university_abc_1:path:adaptive", "university_abc"),
        Tenancy::Shared
    );
    assert_eq!(tenancy("school:university_abc:anything", "university_abc"), Tenancy::Undeclared);
    let prefixes = keyspace.tenant_prefixes(STATE, "university_abc");
    assert_eq!(prefixes, ["school:university_abc:"]);
    assert!(keyspace.tenant_prefixes(STATE, "a:b").is_empty());
    assert!(keyspace.tenant_prefixes(KeyStore::Redis, "university_abc").is_empty());
}

#[test]
fn building_a_key_says_which_value_is_missing_or_wrong() {
    let keyspace = &*SHIPPED;
    let pattern = keyspace.pattern("mastery.daily_mastery").unwrap();
    let build = |values: &[(&str, &str)]| pattern.build(values).unwrap_err().to_string();
    assert_eq!(
        build(&[("date", "2026-01-14")]),
        "mastery.daily_mastery: no value for {student_id}"
    );
    let wrong = build(&[("student_id", "s1"), ("date", "today")]);
    let expected =
        "mastery.daily_mastery: date: must be a day such as 2026-01-14, and is \"today\"";
    assert_eq!(wrong, expected);
    let unknown = build(&[("student_id", "s1"), ("date", "2026-01-14"), ("day", "1")]);
    assert_eq!(unknown, "mastery.daily_mastery: has no placeholder {day}");
}
