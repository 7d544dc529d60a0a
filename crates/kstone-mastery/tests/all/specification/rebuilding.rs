use kstone::Item;
use kstone::ops::DeleteItem;
use kstone_mastery::domain::{EventDetail, LearnerProfile};
use kstone_mastery::engine::{Error, PageRequest};

use crate::specification::fixture::{DAY, EXAMPLE, Fixture, answer, lesson, quiz};

/// A learner over some days, with events of every kind, an assessment and a move to another zone.
async fn study(fixture: &Fixture, days: u32) {
    for day in 0..days {
        let what = [
            lesson(&format!("l-{}", day % 9), f64::from(day % 10) / 10.0),
            answer(&format!("x-{}", day % 3), &format!("i-{}", day % 7), day % 3 != 0),
            quiz(f64::from(day % 5) / 5.0),
            EventDetail::WorkReviewed { task_id: "t".to_owned(), quality: 0.7 },
            EventDetail::Stuck { task_id: "t".to_owned(), minutes: 12.0 },
            EventDetail::Visit {},
        ];
        for (at, what) in what.into_iter().enumerate() {
            let event = fixture.event(&format!("e-{day}-{at}"), "s", what);
            fixture.engine.ingest(&event).await.unwrap();
        }
        if day == 10 {
            fixture.engine.save_mastery_update("s", &EXAMPLE).await.unwrap();
            let mut profile = LearnerProfile::new("s", fixture.engine.now());
            profile.time_zone = "Asia/Tokyo".to_owned();
            fixture.engine.put_profile(&profile).await.unwrap();
        }
        fixture.later(DAY);
    }
}

#[tokio::test]
async fn rebuild_mastery_from_events_gives_what_is_kept() {
    let fixture = Fixture::new().await;
    study(&fixture, 20).await;
    let kept = fixture.engine.get_current_mastery("s").await.unwrap().unwrap();
    assert_eq!(fixture.engine.rebuild_mastery_from_events("s").await.unwrap(), kept);
    let nobody = fixture.engine.rebuild_mastery_from_events("nobody").await.unwrap_err();
    assert!(matches!(nobody, Error::NotFound { .. }), "{nobody}");
}

#[tokio::test]
async fn rebuild_gives_the_same_when_events_have_expired_behind_a_snapshot() {
    let fixture = Fixture::new().await;
    study(&fixture, 12).await;
    let kept = fixture.engine.get_current_mastery("s").await.unwrap().unwrap();
    // The snapshot is moved on twice, in the middle of the events and behind them.
    let middle = fixture.engine.now().minus(DAY * 6);
    assert!(fixture.engine.advance_snapshot("s", middle).await.unwrap());
    assert_eq!(fixture.engine.rebuild_mastery_from_events("s").await.unwrap(), kept);
    assert!(fixture.engine.advance_snapshot("s", fixture.engine.now()).await.unwrap());
    fixture.later(DAY * 100);
    assert_eq!(fixture.engine.events("s", &PageRequest::default()).await.unwrap().items, []);
    assert_eq!(fixture.engine.rebuild_mastery_from_events("s").await.unwrap(), kept);
    // And it goes on from there.
    let more = fixture.engine.ingest(&fixture.event("more", "s", quiz(1.0))).await.unwrap();
    assert_eq!(more.mastery.version, kept.version + 1);
    assert_eq!(fixture.engine.rebuild_mastery_from_events("s").await.unwrap(), more.mastery);
}

#[tokio::test]
async fn rebuild_brings_a_lost_state_back() {
    let fixture = Fixture::new().await;
    study(&fixture, 3).await;
    let kept = fixture.engine.get_current_mastery("s").await.unwrap().unwrap();
    for sk in ["profile:state", "profile:current_mastery"] {
        let key = Item::new().with("pk", "student:s").with("sk", sk);
        let delete = DeleteItem { table: "state".to_owned(), key, ..DeleteItem::default() };
        fixture.db.delete_item(&delete).wait().unwrap();
    }
    assert_eq!(fixture.engine.rebuild_mastery_from_events("s").await.unwrap(), kept);
    let text = fixture.value("student:s", "profile:current_mastery").unwrap();
    assert_eq!(serde_json::to_string(&kept).unwrap(), text);
    let next = fixture.engine.ingest(&fixture.event("next", "s", quiz(1.0))).await.unwrap();
    assert_eq!(next.mastery.version, kept.version + 1);
}

#[tokio::test]
async fn rebuild_refuses_when_it_would_know_less_than_what_is_kept() {
    let fixture = Fixture::new().await;
    study(&fixture, 1).await;
    fixture.later(DAY * 100);
    fixture.engine.ingest(&fixture.event("late", "s", quiz(1.0))).await.unwrap();
    let refused = fixture.engine.rebuild_mastery_from_events("s").await.unwrap_err();
    assert!(refused.to_string().starts_with("6 events of learner s expired"), "{refused}");
    assert_eq!(fixture.engine.get_current_mastery("s").await.unwrap().unwrap().version, 7);
}

#[tokio::test]
async fn events_that_expired_while_nothing_ran_do_not_make_the_snapshot_wrong() {
    for had_snapshot in [false, true] {
        let fixture = Fixture::new().await;
        study(&fixture, 12).await;
        if had_snapshot {
            let middle = fixture.engine.now().minus(DAY * 6);
            assert!(fixture.engine.advance_snapshot("s", middle).await.unwrap());
        }
        // The server was off; then the learner goes on, and the nights begin again.
        fixture.later(DAY * 100);
        for day in 0..20 {
            let event = fixture.event(&format!("late-{day}"), "s", quiz(1.0));
            fixture.engine.ingest(&event).await.unwrap();
            fixture.later(DAY);
            let before = fixture.engine.now().minus(DAY * 7);
            fixture.engine.advance_snapshot("s", before).await.unwrap();
            let kept = fixture.engine.get_current_mastery("s").await.unwrap().unwrap();
            let rebuilt = fixture.engine.rebuild_mastery_from_events("s").await;
            assert_eq!(rebuilt.unwrap(), kept, "{day} days, {had_snapshot}");
        }
    }
}

#[tokio::test]
async fn the_event_log_is_read_page_by_page_the_newest_first() {
    let fixture = Fixture::new().await;
    study(&fixture, 5).await;
    let mut seen = Vec::new();
    let mut page = PageRequest { limit: 7, cursor: None };
    loop {
        let found = fixture.engine.events("s", &page).await.unwrap();
        assert!(found.items.len() <= 7);
        seen.extend(found.items);
        match found.next {
            Some(next) => page.cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(seen.len(), 30);
    assert!(seen.windows(2).all(|two| two[0].accepted_at > two[1].accepted_at));
}

#[tokio::test]
async fn questions_become_harder_or_easier_by_the_answers_behind_the_snapshot() {
    let fixture = Fixture::new().await;
    for (at, (item, correct)) in
        [("hard", false), ("easy", true)].into_iter().cycle().take(40).enumerate()
    {
        let event =
            fixture.event(&format!("e-{at}"), &format!("s-{}", at % 4), answer("x", item, correct));
        fixture.engine.ingest(&event).await.unwrap();
    }
    fixture.later(DAY);
    for at in 0..4 {
        fixture.engine.advance_snapshot(&format!("s-{at}"), fixture.engine.now()).await.unwrap();
    }
    let rating = |item: &str| -> f64 {
        let text = fixture.value("skill:x", &format!("item:{item}")).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["rating"].as_f64().unwrap()
    };
    assert!(rating("hard") > 0.5 && rating("easy") < -0.5, "{} {}", rating("hard"), rating("easy"));
    // A right answer to a hard question says more.
    let gain = |student: &'static str, item: &'static str| {
        let event = fixture.event(&format!("new-{student}"), student, answer("x", item, true));
        let engine = fixture.engine.clone();
        async move {
            engine.ingest(&event).await.unwrap();
            engine.skills(student).await.unwrap()[0].rating
        }
    };
    assert!(gain("u", "hard").await > gain("v", "easy").await);
}
