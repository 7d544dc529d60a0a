//! HTTP/2 clients that are silent, or do not read.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::channel::Channel;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kstone_door::{HttpVersion, Limits};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{Door, PATIENCE, QUICK, closed, strict};

type ClientBody = BoxBody<Bytes, Infallible>;

/// What a client says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty SETTINGS frame.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// A client whose window for answers is as given.
async fn client(stream: TcpStream, window: u32) -> SendRequest<ClientBody> {
    let (client, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

fn request(path: &str, body: &str) -> Request<ClientBody> {
    let uri = format!("http://door{path}");
    Request::post(uri).body(Full::new(Bytes::from(body.to_owned())).boxed()).unwrap()
}

async fn ask(client: &mut SendRequest<ClientBody>, body: &str) -> Bytes {
    let answer =
        timeout(PATIENCE, client.send_request(request("/", body))).await.expect("an answer");
    answer.unwrap().into_body().collect().await.unwrap().to_bytes()
}

#[tokio::test]
async fn silent_clients_keep_nobody_waiting() {
    // Nothing, a part of the preface, all of it, and settings: none of them asks for anything.
    let greetings = [&b""[..], &PREFACE[..10], PREFACE, &[PREFACE, SETTINGS].concat()];
    for greeting in greetings {
        let door = Door::echo(strict(), HttpVersion::Http2).await;
        let mut silent = [door.connect().await, door.connect().await];
        for stream in &mut silent {
            stream.write_all(greeting).await.unwrap();
        }
        let mut client = client(door.connect().await, 65_535).await;
        assert_eq!(ask(&mut client, "hello").await, "hello");
        for stream in &mut silent {
            closed(stream).await;
        }
    }
}

#[tokio::test]
async fn the_first_bytes_have_a_shorter_deadline_than_an_idle_connection() {
    let limits = Limits { connections_max: 1, handshake_timeout: QUICK, ..Limits::default() };
    let door = Door::echo(limits, HttpVersion::Http2).await;
    let mut silent = door.connect().await;
    closed(&mut silent).await;
    let mut client = client(door.connect().await, 65_535).await;
    ask(&mut client, "hello").await;
    // It said enough to be let wait.
    tokio::time::sleep(QUICK * 3).await;
    assert_eq!(ask(&mut client, "hello again").await, "hello again");
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_loses_its_slot() {
    let limits = Limits { connections_max: 1, read_timeout: QUICK, ..Limits::default() };
    for path in ["/long", "/long/stream"] {
        let door = Door::echo(limits, HttpVersion::Http2).await;
        let mut deaf = client(door.connect().await, 1024).await;
        // The head of the answer comes, and of its body what the window takes.
        let unread = deaf.send_request(request(path, "")).await.unwrap();
        let mut client = client(door.connect().await, 65_535).await;
        assert_eq!(ask(&mut client, "hello").await, "hello", "{path}");
        assert!(unread.into_body().collect().await.is_err(), "all of it was sent");
    }
}

#[tokio::test]
async fn an_idle_client_is_told_that_its_connection_ends() {
    let door = Door::echo(strict(), HttpVersion::Http2).await;
    for _ in 0..5 {
        let mut idle = door.connect().await;
        idle.write_all(&[PREFACE, SETTINGS].concat()).await.unwrap();
        let frames = closed(&mut idle).await;
        let (mut rest, mut kinds) = (frames.as_slice(), Vec::new());
        while let [a, b, c, kind, ..] = *rest {
            kinds.push(kind);
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            rest = rest.get(9 + length..).unwrap_or_default();
        }
        const GOAWAY: u8 = 7;
        assert!(kinds.contains(&GOAWAY), "{kinds:?}");
    }
}

/// Together they are twice what the bodies of a door may take.
#[tokio::test]
async fn large_bodies_on_one_connection_take_turns() {
    let door = Door::echo(Limits::default(), HttpVersion::Http2).await;
    let client = client(door.connect().await, 65_535).await;
    let body = Bytes::from(vec![b'x'; 4 << 20]);
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let (mut client, body) = (client.clone(), Full::new(body.clone()).boxed());
        let request = Request::post("http://door/length").body(body).unwrap();
        asking.spawn(async move {
            let answer = client.send_request(request).await.unwrap();
            answer.into_body().collect().await.unwrap().to_bytes()
        });
    }
    while let Some(answer) = asking.join_next().await {
        assert_eq!(answer.unwrap(), "4194304");
    }
}

#[tokio::test]
async fn a_request_that_has_begun_is_answered_when_the_door_is_closed() {
    let door = Door::echo(Limits::default(), HttpVersion::Http2).await;
    let mut client = client(door.connect().await, 65_535).await;
    let (mut sender, body) = Channel::<Bytes>::new(1);
    let request = Request::post("http://door/").body(body.boxed()).unwrap();
    let answer = tokio::spawn(client.send_request(request));
    sender.send_data(Bytes::from("hel")).await.unwrap();
    // Answered behind the first one, which has therefore begun.
    ask(&mut client, "hello").await;
    let closing = tokio::spawn(door.close());
    sender.send_data(Bytes::from("lo")).await.unwrap();
    drop(sender);
    let answer = answer.await.unwrap().unwrap().into_body().collect().await.unwrap();
    assert_eq!(answer.to_bytes(), "hello");
    closing.await.unwrap();
}
