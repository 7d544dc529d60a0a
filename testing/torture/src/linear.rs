//! A linearizability checker: looks for one order of the calls that explains every answer.
//!
//! The search of Wing and Gong, with Lowe's memory of the states that were tried: calls are put in
//! order one by one; a call may come next if no other call that is left had ended before it began;
//! a pair of (calls done, state reached) that led nowhere once is not tried again.
//!
//! A call that was never answered, because the process that would have answered it was killed, may
//! have been carried out or not: the search may use it, and may leave it out.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// The thing that is called, one call at a time.
pub trait Object {
    /// What it is between two calls.
    type State: Clone + Eq + Hash;
    /// A call with its answer.
    type Call: Debug;

    /// The state before the first call.
    fn initial() -> Self::State;
    /// The state after the call, if the call would have been answered like this.
    fn step(state: &Self::State, call: &Self::Call) -> Option<Self::State>;
}

/// A call, when it began and when it ended, on one clock that gives every moment once.
#[derive(Debug, Clone)]
pub struct TimedCall<C> {
    /// When it was sent.
    pub began: u64,
    /// When it was answered; `None` if it never was.
    pub ended: Option<u64>,
    /// What was asked and what was answered.
    pub call: C,
}

impl<C> TimedCall<C> {
    /// The last moment at which it can have been carried out.
    fn latest(&self) -> u64 {
        self.ended.unwrap_or(u64::MAX)
    }
}

/// A set of calls.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CallSet {
    words: Vec<u64>,
}

impl CallSet {
    fn none(count: usize) -> Self {
        CallSet { words: vec![0; count.div_ceil(64)] }
    }

    fn has(&self, call: usize) -> bool {
        self.words[call / 64] & (1 << (call % 64)) != 0
    }

    fn flip(&mut self, call: usize) {
        self.words[call / 64] ^= 1 << (call % 64);
    }
}

/// Whether the history is linearizable; if not, how many calls of it could be put in order at
/// most, and the calls that could not come next then.
///
/// # Errors
/// If no order explains the answers.
pub fn check<O: Object>(history: Vec<TimedCall<O::Call>>) -> Result<(), String> {
    check_from::<O>(O::initial(), history)
}

/// The same, for a history that begins in another state than the first.
///
/// # Errors
/// If no order explains the answers.
pub fn check_from<O: Object>(
    initial: O::State,
    mut history: Vec<TimedCall<O::Call>>,
) -> Result<(), String> {
    history.sort_by_key(|timed| timed.began);
    let mut answered_left = history.iter().filter(|timed| timed.ended.is_some()).count();
    let mut done = CallSet::none(history.len());
    let mut tried = HashSet::new();
    // What was put in order so far: the call, and the state before it.
    let mut order: Vec<(usize, O::State)> = Vec::new();
    let mut state = initial;
    let mut from = 0; // the first call that may be tried next here
    let mut best = (0, String::new());
    while answered_left > 0 {
        match next::<O>(&history, &done, &state, from) {
            Some((call, after)) => {
                done.flip(call);
                if tried.insert((done.clone(), after.clone())) {
                    answered_left -= usize::from(history[call].ended.is_some());
                    order.push((call, std::mem::replace(&mut state, after)));
                    from = 0;
                } else {
                    done.flip(call);
                    from = call + 1;
                }
            }
            None => {
                if order.len() >= best.0 {
                    let left: Vec<_> =
                        candidates(&history, &done, 0).map(|call| &history[call]).collect();
                    best = (order.len(), format!("{left:#?}"));
                }
                let Some((call, before)) = order.pop() else {
                    let (count, left) = best;
                    return Err(format!(
                        "{count} of {} calls can be put in order, then none of {left}",
                        history.len()
                    ));
                };
                done.flip(call);
                answered_left += usize::from(history[call].ended.is_some());
                state = before;
                from = call + 1;
            }
        }
    }
    Ok(())
}

/// The calls from `from` on that may come next: those that began before any other left had ended.
fn candidates<'a, C>(
    history: &'a [TimedCall<C>],
    done: &'a CallSet,
    from: usize,
) -> impl Iterator<Item = usize> + 'a {
    let first_word = done.words.iter().position(|word| *word != u64::MAX).unwrap_or(0);
    let left = move || (first_word * 64..history.len()).filter(|&call| !done.has(call));
    // Ended calls are found among those that began early: stop at the first that began too late.
    let mut ends = u64::MAX;
    for call in left() {
        if history[call].began > ends {
            break;
        }
        ends = ends.min(history[call].latest());
    }
    left().take_while(move |&call| history[call].began <= ends).filter(move |&call| call >= from)
}

fn next<O: Object>(
    history: &[TimedCall<O::Call>],
    done: &CallSet,
    state: &O::State,
    from: usize,
) -> Option<(usize, O::State)> {
    candidates(history, done, from)
        .find_map(|call| O::step(state, &history[call].call).map(|after| (call, after)))
}
