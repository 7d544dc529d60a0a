//! Serves connections in the order in which their commands arrived.
//!
//! Clients count on it across connections: one blocks on a key, and then another writes the key.
//! But of two tasks that one poll of the sockets wakes, tokio runs the later one first. So a
//! connection draws a number when bytes have come for it, and lets those with smaller numbers begin
//! first, if they are few: many clients at once have no order that any of them could know of, and
//! waiting for all of them would leave other threads idle.
//!
//! Replies are written for several connections together. The first reply wakes a client that
//! sleeps, which takes longer than most commands; replies that follow soon find it awake.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

/// A connection lets at most so many others begin first.
const AHEAD_MAX: u64 = 4;
/// How often a connection lets others go first for the same bytes. The first time is enough if they
/// are on the same thread; a thread that was just woken takes some more.
const PATIENCE: u32 = 32;

/// Replies are held back until this many connections have some.
const ANSWERED_TOGETHER: u64 = 16;

/// The numbers that were drawn, and how many of the connections that drew one have begun.
#[derive(Debug, Default)]
pub(crate) struct TurnQueue {
    drawn: AtomicU64,
    begun: AtomicU64,
    /// How many connections hold replies back.
    holding: AtomicU64,
}

/// No number.
const NONE: u64 = 0;
/// A number is being drawn.
const DRAWING: u64 = u64::MAX;
/// The connection has gone.
const GONE: u64 = u64::MAX - 1;

#[derive(Debug)]
struct Ticket {
    queue: Arc<TurnQueue>,
    number: AtomicU64,
    task: OnceLock<Waker>,
}

impl Wake for Ticket {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let swap = |from, to| {
            self.number.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        if swap(NONE, DRAWING) {
            let number = self.queue.drawn.fetch_add(1, Ordering::AcqRel) + 1;
            if !swap(DRAWING, number) {
                self.queue.begun.fetch_add(1, Ordering::AcqRel);
            }
        }
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }
}

/// One connection's place in the queue.
#[derive(Debug)]
pub(crate) struct Turn {
    ticket: Arc<Ticket>,
    waker: Waker,
    patience: u32,
}

impl Turn {
    pub(crate) fn new(queue: &Arc<TurnQueue>) -> Turn {
        let (queue, number) = (Arc::clone(queue), AtomicU64::new(NONE));
        let ticket = Arc::new(Ticket { queue, number, task: OnceLock::new() });
        let waker = Waker::from(Arc::clone(&ticket));
        Turn { ticket, waker, patience: PATIENCE }
    }

    /// What is to be woken when bytes come. The connection stays in the task that asks first.
    pub(crate) fn waker(&mut self, context: &Context<'_>) -> &Waker {
        self.ticket.task.get_or_init(|| context.waker().clone());
        &self.waker
    }

    /// Lets the connections go on that have commands, before replies are written.
    pub(crate) async fn yield_to_others(&self) {
        let holding = &self.ticket.queue.holding;
        if holding.fetch_add(1, Ordering::Relaxed) + 1 >= ANSWERED_TOGETHER {
            holding.store(0, Ordering::Relaxed);
            return;
        }
        let mut has_waited = false;
        poll_fn(|context| {
            if std::mem::replace(&mut has_waited, true) {
                return Poll::Ready(());
            }
            // A task that wakes itself goes behind all others of its thread.
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Whether the connection may go on. If not, its task is woken once others had their turn.
    pub(crate) fn may_begin(&mut self, context: &Context<'_>) -> bool {
        let number = self.ticket.number.load(Ordering::Acquire);
        if number == NONE || number == DRAWING {
            return true;
        }
        let begun = self.ticket.queue.begun.load(Ordering::Acquire);
        let ahead = number.saturating_sub(begun + 1);
        if (1..=AHEAD_MAX).contains(&ahead) && self.patience > 0 {
            self.patience -= 1;
            // A task that wakes itself goes behind all others of its thread.
            context.waker().wake_by_ref();
            return false;
        }
        self.patience = PATIENCE;
        self.ticket.number.store(NONE, Ordering::Release);
        self.ticket.queue.begun.fetch_add(1, Ordering::AcqRel);
        true
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let number = self.ticket.number.swap(GONE, Ordering::AcqRel);
        if number != NONE && number != DRAWING {
            self.ticket.queue.begun.fetch_add(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_begin(turn: &mut Turn) -> bool {
        turn.may_begin(&Context::from_waker(Waker::noop()))
    }

    fn wake(turn: &mut Turn) {
        turn.waker(&Context::from_waker(Waker::noop())).wake_by_ref();
    }

    #[test]
    fn who_asked_later_lets_the_earlier_go_first() {
        let queue = Arc::new(TurnQueue::default());
        let (mut first, mut second) = (Turn::new(&queue), Turn::new(&queue));
        for _ in 0..3 {
            wake(&mut first);
            wake(&mut second);
            wake(&mut first);
            assert!(!may_begin(&mut second));
            assert!(may_begin(&mut first));
            assert!(may_begin(&mut second));
        }
    }

    #[test]
    fn nobody_waits_for_one_who_has_gone_or_for_ever() {
        let queue = Arc::new(TurnQueue::default());
        let (mut first, mut second) = (Turn::new(&queue), Turn::new(&queue));
        wake(&mut first);
        wake(&mut second);
        assert_eq!((0..=PATIENCE).filter(|_| may_begin(&mut second)).count(), 1);
        let waker = first.waker.clone();
        drop(first);
        waker.wake();
        wake(&mut second);
        assert!(may_begin(&mut second));
    }

    #[test]
    fn nobody_waits_for_a_crowd() {
        let queue = Arc::new(TurnQueue::default());
        let mut crowd: Vec<Turn> = (0..10).map(|_| Turn::new(&queue)).collect();
        crowd.iter_mut().for_each(wake);
        assert!(may_begin(&mut crowd[9]));
        // One has begun, so that for the fourth there are no more than two left to let go first.
        assert!(!may_begin(&mut crowd[3]));
    }
}
