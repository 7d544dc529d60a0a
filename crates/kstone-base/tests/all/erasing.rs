//! What work, alerts and kept answers say about a learner goes when the learner is erased.

use std::path::PathBuf;
use std::sync::Arc;

use kstone_base::Error;
use kstone_base::idempotency::{BeginOutcome, Idempotency, RepeatableRequest, StoredResponse};
use kstone_base::work::JobError;
use kstone_core::env::SeededRandom;
use kstone_keyspace::Subject;

use crate::alerts::{alert, alerts};
use kstone_fixture::Store;

use crate::support::{job, store_and_process};

/// The files in which these bytes are, whatever else they hold.
fn files_with(store: &Store, bytes: &[u8]) -> Vec<PathBuf> {
    let has = |path: &PathBuf| {
        let content = store.disk.read_file(path).unwrap();
        content.windows(bytes.len()).any(|it| it == bytes)
    };
    store.disk.paths().into_iter().filter(has).collect()
}

#[tokio::test]
async fn nothing_of_an_erased_learner_is_left_in_the_platforms_table() {
    let (store, process) = store_and_process().await;
    process.count(|_| Err(JobError::fatal("no")));
    process.outbox.enqueue(job().about("s-1")).await.unwrap();
    process.workers.run_due().await.unwrap();
    process.outbox.enqueue(job().about("s-1")).await.unwrap();
    process.outbox.enqueue(job().about("s-2")).await.unwrap();
    let alerts = alerts(&store, Vec::new(), true);
    alerts.raise(alert("about s-1")).await.unwrap();
    let random = Arc::new(SeededRandom::new(4));
    let requests =
        Idempotency::new(Arc::new(store.db.clone()), Arc::clone(&store.clock) as _, random);
    let ask = |key: &str, students: &[&str]| RepeatableRequest {
        client: "c".to_owned(),
        key: key.to_owned(),
        request: b"r".to_vec(),
        students: students.iter().map(|id| (*id).to_owned()).collect(),
    };
    let alone = ask("alone", &["s-1"]);
    let together = ask("together", &["s-1", "s-2"]);
    let of_another = ask("another", &["s-2"]);
    let kept = |body: &str| StoredResponse {
        status: 200,
        headers: Default::default(),
        body: body.to_owned(),
    };
    let answer = kept("{\"score\":\"ANSWERED\"}");
    for ask in [&alone, &together, &of_another] {
        let BeginOutcome::New(ticket) = requests.begin(ask).await.unwrap() else { panic!("new") };
        let body = match ask.students.iter().any(|id| id == "s-1") {
            true => answer.body.clone(),
            false => "{}".to_owned(),
        };
        requests.finish(&ticket, &kept(&body)).await.unwrap();
    }
    let begun = requests.begin(&together).await.unwrap();
    assert_eq!(begun, BeginOutcome::Replay(answer), "it is there");
    assert_eq!(process.depth().await, (2, 0, 0, 1));
    assert_ne!(files_with(&store, b"ANSWERED"), Vec::<PathBuf>::new());

    store.eraser().erase(&Subject::canonical("s-1", None), &|_| {}).await.unwrap();
    assert_eq!(process.depth().await, (1, 0, 0, 0), "the other learner's job is left");
    assert!(alerts.recent(10, None).await.unwrap().items.is_empty());
    assert_eq!(process.queues.depth("alerts").await.unwrap().ready, 0);
    for refused in [
        process.outbox.enqueue(job().about("s-1")).await.err(),
        alerts.raise(alert("about s-1 again")).await.err(),
    ] {
        let is_so = matches!(&refused, Some(Error::Refused { why }) if why.contains("erased"));
        assert!(is_so, "nothing new either: {refused:?}");
    }

    for ask in [&alone, &together] {
        let begun = requests.begin(ask).await;
        assert!(!matches!(begun, Ok(BeginOutcome::Replay(_))), "{begun:?}");
    }
    assert!(matches!(requests.begin(&of_another).await.unwrap(), BeginOutcome::Replay(_)));
    assert_eq!(files_with(&store, b"ANSWERED"), Vec::<PathBuf>::new());
}
