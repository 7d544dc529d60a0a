use std::time::Duration;

use kstone_mastery::domain::{Components, Level, MasteryResult};
use kstone_mastery::engine::{Error, MasteryEngine};
use kstone_sim::{CrashPolicy, SimDisk, Trigger};

use crate::specification::fixture::{EXAMPLE, Fixture, quiz};

const PARTS: [&str; 4] = ["completion", "quiz", "quality", "consistency"];

#[tokio::test]
async fn save_mastery_update_writes_its_six_keys_with_their_ttls() {
    let fixture = Fixture::new().await;
    let saved = fixture.engine.save_mastery_update("student_12345", &EXAMPLE).await.unwrap();
    assert_eq!(saved.mastery_score, 0.862);
    assert_eq!((saved.level, saved.version), (Level::Proficient, 1));
    let pk = "student:student_12345";
    let now = fixture.value(pk, "profile:current_mastery").unwrap();
    assert_eq!(serde_json::from_str::<MasteryResult>(&now).unwrap(), saved);
    assert_eq!(fixture.value(pk, "mastery:2026-01-14").unwrap(), now);
    for (part, value) in PARTS.into_iter().zip(["0.85", "0.9", "0.85", "0.82"]) {
        let sk = format!("mastery:2026-01-14:{part}");
        assert_eq!(fixture.value(pk, &sk).unwrap(), value);
        assert_eq!(fixture.ttl_s(pk, &sk), Some(7_776_000));
    }
    assert_eq!(fixture.ttl_s(pk, "mastery:2026-01-14"), Some(7_776_000));
    assert_eq!(fixture.ttl_s(pk, "profile:current_mastery"), None);
    let read = fixture.engine.get_current_mastery("student_12345").await.unwrap();
    assert_eq!(read, Some(saved));
}

#[tokio::test]
async fn save_mastery_update_refuses_what_is_no_share_and_names_it() {
    let fixture = Fixture::new().await;
    for wrong in [f64::NAN, -0.1, 1.5] {
        let components = Components { quality: wrong, ..EXAMPLE };
        let error = fixture.engine.save_mastery_update("s", &components).await.unwrap_err();
        assert!(error.to_string().starts_with("components.quality must be"), "{error}");
    }
    let error = fixture.engine.save_mastery_update("a:b", &EXAMPLE).await.unwrap_err();
    assert!(error.to_string().starts_with("student_id must be"), "{error}");
    assert_eq!(fixture.engine.get_current_mastery("s").await.unwrap(), None);
}

/// What is on a disk of a learner: the version, if all six say the same.
async fn version_on(disk: &SimDisk) -> u64 {
    let fixture = Fixture::on(disk).await;
    let pk = "student:s";
    let current = fixture.value(pk, "profile:current_mastery");
    let day = fixture.value(pk, "mastery:2026-01-14");
    assert_eq!(current, day);
    let Some(current) = current else {
        for part in PARTS {
            assert_eq!(fixture.value(pk, &format!("mastery:2026-01-14:{part}")), None);
        }
        return 0;
    };
    let current: MasteryResult = serde_json::from_str(&current).unwrap();
    let parts = current.components;
    for (part, share) in
        PARTS.into_iter().zip([parts.completion, parts.quiz, parts.quality, parts.consistency])
    {
        let kept = fixture.value(pk, &format!("mastery:2026-01-14:{part}")).unwrap();
        assert_eq!(kept, share.to_string());
    }
    current.version
}

#[tokio::test]
async fn save_mastery_update_is_all_or_nothing_through_a_crash() {
    for policy in [CrashPolicy::LoseAll, CrashPolicy::KeepAll, CrashPolicy::Random(5)] {
        for sync in 1..=6 {
            let disk = SimDisk::new(sync);
            let mut acknowledged = 0;
            {
                let fixture = Fixture::on(&disk).await;
                disk.arm(Trigger::BeforeSync(sync));
                for round in 1..=6_u32 {
                    let completion = f64::from(round) / 10.0;
                    let components = Components { completion, ..EXAMPLE };
                    match fixture.engine.save_mastery_update("s", &components).await {
                        Ok(saved) => acknowledged = saved.version,
                        Err(_) => break,
                    }
                }
            }
            let kept = version_on(&disk.crash(policy)).await;
            assert!(kept >= acknowledged, "{kept} of {acknowledged} after sync {sync}");
            assert!(kept <= acknowledged + 1, "{kept} of {acknowledged} after sync {sync}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_hundred_racing_update_with_version_exactly_one_wins() {
    let fixture = Fixture::new().await;
    fixture.engine.save_mastery_update("s", &EXAMPLE).await.unwrap();
    // Half of them are in another process, whose memory knows nothing of the first half.
    let engines = [fixture.engine.clone(), fixture.another_engine()];
    let racers = (0..100_u32).map(|racer| {
        let engine = engines[racer as usize % 2].clone();
        let components = Components { completion: f64::from(racer) / 100.0, ..EXAMPLE };
        tokio::spawn(
            async move { (components, engine.update_with_version("s", &components, 1).await) },
        )
    });
    let racers: Vec<_> = racers.collect();
    let mut winners = Vec::new();
    for racer in racers {
        match racer.await.unwrap() {
            (components, Ok(saved)) => winners.push((components, saved)),
            (_, Err(Error::Conflict { current, .. })) => assert_eq!(current, Some(2)),
            (_, Err(error)) => panic!("{error}"),
        }
    }
    let [(components, saved)] = winners.as_slice() else { panic!("{winners:?}") };
    assert_eq!((saved.version, saved.components), (2, *components));
    let kept = fixture.engine.get_current_mastery("s").await.unwrap().unwrap();
    assert_eq!(kept, *saved);
}

#[tokio::test]
async fn update_with_version_of_a_learner_who_is_not_there_needs_version_0() {
    let fixture = Fixture::new().await;
    let error = fixture.engine.update_with_version("s", &EXAMPLE, 3).await.unwrap_err();
    assert!(matches!(error, Error::Conflict { current: Some(0), .. }), "{error}");
    assert_eq!(fixture.engine.update_with_version("s", &EXAMPLE, 0).await.unwrap().version, 1);
}

#[tokio::test]
async fn what_is_said_under_a_name_is_written_down_once_and_answered_as_it_was_then() {
    let fixture = Fixture::new().await;
    let engine = &fixture.engine;
    engine.ingest(&fixture.event("e-1", "s", quiz(0.5))).await.unwrap();
    for (name, expected_version) in [("n-1", None), ("n-2", Some(3))] {
        let say = |engine: MasteryEngine| async move {
            engine.save_mastery_update_once(name, "s", &EXAMPLE, expected_version).await
        };
        let first = say(engine.clone()).await.unwrap();
        assert_eq!(first.components, EXAMPLE);
        assert_eq!(say(engine.clone()).await.unwrap(), first);
        fixture.later(Duration::from_secs(60));
        engine.ingest(&fixture.event(&format!("after-{name}"), "s", quiz(0.1))).await.unwrap();
        let now = engine.get_current_mastery("s").await.unwrap().unwrap();
        assert_eq!(now.version, first.version + 1);
        assert_eq!(say(fixture.another_engine()).await.unwrap(), first);
        assert_eq!(engine.get_current_mastery("s").await.unwrap().unwrap(), now);
    }
    let late = engine.save_mastery_update_once("n-3", "s", &EXAMPLE, Some(1)).await.unwrap_err();
    assert!(matches!(late, Error::Conflict { current: Some(5), .. }), "{late:?}");
}
