//! A running door for tests, and a client that sends raw bytes.

use std::net::SocketAddr;
use std::time::Duration;

use kstone::Database;
use kstone_dynamo::{DoorOptions, serve};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Nothing here takes this long unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Server {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl Server {
    /// Serves an empty database in memory.
    pub async fn start(options: DoorOptions) -> Server {
        Server::of(Database::memory().unwrap(), options).await
    }

    /// Serves this database.
    pub async fn of(database: Database, options: DoorOptions) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(serve(listener, database, options, async {
            let _ = stopped.await;
        }));
        Server { address, stop: Some(stop), running }
    }

    pub async fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, unread: Vec::new() }
    }

    /// Asks for an operation on a connection of its own.
    pub async fn call(&self, operation: &str, body: &str) -> Answer {
        let mut client = self.connect().await;
        client.send(request(operation, body).as_bytes()).await;
        client.answer().await
    }

    /// Begins to close the door.
    pub fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    /// Waits until the door is closed.
    pub async fn closed(self) {
        tokio::time::timeout(PATIENCE, self.running).await.unwrap().unwrap();
    }
}

/// A connection.
pub struct Client<S = TcpStream> {
    stream: S,
    unread: Vec<u8>,
}

/// An answer of the server.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Client {
    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Sends what it can: the server may close meanwhile.
    pub async fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Waits for `100 Continue`, then sends.
    pub async fn send_after_continue(&mut self, bytes: &[u8]) {
        let permission = b"HTTP/1.1 100 Continue\r\n\r\n";
        let wait = async {
            while self.unread.len() < permission.len() {
                assert_ne!(self.read_some().await, 0, "closed without permission");
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("no permission to send");
        let rest = self.unread.split_off(permission.len());
        assert_eq!(std::mem::replace(&mut self.unread, rest), permission);
        self.send(bytes).await;
    }

    /// Says that nothing more will be sent.
    pub async fn finish_sending(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Sends while answers are read: more than the sockets hold.
    pub fn split_sender(self) -> (Client<OwnedReadHalf>, impl AsyncFnOnce(Vec<u8>)) {
        let (reader, mut writer) = self.stream.into_split();
        let send = async move |bytes: Vec<u8>| writer.write_all(&bytes).await.unwrap();
        (Client { stream: reader, unread: self.unread }, send)
    }
}

impl<S: AsyncRead + Unpin> Client<S> {
    /// The head of the next answer.
    pub async fn head(&mut self) -> Answer {
        tokio::time::timeout(PATIENCE, self.read_head()).await.expect("no answer")
    }

    async fn read_head(&mut self) -> Answer {
        let head_end = loop {
            if let Some(at) = self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            assert_ne!(self.read_some().await, 0, "closed before an answer");
        };
        let body = self.unread.split_off(head_end);
        let head = String::from_utf8(std::mem::replace(&mut self.unread, body)).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: Vec::new() }
    }

    /// The next answer.
    pub async fn answer(&mut self) -> Answer {
        let read = async {
            let mut answer = self.read_head().await;
            let length: usize = answer.header("content-length").unwrap().parse().unwrap();
            while self.unread.len() < length {
                assert_ne!(self.read_some().await, 0, "closed inside an answer");
            }
            let rest = self.unread.split_off(length);
            answer.body = std::mem::replace(&mut self.unread, rest);
            answer
        };
        tokio::time::timeout(PATIENCE, read).await.expect("no answer")
    }

    /// Waits for the server to close the connection, and gives what it sent before.
    pub async fn closed(&mut self) -> Vec<u8> {
        let read = async {
            // A reset is an end too.
            while self.try_read().await.unwrap_or(0) != 0 {}
        };
        tokio::time::timeout(PATIENCE, read).await.expect("still open");
        std::mem::take(&mut self.unread)
    }

    async fn read_some(&mut self) -> usize {
        self.try_read().await.unwrap()
    }

    async fn try_read(&mut self) -> std::io::Result<usize> {
        self.stream.read_buf(&mut self.unread).await
    }
}

impl Answer {
    pub fn version(&self) -> &str {
        self.head.split(' ').next().unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The error's type without its prefix.
    pub fn error(&self) -> String {
        let json = self.json();
        let kind = json["__type"].as_str().unwrap_or("none").to_owned();
        kind.split('#').next_back().unwrap().to_owned()
    }

    pub fn assert_ok(self) -> Answer {
        assert_eq!(self.status, 200, "{}", self.text());
        self
    }
}

/// A request as bytes, unsigned.
pub fn request(operation: &str, body: &str) -> String {
    request_with(operation, "", body)
}

/// A request with more header lines, each ending in `\r\n`.
pub fn request_with(operation: &str, headers: &str, body: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: DynamoDB_20120810.{operation}\r\n\
         Content-Type: application/x-amz-json-1.0\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
