//! ZRANGE and the older commands that it replaces; ZRANGESTORE; ZREMRANGEBY….

use std::ops::ControlFlow;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::sorted_sets::add::finish_removal;
use crate::commands::sorted_sets::bounds::{self, LexRange, ScoreRange};
use crate::commands::sorted_sets::layout::check_len;
use crate::commands::sorted_sets::set::SortedSet;
use crate::commands::sorted_sets::walk::{Walk, Window};
use crate::commands::sorted_sets::{reply, store_result};
use crate::fault::{Fault, Result};

/// What a range is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// A range as it was asked for.
#[derive(Debug)]
enum Interval<'a> {
    Rank(i64, i64),
    Score(ScoreRange),
    Lex(LexRange<'a>),
}

#[derive(Debug)]
struct Query<'a> {
    interval: Interval<'a>,
    reverse: bool,
    window: Window,
    with_scores: bool,
}

impl<'a> Query<'a> {
    /// Reads `min max [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`. What the command's
    /// name has settled already is given.
    fn parse(
        args: &[&'a [u8]],
        mut by: Option<By>,
        mut reverse: Option<bool>,
        may_have_scores: bool,
    ) -> Result<Query<'a>> {
        let [min, max, rest @ ..] = args else { return Err(Fault::SYNTAX) };
        let mut rest = rest;
        let (mut with_scores, mut offset, mut limit) = (false, 0, -1);
        while let [option, after @ ..] = rest {
            rest = after;
            if may_have_scores && args::is(option, "withscores") {
                with_scores = true;
            } else if let [from, count, after @ ..] = after
                && args::is(option, "limit")
            {
                (offset, limit) = (args::integer(from)?, args::integer(count)?);
                rest = after;
            } else if reverse.is_none() && args::is(option, "rev") {
                reverse = Some(true);
            } else if by.is_none() && args::is(option, "bylex") {
                by = Some(By::Lex);
            } else if by.is_none() && args::is(option, "byscore") {
                by = Some(By::Score);
            } else {
                return Err(Fault::SYNTAX);
            }
        }
        let (by, reverse) = (by.unwrap_or(By::Rank), reverse.unwrap_or(false));
        if limit != -1 && by == By::Rank {
            return Err(Fault::fixed(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        if with_scores && by == By::Lex {
            return Err(Fault::fixed(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let (low, high) = if reverse && by != By::Rank { (max, min) } else { (min, max) };
        let interval = match by {
            By::Rank => Interval::Rank(args::integer(low)?, args::integer(high)?),
            By::Score => Interval::Score(ScoreRange::parse(low, high)?),
            By::Lex => Interval::Lex(LexRange::parse(low, high)?),
        };
        // Leaving out a negative number of members leaves out all; showing one shows all.
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(Query { interval, reverse, window: Window { offset, limit }, with_scores })
    }

    /// Whether it has all members from the first on.
    fn begins_at_the_first(&self, len: usize) -> bool {
        match &self.interval {
            Interval::Rank(start, stop) => bounds::positions(*start, *stop, len).start == 0,
            Interval::Score(range) => range.min == f64::NEG_INFINITY && !range.min_open,
            Interval::Lex(_) => false,
        }
    }

    /// Shows what was asked for.
    fn walk(
        &self,
        walk: &mut Walk<'_, '_, '_>,
        len: usize,
        see: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<()> {
        match &self.interval {
            Interval::Rank(start, stop) => {
                walk.by_rank(bounds::positions(*start, *stop, len), self.reverse, see)
            }
            Interval::Score(range) => walk.by_score(range, self.reverse, self.window, see),
            Interval::Lex(range) => walk.by_lex(range, self.reverse, self.window, see),
        }
    }
}

pub(super) fn zrange(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    show(context, args, None, None)
}

pub(super) fn zrevrange(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    show(context, args, Some(By::Rank), Some(true))
}

pub(super) fn zrangebyscore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    show(context, args, Some(By::Score), Some(false))
}

pub(super) fn zrevrangebyscore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    show(context, args, Some(By::Score), Some(true))
}

pub(super) fn zrangebylex(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    show(context, args, Some(By::Lex), Some(false))
}

pub(super) fn zrevrangebylex(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    show(context, args, Some(By::Lex), Some(true))
}

fn show(
    context: &mut Context<'_, '_>,
    args: &[&[u8]],
    by: Option<By>,
    reverse: Option<bool>,
) -> Result<Flow> {
    let [_, key, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let query = Query::parse(rest, by, reverse, true)?;
    let Some(set) = SortedSet::find(context.txn, key)? else {
        context.out.array(0);
        return Ok(Flow::Done);
    };
    let resp3 = context.client.resp3;
    let out = &mut *context.out;
    let len = set.len();
    let mut walk = Walk::new(context.txn, key, &set);
    // A head that is known beforehand is not moved to later.
    let known = match query.interval {
        Interval::Rank(start, stop) => Some(bounds::positions(start, stop, len).len()),
        Interval::Score(_) | Interval::Lex(_) => None,
    };
    let with_scores = query.with_scores;
    let mark = match known {
        Some(shown) => {
            out.array(reply::len(resp3, shown, with_scores));
            None
        }
        None => Some(out.later()),
    };
    let mut shown = 0;
    query.walk(&mut walk, len, |member, score| {
        shown += 1;
        reply::member(out, resp3, member, score, with_scores);
        ControlFlow::Continue(())
    })?;
    if let Some(mark) = mark {
        context.out.array_at(mark, reply::len(resp3, shown, with_scores));
    }
    Ok(Flow::Done)
}

pub(super) fn zrangestore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, target, key, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let query = Query::parse(rest, None, None, false)?;
    let mut members: Vec<(Vec<u8>, f64)> = Vec::new();
    if let Some(set) = SortedSet::find(context.txn, key)? {
        let len = set.len();
        query.walk(&mut Walk::new(context.txn, key, &set), len, |member, score| {
            members.push((member.to_vec(), score));
            ControlFlow::Continue(())
        })?;
    }
    for (member, _) in &members {
        check_len(target, member)?;
    }
    store_result(context, target, &members, "zrangestore", 1)?;
    Ok(Flow::Done)
}

pub(super) fn zremrangebyrank(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    remove(context, args, By::Rank, "zremrangebyrank")
}

pub(super) fn zremrangebyscore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    remove(context, args, By::Score, "zremrangebyscore")
}

pub(super) fn zremrangebylex(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    remove(context, args, By::Lex, "zremrangebylex")
}

fn remove(
    context: &mut Context<'_, '_>,
    args: &[&[u8]],
    by: By,
    event: &'static str,
) -> Result<Flow> {
    let [_, key, min, max] = args else { return Err(Fault::SYNTAX) };
    let query = Query::parse(&[min, max], Some(by), Some(false), false)?;
    let txn = &mut *context.txn;
    let Some(mut set) = SortedSet::find(txn, key)? else {
        return context.out.reply_integer(0);
    };
    let len = set.len();
    let mut members: Vec<(Vec<u8>, f64)> = Vec::new();
    query.walk(&mut Walk::new(txn, key, &set), len, |member, score| {
        members.push((member.to_vec(), score));
        ControlFlow::Continue(())
    })?;
    set.remove_members(txn, key, &members)?;
    if let Some((member, score)) = members.last()
        && query.begins_at_the_first(len)
    {
        set.begins_after(member, *score);
    }
    finish_removal(context, key, set, members.len() as u64, event)?;
    context.out.reply_integer(members.len() as i64)
}
