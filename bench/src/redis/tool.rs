//! `redis-benchmark`: what it is asked to do, and what it says.

use super::report::{Row, Run};
use super::server::{Durability, Server};
use crate::Outcome;
use std::process::Command;

/// How many different keys, fields and members there are.
pub const KEYS: u64 = 1_000_000;

/// One of redis-benchmark's tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// As it is chosen.
    pub name: &'static str,
    /// What has to be there first: the same test of another name, for as many requests.
    before: Option<&'static str>,
    /// How many requests for each that an ordinary test makes: some do a hundred things at once.
    share: f64,
}

impl Test {
    /// Those that people look at.
    pub const ALL: [Test; 12] = [
        Test::new("set", None, 1.0),
        Test::new("get", Some("set"), 1.0),
        Test::new("incr", None, 1.0),
        Test::new("lpush", None, 1.0),
        Test::new("rpop", Some("lpush"), 1.0),
        Test::new("hset", None, 1.0),
        Test::new("sadd", None, 1.0),
        Test::new("zadd", None, 1.0),
        Test::new("zpopmin", Some("zadd"), 1.0),
        Test::new("xadd", None, 1.0),
        Test::new("lrange_100", None, 0.3),
        Test::new("mset", None, 0.3),
    ];

    const fn new(name: &'static str, before: Option<&'static str>, share: f64) -> Test {
        Test { name, before, share }
    }

    fn requests(self, durability: Durability, pipeline: u32, hurry: u64) -> u64 {
        let usual = match (durability, pipeline) {
            (Durability::Interval, 1) => 200_000.0,
            (Durability::Interval, _) => 800_000.0,
            (Durability::Sync, 1) => 50_000.0,
            (Durability::Sync, _) => 200_000.0,
        };
        ((usual * self.share) as u64 / hurry).max(1000)
    }
}

/// Fails, with what to do about it, where Redis's programs are missing.
pub fn check() -> Outcome<()> {
    for program in ["redis-benchmark", "redis-server"] {
        if Command::new(program).arg("--version").output().is_err() {
            return Err(format!("{program} is missing: apt-get install redis-server").into());
        }
    }
    Ok(())
}

/// Runs one test on an empty server.
pub fn run(server: &mut Server, row: &Row, hurry: u64) -> Outcome<Run> {
    server.call(&["FLUSHALL"])?;
    let requests = row.test.requests(row.durability, row.pipeline, hurry);
    if let Some(before) = row.test.before {
        play(server, &["-t", before], requests, row.pipeline.max(16))?;
    }
    let value = "x".repeat(100);
    // This version of redis-benchmark has no test of streams: it is given the command.
    let what = match row.test.name {
        "xadd" => vec!["xadd", "mystream", "*", "myfield", &value],
        name => vec!["-t", name],
    };
    measure(server, &what, requests, row.pipeline)
}

/// Plays a test, or a command of its own, and measures it.
pub fn measure(server: &Server, what: &[&str], requests: u64, pipeline: u32) -> Outcome<Run> {
    let cpu = server.cpu()?;
    let (per_second, p50_ms, p99_ms) = play(server, what, requests, pipeline)?;
    let cpu = server.cpu()?.saturating_sub(cpu);
    Ok(Run { per_second, p50_ms, p99_ms, server_cpu_us: cpu.as_secs_f64() * 1e6 / requests as f64 })
}

fn play(server: &Server, what: &[&str], requests: u64, pipeline: u32) -> Outcome<(f64, f64, f64)> {
    let mut command = Command::new("redis-benchmark");
    command.args(["-h", "127.0.0.1", "-p", &server.address.port().to_string()]);
    command.args(["-c", "50", "-d", "100", "--csv"]);
    command.args(["-n", &requests.to_string(), "-r", &KEYS.to_string()]);
    command.args(["-P", &pipeline.to_string()]);
    let said = command.args(what).output()?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    // "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95…","p99…","max…": the
    // last line is the test that was asked for, after what it needed.
    let fields: Option<Vec<f64>> = text.lines().last().map(|line| {
        let fields = line.split("\",\"").skip(1);
        fields.filter_map(|field| field.trim_matches('"').parse().ok()).collect()
    });
    match fields.as_deref() {
        Some([rps, _, _, p50, _, p99, ..]) if said.status.success() => Ok((*rps, *p50, *p99)),
        _ => {
            let error = String::from_utf8_lossy(&said.stderr);
            Err(format!("redis-benchmark {what:?}: {text}{error}").into())
        }
    }
}
