//! What is shown of queues: depth and dead letters.

use kstone_base::Error;
use kstone_base::time::Moment;
use kstone_base::work::JobError;

use crate::support::{START_MS, job, runs, store_and_process};

#[tokio::test]
async fn depth_tells_ready_from_delayed_and_how_long_the_first_has_waited() {
    let (store, process) = store_and_process().await;
    for _ in 0..5 {
        process.outbox.enqueue(job()).await.unwrap();
    }
    for wait in [1_000, 5_000] {
        let at = Moment::from_epoch_ms(START_MS + wait);
        process.outbox.enqueue(job().not_before(at)).await.unwrap();
    }
    store.clock.advance(1_500);
    let depth = process.queues.depth("q").await.unwrap();
    assert_eq!((depth.ready, depth.delayed, depth.lag_ms), (6, 1, 1_500));
    assert_eq!(process.queues.depth("another").await.unwrap().ready, 0);
}

#[tokio::test]
async fn dead_letters_come_newest_first_page_by_page() {
    let (store, process) = store_and_process().await;
    process.count(|run| Err(JobError::fatal(run)));
    for _ in 0..5 {
        process.outbox.enqueue(job()).await.unwrap();
        process.workers.run_due().await.unwrap();
        store.clock.advance(1_000);
    }
    let (mut problems, mut after) = (Vec::new(), None);
    loop {
        let page = process.queues.dead_letters("q", 2, after.as_deref()).await.unwrap();
        assert!(page.items.len() <= 2);
        problems.extend(page.items.into_iter().map(|row| row.problem));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(problems, ["5", "4", "3", "2", "1"]);
}

#[tokio::test]
async fn a_dead_letter_can_be_tried_again_or_dropped_and_that_once() {
    let (_store, process) = store_and_process().await;
    let counted = process.count(|run| if run <= 2 { Err(JobError::fatal("no")) } else { Ok(()) });
    for _ in 0..2 {
        process.outbox.enqueue(job()).await.unwrap();
    }
    process.workers.run_due().await.unwrap();
    let dead = process.queues.dead_letters("q", 10, None).await.unwrap().items;
    assert_eq!((dead.len(), process.depth().await), (2, (0, 0, 0, 2)));
    process.queues.retry_dead("q", &dead[0].id).await.unwrap();
    process.queues.drop_dead("q", &dead[1].id).await.unwrap();
    assert_eq!(process.depth().await, (1, 0, 0, 0));
    process.workers.run_due().await.unwrap();
    assert_eq!((runs(&counted), process.depth().await), (3, (0, 0, 0, 0)));
    for id in [dead[0].id.as_str(), dead[1].id.as_str(), "nonsense", "-", "1-a:b"] {
        for refused in
            [process.queues.retry_dead("q", id).await, process.queues.drop_dead("q", id).await]
        {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::NotFound { .. } | Error::Invalid(_)), "{id}: {error}");
        }
    }
}

#[tokio::test]
async fn a_cursor_that_no_page_has_given_is_named() {
    let (store, process) = store_and_process().await;
    let alerts = crate::alerts::alerts(&store, Vec::new(), false);
    for cursor in ["", "x", "12", "x-y", "1-a b"] {
        let dead = process.queues.dead_letters("q", 10, Some(cursor)).await.unwrap_err();
        let alert = alerts.recent(10, Some(cursor)).await.unwrap_err();
        for error in [dead, alert] {
            let Error::Invalid(invalid) = error else { panic!("{cursor}: {error:?}") };
            assert_eq!(invalid.field, "cursor", "{cursor}");
        }
    }
}
