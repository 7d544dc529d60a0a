//! Clients of a door whose process is killed with SIGKILL, again and again. Each works on keys of
//! its own and knows what must be there: with `sync` everything that was acknowledged, with
//! `interval` a beginning of it; and what moves between keys is neither lost nor doubled.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use kstone::Durability;
use kstone_redis::Value;

use crate::dice::Dice;
use crate::redis::Command;
use crate::redis::server::Process;
use crate::redis::wire::Wire;

/// How many things each client moves around.
const THINGS: i64 = 12;
/// What the two accounts of a client hold together.
const MONEY: i64 = 1000;

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many clients at once.
    pub clients: usize,
    /// How often the process is killed.
    pub rounds: u64,
    /// After at most so many replies.
    pub replies_max: usize,
    /// Repeats the choices, though not the moments.
    pub seed: u64,
    /// What replies promise.
    pub durability: Durability,
    /// Where the database is; a new folder in the temporary folder if `None`.
    pub folder: Option<PathBuf>,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// How often the process was killed.
    pub kills: u64,
    /// How many replies there were.
    pub replies: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} replies, {} kills, nothing lost", self.replies, self.kills)
    }
}

/// What a client knows of its keys.
#[derive(Debug, Clone, Copy, Default)]
struct ClientState {
    /// Its counter: at least, and at most.
    counted: (i64, i64),
    /// How long its log is: at least, and at most.
    logged: (i64, i64),
}

/// Runs rounds of work and killing.
///
/// # Errors
/// What was lost, doubled or torn.
pub fn run(plan: &Plan, program: &Path) -> Result<Report, String> {
    let made = std::env::temp_dir().join(format!("kstone-redis-crash-{}", std::process::id()));
    let folder = plan.folder.clone().unwrap_or(made);
    let dice = Dice::new(plan.seed);
    let mut known = vec![ClientState::default(); plan.clients];
    let mut report = Report::default();
    for round in 0..=plan.rounds {
        let process = Process::doors(program, &folder, plan.durability);
        let mut process = process.map_err(|error| format!("start the doors: {error}"))?;
        for (n, known) in known.iter_mut().enumerate() {
            let checked = check(process.redis, n, known, plan.durability, round == 0);
            checked.map_err(|what| format!("after {round} kills, client {n}: {what}"))?;
        }
        if round == plan.rounds {
            break;
        }
        let replies_max = plan.replies_max / 2 + dice.below(plan.replies_max / 2 + 1);
        let replies = AtomicUsize::new(0);
        let address = process.redis;
        thread::scope(|scope| {
            for (n, known) in known.iter_mut().enumerate() {
                let (replies, dice) = (&replies, Dice::new(dice.number()));
                // The connection ends when the process is killed: that is not an error.
                scope.spawn(move || work(address, n, known, replies, &dice));
            }
            while replies.load(Ordering::Relaxed) < replies_max {
                thread::yield_now();
            }
            process.kill()
        })
        .map_err(|error| format!("kill: {error}"))?;
        report.kills += 1;
        report.replies += replies.into_inner();
    }
    if plan.folder.is_none() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    Ok(report)
}

/// Sends commands until the connection ends.
fn work(
    address: SocketAddr,
    n: usize,
    known: &mut ClientState,
    replies: &AtomicUsize,
    dice: &Dice,
) -> io::Result<()> {
    let mut wire = Wire::connect(address)?;
    loop {
        match dice.below(8) {
            0 | 1 => {
                known.counted.1 += 1;
                if let Value::Integer(count) = wire.say(&format!("INCR count:{n}"))? {
                    known.counted = (count, count);
                }
            }
            2 | 3 => {
                known.logged.1 += 1;
                let next = known.logged.1 - 1;
                if let Value::Integer(len) = wire.say(&format!("RPUSH log:{n} {next}"))? {
                    known.logged = (len, len);
                }
            }
            4 => {
                let amount = dice.below(50) as i64;
                wire.say("MULTI")?;
                wire.say(&format!("HINCRBY account:{n}:a money -{amount}"))?;
                wire.say(&format!("HINCRBY account:{n}:b money {amount}"))?;
                wire.say("EXEC")?;
            }
            5 => {
                let (from, to) = (dice.below(2), dice.below(2));
                let ends = ["LEFT", "RIGHT"];
                let (one, other) = (dice.pick(&ends), dice.pick(&ends));
                wire.say(&format!("LMOVE list:{n}:{from} list:{n}:{to} {one} {other}"))?;
            }
            6 => {
                let (from, member) = (dice.below(2), dice.below(THINGS as usize));
                wire.say(&format!("SMOVE set:{n}:{from} set:{n}:{} {member}", 1 - from))?;
            }
            _ => {
                let from = dice.below(2);
                wire.say(&format!("RENAMENX name:{n}:{from} name:{n}:{}", 1 - from))?;
            }
        }
        replies.fetch_add(1, Ordering::Relaxed);
    }
}

fn check(
    address: SocketAddr,
    n: usize,
    known: &mut ClientState,
    durability: Durability,
    is_new: bool,
) -> Result<(), String> {
    let mut wire = Wire::connect(address).map_err(|error| error.to_string())?;
    let mut ask = |line: String| wire.ask(&Command::of(&line)).map_err(|error| error.to_string());
    if is_new {
        for thing in 0..THINGS {
            ask(format!("RPUSH list:{n}:0 {thing}"))?;
            ask(format!("SADD set:{n}:0 {thing}"))?;
        }
        ask(format!("HSET account:{n}:a money {MONEY}"))?;
        ask(format!("HSET name:{n}:0 a 1 b 2"))?;
        // Later promises rest on this.
        return match ask("SAVE".to_owned())? {
            Value::Error(message) => Err(format!("SAVE: {}", message.escape_ascii())),
            _ => Ok(()),
        };
    }
    let is_sync = durability == Durability::Sync;
    let number = |value: Value| match value {
        Value::Integer(number) => number,
        Value::Bulk(text) => String::from_utf8_lossy(&text).parse().unwrap_or(i64::MIN),
        _ => 0,
    };
    let within = |what: &str, found: i64, (least, most): (i64, i64)| {
        let least = if is_sync { least } else { 0 };
        match (least..=most).contains(&found) {
            true => Ok((found, found)),
            false => Err(format!("{what} is {found}, not from {least} to {most}")),
        }
    };
    known.counted = within("the counter", number(ask(format!("GET count:{n}"))?), known.counted)?;
    let log = texts(ask(format!("LRANGE log:{n} 0 -1"))?);
    known.logged = within("the log", log.len() as i64, known.logged)?;
    if !log.iter().enumerate().all(|(place, entry)| *entry == place.to_string()) {
        return Err(format!("the log has holes: {log:?}"));
    }
    let money = number(ask(format!("HGET account:{n}:a money"))?)
        + number(ask(format!("HGET account:{n}:b money"))?);
    if money != MONEY {
        return Err(format!("half a MULTI was done: {money} instead of {MONEY}"));
    }
    for (kind, all) in [("list", "LRANGE"), ("set", "SMEMBERS")] {
        let range = if kind == "list" { " 0 -1" } else { "" };
        let mut things = texts(ask(format!("{all} {kind}:{n}:0{range}"))?);
        things.extend(texts(ask(format!("{all} {kind}:{n}:1{range}"))?));
        let different: BTreeSet<&String> = things.iter().collect();
        if things.len() as i64 != THINGS || different.len() != things.len() {
            return Err(format!("moved between {kind}s, and lost or doubled: {things:?}"));
        }
    }
    match number(ask(format!("EXISTS name:{n}:0 name:{n}:1"))?) {
        1 => Ok(()),
        names => Err(format!("what was renamed has {names} names")),
    }
}

fn texts(value: Value) -> Vec<String> {
    let Value::Array(items) = value else { return Vec::new() };
    let text = |item| match item {
        Value::Bulk(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => format!("{other:?}"),
    };
    items.into_iter().map(text).collect()
}
