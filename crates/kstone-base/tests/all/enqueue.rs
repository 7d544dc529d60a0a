//! How jobs are asked for: alone, within a transaction, once per key, later.

use std::sync::{Arc, Mutex};

use kstone::Item;
use kstone::ops::{Condition, Placeholders, TransactAction, TransactKind, TransactWrite};
use kstone_base::Error;
use kstone_base::time::Moment;
use kstone_base::work::{JobError, NewJob};
use kstone_ports::items::Items;
use serde_json::json;

use crate::support::{START_MS, empty_store, job, process_of, runs, store_and_process};

/// A transaction that writes a note and asks for a job, if there is no note.
fn with_a_note(ask: TransactAction) -> TransactWrite {
    let note = Item::new().with("pk", "note:1").with("sk", "note");
    let note = TransactAction {
        table: "platform".to_owned(),
        kind: TransactKind::Put(note),
        condition: Some(Condition::Text("attribute_not_exists(pk)".to_owned())),
        placeholders: Placeholders::default(),
        return_on_failure: false,
    };
    TransactWrite { actions: vec![note, ask], ..TransactWrite::default() }
}

#[tokio::test]
async fn a_job_is_there_if_and_only_if_the_transaction_that_asks_for_it_is() {
    let (store, process) = store_and_process().await;
    let ask = || process.outbox.action(&job()).unwrap();
    store.db.transact_write(&with_a_note(ask())).await.unwrap();
    assert_eq!(process.depth().await, (1, 0, 0, 0));
    store.db.transact_write(&with_a_note(ask())).await.unwrap_err();
    assert_eq!(process.depth().await, (1, 0, 0, 0));
    let later = store.after_a_crash(0);
    assert_eq!(process_of(&later, 3).depth().await, (1, 0, 0, 0));
    let note = Item::new().with("pk", "note:1").with("sk", "note");
    assert!(later.db.table("platform").get(note).unwrap().is_some());
}

#[tokio::test]
async fn a_job_for_later_waits_for_its_time() {
    let (store, process) = store_and_process().await;
    let counted = process.count(|_| Ok(()));
    let at = Moment::from_epoch_ms(START_MS + 10_000);
    process.outbox.enqueue(job().not_before(at)).await.unwrap();
    assert_eq!(process.depth().await, (0, 1, 0, 0));
    store.clock.advance(9_999);
    assert_eq!(process.workers.run_due().await.unwrap(), 0);
    store.clock.advance(1);
    assert_eq!((process.workers.run_due().await.unwrap(), runs(&counted)), (1, 1));
}

#[tokio::test]
async fn jobs_of_one_key_are_one_job_with_the_newest_payload_at_the_first_ones_time() {
    let (store, process) = store_and_process().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    process.workers.register("q", "sum", move |job| {
        noted.lock().unwrap().push(job.payload);
        async { Ok(()) }
    });
    for (n, wait) in [(1, 5_000), (2, 60_000), (3, 60_000)] {
        let at = Moment::from_epoch_ms(START_MS + wait);
        let job = NewJob::new("q", "sum", json!(n)).once_per("school:1").not_before(at);
        process.outbox.enqueue(job).await.unwrap();
    }
    assert_eq!(process.depth().await, (0, 1, 0, 0));
    store.clock.advance(5_000);
    process.workers.run_due().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [json!(3)]);
    assert_eq!(process.depth().await, (0, 0, 0, 0));
}

#[tokio::test]
async fn a_job_that_is_asked_for_while_it_runs_runs_once_more() {
    let (_store, process) = store_and_process().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (noted, outbox) = (Arc::clone(&seen), process.outbox.clone());
    let ask = |n: u32| NewJob::new("q", "sum", json!(n)).once_per("school_1");
    process.workers.register("q", "sum", move |job| {
        let outbox = outbox.clone();
        let is_first = noted.lock().unwrap().is_empty();
        noted.lock().unwrap().push((job.payload, job.attempt));
        async move {
            if is_first {
                for n in [2, 3] {
                    outbox.enqueue(ask(n)).await.unwrap();
                }
            }
            Ok(())
        }
    });
    process.outbox.enqueue(ask(1)).await.unwrap();
    process.workers.run_due().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [(json!(1), 1), (json!(3), 1)]);
    assert_eq!(process.depth().await, (0, 0, 0, 0));
}

#[tokio::test]
async fn names_that_are_no_ids_are_refused_and_named() {
    let store = empty_store().await;
    let outbox = process_of(&store, 2).outbox;
    for (job, field) in [
        (NewJob::new("a:b", "count", json!({})), "queue"),
        (NewJob::new("q", "", json!({})), "kind"),
        (NewJob::new("q", "count", json!({})).about("s:1"), "student_id"),
    ] {
        let error = outbox.action(&job).unwrap_err();
        let Error::Invalid(invalid) = &error else { panic!("{error}") };
        assert_eq!(invalid.field, field);
    }
}

#[tokio::test]
async fn the_table_without_its_index_is_refused_before_anything_is_kept_in_it() {
    let store = empty_store().await;
    let items: &dyn Items = &store.db;
    store.db.delete_table("platform").unwrap();
    let spec = kstone::table::TableSpec {
        name: "platform".to_owned(),
        key: kstone::table::KeySchema::hash_range(
            kstone::table::KeyAttribute::string("pk"),
            kstone::table::KeyAttribute::string("sk"),
        ),
        ..Default::default()
    };
    items.require_table(&spec, Some("ttl")).await.unwrap();
    let refused = kstone_base::work::require_table(items).await.unwrap_err();
    assert!(refused.to_string().contains("by_due"), "{refused}");
}

#[tokio::test]
async fn what_is_asked_for_while_the_last_attempt_fails_is_not_buried_with_it() {
    let (_store, process) = store_and_process().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (noted, outbox) = (Arc::clone(&seen), process.outbox.clone());
    let asked = |n: u32| NewJob::new("q", "count", json!({ "n": n })).once_per("k");
    process.workers.register("q", "count", move |job| {
        let (noted, outbox) = (Arc::clone(&noted), outbox.clone());
        async move {
            let n = job.payload["n"].as_u64().unwrap();
            noted.lock().unwrap().push((n, job.attempt));
            if n == 1 {
                outbox.enqueue(asked(2)).await.unwrap();
                return Err(JobError::fatal("no"));
            }
            Ok(())
        }
    });
    process.outbox.enqueue(asked(1)).await.unwrap();
    process.workers.run_due().await.unwrap();
    process.workers.run_due().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [(1, 1), (2, 1)], "the second is a new one");
    assert_eq!(process.depth().await, (0, 0, 0, 1));
    let dead = process.queues.dead_letters("q", 10, None).await.unwrap().items;
    assert_eq!(dead[0].payload, json!({ "n": 1 }), "that is what failed");
}
