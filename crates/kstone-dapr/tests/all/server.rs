//! A door on a free port, to a database in memory whose clock stands still; and a client that knows
//! nothing but HTTP.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use kstone::{Database, DatabaseOptions};
use kstone_core::env::{Env, ManualClock};
use kstone_dapr::{Door, DoorOptions, State};
use kstone_keyspace::{Governor, GovernorOptions};
use serde_json::Value as Json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::watch;

/// A whole second, and what it is called.
pub const START_MS: u64 = 1_768_381_200_000;
pub const START_S: u64 = START_MS / 1000;

pub struct Server {
    pub http: SocketAddr,
    pub grpc: SocketAddr,
    pub db: Database,
    pub clock: Arc<ManualClock>,
    pub state: State,
    /// Where a sidecar would find the store.
    pub socket: PathBuf,
    _folder: TempDir,
    /// The doors close when it is dropped.
    _open: watch::Sender<()>,
}

#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Server {
    pub async fn start() -> Server {
        Self::start_with(DoorOptions::default()).await
    }

    /// With the shipped catalogues in force.
    pub async fn governed() -> Server {
        let server = Self::start().await;
        let keyspace = Arc::new(kstone_keyspace::shipped().unwrap());
        Governor::govern(&server.db, keyspace, GovernorOptions::default()).unwrap();
        server
    }

    pub async fn start_with(options: DoorOptions) -> Server {
        let clock = Arc::new(ManualClock::at(START_MS));
        let env = Env { clock: clock.clone(), ..Env::memory() };
        let db = Database::open_with(env, "db", DatabaseOptions::default()).unwrap();
        let keyspace = Arc::new(kstone_keyspace::shipped().unwrap());
        let state = State::new(Arc::new(db.clone()), keyspace, clock.clone());
        let door = Door::new(state.clone(), options);
        let (open, closed) = watch::channel(());
        let is_closed = move || {
            let mut closed = closed.clone();
            async move { while closed.changed().await.is_ok() {} }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let http = listener.local_addr().unwrap();
        tokio::spawn(door.clone().serve_http(listener, is_closed()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let grpc = listener.local_addr().unwrap();
        tokio::spawn(door.clone().serve_grpc(listener, is_closed()));
        let folder = TempDir::new().unwrap();
        let socket = folder.path().join("kstone.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        tokio::spawn(door.serve_component(listener, is_closed()));
        Server { http, grpc, db, clock, state, socket, _folder: folder, _open: open }
    }

    pub async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> HttpResponse {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\
             Content-Length: {length}\r\n\r\n"
        );
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        // A door that refuses a request need not read all of it.
        let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        HttpResponse::parse(&answer)
    }

    pub async fn get(&self, key: &str) -> HttpResponse {
        self.send("GET", &format!("/v1.0/state/statestore/{key}"), "", "").await
    }

    pub async fn etag(&self, key: &str) -> String {
        self.get(key).await.headers["etag"].clone()
    }

    pub async fn save(&self, body: &str) -> HttpResponse {
        self.send("POST", "/v1.0/state/statestore", "", body).await
    }

    pub async fn delete(&self, key: &str, headers: &str) -> HttpResponse {
        self.send("DELETE", &format!("/v1.0/state/statestore/{key}"), headers, "").await
    }

    pub async fn bulk(&self, body: &str) -> HttpResponse {
        self.send("POST", "/v1.0/state/statestore/bulk", "", body).await
    }

    pub async fn query(&self, parameters: &str, body: &str) -> HttpResponse {
        let path = format!("/v1.0-alpha1/state/statestore/query{parameters}");
        self.send("POST", &path, "", body).await
    }

    pub async fn transact(&self, body: &str) -> HttpResponse {
        self.send("POST", "/v1.0/state/statestore/transaction", "", body).await
    }
}

impl HttpResponse {
    fn parse(answer: &[u8]) -> HttpResponse {
        let end = answer.windows(4).position(|it| it == b"\r\n\r\n").expect("a whole head");
        let head = std::str::from_utf8(&answer[..end]).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_lowercase(), value.to_owned())
        };
        HttpResponse {
            status,
            headers: lines.map(header).collect(),
            body: answer[end + 4..].to_vec(),
        }
    }

    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Checks that it is this refusal, and gives the message.
    pub fn refused(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{self:?} {:?}", self.text());
        let json = self.json();
        assert_eq!(json["errorCode"], code, "{json}");
        json["message"].as_str().unwrap().to_owned()
    }

    /// Checks that it was done.
    pub fn done(&self) {
        assert_eq!(self.status, 204, "{:?}", self.text());
        assert!(self.body.is_empty());
    }
}
