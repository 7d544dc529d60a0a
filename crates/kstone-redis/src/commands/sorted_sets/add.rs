//! ZADD, ZINCRBY, ZREM.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::sorted_sets::layout::check_len;
use crate::commands::sorted_sets::set::SortedSet;
use crate::fault::{Fault, Result};

/// What ZADD may do.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Options {
    /// Only add.
    pub(crate) nx: bool,
    /// Only change what is there.
    pub(crate) xx: bool,
    /// Only to a higher score.
    gt: bool,
    /// Only to a lower score.
    lt: bool,
    /// Count what was changed too.
    pub(crate) ch: bool,
    /// Add to the score that is there.
    incr: bool,
}

pub(super) fn zadd(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    add_parsed(context, args, Options::default())
}

pub(super) fn zincrby(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    add_parsed(context, args, Options { incr: true, ..Options::default() })
}

fn add_parsed(context: &mut Context<'_, '_>, args: &[&[u8]], mut options: Options) -> Result<Flow> {
    let [_, key, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let mut rest = rest;
    while let [option, after @ ..] = rest {
        match option {
            _ if args::is(option, "nx") => options.nx = true,
            _ if args::is(option, "xx") => options.xx = true,
            _ if args::is(option, "ch") => options.ch = true,
            _ if args::is(option, "incr") => options.incr = true,
            _ if args::is(option, "gt") => options.gt = true,
            _ if args::is(option, "lt") => options.lt = true,
            _ => break,
        }
        rest = after;
    }
    let (pairs, []) = rest.as_chunks::<2>() else { return Err(Fault::SYNTAX) };
    if pairs.is_empty() {
        return Err(Fault::SYNTAX);
    }
    if options.nx && options.xx {
        return Err(Fault::fixed("ERR XX and NX options at the same time are not compatible"));
    }
    if (options.nx && (options.gt || options.lt)) || (options.gt && options.lt) {
        return Err(Fault::fixed(
            "ERR GT, LT, and/or NX options at the same time are not compatible",
        ));
    }
    if options.incr && pairs.len() > 1 {
        return Err(Fault::fixed("ERR INCR option supports a single increment-element pair"));
    }
    if let [[score, member]] = pairs {
        return add(context, key, &[(args::float(score)?, member)], options);
    }
    let mut scored = Vec::with_capacity(pairs.len());
    for [score, member] in pairs {
        scored.push((args::float(score)?, *member));
    }
    add(context, key, &scored, options)
}

/// Adds members with their scores, and replies as ZADD does.
pub(crate) fn add(
    context: &mut Context<'_, '_>,
    key: &[u8],
    scored: &[(f64, &[u8])],
    options: Options,
) -> Result<Flow> {
    for (_, member) in scored {
        check_len(key, member)?;
    }
    let txn = &mut *context.txn;
    let mut set = SortedSet::find_or_new(txn, key)?;
    let (mut added, mut updated) = (0, 0);
    let mut result = None;
    for &(given, member) in scored {
        let old = match set.len() {
            0 => None,
            _ => SortedSet::score(txn, key, member)?,
        };
        let score = match old {
            None if options.xx => continue,
            None => given,
            Some(_) if options.nx => continue,
            Some(old) => {
                let score = if options.incr { old + given } else { given };
                if score.is_nan() {
                    return Err(Fault::fixed("ERR resulting score is not a number (NaN)"));
                }
                if (options.lt && score >= old) || (options.gt && score <= old) {
                    continue;
                }
                score
            }
        };
        result = Some(score);
        match old {
            None => added += 1,
            Some(old) if old == score => continue,
            Some(_) => updated += 1,
        }
        set.insert(txn, key, member, old, score);
    }
    set.save(txn, key)?;
    if added + updated > 0 {
        txn.changed('z', if options.incr { "zincr" } else { "zadd" }, key, added + updated);
    }
    match (options.incr, result) {
        (true, Some(score)) => context.out.double(score),
        (true, None) => context.out.null(),
        (false, _) if options.ch => context.out.integer((added + updated) as i64),
        (false, _) => context.out.integer(added as i64),
    }
    Ok(Flow::Done)
}

pub(super) fn zrem(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, members @ ..] = args else { return Err(Fault::SYNTAX) };
    let txn = &mut *context.txn;
    let Some(mut set) = SortedSet::find(txn, key)? else {
        return context.out.reply_integer(0);
    };
    let mut removed = 0;
    for member in members {
        if let Some(score) = SortedSet::score(txn, key, member)? {
            set.remove(txn, key, member, score);
            removed += 1;
        }
    }
    finish_removal(context, key, set, removed, "zrem")?;
    context.out.reply_integer(removed as i64)
}

/// Saves a set that so many members were removed from, and tells.
pub(super) fn finish_removal(
    context: &mut Context<'_, '_>,
    key: &[u8],
    set: SortedSet,
    removed: u64,
    event: &'static str,
) -> Result<()> {
    if removed == 0 {
        return Ok(());
    }
    let is_gone = set.len() == 0;
    set.save(context.txn, key)?;
    context.txn.changed_or_emptied('z', event, key, is_gone, removed);
    Ok(())
}
