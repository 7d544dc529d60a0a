//! `kstone learn`: from simulated learners to a report.

use crate::Fixture;

#[test]
fn simulated_answers_can_be_evaluated_and_elo_comes_first() {
    let fixture = Fixture::new();
    let words = ["learn", "simulate", "--learners", "120", "--answers", "80", "--seed", "3"];
    let table = fixture.ok(words);
    assert_eq!(table, fixture.ok(words), "the same seed gives the same answers");
    std::fs::write(fixture.path("answers.csv"), &table).unwrap();

    let report = &fixture.json(["learn", "evaluate", "answers.csv", "--json"])[0];
    assert_eq!(report["answers"], 120 * 80);
    assert_eq!(report["learners_held_back"], 24);
    let auc = |model: &str| report["models"][model]["auc"].as_f64().unwrap();
    assert!(auc("elo") > auc("running_accuracy") && auc("elo") > auc("bkt"), "{report}");

    let text = fixture.ok(["learn", "evaluate", "answers.csv"]);
    assert!(text.contains("AUC") && text.contains("knowledge tracing"), "{text}");
    let piped = fixture.run_with_input(["learn", "evaluate"], &table);
    assert_eq!(piped.succeeded().out, text);
}

#[test]
fn a_table_that_cannot_be_evaluated_is_refused_with_its_name_and_the_reason() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("none.csv"), "user_id,skill_id\na,b\n").unwrap();
    let refused = fixture.run(["learn", "evaluate", "none.csv"]).failed_with("`correct`");
    assert!(refused.err.contains("none.csv"), "{refused:?}");
    fixture.run(["learn", "evaluate", "missing.csv"]).failed_with("missing.csv");
}
