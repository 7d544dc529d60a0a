//! Persons, from the command line: listed, exported and erased, also while a server has the database
//! open, and also when it is killed meanwhile.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kstone_core::env::Env;
use kstone_core::find_bytes;
use serde_json::Value;

use crate::Fixture;
use crate::server::{Server, try_post};

/// The id of the person. It is in every key and value of theirs, and nowhere else.
const PERSON: &str = "SECRETPERSON";

fn serve(fixture: &Fixture) -> Server {
    let words = ["--data", "db", "--redis", "127.0.0.1:0", "--keyspace", "shipped"];
    Server::start(fixture, &words)
}

/// Makes the table that the Dapr door would make.
fn make_table(server: &Server) {
    let create = r#"{"TableName":"state","BillingMode":"PAY_PER_REQUEST",
        "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
        "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
        "StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}"#;
    assert_eq!(server.post("CreateTable", create).0, 200);
    let ttl =
        r#"{"TableName":"state","TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}}"#;
    assert_eq!(server.post("UpdateTimeToLive", ttl).0, 200);
}

fn skill(person: &str, skill: &str) -> String {
    format!(
        r#"{{"TableName":"state","Item":{{"pk":{{"S":"student:{person}"}},"sk":{{"S":"skill:{skill}"}},
        "rating":{{"N":"1.5"}},"answers":{{"N":"3"}},"note":{{"S":"about {person}"}}}}}}"#
    )
}

/// Sends one command of Redis; answers the first line of the reply.
fn redis(stream: &mut TcpStream, words: &[&str]) -> std::io::Result<String> {
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(text.as_bytes())?;
    let mut reply = [0; 512];
    let len = stream.read(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply[..len]).into_owned())
}

fn fill(server: &Server) {
    make_table(server);
    let mut stream = TcpStream::connect(server.redis.as_ref().unwrap()).unwrap();
    for person in [PERSON, "OTHER"] {
        for at in 0..20 {
            assert_eq!(server.post("PutItem", &skill(person, &format!("s{at}"))).0, 200);
        }
        let cache = format!("mastery:{person}");
        let value = format!("{{\"of\":\"{person}\"}}");
        assert_eq!(redis(&mut stream, &["SET", &cache, &value]).unwrap(), "+OK\r\n");
        assert_eq!(
            redis(&mut stream, &["ZADD", "leaderboard:a:b", "7", person]).unwrap(),
            ":1\r\n"
        );
    }
}

/// Where the person's id is in the files of a database that nobody has open.
fn sightings(fixture: &Fixture) -> Vec<String> {
    let found = find_bytes(&Env::system(), fixture.path("db"), &[PERSON]).unwrap();
    found.iter().map(|it| format!("{} {}", it.path.display(), it.place)).collect()
}

#[test]
fn a_person_is_listed_exported_and_erased_while_a_server_runs() {
    let fixture = Fixture::new();
    let server = serve(&fixture);
    fill(&server);
    let who = ["--subject", &format!("student_id={PERSON}"), "--data", "db"];
    let listed = fixture.ok(["subject", "list", "--json"].iter().chain(&who));
    assert_eq!(listed.lines().count(), 22, "{listed}");
    let export = fixture.ok(["subject", "export"].iter().chain(&who));
    let export: Value = serde_json::from_str(&export).unwrap();
    assert_eq!(export["data"].as_array().unwrap().len(), 22);
    fixture
        .run(["subject", "list", "--subject", "nobody_id=1", "--data", "db"])
        .failed_with("student_id");

    let done =
        fixture.run(["erase", "--yes", "--receipt", "r.json"].iter().chain(&who)).succeeded();
    assert!(done.err.contains("erased 21 keys of 3 patterns"), "{done:?}");
    assert_eq!(fixture.run(["subject", "list"].iter().chain(&who)).code, Some(1));
    let (status, body) = server.post("PutItem", &skill(PERSON, "late"));
    assert!(status == 400 && body.contains("was erased"), "{status} {body}");
    let listed = fixture.ok(["erase", "list", "--data", "db"]);
    assert!(listed.contains(" done "), "{listed}");
    let id = listed.split_whitespace().next().unwrap();
    let again = fixture.ok(["erase", "receipt", id, "--data", "db"]);
    let first: Value =
        serde_json::from_str(&fs::read_to_string(fixture.path("r.json")).unwrap()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), first);
    server.stop("-TERM");
    assert!(!fixture.path("db").join("control.sock").exists());
    assert_eq!(sightings(&fixture), Vec::<String>::new());

    // Without a server the folder itself is asked.
    let verified = fixture.ok(["erase", "verify-receipt", "r.json", "--data", "db"]);
    assert!(verified.starts_with("genuine"), "{verified}");
    let searched = fixture.ok(["erase", "search", PERSON, "--data", "db"]);
    assert!(searched.starts_with("nothing found"), "{searched}");
    let searched = fixture.run(["erase", "search", "OTHER", "--data", "db"]);
    assert!(searched.code == Some(1) && searched.out.contains(".sst"), "{searched:?}");
    let of = ["erase", "verify-receipt", "r.json", "--subject"];
    fixture.ok(of.iter().chain(&[who[1]]));
    fixture.run(of.iter().chain(&["student_id=1"])).failed_with("somebody else");
    let forged =
        fs::read_to_string(fixture.path("r.json")).unwrap().replace("deleted\": 1", "deleted\": 2");
    fs::write(fixture.path("forged.json"), forged).unwrap();
    fixture.run(["erase", "verify-receipt", "forged.json"]).failed_with("signature");
    let admitted = fixture.ok(["subject", "admit"].iter().chain(&who));
    assert!(admitted.starts_with("admitted"), "{admitted}");
    let server = serve(&fixture);
    assert_eq!(server.post("PutItem", &skill(PERSON, "new")).0, 200);
}

#[test]
fn the_key_that_signs_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::new();
    let server = serve(&fixture);
    for name in ["receipt.key", "control.sock"] {
        let mode = fs::metadata(fixture.path("db").join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    drop(server);
}

#[test]
fn an_erasure_under_load_that_is_killed_leaves_a_receipt_or_goes_on() {
    // The last one is not killed, but stopped in peace when it is over.
    for kill_after_ms in [Some(1), Some(60), Some(200), None] {
        let fixture = Fixture::new();
        let server = serve(&fixture);
        fill(&server);
        let who = ["--subject", PERSON, "--data", "db"];
        let (url, door) = (server.url.clone(), server.redis.clone().unwrap());
        let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for person in [PERSON, "OTHER"] {
                let (url, door, is_over, written) = (&url, &door, &is_over, &written);
                scope.spawn(move || {
                    let mut stream = TcpStream::connect(door).unwrap();
                    let cache = format!("mastery:{person}");
                    while !is_over.load(Ordering::Acquire) {
                        let _ = try_post(url, "PutItem", &skill(person, "busy"));
                        if redis(&mut stream, &["SET", &cache, "{}"]).is_err() {
                            return;
                        }
                        written.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            while written.load(Ordering::Relaxed) < 10 {
                std::thread::sleep(Duration::from_millis(1));
            }
            let erasing = scope.spawn(|| fixture.run(["erase", "--yes"].iter().chain(&who)));
            match kill_after_ms {
                Some(ms) => {
                    std::thread::sleep(Duration::from_millis(ms));
                    server.kill();
                    is_over.store(true, Ordering::Release);
                    erasing.join().unwrap();
                }
                None => {
                    erasing.join().unwrap().succeeded();
                    let before = written.load(Ordering::Relaxed);
                    while written.load(Ordering::Relaxed) < before + 10 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    is_over.store(true, Ordering::Release);
                    server.stop("-TERM");
                }
            }
        });

        let known = fixture.ok(["erase", "list", "--data", "db"]);
        fixture.ok(["erase", "resume", "--data", "db"]);
        if known.is_empty() {
            // It was killed before anything was remembered, so nothing was begun.
            fixture.ok(["erase", "--yes"].iter().chain(&who));
        }
        let listed = fixture.ok(["erase", "list", "--data", "db"]);
        assert!(
            listed.lines().count() == 1 && listed.contains(" done "),
            "{kill_after_ms:?} {listed}"
        );
        assert_eq!(sightings(&fixture), Vec::<String>::new(), "{kill_after_ms:?}");
        let server = serve(&fixture);
        let other =
            r#"{"TableName":"state","Key":{"pk":{"S":"student:OTHER"},"sk":{"S":"skill:s1"}}}"#;
        assert!(server.post("GetItem", other).1.contains("about OTHER"));
        let late = server.post("PutItem", &skill(PERSON, "late")).1;
        assert!(late.contains("was erased"), "{late}");
    }
}
