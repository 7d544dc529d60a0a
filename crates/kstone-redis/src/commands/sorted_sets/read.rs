//! Commands that read single members and counts: ZSCORE, ZRANK, ZCOUNT and the like.

use std::ops::ControlFlow;

use kstone_core::env::Random;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::sorted_sets::bounds::{LexRange, ScoreRange};
use crate::commands::sorted_sets::reply;
use crate::commands::sorted_sets::set::SortedSet;
use crate::commands::sorted_sets::walk::Walk;
use crate::fault::{Fault, Result};

pub(super) fn zcard(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let key = args.get(1).copied().unwrap_or_default();
    let set = SortedSet::find(context.txn, key)?;
    context.out.reply_integer(set.map_or(0, |set| set.len() as i64))
}

pub(super) fn zscore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, member] = args else { return Err(Fault::SYNTAX) };
    let score = match SortedSet::find(context.txn, key)? {
        Some(_) => SortedSet::score(context.txn, key, member)?,
        None => None,
    };
    match score {
        Some(score) => context.out.double(score),
        None => context.out.null(),
    }
    Ok(Flow::Done)
}

pub(super) fn zmscore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, members @ ..] = args else { return Err(Fault::SYNTAX) };
    let is_there = SortedSet::find(context.txn, key)?.is_some();
    context.out.array(members.len());
    for member in members {
        let score = if is_there { SortedSet::score(context.txn, key, member)? } else { None };
        match score {
            Some(score) => context.out.double(score),
            None => context.out.null(),
        }
    }
    Ok(Flow::Done)
}

pub(super) fn zrank(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    rank(context, args, false)
}

pub(super) fn zrevrank(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    rank(context, args, true)
}

fn rank(context: &mut Context<'_, '_>, args: &[&[u8]], reverse: bool) -> Result<Flow> {
    let (key, member, with_score) = match args {
        [_, key, member] => (key, member, false),
        [_, key, member, option] if args::is(option, "withscore") => (key, member, true),
        _ => return Err(Fault::SYNTAX),
    };
    let found = match SortedSet::find(context.txn, key)? {
        Some(set) => SortedSet::score(context.txn, key, member)?.map(|score| (set, score)),
        None => None,
    };
    let Some((set, score)) = found else {
        if with_score {
            context.out.null_array()
        } else {
            context.out.null()
        }
        return Ok(Flow::Done);
    };
    let rank = Walk::new(context.txn, key, &set).rank(member, score)?;
    let rank = if reverse { set.len().saturating_sub(rank + 1) } else { rank };
    if with_score {
        context.out.array(2);
    }
    context.out.integer(rank as i64);
    if with_score {
        context.out.double(score);
    }
    Ok(Flow::Done)
}

pub(super) fn zcount(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, min, max] = args else { return Err(Fault::SYNTAX) };
    let range = ScoreRange::parse(min, max)?;
    let count = match SortedSet::find(context.txn, key)? {
        Some(set) => Walk::new(context.txn, key, &set).count_by_score(&range)?,
        None => 0,
    };
    context.out.reply_integer(count as i64)
}

pub(super) fn zlexcount(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, min, max] = args else { return Err(Fault::SYNTAX) };
    let range = LexRange::parse(min, max)?;
    let count = match SortedSet::find(context.txn, key)? {
        Some(set) => Walk::new(context.txn, key, &set).count_by_lex(&range)?,
        None => 0,
    };
    context.out.reply_integer(count as i64)
}

/// More than this many members are not drawn at once: the reply would not fit in memory.
const DRAWN_MAX: u64 = 1 << 28;

pub(super) fn zrandmember(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const OUT_OF_RANGE: Fault = Fault::fixed("ERR value is out of range");
    let (key, count, with_scores) = match args {
        [_, key] => (*key, None, false),
        [_, key, count, rest @ ..] => {
            let count = args::integer(count)?;
            if count == i64::MIN {
                return Err(Fault::fixed(
                    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
                ));
            }
            let with_scores = match rest {
                [] => false,
                [option] if args::is(option, "withscores") => true,
                _ => return Err(Fault::SYNTAX),
            };
            if with_scores && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
                return Err(OUT_OF_RANGE);
            }
            (*key, Some(count), with_scores)
        }
        _ => return Err(Fault::SYNTAX),
    };
    let set = SortedSet::find(context.txn, key)?;
    let Some(count) = count else {
        let Some(set) = set else {
            return context.out.reply_null();
        };
        let at = below(context, set.len());
        let out = &mut *context.out;
        Walk::new(context.txn, key, &set).by_rank(at..at + 1, false, |member, _| {
            out.bulk(member);
            ControlFlow::Break(())
        })?;
        return Ok(Flow::Done);
    };
    let Some(set) = set.filter(|_| count != 0) else {
        context.out.array(0);
        return Ok(Flow::Done);
    };
    // Positions of what is drawn, in the order of the reply.
    let drawn: Vec<usize> = if count < 0 {
        if count.unsigned_abs() > DRAWN_MAX {
            return Err(OUT_OF_RANGE);
        }
        (0..count.unsigned_abs()).map(|_| below(context, set.len())).collect()
    } else if count as u64 >= set.len() as u64 {
        (0..set.len()).collect()
    } else {
        distinct(context, count as usize, set.len())
    };
    let members = at_positions(context, key, &set, &drawn)?;
    reply::head(context, drawn.len(), with_scores);
    for at in &drawn {
        if let Ok(found) = members.binary_search_by_key(at, |(at, ..)| *at)
            && let Some((_, member, score)) = members.get(found)
        {
            reply::member(context.out, context.client.resp3, member, *score, with_scores);
        }
    }
    Ok(Flow::Done)
}

/// A random number below this.
fn below(context: &Context<'_, '_>, end: usize) -> usize {
    ((u128::from(context.server.random.next_u64()) * end as u128) >> 64) as usize
}

/// So many different positions of so many, each equally likely (Floyd's way).
fn distinct(context: &Context<'_, '_>, count: usize, len: usize) -> Vec<usize> {
    let mut drawn = hashbrown::HashSet::with_capacity(count);
    for end in len - count..len {
        let at = below(context, end + 1);
        if !drawn.insert(at) {
            drawn.insert(end);
        }
    }
    drawn.into_iter().collect()
}

/// The members at these positions, each once, in order.
fn at_positions(
    context: &mut Context<'_, '_>,
    key: &[u8],
    set: &SortedSet,
    positions: &[usize],
) -> Result<Vec<(usize, Vec<u8>, f64)>> {
    let mut wanted = positions.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let mut members = Vec::with_capacity(wanted.len());
    let (Some(&first), Some(&last)) = (wanted.first(), wanted.last()) else { return Ok(members) };
    let mut wanted = wanted.into_iter().peekable();
    let mut at = first;
    Walk::new(context.txn, key, set).by_rank(first..last + 1, false, |member, score| {
        if wanted.next_if_eq(&at).is_some() {
            members.push((at, member.to_vec(), score));
        }
        at += 1;
        ControlFlow::Continue(())
    })?;
    Ok(members)
}
