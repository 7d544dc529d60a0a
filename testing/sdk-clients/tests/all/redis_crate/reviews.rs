//! The queue of reviews that are due: `srs:{learner}:{season}`.

use redis::Commands;

use crate::redis_crate::support::{send, survives};

const KEY: &str = "srs:ada:spring";
const NOW: i64 = 1_768_400_000;

#[test]
fn the_twenty_reviews_that_are_due_longest_come_first_in_order() {
    // Question 0 is due now, question 1 a minute ago, and so on; from 30 on they are still to come.
    let due_at = |number: i64| if number < 30 { NOW - 60 * number } else { NOW + number };
    survives(
        KEY,
        None,
        |connection| {
            let items: Vec<(i64, String)> =
                (0..50).map(|number| (due_at(number), format!("q{number:02}"))).collect();
            assert_eq!(connection.zadd_multiple::<_, _, _, i64>(KEY, &items).unwrap(), 50);
        },
        |connection| {
            assert_eq!(send::<String>(connection, &["TYPE", KEY]), "zset");
            let due: Vec<String> = connection.zrangebyscore_limit(KEY, "-inf", NOW, 0, 20).unwrap();
            let wanted: Vec<String> = (10..30).rev().map(|number| format!("q{number}")).collect();
            assert_eq!(due, wanted);
            assert_eq!(connection.zcount::<_, _, _, i64>(KEY, "-inf", NOW).unwrap(), 30);
        },
    );
}

#[test]
fn a_review_that_was_answered_is_due_later() {
    survives(
        KEY,
        None,
        |connection| {
            let items = [(NOW - 10, "q1"), (NOW - 5, "q2")];
            connection.zadd_multiple::<_, _, _, ()>(KEY, &items).unwrap();
            let moved: i64 = connection.zadd(KEY, "q1", NOW + 86400).unwrap();
            assert_eq!(moved, 0);
        },
        |connection| {
            let due: Vec<String> = connection.zrangebyscore_limit(KEY, "-inf", NOW, 0, 20).unwrap();
            assert_eq!(due, ["q2"]);
            let score: i64 = connection.zscore(KEY, "q1").unwrap();
            assert_eq!(score, NOW + 86400);
        },
    );
}

#[test]
fn a_learner_with_nothing_due_gets_an_empty_answer() {
    survives(
        KEY,
        None,
        |connection| connection.zadd(KEY, "q1", NOW + 1).unwrap(),
        |connection| {
            let due: Vec<String> = connection.zrangebyscore_limit(KEY, "-inf", NOW, 0, 20).unwrap();
            assert!(due.is_empty());
            // The set is there: nobody has to load it again.
            assert!(connection.exists::<_, bool>(KEY).unwrap());
        },
    );
}
