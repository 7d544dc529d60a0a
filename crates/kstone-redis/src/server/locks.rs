//! The locks of keys.
//!
//! A command on a few keys shares the gate with others and takes the locks of its keys, in
//! ascending order. A command on the whole keyspace (MULTI, scripts, FLUSHALL, serving blocked
//! clients) has the gate to itself and needs no other lock. Only Redis commands use these locks:
//! the engine's own are taken only inside a commit, so that a long script never holds up the other
//! protocols.
//!
//! The gate is awaited: no thread blocks on it while a script runs. The locks of keys are waited
//! for on the thread: nearly always for microseconds, and otherwise the thread first hands its
//! other tasks off.
//!
//! A pipeline holds all its locks until its last command is done. So only its first command waits
//! for locks; the next ones are included as long as their keys are free. There are many more locks
//! than threads, so that two threads seldom want the same one.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;
use kstone_core::sync::{Mutex, MutexGuard};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::server::task_handoff::TaskHandoff;

/// How often a lock is asked for before the thread hands its tasks off, which takes longer than
/// most commands keep a lock: together some dozens of microseconds.
const ASKED_MAX: usize = 64;
/// Keys share so many locks.
const LOCKS: usize = 1024;

/// See the module.
#[derive(Debug)]
pub(crate) struct Locks {
    gate: RwLock<()>,
    hasher: DefaultHashBuilder,
    keys: Vec<Mutex<()>>,
}

/// The gate, shared with others.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    _gate: RwLockReadGuard<'a, ()>,
}

/// The gate alone.
#[derive(Debug)]
pub(crate) struct Exclusive<'a> {
    _gate: RwLockWriteGuard<'a, ()>,
}

/// The locks of some keys.
#[derive(Debug)]
pub(crate) enum Locked<'a> {
    None,
    One(MutexGuard<'a, ()>),
    Many(Vec<MutexGuard<'a, ()>>),
}

/// Numbers of locks.
#[derive(Debug, Clone, Copy)]
struct Numbers([u64; LOCKS / 64]);

impl Numbers {
    /// Adds one; false if it was there.
    fn add(&mut self, number: usize) -> bool {
        let Some(word) = self.0.get_mut(number / 64) else { return false };
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

impl Locks {
    pub(crate) fn new() -> Self {
        let keys = (0..LOCKS).map(|_| Mutex::new(())).collect();
        Locks { gate: RwLock::new(()), hasher: DefaultHashBuilder::default(), keys }
    }

    /// Shares the gate, if no command has it alone or waits to.
    pub(crate) fn try_share(&self) -> Option<Shared<'_>> {
        self.gate.try_read().ok().map(|gate| Shared { _gate: gate })
    }

    pub(crate) async fn share(&self) -> Shared<'_> {
        Shared { _gate: self.gate.read().await }
    }

    /// Takes the gate alone, if it is free.
    pub(crate) fn try_exclude(&self) -> Option<Exclusive<'_>> {
        self.gate.try_write().ok().map(|gate| Exclusive { _gate: gate })
    }

    pub(crate) async fn exclude(&self) -> Exclusive<'_> {
        Exclusive { _gate: self.gate.write().await }
    }

    /// The locks of these keys. The caller holds the gate.
    pub(crate) fn keys<'a, 'k>(
        &'a self,
        _gate: &Shared<'_>,
        handoff: &TaskHandoff,
        mut keys: impl Iterator<Item = &'k [u8]>,
    ) -> Locked<'a> {
        let Some(first) = keys.next() else { return Locked::None };
        let first = self.number_of(first);
        let Some(second) = keys.next() else { return Locked::One(self.lock(first, handoff)) };
        let rest = keys.map(|key| self.number_of(key));
        let mut numbers: Vec<usize> =
            [first, self.number_of(second)].into_iter().chain(rest).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Locked::Many(numbers.into_iter().map(|number| self.lock(number, handoff)).collect())
    }

    /// The locks of the keys of several commands: of the first, and of as many after it as can be
    /// had at once. Returns also how many commands that are. The caller holds the gate.
    pub(crate) fn commands<'a, 'k, K: Iterator<Item = &'k [u8]>>(
        &'a self,
        gate: &Shared<'_>,
        handoff: &TaskHandoff,
        mut commands: impl Iterator<Item = K>,
    ) -> (Locked<'a>, usize) {
        let mut numbers = Numbers([0; LOCKS / 64]);
        let Some(first) = commands.next() else { return (Locked::None, 0) };
        let first: Vec<&[u8]> = first.collect();
        for key in &first {
            numbers.add(self.number_of(key));
        }
        let mut locked = match self.keys(gate, handoff, first.into_iter()) {
            Locked::None => Vec::new(),
            Locked::One(lock) => vec![lock],
            Locked::Many(locks) => locks,
        };
        let mut count = 1;
        'commands: for keys in commands {
            for key in keys {
                let number = self.number_of(key);
                if numbers.add(number) {
                    let Some(lock) = self.mutex(number).try_lock() else { break 'commands };
                    locked.push(lock);
                }
            }
            count += 1;
        }
        (Locked::Many(locked), count)
    }

    fn number_of(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize % LOCKS
    }

    fn mutex(&self, number: usize) -> &Mutex<()> {
        #[expect(clippy::indexing_slicing, reason = "numbers are below the number of locks")]
        &self.keys[number % LOCKS]
    }

    fn lock(&self, number: usize, handoff: &TaskHandoff) -> MutexGuard<'_, ()> {
        let lock = self.mutex(number);
        if let Some(guard) = lock.try_lock() {
            return guard;
        }
        for _ in 0..ASKED_MAX {
            std::thread::yield_now();
            if let Some(guard) = lock.try_lock() {
                return guard;
            }
        }
        handoff.hand_off();
        lock.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::iter::once;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_that_waits_long_for_a_key_hands_its_tasks_off_first() {
        static HANDED_OFF: AtomicBool = AtomicBool::new(false);
        let (locks, handoff) = (Locks::new(), TaskHandoff::default());
        handoff.set(|| HANDED_OFF.store(true, Ordering::Release));
        let take = || {
            let gate = locks.try_share().unwrap();
            locks.keys(&gate, &handoff, once(&b"a"[..]))
        };
        let held = take();
        assert!(!HANDED_OFF.load(Ordering::Acquire));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| drop(take()));
            while !HANDED_OFF.load(Ordering::Acquire) {
                thread::yield_now();
            }
            assert!(!waiter.is_finished());
            drop(held);
        });
    }

    #[test]
    fn commands_come_along_until_one_whose_key_is_taken() {
        let (locks, handoff) = (Locks::new(), TaskHandoff::default());
        let gate = locks.try_share().unwrap();
        // Two keys that share no lock.
        let names: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let number = |at: usize| locks.number_of(names[at].as_bytes());
        let other = (1..100).find(|at| number(*at) != number(0)).unwrap();
        let [a, b] = [names[0].as_bytes(), names[other].as_bytes()];
        let take = |commands: &[&[&[u8]]]| {
            let commands = commands.iter().map(|keys| keys.iter().copied());
            locks.commands(&gate, &handoff, commands)
        };
        let (held, count) = take(&[&[a], &[a, a]]);
        assert_eq!(count, 2);
        let (others, count) = take(&[&[b], &[b], &[b, a], &[b]]);
        assert_eq!(count, 2);
        drop((held, others));
        assert_eq!(take(&[&[b], &[b], &[b, a], &[b]]).1, 4);
    }
}
