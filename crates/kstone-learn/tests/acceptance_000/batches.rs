use kstone_learn::engine::{BatchRequest, Error};
use kstone_learn::mastery::{BatchState, BatchStatus, Components};

use crate::place::{EXAMPLE, Place};

fn requests(count: usize) -> Vec<BatchRequest> {
    let one = |at: usize| BatchRequest {
        student_id: format!("s-{at}"),
        components: Components { completion: at as f64 / count as f64, ..EXAMPLE },
    };
    (0..count).map(one).collect()
}

fn adds_up(status: &BatchStatus) -> bool {
    status.completed + status.failed + status.in_progress == status.total_requests
}

#[tokio::test]
async fn save_batch_mastery_writes_components_too_and_counts_what_it_did() {
    let place = Place::new().await;
    let status = place.engine.save_batch_mastery(&requests(300)).await.unwrap();
    assert!(adds_up(&status));
    assert_eq!((status.completed, status.status), (300, BatchState::Completed));
    assert_eq!(place.value("student:s-299", "mastery:2026-01-14:quiz").unwrap(), "0.9");
    let kept = place.engine.batch_status(&status.batch_id).await.unwrap();
    assert_eq!(kept, status);
    let pk = format!("batch:{}", status.batch_id);
    assert_eq!(place.ttl_s(&pk, "status"), Some(604_800));
}

#[tokio::test]
async fn who_fails_in_a_batch_is_named_and_does_not_stop_the_others() {
    let place = Place::new().await;
    place.engine.set_consent("s-3", false, false).await.unwrap();
    let status = place.engine.save_batch_mastery(&requests(10)).await.unwrap();
    assert!(adds_up(&status));
    assert_eq!((status.completed, status.failed), (9, 1));
    assert_eq!(status.failures[0].student_id, "s-3");
    assert!(status.failures[0].problem.contains("consent"));
    assert_eq!(place.engine.batch_status(&status.batch_id).await.unwrap(), status);
}

#[tokio::test]
async fn a_batch_that_is_too_large_or_names_somebody_twice_is_refused_by_the_field() {
    let place = Place::new().await;
    let problem = |requests: Vec<BatchRequest>| {
        let engine = place.engine.clone();
        async move { engine.save_batch_mastery(&requests).await.unwrap_err().to_string() }
    };
    assert!(problem(requests(1001)).await.starts_with("requests must be"));
    assert!(problem(Vec::new()).await.starts_with("requests must be"));
    let mut twice = requests(3);
    twice[2].student_id = "s-0".to_owned();
    assert!(problem(twice).await.starts_with("requests[2].student_id must be"));
    let mut wrong = requests(3);
    wrong[1].components.quiz = 2.0;
    assert!(problem(wrong).await.starts_with("requests[1].components.quiz must be"));
}

#[tokio::test]
async fn a_batch_that_was_interrupted_is_done_by_running_it_again() {
    let place = Place::new().await;
    let started = place.engine.start_batch(&requests(30)).await.unwrap();
    assert_eq!((started.in_progress, started.status), (30, BatchState::Processing));
    // Some of it was done when the process ended, and the status did not say so yet.
    let engine = place.another_engine();
    for at in 0..5 {
        engine.save_mastery_update(&format!("s-{at}"), &EXAMPLE).await.unwrap();
    }
    let done = engine.run_batch(&started.batch_id).await.unwrap();
    assert!(adds_up(&done));
    assert_eq!((done.completed, done.status), (30, BatchState::Completed));
    let last = place.engine.get_current_mastery("s-29").await.unwrap().unwrap();
    let again = engine.run_batch(&started.batch_id).await.unwrap();
    assert_eq!(again, done);
    assert_eq!(place.engine.get_current_mastery("s-29").await.unwrap().unwrap(), last);
    let missing = engine.batch_status("nothing").await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
}
