//! The pipeline: watermarks, group commit, futures, failures.

use super::*;
use crate::env::{ManualClock, SystemClock};
use crate::wal::test_vfs::TestVfs;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, Wake, Waker};

fn open(vfs: &Arc<TestVfs>, threads: bool) -> Log {
    open_in(&vfs.env(threads), 1 << 16)
}

fn open_in(env: &Env, segment_bytes: u64) -> Log {
    let options = LogOptions { segment_bytes, interval: Duration::from_secs(1) };
    let from = RecoveryStart { log_start: 0, last_seq: 0, expect_log: false };
    Log::open(env, Path::new("/db"), [1; 16], options, from, &mut |_| Ok(())).unwrap().0
}

fn commit(log: &Log, ops: &[u8]) -> Seq {
    let ticket = log.append(ops, 1).unwrap();
    let seq = ticket.last_seq;
    log.applied(ticket);
    seq
}

/// Counts how often it was woken.
#[derive(Debug, Default)]
struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl CountingWaker {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn readers_see_a_commit_only_after_all_before_it_are_applied() {
    let log = open(&TestVfs::new(), false);
    let first = log.append(b"1", 1).unwrap();
    let second = log.append(b"2", 2).unwrap();
    let third = log.append(b"3", 1).unwrap();
    log.applied(third);
    assert_eq!(log.visible(), 0);
    log.applied(first);
    assert_eq!(log.visible(), 1);
    log.wait_visible(1).unwrap();
    log.applied(second);
    assert_eq!(log.visible(), 4);
}

#[test]
fn a_commit_alone_is_neither_written_nor_synced() {
    let vfs = TestVfs::new();
    let log = open(&vfs, false);
    let syncs = vfs.syncs();
    let seq = commit(&log, b"buffered");
    assert_eq!((log.visible(), log.written(), log.durable()), (seq, 0, 0));
    log.wait_written(seq).unwrap();
    assert_eq!((log.written(), log.durable()), (seq, 0));
    assert_eq!(vfs.syncs(), syncs);
    log.wait_durable(seq).unwrap();
    log.wait_durable(seq).unwrap();
    assert_eq!((log.durable(), vfs.syncs()), (seq, syncs + 1));
}

#[test]
fn waiting_for_a_number_that_was_not_given_out_is_an_error() {
    let log = open(&TestVfs::new(), false);
    assert!(matches!(log.wait_durable(1), Err(Error::Invalid { .. })));
    assert!(log.append(b"", 0).is_err());
}

#[test]
fn an_interval_commit_is_synced_when_the_interval_is_over_and_not_before() {
    let clock = Arc::new(ManualClock::at(5_000));
    let env = Env { clock: clock.clone(), ..TestVfs::new().env(false) };
    let log = open_in(&env, 1 << 16);
    let seq = commit(&log, b"soon");
    log.request_interval(seq);
    log.drive();
    assert_eq!((log.written(), log.durable()), (seq, 0));
    clock.advance(999);
    let later = commit(&log, b"covered by the same sync");
    log.request_interval(later);
    log.drive();
    assert_eq!(log.durable(), 0);
    clock.advance(1);
    log.drive();
    assert_eq!(log.durable(), later);
    clock.advance(5_000);
    let syncs = log.stats().syncs;
    log.drive();
    assert_eq!(log.stats().syncs, syncs);
}

#[test]
fn a_full_disk_refuses_the_commit_and_a_retry_succeeds() {
    let vfs = TestVfs::new();
    let log = open_in(&vfs.env(false), 1024);
    let mut last = commit(&log, &[0; 800]);
    vfs.set_full(true);
    for _ in 0..3 {
        let error = log.append(&[1; 800], 1).unwrap_err();
        assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    }
    assert!(log.poisoned().is_none());
    // Whatever still fits goes on; nothing was used up by the failures.
    assert_eq!(commit(&log, b"small"), last + 1);
    vfs.set_full(false);
    last = commit(&log, &[1; 800]);
    assert_eq!(last, 3);
    log.wait_durable(last).unwrap();
    assert_eq!(log.durable(), 3);
    assert_eq!(vfs.paths().len(), 2, "no half-made file is left: {:?}", vfs.paths());
}

#[test]
fn a_failed_sync_poisons_for_good() {
    let vfs = TestVfs::new();
    let log = open(&vfs, false);
    let good = commit(&log, b"good");
    log.sync().unwrap();
    vfs.set_sync_fails(true);
    let bad = commit(&log, b"bad");
    let error = log.wait_durable(bad).unwrap_err();
    assert!(matches!(&error, Error::Poisoned { cause } if cause.contains("on fire")), "{error}");
    vfs.set_sync_fails(false);
    assert!(matches!(log.wait_durable(bad), Err(Error::Poisoned { .. })));
    assert!(matches!(log.append(b"more", 1), Err(Error::Poisoned { .. })));
    assert!(matches!(log.rotate(), Err(Error::Poisoned { .. })));
    assert!(matches!(log.close(), Err(Error::Poisoned { .. })));
    assert_eq!((log.durable(), log.visible()), (good, bad), "reads go on");
    log.wait_durable(good).unwrap();
}

#[test]
fn a_ticket_dropped_without_being_applied_stops_publication_without_a_hang() {
    let log = open(&TestVfs::new(), false);
    let before = log.append(b"before", 1).unwrap();
    let lost = log.append(b"lost", 1).unwrap();
    let after = log.append(b"after", 1).unwrap();
    let after_seq = after.last_seq;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| log.wait_visible(after_seq));
        let earlier = scope.spawn(|| log.wait_visible(1));
        log.applied(after);
        drop(lost);
        assert!(matches!(waiting.join().unwrap(), Err(Error::Poisoned { .. })));
        log.applied(before);
        earlier.join().unwrap().unwrap();
    });
    assert_eq!(log.visible(), 1);
    assert!(matches!(log.append(b"more", 1), Err(Error::Poisoned { .. })));
    assert!(matches!(log.wait_durable(after_seq), Err(Error::Poisoned { .. })));
}

#[test]
fn a_future_without_a_log_thread_leads_itself() {
    let log = open(&TestVfs::new(), false);
    let seq = commit(&log, b"async");
    let poll = log.poll_durable(seq, &mut Context::from_waker(Waker::noop()));
    assert!(matches!(poll, Poll::Ready(Ok(()))));
    assert_eq!(log.durable(), seq);
}

#[test]
fn futures_are_woken_by_the_turn_that_covers_them() {
    // Threads are announced, but the test takes the log thread's place.
    let log = open(&TestVfs::new(), true);
    let counts: Vec<_> = (0..3).map(|_| Arc::new(CountingWaker::default())).collect();
    let seqs: Vec<_> = (0..3).map(|_| commit(&log, b"async")).collect();
    for (count, seq) in counts.iter().zip(&seqs) {
        let waker = Waker::from(Arc::clone(count));
        for _ in 0..2 {
            let poll = log.poll_durable(*seq, &mut Context::from_waker(&waker));
            assert!(poll.is_pending());
        }
    }
    let early = Arc::new(CountingWaker::default());
    let waker = Waker::from(Arc::clone(&early));
    let poll = log.poll_written(seqs[2], &mut Context::from_waker(&waker));
    assert!(poll.is_pending());
    log.wait_written(seqs[2]).unwrap();
    assert_eq!((early.count(), counts[2].count()), (1, 0));
    log.drive();
    assert!(counts.iter().all(|count| count.count() == 1));
    assert_eq!(log.stats().syncs, 1);
    let poll = log.poll_durable(seqs[2], &mut Context::from_waker(Waker::noop()));
    assert!(matches!(poll, Poll::Ready(Ok(()))));
}

#[test]
fn poisoning_wakes_futures_with_the_error() {
    let log = open(&TestVfs::new(), true);
    let seq = commit(&log, b"async");
    let count = Arc::new(CountingWaker::default());
    let waker = Waker::from(Arc::clone(&count));
    assert!(log.poll_durable(seq, &mut Context::from_waker(&waker)).is_pending());
    log.poison("for the test");
    assert_eq!(count.count(), 1);
    let poll = log.poll_durable(seq, &mut Context::from_waker(&waker));
    assert!(matches!(poll, Poll::Ready(Err(Error::Poisoned { .. }))));
}

#[test]
fn the_log_thread_writes_what_nobody_waits_for_and_ends_with_everything_synced() {
    let vfs = TestVfs::new();
    let env = Env { clock: Arc::new(SystemClock::new()), ..vfs.env(true) };
    let log = open_in(&env, 1 << 16);
    std::thread::scope(|scope| {
        scope.spawn(|| log.run());
        let seq = commit(&log, b"buffered");
        while log.written() < seq {
            std::thread::yield_now();
        }
        assert_eq!(log.durable(), 0);
        for _ in 0..2000 {
            commit(&log, &[1; 300]);
        }
        log.shutdown();
    });
    assert_eq!(log.durable(), 2001);
    let count = Waker::noop();
    assert!(log.poll_durable(2001, &mut Context::from_waker(count)).is_ready());
    assert!(log.stats().rotations > 5);
}

#[test]
fn syncing_ahead_tells_nobody_that_it_worked_and_everybody_that_it_failed() {
    let vfs = TestVfs::new();
    let log = open_in(&vfs.env(false), 1 << 20);
    log.has_thread.store(true, Ordering::SeqCst);
    let write_much = || {
        for _ in 0..40 {
            commit(&log, &[7; 10_000]);
        }
        log.drive();
    };
    let before = vfs.syncs();
    write_much();
    assert!(vfs.syncs() > before, "nothing was synced ahead");
    assert_eq!(log.durable(), 0);
    vfs.set_sync_fails(true);
    write_much();
    vfs.set_sync_fails(false);
    let error = log.wait_durable(1).unwrap_err();
    assert!(matches!(&error, Error::Poisoned { cause } if cause.contains("on fire")), "{error}");
    assert!(matches!(log.append(b"more", 1), Err(Error::Poisoned { .. })));
}

/// A log thread that is awake finds by itself what is to be synced ahead; to wake it takes longer than a
/// commit. One that sleeps is woken, and so is any where a writer will soon wait for the sync.
#[test]
fn what_is_to_be_synced_ahead_wakes_a_log_thread_that_sleeps() {
    let vfs = TestVfs::new();
    let log = open_in(&vfs.env(false), 16 << 20);
    log.has_thread.store(true, Ordering::SeqCst);
    // The first segment is short, so its end is near from the beginning.
    let is_ahead =
        |is_urgent| log.ahead.lock().as_ref().is_some_and(|ahead| ahead.is_urgent == is_urgent);
    let write_until_ahead = |is_urgent, thread_sleeps| {
        while !is_ahead(is_urgent) {
            log.ahead.lock().take();
            let seq = commit(&log, &[7; 10_000]);
            // It may fall asleep after the commit has been appended, and before it is written.
            log.signal.take();
            log.queue.lock().thread_sleeps = thread_sleeps;
            log.wait_written(seq).unwrap();
        }
    };
    write_until_ahead(true, false);
    assert!(log.signal.take(), "a writer will wait for it");
    write_until_ahead(false, false);
    assert!(!log.signal.take(), "it is awake");
    log.drive();
    write_until_ahead(false, true);
    assert!(log.signal.take(), "it would sleep on");
    assert!(!log.queue.lock().thread_sleeps);
}

#[test]
fn the_log_thread_makes_the_next_segment_long_enough_for_the_longest_commit() {
    const MIB: usize = 1 << 20;
    let vfs = TestVfs::new();
    let log = open_in(&vfs.env(true), 32 * MIB as u64);
    log.drive();
    assert_eq!(vfs.paths().len(), 2, "a small one is prepared");
    commit(&log, &vec![0; 3 * MIB]);
    assert_eq!(vfs.paths().len(), 3, "it does not take this");
    log.drive();
    assert_eq!(vfs.paths().len(), 4, "one that takes as much again is prepared");
    log.drive();
    commit(&log, &vec![0; 3 * MIB]);
    assert_eq!(vfs.paths().len(), 4, "and nobody had to wait for it");
}

#[test]
fn commits_that_nobody_writes_out_do_not_pile_up() {
    let log = open_in(&TestVfs::new().env(false), 1 << 20);
    for _ in 0..100 {
        commit(&log, &[0; 10_000]);
    }
    assert!(log.queue.lock().pending_bytes() <= PENDING_BYTES_GOOD + 11_000);
    assert!(log.written() > 0);
}

#[test]
fn many_threads_share_syncs_and_nobody_is_told_too_early() {
    const THREADS: u64 = 64;
    const COMMITS: u64 = 60;
    let vfs = TestVfs::new();
    let env = Env { clock: Arc::new(SystemClock::new()), ..vfs.env(true) };
    let log = open_in(&env, 1 << 18);
    vfs.set_sync_delay_us(110);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..COMMITS {
                    let seq = commit(&log, &[3; 100]);
                    log.wait_durable(seq).unwrap();
                    assert!(log.durable() >= seq);
                    log.wait_visible(seq).unwrap();
                    assert!(log.visible() >= seq);
                }
            });
        }
    });
    let stats = log.stats();
    assert_eq!(stats.commits, THREADS * COMMITS);
    assert_eq!(log.durable(), THREADS * COMMITS);
    assert_eq!(stats.sync_latency.iter().sum::<u64>(), stats.syncs);
    assert!(stats.syncs * 5 <= stats.commits, "{stats:?}");
}
