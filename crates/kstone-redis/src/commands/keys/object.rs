//! OBJECT: encoding, idle time and reference count of a key.
//!
//! Keys are not packed the way Redis packs them; the encodings are those that Redis would report
//! for a value of this size, because clients and people compare them.

use std::ops::ControlFlow;

use crate::args;
use crate::command_spec::{Command, Context, Flow, Keys, Run, RunOnKeys, flag::*};
use crate::commands::keys::help;
use crate::commands::sets;
use crate::commands::sorted_sets::{SortedSet, Walk};
use crate::fault::{Fault, Result};
use crate::server::config;
use crate::store::fields::{self, HashHead, Payload};
use crate::store::{Entry, Kind};

pub(super) const OBJECT: Command = Command::group(
    "object",
    &[
        question("object|encoding", encoding),
        question("object|freq", freq),
        question("object|idletime", idletime),
        question("object|refcount", refcount),
        Command::new("object|help", 2, NO_DATA, "keyspace", Run::Keys(object_help)),
    ],
);

const fn question(name: &'static str, run: RunOnKeys) -> Command {
    Command::on_keys(name, 3, READONLY, Keys::SECOND, "keyspace", run)
}

/// The key that is asked about; says that there is nothing if there is none.
fn lookup(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Option<Entry>> {
    let [_, _, key] = args else { return Err(Fault::SYNTAX) };
    let entry = context.txn.lookup_quietly(key)?;
    if entry.is_none() {
        context.out.null();
    }
    Ok(entry)
}

fn refcount(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    if lookup(context, args)?.is_some() {
        context.out.integer(1);
    }
    Ok(Flow::Done)
}

fn idletime(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    if lookup(context, args)?.is_some()
        && let Some(key) = args.get(2)
    {
        let idle_s = context.txn.idle_s(key);
        context.out.integer(i64::try_from(idle_s).unwrap_or(i64::MAX));
    }
    Ok(Flow::Done)
}

fn freq(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    if lookup(context, args)?.is_some() {
        return Err(Fault::fixed(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please \
             note that when switching between policies at runtime LRU and LFU data will take some \
             time to adjust.",
        ));
    }
    Ok(Flow::Done)
}

fn encoding(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    if let Some(entry) = lookup(context, args)?
        && let Some(key) = args.get(2)
    {
        let name = encoding_of(context, key, &entry)?;
        context.out.bulk(name.as_bytes());
    }
    Ok(Flow::Done)
}

/// The longest string that Redis keeps in one piece with its header.
const EMBEDDED_LEN_MAX: usize = 44;

fn encoding_of(context: &mut Context<'_, '_>, key: &[u8], entry: &Entry) -> Result<&'static str> {
    let config = &context.server.config;
    let (txn, limit) = (&mut *context.txn, |at| config.size(at));
    Ok(match entry.kind {
        Kind::String if args::parse_integer(&entry.body).is_some() => "int",
        Kind::String if entry.body.len() <= EMBEDDED_LEN_MAX => "embstr",
        Kind::String | Kind::LongString => "raw",
        Kind::List => "quicklist",
        Kind::Stream => "stream",
        Kind::Set => {
            let mut is_small = sets::count(entry)? <= limit(config::INTSET_ENTRIES);
            if is_small {
                sets::each_member(txn, key, |member| {
                    is_small = args::parse_integer(member).is_some();
                    Ok(while_true(is_small))
                })?;
            }
            if is_small { "intset" } else { "hashtable" }
        }
        Kind::Hash => {
            let count = HashHead::decode(&entry.body)?.count;
            let mut is_small = count <= limit(config::HASH_PACKED_ENTRIES);
            let len_max = limit(config::HASH_PACKED_VALUE);
            if is_small {
                fields::each(txn, key, count, |name, payload| {
                    let value = Payload::read(payload).value;
                    is_small = name.len().max(value.len()) as u64 <= len_max;
                    Ok(while_true(is_small))
                })?;
            }
            if is_small { "listpack" } else { "hashtable" }
        }
        Kind::SortedSet => {
            let set = SortedSet::from_entry(entry)?;
            let len_max = limit(config::SORTED_SET_PACKED_VALUE);
            let mut is_small = set.len() as u64 <= limit(config::SORTED_SET_PACKED_ENTRIES);
            if is_small {
                Walk::new(txn, key, &set).by_rank(0..set.len(), false, |member, _| {
                    is_small = member.len() as u64 <= len_max;
                    while_true(is_small)
                })?;
            }
            if is_small { "listpack" } else { "skiplist" }
        }
    })
}

fn while_true(goes_on: bool) -> ControlFlow<()> {
    if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

fn object_help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    help(
        context,
        "OBJECT",
        &[
            "ENCODING <key>",
            "    How Redis would keep a value of this kind and size.",
            "FREQ <key>",
            "    How often the key is used. Only known with an LFU policy.",
            "IDLETIME <key>",
            "    For how many seconds the key has not been used, about.",
            "REFCOUNT <key>",
            "    How often the value is referred to: once.",
        ],
    );
    Ok(Flow::Done)
}
