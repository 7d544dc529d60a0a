//! Shrinks a case that shows a difference: fewer requests before it, fewer members in it.

use serde_json::Value as Json;

use super::compare::{Difference, both_failed, compare};
use super::differences::{self, diverges};
use super::{Pair, Step};
use crate::http::Answer;

/// How many smaller cases are tried.
const TRIES_MAX: usize = 400;

/// The smallest case found whose last request shows a difference of the same kind.
///
/// # Errors
/// If a server does not answer.
pub fn shrink(
    pair: &mut Pair,
    case: Vec<Step>,
    difference: Difference,
) -> Result<(Vec<Step>, Difference), String> {
    let mut smallest = (case, difference);
    let mut tries = TRIES_MAX;
    let mut attempt = |steps: Vec<Step>, best: &mut (Vec<Step>, Difference)| {
        if tries == 0 {
            return Ok(false);
        }
        tries -= 1;
        let shown = last_difference(pair, &steps)?;
        Ok::<bool, String>(match shown {
            Some(shown) if shown.signature == best.1.signature && is_unknown(&steps, &shown) => {
                *best = (steps, shown);
                true
            }
            _ => false,
        })
    };
    // Most differences need nothing before them. Else: halves, quarters, … down to single ones.
    let mut chunk = smallest.0.len() - 1;
    while chunk > 0 {
        let mut at = 0;
        while at + 1 < smallest.0.len() {
            let mut steps = smallest.0.clone();
            steps.drain(at..(at + chunk).min(steps.len() - 1));
            if !attempt(steps, &mut smallest)? {
                at += chunk;
            }
        }
        chunk /= 2;
    }
    for which in (0..smallest.0.len()).rev() {
        let mut at = 0;
        loop {
            let mut steps = smallest.0.clone();
            if steps[which].cut.is_some() || !remove(&mut steps[which].body, &mut { at }) {
                break;
            }
            if !attempt(steps, &mut smallest)? {
                at += 1;
            }
        }
    }
    Ok(smallest)
}

fn is_unknown(steps: &[Step], difference: &Difference) -> bool {
    steps.last().is_some_and(|last| differences::known(last, difference).is_none())
}

/// Whether a request that both refuse, each for another reason, has both mistakes in it: with
/// something taken out, one says what only the other said before. Then it is the order of checks
/// that differs, and neither lacks one. The tables may be changed by this.
///
/// # Errors
/// If a server does not answer.
pub fn has_two_mistakes(
    pair: &mut Pair,
    step: &Step,
    difference: &Difference,
) -> Result<bool, String> {
    let (Some(ours), Some(theirs)) = (complaint(&difference.ours), complaint(&difference.theirs))
    else {
        return Ok(false);
    };
    for at in 0.. {
        let mut smaller = step.clone();
        if smaller.cut.is_some() || !remove(&mut smaller.body, &mut { at }) {
            break;
        }
        let answers = pair.ask(&smaller)?;
        let [our_page, their_page] = [&answers.ours, &answers.theirs].map(|pages| pages.first());
        let now = |page: Option<&Answer>| {
            page.filter(|answer| answer.status != 200)
                .and_then(|answer| serde_json::from_slice::<Json>(&answer.body).ok())
        };
        let now = (now(our_page), now(their_page));
        let says = |answer: &Option<Json>, what: &str| {
            answer.as_ref().and_then(complaint).is_some_and(|said| said == what)
        };
        if says(&now.0, &theirs) || says(&now.1, &ours) {
            return Ok(true);
        }
        // In DynamoDB Local's own words.
        if let Some(difference) = compare(&smaller, &answers)
            && differences::known(&smaller, &difference).is_some()
            && (says(&now.0, &ours) || says(&now.1, &theirs))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What an error says, if it is one.
fn complaint(answer: &Json) -> Option<String> {
    let message = answer.get("message").or_else(|| answer.get("Message"))?;
    message.as_str().map(super::compare::shape)
}

/// The difference that the last step shows on fresh tables.
fn last_difference(pair: &mut Pair, steps: &[Step]) -> Result<Option<Difference>, String> {
    let Some((last, before)) = steps.split_last() else { return Ok(None) };
    pair.reset()?;
    for step in before {
        let answers = pair.ask(step)?;
        let differs = compare(step, &answers).is_some();
        if step.writes() && !both_failed(&answers) && differs || diverges(step, &answers) {
            // What comes after it differs for this reason.
            return Ok(None);
        }
    }
    let answers = pair.ask(last)?;
    Ok(compare(last, &answers))
}

/// Removes the n-th member or element, counted from the outside; false if there are not so many.
fn remove(body: &mut Json, n: &mut usize) -> bool {
    let count = match body {
        Json::Object(members) => members.len(),
        Json::Array(elements) => elements.len(),
        _ => 0,
    };
    if *n < count {
        match body {
            Json::Object(members) => {
                if let Some(name) = members.keys().nth(*n).cloned() {
                    members.remove(&name);
                }
            }
            Json::Array(elements) => drop(elements.remove(*n)),
            _ => {}
        }
        return true;
    }
    *n -= count;
    match body {
        Json::Object(members) => members.values_mut().any(|member| remove(member, n)),
        Json::Array(elements) => elements.iter_mut().any(|element| remove(element, n)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_member_can_be_removed_once() {
        let body = json!({"a": {"b": 1}, "c": [2, {"d": 3}]});
        let smaller: Vec<String> = (0..)
            .map_while(|n| {
                let mut body = body.clone();
                remove(&mut body, &mut { n }).then(|| body.to_string())
            })
            .collect();
        assert_eq!(
            smaller,
            [
                r#"{"c":[2,{"d":3}]}"#,
                r#"{"a":{"b":1}}"#,
                r#"{"a":{},"c":[2,{"d":3}]}"#,
                r#"{"a":{"b":1},"c":[{"d":3}]}"#,
                r#"{"a":{"b":1},"c":[2]}"#,
                r#"{"a":{"b":1},"c":[2,{}]}"#,
            ]
        );
    }
}
