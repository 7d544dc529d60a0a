//! `kstone serve --console`: the console and the REST API beside the doors.

use std::net::TcpListener;

use crate::Fixture;
use crate::server::{Server, exchange};

/// Where the console is.
fn console_of(server: &Server) -> String {
    let line = server.greeting.iter().find_map(|line| line.strip_prefix("console   "));
    line.and_then(|line| line.split_whitespace().next()).expect("a line for it").to_owned()
}

fn get(url: &str, path: &str, headers: &str) -> (u16, String) {
    let host = url.strip_prefix("http://").unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n");
    exchange(url, &request).unwrap()
}

#[test]
fn the_platform_is_on_where_its_catalogues_are_in_force() {
    let fixture = Fixture::new();
    let words = ["--data", "db", "--keyspace", "shipped", "--console", "127.0.0.1:0"];
    let server = Server::start(&fixture, &words);
    let url = console_of(&server);
    let (status, body) = get(&url, "/api/v1/health", "");
    assert!(status == 200 && body.contains("\"platform\":true"), "{status} {body}");
    let event = r#"{"event_id":"e1","student_id":"s1","occurred_at":"2026-01-14T10:30:00Z","type":"visit"}"#;
    let host = url.strip_prefix("http://").unwrap();
    let post = format!(
        "POST /api/v1/events HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{event}",
        event.len()
    );
    assert_eq!(exchange(&url, &post).unwrap().0, 200);
    let (status, _) = server.stop("-TERM");
    assert_eq!(status.code(), Some(0));
    // What was kept to is remembered, and so is what was learned.
    let server = Server::start(&fixture, &["--data", "db", "--console", "127.0.0.1:0"]);
    let (status, body) = get(&console_of(&server), "/api/v1/students/s1/mastery", "");
    assert!(status == 200 && body.contains("\"version\":1"), "{status} {body}");
}

#[test]
fn without_its_catalogues_the_platform_says_how_to_turn_it_on() {
    let fixture = Fixture::new();
    let server = Server::start(&fixture, &["--memory", "--console", "127.0.0.1:0"]);
    let (status, body) = get(&console_of(&server), "/api/v1/students/s1/mastery", "");
    assert!(status == 503 && body.contains("--keyspace shipped"), "{status} {body}");
}

#[test]
fn a_public_address_of_the_console_needs_a_token() {
    let fixture = Fixture::new();
    let words = ["serve", "--memory", "--dynamodb", "off", "--redis", "off", "--dapr-grpc", "off"];
    let words = [&words[..], &["--dapr-http", "off", "--console", "0.0.0.0:0"]].concat();
    fixture.run(&words).failed_with("--console-token");
    let empty = [&words[..], &["--console-token", ""]].concat();
    fixture.run(empty).failed_with("--console-token");
    let words = ["--memory", "--console", "127.0.0.1:0", "--console-token", "secret"];
    let server = Server::start(&fixture, &words);
    let url = console_of(&server);
    assert_eq!(get(&url, "/api/v1/keyspaces", "").0, 401);
    assert_eq!(get(&url, "/api/v1/keyspaces", "Authorization: Bearer secret\r\n").0, 503);
}

#[test]
fn a_port_that_was_asked_for_and_is_taken_is_an_error() {
    let fixture = Fixture::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let words = ["serve", "--memory", "--dynamodb", "off", "--redis", "off", "--dapr-grpc", "off"];
    let words = [&words[..], &["--dapr-http", "off", "--console", &at]].concat();
    fixture.run(words).failed_with("is taken");
}
