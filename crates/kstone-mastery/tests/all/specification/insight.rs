use std::time::Duration;

use kstone_mastery::domain::{Component, Components, Priority, Trend};
use kstone_mastery::engine::{Error, PageRequest};

use crate::specification::fixture::{DAY, EXAMPLE, Fixture, quiz};

async fn improving(fixture: &Fixture, days: u32) {
    for day in 0..days {
        let components = Components { completion: f64::from(day) / 20.0, ..EXAMPLE };
        fixture.engine.save_mastery_update("s", &components).await.unwrap();
        fixture.later(DAY);
    }
}

#[tokio::test]
async fn a_prediction_follows_the_days_and_is_kept_for_an_hour() {
    let fixture = Fixture::new().await;
    improving(&fixture, 10).await;
    let first = fixture.engine.prediction("s", 7).await.unwrap();
    assert_eq!((first.trend, first.snapshots, first.days), (Trend::Improving, 10, 7));
    assert!(!first.intervention_needed && first.confidence > 0.9, "{first:?}");
    assert!(first.low <= first.predicted_score && first.predicted_score <= first.high);
    assert_eq!(fixture.ttl_s("student:s", "prediction:7days"), Some(3600));
    fixture.engine.save_mastery_update("s", &Components::default()).await.unwrap();
    assert_eq!(fixture.engine.prediction("s", 7).await.unwrap(), first);
    fixture.later(Duration::from_secs(3601));
    assert_ne!(fixture.engine.prediction("s", 7).await.unwrap(), first);
}

#[tokio::test]
async fn a_prediction_needs_three_days_and_consent() {
    let fixture = Fixture::new().await;
    improving(&fixture, 2).await;
    let few = fixture.engine.prediction("s", 7).await.unwrap_err();
    assert!(matches!(few, Error::TooEarly { .. }), "{few}");
    improving(&fixture, 3).await;
    fixture.engine.set_consent("s", true, false).await.unwrap();
    let refused = fixture.engine.prediction("s", 7).await.unwrap_err();
    assert!(refused.to_string().contains("consent"), "{refused}");
    let wrong = fixture.engine.prediction("s", 0).await.unwrap_err();
    assert!(wrong.to_string().starts_with("days must be"), "{wrong}");
}

#[tokio::test]
async fn without_consent_to_analytics_nothing_is_computed_any_more() {
    let fixture = Fixture::new().await;
    let engine = &fixture.engine;
    engine.put_class("abc", "7b", "Class 7b").await.unwrap();
    engine.add_member("abc", "7b", "s").await.unwrap();
    improving(&fixture, 5).await;
    let today = engine.now().date();
    engine.prediction("s", 7).await.unwrap();
    engine.path("s").await.unwrap();
    assert_eq!(engine.aggregate("abc", today).await.unwrap().students, 1);
    engine.set_consent("s", false, true).await.unwrap();
    for refused in [
        engine.prediction("s", 7).await.err(),
        engine.path("s").await.err(),
        engine.recommendations("s").await.err(),
    ] {
        assert!(matches!(refused, Some(Error::Refused { .. })), "{refused:?}");
    }
    let history = engine.recommendation_history("s", &PageRequest::default()).await.unwrap();
    assert_eq!(history.items, []);
    assert_eq!(engine.aggregate("abc", today).await.unwrap().students, 0);
    assert_eq!(engine.aggregate("abc", today.plus_days(-1)).await.unwrap().students, 0);
    engine.set_consent("s", true, true).await.unwrap();
    assert!(!engine.recommendations("s").await.unwrap().is_empty());
}

#[tokio::test]
async fn an_adaptive_path_is_kept_for_a_day() {
    let fixture = Fixture::new().await;
    fixture.engine.ingest(&fixture.event("e-1", "s", quiz(0.2))).await.unwrap();
    let path = fixture.engine.path("s").await.unwrap();
    assert!(!path.is_empty());
    assert_eq!(fixture.ttl_s("student:s", "path:adaptive"), Some(86_400));
    fixture.engine.save_mastery_update("s", &EXAMPLE).await.unwrap();
    assert_eq!(fixture.engine.path("s").await.unwrap(), path);
    let nobody = fixture.engine.path("nobody").await.unwrap_err();
    assert!(matches!(nobody, Error::NotFound { .. }), "{nobody}");
}

#[tokio::test]
async fn recommendations_have_a_history_and_take_feedback() {
    let fixture = Fixture::new().await;
    let low = Components { completion: 0.55, quiz: 0.6, quality: 0.9, consistency: 0.9 };
    fixture.engine.save_mastery_update("s", &low).await.unwrap();
    let made = fixture.engine.recommendations("s").await.unwrap();
    let areas: Vec<(Component, Priority)> = made.iter().map(|it| (it.area, it.priority)).collect();
    let expected = [(Component::Completion, Priority::High), (Component::Quiz, Priority::Medium)];
    assert_eq!(areas, expected);
    // Asked again within a day, the same is said and nothing is added.
    fixture.later(Duration::from_secs(3600));
    assert_eq!(fixture.engine.recommendations("s").await.unwrap(), made);
    let engine = &fixture.engine;
    let said = engine.give_feedback("s", &made[0].id, true, Some("It helped.")).await.unwrap();
    assert!(said.feedback.as_ref().is_some_and(|it| it.helpful));
    fixture.later(DAY);
    let anew = engine.recommendations("s").await.unwrap();
    assert_eq!(anew.len(), 2);
    assert!(anew[0].made_at > made[0].made_at);
    let page = PageRequest { limit: 3, cursor: None };
    let newest = engine.recommendation_history("s", &page).await.unwrap();
    assert_eq!(newest.items.len(), 3);
    let page = PageRequest { cursor: newest.next.clone(), ..page };
    let oldest = engine.recommendation_history("s", &page).await.unwrap();
    assert_eq!((oldest.items.len(), oldest.next), (1, None));
    let all: Vec<_> = newest.items.into_iter().chain(oldest.items).collect();
    assert!(all.contains(&said));
    let unknown = engine.give_feedback("s", "quiz-1", true, None).await.unwrap_err();
    assert!(matches!(unknown, Error::NotFound { .. }), "{unknown}");
}
