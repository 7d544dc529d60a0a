//! The power goes, or the process is killed, at any moment of a run on a simulated disk. What is
//! found afterwards are the keys after some number of whole steps: with `sync` at least those that
//! were acknowledged, with `interval` any number; never half a command, never half a MULTI.

use std::fmt;
use std::sync::Arc;

use kstone::{Database, DatabaseOptions, Durability};
use kstone_core::Options;
use kstone_core::env::{Env, ManualClock, MemoryVfs, SeededRandom, Vfs};
use kstone_redis::{Redis, Session, Value};
use kstone_sim::{CrashPolicy, SimDisk, Trigger};

use crate::dice::Dice;
use crate::redis::Command;
use crate::redis::contents::{self, Contents};
use crate::redis::draw::{Draw, TEMPLATES};
use crate::redis::model::START_MS;

/// Commands that take from one key and give to another: what a crash must not tear.
const MOVES: &[&str] = &[
    "RENAME {k} {k}",
    "COPY {k} {k} REPLACE",
    "LMOVE {l} {l} LEFT RIGHT",
    "RPOPLPUSH {l} {l}",
    "SMOVE {t} {t} {m}",
    "SUNIONSTORE {t} {t} {t}",
    "ZRANGESTORE {z} {z} 0 3",
    "ZUNIONSTORE {z} 2 {z} {z}",
    "MSET s0 {v} s1 {v} s2 {v}",
    "RPUSH {l} +({m})",
    "SADD {t} +({m})",
    "ZADD {z} +({small} {m})",
    "HSET {h} +({m} {v})",
    "XADD {x} * {m} {v}",
    "DEL {k}",
];

/// What to do.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The first workload's seed; each next has the next.
    pub seed: u64,
    /// How many workloads.
    pub workloads: u64,
    /// How many steps each has.
    pub steps: usize,
    /// Of the operations that change the disk, every n-th is a moment; every sync is.
    pub op_stride: u64,
    /// What replies promise.
    pub durability: Durability,
}

/// What was tried.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// Moments at which the machine stopped.
    pub crashes: u64,
    /// Disks that were looked at afterwards.
    pub recoveries: u64,
    /// Of these, how many held less than everything that was begun.
    pub shorter: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { crashes, recoveries, shorter } = self;
        write!(
            out,
            "{crashes} crashes, {recoveries} recoveries, of which {shorter} had less than all that was begun"
        )
    }
}

/// One thing to do, whole or not at all.
#[derive(Debug)]
enum Step {
    Ask(Command),
    Together(Vec<Command>),
    /// Flushes, compactions, reclaiming.
    Background,
}

/// A server on a machine without threads.
struct Machine {
    database: Database,
    session: Session,
}

impl Machine {
    fn on(vfs: Arc<dyn Vfs>, durability: Durability) -> Result<Machine, String> {
        let env = Env {
            vfs,
            clock: Arc::new(ManualClock::at(START_MS)),
            random: Arc::new(SeededRandom::new(1)),
            threads: None,
        };
        // So small that files and levels turn over.
        let engine = Options {
            memory_budget_bytes: 256 << 10,
            stripe_records_max: Some(6),
            ..Options::default()
        };
        let options = DatabaseOptions { engine, durability };
        let database = Database::open_with(env, "db", options).map_err(|e| e.to_string())?;
        let session = Redis::open(&database).map_err(|e| e.to_string())?.session();
        Ok(Machine { database, session })
    }

    fn ask(&mut self, command: &Command) -> Value {
        self.session.call(&command.words())
    }

    /// Whether it was acknowledged.
    fn step(&mut self, step: &Step) -> bool {
        match step {
            Step::Ask(command) => !matches!(self.ask(command), Value::Error(_)),
            Step::Together(commands) => {
                self.ask(&Command::of("MULTI"));
                for command in commands {
                    self.ask(command);
                }
                !matches!(self.ask(&Command::of("EXEC")), Value::Error(_))
            }
            Step::Background => self.database.run_background().is_ok(),
        }
    }

    fn contents(&mut self) -> Contents {
        let read = contents::read(|command| Ok::<_, ()>(self.ask(command)));
        read.unwrap_or_default()
    }
}

/// What is done, and the keys after each number of steps.
struct Workload {
    steps: Vec<Step>,
    history: Vec<Contents>,
}

impl Workload {
    fn draw(seed: u64, count: usize) -> Result<Workload, String> {
        let dice = Dice::new(seed);
        let draw = Draw::new(&dice, START_MS);
        let command = || loop {
            let of = if dice.one_in(3) { TEMPLATES } else { MOVES };
            let command = draw.command(of);
            // The session stays in one database.
            if command.name() != "SELECT" {
                return command;
            }
        };
        let step = |_| match dice.below(12) {
            0 => Step::Background,
            1..4 => Step::Together((0..2 + dice.below(4)).map(|_| command()).collect()),
            _ => Step::Ask(command()),
        };
        let steps: Vec<Step> = (0..count).map(step).collect();
        let mut machine = Machine::on(Arc::new(MemoryVfs::new()), Durability::Os)?;
        let mut history = vec![machine.contents()];
        for step in &steps {
            machine.step(step);
            history.push(machine.contents());
        }
        Ok(Workload { steps, history })
    }

    /// Runs until the power goes. Answers how many steps were acknowledged and how many begun.
    fn run(&self, disk: &SimDisk, durability: Durability) -> Result<(usize, usize), String> {
        let mut machine = match Machine::on(Arc::new(disk.clone()), durability) {
            Ok(machine) => machine,
            Err(_) if disk.is_stopped() => return Ok((0, 0)),
            Err(error) => return Err(error),
        };
        for (n, step) in self.steps.iter().enumerate() {
            let is_acknowledged = machine.step(step);
            if disk.is_stopped() {
                return Ok((n + usize::from(is_acknowledged), n + 1));
            }
        }
        Ok((self.steps.len(), self.steps.len()))
    }
}

/// Crashes every workload at all of its moments.
///
/// # Errors
/// What was found that should not be, with the seed and the moment.
pub fn explore(plan: &Plan) -> Result<Report, String> {
    let mut report = Report::default();
    for seed in plan.seed..plan.seed + plan.workloads {
        let workload = Workload::draw(seed, plan.steps)?;
        let whole = SimDisk::new(seed);
        workload.run(&whole, plan.durability)?;
        let syncs =
            (0..whole.syncs()).flat_map(|n| [Trigger::BeforeSync(n), Trigger::AfterSync(n)]);
        let ops = (0..whole.ops()).step_by(plan.op_stride.max(1) as usize).map(Trigger::AtOp);
        for trigger in syncs.chain(ops) {
            let place = |what: String| format!("seed {seed}, {trigger:?}: {what}");
            check(&workload, seed, trigger, plan, &mut report).map_err(place)?;
        }
    }
    Ok(report)
}

fn check(
    workload: &Workload,
    seed: u64,
    trigger: Trigger,
    plan: &Plan,
    report: &mut Report,
) -> Result<(), String> {
    let disk = SimDisk::new(seed);
    disk.arm(trigger);
    let (acknowledged, begun) = workload.run(&disk, plan.durability)?;
    report.crashes += 1;
    let policies = [CrashPolicy::LoseAll, CrashPolicy::KeepAll, CrashPolicy::Random(seed)];
    for policy in policies {
        let mut machine = Machine::on(Arc::new(disk.crash(policy)), plan.durability)
            .map_err(|error| format!("{policy:?}: it does not open: {error}"))?;
        let found = machine.contents();
        report.recoveries += 1;
        let least = if plan.durability == Durability::Sync { acknowledged } else { 0 };
        let may_be = workload.history.get(least..=begun).unwrap_or_default();
        let Some(place) = may_be.iter().rposition(|contents| *contents == found) else {
            let wanted = may_be.last().and_then(|last| contents::difference(&found, last));
            let step = workload.steps.get(begun.saturating_sub(1));
            return Err(format!(
                "{policy:?}: {acknowledged} steps were acknowledged, {begun} begun, the last {step:?}; \
                 found is none of what was there since: {}",
                wanted.unwrap_or_default()
            ));
        };
        report.shorter += u64::from(least + place < begun);
        // It goes on.
        let set = machine.ask(&Command::of("SET s0 after"));
        let got = machine.ask(&Command::of("GET s0"));
        if got != Value::bulk("after") {
            return Err(format!("{policy:?}: afterwards SET says {set:?}, GET {got:?}"));
        }
    }
    Ok(())
}
