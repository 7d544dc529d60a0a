//! ZUNION, ZINTER, ZDIFF, ZINTERCARD, and their storing forms. Plain sets take part as well: each
//! of their members has the score 1.

use std::ops::ControlFlow;

use hashbrown::HashMap;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::sets;
use crate::commands::sorted_sets::layout::check_len;
use crate::commands::sorted_sets::ranked::order;
use crate::commands::sorted_sets::set::SortedSet;
use crate::commands::sorted_sets::walk::Walk;
use crate::commands::sorted_sets::{reply, store_result};
use crate::fault::{Fault, Result};
use crate::store::{Kind, Txn};

/// How the sets are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

/// What becomes of several scores of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn add(self, total: f64, score: f64) -> f64 {
        match self {
            Aggregate::Sum => zero_if_nan(total + score),
            Aggregate::Min if score < total => score,
            Aggregate::Max if score > total => score,
            Aggregate::Min | Aggregate::Max => total,
        }
    }
}

/// Infinity minus infinity, and infinity times nothing, are nothing.
fn zero_if_nan(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// One of the sets.
#[derive(Debug)]
struct Source<'k> {
    key: &'k [u8],
    weight: f64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Nothing,
    Set(usize),
    Sorted(SortedSet),
}

impl<'k> Source<'k> {
    fn find(txn: &mut Txn<'_>, key: &'k [u8]) -> Result<Source<'k>> {
        let content = match txn.lookup(key)? {
            None => Content::Nothing,
            Some(entry) => match entry.kind {
                Kind::Set => Content::Set(sets::count(&entry)? as usize),
                Kind::SortedSet => Content::Sorted(SortedSet::from_entry(&entry)?),
                _ => return Err(Fault::WRONG_TYPE),
            },
        };
        Ok(Source { key, weight: 1.0, content })
    }

    fn len(&self) -> usize {
        match &self.content {
            Content::Nothing => 0,
            Content::Set(len) => *len,
            Content::Sorted(set) => set.len(),
        }
    }

    /// The score of a member.
    fn score(&self, txn: &Txn<'_>, member: &[u8]) -> Result<Option<f64>> {
        match &self.content {
            Content::Nothing => Ok(None),
            Content::Set(_) => Ok(sets::has_member(txn, self.key, member)?.then_some(1.0)),
            Content::Sorted(_) => SortedSet::score(txn, self.key, member),
        }
    }

    /// All members with their scores.
    fn members(&self, txn: &mut Txn<'_>) -> Result<Vec<(Vec<u8>, f64)>> {
        let mut members = Vec::with_capacity(self.len());
        match &self.content {
            Content::Nothing => {}
            Content::Set(_) => sets::each_member(txn, self.key, |member| {
                members.push((member.to_vec(), 1.0));
                Ok(ControlFlow::Continue(()))
            })?,
            Content::Sorted(set) => {
                Walk::new(txn, self.key, set).by_rank(0..set.len(), false, |member, score| {
                    members.push((member.to_vec(), score));
                    ControlFlow::Continue(())
                })?;
            }
        }
        Ok(members)
    }
}

/// A command as it was read.
#[derive(Debug)]
struct Query<'k> {
    operation: Operation,
    sources: Vec<Source<'k>>,
    aggregate: Aggregate,
    with_scores: bool,
    /// How many members of an intersection are enough; 0 is all.
    limit: usize,
}

/// What the command does with the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Show,
    Store,
    Count,
}

impl<'k> Query<'k> {
    /// Reads `numkeys key… [WEIGHTS …] [AGGREGATE …] [WITHSCORES] [LIMIT …]`.
    fn parse(
        txn: &mut Txn<'_>,
        args: &[&'k [u8]],
        name: &str,
        operation: Operation,
        output: Output,
    ) -> Result<Query<'k>> {
        let [numkeys, rest @ ..] = args else { return Err(Fault::SYNTAX) };
        let numkeys = args::integer(numkeys)?;
        if numkeys < 1 {
            return Err(Fault::new(format!(
                "ERR at least 1 input key is needed for '{name}' command"
            )));
        }
        let numkeys = usize::try_from(numkeys).map_err(|_| Fault::SYNTAX)?;
        let (keys, mut rest) = rest.split_at_checked(numkeys).ok_or(Fault::SYNTAX)?;
        let mut sources = Vec::with_capacity(keys.len());
        for key in keys {
            sources.push(Source::find(txn, key)?);
        }
        let is_weighed = operation != Operation::Diff && output != Output::Count;
        let mut query =
            Query { operation, sources, aggregate: Aggregate::Sum, with_scores: false, limit: 0 };
        while let [option, after @ ..] = rest {
            if is_weighed && args::is(option, "weights") && after.len() >= keys.len() {
                let (weights, after) = after.split_at_checked(keys.len()).ok_or(Fault::SYNTAX)?;
                for (source, weight) in query.sources.iter_mut().zip(weights) {
                    source.weight = args::parse_float(weight)
                        .ok_or(Fault::fixed("ERR weight value is not a float"))?;
                }
                rest = after;
            } else if let [aggregate, after @ ..] = after
                && is_weighed
                && args::is(option, "aggregate")
            {
                query.aggregate = match aggregate {
                    _ if args::is(aggregate, "sum") => Aggregate::Sum,
                    _ if args::is(aggregate, "min") => Aggregate::Min,
                    _ if args::is(aggregate, "max") => Aggregate::Max,
                    _ => return Err(Fault::SYNTAX),
                };
                rest = after;
            } else if output == Output::Show && args::is(option, "withscores") {
                query.with_scores = true;
                rest = after;
            } else if let [limit, after @ ..] = after
                && output == Output::Count
                && args::is(option, "limit")
            {
                let limit =
                    args::parse_integer(limit).and_then(|limit| usize::try_from(limit).ok());
                query.limit = limit.ok_or(Fault::fixed("ERR LIMIT can't be negative"))?;
                rest = after;
            } else {
                return Err(Fault::SYNTAX);
            }
        }
        if operation != Operation::Diff {
            query.sources.sort_by_key(Source::len);
        }
        Ok(query)
    }

    /// The members of the result, in no order.
    fn run(&self, txn: &mut Txn<'_>) -> Result<Vec<(Vec<u8>, f64)>> {
        match self.operation {
            Operation::Union => self.union(txn),
            Operation::Inter => self.intersection(txn),
            Operation::Diff => self.difference(txn),
        }
    }

    fn union(&self, txn: &mut Txn<'_>) -> Result<Vec<(Vec<u8>, f64)>> {
        let largest = self.sources.last().map_or(0, Source::len);
        let mut totals: HashMap<Vec<u8>, f64> = HashMap::with_capacity(largest);
        for source in &self.sources {
            for (member, score) in source.members(txn)? {
                let score = zero_if_nan(source.weight * score);
                totals
                    .entry(member)
                    .and_modify(|total| *total = self.aggregate.add(*total, score))
                    .or_insert(score);
            }
        }
        Ok(totals.into_iter().collect())
    }

    fn intersection(&self, txn: &mut Txn<'_>) -> Result<Vec<(Vec<u8>, f64)>> {
        let Some((smallest, others)) = self.sources.split_first() else { return Ok(Vec::new()) };
        let mut result = Vec::new();
        'members: for (member, score) in smallest.members(txn)? {
            let mut total = zero_if_nan(smallest.weight * score);
            for other in others {
                let Some(score) = other.score(txn, &member)? else { continue 'members };
                total = self.aggregate.add(total, score * other.weight);
            }
            result.push((member, total));
            if self.limit > 0 && result.len() >= self.limit {
                break;
            }
        }
        Ok(result)
    }

    fn difference(&self, txn: &mut Txn<'_>) -> Result<Vec<(Vec<u8>, f64)>> {
        let Some((first, others)) = self.sources.split_first() else { return Ok(Vec::new()) };
        if first.len() == 0 || others.iter().any(|other| other.key == first.key) {
            return Ok(Vec::new());
        }
        let mut result = Vec::new();
        'members: for (member, score) in first.members(txn)? {
            for other in others {
                if other.score(txn, &member)?.is_some() {
                    continue 'members;
                }
            }
            result.push((member, score));
        }
        Ok(result)
    }
}

pub(super) fn zunion(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    show(context, args, "zunion", Operation::Union)
}

pub(super) fn zinter(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    show(context, args, "zinter", Operation::Inter)
}

pub(super) fn zdiff(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    show(context, args, "zdiff", Operation::Diff)
}

fn show(
    context: &mut Context<'_, '_>,
    args: &[&[u8]],
    name: &str,
    operation: Operation,
) -> Result<Flow> {
    let rest = args.get(1..).unwrap_or_default();
    let query = Query::parse(context.txn, rest, name, operation, Output::Show)?;
    let mut members = query.run(context.txn)?;
    members.sort_by(|a, b| order((a.1, &a.0), (b.1, &b.0)));
    reply::head(context, members.len(), query.with_scores);
    for (member, score) in &members {
        reply::member(context.out, context.client.resp3, member, *score, query.with_scores);
    }
    Ok(Flow::Done)
}

pub(super) fn zintercard(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let rest = args.get(1..).unwrap_or_default();
    let query = Query::parse(context.txn, rest, "zintercard", Operation::Inter, Output::Count)?;
    let members = query.run(context.txn)?;
    context.out.reply_integer(members.len() as i64)
}

pub(super) fn zunionstore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    store(context, args, "zunionstore", Operation::Union)
}

pub(super) fn zinterstore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    store(context, args, "zinterstore", Operation::Inter)
}

pub(super) fn zdiffstore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    store(context, args, "zdiffstore", Operation::Diff)
}

fn store(
    context: &mut Context<'_, '_>,
    args: &[&[u8]],
    name: &'static str,
    operation: Operation,
) -> Result<Flow> {
    let [_, target, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let query = Query::parse(context.txn, rest, name, operation, Output::Store)?;
    let members = query.run(context.txn)?;
    for (member, _) in &members {
        check_len(target, member)?;
    }
    store_result(context, target, &members, name, 1)?;
    Ok(Flow::Done)
}
