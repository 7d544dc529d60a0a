//! Message framing: where a request ends and the next one begins, also with invalid lengths.

use kstone_dynamo::DoorOptions;

use crate::server::{Client, Server, request, request_with};

/// A request without its length, for others to be put in its place.
fn with_framing(framing: &str, body: &str) -> String {
    let request = request("ListTables", "");
    request.replace("Content-Length: 0\r\n", framing) + body
}

async fn assert_answers(client: &mut Client) {
    client.send(request("ListTables", "{}").as_bytes()).await;
    client.answer().await.assert_ok();
}

#[tokio::test]
async fn a_request_whose_end_can_be_doubted_is_the_last_on_its_connection() {
    let server = Server::start(DoorOptions::default()).await;
    // What one reader takes for a body is a request to another.
    let hidden = request("ListTables", "{}");
    let chunks = format!("0\r\n\r\n{hidden}");
    for framing in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 0\r\n",
        "Content-Length: 5, 0\r\n",
        "Content-Length: +5\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding:\u{b}chunked\r\n",
        "X-Folded: a\r\n Transfer-Encoding: chunked\r\n",
        "X-Bare: a\nTransfer-Encoding: chunked\r\n",
        "Content-Length : 5\r\n",
    ] {
        let mut client = server.connect().await;
        client.send(with_framing(framing, &chunks).as_bytes()).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.header("connection")), (400, Some("close")), "{framing}");
        assert!(client.closed().await.is_empty(), "the hidden request was answered: {framing}");
    }
}

#[tokio::test]
async fn chunks_that_are_none_are_refused_whatever_follows_them() {
    let server = Server::start(DoorOptions::default()).await;
    let hidden = request("ListTables", "{}");
    for bad in ["n", "5\r\nhello!", "5\nhello\r\n0\r\n\r\n", "-1\r\n", "FFFFFFFFFFFFFFFF1\r\n"] {
        let mut client = server.connect().await;
        let chunks = format!("{bad}{hidden}");
        client.send(with_framing("Transfer-Encoding: chunked\r\n", &chunks).as_bytes()).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.header("connection")), (400, Some("close")), "{bad}");
        assert!(client.closed().await.is_empty(), "{bad}");
    }
}

#[tokio::test]
async fn bodies_of_every_kind_end_before_the_next_request() {
    let server = Server::start(DoorOptions::default()).await;
    let client = server.connect().await;
    let chunked =
        |body: &str| format!("{:x};why=not\r\n{body}\r\n0\r\nX-Sum: 1\r\n\r\n", body.len());
    let large = "{}".to_owned() + &" ".repeat(300_000);
    let not_found = request("ListTables", &large).replace("POST / ", "POST /other ");
    let many = [
        (request("ListTables", "{}"), 200),
        (with_framing("Transfer-Encoding: chunked\r\n", &chunked("{}")), 200),
        (request("ListTables", &large), 200),
        (with_framing("Transfer-Encoding: chunked\r\n", &chunked(&large)), 200),
        // These are not read, only passed over.
        (not_found.clone(), 404),
        (not_found.replace("POST ", "PUT "), 404),
        (request("ListTables", &large).replace("POST ", "GET "), 200),
        (
            with_framing("Transfer-Encoding: chunked\r\n", &chunked(&large)).replace("POST", "PUT"),
            404,
        ),
        (request("ListTable", &large), 400),
        (request("ListTables", ""), 400),
        (request("ListTables", "{}"), 200),
    ];
    let burst: String = many.iter().map(|(request, _)| request.as_str()).collect();
    let (mut reader, writer) = client.split_sender();
    let sending = writer(burst.into_bytes());
    let reading = async {
        for (request, status) in &many {
            let start = request.get(..60).unwrap();
            assert_eq!(reader.answer().await.status, *status, "{start}");
        }
    };
    tokio::join!(sending, reading);
}

#[tokio::test]
async fn a_request_is_read_however_its_bytes_come() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let chunked = with_framing("Transfer-Encoding: chunked\r\n", "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n");
    for request in [request("ListTables", "{}"), chunked] {
        for byte in request.as_bytes() {
            client.send(&[*byte]).await;
        }
        client.answer().await.assert_ok();
    }
}

#[tokio::test]
async fn a_client_of_the_first_version_is_served_once_unless_it_asks_for_more() {
    let server = Server::start(DoorOptions::default()).await;
    let old = request("ListTables", "{}").replace("HTTP/1.1", "HTTP/1.0");
    let mut client = server.connect().await;
    client.send(old.as_bytes()).await;
    let answer = client.answer().await.assert_ok();
    assert_eq!((answer.version(), answer.header("connection")), ("HTTP/1.0", Some("close")));
    assert!(client.closed().await.is_empty());

    let keep = old.replace("Host: localhost\r\n", "Connection: Keep-Alive\r\n");
    let mut client = server.connect().await;
    for _ in 0..2 {
        client.send(keep.as_bytes()).await;
        let answer = client.answer().await.assert_ok();
        assert_eq!(answer.header("connection"), Some("keep-alive"));
    }
    // It knows neither chunks nor waiting for permission.
    let expecting = request_with("ListTables", "Expect: 100-continue\r\n", "{}");
    client.send(expecting.replace("HTTP/1.1", "HTTP/1.0").as_bytes()).await;
    client.answer().await.assert_ok();
    let mut client = server.connect().await;
    let chunked = with_framing("Transfer-Encoding: chunked\r\n", "0\r\n\r\n");
    client.send(chunked.replace("HTTP/1.1", "HTTP/1.0").as_bytes()).await;
    assert_eq!(client.answer().await.status, 400);
}

#[tokio::test]
async fn a_client_that_says_it_closes_gets_no_second_answer() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let last = request_with("ListTables", "Connection: close\r\n", "{}");
    client.send((last + &request("ListTables", "{}")).as_bytes()).await;
    let answer = client.answer().await.assert_ok();
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(client.closed().await.is_empty());
}

#[tokio::test]
async fn an_answer_to_head_has_no_body() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    client.send(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let head = client.head().await;
    assert_eq!(head.header("content-length"), Some("29"));
    assert_answers(&mut client).await;
}

#[tokio::test]
async fn a_client_that_asks_before_it_sends_and_is_refused_is_told_at_once() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let request = request_with("CreateBackup", "Expect: 100-continue\r\n", "{}");
    client.send(request.strip_suffix("{}").unwrap().as_bytes()).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (400, Some("close")));
    assert!(client.closed().await.is_empty());
}

#[tokio::test]
async fn a_client_that_asks_before_it_sends_too_much_need_not_send_it() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let head = request_with("ListTables", "Expect: 100-continue\r\n", "");
    client.send(head.replace("Length: 0", "Length: 17000000").as_bytes()).await;
    assert_eq!(client.answer().await.status, 413);
    assert!(client.closed().await.is_empty());
}

#[tokio::test]
async fn a_proxys_form_of_the_target_and_an_empty_line_before_it_are_understood() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let request = request("ListTables", "{}").replace("POST / ", "POST http://localhost/ ");
    client.send(format!("{request}\r\n{request}").as_bytes()).await;
    client.answer().await.assert_ok();
    client.answer().await.assert_ok();
}

#[tokio::test]
async fn a_request_that_began_before_the_door_closed_is_answered() {
    let mut server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    let request = request("ListTables", "{}");
    let (start, rest) = request.split_at(20);
    client.send(start.as_bytes()).await;
    // The start is with the server when it has answered a request that was sent later.
    server.call("ListTables", "{}").await.assert_ok();
    server.stop();
    client.send(rest.as_bytes()).await;
    let answer = client.answer().await.assert_ok();
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(client.closed().await.is_empty());
    server.closed().await;
}

#[tokio::test]
async fn a_client_that_has_sent_all_it_will_still_gets_its_answers() {
    let server = Server::start(DoorOptions::default()).await;
    let mut client = server.connect().await;
    client.send(request("ListTables", "{}").repeat(3).as_bytes()).await;
    client.finish_sending().await;
    for _ in 0..3 {
        client.answer().await.assert_ok();
    }
    assert!(client.closed().await.is_empty());
}
