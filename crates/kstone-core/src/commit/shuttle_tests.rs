//! Tests the commit pipeline under thread schedules chosen by the `shuttle` crate. Run with
//! `testing/schedules`.
//!
//! A wait that never returns shows as a deadlock that shuttle reports.

use super::*;
use crate::wal::test_vfs::TestVfs;
use shuttle::future::block_on;
use shuttle::thread;
use std::future::poll_fn;

const ITERATIONS: usize = 2_000;

/// Runs `test` under random schedules, and under PCT, which is better at bugs that take a few
/// switches at just the wrong moments.
fn check(test: impl Fn() + Send + Sync + Copy + 'static) {
    check_times(ITERATIONS, test);
}

fn check_times(iterations: usize, test: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(test, iterations);
    shuttle::check_pct(test, iterations, 3);
}

fn open(vfs: &Arc<TestVfs>, threads: bool, segment_bytes: u64) -> Arc<Log> {
    let options = LogOptions { segment_bytes, interval: Duration::from_secs(1) };
    let from = RecoveryStart { log_start: 0, last_seq: 0, expect_log: false };
    let env = vfs.env(threads);
    let log = Log::open(&env, Path::new("/db"), [1; 16], options, from, &mut |_| Ok(())).unwrap().0;
    Arc::new(log)
}

/// Runs `work` on so many threads and waits for all.
fn on_threads(
    log: &Arc<Log>,
    count: usize,
    work: impl Fn(&Log, usize) + Send + Sync + Copy + 'static,
) {
    let threads: Vec<_> = (0..count)
        .map(|i| {
            let log = Arc::clone(log);
            thread::spawn(move || work(&log, i))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn watermarks_are_in_order(log: &Log) {
    let durable = log.durable();
    let written = log.written();
    assert!(durable <= written && written <= log.appended());
}

#[test]
fn shuttle_every_wait_returns_and_nobody_is_told_too_early() {
    check(|| {
        let log = open(&TestVfs::new(), false, 1 << 14);
        on_threads(&log, 3, |log, i| {
            for round in 0..2 {
                let ticket = log.append(&[0; 40], 1 + i as u32).unwrap();
                let (first, last) = (ticket.first_seq, ticket.last_seq);
                assert!(log.visible() < first, "an unapplied commit is never visible");
                log.applied(ticket);
                watermarks_are_in_order(log);
                if round == 0 {
                    log.wait_visible(last).unwrap();
                    let seen = log.visible();
                    assert!(seen >= last);
                    log.wait_durable(last).unwrap();
                    assert!(log.visible() >= seen, "visible never goes back");
                } else {
                    log.wait_written(last).unwrap();
                    log.wait_durable(last).unwrap();
                }
                assert!(log.durable() >= last);
                watermarks_are_in_order(log);
            }
        });
        assert_eq!((log.visible(), log.durable()), (12, 12));
    });
}

#[test]
fn shuttle_threads_that_wake_each_other_leave_nobody_asleep() {
    check(|| {
        let log = open(&TestVfs::new(), false, 1 << 14);
        on_threads(&log, 5, |log, i| {
            let ticket = log.append(&[0; 40], 1).unwrap();
            let seq = ticket.last_seq;
            log.applied(ticket);
            // One of them waits for less, and goes while the others are still to be woken.
            if i == 0 {
                log.wait_written(seq).unwrap();
            } else {
                log.wait_durable(seq).unwrap();
                assert!(log.durable() >= seq);
            }
        });
        assert_eq!(log.written(), 5);
    });
}

#[test]
fn shuttle_groups_that_are_gathered_again_and_again_leave_nobody_asleep() {
    // One that is covered and stays in the list leads nobody in about one of 50,000 schedules.
    check_times(30 * ITERATIONS, || {
        let log = open(&TestVfs::new(), false, 1 << 14);
        on_threads(&log, 5, |log, i| {
            // Not all come back as often.
            for _ in 0..1 + i % 3 {
                let ticket = log.append(&[0; 40], 1).unwrap();
                let seq = ticket.last_seq;
                log.applied(ticket);
                log.wait_durable(seq).unwrap();
                assert!(log.durable() >= seq);
            }
        });
        assert_eq!(log.durable(), 9);
    });
}

#[test]
fn shuttle_appends_that_need_segments_keep_their_order() {
    check(|| {
        let vfs = TestVfs::new();
        let log = open(&vfs, false, 512);
        on_threads(&log, 3, |log, i| {
            let ticket = log.append(&[0; 300], 1).unwrap();
            log.applied(ticket);
            let ticket = log.append(&vec![0; if i == 0 { 900 } else { 300 }], 1).unwrap();
            let seq = ticket.last_seq;
            log.applied(ticket);
            match i {
                0 => log.wait_durable(seq).unwrap(),
                1 => log.rotate().unwrap(),
                _ => drop(log.release(log.log_start(log.durable()))),
            }
        });
        log.close().unwrap();
        assert_eq!((log.visible(), log.durable()), (6, 6));
    });
}

#[test]
fn shuttle_futures_and_threads_share_the_log_thread() {
    check(|| {
        let log = open(&TestVfs::new(), true, 1 << 14);
        let running = Arc::clone(&log);
        let log_thread = thread::spawn(move || running.run());
        on_threads(&log, 3, |log, i| {
            let ticket = log.append(&[0; 40], 1).unwrap();
            let seq = ticket.last_seq;
            log.applied(ticket);
            match i {
                0 => block_on(poll_fn(|cx| log.poll_durable(seq, cx))).unwrap(),
                1 => block_on(poll_fn(|cx| log.poll_written(seq, cx))).unwrap(),
                _ => log.wait_durable(seq).unwrap(),
            }
            assert!(log.written() >= seq && (i == 1 || log.durable() >= seq));
        });
        log.shutdown();
        log_thread.join().unwrap();
        assert_eq!(log.durable(), 3);
    });
}

#[test]
fn shuttle_a_future_that_races_with_the_end_of_the_log_thread_is_answered() {
    check(|| {
        let log = open(&TestVfs::new(), true, 1 << 14);
        let running = Arc::clone(&log);
        let log_thread = thread::spawn(move || running.run());
        on_threads(&log, 2, |log, i| {
            if i == 0 {
                log.shutdown();
            } else if let Ok(ticket) = log.append(&[0; 40], 1) {
                let seq = ticket.last_seq;
                log.applied(ticket);
                block_on(poll_fn(|cx| log.poll_durable(seq, cx))).unwrap();
                assert!(log.durable() >= seq);
            }
        });
        log_thread.join().unwrap();
        log.close().unwrap();
    });
}

#[test]
fn shuttle_a_commit_that_is_given_up_hangs_nobody() {
    check(|| {
        let log = open(&TestVfs::new(), true, 1 << 14);
        let running = Arc::clone(&log);
        let log_thread = thread::spawn(move || running.run());
        on_threads(&log, 3, |log, i| {
            let Ok(ticket) = log.append(&[0; 40], 1) else { return };
            let seq = ticket.last_seq;
            if i == 0 {
                drop(ticket);
                assert!(log.visible() < seq);
                return;
            }
            log.applied(ticket);
            // Either came before the failure, or learns of it.
            let seen = log.wait_visible(seq);
            assert!(seen.is_err() || log.visible() >= seq);
            let durable = if i == 1 {
                log.wait_durable(seq)
            } else {
                block_on(poll_fn(|cx| log.poll_durable(seq, cx)))
            };
            assert!(durable.is_err() || log.durable() >= seq);
        });
        assert!(log.poisoned().is_some());
        log.shutdown();
        log_thread.join().unwrap();
    });
}

#[test]
fn shuttle_a_failed_sync_reaches_everybody() {
    check(|| {
        let vfs = TestVfs::new();
        let log = open(&vfs, false, 1 << 14);
        vfs.set_sync_fails(true);
        on_threads(&log, 3, |log, _| {
            let Ok(ticket) = log.append(&[0; 40], 1) else { return };
            let seq = ticket.last_seq;
            log.applied(ticket);
            log.wait_visible(seq).unwrap();
            assert!(matches!(log.wait_durable(seq), Err(Error::Poisoned { .. })));
        });
        assert_eq!(log.durable(), 0);
    });
}
