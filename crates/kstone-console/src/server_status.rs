//! The figures that a server's process reports of itself, and their history of the last minutes.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use kstone_core::meter::Reading;
use kstone_core::sync::Mutex;

/// How many seconds are kept.
pub const SECONDS_KEPT: usize = 300;

/// The figures of the process that serves the console.
pub trait ServerStatus: Debug + Send + Sync {
    /// The doors that are open. Called every second.
    fn doors(&self) -> Vec<DoorStatus>;
    /// What the store holds and does. Called when a page shows it.
    fn engine(&self) -> EngineStatus;
    /// When the process began to serve, in milliseconds since 1970.
    fn started_at_ms(&self) -> u64;
    /// Where the data is, for people.
    fn place(&self) -> String;
}

/// One door: a protocol at an address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DoorStatus {
    /// Its protocol: `DynamoDB`, `Redis`.
    pub name: String,
    /// Its address.
    pub address: String,
    /// How durable a write is when it is answered: `sync`, `interval`, `os`.
    pub durability: String,
    /// What its meter shows.
    pub reading: Reading,
}

/// The store.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EngineStatus {
    /// Memory of the whole process, where the machine tells.
    pub process_memory_bytes: Option<u64>,
    /// Memory that holds what is not in files yet.
    pub memtable_bytes: u64,
    /// Memory that holds blocks of files.
    pub cache_bytes: u64,
    /// What memtables and cache may take together.
    pub memory_budget_bytes: u64,
    /// Files.
    pub file_bytes: u64,
    /// The log.
    pub log_bytes: u64,
    /// Keys and values before compression.
    pub data_bytes: u64,
    /// Records, as far as can be told without reading.
    pub records: u64,
    /// How many files.
    pub files: u64,
    /// The number of the last write.
    pub sequence: u64,
    /// Commits since it was opened.
    pub commits: u64,
    /// Syncs of the log since it was opened.
    pub syncs: u64,
    /// How long half of the syncs took at most.
    pub sync_us_p50: u64,
    /// How long 99 of 100 syncs took at most.
    pub sync_us_p99: u64,
    /// Bytes written to disk for each byte that was committed.
    pub write_amplification: f64,
    /// The share of blocks that were found in memory, if any were asked for.
    pub cache_hit_rate: Option<f64>,
    /// How often writers had to wait.
    pub stalls: u64,
    /// Each stripe, in order.
    pub stripes: Vec<StripeStatus>,
}

/// One of the stripes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StripeStatus {
    /// Keys and values before compression.
    pub data_bytes: u64,
    /// Records.
    pub records: u64,
    /// Files.
    pub files: u64,
    /// Gets since it was opened.
    pub gets: u64,
    /// Records written since it was opened.
    pub writes: u64,
}

/// The highest level of [`fullness`].
pub const FULLNESS_LEVELS: usize = 8;

/// How full a stripe is beside the fullest: 0 only if it is empty, the highest level only if it is
/// one of the fullest.
pub fn fullness(value: u64, max: u64) -> usize {
    if value == 0 {
        return 0;
    }
    let share = u128::from(value) * FULLNESS_LEVELS as u128 / u128::from(max.max(1));
    (share as usize).clamp(1, FULLNESS_LEVELS)
}

/// A process that tells nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServerStatus;

impl ServerStatus for NoServerStatus {
    fn doors(&self) -> Vec<DoorStatus> {
        Vec::new()
    }

    fn engine(&self) -> EngineStatus {
        EngineStatus::default()
    }

    fn started_at_ms(&self) -> u64 {
        0
    }

    fn place(&self) -> String {
        String::new()
    }
}

/// The last minutes of the doors, second by second.
#[derive(Debug, Default)]
pub struct History {
    seconds: Mutex<VecDeque<Vec<DoorStatus>>>,
}

/// What went through a door of late.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Traffic {
    /// The door as it is now.
    pub door: DoorStatus,
    /// Operations in each of the seconds that are kept, the oldest first.
    pub per_second: Vec<f64>,
    /// Operations per second over the last ten.
    pub now_per_second: f64,
    /// What the meter counted in the last minute.
    pub minute: Reading,
}

impl History {
    /// Notes what the doors show now. Is to be called once a second.
    pub fn note(&self, doors: Vec<DoorStatus>) {
        let mut seconds = self.seconds.lock();
        if seconds.len() > SECONDS_KEPT {
            seconds.pop_front();
        }
        seconds.push_back(doors);
    }

    /// What went through each door that was open when last noted.
    pub fn traffic(&self) -> Vec<Traffic> {
        let seconds = self.seconds.lock();
        let Some(last) = seconds.back() else { return Vec::new() };
        last.iter().map(|door| traffic(door, &seconds)).collect()
    }

    /// Notes the doors every second for as long as anybody holds the history.
    pub(crate) async fn keep(history: std::sync::Weak<History>, status: Arc<dyn ServerStatus>) {
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        // After a pause there is nothing to make up for: a second without a note is a longer one.
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let Some(history) = history.upgrade() else { return };
            history.note(status.doors());
        }
    }
}

fn traffic(door: &DoorStatus, seconds: &VecDeque<Vec<DoorStatus>>) -> Traffic {
    let of_door = |noted: &Vec<DoorStatus>| {
        noted.iter().find(|it| it.name == door.name).map(|it| it.reading.clone())
    };
    let readings: Vec<Reading> = seconds.iter().filter_map(of_door).collect();
    let per_second = readings.windows(2).map(|pair| match pair {
        [before, after] => after.operations.saturating_sub(before.operations) as f64,
        _ => 0.0,
    });
    let per_second: Vec<f64> = per_second.collect();
    let late = per_second.iter().rev().take(10);
    let now_per_second = match late.len() {
        0 => 0.0,
        n => late.sum::<f64>() / n as f64,
    };
    let a_minute_ago = readings.len().saturating_sub(61);
    let earlier = readings.get(a_minute_ago).cloned().unwrap_or_default();
    let minute = door.reading.since(&earlier);
    Traffic { door: door.clone(), per_second, now_per_second, minute }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_stripe_looks_empty_and_only_the_fullest_look_full() {
        assert_eq!(fullness(0, 100), 0);
        assert_eq!(fullness(1, u64::MAX), 1);
        assert_eq!(fullness(99, 100), FULLNESS_LEVELS - 1);
        assert_eq!(fullness(100, 100), FULLNESS_LEVELS);
        assert_eq!(fullness(u64::MAX, u64::MAX), FULLNESS_LEVELS);
    }

    fn door(name: &str, operations: u64) -> DoorStatus {
        let reading = Reading { connections: 1, operations, took_us: vec![operations] };
        DoorStatus { name: name.to_owned(), reading, ..DoorStatus::default() }
    }

    #[test]
    fn rates_are_the_differences_of_what_was_noted() {
        let history = History::default();
        assert_eq!(history.traffic(), []);
        for operations in [5, 5, 25, 30] {
            history.note(vec![door("Redis", operations), door("DynamoDB", 0)]);
        }
        let traffic = history.traffic();
        assert_eq!(traffic[0].per_second, [0.0, 20.0, 5.0]);
        assert_eq!(traffic[0].now_per_second, 25.0 / 3.0);
        assert_eq!(traffic[0].minute.operations, 25);
        assert_eq!(traffic[1].per_second, [0.0; 3]);
    }

    #[test]
    fn five_minutes_are_kept_and_no_more() {
        let history = History::default();
        for operations in 0..1000 {
            history.note(vec![door("Redis", operations * 2)]);
        }
        let traffic = history.traffic();
        assert_eq!(traffic[0].per_second.len(), SECONDS_KEPT);
        assert_eq!(traffic[0].now_per_second, 2.0);
        assert_eq!(traffic[0].minute.operations, 120, "the last 60 seconds");
    }

    #[test]
    fn counters_that_were_set_back_are_no_traffic() {
        let history = History::default();
        for operations in [100, 0, 3] {
            history.note(vec![door("Redis", operations)]);
        }
        assert_eq!(history.traffic()[0].per_second, [0.0, 3.0]);
    }
}
