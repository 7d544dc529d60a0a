//! Output for humans: `keyspace explain` and `keyspace docs`.

use kstone_keyspace::{KeyStore, Usage, shipped};

use crate::support::{keyspace_of, redis_pattern};

#[test]
fn a_key_is_explained() {
    let shown =
        shipped().unwrap().explain("school:university_abc:student:12345:profile:current_mastery");
    let expected = "\
school:university_abc:student:12345:profile:current_mastery
  pattern     school:{school_id}:student:{student_id}:profile:current_mastery (mastery.school_mastery)
              A learner's mastery now, within a school
  store       table state, json
              school_id = university_abc
              student_id = 12345
  partition   school:university_abc:student:12345
  sort key    profile:current_mastery
  ttl         none
  subject     12345 of university_abc
  tenant      university_abc
";
    assert_eq!(shown.to_string(), expected);
}

#[test]
fn a_key_of_redis_is_explained_with_what_its_value_says() {
    let keyspace = shipped().unwrap();
    let shown = keyspace.explain("session:s-1").to_string();
    assert!(shown.contains("ttl         1 hour since the last write"), "{shown}");
    assert!(shown.contains("subject     field `user_id`, in the value"), "{shown}");
    assert!(!shown.contains("partition"), "{shown}");
    let shown = keyspace.explain("session:timer:s-1").to_string();
    assert!(shown.contains("subject     whoever `session:s-1` belongs to"), "{shown}");
    let shown = keyspace.explain("ratelimit:global:2001%3Adb8%3A%3A1").to_string();
    assert!(shown.contains("ip = 2001:db8::1"), "{shown}");
}

#[test]
fn a_key_that_begins_with_a_placeholder_is_explained_by_its_words() {
    let found = shipped().unwrap().explain("exec-123:metadata");
    assert_eq!(found.findings.len(), 1);
    assert_eq!(found.findings[0].name, "workflows.execution");
    assert!(!found.elsewhere.is_empty());
}

#[test]
fn a_short_key_is_explained_with_the_long_one() {
    let shown = shipped().unwrap().explain("st:12345:m:2026-01-14").to_string();
    assert!(shown.contains("short for   student:12345:mastery:2026-01-14"), "{shown}");
    assert!(shown.contains("written     no, only read"), "{shown}");
}

#[test]
fn why_a_pattern_won_is_explained_with_those_that_lost() {
    let text =
        "application = \"one\"\ndescription = \"b\"\n[placeholders]\nx = \"id\"\ny = \"id\"\n";
    let any = redis_pattern("any", "limit:{x}:{y}");
    let all = redis_pattern("all", "limit:all:{y}");
    let keyspace = keyspace_of(&(text.to_owned() + &any + &all));
    let finding = keyspace.explain("limit:all:a").findings.remove(0);
    assert_eq!(finding.name, "one.all");
    let reason = "segment 2 is `all` in the winner, which is more literal than `{x}`";
    assert_eq!(finding.others, [("one.any".to_owned(), reason.to_owned())]);
}

#[test]
fn a_key_that_nearly_matches_is_told_what_is_in_the_way() {
    let keyspace = shipped().unwrap();
    let shown = keyspace.explain("student:s1:mastery:2026-1-14").to_string();
    let reason = "segment 4 is `2026-1-14`, and must be a day such as 2026-01-14";
    assert!(shown.contains("matches no pattern"), "{shown}");
    assert!(shown.contains(&format!("(mastery.daily_mastery): {reason}")), "{shown}");
    let shown = keyspace.explain("cache:x").to_string();
    assert!(shown.contains("kept for mastery"), "{shown}");
    let shown = keyspace.explain("unheard:of").to_string();
    assert!(shown.starts_with("unheard:of\n  matches no pattern\n"), "{shown}");
    assert!(shown.contains("in table reviews-{season} it would be of {learner_id}:{question_id}"));
    let there = keyspace.explain_in(KeyStore::Table("reviews-2026"), "unheard:of");
    assert_eq!(there.findings[0].name, "reviews.memory");
    assert!(there.elsewhere.is_empty());
}

#[test]
fn the_page_has_every_pattern_once_in_its_table_and_once_described() {
    let keyspace = shipped().unwrap();
    let page = keyspace.docs(|_| None);
    for pattern in keyspace.patterns() {
        let heading = format!("\n### {}\n", pattern.full_name());
        assert_eq!(page.matches(&heading).count(), 1, "{heading}");
        let anchor = heading.trim().trim_start_matches("### ").replace('.', "");
        assert_eq!(page.matches(&format!("](#{anchor})")).count(), 1, "{anchor}");
    }
    assert!(page.contains("| pattern | store | type | TTL | subject |\n"));
    assert!(page.contains("Reserved: `cache:…`, `system:…`."));
    assert!(page.contains("- Partition `student:{student_id}` of table `state`"));
    assert!(page.contains("| `mastery_score` | a number from 0 to 1 |"));
}

#[test]
fn the_page_shows_how_much_there_is_where_that_is_known() {
    let keyspace = shipped().unwrap();
    let page = keyspace.docs(|pattern| {
        (pattern.name == "daily_mastery").then_some(Usage {
            keys: 1_234_567,
            bytes: 89,
            expiring_next_hour: 12,
            writes_per_second: 3.25,
        })
    });
    assert!(page.contains("| 90 days | `{student_id}` | 1,234,567 | 89 | 12 | 3.2 |\n"), "{page}");
    assert!(page.contains("writes/s |\n|---|---|---|---|---|---:|---:|---:|---:|\n"));
}
