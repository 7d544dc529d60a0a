//! XADD, XTRIM, XDEL and XSETID.

use kstone_core::VALUE_LEN_MAX;

use super::id::{Id, NewId};
use super::nodes::Limits;
use super::stream::{Keep, Stream, Trim};
use crate::args;
use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};
use crate::server::Server;
use crate::server::config::table::{ParameterIndex, index_of};

const NODE_ENTRIES_MAX: ParameterIndex = index_of("stream-node-max-entries");
const NODE_BYTES_MAX: ParameterIndex = index_of("stream-node-max-bytes");

/// What XADD and XTRIM were told before the entry.
#[derive(Debug, Default)]
struct Options {
    keep: Option<Keep>,
    is_approximate: bool,
    limit: Option<u64>,
    no_mkstream: bool,
}

fn not_negative(arg: &[u8], fault: Fault) -> Result<u64> {
    u64::try_from(args::integer(arg)?).map_err(|_| fault)
}

impl Options {
    /// Reads one option; returns how many arguments it takes, 0 if it is none.
    fn read(&mut self, given: &[&[u8]], is_add: bool) -> Result<usize> {
        const TWO: Fault = Fault::fixed(
            "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
        );
        const MAXLEN: Fault = Fault::fixed("ERR The MAXLEN argument must be >= 0.");
        const LIMIT: Fault = Fault::fixed("ERR The LIMIT argument must be >= 0.");
        match given {
            [option, ..] if is_add && args::is(option, "nomkstream") => {
                self.no_mkstream = true;
                Ok(1)
            }
            [option, limit, ..] if args::is(option, "limit") => {
                self.limit = Some(not_negative(limit, LIMIT)?);
                Ok(2)
            }
            [option, rest @ ..]
                if !rest.is_empty()
                    && (args::is(option, "maxlen") || args::is(option, "minid")) =>
            {
                if self.keep.is_some() {
                    return Err(TWO);
                }
                let (mark, edge) = match rest {
                    [mark @ (b"~" | b"="), edge, ..] => (Some(*mark), *edge),
                    [edge, ..] => (None, *edge),
                    [] => return Ok(0),
                };
                self.is_approximate = mark == Some(b"~");
                self.keep = Some(match args::is(option, "maxlen") {
                    true => Keep::Len(not_negative(edge, MAXLEN)?),
                    false => Keep::From(Id::parse(edge, 0)?),
                });
                Ok(if mark.is_some() { 3 } else { 2 })
            }
            _ => Ok(0),
        }
    }

    /// What is to be trimmed, if anything.
    fn trim(&self, server: &Server) -> Result<Option<Trim>> {
        const NO_STRATEGY: Fault = Fault::fixed(
            "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
        );
        const EXACT: Fault =
            Fault::fixed("ERR syntax error, LIMIT cannot be used without the special ~ option");
        let is_limited = self.limit.is_some_and(|limit| limit > 0);
        let Some(keep) = self.keep else {
            return if is_limited { Err(NO_STRATEGY) } else { Ok(None) };
        };
        let limit = match self.limit {
            Some(_) if !self.is_approximate => return Err(EXACT),
            Some(limit) => limit,
            // So that trimming a long stream for the first time does not take long.
            None if self.is_approximate => match server.config.size(NODE_ENTRIES_MAX) {
                0 => 10_000,
                entries => entries.saturating_mul(100).min(1_000_000),
            },
            None => 0,
        };
        Ok(Some(Trim { keep, is_approximate: self.is_approximate, limit }))
    }
}

fn limits(server: &Server) -> Limits {
    let config = &server.config;
    Limits { entries: config.size(NODE_ENTRIES_MAX), bytes: config.size(NODE_BYTES_MAX) }
}

pub(super) fn xadd(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const ARITY: Fault = Fault::fixed("ERR wrong number of arguments for 'xadd' command");
    const ZERO: Fault = Fault::fixed("ERR The ID specified in XADD must be greater than 0-0");
    const TOO_LARGE: Fault = Fault::fixed("ERR Elements are too large to be stored");
    let [_, key, rest @ ..] = args else { return Err(ARITY) };
    let (mut options, mut rest) = (Options::default(), rest);
    while let taken @ 1.. =
        if rest.first() == Some(&&b"*"[..]) { 0 } else { options.read(rest, true)? }
    {
        rest = rest.get(taken..).unwrap_or_default();
    }
    let [wanted, fields @ ..] = rest else { return Err(ARITY) };
    let wanted = Id::parse_new(wanted)?;
    let trim = options.trim(context.server)?;
    if fields.is_empty() || !fields.len().is_multiple_of(2) {
        return Err(ARITY);
    }
    if wanted == NewId::Exactly(Id::MIN) {
        return Err(ZERO);
    }
    if fields.iter().map(|field| field.len() + 5).sum::<usize>() + 10 > VALUE_LEN_MAX {
        return Err(TOO_LARGE);
    }
    let txn = &mut *context.txn;
    let found = Stream::find(txn, key)?;
    if found.is_none() && options.no_mkstream {
        return context.out.reply_null();
    }
    let mut stream = found.unwrap_or_default();
    let id = stream.name(wanted, txn.now_ms())?;
    stream.append(txn, key, id, fields, limits(context.server));
    txn.notify('t', "xadd", key);
    if let Some(trim) = trim
        && stream.trim(txn, key, &trim)? > 0
    {
        txn.notify('t', "xtrim", key);
    }
    stream.save(txn, key)?;
    txn.touch(key);
    txn.count_changes(1);
    txn.signal(key);
    context.out.reply_bulk(id.text().as_ref())
}

pub(super) fn xtrim(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const NOTHING: Fault =
        Fault::fixed("ERR syntax error, XTRIM must be called with a trimming strategy");
    let [_, key, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let (mut options, mut rest) = (Options::default(), rest);
    while !rest.is_empty() {
        match options.read(rest, false)? {
            0 => return Err(Fault::SYNTAX),
            taken => rest = rest.get(taken..).unwrap_or_default(),
        }
    }
    let trim = options.trim(context.server)?.ok_or(NOTHING)?;
    let txn = &mut *context.txn;
    let Some(mut stream) = Stream::find(txn, key)? else {
        return context.out.reply_integer(0);
    };
    let removed = stream.trim(txn, key, &trim)?;
    if removed > 0 {
        txn.note_named(&[], &[]);
        stream.save(txn, key)?;
        txn.changed('t', "xtrim", key, removed);
    }
    context.out.reply_integer(removed as i64)
}

pub(super) fn xdel(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, ids @ ..] = args else { return Err(Fault::SYNTAX) };
    let txn = &mut *context.txn;
    let Some(mut stream) = Stream::find(txn, key)? else {
        return context.out.reply_integer(0);
    };
    let ids: Vec<Id> = ids.iter().map(|id| Id::parse(id, 0)).collect::<Result<_>>()?;
    let mut deleted = 0;
    for id in ids {
        deleted += u64::from(stream.delete(txn, key, id)?);
    }
    if deleted > 0 {
        stream.save(txn, key)?;
        txn.changed('t', "xdel", key, deleted);
    }
    context.out.reply_integer(deleted as i64)
}

pub(super) fn xsetid(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const NEGATIVE: Fault = Fault::fixed("ERR entries_added must be positive");
    const BEFORE_DELETED: Fault = Fault::fixed(
        "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
    );
    const BEFORE_LAST: Fault =
        Fault::fixed("ERR The ID specified in XSETID is smaller than the target stream top item");
    const TOO_FEW: Fault = Fault::fixed(
        "ERR The entries_added specified in XSETID is smaller than the target stream length",
    );
    let [_, key, id, options @ ..] = args else { return Err(Fault::SYNTAX) };
    let id = Id::parse(id, 0)?;
    let (mut added, mut max_deleted) = (None, None);
    for option in options.chunks(2) {
        match option {
            [option, count] if args::is(option, "entriesadded") => {
                added = Some(not_negative(count, NEGATIVE)?);
            }
            [option, deleted] if args::is(option, "maxdeletedid") => {
                let deleted = Id::parse(deleted, 0)?;
                if id < deleted {
                    return Err(BEFORE_DELETED);
                }
                max_deleted = Some(deleted).filter(|deleted| *deleted != Id::MIN);
            }
            _ => return Err(Fault::SYNTAX),
        }
    }
    let txn = &mut *context.txn;
    let mut stream = Stream::find(txn, key)?.ok_or(Fault::NO_SUCH_KEY)?;
    if stream.len > 0 {
        if stream.nearest(txn, key, Id::MAX, true)?.is_some_and(|last| id < last) {
            return Err(BEFORE_LAST);
        }
        if added.is_some_and(|added| added < stream.len) {
            return Err(TOO_FEW);
        }
    }
    stream.last = id;
    stream.added = added.unwrap_or(stream.added);
    stream.max_deleted = max_deleted.unwrap_or(stream.max_deleted);
    stream.save(txn, key)?;
    txn.changed('t', "xsetid", key, 1);
    context.out.reply_ok()
}
