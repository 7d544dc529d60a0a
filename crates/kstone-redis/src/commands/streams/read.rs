//! XREAD and XREADGROUP, which may block.

use std::ops::ControlFlow;

use super::group::{self, Group, Ledger, Pending};
use super::id::Id;
use super::reply;
use super::stream::Stream;
use crate::args;
use crate::command_spec::{Block, Caller, Context, Flow};
use crate::fault::{Fault, Result};
use crate::reply::{Out, Sink};
use crate::store::Txn;

/// Most entries that a blocked client gets at once, unless it asked for another count.
const WAITER_COUNT: u64 = 1000;
/// A group hands out no more entries at once than their records fit into a commit together with
/// whatever else a transaction does; who wants more asks again.
const HANDED_OUT_BYTES_MAX: usize = 16 << 20;

/// `[option …] STREAMS key … id …`, the name of the command left out.
#[derive(Debug, Default)]
struct Request<'a, 'b> {
    /// 0 is no limit.
    count: u64,
    /// For how long to wait in milliseconds; 0 is for ever.
    block: Option<&'b [u8]>,
    /// The names of the group and the consumer.
    group: Option<(&'b [u8], &'b [u8])>,
    no_ack: bool,
    keys: &'a [&'b [u8]],
    ids: &'a [&'b [u8]],
}

/// Where the keys are. It has to find what [`parse`] finds.
pub(super) fn key_positions(args: &[&[u8]]) -> Vec<usize> {
    let mut at = 1;
    while let Some(option) = args.get(at) {
        at += match option {
            _ if args::is(option, "block") || args::is(option, "count") => 2,
            _ if args::is(option, "group") => 3,
            _ if args::is(option, "noack") => 1,
            _ if args::is(option, "streams") => {
                let listed = args.len() - at - 1;
                let keys = if listed.is_multiple_of(2) { listed / 2 } else { 0 };
                return (at + 1..at + 1 + keys).collect();
            }
            _ => break,
        };
    }
    Vec::new()
}

fn parse<'a, 'b>(
    command: &[u8],
    mut rest: &'a [&'b [u8]],
    of_group: bool,
    caller: Caller,
) -> Result<Request<'a, 'b>> {
    const NO_GROUP: Fault = Fault::fixed(
        "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
    );
    const NO_NOACK: Fault = Fault::fixed(
        "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
    );
    const GROUP_MISSING: Fault = Fault::fixed("ERR Missing GROUP option for XREADGROUP");
    const UNBALANCED: Fault = Fault::fixed(
        "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
    );
    let mut request = Request::default();
    loop {
        rest = match rest {
            [option, streams @ ..] if args::is(option, "streams") && !streams.is_empty() => {
                if !streams.len().is_multiple_of(2) {
                    return Err(UNBALANCED);
                }
                (request.keys, request.ids) = streams.split_at(streams.len() / 2);
                break;
            }
            [option, timeout, rest @ ..] if args::is(option, "block") => {
                if caller == Caller::Script {
                    let command = args::shown(command);
                    let why = "command is not allowed with BLOCK option from scripts";
                    return Err(Fault::new(format!("ERR {command} {why}")));
                }
                request.block = Some(timeout);
                check_block(timeout)?;
                rest
            }
            [option, count, rest @ ..] if args::is(option, "count") => {
                request.count = u64::try_from(args::integer(count)?).unwrap_or(0);
                rest
            }
            [option, group, consumer, rest @ ..] if args::is(option, "group") => {
                if !of_group {
                    return Err(NO_GROUP);
                }
                request.group = Some((group, consumer));
                rest
            }
            [option, rest @ ..] if args::is(option, "noack") => {
                if !of_group {
                    return Err(NO_NOACK);
                }
                request.no_ack = true;
                rest
            }
            _ => return Err(Fault::SYNTAX),
        };
    }
    if of_group && request.group.is_none() {
        return Err(GROUP_MISSING);
    }
    Ok(request)
}

fn check_block(timeout: &[u8]) -> Result<u64> {
    const NO_NUMBER: Fault = Fault::fixed("ERR timeout is not an integer or out of range");
    let ms = args::parse_integer(timeout).ok_or(NO_NUMBER)?;
    u64::try_from(ms).map_err(|_| Fault::NEGATIVE_TIMEOUT)
}

pub(super) fn xread(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const NO_NEW: Fault = Fault::fixed(
        "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
         <consumer> option.",
    );
    let [command, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let request = parse(command, rest, false, context.caller)?;
    let is_waiter = context.caller == Caller::Waiter;
    let mut streams = Vec::with_capacity(request.keys.len());
    for (&key, &id) in request.keys.iter().zip(request.ids) {
        if !context.may_take_from(key) {
            continue;
        }
        let stream = match Stream::find(context.txn, key) {
            // Who waits for a stream waits on when the key becomes something else.
            Err(fault) if is_waiter && fault == Fault::WRONG_TYPE => None,
            found => found?,
        };
        let after = match id {
            b"$" => stream.as_ref().map_or(Id::MIN, |stream| stream.last),
            b">" => return Err(NO_NEW),
            id => Id::parse(id, 0)?,
        };
        streams.push((key, after, stream));
    }
    let count = if is_waiter && request.count == 0 { WAITER_COUNT } else { request.count };
    let (txn, out) = (&*context.txn, &mut *context.out);
    let mut reply = Reply::new(out, context.client.resp3);
    for (key, after, stream) in &streams {
        let (Some(stream), Some(from)) = (stream, after.next()) else { continue };
        if *after < stream.last {
            reply.stream(key, |out| {
                let shown = reply::range(out, (txn, key, stream), (from, Id::MAX), false, count)?;
                // Who waited for one key under several names is served once.
                Ok(shown > 0)
            })?;
        }
        if is_waiter && reply.streams > 0 {
            break;
        }
    }
    if reply.finish() {
        return Ok(Flow::Done);
    }
    let ids = streams.iter().map(|(_, after, _)| after.text().as_ref().to_vec());
    let ids = ids.collect();
    wait(context, &request, args, Some(ids))
}

/// A reply that begins only when there is something to say.
struct Reply<'o> {
    out: &'o mut (dyn Sink + Send),
    resp3: bool,
    mark: Option<crate::reply::Mark>,
    streams: usize,
}

impl<'o> Reply<'o> {
    fn new(out: &'o mut (dyn Sink + Send), resp3: bool) -> Self {
        Reply { out, resp3, mark: None, streams: 0 }
    }

    /// Says a stream's name and whatever `write_reply` writes about it, unless it returns false.
    fn stream(
        &mut self,
        key: &[u8],
        write_reply: impl FnOnce(&mut (dyn Sink + Send)) -> Result<bool>,
    ) -> Result<()> {
        let start = self.out.position();
        if self.mark.is_none() {
            self.mark = Some(self.out.later());
        }
        if !self.resp3 {
            self.out.array(2);
        }
        self.out.bulk(key);
        if write_reply(self.out)? {
            self.streams += 1;
        } else {
            self.out.rewind(start);
            if self.streams == 0 {
                self.mark = None;
            }
        }
        Ok(())
    }

    /// Ends the reply; whether there was anything to say.
    fn finish(self) -> bool {
        let Some(mark) = self.mark else { return false };
        match self.resp3 {
            true => self.out.map_at(mark, self.streams),
            false => self.out.array_at(mark, self.streams),
        }
        true
    }
}

/// Nothing to read: waits if it was asked to, and may.
fn wait(
    context: &mut Context<'_, '_>,
    request: &Request<'_, '_>,
    args: &[&[u8]],
    ids: Option<Vec<Vec<u8>>>,
) -> Result<Flow> {
    let block = request.block.map(check_block).transpose()?;
    let Some(ms) = block.filter(|_| context.caller.may_block()) else {
        return context.out.reply_null_array();
    };
    let until_ms = (ms > 0).then(|| context.txn.now_ms().saturating_add(ms));
    let again = ids.map(|ids| {
        let kept = args.len() - request.ids.len();
        args.iter().take(kept).map(|arg| arg.to_vec()).chain(ids).collect()
    });
    let keys = request.keys.iter().map(|key| key.to_vec()).collect();
    Ok(Flow::Block(Block { again, ..Block::on(keys, until_ms) }))
}

pub(super) fn xreadgroup(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [command, rest @ ..] = args else { return Err(Fault::SYNTAX) };
    let request = parse(command, rest, true, context.caller)?;
    let Some((group, consumer)) = request.group else { return Err(Fault::SYNTAX) };
    group::check_name(consumer)?;
    let mut asked = Vec::with_capacity(request.keys.len());
    for (&key, id) in request.keys.iter().zip(request.ids) {
        if context.may_take_from(key) {
            check_group(context, key, group)?;
            asked.push((key, history_from(id)?));
        }
    }
    let is_waiter = context.caller == Caller::Waiter;
    let count = if is_waiter && request.count == 0 { WAITER_COUNT } else { request.count };
    let txn = &mut *context.txn;
    let mut reply = Reply::new(&mut *context.out, context.client.resp3);
    for (key, history) in asked {
        let (Some(stream), Some(mut ledger)) =
            (Stream::find(txn, key)?, Ledger::open(txn, key, group)?)
        else {
            continue;
        };
        let from = match history {
            Some(from) => from,
            None => match ledger.group.last.next().filter(|_| ledger.group.last < stream.last) {
                Some(from) if stream.nearest(txn, key, from, false)?.is_some() => from,
                _ => continue,
            },
        };
        if ledger.meet(txn, consumer)? {
            txn.notify_counted('t', "xgroup-createconsumer", key, 1);
        }
        reply.stream(key, |out| {
            let at = (&stream, from, count);
            match history {
                Some(_) => show_history(txn, &mut ledger, key, consumer, at, out)?,
                None => hand_out(txn, &mut ledger, key, consumer, request.no_ack, at, out)?,
            }
            Ok(true)
        })?;
        ledger.save(txn);
        txn.count_changes(1);
        if is_waiter {
            break;
        }
    }
    if reply.finish() {
        return Ok(Flow::Done);
    }
    wait(context, &request, args, None)
}

/// From which entry on the consumer wants to see again what it was given; `None` for new entries.
fn history_from(id: &[u8]) -> Result<Option<Id>> {
    const NO_LAST: Fault = Fault::fixed(
        "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of \
         this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID \
         would just return an empty result set.",
    );
    match id {
        b">" => Ok(None),
        b"$" => Err(NO_LAST),
        // Behind the last name there is nothing; what Redis shows then begins at the first.
        id => Id::parse(id, 0).map(|after| Some(after.next().unwrap_or(Id::MIN))),
    }
}

/// The group has to exist; a client that waited gets an error that says what happened to it.
fn check_group(context: &mut Context<'_, '_>, key: &[u8], group: &[u8]) -> Result<()> {
    const KEY_GONE: Fault = Fault::fixed("UNBLOCKED the stream key no longer exists");
    const GROUP_GONE: Fault =
        Fault::fixed("NOGROUP the consumer group this client was blocked on no longer exists");
    let is_waiter = context.caller == Caller::Waiter;
    let found = match Stream::find(context.txn, key) {
        Err(fault) if is_waiter && fault == Fault::WRONG_TYPE => None,
        found => found?,
    };
    if is_waiter && found.is_none() {
        return Err(KEY_GONE);
    }
    if found.is_none() || Group::find(context.txn, key, group)?.is_none() {
        return Err(match is_waiter {
            true => GROUP_GONE,
            false => Fault::new(format!(
                "NOGROUP No such key '{}' or consumer group '{}' in XREADGROUP with GROUP option",
                args::shown(key),
                args::shown(group)
            )),
        });
    }
    Ok(())
}

/// Shows what is pending for a consumer, and counts that as another delivery.
fn show_history(
    txn: &mut Txn<'_>,
    ledger: &mut Ledger<'_>,
    key: &[u8],
    consumer: &[u8],
    (stream, from, count): (&Stream, Id, u64),
    out: Out<'_>,
) -> Result<()> {
    let mut ids = Vec::new();
    ledger.group.each_owned(txn, key, consumer, (from, Id::MAX), |id| {
        ids.push(id);
        let is_enough = ids.len() as u64 == count;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    out.array(ids.len());
    for id in ids {
        match stream.entry(txn, key, id)? {
            Some(fields) => {
                reply::entry(out, id, super::stream::Fields::read(&fields)?);
                if let Some(was) = ledger.pending_entry(txn, id)? {
                    let count = was.count.saturating_add(1);
                    let delivered_ms = txn.now_ms();
                    let pending = Pending { delivered_ms, count, owner: was.owner.clone() };
                    ledger.assign(txn, id, &pending, Some(&was))?;
                }
            }
            None => {
                out.array(2);
                reply::id(out, id);
                out.null_array();
            }
        }
    }
    Ok(())
}

/// Delivers entries that the group has not seen.
fn hand_out(
    txn: &mut Txn<'_>,
    ledger: &mut Ledger<'_>,
    key: &[u8],
    consumer: &[u8],
    no_ack: bool,
    (stream, from, count): (&Stream, Id, u64),
    out: Out<'_>,
) -> Result<()> {
    let record_len = 2 * (key.len() + consumer.len() + 64);
    let count_max = (HANDED_OUT_BYTES_MAX / record_len).max(1) as u64;
    let count = if count == 0 || count > count_max { count_max } else { count };
    let mut ids = Vec::new();
    let mark = out.later();
    stream.each(txn, key, from, Id::MAX, false, |id, fields| {
        reply::entry(out, id, fields);
        ids.push(id);
        let is_enough = ids.len() as u64 == count;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    out.array_at(mark, ids.len());
    let pending = Pending { owner: consumer.to_vec(), delivered_ms: txn.now_ms(), count: 1 };
    for id in ids {
        ledger.group.advance(stream, id);
        if !no_ack {
            let was = ledger.pending_entry(txn, id)?;
            ledger.assign(txn, id, &pending, was.as_ref())?;
        }
    }
    Ok(())
}
