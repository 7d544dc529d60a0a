//! Sorts elements by number or by text.

use std::cmp::Ordering;

use bytes::Bytes;

use super::Request;
use crate::args;
use crate::fault::{Fault, Result};
use crate::store::Txn;

/// Sorts as asked for. Elements that are equal in what they are sorted by are in byte order if that
/// is a number, and otherwise as they were.
pub(super) fn sort(
    txn: &mut Txn<'_>,
    elements: Vec<Bytes>,
    request: &Request<'_>,
) -> Result<Vec<Bytes>> {
    if request.alpha {
        return sort_as_text(txn, elements, request);
    }
    let mut scored = Vec::with_capacity(elements.len());
    for element in elements {
        let score = match &request.by {
            None => score(&element)?,
            Some(by) => by.value(txn, &element)?.map_or(Ok(0.0), |value| score(&value))?,
        };
        scored.push((score, element));
    }
    scored.sort_by(|(one, element), (other, other_element)| {
        let order = one.partial_cmp(other).unwrap_or(Ordering::Equal);
        directed(order.then_with(|| element.cmp(other_element)), request)
    });
    Ok(scored.into_iter().map(|(_, element)| element).collect())
}

fn sort_as_text(
    txn: &mut Txn<'_>,
    mut elements: Vec<Bytes>,
    request: &Request<'_>,
) -> Result<Vec<Bytes>> {
    let Some(by) = &request.by else {
        elements.sort_by(|one, other| directed(one.cmp(other), request));
        return Ok(elements);
    };
    let mut weighed = Vec::with_capacity(elements.len());
    for element in elements {
        weighed.push((by.value(txn, &element)?, element));
    }
    // What has no weight comes before what has one.
    weighed.sort_by(|(one, _), (other, _)| directed(one.cmp(other), request));
    Ok(weighed.into_iter().map(|(_, element)| element).collect())
}

fn directed(order: Ordering, request: &Request<'_>) -> Ordering {
    if request.descending { order.reverse() } else { order }
}

/// A number as C reads it: spaces before it do not matter, and nothing at all is zero.
fn score(text: &[u8]) -> Result<f64> {
    if text.is_empty() {
        return Ok(0.0);
    }
    let number = args::parse_float(text.trim_ascii_start());
    number.ok_or(Fault::fixed("ERR One or more scores can't be converted into double"))
}
