//! A writing process is killed with SIGKILL, a few times; the long version is
//! `cargo run --release -p kstone-torture -- kill9 --rounds 200`.

use std::path::{Path, PathBuf};

use kstone_torture::kill9::{Plan, ReportedCommits, check, run};

fn exe() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_kstone-torture"))
}

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("kstone-{name}-{}", std::process::id()))
}

#[test]
fn a_killed_process_leaves_every_acknowledged_commit_and_no_hole() {
    let plan = Plan { rounds: 5, seed: 1, dir: None, acks_max: 400 };
    let report = run(&plan, exe()).unwrap();
    assert_eq!(report.kills, 5);
    assert!(report.acks > 0, "{report}");
}

#[test]
fn the_check_notices_what_it_is_there_for() {
    let dir = folder("kill9-check");
    let plan = Plan { rounds: 1, seed: 3, dir: Some(dir.clone()), acks_max: 100 };
    run(&plan, exe()).unwrap();
    let heads = check::check(&dir, &ReportedCommits::default()).unwrap();
    let lost = heads[0] + 1;

    let mut acked = ReportedCommits::default();
    acked.hear(&format!("ack 0 {lost}")).unwrap();
    let what = check::check(&dir, &acked).unwrap_err();
    assert!(what.contains("was acknowledged"), "{what}");

    let mut hole = ReportedCommits::default();
    hole.hear(&format!("commit 0 {lost} 1 4")).unwrap();
    let what = check::check(&dir, &hole).unwrap_err();
    assert!(what.contains("a hole"), "{what}");
    std::fs::remove_dir_all(&dir).unwrap();
}
