//! HTTP behaviour that any client relies on.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use kstone::{Database, DatabaseOptions};
use kstone_core::env::Env;
use kstone_dynamo::DoorOptions;
use kstone_sim::{Fault, FaultPlan, SimDisk};

use crate::server::{Server, request, request_with};

const PEOPLE: &str = r#"{"TableName":"people","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
    "KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}"#;

fn gzipped(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

#[tokio::test]
async fn every_answer_has_the_headers_that_aws_sends() {
    let server = Server::start(DoorOptions::default()).await;
    for (operation, body, status) in [("ListTables", "{}", 200), ("GetItem", "{}", 400)] {
        let answer = server.call(operation, body).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("content-type"), Some("application/x-amz-json-1.0"));
        assert_eq!(answer.header("x-amzn-requestid").unwrap().len(), 52);
        let checksum = crc32fast::hash(&answer.body).to_string();
        assert_eq!(answer.header("x-amz-crc32"), Some(&*checksum));
        assert!(answer.header("date").is_some());
    }
}

#[tokio::test]
async fn a_get_says_that_the_server_is_healthy() {
    let options = DoorOptions { region: "eu-west-1".to_owned(), ..DoorOptions::default() };
    let server = Server::start(options).await;
    let mut client = server.connect().await;
    client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(client.answer().await.text(), "healthy: dynamodb.eu-west-1.amazonaws.com ");
    client.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let health = client.answer().await.assert_ok().json();
    assert_eq!(health["status"], "ok");
    let id = health["id"].as_str().unwrap();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    client.send(b"GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 404);
}

#[tokio::test]
async fn a_server_that_can_write_no_more_is_not_healthy() {
    let disk = SimDisk::new(1);
    let env = Env { vfs: Arc::new(disk.clone()), threads: None, ..Env::memory() };
    let database = Database::open_with(env, "db", DatabaseOptions::default()).unwrap();
    let server = Server::of(database, DoorOptions::default()).await;
    server.call("CreateTable", PEOPLE).await.assert_ok();
    disk.fail(FaultPlan::onwards(Fault::SyncError, 0));
    let put = server.call("PutItem", r#"{"TableName":"people","Item":{"id":{"S":"a"}}}"#).await;
    assert_eq!((put.status, &*put.error()), (500, "InternalServerError"));
    let mut client = server.connect().await;
    client.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let health = client.answer().await;
    assert_eq!((health.status, &health.json()["status"]), (503, &"failed".into()));
    assert!(!health.json()["reason"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_not_this_protocol_is_not_found() {
    let server = Server::start(DoorOptions::default()).await;
    let good = request("ListTables", "{}");
    for bad in [
        good.replace("POST", "PUT"),
        good.replace("POST", "DELETE"),
        good.replace("POST / ", "POST /other "),
        good.replace("application/x-amz-json-1.0", "application/x-amz-json-1.1"),
        good.replace("application/x-amz-json-1.0", "text/plain"),
        good.replace("Content-Type: application/x-amz-json-1.0\r\n", ""),
    ] {
        let mut client = server.connect().await;
        client.send(bad.as_bytes()).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 404, "{bad}");
        assert_eq!(answer.text(), "<UnknownOperationException/>\n");
        assert_eq!(answer.header("x-amz-crc32"), Some("3552371480"));
    }
}

#[tokio::test]
async fn an_unknown_target_is_an_unknown_operation() {
    let server = Server::start(DoorOptions::default()).await;
    let good = request("ListTables", "{}");
    for target in ["DynamoDB_20120810.ListTable", "DynamoDB_20111205.ListTables", "x", ""] {
        let mut client = server.connect().await;
        client.send(good.replace("DynamoDB_20120810.ListTables", target).as_bytes()).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, &*answer.error()), (400, "UnknownOperationException"));
    }
    // One that AWS has, and this door not.
    assert_eq!(server.call("CreateBackup", "{}").await.error(), "UnknownOperationException");
}

#[tokio::test]
async fn the_answer_has_the_content_type_of_the_request() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let plain = request("ListTables", "{}").replace("x-amz-json-1.0", "json; charset=utf-8");
    client.send(plain.as_bytes()).await;
    let answer = client.answer().await.assert_ok();
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn malformed_json_is_refused_and_the_connection_goes_on() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let deep = "[".repeat(500_000);
    for body in ["", "hi", "{", "[]", "null", "{\"TableName\":\"x\"} x", "\"\\ud800\"", &deep] {
        client.send(request("DescribeTable", body).as_bytes()).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 400);
        assert_eq!(
            answer.text(),
            r#"{"__type":"com.amazon.coral.service#SerializationException"}"#
        );
    }
    client.send(request("ListTables", "{}").as_bytes()).await;
    client.answer().await.assert_ok();
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start(DoorOptions::default()).await;
    server.call("CreateTable", PEOPLE).await.assert_ok();
    let mut client = server.connect().await;
    let mut burst = String::new();
    for at in 0..50 {
        let item =
            format!(r#"{{"TableName":"people","Item":{{"id":{{"S":"a"}},"at":{{"N":"{at}"}}}}}}"#);
        burst += &request("PutItem", &item);
        burst += &request("GetItem", r#"{"TableName":"people","Key":{"id":{"S":"a"}}}"#);
    }
    client.send(burst.as_bytes()).await;
    for at in 0..50 {
        assert_eq!(client.answer().await.assert_ok().text(), "{}");
        let got = client.answer().await.assert_ok().json();
        assert_eq!(got["Item"]["at"]["N"], at.to_string());
    }
}

#[tokio::test]
async fn a_chunked_body_is_put_together() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let (head, _) = request("CreateTable", "").leak().split_once("Content-Length").unwrap();
    client.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).await;
    for piece in PEOPLE.as_bytes().chunks(7) {
        client.send(format!("{:x}\r\n", piece.len()).as_bytes()).await;
        client.send(piece).await;
        client.send(b"\r\n").await;
    }
    client.send(b"0\r\n\r\n").await;
    assert_eq!(client.answer().await.assert_ok().json()["TableDescription"]["TableName"], "people");
}

#[tokio::test]
async fn a_chunked_body_that_is_not_one_is_refused_and_the_connection_ends() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let head = request("ListTables", "").replace("Content-Length: 0", "Transfer-Encoding: chunked");
    // What follows the wrong byte would be in the way: answers to pipelined requests are kept until
    // everything that came is read.
    client.send(format!("{head}n").as_bytes()).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (400, Some("close")));
    client.closed().await;
}

#[tokio::test]
async fn a_client_that_waits_for_permission_to_send_its_body_gets_it() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let request = request_with("ListTables", "Expect: 100-continue\r\n", "{}");
    let (head, body) = request.split_at(request.len() - 2);
    client.send(head.as_bytes()).await;
    // The permission comes before any byte of the body.
    client.send_after_continue(body.as_bytes()).await;
    client.answer().await.assert_ok();
}

#[tokio::test]
async fn a_packed_body_is_unpacked() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let packed = gzipped(PEOPLE);
    let head = request_with("CreateTable", "Content-Encoding: gzip\r\n", "")
        .replace("Content-Length: 0", &format!("Content-Length: {}", packed.len()));
    client.send(&[head.as_bytes(), &packed].concat()).await;
    client.answer().await.assert_ok();
    // What says it is packed and is not, and a packing nobody knows.
    for coding in ["gzip", "br"] {
        let headers = format!("Content-Encoding: {coding}\r\n");
        client.send(request_with("ListTables", &headers, "{}").as_bytes()).await;
        assert_eq!(client.answer().await.error(), "SerializationException");
    }
}

#[tokio::test]
async fn a_long_answer_is_packed_for_a_client_that_asks() {
    let server = Server::start(DoorOptions::default()).await;
    server.call("CreateTable", PEOPLE).await.assert_ok();
    let long = "long text ".repeat(1000);
    let item =
        format!(r#"{{"TableName":"people","Item":{{"id":{{"S":"a"}},"text":{{"S":"{long}"}}}}}}"#);
    server.call("PutItem", &item).await.assert_ok();
    let get = r#"{"TableName":"people","Key":{"id":{"S":"a"}}}"#;
    let mut client = server.connect().await;
    client
        .send(request_with("GetItem", "Accept-Encoding: gzip, deflate\r\n", get).as_bytes())
        .await;
    let answer = client.answer().await.assert_ok();
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    assert!(answer.body.len() < 1000);
    // Clients check the sum of what they received, before they unpack it.
    let checksum = crc32fast::hash(&answer.body).to_string();
    assert_eq!(answer.header("x-amz-crc32"), Some(&*checksum));
    let mut text = String::new();
    GzDecoder::new(&*answer.body).read_to_string(&mut text).unwrap();
    assert!(text.contains(&long));
    let plain = server.call("GetItem", get).await.assert_ok();
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(plain.text(), text);
}

#[tokio::test]
async fn closing_the_door_finishes_what_was_begun() {
    let mut server = Server::start(DoorOptions::default()).await;
    let mut idle = server.connect().await;
    idle.send(request("ListTables", "{}").as_bytes()).await;
    idle.answer().await.assert_ok();
    let mut busy = server.connect().await;
    let request = request("ListTables", "{}");
    let (most, rest) = request.as_bytes().split_at(request.len() - 1);
    busy.send(most).await;
    // The head is with the server when it has answered a request that was sent later.
    server.call("ListTables", "{}").await.assert_ok();
    server.stop();
    assert!(idle.closed().await.is_empty());
    busy.send(rest).await;
    busy.answer().await.assert_ok();
    assert!(busy.closed().await.is_empty());
    server.closed().await;
}

#[tokio::test]
async fn closing_the_door_does_not_wait_for_ever() {
    let mut options = DoorOptions::default();
    options.limits.shutdown_timeout = Duration::from_millis(100);
    let mut server = Server::start(options).await;
    let mut stuck = server.connect().await;
    stuck.send(request("ListTables", "{}").as_bytes().split_last().unwrap().1).await;
    server.call("ListTables", "{}").await.assert_ok();
    server.stop();
    server.closed().await;
}
