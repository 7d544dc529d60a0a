//! Connection slots, handshakes, HTTP/1.1, and what is left when the door is closed.

use std::io;
use std::sync::Arc;

use kstone_door::{DoorFrame, Handshake, HttpVersion, Limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{Door, LARGE_BYTES, PATIENCE, QUICK, closed, listen, post, strict};

#[tokio::test]
async fn connections_beyond_the_limit_wait_until_one_ends() {
    let limits = Limits { connections_max: 1, ..Limits::default() };
    let door = Door::echo(limits, HttpVersion::Http1).await;
    let mut first = door.connect().await;
    first.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello").await.unwrap();
    assert_ne!(first.read(&mut [0; 1024]).await.unwrap(), 0);
    let second = post(door.at, "second");
    tokio::pin!(second);
    assert!(timeout(QUICK, &mut second).await.is_err(), "two connections with one slot");
    drop(first);
    assert!(second.await.ends_with("second"));
}

#[tokio::test]
async fn silent_clients_keep_nobody_waiting() {
    let door = Door::echo(strict(), HttpVersion::Http1).await;
    let mut silent = [door.connect().await, door.connect().await];
    silent[1].write_all(b"POST / HTTP/1.1\r\nHost: loc").await.unwrap();
    assert!(post(door.at, "hello").await.ends_with("hello"));
    for stream in &mut silent {
        closed(stream).await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_loses_its_slot() {
    let limits = Limits { connections_max: 1, ..strict() };
    let door = Door::echo(limits, HttpVersion::Http1).await;
    let mut deaf = door.connect().await;
    deaf.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert!(post(door.at, "hello").await.ends_with("hello"));
    assert!(closed(&mut deaf).await.len() < LARGE_BYTES, "all of it was sent");
}

#[tokio::test]
async fn a_request_that_has_begun_is_answered_when_the_door_is_closed() {
    let door = Door::echo(Limits::default(), HttpVersion::Http1).await;
    let mut idle = door.connect().await;
    let mut client = door.connect().await;
    client
        .write_all(
            b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        )
        .await
        .unwrap();
    // It has begun when the server asks for its body.
    assert_ne!(client.read(&mut [0; 1024]).await.unwrap(), 0);
    let at = door.at;
    let closing = tokio::spawn(door.close());
    assert!(closed(&mut idle).await.is_empty());
    client.write_all(b"hello").await.unwrap();
    let answer = String::from_utf8(closed(&mut client).await).unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    closing.await.unwrap();
    assert!(TcpStream::connect(at).await.is_err(), "it still accepts");
}

/// A handshake of one byte, as TLS would need several.
struct OneByte;

impl Handshake<TcpStream> for OneByte {
    type Stream = TcpStream;

    async fn shake(&self, mut stream: TcpStream) -> io::Result<TcpStream> {
        match stream.read_u8().await? {
            b'!' => Ok(stream),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[tokio::test]
async fn a_handshake_has_a_deadline_and_holds_up_nobody_else() {
    let (listener, at) = listen().await;
    let frame = DoorFrame::new(strict(), Arc::default()).with_handshake(OneByte);
    let connection = async |mut stream: TcpStream, _, _| {
        let _ = stream.write_all(b"welcome").await;
    };
    let connection = move |stream, peer, closing| Box::pin(connection(stream, peer, closing));
    tokio::spawn(frame.serve(listener, connection, std::future::pending()));
    let mut silent = TcpStream::connect(at).await.unwrap();
    let mut wrong = TcpStream::connect(at).await.unwrap();
    wrong.write_all(b"?").await.unwrap();
    let mut right = TcpStream::connect(at).await.unwrap();
    right.write_all(b"!").await.unwrap();
    assert_eq!(closed(&mut right).await, b"welcome");
    assert!(closed(&mut wrong).await.is_empty());
    assert!(timeout(PATIENCE, closed(&mut silent)).await.unwrap().is_empty());
}
