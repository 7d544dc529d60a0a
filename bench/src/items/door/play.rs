//! What is done to a server, what of it is timed, and how its answers are checked.
//!
//! A server is started once a round in a new folder, loaded, and plays all its workloads one after
//! the other, each with a warm-up of its own: starting Java and warming it for every single workload
//! would take most of the time.

use super::CONNECTIONS;
use super::load::{Generator, Load, Until};
use super::request::{Prepared, Signer};
use super::server::{Caller, Server, ServerName, Setup};
use crate::items::posts::{self, Post, TABLE};
use crate::random::{Rng, shuffled};
use crate::{Outcome, machine};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// The most that one BatchWriteItem takes.
const BATCH_LEN: usize = 25;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoorWorkload {
    /// Random gets.
    Get,
    /// Overwrites, each as durable as the server makes it before it answers.
    Put,
    /// The 20 posts of a random day.
    Query,
}

/// How long.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// Before the clock starts, in milliseconds; Java gets three times as much.
    pub warm_up_ms: u64,
    /// What is timed, in milliseconds.
    pub timed_ms: u64,
}

/// What one workload found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Which.
    pub workload: DoorWorkload,
    /// Answers per second.
    pub per_second: f64,
    /// The middle answer's time, in microseconds.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// Processor time of the server for one answer, in microseconds: what the ratio of two speeds
    /// hides when client and server share the cores.
    pub server_cpu_us: f64,
    /// Processor time of the load generator for one answer, in microseconds.
    pub client_cpu_us: f64,
}

/// What one server did in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Round {
    /// From its start on an empty folder to its first answer.
    pub start_ms: f64,
    /// One for each workload.
    pub samples: Vec<Sample>,
    /// The most memory that it had.
    pub peak_memory_bytes: u64,
}

impl DoorWorkload {
    /// In the order in which they are played and printed. Puts come last: what is read before is
    /// as it was loaded.
    pub const ALL: &[DoorWorkload] = &[DoorWorkload::Get, DoorWorkload::Query, DoorWorkload::Put];

    /// The name that is printed and parsed.
    pub fn as_str(self) -> &'static str {
        match self {
            DoorWorkload::Get => "GetItem",
            DoorWorkload::Put => "PutItem, sync",
            DoorWorkload::Query => "Query of 20",
        }
    }
}

/// Starts the server in the new folder `dir`, loads it, plays `workloads` and checks what is left.
pub fn round(
    name: ServerName,
    setup: &Setup,
    workloads: &[DoorWorkload],
    dir: &Path,
    posts: u32,
    timing: Timing,
    seed: u64,
) -> Outcome<Round> {
    let server = Server::start(name, setup, dir)?;
    let start_ms = server.start_ms;
    if name.stores() {
        load(&server, posts, seed)?;
    }
    let mut samples = Vec::new();
    let mut written = None;
    for &workload in workloads {
        let shares = shares(name, workload, &server.signer(), posts, seed);
        let mut generator = Generator::connect(server.address, shares)?;
        samples.push(play(&server, name, workload, &mut generator, timing)?);
        if workload == DoorWorkload::Put {
            written = Some(generator.sent().collect::<Vec<_>>());
        }
    }
    let peak_memory_bytes = server.peak_memory_bytes();
    if name.stores() {
        // Killed, not stopped: what it acknowledged is there without a goodbye.
        drop(server);
        let server = Server::start(name, setup, dir)?;
        check(&server, posts, seed, written.as_deref())?;
    }
    std::fs::remove_dir_all(dir)?;
    Ok(Round { start_ms, samples, peak_memory_bytes })
}

fn load(server: &Server, posts: u32, seed: u64) -> Outcome<()> {
    server.call("CreateTable", &posts::create_table_json().to_string())?;
    // Amazon's own makes tables in the background.
    let describe = json!({ "TableName": TABLE }).to_string();
    while server.call("DescribeTable", &describe)?["Table"]["TableStatus"] != "ACTIVE" {
        std::thread::sleep(Duration::from_millis(5));
    }
    let signer = server.signer();
    let ids = shuffled(posts, seed);
    let batches: Vec<&[u32]> = ids.chunks(BATCH_LEN).collect();
    // As many as the machine has cores for; more would only wait in a queue.
    let connections = 4;
    let shares = (0..connections).map(|nth| {
        batches.iter().skip(nth).step_by(connections).map(|ids| signer.batch(ids)).collect()
    });
    Generator::connect(server.address, shares.collect())?.run(Until::OnceThrough)?;
    Ok(())
}

/// The posts that a connection overwrites: nobody else does, so that their last version is known.
fn owned_posts(connection: u32, posts: u32, seed: u64) -> Vec<u32> {
    let owned = |id: &u32| id % CONNECTIONS == connection;
    shuffled(posts, seed + 1).into_iter().filter(owned).collect()
}

/// The version that a connection's `nth` put writes: 1 the first time through its posts, then 2,
/// then 1 again, because every request is made before the clock starts.
fn version_of(nth: usize, owned: usize) -> u32 {
    (nth / owned % 2) as u32 + 1
}

/// What each connection sends. The bare server gives everyone the answers for post 0.
fn shares(
    name: ServerName,
    workload: DoorWorkload,
    signer: &Signer,
    posts: u32,
    seed: u64,
) -> Vec<Vec<Prepared>> {
    let answered = |id| if name.stores() { id } else { 0 };
    let share = |connection: u32| {
        let mut rng = Rng::new(seed + 2 + u64::from(connection));
        let random_posts = (0..posts / CONNECTIONS).map(move |_| rng.below(posts));
        match workload {
            DoorWorkload::Get => random_posts.map(|id| signer.get(id, answered(id))).collect(),
            DoorWorkload::Query => random_posts.map(|id| signer.query(id, answered(id))).collect(),
            DoorWorkload::Put => {
                let owned = owned_posts(connection, posts, seed);
                (0..owned.len() * 2)
                    .map(|nth| Post {
                        id: owned[nth % owned.len()],
                        version: version_of(nth, owned.len()),
                    })
                    .map(|post| signer.put(&post))
                    .collect()
            }
        }
    };
    (0..CONNECTIONS).map(share).collect()
}

fn play(
    server: &Server,
    name: ServerName,
    workload: DoorWorkload,
    generator: &mut Generator,
    timing: Timing,
) -> Outcome<Sample> {
    let warm_up_factor = if name == ServerName::DynamodbLocal { 3 } else { 1 };
    let named = |failure| format!("{}: {}: {failure}", name.as_str(), workload.as_str());
    let warm_up = Duration::from_millis(timing.warm_up_ms * warm_up_factor);
    generator.run(Until::Elapsed(warm_up)).map_err(named)?;

    let (server_before, client_before) = (server.cpu()?, machine::cpu_time("self")?);
    let timed = Until::Elapsed(Duration::from_millis(timing.timed_ms));
    let Load { elapsed, mut latencies_us } = generator.run(timed).map_err(named)?;
    let server_cpu = server.cpu()? - server_before;
    let client_cpu = machine::cpu_time("self")? - client_before;

    latencies_us.sort_unstable();
    let answers = latencies_us.len();
    let percentile = |percent: usize| f64::from(latencies_us[(answers - 1) * percent / 100]);
    let per_answer_us = |cpu: Duration| cpu.as_secs_f64() * 1e6 / answers as f64;
    Ok(Sample {
        workload,
        per_second: answers as f64 / elapsed.as_secs_f64(),
        p50_us: percentile(50),
        p99_us: percentile(99),
        server_cpu_us: per_answer_us(server_cpu),
        client_cpu_us: per_answer_us(client_cpu),
    })
}

/// Every post is what was last written to it.
fn check(server: &Server, posts: u32, seed: u64, written: Option<&[usize]>) -> Outcome<()> {
    let mut caller = Caller::connect(server)?;
    for connection in 0..CONNECTIONS {
        let owned = owned_posts(connection, posts, seed);
        let puts = written.map_or(0, |counts| counts[connection as usize]);
        for (nth, &id) in owned.iter().enumerate() {
            let last = (nth < puts).then(|| nth + (puts - 1 - nth) / owned.len() * owned.len());
            let post = Post { id, version: last.map_or(0, |nth| version_of(nth, owned.len())) };
            let body = json!({
                "TableName": TABLE, "Key": posts::key_json(id), "ConsistentRead": true
            });
            let answer = caller.call("GetItem", &body.to_string())?;
            if answer["Item"] != post.to_json() {
                return Err(format!("{post:?}: found {answer}").into());
            }
        }
    }
    Ok(())
}
