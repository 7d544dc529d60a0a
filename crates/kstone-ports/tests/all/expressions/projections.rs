//! Projections.

use kstone_ports::expr::BoundProjection;
use serde_json::{Value as Json, json};

use crate::expressions::support::{assert_refused, encoded, item, projection};

fn sample() -> Json {
    json!({
        "pk": {"S": "k"}, "n": {"N": "1"},
        "l": {"L": [{"S": "0"}, {"S": "1"}, {"M": {"x": {"N": "2"}, "y": {"N": "3"}}}, {"S": "3"}]},
        "m": {"M": {"a": {"S": "A"}, "b": {"M": {"c": {"S": "C"}, "d": {"S": "D"}}}}},
        "odd.name": {"S": "o"},
    })
}

#[track_caller]
fn projected(text: &str, expected: Json) {
    let bound = projection(text, &json!({"#odd": "odd.name"})).unwrap();
    let whole = encoded(&item(&sample()));
    let part = bound.apply(whole.as_ref());
    assert_eq!(part.decode().unwrap(), item(&expected), "{text}");
    part.as_ref().check().unwrap();
}

#[test]
fn a_projection_gives_what_it_names_and_no_more() {
    projected("n, pk", json!({"pk": {"S": "k"}, "n": {"N": "1"}}));
    projected("#odd", json!({"odd.name": {"S": "o"}}));
    projected("absent, n", json!({"n": {"N": "1"}}));
    projected("absent", json!({}));
    projected("m.b.c, m.a", json!({"m": {"M": {"a": {"S": "A"}, "b": {"M": {"c": {"S": "C"}}}}}}));
}

#[test]
fn elements_come_in_the_order_of_the_list_without_gaps() {
    projected("l[3], l[0]", json!({"l": {"L": [{"S": "0"}, {"S": "3"}]}}));
    projected("l[2].y, l[0]", json!({"l": {"L": [{"S": "0"}, {"M": {"y": {"N": "3"}}}]}}));
    projected("l[0], l[9]", json!({"l": {"L": [{"S": "0"}]}}));
}

#[test]
fn a_path_that_leads_nowhere_leaves_no_trace() {
    for text in ["m.x", "m.b.x", "m[0]", "l.x", "l[9]", "l[0].x", "n.x", "n[0]"] {
        projected(text, json!({}));
    }
}

#[test]
fn paths_must_not_meet() {
    let clash = |how: &str, one: &str, two: &str| {
        format!(
            "Two document paths {how} with each other; must remove or rewrite one of these paths; \
             path one: {one}, path two: {two}"
        )
    };
    for (text, message) in [
        ("a, a", clash("overlap", "[a]", "[a]")),
        ("a.b, a", clash("overlap", "[a, b]", "[a]")),
        ("a, a.b", clash("overlap", "[a]", "[a, b]")),
        ("a.b,a.c,a", clash("overlap", "[a, c]", "[a]")),
        ("a[1].c,a[1],b", clash("overlap", "[a, [1], c]", "[a, [1]]")),
        ("a[0],b,a.c", clash("conflict", "[a, [0]]", "[a, c]")),
        ("a[0],a[1],a.b", clash("conflict", "[a, [1]]", "[a, b]")),
    ] {
        assert_refused(projection(text, &json!({})), "ProjectionExpression", &message);
    }
    projection("a[0], a[1], b.c, b.d", &json!({})).unwrap();
}

#[test]
fn attributes_to_get_are_whole_attributes_whatever_their_names() {
    let names = ["odd.name".to_owned(), "n".to_owned(), "m.a".to_owned()];
    let bound = BoundProjection::from_attributes(&names).unwrap();
    let part = bound.apply(encoded(&item(&sample())).as_ref()).decode().unwrap();
    assert_eq!(part, item(&json!({"n": {"N": "1"}, "odd.name": {"S": "o"}})));
}
