//! What one HTTP connection is doing, and until when it may go on so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kstone_core::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::stall_guard::reading_time;

/// The requests and answers of one connection. Shared by the connection and its requests.
#[derive(Debug)]
pub(crate) struct Activity {
    read_timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Requests that were read and whose answers are not sent yet.
    underway: usize,
    /// When the last of them ended, or something was written since.
    idle_since: Instant,
    /// How long the connection may be idle.
    idle_max: Duration,
    /// Answers that wait for the client to read, by request, and until when they do.
    unread: BTreeMap<u64, Instant>,
    /// The number of the next request.
    next: u64,
}

/// Why a connection is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// It has been idle for too long.
    Idle,
    /// The client leaves an answer unread.
    Unread,
}

/// A request, from its head to the last byte of its answer.
#[derive(Debug)]
pub(crate) struct Underway {
    activity: Arc<Activity>,
    number: u64,
}

impl Activity {
    pub(crate) fn new(read_timeout: Duration) -> Arc<Activity> {
        let state = State {
            underway: 0,
            idle_since: Instant::now(),
            idle_max: read_timeout,
            unread: BTreeMap::new(),
            next: 0,
        };
        Arc::new(Activity { read_timeout, state: Mutex::new(state) })
    }

    /// A request has arrived.
    pub(crate) fn begin(self: &Arc<Self>) -> Underway {
        let number = self.with(|state| {
            state.underway += 1;
            state.next += 1;
            state.next
        });
        Underway { activity: Arc::clone(self), number }
    }

    /// The client took some bytes.
    pub(crate) fn wrote(&self) {
        self.with(|state| state.idle_since = Instant::now());
    }

    /// The connection may be idle for so long, from now on.
    pub(crate) fn restart_idle(&self, idle_max: Duration) {
        self.with(|state| (state.idle_since, state.idle_max) = (Instant::now(), idle_max));
    }

    /// Completes when the connection is to end.
    pub(crate) async fn expired(&self) -> Expiry {
        loop {
            let (deadline, expiry) = self.with(|state| state.deadline());
            let now = Instant::now();
            match deadline {
                Some(at) if at <= now => return expiry,
                Some(at) => sleep_until(at).await,
                // No deadline that begins from now on ends sooner.
                None => sleep_until(now + self.read_timeout).await,
            }
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock())
    }
}

impl State {
    fn deadline(&self) -> (Option<Instant>, Expiry) {
        if self.underway == 0 {
            return (Some(self.idle_since + self.idle_max), Expiry::Idle);
        }
        (self.unread.values().min().copied(), Expiry::Unread)
    }
}

impl Underway {
    /// From now on the client has to take so many bytes, in the time that the slowest one needs.
    pub(crate) fn await_client(&mut self, bytes: u64) {
        let until = Instant::now() + self.activity.read_timeout + reading_time(bytes);
        self.activity.with(|state| state.unread.insert(self.number, until));
    }

    /// The client took them, and the next ones are not there yet.
    pub(crate) fn await_nothing(&mut self) {
        self.activity.with(|state| state.unread.remove(&self.number));
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.activity.with(|state| {
            state.unread.remove(&self.number);
            state.underway -= 1;
            state.idle_since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    const READ: Duration = Duration::from_secs(4);

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_requests_expires_and_one_at_work_does_not() {
        let activity = Activity::new(READ);
        let started = Instant::now();
        assert_eq!(activity.expired().await, Expiry::Idle);
        assert_eq!(started.elapsed(), READ);
        let request = activity.begin();
        assert!(tokio::time::timeout(READ * 10, activity.expired()).await.is_err());
        drop(request);
        let ended = Instant::now();
        assert_eq!(activity.expired().await, Expiry::Idle);
        assert_eq!(ended.elapsed(), READ);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_read_expires_after_the_time_that_its_length_takes() {
        let activity = Activity::new(READ);
        let mut request = activity.begin();
        let work = async {
            sleep(READ * 2).await;
            request.await_client(64 * 1024);
        };
        let started = Instant::now();
        let (expiry, ()) = tokio::join!(activity.expired(), work);
        assert_eq!(expiry, Expiry::Unread);
        assert_eq!(started.elapsed(), READ * 3 + Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_goes_on_without_end_is_not_cut_off_while_there_is_nothing_to_read() {
        let activity = Activity::new(READ);
        let mut request = activity.begin();
        request.await_client(1);
        request.await_nothing();
        assert!(tokio::time::timeout(READ * 10, activity.expired()).await.is_err());
        request.await_client(1);
        assert_eq!(activity.expired().await, Expiry::Unread);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_what_is_left_of_an_answer_is_not_idle() {
        let activity = Activity::new(READ);
        let started = Instant::now();
        let writing = async {
            for _ in 0..3 {
                sleep(READ / 2).await;
                activity.wrote();
            }
        };
        let (expiry, ()) = tokio::join!(activity.expired(), writing);
        assert_eq!((expiry, started.elapsed()), (Expiry::Idle, READ * 5 / 2));
    }
}
