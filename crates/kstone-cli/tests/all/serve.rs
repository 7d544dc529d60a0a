//! `kstone serve`: from its start to its end, and what it refuses.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::server::{Server, exchange, try_post};
use crate::{Fixture, json_lines};

const NOTES: &str = r#"{"TableName":"notes","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
    "KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}"#;

/// Two servers cannot have the usual ports of Dapr and the console.
const NO_OTHERS: [&str; 6] = ["--dapr-http", "off", "--dapr-grpc", "off", "--console", "off"];

#[test]
fn it_says_where_it_serves_and_stops_cleanly_when_it_is_asked() {
    let fixture = Fixture::new();
    for signal in ["-TERM", "-INT"] {
        let server = Server::start(&fixture, &["--data", "db"]);
        assert!(server.greeting[0].ends_with("data in db"), "{:?}", server.greeting);
        assert_eq!(server.greeting.len(), 3, "one line a door, one when ready");
        let get = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        assert_eq!(exchange(&server.url, get).unwrap().0, 200);
        let notice = fs::read_to_string(fixture.path("db/server.json")).unwrap();
        assert!(notice.contains(&server.url), "{notice}");
        let (status, rest) = server.stop(signal);
        assert_eq!(status.code(), Some(0));
        assert_eq!(rest, "stopping\nstopped\n");
        assert!(!fixture.path("db/server.json").exists());
    }
    fixture.ok(["verify", "db"]);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let fixture = Fixture::new();
    let mut server = Server::start(&fixture, &["--memory"]);
    // A request that never gets its body holds the server up.
    let mut slow = server.connect();
    slow.write_all(
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-amz-json-1.0\r\n\
          X-Amz-Target: DynamoDB_20120810.ListTables\r\nContent-Length: 10\r\n\
          Expect: 100-continue\r\n\r\n",
    )
    .unwrap();
    // It asks for the body, so the request is under way.
    let mut asked = [0; 12];
    slow.read_exact(&mut asked).unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100");
    let status = loop {
        if let Some(status) = server.ended() {
            break status;
        }
        server.signal("-TERM");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(status.code(), Some(143));
}

#[test]
fn a_taken_port_is_named_with_the_flag_that_changes_it() {
    let fixture = Fixture::new();
    let server = Server::start(&fixture, &["--memory"]);
    let at = server.url.strip_prefix("http://").unwrap();
    let port = at.rsplit(':').next().unwrap();
    let done = fixture.run(["serve", "--data", "db", "--dynamodb", at]);
    let done = done.failed_with(&format!("port {port} is taken"));
    assert!(done.err.contains("--dynamodb 127.0.0.1:"), "{done:?}");
    assert!(!fixture.path("db").exists(), "nothing is made for a server that cannot serve");
}

#[test]
fn a_folder_in_use_is_refused_and_the_server_that_has_it_is_named() {
    let fixture = Fixture::new();
    let server = Server::start(&fixture, &["--data", "db"]);
    let mut words = vec!["serve", "--data", "db", "--dynamodb", "127.0.0.1:0", "--redis", "off"];
    words.extend(NO_OTHERS);
    fixture.run(words).failed_with(&server.url);
    fixture.run(["get", "db", "user#1"]).failed_with(&server.url);
    fixture.run(["verify", "db"]).failed_with(&server.url);
    server.kill();
    // What the killed server left behind misleads nobody.
    fixture.run(["get", "db", "user#1"]).failed_with("not found");
}

#[test]
fn without_a_door_there_is_nothing_to_serve() {
    let fixture = Fixture::new();
    let mut off = vec!["serve", "--memory", "--dynamodb", "off", "--redis", "off"];
    off.extend(NO_OTHERS);
    fixture.run(off).failed_with("nothing to serve");
}

#[test]
fn a_public_address_needs_a_key_and_then_only_that_key_passes() {
    let fixture = Fixture::new();
    let mut public = vec!["serve", "--memory", "--dynamodb", "0.0.0.0:0", "--redis", "off"];
    public.extend(NO_OTHERS);
    fixture.run(&public).failed_with("--access-key");
    // What is wrong is said without the secret itself.
    let refused = fixture.run(["serve", "--memory", "--access-key", "justasecret"]);
    assert!(!refused.err.contains("justasecret"), "{refused:?}");
    refused.failed_with("ID:SECRET");

    let server =
        Server::start_as(fixture.command().args(public).env("KSTONE_ACCESS_KEY", "me:s3cret"));
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);
    fixture.run(["tables", &server.url]).failed_with("does not take this access key");
    let with_key = |key: &str| {
        let mut command = fixture.command();
        command.args(["tables", &server.url]).env("KSTONE_ACCESS_KEY", key).output().unwrap()
    };
    assert!(with_key("me:s3cret").status.success(), "{:?}", with_key("me:s3cret"));
    assert!(!with_key("me:wrong").status.success());
    assert!(!with_key("you:s3cret").status.success());
}

#[test]
fn a_configuration_file_says_the_same_as_flags_and_flags_win() {
    let fixture = Fixture::new();
    let config = "# ours\ndata = \"from-file\"\ndurability = \"os\"\nmemory-budget = \"8MiB\"\n\
                  access-key = [\"me:s3cret\"]\n";
    fs::write(fixture.path("kstone.toml"), config).unwrap();
    let server = Server::start(&fixture, &["--config", "kstone.toml"]);
    assert!(server.greeting[0].ends_with("data in from-file"), "{:?}", server.greeting);
    assert!(server.greeting[1].ends_with("durability os, 1 access key"), "{:?}", server.greeting);
    assert!(fixture.path("from-file").exists());
    let flags = ["--config", "kstone.toml", "--data", "from-flag", "--dynamodb-durability", "sync"];
    let server = Server::start(&fixture, &flags);
    assert!(server.greeting[0].ends_with("data in from-flag"), "{:?}", server.greeting);
    assert!(server.greeting[1].contains("durability sync"), "{:?}", server.greeting);
}

#[test]
fn a_wrong_configuration_is_refused_with_the_line_and_the_name() {
    let fixture = Fixture::new();
    let cases = [
        ("memory = true\n\ndurabilty = \"os\"\n", "line 3: unknown field `durabilty`"),
        ("memory = true\ndurability = \"maybe\"\n", "line 2: unknown variant `maybe`"),
        ("memory = true\nmemory-budget = \"64\"\n", "line 2: `64` is no size"),
        ("memory = true\ndynamodb = \"nowhere\"\n", "line 2: `nowhere` is no address"),
        ("memory = yes\n", "line 1: "),
        ("memory = true\ndata = \"db\"\n", "both `data` and `memory = true`"),
        ("durability = \"os\"\n", "where is the data?"),
    ];
    for (config, message) in cases {
        fs::write(fixture.path("kstone.toml"), config).unwrap();
        fixture.run(["serve", "--config", "kstone.toml"]).failed_with(message);
    }
    fixture.run(["serve", "--config", "missing.toml"]).failed_with("cannot read missing.toml");
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let fixture = Fixture::new();
    let server = Server::start(&fixture, &["--data", "db"]);
    assert_eq!(server.post("CreateTable", NOTES).0, 200);
    let (acknowledged, count) = (Mutex::new(BTreeSet::new()), AtomicUsize::new(0));
    let url = server.url.clone();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (url, acknowledged, count) = (&url, &acknowledged, &count);
            scope.spawn(move || {
                for n in 0.. {
                    let id = format!("{writer}-{n}");
                    let put = format!(r#"{{"TableName":"notes","Item":{{"id":{{"S":"{id}"}}}}}}"#);
                    let Some((200, _)) = try_post(url, "PutItem", &put) else { return };
                    acknowledged.lock().unwrap().insert(id);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while count.load(Ordering::Relaxed) < 100 {
            std::thread::yield_now();
        }
        server.kill();
    });
    let server = Server::start(&fixture, &["--data", "db"]);
    let found = fixture.json(["scan", &server.url, "--table", "notes"]);
    let found: BTreeSet<String> =
        found.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() >= 100);
    assert_eq!(acknowledged.difference(&found).count(), 0);
    // Each writer may have had one request under way.
    assert!(found.difference(&acknowledged).count() <= 4);
}

#[test]
fn memory_keeps_nothing() {
    let fixture = Fixture::new();
    let server = Server::start(&fixture, &["--memory"]);
    assert!(server.greeting[0].contains("memory only"), "{:?}", server.greeting);
    assert_eq!(server.post("CreateTable", NOTES).0, 200);
    assert_eq!(server.stop("-TERM").0.code(), Some(0));
    assert_eq!(fs::read_dir(fixture.0.path()).unwrap().count(), 0);
}

#[test]
fn what_the_demo_says_to_paste_answers_as_it_says() {
    let fixture = Fixture::new();
    let mut server = Server::start(&fixture, &["--demo"]);
    assert!(server.greeting[0].ends_with("data in kstone-demo"), "{:?}", server.greeting);
    let tour = server.lines_until(|line| line.starts_with("{\"comparisonId\""));
    for program in ["curl ", "query http"] {
        // A command begins in its line and goes on while lines end in a backslash or are indented.
        let start = tour.iter().position(|line| line.contains(program)).unwrap();
        let more = tour[start + 1..].iter().take_while(|line| line.starts_with(' ')).count();
        let command = tour[start..=start + more].join("\n");
        let shown: Vec<&String> =
            tour[start + more + 1..].iter().take_while(|line| !line.is_empty()).collect();
        let done = Command::new("bash")
            .args(["-c", &command])
            .current_dir(fixture.0.path())
            .output()
            .unwrap();
        let answer = String::from_utf8(done.stdout).unwrap();
        assert!(done.status.success() && !answer.is_empty(), "{command}");
        assert_eq!(answer.lines().collect::<Vec<_>>(), shown, "{command}");
    }
    // Six albums for the AWS command line, which may not be installed here.
    assert_eq!(tour.iter().filter(|line| line.starts_with("album-")).count(), 6, "{tour:?}");
}

#[test]
fn the_demo_is_made_once_and_a_table_of_the_same_name_is_left_alone() {
    let fixture = Fixture::new();
    let server = Server::start(&fixture, &["--demo", "--data", "db"]);
    let tables = fixture.json(["tables", &server.url, "--json"]);
    let made = tables.iter().find(|table| table["table"] == "workflows");
    assert_eq!(made.unwrap()["items"], 288);
    fixture.ok(["delete", "db", "--table", "workflows", "exec-001", "album-1"]);
    server.kill();
    let server = Server::start(&fixture, &["--demo", "--data", "db"]);
    assert_eq!(fixture.json(["scan", &server.url, "--table", "workflows"]).len(), 287);
    drop(server);

    let server = Server::start(&fixture, &["--data", "mine"]);
    assert_eq!(server.post("CreateTable", &NOTES.replace("notes", "workflows")).0, 200);
    assert_eq!(server.stop("-TERM").0.code(), Some(0));
    let mut server = Server::start(&fixture, &["--demo", "--data", "mine"]);
    server.lines_until(|line| line == "the table `workflows` here is not the demo's");
    assert_eq!(fixture.json(["scan", &server.url, "--table", "workflows"]).len(), 0);
}

#[test]
fn all_durabilities_keep_what_was_written_before_a_clean_stop() {
    let fixture = Fixture::new();
    for durability in ["sync", "interval", "os"] {
        let words = ["--data", durability, "--durability", durability];
        let server = Server::start(&fixture, &words);
        assert_eq!(server.post("CreateTable", NOTES).0, 200);
        let put = r#"{"TableName":"notes","Item":{"id":{"S":"a"}}}"#;
        assert_eq!(server.post("PutItem", put).0, 200);
        assert_eq!(server.stop("-TERM").0.code(), Some(0));
        let kept = fixture.ok(["get", durability, "--table", "notes", "a"]);
        assert_eq!(json_lines(&kept)[0]["id"], "a");
    }
}

#[test]
fn redis_clients_are_served_until_one_asks_the_server_to_shut_down() {
    let fixture = Fixture::new();
    let words = ["serve", "--dynamodb", "127.0.0.1:0", "--redis", "127.0.0.1:0", "--data", "db"];
    let words = [&words[..], &NO_OTHERS].concat();
    let mut server = Server::start_as(fixture.command().args(&words));
    let say = |server: &Server, words: &[u8], expected: &[u8]| {
        let mut client = TcpStream::connect(server.redis.as_ref().unwrap()).unwrap();
        client.write_all(words).unwrap();
        let mut reply = vec![0; expected.len()];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(String::from_utf8_lossy(&reply), String::from_utf8_lossy(expected));
    };
    say(&server, b"SET a 1\r\nGET a\r\n", b"+OK\r\n$1\r\n1\r\n");
    let taken = server.redis.clone().unwrap();
    let again = ["serve", "--memory", "--dynamodb", "127.0.0.1:0", "--redis", &taken];
    let again = [&again[..], &NO_OTHERS].concat();
    let done = fixture.run(again).failed_with("is taken");
    assert!(done.err.contains("--redis 127.0.0.1:"), "{done:?}");
    say(&server, b"SHUTDOWN\r\n", b"");
    server.lines_until(|line| line == "stopped");

    let server = Server::start_as(fixture.command().args(&words));
    say(&server, b"GET a\r\n", b"$1\r\n1\r\n");
}

#[test]
fn a_public_address_of_redis_needs_a_password() {
    let fixture = Fixture::new();
    let words = ["serve", "--memory", "--dynamodb", "off", "--redis", "0.0.0.0:0"];
    fixture.run(words).failed_with("--redis-password");
}

#[test]
fn state_that_is_saved_at_the_dapr_door_is_an_item_at_the_dynamodb_door() {
    let fixture = Fixture::new();
    let words = ["--data", "db", "--dapr-http", "127.0.0.1:0", "--dapr-grpc", "127.0.0.1:0"];
    let server = Server::start(&fixture, &words);
    let line = server.greeting.iter().find_map(|line| line.strip_prefix("dapr      "));
    let (url, promise) = line.unwrap().split_once("  ").unwrap();
    assert_eq!(promise, "durability sync, no token");
    let grpc = server.greeting.iter().any(|line| line.starts_with("dapr grpc http://127.0.0.1:"));
    assert!(grpc, "{:?}", server.greeting);
    let body = r#"[{"key":"order","value":{"id":1}}]"#;
    let save = format!(
        "POST /v1.0/state/statestore HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert_eq!(exchange(url, &save).unwrap().0, 204);
    let found = fixture.ok(["get", &server.url, "--table", "state", "order", "#"]);
    assert!(found.contains(r#"{\"id\":1}"#), "{found:?}");
    let taken = url.strip_prefix("http://").unwrap();
    let again = ["serve", "--memory", "--dynamodb", "off", "--redis", "off", "--dapr-http", taken];
    fixture.run(again).failed_with("--dapr-http 127.0.0.1:");
    let (status, _) = server.stop("-TERM");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_public_address_of_dapr_needs_a_token() {
    let fixture = Fixture::new();
    let words = ["serve", "--memory", "--dynamodb", "off", "--redis", "off", "--dapr-grpc", "off"];
    let words = [&words[..], &["--dapr-http", "0.0.0.0:0"]].concat();
    fixture.run(words).failed_with("--dapr-api-token");
}

#[test]
fn a_sidecar_finds_the_store_at_its_socket_as_long_as_the_server_runs() {
    let fixture = Fixture::new();
    let socket = fixture.path("sockets/kstone.sock");
    let words = ["--data", "db", "--dapr-component-socket", "sockets/kstone.sock"];
    let server = Server::start(&fixture, &words);
    let line = server.greeting.iter().find(|line| line.starts_with("component "));
    let line = line.expect("a line for the socket");
    assert!(line.contains("sockets/kstone.sock") && line.ends_with("type state.kstone"), "{line}");
    UnixStream::connect(&socket).unwrap();
    let other = ["serve", "--memory", "--dynamodb", "off", "--redis", "off"];
    let other = [&other[..], &NO_OTHERS, &["--dapr-component-socket", "sockets"]].concat();
    fixture.run(other.clone()).failed_with("another process listens at");
    let (status, _) = server.stop("-TERM");
    assert_eq!(status.code(), Some(0));
    assert!(!socket.exists());

    let server = Server::start(&fixture, &words);
    server.kill();
    assert!(socket.exists(), "a killed server leaves its socket");
    let server = Server::start(&fixture, &words);
    UnixStream::connect(&socket).unwrap();
    drop(server);
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "somebody's").unwrap();
    fixture.run(other).failed_with("is no socket");
    assert_eq!(fs::read_to_string(&socket).unwrap(), "somebody's");
}

#[test]
fn a_prefix_that_needs_the_applications_name_asks_for_it() {
    let fixture = Fixture::new();
    let words = ["serve", "--memory", "--dapr-key-prefix", "appid"];
    fixture.run(words).failed_with("app id");
}
