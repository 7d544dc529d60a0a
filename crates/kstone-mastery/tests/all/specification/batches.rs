use kstone::ops::PutItem;
use kstone_mastery::domain::{BatchState, BatchStatus, Components};
use kstone_mastery::engine::{BatchRequest, Error};

use crate::specification::fixture::{EXAMPLE, Fixture};

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
    let fixture = Fixture::new().await;
    let status = fixture.engine.save_batch_mastery(&requests(300)).await.unwrap();
    assert!(adds_up(&status));
    assert_eq!((status.completed, status.status), (300, BatchState::Completed));
    assert_eq!(fixture.value("student:s-299", "mastery:2026-01-14:quiz").unwrap(), "0.9");
    let kept = fixture.engine.batch_status(&status.batch_id).await.unwrap();
    assert_eq!(kept, status);
    let pk = format!("batch:{}", status.batch_id);
    assert_eq!(fixture.ttl_s(&pk, "status"), Some(604_800));
}

#[tokio::test]
async fn who_fails_in_a_batch_is_named_and_does_not_stop_the_others() {
    let fixture = Fixture::new().await;
    fixture.engine.set_consent("s-3", false, false).await.unwrap();
    let status = fixture.engine.save_batch_mastery(&requests(10)).await.unwrap();
    assert!(adds_up(&status));
    assert_eq!((status.completed, status.failed), (9, 1));
    assert_eq!(status.failures[0].student_id, "s-3");
    assert!(status.failures[0].problem.contains("consent"));
    assert_eq!(fixture.engine.batch_status(&status.batch_id).await.unwrap(), status);
}

#[tokio::test]
async fn a_batch_that_is_too_large_or_names_somebody_twice_is_refused_by_the_field() {
    let fixture = Fixture::new().await;
    let problem = |requests: Vec<BatchRequest>| {
        let engine = fixture.engine.clone();
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
    let fixture = Fixture::new().await;
    let started = fixture.engine.start_batch(&requests(30)).await.unwrap();
    assert_eq!((started.in_progress, started.status), (30, BatchState::Processing));
    // Some of it was done when the process ended, and the status did not say so yet.
    let engine = fixture.another_engine();
    for at in 0..5 {
        engine.save_mastery_update(&format!("s-{at}"), &EXAMPLE).await.unwrap();
    }
    let done = engine.run_batch(&started.batch_id).await.unwrap();
    assert!(adds_up(&done));
    assert_eq!((done.completed, done.status), (30, BatchState::Completed));
    let last = fixture.engine.get_current_mastery("s-29").await.unwrap().unwrap();
    let again = engine.run_batch(&started.batch_id).await.unwrap();
    assert_eq!(again, done);
    assert_eq!(fixture.engine.get_current_mastery("s-29").await.unwrap().unwrap(), last);
    let missing = engine.batch_status("nothing").await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
}

#[tokio::test]
async fn whom_an_interrupted_batch_has_written_is_not_written_again() {
    let fixture = Fixture::new().await;
    let started = fixture.engine.start_batch(&requests(5)).await.unwrap();
    let pk = format!("batch:{}", started.batch_id);
    let request = |at: usize| fixture.item(&pk, &format!("request:s-{at}")).unwrap();
    let before: Vec<_> = (0..5).map(request).collect();
    fixture.engine.run_batch(&started.batch_id).await.unwrap();
    // The process ended before anybody was marked as done, and a learner went on.
    for item in before {
        let put = PutItem { table: "state".to_owned(), item, ..PutItem::default() };
        fixture.db.put_item(&put).wait().unwrap();
    }
    let lower = Components { completion: 0.1, ..EXAMPLE };
    let newest = fixture.engine.save_mastery_update("s-2", &lower).await.unwrap();
    let done = fixture.another_engine().run_batch(&started.batch_id).await.unwrap();
    assert_eq!((done.completed, done.status), (5, BatchState::Completed));
    assert_eq!(fixture.engine.get_current_mastery("s-2").await.unwrap().unwrap(), newest);
    assert_eq!(fixture.engine.get_current_mastery("s-3").await.unwrap().unwrap().version, 1);
}

#[tokio::test]
async fn a_batch_goes_on_without_those_who_were_erased_before_it_was_started() {
    let fixture = Fixture::new().await;
    for at in [3, 110] {
        fixture.engine.save_mastery_update(&format!("s-{at}"), &EXAMPLE).await.unwrap();
        fixture.engine.delete_student_data(&format!("s-{at}"), &|_| {}).await.unwrap();
    }
    // The second does not know who was erased until the store refuses it.
    for engine in [fixture.engine.clone(), fixture.another_engine()] {
        let started = engine.start_batch(&requests(120)).await.unwrap();
        assert!(adds_up(&started));
        assert_eq!((started.failed, started.in_progress), (2, 118));
        let named = |id: &str| started.students.iter().any(|it| it == id);
        assert!(!named("s-3") && !named("s-110") && named("s-4"));
        let done = engine.run_batch(&started.batch_id).await.unwrap();
        assert!(adds_up(&done));
        assert_eq!((done.completed, done.failed), (118, 2));
        let pk = format!("batch:{}", started.batch_id);
        assert!(fixture.value(&pk, "request:s-4").unwrap().contains("\"done\":true"));
        assert_eq!(fixture.value(&pk, "request:s-3"), None);
    }
}

#[tokio::test]
async fn the_status_that_is_kept_names_nobody_who_failed() {
    let fixture = Fixture::new().await;
    fixture.engine.set_consent("s-2", false, false).await.unwrap();
    fixture.engine.save_mastery_update("s-3", &EXAMPLE).await.unwrap();
    fixture.engine.delete_student_data("s-3", &|_| {}).await.unwrap();
    let status = fixture.engine.save_batch_mastery(&requests(260)).await.unwrap();
    assert_eq!((status.failed, status.failures.len()), (2, 2));
    let text = fixture.value(&format!("batch:{}", status.batch_id), "status").unwrap();
    let kept: BatchStatus = serde_json::from_str(&text).unwrap();
    assert_eq!(kept.failures, []);
    assert!(!text.contains("\"s-3\""), "{text}");
    let read = fixture.engine.batch_status(&status.batch_id).await.unwrap();
    let failed: Vec<&str> = read.failures.iter().map(|it| it.student_id.as_str()).collect();
    assert_eq!(failed, ["s-2"]);
}

#[tokio::test]
async fn a_batch_that_was_given_up_has_ended_and_can_be_run_again() {
    let fixture = Fixture::new().await;
    let started = fixture.engine.start_batch(&requests(3)).await.unwrap();
    fixture.engine.give_up_batch(&started.batch_id).await.unwrap();
    let ended = fixture.engine.batch_status(&started.batch_id).await.unwrap();
    assert!(adds_up(&ended) && ended.finished_at.is_some());
    assert_eq!((ended.status, ended.failed, ended.failures.len()), (BatchState::Failed, 3, 3));
    let done = fixture.engine.run_batch(&started.batch_id).await.unwrap();
    assert!(adds_up(&done));
    assert_eq!((done.status, done.completed), (BatchState::Completed, 3));
    fixture.engine.give_up_batch(&started.batch_id).await.unwrap();
    assert_eq!(fixture.engine.batch_status(&started.batch_id).await.unwrap(), done);
}

#[tokio::test]
async fn a_batch_that_is_asked_for_again_by_its_name_is_the_same_batch() {
    let fixture = Fixture::new().await;
    let started = fixture.engine.start_batch_once("n-1", &requests(5)).await.unwrap();
    assert_eq!((started.batch_id.as_str(), started.in_progress), ("batch-n-1", 5));
    let engine = fixture.another_engine();
    assert_eq!(engine.start_batch_once("n-1", &requests(5)).await.unwrap(), started);
    let done = fixture.engine.run_batch("batch-n-1").await.unwrap();
    assert_eq!(engine.start_batch_once("n-1", &requests(5)).await.unwrap(), done);
    assert!(fixture.value("batch:batch-n-1", "request:s-0").unwrap().contains("\"done\":true"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_erased_while_a_batch_runs_is_gone_and_the_others_are_written() {
    let fixture = Fixture::new().await;
    let started = fixture.engine.start_batch(&requests(600)).await.unwrap();
    let (engine, id) = (fixture.engine.clone(), started.batch_id.clone());
    let running = tokio::spawn(async move { engine.run_batch(&id).await });
    // The first is written by then, the last is not.
    let pk = format!("batch:{}", started.batch_id);
    let completed = || {
        let kept: BatchStatus =
            serde_json::from_str(&fixture.value(&pk, "status").unwrap()).unwrap();
        kept.completed
    };
    while completed() < 250 {
        tokio::task::yield_now().await;
    }
    let erased = ["s-0", "s-599"];
    for student in erased {
        fixture.engine.delete_student_data(student, &|_| {}).await.unwrap();
    }
    running.await.unwrap().unwrap();
    for student in erased {
        assert_eq!(fixture.engine.get_current_mastery(student).await.unwrap(), None);
        assert_eq!(fixture.engine.debug_student_state(student).await.unwrap(), []);
        assert_eq!(fixture.value(&pk, &format!("request:{student}")), None);
        let kept = fixture.value(&pk, "status").unwrap();
        assert!(!kept.contains(&format!("\"{student}\"")), "{kept}");
    }
    let done = fixture.engine.batch_status(&started.batch_id).await.unwrap();
    assert!(adds_up(&done) && done.finished_at.is_some(), "{done:?}");
    assert_eq!((done.status, done.in_progress), (BatchState::Completed, 0));
    assert!((598..=600).contains(&done.completed), "{}", done.completed);
    for student in ["s-1", "s-400", "s-598"] {
        let written = fixture.engine.get_current_mastery(student).await.unwrap().unwrap();
        assert_eq!(written.version, 1);
        let kept = fixture.value(&pk, &format!("request:{student}")).unwrap();
        assert!(kept.contains("\"done\":true"), "{kept}");
    }
}
