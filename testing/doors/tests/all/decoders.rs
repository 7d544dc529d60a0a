//! The short run of the fuzzer: items, expressions, statements, requests and connections, damaged
//! in a few thousand seeded ways. None may panic. The long run is in `fuzz/`.

use kstone_door_tests::dice::Dice;
use kstone_door_tests::{fuzzing, redis};

/// Says which input it was, if a panic passes by.
struct OnPanic<'a>(&'a str, u64, &'a [u8]);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let OnPanic(target, case, input) = self;
            eprintln!("{target} panicked in case {case}: {:?}", String::from_utf8_lossy(input));
        }
    }
}

/// Damages an input once to a few times.
fn mutate(input: &mut Vec<u8>, other: &[u8], dice: &Dice) {
    for _ in 0..=dice.below(3) {
        let at = dice.below(input.len());
        let end = (at + 1 + dice.below(12)).min(input.len());
        match dice.below(7) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << dice.below(8);
                }
            }
            1 => input.truncate(at),
            2 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = *dice.pick(&[0, 1, 0x7f, 0x80, 0xff, b'"', b'(', b')', b':', b'#']);
                }
            }
            3 => drop(input.drain(at..end)),
            4 => {
                let again = input.get(at..end).unwrap_or_default().to_vec();
                input.splice(at..at, again);
            }
            5 => {
                let from = dice.below(other.len());
                let piece = other[from..(from + 1 + dice.below(40)).min(other.len())].to_vec();
                input.splice(at..end.max(at), piece);
            }
            // Deep nesting is what recursive readers trip over.
            _ => {
                let opening = *dice.pick(b"([{.");
                input.splice(at..at, vec![opening; 1 << dice.below(10)]);
            }
        }
    }
}

fn check(name: &str, seeds: &[Vec<u8>], target: impl Fn(&[u8]), cases: u64) {
    assert!(seeds.len() > 10, "{name} has {} seeds", seeds.len());
    for seed in seeds {
        let _on_panic = OnPanic(name, u64::MAX, seed);
        target(seed);
    }
    for case in 0..cases {
        let dice = Dice::new(case);
        let mut input = seeds[dice.below(seeds.len())].clone();
        mutate(&mut input, &seeds[dice.below(seeds.len())], &dice);
        let _on_panic = OnPanic(name, case, &input);
        target(&input);
    }
}

fn check_target(name: &str, cases: u64) {
    let Some((_, target)) = fuzzing::TARGETS.iter().find(|(target, _)| *target == name) else {
        panic!("there is no target {name}");
    };
    let seeds = fuzzing::seeds().inputs.into_iter();
    let seeds: Vec<Vec<u8>> =
        seeds.filter(|(target, _)| *target == name).map(|(_, seed)| seed).collect();
    check(name, &seeds, target, cases);
}

#[test]
fn a_damaged_item_is_refused_or_means_the_same_after_encoding_it_again() {
    check_target("item", 20_000);
}

#[test]
fn any_expression_is_refused_or_means_the_same_after_printing_it() {
    check_target("expression", 20_000);
}

#[test]
fn any_statement_is_refused_or_means_the_same_after_printing_it() {
    check_target("partiql", 20_000);
}

#[test]
fn any_request_is_answered_with_json() {
    let seeds: Vec<Vec<u8>> = fuzzing::seeds()
        .requests
        .into_iter()
        .filter_map(|(operation, body)| kstone_dynamo::fuzzing::input(operation, &body))
        .collect();
    check("dynamo_request", &seeds, kstone_dynamo::fuzzing::request, 4000);
}

#[test]
fn any_connection_is_answered_the_same_however_it_is_cut() {
    let seeds = kstone_dynamo::fuzzing::connection_seeds();
    check("dynamo_connection", &seeds, kstone_dynamo::fuzzing::connection, 20_000);
}

fn redis_seeds(name: &str) -> Vec<Vec<u8>> {
    let seeds = redis::arguments::seeds().into_iter();
    seeds.filter(|(target, _)| *target == name).map(|(_, seed)| seed).collect()
}

#[test]
fn any_redis_command_is_answered_whatever_its_arguments_are() {
    check("redis_commands", &redis_seeds("redis_commands"), redis::arguments::commands, 4000);
}

#[test]
fn any_restored_value_is_refused_or_the_same_after_dumping_it_again() {
    check("redis_restore", &redis_seeds("redis_restore"), redis::arguments::restore, 4000);
}

#[test]
fn redis_commands_are_found_the_same_however_they_are_cut() {
    let seeds = kstone_resp::fuzzing::requests_seeds();
    check("redis_requests", &seeds, kstone_resp::fuzzing::requests, 20_000);
}

#[test]
fn no_target_is_forgotten_here() {
    let source = include_str!("decoders.rs");
    for (name, _) in fuzzing::TARGETS {
        assert!(source.contains(&format!("\"{name}\"")), "{name}");
    }
}
