use kstone_base::audit::AuditEntry;
use kstone_mastery::domain::{Components, LearnerProfile, Level};
use kstone_mastery::engine::{Error, PageRequest};

use crate::specification::fixture::{DAY, EXAMPLE, Fixture, quiz};

#[tokio::test]
async fn a_class_shows_its_learners_and_how_they_do() {
    let fixture = Fixture::new().await;
    let engine = &fixture.engine;
    engine.put_class("abc", "7b", "Class 7b").await.unwrap();
    let missing = engine.add_member("abc", "7c", "1").await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
    for id in ["1", "2", "3"] {
        engine.add_member("abc", "7b", id).await.unwrap();
    }
    engine.save_mastery_update("1", &EXAMPLE).await.unwrap();
    engine.ingest(&fixture.event("e-1", "2", quiz(0.1))).await.unwrap();
    let class = engine.class("abc", "7b").await.unwrap();
    assert_eq!(class.name, "Class 7b");
    let rows: Vec<(&str, bool, usize)> = class
        .learners
        .iter()
        .map(|it| (it.student_id.as_str(), it.mastery.is_some(), it.struggles.len()))
        .collect();
    assert_eq!(rows, [("1", true, 0), ("2", true, 1), ("3", false, 0)]);
    assert_eq!(class.levels[&Level::Proficient], 1);
    assert_eq!(class.levels.values().sum::<u32>(), 2);
    engine.remove_member("abc", "7b", "2").await.unwrap();
    assert_eq!(engine.class("abc", "7b").await.unwrap().learners.len(), 2);
    let gone = engine.remove_member("abc", "7b", "2").await.unwrap_err();
    assert!(matches!(gone, Error::NotFound { .. }), "{gone}");
    assert_eq!(engine.classes("abc").await.unwrap().len(), 1);
    assert_eq!(engine.schools().await.unwrap(), ["abc"]);
    let roster = engine.learners("abc", &PageRequest::default()).await.unwrap();
    assert_eq!(roster.items, ["1", "2", "3"]);
    // Their school's copy of the mastery is there as well.
    assert!(fixture.value("school:abc:student:1", "profile:current_mastery").is_some());
}

#[tokio::test]
async fn a_school_is_aggregated_by_day_and_its_past_days_stay() {
    let fixture = Fixture::new().await;
    let engine = &fixture.engine;
    engine.put_class("abc", "7b", "Class 7b").await.unwrap();
    for (id, completion) in [("1", 0.0), ("2", 0.5), ("3", 1.0)] {
        engine.add_member("abc", "7b", id).await.unwrap();
        let components = Components { completion, ..EXAMPLE };
        engine.save_mastery_update(id, &components).await.unwrap();
    }
    let first = engine.now().date();
    let stats = engine.aggregate("abc", first).await.unwrap();
    assert_eq!((stats.students, stats.struggling), (3, 0));
    assert_eq!(stats.components.completion, 0.5);
    assert!((stats.median_score - 0.722).abs() < 1e-9, "{stats:?}");
    assert!(fixture.value("school:abc:aggregation", "mastery:2026-01-14").is_some());
    fixture.later(DAY);
    engine.ingest(&fixture.event("e-1", "1", quiz(0.0))).await.unwrap();
    let second = engine.aggregate("abc", engine.now().date()).await.unwrap();
    assert_eq!((second.struggling, second.active_today), (1, 1));
    assert_eq!(engine.aggregate("abc", first).await.unwrap(), stats);
    let both = engine.aggregates("abc", first, first.plus_days(1)).await.unwrap();
    assert_eq!(both, [stats, second]);
    // A day that nobody computed is computed from what was known then.
    fixture.later(DAY * 2);
    let third = engine.aggregate("abc", first.plus_days(2)).await.unwrap();
    assert_eq!((third.students, third.active_today), (3, 0));
}

#[tokio::test]
async fn learners_and_classes_are_compared() {
    let fixture = Fixture::new().await;
    let engine = &fixture.engine;
    for (class, ids) in [("a", ["1", "2"]), ("b", ["3", "4"])] {
        engine.put_class("abc", class, class).await.unwrap();
        for id in ids {
            engine.add_member("abc", class, id).await.unwrap();
            let completion = id.parse::<f64>().unwrap() / 4.0;
            let components = Components { completion, ..EXAMPLE };
            engine.save_mastery_update(id, &components).await.unwrap();
        }
    }
    let ids: Vec<String> = ["1", "4", "nobody"].map(str::to_owned).to_vec();
    let compared = engine.compare_students(&ids).await.unwrap();
    let order: Vec<&str> = compared.students.iter().map(|it| it.student_id.as_str()).collect();
    assert_eq!(order, ["4", "1"]);
    let classes: Vec<String> = ["a", "b"].map(str::to_owned).to_vec();
    let cohorts = engine.compare_cohorts("abc", &classes).await.unwrap().cohorts;
    assert_eq!((cohorts[0].class_id.as_str(), cohorts[0].students), ("b", 2));
    let none = engine.compare_students(&[]).await.unwrap_err();
    assert!(none.to_string().starts_with("students must be"), "{none}");
}

#[tokio::test]
async fn the_audit_log_of_a_day_is_read_the_newest_first() {
    let fixture = Fixture::new().await;
    for action in ["consent", "export", "erasure"] {
        let entry = AuditEntry {
            action: action.to_owned(),
            actor: Some("admin".to_owned()),
            student_id: Some("1".to_owned()),
            detail: None,
            at: fixture.engine.now(),
        };
        fixture.audit.add(&entry).await.unwrap();
        fixture.later(std::time::Duration::from_secs(1));
    }
    let day = fixture.engine.now().date();
    let page = PageRequest { limit: 2, cursor: None };
    let first = fixture.audit.of_day(day, &page).await.unwrap();
    let actions: Vec<&str> = first.items.iter().map(|it| it.action.as_str()).collect();
    assert_eq!(actions, ["erasure", "export"]);
    let page = PageRequest { cursor: first.next, ..page };
    let rest = fixture.audit.of_day(day, &page).await.unwrap();
    assert_eq!((rest.items.len(), rest.next), (1, None));
}

#[tokio::test]
async fn a_learner_can_be_in_forty_classes_and_change_all_of_them_at_once() {
    let fixture = Fixture::new().await;
    let engine = &fixture.engine;
    let classes = |prefix: &str, count: usize| -> Vec<String> {
        (0..count).map(|at| format!("{prefix}{at}")).collect()
    };
    let mut profile = LearnerProfile::new("s", engine.now());
    profile.school_id = Some("abc".to_owned());
    for (school, prefix) in [("abc", "a"), ("abc", "b"), ("xyz", "c")] {
        profile.school_id = Some(school.to_owned());
        profile.class_ids = classes(prefix, 40);
        engine.put_profile(&profile).await.unwrap();
    }
    engine.put_class("xyz", "more", "One more").await.unwrap();
    let many = engine.add_member("xyz", "more", "s").await.unwrap_err();
    assert!(many.to_string().starts_with("class_id must be"), "{many}");
    // To another school with an event.
    let mut event = fixture.event("e-1", "s", quiz(0.5));
    event.school_id = Some("abc".to_owned());
    engine.ingest(&event).await.unwrap();
    assert_eq!(engine.profile("s").await.unwrap().class_ids, Vec::<String>::new());
}

#[tokio::test]
async fn a_learner_is_active_today_by_their_own_day() {
    let fixture = Fixture::new().await;
    let engine = &fixture.engine;
    let mut profile = LearnerProfile::new("s", engine.now());
    profile.time_zone = "Asia/Tokyo".to_owned();
    profile.school_id = Some("abc".to_owned());
    engine.put_profile(&profile).await.unwrap();
    // 16:30 in London, and the next day has begun in Tokyo.
    fixture.later(DAY / 4);
    engine.ingest(&fixture.event("e-1", "s", quiz(0.5))).await.unwrap();
    let today = engine.now().date();
    assert_eq!(engine.aggregate("abc", today).await.unwrap().active_today, 1);
}

#[tokio::test]
async fn a_large_class_comes_in_pages_and_its_averages_are_of_all() {
    let fixture = Fixture::new().await;
    let engine = &fixture.engine;
    engine.put_class("abc", "7b", "Class 7b").await.unwrap();
    for at in 0..25_u32 {
        let id = format!("s-{at:02}");
        engine.add_member("abc", "7b", &id).await.unwrap();
        let components = Components { completion: f64::from(at) / 25.0, ..EXAMPLE };
        engine.save_mastery_update(&id, &components).await.unwrap();
    }
    // Three days, so that each has a trend.
    for _ in 0..2 {
        fixture.later(DAY);
        for at in 0..25 {
            engine.save_mastery_update(&format!("s-{at:02}"), &EXAMPLE).await.unwrap();
        }
    }
    let whole = engine.class("abc", "7b").await.unwrap();
    assert_eq!((whole.members, whole.learners.len(), &whole.next), (25, 25, &None));
    assert!(whole.learners.iter().all(|it| it.trend.is_some()));
    let mut page = PageRequest { limit: 10, cursor: None };
    let mut learners = Vec::new();
    for expected in [10, 10, 5] {
        let some = engine.class_page("abc", "7b", &page).await.unwrap();
        assert_eq!((some.members, some.learners.len()), (25, expected));
        assert_eq!(some.next.is_some(), expected == 10);
        assert_eq!((some.average_score, &some.levels), (whole.average_score, &whole.levels));
        assert_eq!(some.averages, whole.averages);
        learners.extend(some.learners);
        page.cursor = some.next;
    }
    assert_eq!(learners, whole.learners);
    let wrong = PageRequest { limit: 1, cursor: Some("a:b".to_owned()) };
    let wrong = engine.class_page("abc", "7b", &wrong).await.unwrap_err();
    assert!(wrong.to_string().starts_with("cursor must be"), "{wrong}");
}
