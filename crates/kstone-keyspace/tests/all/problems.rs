//! What is said of a catalogue that is wrong: where, what, and what would be right.

use kstone_keyspace::{Catalogue, Keyspace, Problems, Severity, check};

use crate::support::redis_pattern;

/// A catalogue with one pattern, of which one line is another. Line 8 is the pattern's name.
fn with(line: &str) -> String {
    let key = line.split(' ').next().unwrap();
    let lines = [
        "pattern = \"student:{student_id}:mastery:{date}\"",
        "partition = \"student:{student_id}\"",
        "store = \"item\"",
        "type = \"json\"",
        "ttl = \"90 days\"",
        "subject = \"student_id\"",
        "description = \"a learner on a day\"",
    ];
    let mut text = String::from(
        "application = \"test\"\ndescription = \"a test\"\ntable = \"state\"\n\n\
         [placeholders]\nstudent_id = \"id\"\ndate = \"date\"\n[pattern.daily]\n",
    );
    for known in lines.iter().filter(|known| !known.starts_with(&format!("{key} "))) {
        text += known;
        text.push('\n');
    }
    text + line + "\n"
}

fn problems(text: &str) -> Problems {
    Catalogue::parse("test.toml", text).unwrap_err()
}

/// The last line of the pattern is this, which is wrong at this column, for this reason.
fn wrong(line: &str, column: usize, what: &str, help: &str) {
    let text = with(line);
    let Problems(found) = problems(&text);
    assert_eq!(found.len(), 1, "{line}: {}", Problems(found.clone()));
    let (at, problem) = (&found[0].at, &found[0]);
    assert_eq!(at.line, text.lines().count(), "{problem}");
    assert_eq!((at.column, problem.what.as_str(), problem.help.as_str()), (column, what, help));
}

#[test]
fn the_pattern_that_the_others_are_made_from_is_right() {
    assert!(Catalogue::parse("test.toml", &with("metric = \"days\"")).is_ok());
}

#[test]
fn an_unknown_key_is_named_with_the_one_that_was_meant() {
    wrong("tttl = \"1 day\"", 1, "unknown key `tttl` in pattern `daily`", "did you mean `ttl`?");
    let what = "unknown key `colour` in pattern `daily`";
    let Problems(found) = problems(&with("colour = 1"));
    assert_eq!(found[0].what, what);
    assert!(found[0].help.starts_with("known are `pattern`, `partition`"), "{}", found[0].help);
}

#[test]
fn a_problem_inside_a_pattern_points_into_it() {
    wrong(
        "pattern = \"student:{student_id}:mastery:{dat}\"",
        41,
        "the placeholder `{dat}` has no type",
        "did you mean `date`?",
    );
    wrong(
        "pattern = \"student:{student_id}::x\"",
        33,
        "an empty segment",
        "between two colons there is a word or a {placeholder}",
    );
    wrong(
        "pattern = \"student:{student_id}:mastery:{school}\"",
        41,
        "the placeholder `{school}` has no type",
        "declare it: school = \"id\" under [placeholders]",
    );
}

#[test]
fn what_a_pattern_says_of_its_key_must_fit_it() {
    wrong(
        "partition = \"student:{date}\"",
        13,
        "`student:{date}` is not how the pattern begins",
        "write `student` or `student:{student_id}` or `student:{student_id}:mastery` or \
         `student:{student_id}:mastery:{date}`",
    );
}

#[test]
fn a_store_a_type_and_a_time_are_of_those_that_there_are() {
    wrong("store = \"disk\"", 9, "`disk` is no store", "write \"item\" or \"redis\"");
    wrong("type = \"jsn\"", 8, "`jsn` is no type", "did you mean `json`?");
    wrong(
        "type = \"zset\"",
        8,
        "an item cannot be a zset",
        "write json, string, counter or item, or store = \"redis\"",
    );
    wrong(
        "ttl = \"90d\"",
        7,
        "`90d` is no time",
        "write a number and seconds, minutes, hours or days, as in \"90 days\"",
    );
    wrong(
        "ttl = 7776000",
        7,
        "`ttl` must be a time in words",
        "write \"90 days\", \"none\", or { time = \"1 hour\", rule = \"sliding\" }",
    );
    wrong(
        "ttl = { time = \"1 hour\", min = \"2 hours\" }",
        32,
        "`min` is more than `time`",
        "it is at most that",
    );
    wrong(
        "ttl = { time = \"1 hour\", rule = \"forever\" }",
        33,
        "`forever` is no rule",
        "write \"fixed\" (from the key's making) or \"sliding\" (from its last write)",
    );
}

#[test]
fn a_subject_and_a_tenant_are_placeholders_of_the_pattern() {
    wrong(
        "subject = \"student\"",
        11,
        "the pattern has no placeholder `student`",
        "known are `student_id`, `date`",
    );
    wrong(
        "tenant = \"date\"",
        10,
        "the tenant must be the first placeholder",
        "so that all keys of a tenant begin alike",
    );
    wrong(
        "subject = { through = \"dayly\" }",
        11,
        "there is no pattern `dayly`",
        "did you mean `daily`?",
    );
}

#[test]
fn entries_of_a_stream_are_no_persons_but_their_fields_may_name_some() {
    let stream = |subject: &str| {
        with(subject).replace("type = \"json\"", "type = \"stream\"").replace("item", "redis")
    };
    let text = stream("subject = { members = true }");
    let Problems(found) = problems(&text);
    let wrong = found.iter().find(|it| it.what.contains("names no person by itself")).unwrap();
    assert_eq!((wrong.at.line, wrong.at.column), (text.lines().count(), 11));
    assert_eq!(wrong.help, "name the field of an entry that does: { field = \"user_id\" }");
}

#[test]
fn fields_and_limits_are_checked() {
    wrong(
        "fields = { score = \"nubmer 0..1\" }",
        20,
        "`nubmer 0..1` is no type",
        "did you mean `number`?",
    );
    let Problems(found) = problems(&with("fields = { score = \"number 1..0\" }"));
    assert!(found[0].help.starts_with("write one of any, text"), "{}", found[0].help);
    wrong(
        "limits = { members = 5 }",
        22,
        "a json has no members to limit",
        "leave `members` out, or use `value_bytes`",
    );
    wrong(
        "limits = { key_bytes = 0 }",
        24,
        "`key_bytes` must be a whole number from 1",
        "this is a whole number",
    );
    wrong("written = \"no\"", 11, "`written` must be true or false", "this is text");
    wrong(
        "examples = [\"a\", 5]",
        18,
        "each of `examples` must be text in quotes",
        "this is a whole number",
    );
}

#[test]
fn what_must_be_said_is_asked_for() {
    let text = "application = \"test\"\ndescription = \"a\"\n[pattern.empty]\n";
    let Problems(found) = problems(text);
    let whats: Vec<&str> = found.iter().map(|problem| problem.what.as_str()).collect();
    let missing = ["pattern", "store", "type", "ttl", "subject", "description"];
    assert_eq!(whats, missing.map(|key| format!("pattern `empty` has no `{key}`")));
    assert!(found.iter().all(|problem| (problem.at.line, problem.at.column) == (3, 10)));
    let Problems(found) = problems("");
    assert_eq!(found.len(), 2, "{}", Problems(found.clone()));
}

#[test]
fn a_file_that_is_not_toml_is_said_to_be_none_with_every_place() {
    let Problems(found) = problems("application = \n[pattern.a\nx = = 1\n");
    assert!(found.len() >= 2, "{}", Problems(found.clone()));
    assert_eq!(found[0].at.line, 1);
    assert!(found.iter().all(|problem| problem.help == "this is not TOML"));
}

#[test]
fn several_problems_are_reported_together_and_in_order() {
    let text = with("tttl = 1")
        .replace("student_id = \"id\"", "student_id = \"idd\"")
        .replace("store = \"item\"", "store = \"disk\"");
    let Problems(found) = problems(&text);
    let shown: Vec<String> = found.iter().map(|it| format!("{}: {}", it.at, it.what)).collect();
    assert_eq!(
        shown,
        [
            "test.toml:6:14: `idd` is no type",
            "test.toml:11:9: `disk` is no store",
            "test.toml:16:1: unknown key `tttl` in pattern `daily`",
        ]
    );
}

#[test]
fn a_problem_is_shown_with_its_line() {
    let text = with("store = \"disk\"");
    let shown = "test.toml:15:9: error: `disk` is no store\n  15 | store = \"disk\"\n     \
                 |         ^^^^^^ write \"item\" or \"redis\"";
    assert_eq!(problems(&text).to_string(), shown);
}

#[test]
fn a_short_form_takes_everything_from_the_long_one() {
    let short = |lines: &str| with("metric = \"days\"") + "[pattern.short]\n" + lines;
    let right = "pattern = \"st:{student_id}:{date}\"\npartition = \"st:{student_id}\"\n\
                 short_form_of = \"daily\"\n";
    let catalogue = Catalogue::parse("test.toml", &short(right)).unwrap();
    assert_eq!(catalogue.patterns[1].ttl, catalogue.patterns[0].ttl);
    for (lines, what) in [
        (right.to_owned() + "ttl = \"1 day\"\n", "a short form takes its `ttl` from `daily`"),
        (right.replace("\"daily\"", "\"dialy\""), "there is no pattern `dialy`"),
        (right.replace("\"daily\"", "\"short\""), "`short` is a short form itself"),
        (
            right.replace(":{date}", ""),
            "`{date}` of `student:{student_id}:mastery:{date}` is missing",
        ),
        (right.to_owned() + "tll = 1\n", "unknown key `tll` in pattern `short`"),
    ] {
        let Problems(found) = problems(&short(&lines));
        assert_eq!(found.len(), 1, "{}", Problems(found.clone()));
        assert_eq!(found[0].what, what);
    }
}

/// A catalogue of Redis keys.
fn redis(application: &str, placeholders: &str, patterns: &[(&str, &str)]) -> String {
    let mut text = format!(
        "application = \"{application}\"\ndescription = \"b\"\n[placeholders]\n{placeholders}\n"
    );
    for (name, pattern) in patterns {
        text += &redis_pattern(name, pattern);
    }
    text
}

#[test]
fn two_patterns_that_nothing_separates_are_refused_and_both_are_named() {
    let one = redis("one", "user = \"id\"", &[("by_user", "thing:{user}")]);
    let two = redis("two", "day = \"date\"", &[("by_day", "thing:{day}")]);
    let report = check(&[("one.toml", &one), ("two.toml", &two)]);
    assert!(!report.is_usable());
    assert_eq!(
        report.problems[0].what,
        "a key may match both `thing:{day}` (two.by_day) and `thing:{user}` (one.by_user, \
         one.toml:5:10), as `thing:2026-01-14` does, and neither is the more literal one"
    );
    assert_eq!(report.problems[0].at.to_string(), "two.toml:5:10");
    assert!(report.to_string().ends_with("2 catalogues, 2 patterns: 1 error, 0 warnings"));
}

#[test]
fn a_pattern_that_takes_keys_from_another_is_warned_about() {
    let patterns = [("by_name", "limit:{name}"), ("all", "limit:all")];
    let report = check(&[("one.toml", &redis("one", "name = \"id\"", &patterns))]);
    assert!(report.is_usable());
    assert_eq!(report.problems.len(), 1);
    assert_eq!(report.problems[0].severity, Severity::Warning);
    assert!(report.problems[0].help.contains("except = [\"all\"]"), "{report}");
    let except = "name = { type = \"id\", except = [\"all\"] }";
    let report = check(&[("one.toml", &redis("one", except, &patterns))]);
    assert!(report.problems.is_empty(), "{report}");
}

#[test]
fn applications_stay_out_of_each_others_way() {
    let one = redis("one", "", &[("a", "a")]).replacen(
        "description",
        "reserved = [\"cache\"]\ndescription",
        1,
    );
    let again = redis("one", "", &[("b", "b")]);
    let other = redis("other", "x = \"id\"", &[("cached", "cache:{x}")]);
    let report = check(&[("one.toml", &one), ("again.toml", &again), ("other.toml", &other)]);
    let whats: Vec<&str> = report.problems.iter().map(|problem| problem.what.as_str()).collect();
    assert_eq!(
        whats,
        [
            "`one` has a catalogue already, one.toml",
            "keys that begin with `cache` are kept for `one` (one.toml:2:13)",
        ]
    );
}

#[test]
fn an_example_that_belongs_elsewhere_is_pointed_at() {
    let text = with("examples = [\"student:s1:mastery:14.1.2026\"]");
    let catalogue = Catalogue::parse("test.toml", &text).unwrap();
    let Problems(found) = Keyspace::new(vec![catalogue]).unwrap_err();
    assert_eq!((found[0].at.line, found[0].at.column), (16, 13));
    let what = "`student:s1:mastery:14.1.2026` is no key of `student:{student_id}:mastery:{date}`";
    let help = "segment 4 is `14.1.2026`, and must be a day such as 2026-01-14";
    assert_eq!((found[0].what.as_str(), found[0].help.as_str()), (what, help));
}

#[test]
fn tables_that_may_be_the_same_are_refused() {
    let item = |name: &str, table: &str| {
        format!(
            "[pattern.{name}]\npattern = \"a:{{x}}\"\npartition = \"a:{{x}}\"\ntable = \"{table}\"\n\
             store = \"item\"\ntype = \"item\"\nttl = \"none\"\nsubject = \"none\"\n\
             description = \"c\"\n"
        )
    };
    let text = |other: &str| {
        redis("one", "x = \"id\"", &[]) + &item("p", "reviews-{x}") + &item("q", other)
    };
    let report = check(&[("one.toml", &text("reviews-2026"))]);
    assert!(report.problems[0].what.contains("may be the same"), "{report}");
    assert!(check(&[("one.toml", &text("archive-{x}"))]).is_usable());
}
