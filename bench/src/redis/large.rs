//! What takes long: ten million keys, a sorted set of a million members, and data ten times the
//! memory.

use super::report::{Run, ratio};
use super::server::{Durability, Name, Server, encode};
use super::tool;
use crate::Outcome;
use serde::Serialize;
use std::path::Path;

const KEYS: u64 = 10_000_000;
const MEMBERS: u64 = 1_000_000;
/// Ours in memory: enough for all of the smaller data set.
const ROOMY_BYTES: u64 = 1 << 30;

/// What was found.
#[derive(Serialize)]
pub struct Large {
    /// ZREVRANK on a warm set of a million members: ours, theirs.
    pub zrevrank: [Run; 2],
    /// Memory with ten million keys of 100 bytes, in bytes: ours, theirs.
    pub memory_bytes: [u64; 2],
    /// From start to first answer with those keys on disk, in milliseconds: ours, theirs.
    pub restart_ms: [f64; 2],
    /// GET and SET of a data set in memory and of one ten times the memory.
    pub beyond_memory: [[Run; 2]; 2],
}

/// Measures all of it.
pub fn measure(program: &Path, dir: &Path) -> Outcome<Large> {
    let start = |name, budget, part: &str| {
        Server::start(name, program, Durability::Interval, &dir.join(part), budget)
    };
    eprintln!("ZREVRANK on a million members");
    let mut zrevrank = Vec::new();
    for name in [Name::Keystone, Name::Redis] {
        let server = start(name, None, "zset")?;
        server.pour((0..MEMBERS).map(|nth| {
            let (score, member) = ((nth * 7919 % MEMBERS).to_string(), format!("member:{nth:012}"));
            encode(&["ZADD", "board", &score, &member])
        }))?;
        let what = ["zrevrank", "board", "member:__rand_int__"];
        tool::measure(&server, &what, 20_000, 1)?;
        zrevrank.push(tool::measure(&server, &what, 200_000, 1)?);
    }
    eprintln!("ten million keys");
    let (mut memory_bytes, mut restart_ms) = (Vec::new(), Vec::new());
    for name in [Name::Keystone, Name::Redis] {
        let server = start(name, None, "keys")?;
        fill(&server, KEYS)?;
        memory_bytes.push(server.memory_bytes());
        let server = server.restart(program, Durability::Interval, None)?;
        restart_ms.push(server.start_ms);
    }
    eprintln!("data ten times the memory");
    let mut beyond_memory = Vec::new();
    for budget in [ROOMY_BYTES, KEYS / 10 * 130 / 10] {
        let server = start(Name::Keystone, Some(budget), &format!("budget-{budget}"))?;
        fill(&server, KEYS / 10)?;
        let mut runs = Vec::new();
        for what in [["-t", "get"], ["-t", "set"]] {
            tool::measure(&server, &what, 100_000, 1)?;
            runs.push(tool::measure(&server, &what, 200_000, 1)?);
        }
        beyond_memory.push(pair(runs)?);
    }
    Ok(Large {
        zrevrank: pair(zrevrank)?,
        memory_bytes: pair(memory_bytes)?,
        restart_ms: pair(restart_ms)?,
        beyond_memory: pair(beyond_memory)?,
    })
}

fn fill(server: &Server, keys: u64) -> Outcome<()> {
    let value = "x".repeat(100);
    server.pour((0..keys).map(|nth| encode(&["SET", &format!("key:{nth:012}"), &value])))
}

fn pair<T>(values: Vec<T>) -> Outcome<[T; 2]> {
    values.try_into().map_err(|_| "two were to be measured".into())
}

impl Large {
    /// What is wanted, and what was found: name, measured, least or most, whether it holds.
    pub fn verdicts(&self) -> Vec<(String, f64, String, bool)> {
        let at_least = |what: &str, measured: f64, bar: f64| {
            (what.to_owned(), measured, format!("at least {bar}"), measured >= bar)
        };
        let at_most = |what: &str, measured: f64, bar: f64| {
            (what.to_owned(), measured, format!("at most {bar}"), measured <= bar)
        };
        let [in_memory, beyond] = &self.beyond_memory;
        vec![
            at_least("ZREVRANK of 1 M members, to redis", ratio(&self.zrevrank), 0.7),
            at_most(
                "memory of 10 M keys, to redis",
                self.memory_bytes[0] as f64 / self.memory_bytes[1] as f64,
                0.5,
            ),
            at_most("start with 10 M keys on disk, s", self.restart_ms[0] / 1e3, 1.0),
            at_least(
                "GET of ten times the memory, to GET in memory",
                beyond[0].per_second / in_memory[0].per_second,
                0.5,
            ),
            at_least(
                "SET of ten times the memory, to SET in memory",
                beyond[1].per_second / in_memory[1].per_second,
                0.5,
            ),
        ]
    }
}
