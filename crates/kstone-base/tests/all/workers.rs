//! How jobs are run: once, again after a failure or a kill, never beside themselves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kstone_base::work::{JobError, NewJob, WorkersOptions};
use kstone_core::env::Clock;
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{
    START_MS, empty_store, job, process_of, process_with, runs, store_and_process,
};

#[tokio::test]
async fn a_job_is_run_once_and_is_gone() {
    let (_store, process) = store_and_process().await;
    let counted = process.count(|_| Ok(()));
    process.outbox.enqueue(job()).await.unwrap();
    assert_eq!(process.depth().await, (1, 0, 0, 0));
    assert_eq!(process.workers.run_due().await.unwrap(), 1);
    assert_eq!(process.workers.run_due().await.unwrap(), 0);
    assert_eq!((runs(&counted), process.depth().await), (1, (0, 0, 0, 0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_workers_that_race_on_one_store_one_runs_each_job() {
    const JOBS: usize = 120;
    let store = empty_store().await;
    let seen: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
    let all_done = Arc::new(Notify::new());
    let options = WorkersOptions { look_every: Duration::from_millis(5), ..Default::default() };
    let processes: Vec<_> = (0..4)
        .map(|seed| process_with(&store, 10 + seed, Arc::clone(&store.clock) as _, options.clone()))
        .collect();
    for process in &processes {
        let (seen, all_done) = (Arc::clone(&seen), Arc::clone(&all_done));
        process.workers.register("q", "count", move |job| {
            let (seen, all_done) = (Arc::clone(&seen), Arc::clone(&all_done));
            async move {
                tokio::task::yield_now().await;
                let mut seen = seen.lock().unwrap();
                *seen.entry(job.id).or_default() += 1;
                if seen.len() == JOBS {
                    all_done.notify_one();
                }
                Ok(())
            }
        });
        process.workers.start();
    }
    for _ in 0..JOBS {
        processes[0].outbox.enqueue(job()).await.unwrap();
    }
    all_done.notified().await;
    for process in &processes {
        process.workers.stop().await;
    }
    let seen = seen.lock().unwrap().clone();
    assert!(seen.values().all(|runs| *runs == 1), "{seen:?}");
    assert_eq!(processes[0].depth().await, (0, 0, 0, 0));
}

#[tokio::test]
async fn a_job_that_fails_is_tried_three_times_more_each_time_later_and_then_given_up() {
    let (store, process) = store_and_process().await;
    let counted = process.count(|run| Err(JobError::retry(format!("failure {run}"))));
    process.outbox.enqueue(job()).await.unwrap();
    for (attempt, whole_ms) in [(1, 2_000), (2, 8_000), (3, 32_000)] {
        assert_eq!(process.workers.run_due().await.unwrap(), 1);
        assert_eq!((runs(&counted), process.depth().await), (attempt, (0, 1, 0, 0)));
        store.clock.advance(whole_ms / 2 - 1);
        assert_eq!(process.workers.run_due().await.unwrap(), 0, "too early after {attempt}");
        store.clock.advance(whole_ms / 2 + 1);
    }
    assert_eq!(process.workers.run_due().await.unwrap(), 1);
    assert_eq!((runs(&counted), process.depth().await), (4, (0, 0, 0, 1)));
    store.clock.advance(1_000_000_000);
    assert_eq!(process.workers.run_due().await.unwrap(), 0);
    let dead = process.queues.dead_letters("q", 10, None).await.unwrap().items;
    assert_eq!((dead[0].attempts, dead[0].problem.as_str()), (4, "failure 4"));
    assert_eq!((&dead[0].payload, dead[0].created_at.epoch_ms()), (&json!({ "n": 1 }), START_MS));
}

#[tokio::test]
async fn a_job_that_goes_well_at_last_leaves_no_dead_letter() {
    let (store, process) = store_and_process().await;
    let counted =
        process.count(|run| if run < 4 { Err(JobError::retry("not yet")) } else { Ok(()) });
    process.outbox.enqueue(job()).await.unwrap();
    for _ in 0..4 {
        process.workers.run_due().await.unwrap();
        store.clock.advance(60_000);
    }
    assert_eq!((runs(&counted), process.depth().await), (4, (0, 0, 0, 0)));
}

#[tokio::test]
async fn what_will_never_work_is_given_up_at_once() {
    let (_store, process) = store_and_process().await;
    process.count(|_| Err(JobError::fatal("no such address")));
    process.outbox.enqueue(job()).await.unwrap();
    process.workers.run_due().await.unwrap();
    assert_eq!(process.depth().await, (0, 0, 0, 1));
}

#[tokio::test]
async fn a_handler_that_panics_has_failed_and_is_tried_again() {
    let (store, process) = store_and_process().await;
    let counted = process.count(|run| if run == 1 { panic!("on purpose") } else { Ok(()) });
    process.outbox.enqueue(job()).await.unwrap();
    process.workers.run_due().await.unwrap();
    assert_eq!(process.depth().await, (0, 1, 0, 0));
    store.clock.advance(2_000);
    process.workers.run_due().await.unwrap();
    assert_eq!((runs(&counted), process.depth().await), (2, (0, 0, 0, 0)));
}

#[tokio::test]
async fn what_a_killed_worker_held_is_run_by_another_when_its_lease_is_over() {
    let (store, process) = store_and_process().await;
    let begun = process.hang();
    process.outbox.enqueue(job()).await.unwrap();
    let killed = process.spawn_run_due();
    begun.notified().await;
    killed.abort();

    let soon = store.after_a_crash(29_999);
    let other = process_of(&soon, 3);
    let counted = other.count(|_| Ok(()));
    assert_eq!(other.depth().await, (0, 0, 1, 0));
    assert_eq!(other.workers.run_due().await.unwrap(), 0);
    soon.clock.advance(1);
    assert_eq!(other.depth().await, (1, 0, 0, 0));
    assert_eq!(other.workers.run_due().await.unwrap(), 1);
    assert_eq!((runs(&counted), other.depth().await), (1, (0, 0, 0, 0)));
}

#[tokio::test]
async fn a_job_that_kills_its_worker_each_time_is_given_up() {
    let (store, process) = store_and_process().await;
    let begun = process.hang();
    process.outbox.enqueue(job()).await.unwrap();
    for _ in 0..4 {
        let killed = process.spawn_run_due();
        begun.notified().await;
        killed.abort();
        let _ = killed.await;
        store.clock.advance(30_000);
    }
    assert_eq!(process.workers.run_due().await.unwrap(), 0);
    assert_eq!(process.depth().await, (0, 0, 0, 1));
    let dead = process.queues.dead_letters("q", 10, None).await.unwrap().items;
    assert!(dead[0].problem.contains("vanished"), "{}", dead[0].problem);
}

/// The clock of the runtime: with paused time, waiting moves it.
#[derive(Debug)]
struct RuntimeClock(tokio::time::Instant);

impl Clock for RuntimeClock {
    fn now_ms(&self) -> u64 {
        START_MS + self.0.elapsed().as_millis() as u64
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_slow_and_alive_keeps_its_job() {
    let store = empty_store().await;
    let clock: Arc<dyn Clock> = Arc::new(RuntimeClock(tokio::time::Instant::now()));
    let slow = process_with(&store, 2, Arc::clone(&clock), WorkersOptions::default());
    let other = process_with(&store, 3, clock, WorkersOptions::default());
    slow.workers.register("q", "count", |_| async {
        tokio::time::sleep(Duration::from_secs(200)).await;
        Ok(())
    });
    let counted = other.count(|_| Ok(()));
    slow.outbox.enqueue(job()).await.unwrap();
    let working = slow.spawn_run_due();
    for _ in 0..19 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(other.workers.run_due().await.unwrap(), 0);
    }
    assert_eq!(working.await.unwrap().unwrap(), 1);
    assert_eq!((runs(&counted), other.depth().await), (0, (0, 0, 0, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_lost_its_job_does_not_go_on_beside_the_one_who_has_it() {
    let (store, process) = store_and_process().await;
    let other = process_of(&store, 3);
    let finished = Arc::new(Mutex::new(0));
    let counting = Arc::clone(&finished);
    process.workers.register("q", "count", move |_| {
        let counting = Arc::clone(&counting);
        async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            *counting.lock().unwrap() += 1;
            Ok(())
        }
    });
    let counted = other.count(|_| Ok(()));
    process.outbox.enqueue(job()).await.unwrap();
    let working = process.spawn_run_due();
    // Its process was stopped for long, by a debugger perhaps: the lease ran out unnoticed.
    tokio::time::sleep(Duration::from_secs(5)).await;
    store.clock.advance(31_000);
    assert_eq!(other.workers.run_due().await.unwrap(), 1);
    working.await.unwrap().unwrap();
    assert_eq!((runs(&counted), *finished.lock().unwrap()), (1, 0));
    assert_eq!(other.depth().await, (0, 0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn workers_that_stop_put_back_what_does_not_come_to_an_end() {
    let (store, process) = store_and_process().await;
    let begun = process.hang();
    process.workers.start();
    process.outbox.enqueue(job()).await.unwrap();
    begun.notified().await;
    process.workers.stop().await;
    assert_eq!(process.depth().await, (1, 0, 0, 0));
    // It has as many attempts as before.
    let other = process_of(&store, 3);
    let seen = Arc::new(Mutex::new(0));
    let noted = Arc::clone(&seen);
    other.workers.register("q", "count", move |job| {
        *noted.lock().unwrap() = job.attempt;
        async { Ok(()) }
    });
    other.workers.run_due().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), 1);
}

#[tokio::test]
async fn jobs_of_a_kind_that_nobody_here_does_are_left_for_others_and_hide_nothing() {
    let (store, process) = store_and_process().await;
    let counted = process.count(|_| Ok(()));
    for _ in 0..200 {
        process.outbox.enqueue(NewJob::new("q", "another", json!({}))).await.unwrap();
    }
    store.clock.advance(1);
    process.outbox.enqueue(job()).await.unwrap();
    assert_eq!((process.workers.run_due().await.unwrap(), runs(&counted)), (1, 1));
    assert_eq!(process.depth().await, (200, 0, 0, 0));
}
