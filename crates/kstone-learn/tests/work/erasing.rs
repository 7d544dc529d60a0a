//! What work, alerts and kept answers say about a learner goes when the learner is erased.

use std::sync::Arc;

use kstone_core::env::SeededRandom;
use kstone_keyspace::Subject;
use kstone_learn::guard::{Begun, Idempotency, KeptAnswer, Repeatable};
use kstone_learn::work::JobError;

use crate::alerts::{alert, alerts};
use crate::support::{Place, job};

#[tokio::test]
async fn nothing_of_an_erased_learner_is_left_in_the_platforms_table() {
    let place = Place::new().await;
    let process = place.process(2);
    process.count(|_| Err(JobError::fatal("no")));
    process.outbox.enqueue(job().about("s-1")).await.unwrap();
    process.workers.run_due().await.unwrap();
    process.outbox.enqueue(job().about("s-1")).await.unwrap();
    process.outbox.enqueue(job().about("s-2")).await.unwrap();
    let alerts = alerts(&place, Vec::new(), true);
    alerts.raise(alert("about s-1")).await.unwrap();
    let random = Arc::new(SeededRandom::new(4));
    let requests =
        Idempotency::new(Arc::new(place.db.clone()), Arc::clone(&place.clock) as _, random);
    let ask = Repeatable {
        client: "c".to_owned(),
        key: "k".to_owned(),
        request: b"r".to_vec(),
        students: vec!["s-1".to_owned()],
    };
    let Begun::New(ticket) = requests.begin(&ask).await.unwrap() else { panic!("new") };
    let answer = KeptAnswer { status: 200, body: "{\"student_id\":\"s-1\"}".to_owned() };
    requests.finish(&ticket, &answer).await.unwrap();
    assert_eq!(process.depth().await, (2, 0, 0, 1));

    place.eraser().erase(&Subject::canonical("s-1", None), &|_| {}).await.unwrap();
    assert_eq!(process.depth().await, (1, 0, 0, 0), "the other learner's job is left");
    assert!(alerts.recent(10, None).await.unwrap().rows.is_empty());
    assert_eq!(process.queues.depth("alerts").await.unwrap().ready, 0);
    assert!(process.outbox.enqueue(job().about("s-1")).await.is_err(), "nothing new either");
}
