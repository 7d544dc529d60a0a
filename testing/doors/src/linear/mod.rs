//! Many clients on few accounts through the door, whose process is killed again and again.
//!
//! A round: clients call until the process is killed at a random moment; it is started again on
//! the same folder; transfers that have a token and no answer are sent again with the same token;
//! then everything is read, in three ways that must agree. A killed process carries nothing out
//! any more, so what is read then is the state in which the next round begins, and each round is
//! checked alone: one order of a group's calls must explain every answer, with each call that was
//! not answered either carried out or not ([`kstone_torture::linear`]). An acknowledged write
//! that is lost, or a transfer carried out twice, leaves no such order.
//!
//! Some groups are banks: only transfers change them, so every read of all accounts has the same
//! sum. That follows from the order, but says more when it fails.

pub mod model;
pub mod requests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kstone_torture::linear::{TimedCall, check_from};

use crate::dice::Dice;
use crate::http::Connection;
use crate::server::{Process, Program};
use model::{ACCOUNTS, Account, Accounts, Call, Group, WriteResult};
use requests::Failure;

/// What a bank's account starts with.
const MONEY: i64 = 100;
/// Enough that a round's history of one group stays short, few enough that clients meet.
const CLIENTS_PER_GROUP: usize = 4;
/// A door that answers nobody for this long hangs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// What to do.
#[derive(Debug)]
pub struct Plan {
    /// How many clients call at the same time.
    pub clients: usize,
    /// How often the process is killed.
    pub rounds: u64,
    /// After how many answers at most.
    pub answers_max: usize,
    /// Where random choices begin.
    pub seed: u64,
    /// The folder of the database; a new one in the temporary folder if there is none.
    pub folder: Option<PathBuf>,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Report {
    rounds: u64,
    answered: u64,
    unanswered: u64,
    repeated: u64,
    conflicts: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { rounds, answered, unanswered, repeated, conflicts } = self;
        write!(
            out,
            "{rounds} rounds, each ended by a kill: {answered} calls answered, {unanswered} not, \
             {repeated} sent again by token, {conflicts} met a conflict; linearizable"
        )
    }
}

/// Carries out the plan.
///
/// # Errors
/// With what no order explains, or with an answer that no client should get.
pub fn run(plan: &Plan, program: &Program) -> Result<Report, String> {
    let folder = plan.folder.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("kstone-door-tests-{}-{}", std::process::id(), plan.seed))
    });
    let report = run_in(plan, program, &folder);
    if report.is_ok() && plan.folder.is_none() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    report.map_err(|what| format!("{what}\nseed {}, folder {}", plan.seed, folder.display()))
}

fn run_in(plan: &Plan, program: &Program, folder: &Path) -> Result<Report, String> {
    let dice = Dice::new(plan.seed);
    let groups = plan.clients.div_ceil(CLIENTS_PER_GROUP).max(2);
    let mut report = Report::default();
    let mut door = Process::door(program, folder).map_err(|e| format!("start the door: {e}"))?;
    let mut states = prepare(&mut Connection::new(door.address()), groups)?;
    for number in 0..plan.rounds {
        let round = Round::new(groups);
        let answers = 1 + dice.below(plan.answers_max);
        round.call_until_killed(&mut door, plan.clients, answers, dice.number())?;
        door = Process::door(program, folder)
            .map_err(|e| format!("start the door after kill {number}: {e}"))?;
        let mut connection = Connection::new(door.address());
        report.repeated += round.repeat_lost(&mut connection)?;
        let after = round.read_everything(&mut connection)?;
        report.rounds += 1;
        round.check(&states, &mut report).map_err(|what| format!("round {number}, {what}"))?;
        states = after;
    }
    Ok(report)
}

/// Makes the table and the accounts.
fn prepare(door: &mut Connection, groups: usize) -> Result<Vec<Accounts>, String> {
    let (status, answer) = requests::ask(door, "CreateTable", &requests::table()).map_err(text)?;
    if status != 200 {
        return Err(format!("CreateTable was answered {status} {answer}"));
    }
    let account = Account { version: 1, balance: MONEY };
    for group in 0..groups {
        for at in 0..ACCOUNTS {
            let put = Call::Put { at, expected: None, account, told: WriteResult::Nothing };
            requests::perform(door, group, &put, None).map_err(text)?;
        }
    }
    Ok(vec![[Some(account); ACCOUNTS]; groups])
}

fn text(failure: Failure) -> String {
    match failure {
        Failure::Silence(what) => format!("no answer: {what}"),
        Failure::Unexpected(what) => what,
    }
}

/// Only transfers change a bank.
fn is_bank(group: usize) -> bool {
    group.is_multiple_of(2)
}

/// A transfer with a token that got no answer.
struct UnansweredTransfer {
    group: usize,
    began: u64,
    call: Call,
    token: String,
}

/// What the clients of a round share.
struct Round {
    clock: AtomicU64,
    conflicts: AtomicU64,
    is_killed: AtomicBool,
    /// By group.
    histories: Vec<Mutex<Vec<TimedCall<Call>>>>,
    lost: Mutex<Vec<UnansweredTransfer>>,
}

impl Round {
    fn new(groups: usize) -> Self {
        Round {
            clock: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            is_killed: AtomicBool::new(false),
            histories: (0..groups).map(|_| Mutex::new(Vec::new())).collect(),
            lost: Mutex::new(Vec::new()),
        }
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn record(&self, group: usize, timed: TimedCall<Call>) {
        locked(&self.histories[group]).push(timed);
    }

    /// Has clients call, and kills the door after so many answers.
    fn call_until_killed(
        &self,
        door: &mut Process,
        clients: usize,
        answers: usize,
        seed: u64,
    ) -> Result<(), String> {
        let (answered, answers_of_all) = channel();
        let address = door.address();
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..clients)
                .map(|client| {
                    let answered = answered.clone();
                    let dice = Dice::new(seed.wrapping_add(client as u64));
                    let door = Connection::new(address);
                    scope.spawn(move || self.call(door, &dice, &answered))
                })
                .collect();
            drop(answered);
            let mut outcome = Ok(());
            for _ in 0..answers {
                match answers_of_all.recv_timeout(ANSWER_TIMEOUT) {
                    Ok(()) => {}
                    // Every client has stopped, and will say why.
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {
                        outcome = Err(format!("no answer to anyone for {ANSWER_TIMEOUT:?}"));
                        break;
                    }
                }
            }
            self.is_killed.store(true, Ordering::SeqCst);
            let killed = door.kill().map_err(|error| format!("kill the door: {error}"));
            for client in clients {
                let ended = client.join().unwrap_or_else(|_| Err("a client panicked".to_owned()));
                outcome = outcome.and(ended);
            }
            killed.and(outcome)
        })
    }

    /// Calls until there is no answer, which must not be before the door is killed.
    fn call(&self, mut door: Connection, dice: &Dice, answered: &Sender<()>) -> Result<(), String> {
        // What this client saw last of each account: conditions are built on it.
        let mut seen = vec![[None; ACCOUNTS]; self.histories.len()];
        loop {
            let group = dice.below(self.histories.len());
            let question = question(dice, is_bank(group), &seen[group]);
            let token = format!("{:016x}", dice.number());
            let token = dice.one_in(2).then_some(token.as_str());
            let began = self.now();
            let is_by_index = matches!(question, Call::ReadAll(_)) && dice.one_in(2);
            let call = match is_by_index {
                true => requests::query_index(&mut door, group).map(|all| Some(Call::ReadAll(all))),
                false => requests::perform(&mut door, group, &question, token),
            };
            match call {
                Ok(Some(call)) => {
                    let ended = Some(self.now());
                    note(&call, &mut seen[group]);
                    self.record(group, TimedCall { began, ended, call });
                }
                Ok(None) => {
                    self.conflicts.fetch_add(1, Ordering::Relaxed);
                }
                Err(Failure::Silence(_)) if self.is_killed.load(Ordering::SeqCst) => {
                    match (question, token) {
                        (Call::Get(..) | Call::ReadAll(_), _) => {}
                        (call @ Call::Transfer { .. }, Some(token)) => {
                            let token = token.to_owned();
                            locked(&self.lost).push(UnansweredTransfer {
                                group,
                                began,
                                call,
                                token,
                            });
                        }
                        (call, _) => self.record(group, TimedCall { began, ended: None, call }),
                    }
                    return Ok(());
                }
                Err(failure) => return Err(text(failure)),
            }
            let _ = answered.send(());
        }
    }

    /// Sends the transfers with a token again: carried out before or now, but once.
    fn repeat_lost(&self, door: &mut Connection) -> Result<u64, String> {
        let lost = std::mem::take(&mut *locked(&self.lost));
        let count = lost.len() as u64;
        for UnansweredTransfer { group, began, call, token } in lost {
            let again = requests::perform(door, group, &call, Some(&token)).map_err(text)?;
            let ended = again.is_some().then(|| self.now());
            self.record(group, TimedCall { began, ended, call: again.unwrap_or(call) });
        }
        Ok(count)
    }

    /// Reads all accounts in three ways, as the last calls of the round.
    fn read_everything(&self, door: &mut Connection) -> Result<Vec<Accounts>, String> {
        let mut states = Vec::new();
        for group in 0..self.histories.len() {
            let began = self.now();
            let all = requests::transact_get(door, group).map_err(text)?;
            let all = all.ok_or("a read of all accounts met a conflict with nobody")?;
            let of_index = requests::query_index(door, group).map_err(text)?;
            let mut one_by_one = [None; ACCOUNTS];
            for (at, account) in one_by_one.iter_mut().enumerate() {
                *account = requests::get(door, group, at).map_err(text)?;
            }
            if all != of_index || all != one_by_one {
                return Err(format!(
                    "group {group} after the restart\nby TransactGetItems {all:?}\nby the index \
                     {of_index:?}\nby GetItem {one_by_one:?}"
                ));
            }
            let ended = Some(self.now());
            self.record(group, TimedCall { began, ended, call: Call::ReadAll(all) });
            states.push(all);
        }
        Ok(states)
    }

    /// Looks for the order.
    fn check(self, initial: &[Accounts], report: &mut Report) -> Result<(), String> {
        report.conflicts += self.conflicts.load(Ordering::Relaxed);
        for (group, history) in self.histories.into_iter().enumerate() {
            let history = history.into_inner().unwrap_or_else(PoisonError::into_inner);
            let answered = history.iter().filter(|timed| timed.ended.is_some()).count();
            report.answered += answered as u64;
            report.unanswered += (history.len() - answered) as u64;
            if is_bank(group) {
                check_sums(&history).map_err(|what| format!("bank {group}: {what}"))?;
            }
            check_from::<Group>(initial[group], history)
                .map_err(|what| format!("group {group} from {:?}: {what}", initial[group]))?;
        }
        Ok(())
    }
}

/// Every read of a bank's accounts has all of its money.
fn check_sums(history: &[TimedCall<Call>]) -> Result<(), String> {
    for timed in history {
        if let Call::ReadAll(accounts) = timed.call {
            let sum: i64 = accounts.iter().flatten().map(|account| account.balance).sum();
            if sum != MONEY * ACCOUNTS as i64 {
                return Err(format!("the sum of {accounts:?} is {sum}"));
            }
        }
    }
    Ok(())
}

/// A random call, as yet without an answer.
fn question(dice: &Dice, is_bank: bool, seen: &Accounts) -> Call {
    let at = dice.below(ACCOUNTS);
    let amount = 1 + dice.below(40) as i64;
    let version = seen[at].map(|account| account.version);
    let choice = if is_bank { dice.below(8) } else { dice.below(16) };
    match choice {
        0 => Call::Get(at, None),
        1 | 2 => Call::ReadAll([None; ACCOUNTS]),
        3..8 => {
            let to = (at + 1 + dice.below(ACCOUNTS - 1)) % ACCOUNTS;
            Call::Transfer { from: at, to, amount, done: None }
        }
        8..11 => Call::Add { at, amount: amount - 20, after: None },
        11 | 12 if version.is_some() => {
            Call::Delete { at, expected: version.unwrap_or(0), told: WriteResult::Nothing }
        }
        _ => {
            // A version that no addition reaches: what is put can be told from what was added.
            let account = Account { version: dice.number() >> 12, balance: amount };
            Call::Put { at, expected: version, account, told: WriteResult::Nothing }
        }
    }
}

/// Keeps what an answer says about an account.
fn note(call: &Call, seen: &mut Accounts) {
    match *call {
        Call::Get(at, found) => seen[at] = found,
        Call::ReadAll(found) => *seen = found,
        Call::Put { at, account, told: WriteResult::Done, .. } => seen[at] = Some(account),
        Call::Put { at, told: WriteResult::Refused(had), .. }
        | Call::Delete { at, told: WriteResult::Refused(had), .. } => seen[at] = had,
        Call::Delete { at, told: WriteResult::Done, .. } => seen[at] = None,
        Call::Add { at, after, .. } => seen[at] = after,
        _ => {}
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Accounts = [Some(Account { version: 1, balance: MONEY }); ACCOUNTS];

    fn checked(group: usize, calls: &[(u64, Option<u64>, Call)]) -> Result<Report, String> {
        let round = Round::new(2);
        for (began, ended, call) in calls {
            round.record(group, TimedCall { began: *began, ended: *ended, call: call.clone() });
        }
        let mut report = Report::default();
        round.check(&[FULL; 2], &mut report).map(|()| report)
    }

    #[test]
    fn an_acknowledged_write_that_is_gone_after_the_restart_is_noticed() {
        let after = Some(Account { version: 2, balance: MONEY + 5 });
        let add = Call::Add { at: 0, amount: 5, after };
        let lost = [(0, Some(1), add.clone()), (2, Some(3), Call::ReadAll(FULL))];
        assert!(checked(1, &lost).is_err());
        // Without an answer, both are right.
        let unanswered = Call::Add { at: 0, amount: 5, after: None };
        for seen in [FULL, [after, FULL[1], FULL[2]]] {
            let calls = [(0, None, unanswered.clone()), (2, Some(3), Call::ReadAll(seen))];
            assert!(checked(1, &calls).is_ok(), "{seen:?}");
        }
    }

    #[test]
    fn a_transfer_that_is_carried_out_twice_is_noticed() {
        let transfer = Call::Transfer { from: 0, to: 1, amount: 10, done: Some(true) };
        let twice = [
            Some(Account { version: 3, balance: MONEY - 20 }),
            Some(Account { version: 3, balance: MONEY + 20 }),
            FULL[2],
        ];
        let calls = [(0, Some(1), transfer), (2, Some(3), Call::ReadAll(twice))];
        assert!(checked(0, &calls).is_err());
    }

    #[test]
    fn a_read_of_a_bank_in_the_middle_of_a_transfer_is_noticed_by_its_sum() {
        let half = [Some(Account { version: 2, balance: MONEY - 10 }), FULL[1], FULL[2]];
        let found = checked(0, &[(0, Some(1), Call::ReadAll(half))]);
        assert!(found.is_err_and(|what| what.contains("bank 0: the sum")));
    }
}
