//! A proxy between a client and a door that answers some requests itself, and cuts some off.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What becomes of a request.
#[derive(Debug, Clone)]
pub enum Fate {
    /// It is forwarded, and answered.
    Answered,
    /// It is forwarded and carried out; then the connection ends without an answer.
    CarriedOutUnanswered,
    /// The connection ends, and the door never sees the request.
    Lost,
    /// It is refused with this error, and the door never sees it.
    Refused(&'static str),
    /// The same with this status and body.
    AnsweredWith(u16, &'static str),
}

/// Decides by the name of the operation, and by how many requests of this operation came before.
type Plan = dyn Fn(&str, usize) -> Fate + Send + Sync;

/// The proxy; it ends when dropped.
pub struct Proxy {
    pub address: SocketAddr,
    /// How many requests the plan was asked about.
    requests: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    pub async fn open(
        door: SocketAddr,
        plan: impl Fn(&str, usize) -> Fate + Send + Sync + 'static,
    ) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let plan = Arc::new(Counted { plan: Box::new(plan), seen: Default::default() });
        let counter = Arc::clone(&requests);
        let accepting = tokio::spawn(async move {
            // Its connections end with it.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(relay(client, door, Arc::clone(&plan), Arc::clone(&counter)));
            }
        });
        Proxy { address, requests, accepting }
    }

    /// How many requests came so far.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A plan, with how often it was asked about each operation.
struct Counted {
    plan: Box<Plan>,
    seen: tokio::sync::Mutex<std::collections::HashMap<String, usize>>,
}

impl Counted {
    async fn fate(&self, operation: &str) -> Fate {
        let mut seen = self.seen.lock().await;
        let before = seen.entry(operation.to_owned()).or_default();
        let fate = (self.plan)(operation, *before);
        *before += 1;
        fate
    }
}

/// Serves one connection until either side ends it.
async fn relay(
    mut client: TcpStream,
    door: SocketAddr,
    plan: Arc<Counted>,
    requests: Arc<AtomicUsize>,
) {
    let mut unread = Vec::new();
    while let Some(request) = message(&mut client, &mut unread).await {
        requests.fetch_add(1, Ordering::SeqCst);
        let answer = match plan.fate(&operation(&request)).await {
            Fate::Lost => return,
            Fate::Refused(kind) => {
                answer(400, &format!("{{\"__type\":\"com.amazonaws.dynamodb.v20120810#{kind}\"}}"))
            }
            Fate::AnsweredWith(status, body) => answer(status, body),
            fate => {
                let Ok(mut door) = TcpStream::connect(door).await else { return };
                let Ok(()) = door.write_all(&request).await else { return };
                let Some(answer) = message(&mut door, &mut Vec::new()).await else { return };
                if matches!(fate, Fate::CarriedOutUnanswered) {
                    return;
                }
                answer
            }
        };
        let Ok(()) = client.write_all(&answer).await else { return };
    }
}

fn answer(status: u16, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} Test\r\nContent-Type: application/x-amz-json-1.0\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Reads one request or answer with its body; `None` at the end of the connection.
async fn message(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some(head) = unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let length: usize = header(&unread[..head], "content-length")?.parse().ok()?;
            let end = head + 4 + length;
            if unread.len() >= end {
                let rest = unread.split_off(end);
                return Some(std::mem::replace(unread, rest));
            }
        }
        if stream.read_buf(unread).await.ok()? == 0 {
            return None;
        }
    }
}

fn header(head: &[u8], name: &str) -> Option<String> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(have, _)| have.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim().to_owned())
}

fn operation(request: &[u8]) -> String {
    let head = request.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(0);
    let target = header(&request[..head], "x-amz-target").unwrap_or_default();
    target.rsplit('.').next().unwrap_or_default().to_owned()
}
