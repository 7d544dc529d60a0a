use kstone_keyspace::keys::mastery::Component;
use kstone_mastery::engine::keys;

#[test]
fn the_nine_key_builders_give_their_keys_byte_for_byte() {
    let day = "2026-01-14".parse().unwrap();
    let id = "student_12345";
    let built = [
        keys::current_mastery(id),
        keys::daily_mastery(id, day),
        keys::component_score(id, Component::Completion, day),
        keys::processed_event("550e8400-e29b-41d4-a716-446655440000"),
        keys::activity_recent(id),
        keys::prediction(id, 7),
        keys::adaptive_path(id),
        keys::batch_status("batch_20260114_001"),
        keys::school_mastery("university_abc", "12345"),
    ];
    let expected = [
        "student:student_12345:profile:current_mastery",
        "student:student_12345:mastery:2026-01-14",
        "student:student_12345:mastery:2026-01-14:completion",
        "processed:550e8400-e29b-41d4-a716-446655440000",
        "student:student_12345:activity:recent",
        "student:student_12345:prediction:7days",
        "student:student_12345:path:adaptive",
        "batch:batch_20260114_001:status",
        "school:university_abc:student:12345:profile:current_mastery",
    ];
    assert_eq!(built.map(|key| key.unwrap()), expected);
}

#[test]
fn the_four_short_patterns_are_those_of_the_specification() {
    let day = "2026-01-14".parse().unwrap();
    let filled = |name: &str| {
        let (_, pattern) = keys::OPTIMIZED_PATTERNS.iter().find(|(it, _)| *it == name).unwrap();
        let pattern = pattern.replace("{sid}", "12345").replace("{date}", "2026-01-14");
        pattern.replace("{c}", "quiz").replace("{eid}", "550e8400")
    };
    assert_eq!(keys::current_short("12345").unwrap(), filled("current"));
    assert_eq!(keys::daily_short("12345", day).unwrap(), filled("daily"));
    let component = keys::component_short("12345", Component::Quiz, day).unwrap();
    assert_eq!(component, filled("component"));
    assert_eq!(keys::processed_short("550e8400").unwrap(), filled("processed"));
    assert_eq!(filled("component"), "st:12345:m:2026-01-14:quiz");
}

#[test]
fn get_partition_key_and_get_optimized_key_give_the_form_of_the_older_routing() {
    assert_eq!(keys::get_partition_key("student_12345"), "p1:student_12345");
    let (_, pattern) = keys::OPTIMIZED_PATTERNS[0];
    assert_eq!(keys::get_optimized_key("student_12345", pattern), "st:p1:student_12345:cur");
}
