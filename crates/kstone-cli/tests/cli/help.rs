//! Help that teaches, and clear refusals.

use crate::Place;

const COMMANDS: [&str; 11] = [
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
    "demo",
];

#[test]
fn help_names_every_command_and_each_has_help_with_examples() {
    let place = Place::new();
    let help = place.ok(["--help"]);
    assert!(help.contains("A tour:"), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is missing in\n{help}");
        let own = place.ok(["help", command]);
        assert!(own.contains("Examples:") && own.contains(&format!("kstone {command} ")), "{own}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_code_2() {
    let place = Place::new();
    let words: [&[&str]; 6] = [
        &["fetch", "db"],
        &["put", "db", "only-a-key"],
        &["get", "db"],
        &["put", "db", "k", "1", "--ttl", "5m", "--expires-at", "2030-01-01T00:00:00Z"],
        &["scan", "db", "--segment", "0/2", "--cursor", "s00ff00"],
        &[],
    ];
    for words in words {
        let done = place.run(words);
        assert_eq!(done.code, Some(2), "{words:?} {done:?}");
        assert!(done.err.contains("Usage"), "{done:?}");
    }
    assert!(!place.path("db").exists());
}

#[test]
fn the_tour_of_the_help_text_works_as_printed() {
    let place = Place::new();
    let help = place.ok(["--help"]);
    let tour: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  kstone ")).collect();
    assert_eq!(tour.len(), 5, "{help}");
    for line in tour {
        // The explanation is two blanks or more away; quotes are the shell's.
        let command = line.split("   ").next().unwrap();
        let words: Vec<String> = command.split(' ').map(|word| word.replace('\'', "")).collect();
        place.ok(&words);
    }
    assert_eq!(place.ok(["get", "mydb", "user#1", "post#001"]), "{\"title\":\"Hello\"}\n");
}

#[test]
fn the_demo_shows_every_step_and_leaves_a_sound_database() {
    let place = Place::new();
    let shown = place.ok(["demo", "demo db"]);
    for command in ["get", "put", "query", "delete", "scan", "stats", "verify"] {
        assert!(shown.contains(&format!("$ kstone {command} 'demo db'")), "{command}\n{shown}");
    }
    assert!(shown.contains("sound:"), "{shown}");
    assert!(!shown.contains('\x1b'), "no colours when a program reads");
    assert!(place.json(["scan", "demo db"]).len() > 4000);
    place.ok(["verify", "demo db"]);
    place.run(["demo", "demo db"]).failed_with("is not empty");
}
