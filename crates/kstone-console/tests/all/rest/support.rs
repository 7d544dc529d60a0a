//! A console on a real socket, and a client for it that knows nothing but HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kstone::{Database, Durability};
use kstone_base::persons::LocalPersons;
use kstone_console::server_status::NoServerStatus;
use kstone_console::{Console, ConsoleOptions, Erasures, Token, serve};
use kstone_core::env::{SeededRandom, SystemClock, SystemRandom};
use kstone_keyspace::erasure::{Eraser, ReceiptKey};
use kstone_keyspace::{Governor, GovernorOptions, shipped};
use kstone_platform::{Platform, PlatformParts};
use kstone_ports::items::Items;
use kstone_ports::keys::Keys;
use kstone_redis::Redis;
use serde_json::Value as Json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// A server of its own for each test; it ends when it is dropped.
pub struct Fixture {
    pub at: SocketAddr,
    pub console: Arc<Console>,
    stop: Option<oneshot::Sender<()>>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Fixture {
    /// A console with everything.
    pub async fn new() -> Fixture {
        Fixture::with(|_| {}).await
    }

    /// The same with other options, or with something left out.
    pub async fn with(change: impl FnOnce(&mut Console)) -> Fixture {
        let db = Database::memory().unwrap().with_durability(Durability::Os);
        let redis = Redis::open(&db).unwrap();
        let random = Arc::new(SeededRandom::new(7));
        let options = GovernorOptions { random: random.clone(), ..GovernorOptions::default() };
        let governor = Governor::govern(&db, Arc::new(shipped().unwrap()), options).unwrap();
        let key = ReceiptKey::from_secret(&[9; 32]);
        let eraser =
            Eraser::embedded(&db, &redis, Arc::clone(&governor), key, Arc::new(SystemRandom));
        let eraser = Arc::new(eraser.unwrap());
        let items: Arc<dyn Items> = Arc::new(db);
        let keys: Arc<dyn Keys> = Arc::new(redis.keys(0).unwrap());
        let platform = platform(&items, &keys, &governor, &eraser).await;
        let mut console = Console {
            items,
            keys,
            platform: Some(Arc::clone(&platform)),
            governor: Some(governor),
            erasures: Some(Erasures::new(eraser, Some(platform.mastery.clone()))),
            status: Arc::new(NoServerStatus),
            clock: Arc::new(SystemClock::new()),
            random,
            options: ConsoleOptions { has_rate_limits: false, ..ConsoleOptions::default() },
        };
        change(&mut console);
        let console = Arc::new(console);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = serve(listener, Arc::clone(&console), async {
            let _ = stopped.await;
        });
        tokio::spawn(serving);
        Fixture { at, console, stop: Some(stop) }
    }

    /// Asks for something.
    pub async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], None).await
    }

    /// Sends JSON.
    pub async fn send(&self, method: &str, path: &str, body: &Json) -> Answer {
        self.ask(method, path, &[], Some(&body.to_string())).await
    }

    /// A request with these headers; a body is JSON unless they say otherwise.
    pub async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let has = |name: &str| headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !has("host") {
            head.push_str(&format!("Host: {}\r\n", self.at));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            if !has("content-type") {
                head.push_str("Content-Type: application/json\r\n");
            }
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        self.raw(&format!("{head}\r\n{}", body.unwrap_or_default())).await
    }

    /// Sends exactly this, and reads until the server closes the connection.
    pub async fn raw(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.at).await.unwrap();
        // A server that has seen enough closes before it has read everything.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes));
        let read = read.await.expect("it answers");
        assert!(read.is_ok() || !bytes.is_empty(), "{read:?}");
        Answer::parse(&bytes)
    }
}

/// A platform that does its work.
async fn platform(
    items: &Arc<dyn Items>,
    keys: &Arc<dyn Keys>,
    governor: &Arc<Governor>,
    eraser: &Arc<Eraser>,
) -> Arc<Platform> {
    let (eraser, governor) = (Arc::clone(eraser), Arc::clone(governor));
    let (clock, random) = (Arc::new(SystemClock::new()), Arc::new(SystemRandom));
    let parts = PlatformParts {
        counts: Some(Arc::clone(&governor) as _),
        persons: Some(Arc::new(LocalPersons { eraser, governor })),
        ..PlatformParts::new(Arc::clone(items), Arc::clone(keys), clock, random)
    };
    Platform::start(parts).await.unwrap()
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Answer {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer has a head");
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut answer = Answer { status, headers, body: body.to_owned() };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = unchunked(&answer.body);
        }
        answer
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The body, which must be JSON.
    #[track_caller]
    pub fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body of an answer that must have this status.
    #[track_caller]
    pub fn with_status(&self, status: u16) -> Json {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    /// An error that must have this status and code, and name this field.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str, field: Option<&str>) {
        assert_eq!(self.status, status, "{self:?}");
        let error = &self.json()["error"];
        assert_eq!(error["code"], code, "{self:?}");
        assert_eq!(error.get("field").and_then(Json::as_str), field, "{self:?}");
        assert!(error["message"].as_str().is_some_and(|it| !it.is_empty()), "{self:?}");
        assert_eq!(error["request_id"].as_str(), self.header("x-request-id"), "{self:?}");
    }
}

fn unchunked(mut rest: &str) -> String {
    let mut whole = String::new();
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&more[..size]);
        if size == 0 {
            break;
        }
        rest = &more[size + 2..];
    }
    whole
}

/// A token, for options.
pub fn token(text: &str) -> Option<Token> {
    Token::new(text)
}
