//! Everything about a person: listed, exported, erased with a receipt.

use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use kstone_keyspace::erasure::SignedReceipt;

use crate::pages::fixture::Fixture;
use crate::pages::learning::fill;

#[tokio::test]
async fn a_person_is_looked_up_under_every_name_and_exported() {
    let fixture = Fixture::governed().await;
    fill(&fixture).await;
    let found = fixture.get("/people?id=student_s1").await;
    assert_eq!(found.location.as_deref(), Some("/people/student_s1"));
    let page = fixture.page("/people/student_s1").await;
    assert!(page.contains("student:s1:profile:current_mastery"), "{page}");
    let export: serde_json::Value =
        serde_json::from_str(&fixture.page("/people/s1/export").await).unwrap();
    assert!(export["entries"].as_u64().unwrap() > 5, "{export}");
}

#[tokio::test]
async fn a_wrong_confirmation_erases_nothing() {
    let fixture = Fixture::governed().await;
    fill(&fixture).await;
    for wrong in ["confirm=s2", "confirm=", "", "confirm=S1"] {
        let refused = fixture.post("/people/s1", wrong).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
        assert!(refused.body.contains("nothing was erased"), "{wrong}: {}", refused.body);
    }
    assert!(fixture.page("/people/s1").await.contains("current_mastery"));
    assert!(fixture.page("/people").await.contains("Nobody was erased yet"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_ends_with_a_receipt_that_names_nobody() {
    let fixture = Fixture::governed().await;
    fill(&fixture).await;
    let begun = fixture.post("/people/s1", "confirm=s1").await;
    assert_eq!(begun.status, StatusCode::SEE_OTHER, "{}", begun.body);
    let at = begun.location.unwrap();
    let done = async {
        loop {
            let page = fixture.page(&at).await;
            if page.contains("Every byte is gone") {
                return page;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let page = tokio::time::timeout(Duration::from_secs(60), done).await.expect("it ends");
    assert!(!page.contains("data-live"), "nothing is asked for again once it is over");
    let receipt = fixture.page(&format!("{at}/receipt")).await;
    assert!(!receipt.contains("s1\""), "{receipt}");
    SignedReceipt::from_json(&receipt).unwrap().check().unwrap();
    let page = fixture.page("/people/s1").await;
    assert!(page.contains("Nothing is kept") && page.contains("was erased"), "{page}");
    assert!(fixture.page("/people/s2").await.contains("current_mastery"), "the other one is there");
    assert!(fixture.page("/people").await.contains(&at), "the erasure is listed");
}

#[tokio::test]
async fn a_page_of_another_site_erases_nobody() {
    let fixture = Fixture::governed().await;
    let request = axum::http::Request::post("/people/s1")
        .header("content-type", "application/x-www-form-urlencoded")
        .header("sec-fetch-site", "cross-site")
        .body(axum::body::Body::from("confirm=s1"))
        .unwrap();
    assert_eq!(fixture.ask(request).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_to_a_person_is_in_the_audit_log() {
    let fixture = Fixture::governed().await;
    fill(&fixture).await;
    fixture.page("/people/student_s2/export").await;
    let noted = fixture.page("/audit").await;
    assert!(noted.contains("<td>export</td>") && noted.contains("/people/s2"), "{noted}");
    let begun = fixture.post("/people/s1", "confirm=s1").await.location.unwrap();
    let id = begun.rsplit('/').next().unwrap();
    let noted = fixture.page("/audit").await;
    assert!(noted.contains("<td>erasure</td>") && noted.contains(id), "{noted}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_process_is_told_that_somebody_was_erased() {
    let fixture = Fixture::governed().await;
    fill(&fixture).await;
    let told = async || {
        let words = ["XRANGE", "cache:mastery:invalidations", "-", "+"];
        let words: Vec<Bytes> = words.iter().map(|it| Bytes::from_static(it.as_bytes())).collect();
        let reply = fixture.console.keys.command(&words).await.unwrap();
        // No version of them is to be believed.
        let none = format!("{:?}", u64::MAX.to_string().into_bytes());
        format!("{reply:?}").matches(&none).count()
    };
    assert_eq!(told().await, 0);
    fixture.post("/people/s1", "confirm=s1").await;
    let done = async {
        // Before and after, under both of their names.
        while told().await < 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), done).await.expect("they are told");
}
