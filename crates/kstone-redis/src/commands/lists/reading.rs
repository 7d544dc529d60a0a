//! LLEN, LINDEX, LRANGE and LPOS.

use std::ops::ControlFlow;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::lists::List;
use crate::fault::{Fault, Result};

pub(super) fn llen(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key] = args else { return Err(Fault::SYNTAX) };
    let len = List::find(context.txn, key)?.map_or(0, |list| list.len());
    context.out.reply_integer(len as i64)
}

pub(super) fn lrange(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, start, stop] = args else { return Err(Fault::SYNTAX) };
    let (start, stop) = (args::integer(start)?, args::integer(stop)?);
    let Some(list) = List::find(context.txn, key)? else {
        context.out.array(0);
        return Ok(Flow::Done);
    };
    let range = list.range(start, stop);
    let out = &mut *context.out;
    out.array((range.end - range.start) as usize);
    list.each(context.txn, key, range, false, |_, element| {
        out.bulk(element);
        ControlFlow::Continue(())
    })?;
    Ok(Flow::Done)
}

pub(super) fn lindex(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, index] = args else { return Err(Fault::SYNTAX) };
    let Some(list) = List::find(context.txn, key)? else {
        return context.out.reply_null();
    };
    match list.index(args::integer(index)?) {
        None => context.out.null(),
        Some(index) => context.out.bulk(&list.get(context.txn, key, index)?),
    }
    Ok(Flow::Done)
}

/// `LPOS key element [RANK rank] [COUNT matches] [MAXLEN len]`
struct Search {
    /// Which match to begin with, counted from 1.
    rank: u64,
    /// Whether to look from the end.
    reverse: bool,
    /// How many matches are wanted, 0 for all; without it, one that is not a list.
    count: Option<u64>,
    /// How many elements to look at, 0 for all.
    most: u64,
}

impl Search {
    fn parse(mut options: &[&[u8]]) -> Result<Search> {
        const ZERO_RANK: Fault = Fault::fixed(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
             or use negative to start from the end of the list",
        );
        const NEGATIVE_COUNT: Fault = Fault::fixed("ERR COUNT can't be negative");
        const NEGATIVE_MAXLEN: Fault = Fault::fixed("ERR MAXLEN can't be negative");
        let number = |arg, fault| {
            args::parse_integer(arg).and_then(|number| u64::try_from(number).ok()).ok_or(fault)
        };
        let mut search = Search { rank: 1, reverse: false, count: None, most: 0 };
        while let [option, value, rest @ ..] = options {
            if args::is(option, "rank") {
                let rank = args::integer(value)?;
                if rank == 0 {
                    return Err(ZERO_RANK);
                }
                (search.rank, search.reverse) = (rank.unsigned_abs(), rank < 0);
            } else if args::is(option, "count") {
                search.count = Some(number(value, NEGATIVE_COUNT)?);
            } else if args::is(option, "maxlen") {
                search.most = number(value, NEGATIVE_MAXLEN)?;
            } else {
                return Err(Fault::SYNTAX);
            }
            options = rest;
        }
        if options.is_empty() { Ok(search) } else { Err(Fault::SYNTAX) }
    }
}

pub(super) fn lpos(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, wanted, options @ ..] = args else { return Err(Fault::SYNTAX) };
    let Search { rank, reverse, count, most } = Search::parse(options)?;
    let found = List::find(context.txn, key)?;
    let mut matches = Vec::new();
    if let Some(list) = found {
        let most = if most == 0 { list.len() } else { most.min(list.len()) };
        let range = if reverse { list.len() - most..list.len() } else { 0..most };
        let enough = count.unwrap_or(1);
        let mut seen = 0;
        list.each(context.txn, key, range, reverse, |index, element| {
            if element == *wanted {
                seen += 1;
                if seen >= rank {
                    matches.push(index as i64);
                }
            }
            if enough != 0 && matches.len() as u64 == enough {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
    }
    match (count, matches.first()) {
        (None, None) => context.out.null(),
        (None, Some(index)) => context.out.integer(*index),
        (Some(_), _) => {
            context.out.array(matches.len());
            matches.iter().for_each(|index| context.out.integer(*index));
        }
    }
    Ok(Flow::Done)
}
