//! Limits: requests that are too large, too slow or malformed, and their errors.

use std::time::Duration;

use kstone_dynamo::DoorOptions;

use crate::server::{Server, request, request_with};

const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

fn impatient() -> DoorOptions {
    let mut options = DoorOptions::default();
    options.limits.read_timeout = Duration::from_millis(200);
    options
}

/// Puts an item `a` of so many bytes into a new table `long`.
async fn put_long_item(server: &Server, bytes: usize) {
    server
        .call(
            "CreateTable",
            r#"{"TableName":"long","BillingMode":"PAY_PER_REQUEST",
            "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
            "KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}"#,
        )
        .await
        .assert_ok();
    let long = "x".repeat(bytes);
    let item =
        format!(r#"{{"TableName":"long","Item":{{"id":{{"S":"a"}},"x":{{"S":"{long}"}}}}}}"#);
    server.call("PutItem", &item).await.assert_ok();
}

#[tokio::test]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let server = Server::start(impatient()).await;
    for start in ["", "POST / HTTP/1.1\r\nHost: loc"] {
        let mut client = server.connect().await;
        client.send(start.as_bytes()).await;
        client.closed().await;
    }
    // It keeps nobody else waiting.
    server.call("ListTables", "{}").await.assert_ok();
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let server = Server::start(impatient()).await;
    let mut client = server.connect().await;
    client.send(request("ListTables", "{}").as_bytes().split_last().unwrap().1).await;
    assert_eq!(client.answer().await.status, 408);
    client.closed().await;
}

#[tokio::test]
async fn a_body_of_more_than_16_mib_is_too_large() {
    let server = Server::start(DoorOptions::default()).await;
    let chunk = vec![b' '; 1024 * 1024];
    // By its announced length, and by what comes in the end.
    for is_chunked in [false, true] {
        let mut client = server.connect().await;
        let head = request("ListTables", "");
        let head = match is_chunked {
            true => head.replace("Content-Length: 0", "Transfer-Encoding: chunked"),
            false => head
                .replace("Content-Length: 0", &format!("Content-Length: {}", BODY_BYTES_MAX + 1)),
        };
        client.send(head.as_bytes()).await;
        for _ in 0..16 {
            if is_chunked {
                client.try_send(b"100000\r\n").await;
            }
            client.try_send(&chunk).await;
            if is_chunked {
                client.try_send(b"\r\n").await;
            }
        }
        client.try_send(if is_chunked { b"1\r\n \r\n0\r\n\r\n" } else { b" " }).await;
        assert_eq!(client.answer().await.status, 413);
        client.closed().await;
    }
}

#[tokio::test]
async fn a_body_of_16_mib_is_read() {
    let server = Server::start(DoorOptions::default()).await;
    let body = "{}".to_owned() + &" ".repeat(BODY_BYTES_MAX - 2);
    server.call("ListTables", &body).await.assert_ok();
}

#[tokio::test]
async fn a_body_that_unpacks_to_more_than_16_mib_is_too_large() {
    use std::io::Write as _;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        packed.write_all(&vec![b' '; 1024 * 1024]).unwrap();
    }
    let packed = packed.finish().unwrap();
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let head = request_with("ListTables", "Content-Encoding: gzip\r\n", "")
        .replace("Content-Length: 0", &format!("Content-Length: {}", packed.len()));
    client.send(&[head.as_bytes(), &packed].concat()).await;
    assert_eq!(client.answer().await.status, 413);
}

#[tokio::test]
async fn headers_have_a_limit() {
    let server = Server::start(DoorOptions::default()).await;
    let long = format!("X-Long: {}\r\n", "x".repeat(200 * 1024));
    let many = "X-Many: x\r\n".repeat(1000);
    for headers in [long, many] {
        let mut client = server.connect().await;
        client.try_send(request_with("ListTables", &headers, "{}").as_bytes()).await;
        let answer = String::from_utf8(client.closed().await).unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    server.call("ListTables", "{}").await.assert_ok();
}

#[tokio::test]
async fn what_is_not_http_closes_the_connection() {
    let server = Server::start(DoorOptions::default()).await;
    for bytes in
        [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"*1\r\n$4\r\nPING\r\n", b"\r\n\r\nx y\r\n\r\n"]
    {
        let mut client = server.connect().await;
        client.send(bytes).await;
        let answer = String::from_utf8(client.closed().await).unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
    server.call("ListTables", "{}").await.assert_ok();
}

#[tokio::test]
async fn a_few_empty_lines_before_a_request_are_passed_over_and_many_are_not() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    for _ in 0..3 {
        client.send(format!("\r\n\r\n{}", request("ListTables", "{}")).as_bytes()).await;
        client.answer().await.assert_ok();
    }
    for lines in ["\r\n".repeat(5), "\n".to_owned()] {
        let mut client = server.connect().await;
        client.send(lines.as_bytes()).await;
        assert_eq!(client.answer().await.status, 400);
    }
}

#[tokio::test]
async fn the_last_answer_is_read_also_by_a_client_that_sent_more() {
    let server = Server::start(DoorOptions::default()).await;
    put_long_item(&server, 300_000).await;
    let get = r#"{"TableName":"long","Key":{"id":{"S":"a"}}}"#;
    let last = request_with("GetItem", "Connection: close\r\n", get);
    let more = request("ListTables", "{}").repeat(1000);
    let mut client = server.connect().await;
    client.send((last + &more).as_bytes()).await;
    // The server is through with it before anything is read. Had it closed with bytes that nobody
    // read, that would be a reset, and what was not delivered yet would be lost.
    for _ in 0..3 {
        server.call("ListTables", "{}").await.assert_ok();
    }
    client.answer().await.assert_ok();
    client.closed().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let mut options = DoorOptions::default();
    options.limits.connections_max = 2;
    let server = Server::start(options).await;
    let mut first = server.connect().await;
    let mut second = server.connect().await;
    for client in [&mut first, &mut second] {
        client.send(request("ListTables", "{}").as_bytes()).await;
        client.answer().await.assert_ok();
    }
    let mut third = server.connect().await;
    third.send(request("ListTables", "{}").as_bytes()).await;
    let waited = tokio::time::timeout(Duration::from_millis(100), third.answer()).await;
    assert!(waited.is_err(), "a third connection was served beside two");
    drop(first);
    third.answer().await.assert_ok();
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answers_loses_its_place() {
    let mut options = impatient();
    options.limits.connections_max = 1;
    let server = Server::start(options).await;
    put_long_item(&server, 300_000).await;
    // More than the sockets' buffers take.
    let mut deaf = server.connect().await;
    let get = request("GetItem", r#"{"TableName":"long","Key":{"id":{"S":"a"}}}"#);
    deaf.try_send(get.repeat(100).as_bytes()).await;
    // The only place is free again, although the client is still there.
    server.call("ListTables", "{}").await.assert_ok();
    assert!(deaf.closed().await.len() < 100 * 300_000, "everything was sent");
}

#[tokio::test]
async fn large_bodies_wait_for_their_turn_and_small_ones_do_not() {
    let server = Server::start(DoorOptions::default()).await;
    let head = request("ListTables", "")
        .replace("Content-Length: 0", &format!("Content-Length: {BODY_BYTES_MAX}"));
    let mut slow = Vec::new();
    let body = "{}".to_owned() + &" ".repeat(BODY_BYTES_MAX - 2);
    for _ in 0..8 {
        // Few that are slow to send keep nobody waiting.
        if slow.len() == 7 {
            server.call("ListTables", &body).await.assert_ok();
        }
        let mut client = server.connect().await;
        client.send(head.as_bytes()).await;
        slow.push(client);
    }
    // Their heads are with the server when it has answered what was sent later.
    server.call("ListTables", "{}").await.assert_ok();
    let large = server.call("ListTables", &body);
    tokio::pin!(large);
    let waited = tokio::time::timeout(Duration::from_millis(300), &mut large).await;
    assert!(waited.is_err(), "a ninth large body was read beside eight");
    server.call("ListTables", "{}").await.assert_ok();
    drop(slow);
    large.await.assert_ok();
}
