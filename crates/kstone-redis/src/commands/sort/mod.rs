//! SORT: the elements of a list, a set or a sorted set in another order.
//!
//! It has the whole keyspace to itself while it runs, because which keys BY and GET read is known
//! only when the elements are.

mod order;
mod pattern;

use std::ops::{ControlFlow, Range};

use bytes::Bytes;

use crate::args;
use crate::command_spec::{Caller, Command, Context, Flow, Keys, flag::*};
use crate::commands;
use crate::commands::lists::{End, List};
use crate::commands::sets;
use crate::commands::sorted_sets::{SortedSet, Walk};
use crate::fault::{Fault, Result};
use crate::store::{Kind, Txn};
use pattern::Pattern;

pub(super) const COMMANDS: &[Command] = &[
    Command::on_keys(
        "sort",
        -2,
        WRITE | DENYOOM | MOVABLE_KEYS | EXCLUSIVE,
        Keys::Found { listed: (1, 1, 1), find: find_keys },
        "set sortedset list dangerous",
        sort,
    ),
    Command::on_keys(
        "sort_ro",
        -2,
        READONLY | MOVABLE_KEYS | EXCLUSIVE,
        Keys::Found { listed: (1, 1, 1), find: |_| vec![1] },
        "set sortedset list dangerous",
        sort_ro,
    ),
];

/// The key to sort, and the one to store to: the last that is named.
fn find_keys(args: &[&[u8]]) -> Vec<usize> {
    let mut found = vec![1];
    let mut at = 2;
    while let Some(option) = args.get(at) {
        match () {
            () if args::is(option, "limit") => at += 2,
            () if args::is(option, "get") || args::is(option, "by") => at += 1,
            () if args::is(option, "store") && at + 1 < args.len() => {
                found.truncate(1);
                found.push(at + 1);
                at += 1;
            }
            () => {}
        }
        at += 1;
    }
    found
}

/// What is asked for.
#[derive(Debug, Default)]
struct Request<'a> {
    descending: bool,
    alpha: bool,
    by: Option<Pattern<'a>>,
    get: Vec<Pattern<'a>>,
    /// Where to begin, and how many; below zero is as from the start, and all.
    limit: Option<(i64, i64)>,
    store: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    fn parse(
        options: &[&'a [u8]],
        may_store: bool,
        may_read_any_key: impl Fn() -> bool,
    ) -> Result<Request<'a>> {
        let mut request = Request::default();
        let mut rest = options;
        while let [option, after @ ..] = rest {
            rest = after;
            match after {
                _ if args::is(option, "asc") => request.descending = false,
                _ if args::is(option, "desc") => request.descending = true,
                _ if args::is(option, "alpha") => request.alpha = true,
                [start, count, after @ ..] if args::is(option, "limit") => {
                    request.limit = Some((args::integer(start)?, args::integer(count)?));
                    rest = after;
                }
                [key, after @ ..] if may_store && args::is(option, "store") => {
                    request.store = Some(*key);
                    rest = after;
                }
                [pattern, after @ ..] if args::is(option, "by") => {
                    let by = Pattern::parse(pattern);
                    if by.has_star() && !may_read_any_key() {
                        return Err(Fault::fixed(
                            "ERR BY option of SORT denied due to insufficient ACL permissions.",
                        ));
                    }
                    request.by = Some(by);
                    rest = after;
                }
                [pattern, after @ ..] if args::is(option, "get") => {
                    if !may_read_any_key() {
                        return Err(Fault::fixed(
                            "ERR GET option of SORT denied due to insufficient ACL permissions.",
                        ));
                    }
                    request.get.push(Pattern::parse(pattern));
                    rest = after;
                }
                _ => return Err(Fault::SYNTAX),
            }
        }
        Ok(request)
    }

    /// Which of so many elements are wanted.
    fn window(&self, len: usize) -> Range<usize> {
        let Some((start, count)) = self.limit else { return 0..len };
        let start = usize::try_from(start.max(0)).unwrap_or(usize::MAX).min(len);
        let end = match usize::try_from(count) {
            Ok(count) => start.saturating_add(count).min(len),
            Err(_) => len,
        };
        start..end
    }
}

/// Whether the client may read the keys that BY and GET make out of elements.
fn may_read_any_key(context: &Context<'_, '_>, args: &[&[u8]]) -> bool {
    let user = &context.client.user;
    let command = args.first().and_then(|name| commands::named(name));
    user.is_all_powerful() || command.is_none_or(|command| user.may_read_any_key(command, args))
}

fn sort(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, options @ ..] = args else { return Err(Fault::SYNTAX) };
    let request = Request::parse(options, true, || may_read_any_key(context, args))?;
    run(context, key, request)
}

fn sort_ro(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, options @ ..] = args else { return Err(Fault::SYNTAX) };
    let request = Request::parse(options, false, || may_read_any_key(context, args))?;
    run(context, key, request)
}

fn run(context: &mut Context<'_, '_>, key: &[u8], mut request: Request<'_>) -> Result<Flow> {
    let entry = context.txn.lookup(key)?;
    let kind = entry.as_ref().map_or(Kind::List, |entry| entry.kind);
    if !matches!(kind, Kind::List | Kind::Set | Kind::SortedSet) {
        return Err(Fault::WRONG_TYPE);
    }
    let mut is_sorted = request.by.as_ref().is_none_or(Pattern::has_star);
    // A set has no order of its own: what is kept or computed with gets one all the same.
    let must_be_same = request.store.is_some() || context.caller == Caller::Script;
    if !is_sorted && kind == Kind::Set && must_be_same {
        (is_sorted, request.alpha, request.by) = (true, true, None);
    }
    let elements = match (entry, is_sorted) {
        (None, _) => Vec::new(),
        (Some(_), true) => {
            let elements = load(context.txn, key, kind, false)?;
            let mut elements = order::sort(context.txn, elements, &request)?;
            let window = request.window(elements.len());
            elements.drain(window).collect()
        }
        (Some(_), false) => {
            let mut elements = load(context.txn, key, kind, request.descending)?;
            let window = request.window(elements.len());
            elements.drain(window).collect()
        }
    };
    match request.store {
        None => write_reply(context, &request, &elements)?,
        Some(to) => store(context, &request, &elements, to)?,
    }
    Ok(Flow::Done)
}

/// All elements of a key that is there, in the order that they have.
fn load(txn: &mut Txn<'_>, key: &[u8], kind: Kind, reverse: bool) -> Result<Vec<Bytes>> {
    let mut elements = Vec::new();
    match kind {
        Kind::List => {
            if let Some(list) = List::find(txn, key)? {
                list.each(txn, key, 0..list.len(), reverse, |_, element| {
                    elements.push(Bytes::copy_from_slice(element));
                    ControlFlow::Continue(())
                })?;
            }
        }
        Kind::SortedSet => {
            if let Some(set) = SortedSet::find(txn, key)? {
                let all = 0..set.len();
                Walk::new(txn, key, &set).by_rank(all, reverse, |member, _| {
                    elements.push(Bytes::copy_from_slice(member));
                    ControlFlow::Continue(())
                })?;
            }
        }
        _ => sets::each_member(txn, key, |member| {
            elements.push(Bytes::copy_from_slice(member));
            Ok(ControlFlow::Continue(()))
        })?,
    }
    Ok(elements)
}

fn write_reply(
    context: &mut Context<'_, '_>,
    request: &Request<'_>,
    elements: &[Bytes],
) -> Result<()> {
    context.out.array(elements.len() * request.get.len().max(1));
    for element in elements {
        if request.get.is_empty() {
            context.out.bulk(element);
        }
        for pattern in &request.get {
            let value = pattern.value(context.txn, element)?;
            context.out.bulk_or_null(value.as_deref());
        }
    }
    Ok(())
}

fn store(
    context: &mut Context<'_, '_>,
    request: &Request<'_>,
    elements: &[Bytes],
    to: &[u8],
) -> Result<()> {
    let mut values = Vec::new();
    for element in elements {
        if request.get.is_empty() {
            values.push(element.clone());
        }
        for pattern in &request.get {
            values.push(pattern.value(context.txn, element)?.unwrap_or_default());
        }
    }
    let txn = &mut *context.txn;
    let old = txn.lookup(to)?;
    if let Some(old) = &old {
        txn.remove(to, old);
    }
    let len = values.len();
    if len > 0 {
        let mut list = List::new();
        for value in values {
            list.push(txn, to, End::Back, value);
        }
        list.save(txn, to)?;
        txn.signal(to);
        txn.notify_counted('l', "sortstore", to, len as u64);
    } else if old.is_some() {
        txn.notify_counted('g', "del", to, 1);
    }
    context.out.integer(i64::try_from(len).unwrap_or(i64::MAX));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_place_to_store_to_is_the_one_that_counts() {
        let args: Vec<&[u8]> = "sort k by store limit 1 store get x store a desc store b"
            .split(' ')
            .map(str::as_bytes)
            .collect();
        assert_eq!(find_keys(&args), [1, 13]);
        assert_eq!(find_keys(&args[..2]), [1]);
    }

    #[test]
    fn limits_stay_within_what_there_is() {
        let window = |start, count, len| {
            Request { limit: Some((start, count)), ..Request::default() }.window(len)
        };
        assert_eq!(window(1, 2, 10), 1..3);
        assert_eq!(window(-5, 2, 10), 0..2);
        assert_eq!(window(8, i64::MAX, 10), 8..10);
        assert_eq!(window(3, -1, 10), 3..10);
        assert!(window(i64::MAX, 5, 10).is_empty());
    }
}
