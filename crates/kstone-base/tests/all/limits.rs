//! The sliding window, to the millisecond.

use std::sync::Arc;

use kstone_base::rate_limits::{LimitKind, RateLimits};

use kstone_fixture::Store;

use crate::support::{START_MS, empty_store};

const MINUTE_MS: u64 = 60_000;

fn limits(store: &Store) -> RateLimits {
    assert_eq!(START_MS % MINUTE_MS, 0, "tests begin with a minute");
    RateLimits::new(Arc::new(store.keys.clone()), Arc::clone(&store.clock) as _)
}

async fn admitted(limits: &RateLimits, kind: LimitKind, asked: u32) -> u32 {
    let mut admitted = 0;
    for _ in 0..asked {
        admitted += u32::from(limits.admit(kind, "10.0.0.1").await.allowed);
    }
    admitted
}

#[tokio::test]
async fn each_kind_has_its_limit_and_what_is_left_is_told() {
    let store = empty_store().await;
    let limits = limits(&store);
    for (kind, limit) in LimitKind::ALL.into_iter().zip([50, 30, 100, 20, 5, 600]) {
        for sent in 1..=limit {
            let decision = limits.admit(kind, "10.0.0.1").await;
            assert!(decision.allowed);
            assert_eq!((decision.limit, decision.remaining), (limit, limit - sent));
        }
        let refused = limits.admit(kind, "10.0.0.1").await;
        assert_eq!((refused.allowed, refused.remaining), (false, 0), "{kind:?}");
        assert!(limits.admit(kind, "10.0.0.2").await.allowed, "another client");
        assert!(limits.admit(kind, "2001:db8::1").await.allowed, "an address with colons");
    }
}

#[tokio::test]
async fn the_minute_before_counts_by_the_part_that_the_window_still_covers() {
    let store = empty_store().await;
    let limits = limits(&store);
    assert_eq!(admitted(&limits, LimitKind::Batch, 9).await, 5);
    store.clock.set(START_MS + MINUTE_MS - 1);
    assert_eq!(admitted(&limits, LimitKind::Batch, 1).await, 0, "the last millisecond");
    // 5 x (1 - part) + 1 <= 5 first holds when a fifth of the minute is over.
    store.clock.set(START_MS + MINUTE_MS + 11_999);
    assert_eq!(admitted(&limits, LimitKind::Batch, 9).await, 0);
    store.clock.set(START_MS + MINUTE_MS + 12_000);
    assert_eq!(admitted(&limits, LimitKind::Batch, 9).await, 1);
    store.clock.set(START_MS + MINUTE_MS + 24_000);
    assert_eq!(admitted(&limits, LimitKind::Batch, 9).await, 1);
    // Two minutes on, nothing is left of the first.
    store.clock.set(START_MS + 3 * MINUTE_MS);
    assert_eq!(admitted(&limits, LimitKind::Batch, 9).await, 5);
}

#[tokio::test]
async fn who_waits_as_long_as_told_gets_through_and_not_much_sooner() {
    let store = empty_store().await;
    let limits = limits(&store);
    for start in [0, 17_123, 59_999] {
        store.clock.set(START_MS + 10 * start * MINUTE_MS + start);
        assert_eq!(admitted(&limits, LimitKind::Batch, 9).await, 5, "at {start}");
        for _ in 0..12 {
            let refused = limits.admit(LimitKind::Batch, "10.0.0.1").await;
            assert!(!refused.allowed && refused.reset_s >= 1, "{refused:?}");
            // Nobody gets through a second before that.
            store.clock.advance((refused.reset_s - 1) * 1000);
            assert_eq!(admitted(&limits, LimitKind::Batch, 1).await, 0, "{refused:?}");
            store.clock.advance(1000);
            assert!(admitted(&limits, LimitKind::Batch, 9).await >= 1, "{refused:?}");
        }
    }
}

#[tokio::test]
async fn a_clock_that_steps_back_lets_nobody_through_twice() {
    let store = empty_store().await;
    let limits = limits(&store);
    store.clock.advance(MINUTE_MS);
    assert_eq!(admitted(&limits, LimitKind::Batch, 9).await, 5);
    store.clock.set(START_MS + MINUTE_MS - 500);
    assert_eq!(admitted(&limits, LimitKind::Batch, 9).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_requests_get_no_more_than_the_limit() {
    let store = empty_store().await;
    let limits = limits(&store);
    let racing: Vec<_> = (0..8)
        .map(|_| {
            let limits = limits.clone();
            tokio::spawn(async move { admitted(&limits, LimitKind::Query, 20).await })
        })
        .collect();
    let mut all = 0;
    for one in racing {
        all += one.await.unwrap();
    }
    assert_eq!(all, 50);
}
