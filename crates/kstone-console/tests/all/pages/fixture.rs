//! A console on a store of its own, and what a browser would see of it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use kstone::ops::PutItem;
use kstone::table::{KeyAttribute, KeySchema, TableSpec};
use kstone::{Database, Durability, Item};
use kstone_console::server_status::{DoorStatus, EngineStatus, ServerStatus, StripeStatus};
use kstone_console::{Console, ConsoleOptions, Erasures};
use kstone_core::env::{ManualClock, SeededRandom, SystemRandom};
use kstone_core::meter::Reading;
use kstone_keyspace::erasure::{Eraser, ReceiptKey};
use kstone_keyspace::{Governor, GovernorOptions, shipped};
use kstone_platform::{Platform, PlatformParts};
use kstone_redis::Redis;
use tower::ServiceExt as _;

/// 2026-03-10 12:00 UTC.
pub const NOW_MS: u64 = 1_773_144_000_000;

pub struct Fixture {
    pub console: Arc<Console>,
    pub clock: Arc<ManualClock>,
    router: Router,
}

/// What came back.
#[derive(Debug)]
pub struct Shown {
    pub status: StatusCode,
    pub location: Option<String>,
    pub retry_after: Option<u64>,
    pub body: String,
}

impl Fixture {
    /// A store without catalogues, in a process that tells nothing of itself.
    pub async fn bare() -> Fixture {
        let (console, clock, _) = parts();
        Fixture::of(console, clock)
    }

    /// A store with the shipped catalogues in force, and the platform on it.
    pub async fn governed() -> Fixture {
        Fixture::with_limits(false).await
    }

    /// The same where nobody may ask too often.
    pub async fn limited() -> Fixture {
        Fixture::with_limits(true).await
    }

    async fn with_limits(has_rate_limits: bool) -> Fixture {
        let (mut console, clock, db) = parts();
        let redis = Redis::open(&db).unwrap();
        let random = Arc::new(SeededRandom::new(7));
        let options = GovernorOptions { random: random.clone(), ..GovernorOptions::default() };
        let governor = Governor::govern(&db, Arc::new(shipped().unwrap()), options).unwrap();
        let key = ReceiptKey::from_secret(&[9; 32]);
        let eraser =
            Eraser::embedded(&db, &redis, Arc::clone(&governor), key, Arc::new(SystemRandom));
        console.keys = Arc::new(redis.keys(0).unwrap());
        console.governor = Some(governor);
        console.status = Arc::new(SomeServerStatus);
        console.options.has_rate_limits = has_rate_limits;
        let parts = PlatformParts::new(
            Arc::clone(&console.items),
            Arc::clone(&console.keys),
            clock.clone(),
            random,
        );
        let platform = Platform::prepare(parts).await.unwrap();
        let engine = platform.mastery.clone();
        console.platform = Some(platform);
        console.erasures = Some(Erasures::new(Arc::new(eraser.unwrap()), Some(engine)));
        Fixture::of(console, clock)
    }

    fn of(console: Console, clock: Arc<ManualClock>) -> Fixture {
        let console = Arc::new(console);
        Fixture { router: kstone_console::router(&console), console, clock }
    }

    pub async fn get(&self, path: &str) -> Shown {
        self.ask(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// Sends a form, as a page of the console would.
    pub async fn post(&self, path: &str, form: &str) -> Shown {
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin")
            .body(Body::from(form.to_owned()));
        self.ask(request.unwrap()).await
    }

    pub async fn ask(&self, request: Request<Body>) -> Shown {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let text = |name| response.headers().get(name).map(|it| it.to_str().unwrap().to_owned());
        Shown {
            status: response.status(),
            location: text(header::LOCATION),
            retry_after: text(header::RETRY_AFTER).map(|it| it.parse().unwrap()),
            body: {
                let body = response.into_body().collect().await.unwrap().to_bytes();
                String::from_utf8(body.to_vec()).unwrap()
            },
        }
    }

    /// A page that is there.
    pub async fn page(&self, path: &str) -> String {
        let shown = self.get(path).await;
        assert_eq!(shown.status, StatusCode::OK, "{path}: {}", shown.body);
        shown.body
    }

    pub async fn make_table(&self, name: &str) {
        let key = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk"));
        let spec = TableSpec { name: name.to_owned(), key, ..TableSpec::default() };
        self.console.items.require_table(&spec, None).await.unwrap();
    }

    pub async fn put(&self, table: &str, item: Item) {
        let put = PutItem { table: table.to_owned(), item, ..PutItem::default() };
        self.console.items.put(&put).await.unwrap();
    }

    /// Carries out a command of Redis.
    pub async fn redis(&self, words: &[&[u8]]) {
        let words: Vec<Bytes> = words.iter().map(|word| Bytes::copy_from_slice(word)).collect();
        self.console.keys.command(&words).await.unwrap();
    }
}

fn parts() -> (Console, Arc<ManualClock>, Database) {
    let db = Database::memory().unwrap().with_durability(Durability::Os);
    let redis = Redis::open(&db).unwrap();
    let clock = Arc::new(ManualClock::at(NOW_MS));
    let console = Console {
        items: Arc::new(db.clone()),
        keys: Arc::new(redis.keys(0).unwrap()),
        platform: None,
        governor: None,
        erasures: None,
        status: Arc::new(kstone_console::server_status::NoServerStatus),
        clock: clock.clone(),
        random: Arc::new(SeededRandom::new(7)),
        options: ConsoleOptions { has_rate_limits: false, ..ConsoleOptions::default() },
    };
    (console, clock, db)
}

#[derive(Debug)]
struct SomeServerStatus;

impl ServerStatus for SomeServerStatus {
    fn doors(&self) -> Vec<DoorStatus> {
        vec![DoorStatus {
            name: "DynamoDB".to_owned(),
            address: "http://127.0.0.1:8000".to_owned(),
            durability: "sync".to_owned(),
            reading: Reading { connections: 3, operations: 12_345, took_us: vec![0, 0, 12_345] },
        }]
    }

    fn engine(&self) -> EngineStatus {
        let stripe = |n: u64| StripeStatus { records: n, ..StripeStatus::default() };
        EngineStatus {
            records: 777,
            stripes: (0..256).map(stripe).collect(),
            ..EngineStatus::default()
        }
    }

    fn started_at_ms(&self) -> u64 {
        NOW_MS - 90_000
    }

    fn place(&self) -> String {
        "/var/lib/<kstone>".to_owned()
    }
}

/// The addresses that a page's links lead to, those to files left out.
pub fn links(page: &str) -> Vec<String> {
    let mut links = Vec::new();
    for tag in page.split("<a ").skip(1) {
        let tag = tag.split('>').next().unwrap();
        if tag.ends_with(" download") {
            continue;
        }
        let (_, rest) = tag.split_once("href=\"").expect("a link leads somewhere");
        links.push(rest.split('"').next().unwrap().replace("&amp;", "&"));
    }
    links
}

/// What must be true of every whole page.
pub fn check(path: &str, page: &str) {
    let number = |what: &str| page.matches(what).count();
    assert!(page.starts_with("<!DOCTYPE html>"), "{path}");
    assert_eq!(number("<h1"), 1, "{path}: one first heading");
    assert_eq!(number("<main "), 1, "{path}");
    assert_eq!(number("<title>"), 1 + svg_titles(page), "{path}");
    assert!(page.contains("class=\"skip\""), "{path}");
    assert!(!page.contains(" style=") && !page.contains("<style"), "{path}: the policy forbids it");
    assert_eq!(number("<script"), 1, "{path}: only the console's own, from its own file");
    assert_eq!(number("<table>"), number("<caption>"), "{path}: each table says what it is");
    assert_eq!(
        number("<th"),
        number("scope=\"") + number("<thead"),
        "{path}: each heading has a scope"
    );
    assert!(!page.contains("NaN") && !page.contains("inf%"), "{path}");
}

/// Pictures and their parts have titles too.
fn svg_titles(page: &str) -> usize {
    page.split("<svg")
        .skip(1)
        .map(|svg| svg.split("</svg").next().unwrap().matches("<title>").count())
        .sum()
}
