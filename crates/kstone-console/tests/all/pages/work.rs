//! Background work: jobs that were given up, and who decided what becomes of them.

use axum::http::StatusCode;
use kstone_base::work::NewJob;
use serde_json::json;

use crate::pages::fixture::Fixture;

/// Gives up a job, and answers with its id.
async fn given_up(fixture: &Fixture) -> String {
    let platform = fixture.console.platform.as_ref().unwrap();
    let nonsense = NewJob::new("mastery", "run_batch", json!({"nonsense": true}));
    platform.outbox.enqueue(nonsense).await.unwrap();
    platform.turn().await.unwrap();
    let dead = platform.queues.dead_letters("mastery", 10, None).await.unwrap().items;
    assert_eq!(dead.len(), 1, "{dead:?}");
    dead[0].id.clone()
}

#[tokio::test]
async fn what_is_decided_of_a_job_that_was_given_up_is_in_the_audit_log() {
    let fixture = Fixture::governed().await;
    for what in ["retry", "drop"] {
        let id = given_up(&fixture).await;
        assert!(fixture.page("/work/dead/mastery").await.contains(&id));
        let form = format!("id={id}&what={what}");
        let done = fixture.post("/work/dead/mastery", &form).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.body);
        let platform = fixture.console.platform.as_ref().unwrap();
        let dead = platform.queues.dead_letters("mastery", 10, None).await.unwrap().items;
        assert_eq!(dead, []);
        let noted = fixture.page("/audit").await;
        let row = format!("<td>{what}</td><td>console</td>");
        assert!(noted.contains(&row) && noted.contains(&format!("job {id} of mastery")), "{noted}");
        // It is gone, and to decide again does nothing.
        let again = fixture.post("/work/dead/mastery", &form).await;
        assert_eq!(again.status, StatusCode::NOT_FOUND, "{}", again.body);
        assert_eq!(fixture.page("/audit").await.matches(&row).count(), 1);
        if what == "retry" {
            // It fails again, and is forgotten.
            platform.turn().await.unwrap();
            let dead = platform.queues.dead_letters("mastery", 10, None).await.unwrap().items;
            platform.queues.drop_dead("mastery", &dead[0].id).await.unwrap();
        }
    }
}
