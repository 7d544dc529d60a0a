//! The same random commands to two: the Redis door and Redis's own server over sockets, or the
//! library and a plain model of it with a clock that the test moves. Same replies, same contents.
//!
//! A case is a few dozen steps on empty databases; its seed repeats it. What differs is shrunk to
//! few steps. What is known to differ, and why:
//!
//! - An index, a cursor or a choice that depends on the shape in memory (SCAN's cursors, SPOP and
//!   RANDOMKEY of one, OBJECT ENCODING) is not asked for: each server chooses its own.
//! - Sets and hashes have no order: their members are sorted before they are compared. The sign of a
//!   score of -0 is left out (see [`contents`]).
//! - DBSIZE counts what has expired until it is reclaimed, in either server: it is compared only
//!   where nothing expires on the way.
//! - `is_known` lists the rest.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use kstone::{Database, DatabaseOptions};
use kstone_core::env::{Env, ManualClock, MemoryVfs, SeededRandom};
use kstone_redis::{Redis, Session, Value};

use crate::dice::Dice;
use crate::redis::contents::{self, plain, text};
use crate::redis::draw::{Draw, TEMPLATES, TIMED, WRONG};
use crate::redis::plain::{self as model, PlainRedis};
use crate::redis::wire::Wire;
use crate::redis::{Command, server};

/// How many steps a case has.
const CASE_STEPS: usize = 80;
/// What time it is when a model begins.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many commands to send at least.
    pub commands: usize,
    /// The first case's seed; each next case has the next.
    pub seed: u64,
    /// After how many different differences to stop.
    pub differences_max: usize,
}

/// One thing that both are to do.
#[derive(Debug, Clone)]
pub enum Step {
    /// A command.
    Ask(Command),
    /// MULTI, commands, EXEC.
    Together(Vec<Command>),
    /// A key expires, and both are asked until it has.
    Expire(String),
    /// Time passes, where the test decides.
    Pass(u64),
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Ask(command) => write!(out, "{command}"),
            Step::Together(commands) => {
                write!(out, "MULTI")?;
                commands.iter().try_for_each(|command| write!(out, "; {command}"))?;
                write!(out, "; EXEC")
            }
            Step::Expire(key) => write!(out, "{key} expires"),
            Step::Pass(ms) => write!(out, "{ms} ms pass"),
        }
    }
}

/// Somebody who can be asked.
pub trait Subject {
    /// Carries out a command.
    ///
    /// # Errors
    /// If there is no reply.
    fn ask(&mut self, command: &Command) -> Result<Value, String>;

    /// Carries out commands as one.
    ///
    /// # Errors
    /// If there is no reply.
    fn together(&mut self, commands: &[Command]) -> Result<Value, String> {
        self.ask(&Command::of("MULTI"))?;
        for command in commands {
            self.ask(command)?;
        }
        self.ask(&Command::of("EXEC"))
    }

    /// Time passes, if it is the test's to decide.
    fn pass(&mut self, _ms: u64) {}
}

impl Subject for Wire {
    fn ask(&mut self, command: &Command) -> Result<Value, String> {
        Wire::ask(self, command).map_err(|error| format!("{command}: {error}"))
    }
}

/// The library, with a clock that stands still until it is moved.
#[derive(Debug)]
pub struct Library {
    clock: Arc<ManualClock>,
    database: Database,
    session: Session,
}

impl Library {
    /// An empty database in memory.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new() -> Result<Library, String> {
        let clock = Arc::new(ManualClock::at(START_MS));
        let env = Env {
            vfs: Arc::new(MemoryVfs::new()),
            clock: Arc::clone(&clock) as _,
            random: Arc::new(SeededRandom::new(1)),
            threads: None,
        };
        let database = Database::open_with(env, "db", DatabaseOptions::default());
        let database = database.map_err(|error| error.to_string())?;
        let session = Redis::open(&database).map_err(|error| error.to_string())?.session();
        Ok(Library { clock, database, session })
    }
}

impl Subject for Library {
    fn ask(&mut self, command: &Command) -> Result<Value, String> {
        Ok(self.session.call(&command.words()))
    }

    fn pass(&mut self, ms: u64) {
        self.clock.advance(ms);
        // What has expired is reclaimed some time later: both before and after, it is not there.
        if ms.is_multiple_of(3) {
            let _ = self.database.run_background();
        }
    }
}

impl Subject for PlainRedis {
    fn ask(&mut self, command: &Command) -> Result<Value, String> {
        self.carry_out(command).ok_or_else(|| format!("the model does not know {command}"))
    }

    fn together(&mut self, commands: &[Command]) -> Result<Value, String> {
        let replies: Result<_, _> = commands.iter().map(|command| self.ask(command)).collect();
        Ok(Value::Array(replies?))
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
    }
}

/// Two who should agree: what is tested, and who is right.
#[allow(missing_debug_implementations, reason = "one of them is a trait object")]
pub struct Pair {
    ours: Box<dyn Subject>,
    theirs: Box<dyn Subject>,
    is_model: bool,
}

impl Pair {
    /// The library and the plain model.
    ///
    /// # Errors
    /// If the library cannot be opened.
    pub fn with_model() -> Result<Pair, String> {
        let (ours, theirs) = (Box::new(Library::new()?), Box::new(PlainRedis::new(START_MS)));
        Ok(Pair { ours, theirs, is_model: true })
    }

    /// A door and Redis's own server.
    ///
    /// # Errors
    /// If one of them does not listen.
    pub fn with_server(
        door: &crate::server::Door,
        theirs: &server::Process,
    ) -> Result<Pair, String> {
        let connect = |address| Wire::connect(address).map_err(|error| format!("{error}"));
        let (ours, theirs) = (connect(door.address())?, connect(theirs.redis)?);
        Ok(Pair { ours: Box::new(ours), theirs: Box::new(theirs), is_model: false })
    }

    fn reset(&mut self) -> Result<(), String> {
        for subject in [&mut self.ours, &mut self.theirs] {
            // An earlier case may have left a transaction open.
            subject.ask(&Command::of("SELECT 0"))?;
            subject.ask(&Command::of("FLUSHALL"))?;
        }
        Ok(())
    }

    /// What the step shows to be different.
    fn step(&mut self, step: &Step) -> Result<Option<String>, String> {
        match step {
            Step::Ask(command) => {
                let (ours, theirs) = (self.ours.ask(command)?, self.theirs.ask(command)?);
                let (ours, theirs) = (plain(command, ours), plain(command, theirs));
                Ok((!self.agree(command, &ours, &theirs)).then(|| told(&ours, &theirs)))
            }
            Step::Together(commands) => {
                let ours = self.ours.together(commands)?;
                let theirs = self.theirs.together(commands)?;
                let (Value::Array(ours), Value::Array(theirs)) = (&ours, &theirs) else {
                    let same = text(&ours) == text(&theirs);
                    return Ok((!same).then(|| told(&ours, &theirs)));
                };
                if ours.len() != commands.len() || theirs.len() != commands.len() {
                    return Ok(Some(format!("{} and {} replies", ours.len(), theirs.len())));
                }
                for (command, (ours, theirs)) in commands.iter().zip(ours.iter().zip(theirs)) {
                    let ours = plain(command, ours.clone());
                    let theirs = plain(command, theirs.clone());
                    if !self.agree(command, &ours, &theirs) {
                        return Ok(Some(format!("{command}:\n{}", told(&ours, &theirs))));
                    }
                }
                Ok(None)
            }
            Step::Expire(key) => {
                for subject in [&mut self.ours, &mut self.theirs] {
                    subject.ask(&Command::of(&format!("PEXPIRE {key} 1")))?;
                    subject.pass(2);
                    let exists = Command::of(&format!("EXISTS {key}"));
                    while subject.ask(&exists)? != Value::Integer(0) {
                        std::thread::yield_now();
                    }
                }
                Ok(None)
            }
            Step::Pass(ms) => {
                self.ours.pass(*ms);
                self.theirs.pass(*ms);
                Ok(None)
            }
        }
    }

    fn agree(&self, command: &Command, ours: &Value, theirs: &Value) -> bool {
        match (ours, theirs) {
            // The model knows only what kind of error it is.
            (Value::Error(ours), Value::Error(theirs)) if self.is_model => ours.starts_with(theirs),
            _ => ours == theirs || is_known(command, ours, theirs),
        }
    }

    /// Runs a case from an empty database. Answers how many steps it took to see a difference, and
    /// which.
    fn run(&mut self, steps: &[Step]) -> Result<Option<(usize, String)>, String> {
        self.reset()?;
        for (n, step) in steps.iter().enumerate() {
            if let Some(what) = self.step(step)? {
                return Ok(Some((n + 1, what)));
            }
        }
        let ours = contents::read(|command| self.ours.ask(command))?;
        let theirs = contents::read(|command| self.theirs.ask(command))?;
        let what = contents::difference(&ours, &theirs);
        Ok(what.map(|what| (steps.len(), format!("afterwards, {what}"))))
    }
}

/// Differences that are as they should be: an error repeats what it did not understand, and our
/// errors are text.
fn is_known(command: &Command, ours: &Value, theirs: &Value) -> bool {
    let is_text = |word: &Vec<u8>| word.iter().all(|byte| (b' '..=b'~').contains(byte));
    let start = |message: &[u8]| message.get(..12).map(<[u8]>::to_vec);
    match (ours, theirs) {
        (Value::Error(ours), Value::Error(theirs)) => {
            !command.0.iter().all(is_text) && start(ours) == start(theirs)
        }
        _ => false,
    }
}

fn told(ours: &Value, theirs: &Value) -> String {
    format!("  ours:   {}\n  theirs: {}", text(ours), text(theirs))
}

/// Draws a case.
fn steps(dice: &Dice, is_model: bool, now_ms: u64) -> Vec<Step> {
    let draw = Draw::new(dice, now_ms);
    let templates: Vec<&str> = match is_model {
        true => TEMPLATES.iter().chain(TIMED).copied().collect(),
        false => TEMPLATES.iter().chain(WRONG).copied().collect(),
    };
    // A case keeps to a few of them, so that they meet on the same keys.
    let few: Vec<&str> = (0..24).map(|_| *dice.pick(&templates)).collect();
    let command = || loop {
        let of = if dice.one_in(3) { &templates } else { &few };
        let command = draw.command(of);
        if !is_model || model::knows(&command) {
            return command;
        }
    };
    let key = || format!("{}{}", dice.pick(&["s", "l", "t", "z", "h"]), dice.below(3));
    let step = |_| match dice.below(40) {
        0 | 1 => {
            let commands = (0..=dice.below(5)).map(|_| command());
            Step::Together(commands.collect())
        }
        2 if dice.one_in(4) => Step::Expire(key()),
        3..7 if is_model => Step::Pass(dice.below(1500) as u64),
        _ => Step::Ask(command()),
    };
    (0..CASE_STEPS).map(step).collect()
}

/// Fewer steps that still show a difference.
fn shrink(pair: &mut Pair, mut steps: Vec<Step>, mut what: String) -> (Vec<Step>, String) {
    let mut chunk = steps.len() / 2;
    while chunk > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + chunk).min(fewer.len()));
            match pair.run(&fewer) {
                Ok(Some((used, still))) => {
                    fewer.truncate(used);
                    (steps, what) = (fewer, still);
                }
                _ => at += chunk,
            }
        }
        chunk /= 2;
    }
    (steps, what)
}

/// What was done and found.
#[derive(Debug, Default)]
pub struct Report {
    /// How many steps both took.
    pub steps: usize,
    /// The differences.
    pub found: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.found.iter().try_for_each(|found| writeln!(out, "{found}\n"))?;
        write!(out, "{} steps, {} differences", self.steps, self.found.len())
    }
}

/// Sends commands to both, and reports where they differ.
///
/// # Errors
/// If one of them does not answer.
pub fn run(plan: &Plan, pair: &mut Pair) -> Result<Report, String> {
    let mut report = Report::default();
    let mut seen = BTreeSet::new();
    // Between the time of the model and that of a real server is a year; this is later than both.
    let now_ms = 4 * (START_MS / 3);
    for seed in plan.seed.. {
        let mut steps = steps(&Dice::new(seed), pair.is_model, now_ms);
        report.steps += steps.len();
        if let Some((used, what)) = pair.run(&steps)? {
            steps.truncate(used);
            let (steps, what) = shrink(pair, steps, what);
            let last = steps.last().map(|step| step.to_string()).unwrap_or_default();
            let name = last.split(' ').next().unwrap_or_default().to_owned();
            if seen.insert(name) {
                let steps: Vec<String> = steps.iter().map(Step::to_string).collect();
                report.found.push(format!("seed {seed}:\n{}\n{what}", steps.join("\n")));
            }
        }
        if report.steps >= plan.commands || report.found.len() >= plan.differences_max {
            break;
        }
    }
    Ok(report)
}
