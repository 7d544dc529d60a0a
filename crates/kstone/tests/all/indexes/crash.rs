//! The power goes, or the process is killed, at any moment. What is found afterwards is the table
//! after some of the steps, all that were promised among them; indexes and stream agree with it.

use std::sync::Arc;

use kstone::table::Status;
use kstone::{Database, DatabaseOptions, Durability, Item};
use kstone_core::Options;
use kstone_core::env::Env;
use kstone_sim::{CrashPolicy, SimDisk, Trigger};

use crate::indexes::agreement::{check, check_engine_tables};
use crate::indexes::table::{Machine, TABLE, create, describe, put, spec};
use crate::indexes::workload::{Dice, Model, Step, draw_item, key_of, run};

const STEPS: usize = 50;

/// A machine with a disk that can be crashed.
fn machine_on(disk: &SimDisk, like: Machine) -> Machine {
    let env = Env { vfs: Arc::new(disk.clone()), ..like.env };
    Machine { env, clock: like.clock }
}

/// Opens the database so that a few records make files and levels.
fn open(machine: &Machine) -> Database {
    let engine = Options {
        memory_budget_bytes: 256 << 10,
        stripe_records_max: Some(6),
        ..Options::default()
    };
    let options = DatabaseOptions { engine, ..DatabaseOptions::default() };
    Database::open_with(machine.env.clone(), "db", options).unwrap()
}

/// What is done, each step with what it promises; and the table after each number of steps.
struct Workload {
    steps: Vec<(Step, Durability)>,
    history: Vec<Model>,
}

impl Workload {
    fn draw(seed: u64) -> Self {
        let dice = Dice::new(seed);
        let mut history = vec![Model::new()];
        let mut steps = Vec::new();
        for _ in 0..STEPS {
            let mut model = history.last().unwrap().clone();
            let step = Step::draw(&dice, model.now_ms());
            model.step(&step);
            steps.push((step, *dice.pick(&[Durability::Sync, Durability::Os])));
            history.push(model);
        }
        Workload { steps, history }
    }

    /// Runs until the power goes.
    fn run(&self, seed: u64, trigger: Option<Trigger>) -> Outcome {
        let disk = SimDisk::new(seed);
        let machine = machine_on(&disk, Machine::new());
        let db = open(&machine);
        create(&db);
        let (ops, syncs) = (disk.ops(), disk.syncs());
        if let Some(trigger) = trigger {
            disk.arm(trigger);
        }
        let (mut promised, mut begun) = (0, 0);
        for (step, durability) in &self.steps {
            begun += 1;
            match run(&machine, &db.with_durability(*durability), step) {
                Ok(done) => {
                    let is_promise = match step {
                        Step::Tick { .. } | Step::Background | Step::Flush => false,
                        Step::SwitchIndex | Step::SwitchTtl => true,
                        _ => done && *durability == Durability::Sync,
                    };
                    promised = if is_promise { begun } else { promised };
                }
                Err(error) => {
                    assert!(disk.is_stopped(), "{step:?}: {error:?}");
                    break;
                }
            }
        }
        drop(db);
        let ops = disk.ops() - ops;
        let syncs = disk.syncs() - syncs;
        Outcome { disk, machine, promised, begun, ops, syncs }
    }
}

struct Outcome {
    disk: SimDisk,
    machine: Machine,
    /// How many steps must have survived.
    promised: usize,
    /// How many can have.
    begun: usize,
    ops: u64,
    syncs: u64,
}

fn sorted(mut items: Vec<Item>) -> Vec<Item> {
    items.sort_by_key(|item| format!("{:?}", key_of(item)));
    items
}

/// Opens what a crash left, and compares it with what may be there.
fn recover(workload: &Workload, outcome: &Outcome, policy: CrashPolicy, place: &str) {
    let disk = outcome.disk.crash(policy);
    let like = Machine { env: outcome.machine.env.clone(), clock: outcome.machine.clock.clone() };
    let machine = machine_on(&disk, like);
    let db = open(&machine);
    db.run_background().unwrap();
    let items = sorted(check(&db));
    check_engine_tables(&db);
    let now_ms = db.engine().now_ms();
    let possible = &workload.history[outcome.promised..=outcome.begun];
    let found = possible.iter().any(|model| {
        let mut model = model.clone();
        model.set_now(now_ms);
        sorted(model.items()) == items
    });
    assert!(
        found,
        "{place}: the table is not what it was after any of steps {} to {}: {items:#?}",
        outcome.promised, outcome.begun
    );
    assert!(describe(&db).global.iter().all(|index| index.status == Status::Active), "{place}");

    // And it goes on from there.
    let dice = Dice::new(outcome.ops);
    for _ in 0..5 {
        put(&db, draw_item(&dice, now_ms));
    }
    db.run_background().unwrap();
    check(&db);
}

#[test]
fn after_a_crash_table_indexes_and_stream_agree_and_hold_what_was_promised() {
    let mut crashes = 0;
    for seed in 0..4 {
        let workload = Workload::draw(seed);
        let whole = workload.run(seed, None);
        assert_eq!(whole.begun, STEPS);
        let ops = (seed..whole.ops).step_by(23).map(Trigger::AtOp);
        let before = (seed..whole.syncs).step_by(9).map(Trigger::BeforeSync);
        let after = (seed + 1..whole.syncs).step_by(9).map(Trigger::AfterSync);
        for trigger in ops.chain(before).chain(after) {
            let outcome = workload.run(seed, Some(trigger));
            let random = CrashPolicy::Random(crashes);
            for policy in [CrashPolicy::LoseAll, CrashPolicy::KeepAll, random] {
                crashes += 1;
                let place = format!("seed {seed}, {trigger:?}, {policy:?}");
                recover(&workload, &outcome, policy, &place);
            }
        }
    }
    assert!(crashes > 100, "{crashes}");
}

#[test]
fn a_crash_while_a_table_is_made_or_dropped_leaves_all_of_it_or_nothing() {
    for dropping in [false, true] {
        let (mut with, mut without) = (0, 0);
        for at_op in 0.. {
            let disk = SimDisk::new(at_op);
            let machine = machine_on(&disk, Machine::new());
            let db = open(&machine);
            if dropping {
                create(&db);
                put(&db, draw_item(&Dice::new(at_op), 0));
            }
            disk.arm(Trigger::AtOp(at_op));
            let done = match dropping {
                true => db.delete_table(TABLE).is_ok(),
                false => db.create_table(&spec()).is_ok(),
            };
            drop(db);
            for policy in [CrashPolicy::LoseAll, CrashPolicy::KeepAll, CrashPolicy::Random(at_op)] {
                let found = disk.crash(policy);
                let like = Machine { env: machine.env.clone(), clock: machine.clock.clone() };
                let db = open(&machine_on(&found, like));
                if db.describe_table(TABLE).is_ok() {
                    with += 1;
                    assert!(!(done && dropping), "operation {at_op}, {policy:?}");
                    assert_eq!(check(&db).len(), usize::from(dropping));
                    put(&db, draw_item(&Dice::new(at_op), 0));
                    check(&db);
                    check_engine_tables(&db);
                } else {
                    without += 1;
                    assert!(!done || dropping, "operation {at_op}, {policy:?}");
                    assert_eq!(db.engine().tables().len(), 2, "operation {at_op}, {policy:?}");
                }
            }
            if done && !disk.is_stopped() {
                break;
            }
        }
        assert!(with > 2 && without > 2, "dropping: {dropping}; {with} with, {without} without");
    }
}
