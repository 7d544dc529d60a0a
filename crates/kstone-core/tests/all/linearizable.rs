//! Many threads on few keys: their calls have one order that explains every answer.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::support::{Dice, T, pks_of_different_stripes, put, tiny};
use kstone_core::{Durability, Engine, Key, Result, ScanCursor, WriteBatch};
use kstone_torture::linear::{Object, TimedCall, check};

/// Two records in different stripes, which some calls touch both at once.
struct Pair;

type Value = Option<u64>;

/// A call and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Call {
    Get(usize, Value),
    Put(usize, u64),
    Delete(usize),
    /// Set if it has that value; answers what it had.
    CompareAndSet(usize, Value, u64, Value),
    /// Adds one (to nothing: makes it 1); answers the sum.
    Increment(usize, u64),
    PutBoth(u64, u64),
    ReadBoth(Value, Value),
    /// Exchanges the two under their locks.
    Swap,
}

impl Object for Pair {
    type State = [Value; 2];
    type Call = Call;

    fn initial() -> Self::State {
        [None, None]
    }

    fn step(state: &Self::State, call: &Call) -> Option<Self::State> {
        let mut after = *state;
        let answered = match *call {
            Call::Get(i, value) => state[i] == value,
            Call::Put(i, value) => {
                after[i] = Some(value);
                true
            }
            Call::Delete(i) => {
                after[i] = None;
                true
            }
            Call::CompareAndSet(i, expected, value, had) => {
                if state[i] == expected {
                    after[i] = Some(value);
                }
                state[i] == had
            }
            Call::Increment(i, sum) => {
                after[i] = Some(state[i].unwrap_or(0) + 1);
                after[i] == Some(sum)
            }
            Call::PutBoth(a, b) => {
                after = [Some(a), Some(b)];
                true
            }
            Call::ReadBoth(a, b) => *state == [a, b],
            Call::Swap => {
                after = [state[1], state[0]];
                true
            }
        };
        answered.then_some(after)
    }
}

fn timed(began: u64, ended: u64, call: Call) -> TimedCall<Call> {
    TimedCall { began, ended: Some(ended), call }
}

#[test]
fn the_checker_accepts_what_some_order_explains() {
    // The get overlaps both puts, so it may see either, and the later get sees the last.
    for seen in [None, Some(1), Some(2)] {
        let history = vec![
            timed(0, 10, Call::Put(0, 1)),
            timed(1, 11, Call::Put(0, 2)),
            timed(2, 9, Call::Get(0, seen)),
        ];
        check::<Pair>(history).unwrap();
    }
    let counters = (0..200).map(|n| timed(n, n + 8, Call::Increment(0, n + 1))).collect();
    check::<Pair>(counters).unwrap();
}

#[test]
fn the_checker_refuses_a_stale_read() {
    let history = vec![
        timed(0, 1, Call::Put(0, 1)),
        timed(2, 3, Call::Put(0, 2)),
        timed(4, 5, Call::Get(0, Some(1))),
    ];
    assert!(check::<Pair>(history).unwrap_err().contains("2 of 3"));
}

#[test]
fn the_checker_refuses_a_read_that_goes_back() {
    let history = vec![
        timed(0, 9, Call::Put(0, 1)),
        timed(1, 2, Call::Get(0, Some(1))),
        timed(3, 4, Call::Get(0, None)),
    ];
    check::<Pair>(history).unwrap_err();
}

#[test]
fn the_checker_refuses_a_lost_update_and_half_a_batch() {
    let lost = vec![timed(0, 9, Call::Increment(0, 1)), timed(1, 8, Call::Increment(0, 1))];
    check::<Pair>(lost).unwrap_err();
    let half = vec![timed(0, 9, Call::PutBoth(1, 1)), timed(1, 8, Call::ReadBoth(Some(1), None))];
    check::<Pair>(half).unwrap_err();
}

#[test]
fn the_checker_lets_a_call_without_an_answer_happen_or_not_but_not_twice() {
    let unanswered = |call| TimedCall { began: 0, ended: None, call };
    for seen in [None, Some(7)] {
        let history = vec![
            unanswered(Call::Put(0, 7)),
            timed(1, 2, Call::Get(0, None)),
            timed(3, 4, Call::Get(0, seen)),
        ];
        check::<Pair>(history).unwrap();
    }
    let twice = vec![
        unanswered(Call::Put(0, 7)),
        timed(1, 2, Call::Get(0, Some(7))),
        timed(3, 4, Call::Delete(0)),
        timed(5, 6, Call::Get(0, Some(7))),
    ];
    check::<Pair>(twice).unwrap_err();
}

const THREADS: u64 = 8;
const PAIRS: usize = 3;

/// Carries out a random call and answers it as it was answered.
fn call(engine: &Engine, keys: &[Key; 2], dice: &mut Dice, unique: u64) -> Result<Call> {
    let i = dice.below(2) as usize;
    let key = &keys[i];
    let durability = [Durability::Sync, Durability::Os][usize::from(dice.below(4) > 0)];
    let number = |record: Option<kstone_core::Record>| -> Value {
        record.map(|r| u64::from_be_bytes(r.value[..].try_into().expect("eight bytes")))
    };
    let mut batch = WriteBatch::new();
    Ok(match dice.below(10) {
        0..3 => Call::Get(i, number(engine.get(T, key)?)),
        3 => {
            batch.put(T, key, &unique.to_be_bytes())?;
            engine.write(&batch, durability)?.wait()?;
            Call::Put(i, unique)
        }
        4 => {
            batch.delete(T, key)?;
            engine.write(&batch, durability)?.wait()?;
            Call::Delete(i)
        }
        5 => {
            let expected = number(engine.get(T, key)?);
            let locked = engine.lock([key])?;
            let had = number(locked.get(T, key)?);
            if had == expected {
                batch.put(T, key, &unique.to_be_bytes())?;
                locked.commit(&batch, durability)?.wait()?;
            }
            Call::CompareAndSet(i, expected, unique, had)
        }
        6 => {
            let locked = engine.lock([key])?;
            let sum = number(locked.get(T, key)?).unwrap_or(0) + 1;
            batch.put(T, key, &sum.to_be_bytes())?;
            locked.commit(&batch, durability)?.wait()?;
            Call::Increment(i, sum)
        }
        7 => {
            batch.put(T, &keys[0], &unique.to_be_bytes())?;
            batch.put(T, &keys[1], &unique.to_be_bytes())?;
            engine.write(&batch, durability)?.wait()?;
            Call::PutBoth(unique, unique)
        }
        8 => {
            let found = engine.multi_get(T, keys)?;
            Call::ReadBoth(number(found[0].clone()), number(found[1].clone()))
        }
        _ => {
            let locked = engine.lock(keys)?;
            for (to, from) in [(0, 1), (1, 0)] {
                match locked.get(T, &keys[from])? {
                    Some(record) => batch.put(T, &keys[to], &record.value)?,
                    None => batch.delete(T, &keys[to])?,
                }
            }
            locked.commit(&batch, durability)?.wait()?;
            Call::Swap
        }
    })
}

fn history_of_threads(seed: u64, calls_each: u64) -> Vec<Vec<TimedCall<Call>>> {
    let engine = Engine::memory(tiny()).unwrap();
    let pks = pks_of_different_stripes(2 * PAIRS);
    let pairs: Vec<[Key; 2]> =
        pks.chunks(2).map(|pair| [Key::new(pair[0].clone()), Key::new(pair[1].clone())]).collect();
    let clock = AtomicU64::new(0);
    let histories: Vec<Mutex<Vec<_>>> = pairs.iter().map(|_| Mutex::default()).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, pairs, clock, histories) = (&engine, &pairs, &clock, &histories);
            scope.spawn(move || {
                let mut dice = Dice::new(seed * THREADS + thread + 1);
                for n in 0..calls_each {
                    let pair = dice.below(PAIRS as u64) as usize;
                    let unique = (thread + 1) << 32 | n;
                    let began = clock.fetch_add(1, Ordering::SeqCst);
                    let call = call(engine, &pairs[pair], &mut dice, unique).unwrap();
                    let ended = clock.fetch_add(1, Ordering::SeqCst);
                    histories[pair].lock().unwrap().push(timed(began, ended, call));
                }
            });
        }
    });
    histories.into_iter().map(|history| history.into_inner().unwrap()).collect()
}

#[test]
fn eight_threads_on_a_few_keys_are_told_what_one_order_explains() {
    for seed in 0..60 {
        for history in history_of_threads(seed, 300) {
            assert!(history.len() > 500);
            if let Err(what) = check::<Pair>(history) {
                panic!("seed {seed}: {what}");
            }
        }
    }
}

#[test]
fn a_counter_under_its_lock_loses_nothing() {
    let engine = Engine::memory(tiny()).unwrap();
    let key = Key::with_sk("counter", "n");
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..300 {
                    let locked = engine.lock([&key]).unwrap();
                    let count = locked.get(T, &key).unwrap().map_or(0, |record| {
                        u64::from_be_bytes(record.value[..].try_into().unwrap())
                    });
                    let mut batch = WriteBatch::new();
                    batch.put(T, &key, &(count + 1).to_be_bytes()).unwrap();
                    locked.commit(&batch, Durability::Os).unwrap().wait().unwrap();
                }
            });
        }
    });
    let count = engine.get(T, &key).unwrap().unwrap().value;
    assert_eq!(u64::from_be_bytes(count[..].try_into().unwrap()), THREADS * 300);
}

#[test]
fn a_snapshot_never_sees_half_a_transfer() {
    const ACCOUNTS: u64 = 12;
    const MONEY: u64 = 100;
    let engine = Engine::memory(tiny()).unwrap();
    let pks = pks_of_different_stripes(ACCOUNTS as usize);
    let accounts: Vec<Key> = pks.into_iter().map(Key::new).collect();
    for account in &accounts {
        put(&engine, account, &MONEY.to_be_bytes());
    }
    let amount = |value: &[u8]| u64::from_be_bytes(value.try_into().unwrap());
    let done = AtomicBool::new(false);
    let transfer = |dice: &mut Dice| {
        let from = &accounts[dice.below(ACCOUNTS) as usize];
        let to = &accounts[dice.below(ACCOUNTS) as usize];
        let locked = engine.lock([from, to]).unwrap();
        let has = |key| amount(&locked.get(T, key).unwrap().unwrap().value);
        let moved = dice.below(10).min(has(from));
        if from != to {
            let mut batch = WriteBatch::new();
            batch.put(T, from, &(has(from) - moved).to_be_bytes()).unwrap();
            batch.put(T, to, &(has(to) + moved).to_be_bytes()).unwrap();
            locked.commit(&batch, Durability::Os).unwrap().wait().unwrap();
        }
    };
    let audits = std::thread::scope(|scope| {
        let auditor = scope.spawn(|| {
            let mut audits = 0u64;
            while !done.load(Ordering::Acquire) || audits < 3 {
                let snapshot = engine.snapshot();
                let scanned: u64 = snapshot
                    .scan(T, ScanCursor::start())
                    .map(|record| amount(&record.unwrap().record.value))
                    .sum();
                let one_by_one: u64 = accounts
                    .iter()
                    .map(|key| amount(&snapshot.get(T, key).unwrap().unwrap().value))
                    .sum();
                assert_eq!((scanned, one_by_one), (ACCOUNTS * MONEY, ACCOUNTS * MONEY));
                audits += 1;
            }
            audits
        });
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let mut dice = Dice::new(thread + 1);
                    (0..300).for_each(|_| transfer(&mut dice));
                })
            })
            .collect();
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Release);
        results.into_iter().for_each(|result| result.unwrap());
        auditor.join().unwrap()
    });
    assert!(audits >= 3);
}
