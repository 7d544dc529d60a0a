//! `kstone learn`: from simulated learners to a report.

use crate::Place;

#[test]
fn simulated_answers_can_be_evaluated_and_elo_comes_first() {
    let place = Place::new();
    let words = ["learn", "simulate", "--learners", "120", "--answers", "80", "--seed", "3"];
    let table = place.ok(words);
    assert_eq!(table, place.ok(words), "the same seed gives the same answers");
    std::fs::write(place.path("answers.csv"), &table).unwrap();

    let report = &place.json(["learn", "evaluate", "answers.csv", "--json"])[0];
    assert_eq!(report["answers"], 120 * 80);
    assert_eq!(report["learners_held_back"], 24);
    let auc = |model: &str| report["models"][model]["auc"].as_f64().unwrap();
    assert!(auc("elo") > auc("running_accuracy") && auc("elo") > auc("bkt"), "{report}");

    let text = place.ok(["learn", "evaluate", "answers.csv"]);
    assert!(text.contains("AUC") && text.contains("knowledge tracing"), "{text}");
    let piped = place.run_with_input(["learn", "evaluate"], &table);
    assert_eq!(piped.succeeded().out, text);
}

#[test]
fn a_table_that_cannot_be_evaluated_is_refused_with_its_name_and_the_reason() {
    let place = Place::new();
    std::fs::write(place.path("none.csv"), "user_id,skill_id\na,b\n").unwrap();
    let refused = place.run(["learn", "evaluate", "none.csv"]).failed_with("`correct`");
    assert!(refused.err.contains("none.csv"), "{refused:?}");
    place.run(["learn", "evaluate", "missing.csv"]).failed_with("missing.csv");
}
