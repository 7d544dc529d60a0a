//! The pages of learners and classes.

use kstone_base::time::Moment;
use kstone_mastery::domain::{EventDetail, LearnerProfile, LearningEvent};

use crate::pages::fixture::{Fixture, NOW_MS, check};

const DAY_MS: u64 = 86_400_000;

/// A class of three: one who improves, one who struggles, and one of whom nothing is known.
pub async fn fill(fixture: &Fixture) {
    let engine = &fixture.console.platform.as_ref().unwrap().mastery;
    engine.put_class("north", "7a", "Class 7 <a>").await.unwrap();
    for (student, name) in [("s1", "Ada <b>Byron</b>"), ("s2", "Bob"), ("s3", "Cem")] {
        let mut profile = LearnerProfile::new(student, Moment::from_epoch_ms(NOW_MS - 30 * DAY_MS));
        profile.display_name = Some(name.to_owned());
        profile.school_id = Some("north".to_owned());
        engine.put_profile(&profile).await.unwrap();
        engine.add_member("north", "7a", student).await.unwrap();
    }
    let mut n = 0;
    for day in 0..10_u64 {
        fixture.clock.set(NOW_MS - (9 - day) * DAY_MS);
        for (student, rate) in [("s1", 0.08 * day as f64 + 0.2), ("s2", 0.4 - 0.03 * day as f64)] {
            let answer = |correct: bool| EventDetail::Answer {
                skill_id: "fractions".to_owned(),
                item_id: "q1".to_owned(),
                correct,
                took_ms: None,
                error_kind: (!correct).then(|| "<sign>".to_owned()),
            };
            let lesson = format!("l{day}");
            for what in [
                EventDetail::LessonProgress { lesson_id: lesson, fraction: rate },
                EventDetail::QuizFinished { quiz_id: "q1".to_owned(), score: rate },
                answer(rate > 0.5),
            ] {
                n += 1;
                let event = LearningEvent {
                    event_id: format!("e{n}"),
                    student_id: student.to_owned(),
                    school_id: Some("north".to_owned()),
                    occurred_at: engine.now(),
                    what,
                };
                engine.ingest(&event).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_learners_page_shows_the_score_its_parts_and_where_it_goes() {
    let fixture = Fixture::governed().await;
    fill(&fixture).await;
    let page = fixture.page("/learn/learners/s1").await;
    check("s1", &page);
    for says in [
        "Ada &lt;b&gt;Byron&lt;/b&gt;",
        "Mastery over time",
        "class=\"band\"",
        "improving",
        "Completion",
        "fractions",
        "Active on 10 days of the last 30",
        "href=\"/learn/schools/north\"",
    ] {
        assert!(page.contains(says), "{says}: {page}");
    }
}

#[tokio::test]
async fn who_struggles_is_shown_first_and_why() {
    let fixture = Fixture::governed().await;
    fill(&fixture).await;
    let page = fixture.page("/learn/classes/north/7a").await;
    check("7a", &page);
    let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("no {what}: {page}"));
    assert!(at(">Bob<") < at("Ada &lt;b&gt;"), "Bob struggles");
    assert!(at("Ada &lt;b&gt;") < at(">Cem<"), "of Cem nothing is known");
    let bob = fixture.page("/learn/learners/s2").await;
    assert!(bob.contains("Struggles") && bob.contains("needs somebody"), "{bob}");
    assert!(bob.contains("wrong: &lt;sign&gt;"), "{bob}");
    let cem = fixture.page("/learn/learners/s3").await;
    assert!(cem.contains("No event of this learner was sent yet"), "{cem}");
    let school = fixture.page("/learn").await;
    assert!(school.contains("Class 7 &lt;a&gt;"), "{school}");
}

#[tokio::test]
async fn what_is_said_of_a_recommendation_is_shown() {
    let fixture = Fixture::governed().await;
    fill(&fixture).await;
    let page = fixture.page("/learn/learners/s2").await;
    let id = page.split("name=\"recommendation\" value=\"").nth(1).unwrap();
    let id = id.split('"').next().unwrap();
    let said = format!("recommendation={id}&helpful=true");
    let answer = fixture.post("/learn/learners/s2/feedback", &said).await;
    assert_eq!(answer.location.as_deref(), Some("/learn/learners/s2"), "{}", answer.body);
    assert!(fixture.page("/learn/learners/s2").await.contains("It helped"));
}

#[tokio::test]
async fn today_is_the_learners_day() {
    let fixture = Fixture::governed().await;
    let engine = &fixture.console.platform.as_ref().unwrap().mastery;
    // Noon of the tenth here is the eleventh there.
    let mut profile = LearnerProfile::new("k1", engine.now());
    profile.time_zone = "Pacific/Kiritimati".to_owned();
    engine.put_profile(&profile).await.unwrap();
    let event = LearningEvent {
        event_id: "e1".to_owned(),
        student_id: "k1".to_owned(),
        school_id: None,
        occurred_at: engine.now(),
        what: EventDetail::QuizFinished { quiz_id: "q1".to_owned(), score: 0.5 },
    };
    engine.ingest(&event).await.unwrap();
    let page = fixture.page("/learn/learners/k1").await;
    assert!(page.contains("Active on 1 day of the last 30"), "{page}");
    let history = fixture.page("/api/v1/students/k1/history").await;
    assert!(history.contains(r#""date":"2026-03-11""#), "{history}");
}
