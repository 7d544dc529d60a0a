//! Maintenance: stats, verify, compact, checkpoint; and the folder itself: missing, in use, damaged, private.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use kstone::{Item, ItemBytes};
use kstone_core::{Durability, Engine, Key, Options, TableId, WriteBatch};
use serde_json::Value;

use crate::Fixture;
use crate::server::Server;

fn put(engine: &Engine, pk: &str, value: &str) {
    let item = ItemBytes::encode(&Item::new().with("v", value));
    let mut batch = WriteBatch::new();
    batch.put(TableId::DEFAULT, &Key::new(pk.to_owned()), item.as_slice()).unwrap();
    engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
}

fn small() -> Options {
    Options { memory_budget_bytes: 1 << 20, ..Options::default() }
}

#[test]
fn a_folder_without_a_database_is_named_and_left_alone() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("photos")).unwrap();
    for dir in ["photos", "nowhere"] {
        let commands: [&[&str]; 8] = [
            &["get", dir, "k"],
            &["delete", dir, "k"],
            &["query", dir, "k"],
            &["scan", dir],
            &["stats", dir],
            &["verify", dir],
            &["compact", dir],
            &["checkpoint", dir, "copy"],
        ];
        for words in commands {
            fixture.run(words).failed_with(&format!("{dir} holds no KeystoneDB database"));
        }
    }
    assert_eq!(fs::read_dir(fixture.path("photos")).unwrap().count(), 0);
    assert!(!fixture.path("nowhere").exists() && !fixture.path("copy").exists());
}

#[test]
fn a_database_in_use_is_refused_by_every_command() {
    let fixture = Fixture::new();
    let engine = Engine::open(fixture.path("db"), small()).unwrap();
    put(&engine, "k", "1");
    let commands: [&[&str]; 6] = [
        &["put", "db", "k", "{}"],
        &["get", "db", "k"],
        &["scan", "db"],
        &["stats", "db"],
        &["verify", "db"],
        &["load", "db"],
    ];
    for words in commands {
        fixture.run(words).failed_with("in use by another process; close it there first");
    }
    drop(engine);
    assert_eq!(fixture.ok(["get", "db", "k"]), "{\"v\":\"1\"}\n");
}

#[test]
fn stats_count_what_is_there_for_people_and_for_programs() {
    let fixture = Fixture::new();
    for n in 0..20 {
        fixture.ok(["put", "db", &format!("user#{n}"), "{\"name\":\"Ada\"}"]);
    }
    let stats: Value = serde_json::from_str(&fixture.ok(["stats", "db", "--json"])).unwrap();
    assert_eq!(stats["total"]["records"], 20);
    assert!(stats["version"].as_u64() >= Some(20));
    let stripes = stats["stripes"].as_array().unwrap();
    assert_eq!(stripes.len(), 256);
    let sum: u64 = stripes.iter().map(|stripe| stripe["records"].as_u64().unwrap()).sum();
    assert_eq!(sum, 20);
    // IEEE CRC32 of `user#1` modulo 256.
    assert_eq!(stripes[154]["records"], 1);

    let text = fixture.ok(["stats", "db", "--by", "records", "--stripes"]);
    assert!(text.contains("20 in "), "{text}");
    assert!(!text.contains('\x1b') && !text.contains('█'), "plain for a program: {text}");
    // Row 9 starts with stripe 144; stripe 154 is its column a.
    let row = text.lines().find(|line| line.starts_with("  144 9 ")).unwrap();
    assert_ne!(&row[8 + 2 * 10..8 + 2 * 11], "  ", "{row:?}");
    let listed = text.lines().filter(|line| line.trim_start().starts_with("154 ")).count();
    assert_eq!(listed, 1, "{text}");
}

#[test]
fn a_sound_database_verifies_and_says_what_was_read() {
    let fixture = Fixture::new();
    fixture.ok(["put", "db", "a", "{}"]);
    fixture.ok(["put", "db", "b", "{}"]);
    let said = fixture.ok(["verify", "db"]);
    assert!(said.contains("read 2 files with 2 blocks and 2 entries"), "{said}");
    assert!(said.contains("sound"), "{said}");
    let report = fixture.json(["verify", "db", "--json"]);
    assert_eq!(report[0]["sound"], true);
    assert_eq!(report[0]["entries"], 2);
}

#[test]
fn verify_finds_a_flipped_byte_anywhere_in_an_sst() {
    let fixture = Fixture::new();
    fixture.ok(["put", "db", "user#1", "{\"name\":\"Ada\"}"]);
    let sst = file_named(&fixture.path("db"), |name| name.ends_with(".sst"));
    let len = fs::read(&sst).unwrap().len();
    for offset in [0, len / 4, len / 2, len - 1] {
        flip(&sst, offset);
        finds_fault(&fixture, "db", &sst);
        flip(&sst, offset);
    }
    fixture.ok(["verify", "db"]);
}

#[test]
fn verify_finds_a_flipped_byte_in_the_log() {
    let fixture = Fixture::new();
    let engine = Engine::open(fixture.path("db"), small()).unwrap();
    for n in 0..10 {
        put(&engine, &format!("user#{n}"), &format!("the value {n}"));
    }
    // The checkpoint of a database that is open has its commits in the log.
    engine.checkpoint(fixture.path("copy")).unwrap();
    drop(engine);
    let said = fixture.ok(["verify", "copy"]);
    assert!(said.contains("10 commits in the log"), "{said}");
    let log = file_named(&fixture.path("copy"), |name| name.starts_with("wal-"));
    let bytes = fs::read(&log).unwrap();
    let offset = bytes.windows(11).position(|window| window == b"the value 4").unwrap();
    flip(&log, offset);
    finds_fault(&fixture, "copy", &log);
    // And it is not opened as if nothing were wrong.
    fixture.run(["get", "copy", "user#1"]).failed_with("is damaged at offset");
    flip(&log, offset);
    assert_eq!(fixture.ok(["get", "copy", "user#4"]), "{\"v\":\"the value 4\"}\n");
}

fn file_named(dir: &Path, is_it: impl Fn(&str) -> bool) -> std::path::PathBuf {
    let mut names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    names.find(|path| is_it(path.file_name().unwrap().to_str().unwrap())).unwrap()
}

fn flip(path: &Path, offset: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[offset] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

#[track_caller]
fn finds_fault(fixture: &Fixture, db: &str, path: &Path) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let done = fixture.run(["verify", db]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let fault = done.out.lines().find(|line| line.starts_with("FAULT ")).unwrap();
    assert!(fault.contains(name) && fault.contains(" at offset "), "{fault}");
    assert!(done.err.contains("is damaged: 1 fault"), "{done:?}");
    let report = fixture.run(["verify", db, "--json"]);
    assert_eq!(report.code, Some(1));
    let report: Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!(report["sound"], false);
    assert!(report["faults"][0]["path"].as_str().unwrap().ends_with(name));
    assert!(report["faults"][0]["offset"].is_u64());
}

#[test]
fn compaction_leaves_the_newest_version_alone() {
    let fixture = Fixture::new();
    for item in ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"] {
        fixture.ok(["put", "db", "k", item]);
    }
    assert_eq!(fixture.ok(["compact", "db"]).split(',').next(), Some("1 record in 1 file"));
    assert_eq!(fixture.ok(["get", "db", "k"]), "{\"n\":3}\n");
    let report = fixture.json(["verify", "db", "--json"]);
    assert_eq!(report[0]["entries"], 1);
}

#[test]
fn compaction_removes_what_has_expired_and_nothing_else() {
    let fixture = Fixture::new();
    let expired: String = (0..1500)
        .map(|n| {
            format!("{{\"pk\":\"s{n}\",\"value\":{{}},\"expires_at\":\"2001-01-01T00:00:00Z\"}}\n")
        })
        .collect();
    fixture.run_with_input(["load", "db"], &expired).succeeded();
    fixture.ok(["put", "db", "gone and back", "{\"n\":1}", "--ttl", "0s"]);
    fixture.ok(["put", "db", "gone and back", "{\"n\":2}"]);
    fixture.ok(["put", "db", "later", "{\"n\":3}", "--ttl", "7d"]);
    fixture.ok(["compact", "db"]);
    // Two records, and the index entry of the one that expires later.
    assert_eq!(fixture.json(["verify", "db", "--json"])[0]["entries"], 3);
    assert_eq!(fixture.ok(["get", "db", "gone and back"]), "{\"n\":2}\n");
    assert_eq!(fixture.ok(["get", "db", "later"]), "{\"n\":3}\n");
}

#[test]
fn a_checkpoint_is_a_database_that_keeps_what_it_was() {
    let fixture = Fixture::new();
    fixture.ok(["put", "db", "k", "{\"n\":1}"]);
    fixture.ok(["checkpoint", "db", "copies/monday"]);
    fixture.ok(["put", "db", "k", "{\"n\":2}"]);
    assert_eq!(fixture.ok(["get", "copies/monday", "k"]), "{\"n\":1}\n");
    assert_eq!(fixture.ok(["get", "db", "k"]), "{\"n\":2}\n");
    fixture.ok(["verify", "copies/monday"]);
    fixture.run(["checkpoint", "db", "copies/monday"]).failed_with("is not empty");
    // Found from anywhere, by a purge for one: the database knows it by its full path.
    let engine = Engine::open(fixture.path("db"), small()).unwrap();
    assert!(engine.checkpoints().iter().all(|path| path.is_absolute()));
}

/// Everything in the folder, and the folder itself, with its mode.
fn modes(dir: &Path) -> Vec<(String, u32)> {
    let mut modes = vec![(dir.display().to_string(), mode(dir))];
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => modes.extend(self::modes(&path)),
            false => modes.push((path.display().to_string(), mode(&path))),
        }
    }
    modes
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_a_database_writes_is_its_owners_alone_whatever_the_umask() {
    for umask in ["022", "000"] {
        let fixture = Fixture::new();
        let kstone = |words: &[&str]| {
            let mut command = Command::new("sh");
            command.current_dir(fixture.path(""));
            command.args(["-c", "umask \"$0\" && exec \"$@\"", umask]);
            command.arg(env!("CARGO_BIN_EXE_kstone")).args(words);
            command
        };
        let commands: [&[&str]; 4] = [
            &["put", "new/db", "k", "{}"],
            &["compact", "new/db"],
            &["checkpoint", "new/db", "new/copy"],
            &["query", "new/db", "k", "--cursor-out", "next"],
        ];
        for words in commands {
            assert!(kstone(words).output().unwrap().status.success(), "{words:?}");
        }
        let doors = ["--dynamodb", "127.0.0.1:0", "--redis", "off", "--dapr-http", "off"];
        let words = ["serve", "--data", "new/db", "--keyspace", "shipped", "--dapr-grpc", "off"];
        let words = [&words[..], &doors, &["--console", "off"]].concat();
        let server = Server::start_as(&mut kstone(&words));
        let modes = modes(&fixture.path("new"));
        drop(server);
        for (path, mode) in &modes {
            let is_folder = Path::new(path).is_dir();
            assert_eq!(*mode, if is_folder { 0o700 } else { 0o600 }, "{path} with {umask}");
        }
        let files =
            ["CURRENT", "LOCK", "control.sock", "receipt.key", "server.json", ".log", ".sst"];
        for file in files {
            assert!(modes.iter().any(|(path, _)| path.ends_with(file)), "{file} in {modes:?}");
        }

        // What was there keeps its mode, and so does what somebody asks for by a path of their own.
        let old = fixture.path("old");
        fs::create_dir(&old).unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(kstone(&["put", "old", "k", "{}"]).output().unwrap().status.success());
        assert_eq!(mode(&old), 0o755);
    }
}
