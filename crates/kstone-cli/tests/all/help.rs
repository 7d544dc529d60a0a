//! Help that teaches, and clear refusals.

use crate::Fixture;

const COMMANDS: [&str; 15] = [
    "put",
    "get",
    "delete",
    "load",
    "query",
    "scan",
    "stats",
    "verify",
    "compact",
    "checkpoint",
    "tables",
    "serve",
    "subject",
    "erase",
    "learn",
];

#[test]
fn help_names_every_command_and_each_has_help_with_examples() {
    let fixture = Fixture::new();
    let help = fixture.ok(["--help"]);
    assert!(help.contains("A tour:"), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is missing in\n{help}");
        let own = fixture.ok(["help", command]);
        assert!(own.contains("Examples:") && own.contains(&format!("kstone {command} ")), "{own}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_code_2() {
    let fixture = Fixture::new();
    let words: [&[&str]; 12] = [
        &["fetch", "db"],
        &["put", "db"],
        &["put", "db", "a", "b", "{}", "one too many"],
        &["serve"],
        &["serve", "--data", "db", "--memory"],
        &["serve", "--memory", "--dynamodb", "nowhere"],
        &["serve", "--memory", "--durability", "maybe"],
        &["serve", "--memory", "--memory-budget", "64"],
        &["get", "db"],
        &["put", "db", "k", "{}", "--ttl", "5m", "--expires-at", "2030-01-01T00:00:00Z"],
        &["scan", "db", "--segment", "0/2", "--cursor", "s00ff00"],
        &[],
    ];
    for words in words {
        fixture.run(words).refused_as_nonsense();
    }
    assert!(!fixture.path("db").exists());
}

#[test]
fn the_tour_of_the_help_text_works_as_printed() {
    let fixture = Fixture::new();
    let help = fixture.ok(["--help"]);
    let tour: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  kstone ")).collect();
    assert_eq!(tour.len(), 5, "{help}");
    for line in tour {
        // The explanation is two blanks or more away; quotes are the shell's.
        let command = line.split("   ").next().unwrap();
        let words: Vec<String> = command.split(' ').map(|word| word.replace('\'', "")).collect();
        fixture.ok(&words);
    }
    assert_eq!(fixture.ok(["get", "mydb", "user#1", "post#001"]), "{\"title\":\"Hello\"}\n");
}
