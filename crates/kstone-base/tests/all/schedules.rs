//! A recurring job is enqueued once per period, however many processes check.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kstone_base::work::{Cadence, NewJob, Schedules};
use serde_json::json;

use kstone_fixture::Store;

use crate::support::{Process, START_MS, empty_store, process_of, store_and_process};

const DAY_MS: u64 = 86_400_000;

fn schedules(store: &Store, process: &Process) -> Schedules {
    let items = Arc::new(store.db.clone());
    let schedules = Schedules::new(items, Arc::clone(&store.clock) as _, process.outbox.clone());
    let job = NewJob::new("q", "nightly", json!({ "why": "it is night" }));
    schedules.add("tidy", Cadence::nightly(), job).unwrap();
    schedules
}

/// Every job that is due, with the period that it is for.
fn periods(process: &Process) -> Arc<Mutex<Vec<String>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    process.workers.register("q", "nightly", move |job| {
        assert_eq!(job.payload["why"], "it is night");
        noted.lock().unwrap().push(job.payload["period"].as_str().unwrap().to_owned());
        async { Ok(()) }
    });
    seen
}

#[tokio::test]
async fn two_processes_run_it_once_in_each_period() {
    let store = empty_store().await;
    let (one, two) = (process_of(&store, 2), process_of(&store, 3));
    let (first, second) = (schedules(&store, &one), schedules(&store, &two));
    let seen = periods(&one);
    assert!(first.tick().await.unwrap().is_empty(), "it begins with the next night");
    assert!(second.tick().await.unwrap().is_empty());
    let mut asked = 0;
    for _ in 0..72 {
        store.clock.advance(DAY_MS / 24);
        for schedules in [&first, &second, &first] {
            asked += schedules.tick().await.unwrap().len();
        }
        one.workers.run_due().await.unwrap();
    }
    assert_eq!(asked, 3);
    let nights = ["2026-01-15T02:30:00Z", "2026-01-16T02:30:00Z", "2026-01-17T02:30:00Z"];
    assert_eq!(*seen.lock().unwrap(), nights);
}

#[tokio::test]
async fn after_a_downtime_it_is_caught_up_once() {
    let (store, process) = store_and_process().await;
    schedules(&store, &process).tick().await.unwrap();
    let later = store.after_a_crash(10 * DAY_MS);
    let process = process_of(&later, 3);
    let seen = periods(&process);
    let schedules = schedules(&later, &process);
    assert_eq!(schedules.state().await.unwrap()[0].next.epoch_ms(), {
        use kstone_core::env::Clock;
        later.clock.now_ms()
    });
    assert_eq!(schedules.tick().await.unwrap(), ["tidy"]);
    assert!(schedules.tick().await.unwrap().is_empty());
    process.workers.run_due().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["2026-01-24T02:30:00Z"]);
}

#[tokio::test]
async fn a_crash_after_it_was_asked_for_neither_loses_nor_repeats_it() {
    let (store, process) = store_and_process().await;
    let tidy = schedules(&store, &process);
    tidy.tick().await.unwrap();
    store.clock.advance(DAY_MS);
    assert_eq!(tidy.tick().await.unwrap(), ["tidy"]);
    let later = store.after_a_crash(1_000);
    let process = process_of(&later, 3);
    let seen = periods(&process);
    assert!(schedules(&later, &process).tick().await.unwrap().is_empty());
    process.workers.run_due().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["2026-01-15T02:30:00Z"]);
}

#[tokio::test]
async fn what_is_shown_of_a_schedule_is_when_it_was_and_when_it_will_be() {
    let (store, process) = store_and_process().await;
    let schedules = schedules(&store, &process);
    let often = Cadence::every(Duration::from_secs(300));
    schedules.add("often", often, NewJob::new("q", "often", json!({}))).unwrap();
    schedules.tick().await.unwrap();
    store.clock.advance(300_000);
    schedules.tick().await.unwrap();
    let [often, tidy] = &schedules.state().await.unwrap()[..] else { panic!("two") };
    assert_eq!((often.name.as_str(), often.every_s), ("often", 300));
    assert_eq!(often.last.unwrap().to_string(), "2026-01-14T10:35:00Z");
    assert_eq!(often.next.to_string(), "2026-01-14T10:40:00Z");
    assert_eq!((tidy.last, tidy.next.to_string()), (None, "2026-01-15T02:30:00Z".to_owned()));
}

#[tokio::test]
async fn a_schedule_that_fails_keeps_no_other_waiting() {
    let (store, process) = store_and_process().await;
    let schedules = schedules(&store, &process);
    // It has no kind, so it cannot be asked for.
    schedules.add("tidy", Cadence::nightly(), NewJob::new("q", "", json!({}))).unwrap();
    let job = NewJob::new("q", "nightly", json!({ "why": "it is night" }));
    schedules.add("after", Cadence::nightly(), job).unwrap();
    let seen = periods(&process);
    schedules.tick().await.unwrap_err();
    store.clock.advance(DAY_MS);
    schedules.tick().await.unwrap_err();
    process.workers.run_due().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["2026-01-15T02:30:00Z"]);
}

#[tokio::test]
async fn a_clock_that_was_a_year_ahead_once_silences_nothing() {
    let (store, process) = store_and_process().await;
    let tidy = schedules(&store, &process);
    tidy.tick().await.unwrap();
    store.clock.advance(365 * DAY_MS);
    assert_eq!(tidy.tick().await.unwrap(), ["tidy"], "its job waits for the next year");
    store.clock.set(START_MS + DAY_MS);
    let seen = periods(&process);
    let restarted = schedules(&store, &process);
    // Both the process that has seen it and one that has not.
    for (schedules, night) in
        [(&restarted, "2026-01-15T02:30:00Z"), (&tidy, "2026-01-16T02:30:00Z")]
    {
        assert_eq!(schedules.tick().await.unwrap(), ["tidy"]);
        assert!(schedules.tick().await.unwrap().is_empty());
        process.workers.run_due().await.unwrap();
        assert_eq!(seen.lock().unwrap().last().unwrap(), night);
        store.clock.advance(DAY_MS);
    }
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_clock_that_is_an_hour_ahead_does_not_make_it_come_twice() {
    let store = empty_store().await;
    let (one, two) = (process_of(&store, 2), process_of(&store, 3));
    let (right, ahead) = (schedules(&store, &one), schedules(&store, &two));
    right.tick().await.unwrap();
    // Just past half past two.
    store.clock.set(START_MS / DAY_MS * DAY_MS + DAY_MS + 9_001_000);
    assert_eq!(ahead.tick().await.unwrap(), ["tidy"]);
    store.clock.set(START_MS / DAY_MS * DAY_MS + DAY_MS + 5_400_000);
    assert!(right.tick().await.unwrap().is_empty());
    store.clock.set(START_MS / DAY_MS * DAY_MS + DAY_MS + 9_002_000);
    assert!(right.tick().await.unwrap().is_empty());
}
