use kstone_base::time::{Date, Moment};
use kstone_mastery::domain::{Component, Components, MasteryResult};
use kstone_mastery::engine::PageRequest;

use crate::specification::fixture::{DAY, EXAMPLE, Fixture};

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

#[tokio::test]
async fn get_mastery_history_includes_both_ends_and_skips_days_without_anything() {
    let fixture = Fixture::new().await;
    // 14, 15, 17 and 18 January.
    for round in 0..5_u32 {
        if round != 2 {
            let completion = f64::from(round) / 10.0;
            let components = Components { completion, ..EXAMPLE };
            fixture.engine.save_mastery_update("s", &components).await.unwrap();
        }
        fixture.later(DAY);
    }
    let engine = &fixture.engine;
    let days = |from: &str, to: &str| {
        let (from, to) = (day(from), day(to));
        async move {
            let found = engine.get_mastery_history("s", from, to).await.unwrap();
            found.into_iter().map(|(date, it)| (date.to_string(), it.version)).collect::<Vec<_>>()
        }
    };
    let of = |days: &[(&str, u64)]| -> Vec<(String, u64)> {
        days.iter().map(|(day, version)| ((*day).to_owned(), *version)).collect()
    };
    let all = [("2026-01-14", 1), ("2026-01-15", 2), ("2026-01-17", 3), ("2026-01-18", 4)];
    assert_eq!(days("2026-01-14", "2026-01-18").await, of(&all));
    assert_eq!(days("2026-01-15", "2026-01-17").await, of(&all[1..3]));
    assert_eq!(days("2026-01-16", "2026-01-16").await, of(&[]));
    assert_eq!(days("2025-01-01", "2026-12-31").await, of(&all));
    let wrong = engine.get_mastery_history("s", day("2026-01-16"), day("2026-01-15")).await;
    assert!(wrong.unwrap_err().to_string().starts_with("from must be not later than"));
}

#[tokio::test]
async fn get_component_trend_gives_the_last_30_days_with_their_dates() {
    let fixture = Fixture::new().await;
    for round in 0..40_u32 {
        let quiz = f64::from(round) / 40.0;
        let components = Components { quiz, ..EXAMPLE };
        fixture.engine.save_mastery_update("s", &components).await.unwrap();
        fixture.later(DAY);
    }
    fixture.clock.set(fixture.engine.now().epoch_ms() - DAY.as_millis() as u64);
    let trend = fixture.engine.get_component_trend("s", Component::Quiz, 30).await.unwrap();
    assert_eq!(trend.len(), 30);
    let today = fixture.engine.now().date();
    assert_eq!(trend.first().unwrap(), &(today.plus_days(-29), 10.0 / 40.0));
    assert_eq!(trend.last().unwrap(), &(today, 39.0 / 40.0));
    assert!(trend.windows(2).all(|two| two[0].0.plus_days(1) == two[1].0));
}

#[tokio::test]
async fn days_that_expired_are_still_in_the_history_once_they_were_put_aside() {
    let fixture = Fixture::new().await;
    for _ in 0..3 {
        fixture.engine.save_mastery_update("s", &EXAMPLE).await.unwrap();
        fixture.later(DAY);
    }
    let before: Moment = fixture.engine.now();
    assert!(fixture.engine.advance_snapshot("s", before).await.unwrap());
    assert!(!fixture.engine.advance_snapshot("s", before).await.unwrap());
    fixture.later(DAY * 100);
    assert_eq!(fixture.value("student:s", "mastery:2026-01-14"), None);
    let (from, to) = (day("2026-01-01"), day("2026-06-01"));
    let history = fixture.engine.get_mastery_history("s", from, to).await.unwrap();
    let days: Vec<String> = history.iter().map(|(date, _)| date.to_string()).collect();
    assert_eq!(days, ["2026-01-14", "2026-01-15", "2026-01-16"]);
    let trend = fixture.engine.get_component_trend("s", Component::Quiz, 366).await.unwrap();
    let trend: Vec<_> = trend.into_iter().map(|(date, quiz)| (date.to_string(), quiz)).collect();
    assert_eq!(trend, days.into_iter().map(|date| (date, EXAMPLE.quiz)).collect::<Vec<_>>());
}

#[tokio::test]
async fn get_batch_mastery_answers_with_those_who_are_known() {
    let fixture = Fixture::new().await;
    for at in 0..150 {
        fixture.engine.save_mastery_update(&format!("s-{at}"), &EXAMPLE).await.unwrap();
    }
    let mut asked: Vec<String> = (0..200).map(|at| format!("s-{at}")).collect();
    asked.push("s-1".to_owned());
    let found = fixture.engine.get_batch_mastery(&asked).await.unwrap();
    assert_eq!(found.len(), 150);
    assert!(found.iter().all(|(id, mastery)| *id == mastery.student_id));
}

#[tokio::test]
async fn the_view_of_all_days_and_that_of_their_components_go_back_to_the_first_page_by_page() {
    let fixture = Fixture::new().await;
    let engine = &fixture.engine;
    let mut expected = Vec::new();
    for round in 0..120_u32 {
        let components = Components { quiz: f64::from(round) / 120.0, ..EXAMPLE };
        let saved = engine.save_mastery_update("s", &components).await.unwrap();
        expected.push((engine.now().date(), saved));
        fixture.later(DAY);
        if round % 7 == 0 {
            engine.advance_snapshot("s", engine.now().minus(DAY * 7)).await.unwrap();
        }
    }
    expected.reverse();
    assert_eq!(fixture.value("student:s", "mastery:2026-01-14"), None, "some have expired");
    for limit in [1000, 50, 7] {
        let mut page = PageRequest { limit, cursor: None };
        let (mut days, mut parts) = (Vec::new(), Vec::new());
        loop {
            let full = engine.full_history("s", &page).await.unwrap();
            let components = engine.components_history("s", &page).await.unwrap();
            assert!(full.items.len() <= limit as usize);
            assert_eq!(full.next, components.next);
            days.extend(full.items.into_iter().map(|it| (it.date, it.mastery)));
            parts.extend(components.items.into_iter().map(|it| (it.date, it.components)));
            match full.next {
                Some(next) => page.cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(days, expected);
        let of = |(date, mastery): &(_, MasteryResult)| (*date, mastery.components);
        assert_eq!(parts, expected.iter().map(of).collect::<Vec<_>>());
    }
    let wrong = PageRequest { limit: 1, cursor: Some("nonsense".to_owned()) };
    let wrong = engine.full_history("s", &wrong).await.unwrap_err();
    assert!(wrong.to_string().starts_with("cursor must be"), "{wrong}");
    assert_eq!(engine.full_history("nobody", &PageRequest::default()).await.unwrap().items, []);
}

#[tokio::test]
async fn the_view_of_recommendations_keeps_those_that_are_older_than_their_year() {
    let fixture = Fixture::new().await;
    let engine = &fixture.engine;
    let low = Components { completion: 0.2, quiz: 0.2, quality: 0.2, consistency: 0.2 };
    let mut expected = Vec::new();
    for round in 0..5 {
        engine.save_mastery_update("s", &low).await.unwrap();
        let made = engine.recommendations("s").await.unwrap();
        assert_eq!(made.len(), 4);
        for (at, mut advice) in made.into_iter().enumerate() {
            if at == 0 {
                let id = advice.id.as_str();
                advice = engine.give_feedback("s", id, true, None).await.unwrap();
            }
            expected.push(advice);
        }
        // The first is more than a year old in the end, and each night somebody looks after it.
        for _ in 0..(if round < 4 { 100 } else { 0 }) {
            fixture.later(DAY);
            engine.advance_snapshot("s", engine.now().minus(DAY * 7)).await.unwrap();
        }
    }
    expected.sort_by(|one, other| (other.made_at, &other.id).cmp(&(one.made_at, &one.id)));
    let kept: Vec<_> = engine.debug_student_state("s").await.unwrap();
    let count = |part: &str| kept.iter().filter(|it| it.key.contains(part)).count();
    assert_eq!((count(":recommendation:"), count(":history:recommendations:")), (16, 1));
    for limit in [1000, 17, 16, 5, 1] {
        let mut page = PageRequest { limit, cursor: None };
        let mut found = Vec::new();
        loop {
            let some = engine.recommendation_history("s", &page).await.unwrap();
            assert!(!some.items.is_empty() && some.items.len() <= limit as usize);
            found.extend(some.items);
            match some.next {
                Some(next) => page.cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(found, expected, "{limit}");
    }
    let asked = PageRequest { limit: 1, cursor: Some("recommendation:x".to_owned()) };
    let wrong = engine.recommendation_history("s", &asked).await.unwrap_err();
    assert!(wrong.to_string().starts_with("cursor must be"), "{wrong}");
}
