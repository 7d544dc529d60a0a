//! A class of 30 over 60 days through the REST API of a real server, which is killed in the middle.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kstone::{Database, Durability};
use kstone_base::time::Moment;
use kstone_core::env::{SystemClock, SystemRandom};
use kstone_mastery::domain::LearningEvent;
use kstone_mastery::simulate::School;
use kstone_platform::{Platform, PlatformParts};
use kstone_redis::Redis;
use serde_json::{Value, json};

use crate::Fixture;
use crate::server::{Server, exchange};

const LEARNERS: usize = 30;
const DAYS: u32 = 60;
const EVENTS_TOGETHER: usize = 100;

fn start(fixture: &Fixture) -> (Server, String) {
    let doors = ["--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0", "--redis", "off"];
    let others = ["--dapr-http", "off", "--dapr-grpc", "off", "--rest-limits", "off"];
    let mut command = fixture.command();
    command.args(["serve", "--data", "db", "--keyspace", "shipped"]).args(doors).args(others);
    // Alerts by the hundred, which the API shows too.
    let server = Server::start_as(command.stderr(Stdio::null()));
    let console = server.greeting.iter().find_map(|line| line.strip_prefix("console   "));
    let url = console.unwrap().split_whitespace().next().unwrap();
    let url = url.trim_end_matches('/').to_owned();
    (server, url)
}

fn request(method: &str, path: &str, body: &Value) -> String {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn call(url: &str, method: &str, path: &str, body: &Value) -> Value {
    let (status, answer) = exchange(url, &request(method, path, body)).unwrap();
    assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
    serde_json::from_str(&answer).unwrap_or_default()
}

/// What counts of a mastery: not when it was computed, which differs.
fn essence(mastery: &Value) -> Value {
    json!({
        "mastery_score": mastery["mastery_score"],
        "level": mastery["level"],
        "components": mastery["components"],
        "version": mastery["version"],
    })
}

/// The same events in this process, where nothing is killed.
fn expected(events: &[LearningEvent]) -> BTreeMap<String, Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let db = Database::memory().unwrap().with_durability(Durability::Os);
        let keys = Redis::open(&db).unwrap().keys(0).unwrap();
        let (clock, random) = (Arc::new(SystemClock::new()), Arc::new(SystemRandom));
        let parts = PlatformParts::new(Arc::new(db), Arc::new(keys), clock, random);
        let engine = Platform::prepare(parts).await.unwrap().mastery.clone();
        let mut known = BTreeMap::new();
        for done in engine.ingest_many(events).await {
            let mastery = done.unwrap().mastery;
            known.insert(mastery.student_id.clone(), essence(&json!(mastery)));
        }
        known
    })
}

#[test]
fn a_class_of_30_over_60_days_through_rest_survives_a_kill_in_the_middle() {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let now = Moment::from_epoch_ms(since_1970.as_millis() as u64);
    let school = School::new(6, LEARNERS);
    let learners = school.learners();
    let mut events: Vec<LearningEvent> =
        learners.iter().flat_map(|it| school.events_of(it, DAYS, now)).collect();
    // As they would come in: day by day, learners mixed. Who is in the west ends the day later.
    events.sort_by_key(|event| event.occurred_at);
    let batches: Vec<Value> = events.chunks(EVENTS_TOGETHER).map(|some| json!(some)).collect();

    let fixture = Fixture::new();
    let (mut server, mut url) = start(&fixture);
    for class in school.classes() {
        let path = format!("/schools/{}/classes/{}", School::ID, class.class_id);
        call(&url, "PUT", &path, &json!({ "name": class.name }));
    }
    for learner in learners {
        let profile = json!({ "display_name": learner.display_name,
            "time_zone": "UTC", "school_id": School::ID, "class_ids": [learner.class_id] });
        call(&url, "PUT", &format!("/students/{}/profile", learner.student_id), &profile);
    }
    for (at, batch) in batches.iter().enumerate() {
        if at == batches.len() / 2 {
            // Nobody knows how much of it was done when the server is gone.
            let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
            stream.write_all(request("POST", "/events", batch).as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            server.kill();
            (server, url) = start(&fixture);
        }
        let done = call(&url, "POST", "/events", batch);
        assert_eq!(done["refused"], 0, "{done}");
    }

    for (student, expected) in expected(&events) {
        let mastery = call(&url, "GET", &format!("/students/{student}/mastery"), &Value::Null);
        assert_eq!(essence(&mastery), expected, "{student}");
        let rebuilt = call(&url, "POST", &format!("/students/{student}/rebuild"), &Value::Null);
        assert_eq!(essence(&rebuilt), expected, "{student}");
    }
    let path = format!("/schools/{}/classes/{}", School::ID, school.classes()[0].class_id);
    let class = call(&url, "GET", &path, &Value::Null);
    assert_eq!(class["learners"].as_array().unwrap().len(), LEARNERS);
    // The workers of the server raise alerts about those who struggle.
    let alerts = loop {
        let alerts = call(&url, "GET", "/alerts", &Value::Null);
        if !alerts["items"].as_array().unwrap().is_empty() {
            break alerts;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(alerts["items"][0]["kind"], "struggle", "{alerts}");
    let (status, _) = server.stop("-TERM");
    assert_eq!(status.code(), Some(0));
}
