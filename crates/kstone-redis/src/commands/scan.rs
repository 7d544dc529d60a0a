//! Going through keys and elements step by step: SCAN, HSCAN, SSCAN, ZSCAN.
//!
//! What is there from the first step to the last is shown, once; what comes or goes meanwhile may
//! be shown. A cursor is a number:
//!
//! - SCAN goes through the stripes, and through each in order of its keys. The low 8 bits are the
//!   stripe, the rest is the number of the key to go on behind ([`Cursors`]), 0 at the stripe's
//!   beginning.
//! - HSCAN and SSCAN go through the digests of their elements; the cursor is the next digest, and
//!   the server keeps nothing.
//! - ZSCAN goes through the members in order; the cursor is the number of the member to go on with.
//!
//! [`Cursors`]: crate::server::cursors::Cursors

use std::ops::ControlFlow;

use kstone_core::stripe_of;

use crate::command_spec::{Command, CommandName, Context, Flow, Keys, RunOnKeys, flag::*};
use crate::commands::sorted_sets;
use crate::fault::{Fault, Result};
use crate::float::double_text;
use crate::reply::Out;
use crate::store::fields::{self, Payload};
use crate::store::{Entry, Kind, elements};
use crate::{args, glob};

pub(super) const COMMANDS: &[Command] = &[
    command("scan", -2, Keys::None, "keyspace", scan),
    command("hscan", -3, Keys::FIRST, "hash", hscan),
    command("sscan", -3, Keys::FIRST, "set", sscan),
    command("zscan", -3, Keys::FIRST, "sortedset", zscan),
];

const fn command(
    name: CommandName,
    arity: i32,
    keys: Keys,
    categories: &'static str,
    run: RunOnKeys,
) -> Command {
    Command::on_keys(name, arity, READONLY, keys, categories, run)
}

/// Elements of a key that has no more than that are shown in one step, as by Redis.
const FEW: u64 = 128;

/// What follows the cursor.
struct Options<'a> {
    pattern: Option<&'a [u8]>,
    /// How many are looked at in a step.
    count: u64,
    /// SCAN: only keys of this type.
    kind: Option<&'a [u8]>,
    /// HSCAN: only the names.
    is_without_values: bool,
}

impl<'a> Options<'a> {
    fn read(mut words: &[&'a [u8]], of: Option<Kind>) -> Result<Options<'a>> {
        let mut options =
            Options { pattern: None, count: 10, kind: None, is_without_values: false };
        while let [word, rest @ ..] = words {
            words = match rest {
                [count, rest @ ..] if args::is(word, "count") => {
                    let count = args::integer(count)?;
                    let count = u64::try_from(count).ok().filter(|count| *count > 0);
                    options.count = count.ok_or(Fault::SYNTAX)?;
                    rest
                }
                [pattern, rest @ ..] if args::is(word, "match") => {
                    options.pattern = Some(*pattern).filter(|pattern| *pattern != b"*");
                    rest
                }
                [kind, rest @ ..] if of.is_none() && args::is(word, "type") => {
                    options.kind = Some(kind);
                    rest
                }
                rest if of == Some(Kind::Hash) && args::is(word, "novalues") => {
                    options.is_without_values = true;
                    rest
                }
                _ => return Err(Fault::SYNTAX),
            };
        }
        Ok(options)
    }

    fn matches(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, name))
    }

    fn is_of_kind(&self, kind: Kind) -> bool {
        self.kind.is_none_or(|wanted| args::is(wanted, kind.name()))
    }
}

fn read_cursor(arg: &[u8]) -> Result<u64> {
    const INVALID: Fault = Fault::fixed("ERR invalid cursor");
    // As C reads it: a minus makes a very large number.
    let (is_negative, digits) = match arg {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number);
    let number: u64 = text.and_then(|text| text.parse().ok()).ok_or(INVALID)?;
    Ok(if is_negative { number.wrapping_neg() } else { number })
}

fn write_reply(out: Out<'_>, cursor: u64, found: &[Vec<u8>]) {
    out.array(2);
    out.bulk(cursor.to_string().as_bytes());
    out.array(found.len());
    for one in found {
        out.bulk(one);
    }
}

fn scan(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, cursor, words @ ..] = args else { return Ok(Flow::Done) };
    let cursor = read_cursor(cursor)?;
    let options = Options::read(words, None)?;
    let cursors = &context.server.cursors;
    let mut stripe = cursor as u8;
    let mut after = match cursor >> 8 {
        0 => None,
        number => cursors.find(number).filter(|key| stripe_of(key) == stripe),
    };
    let (mut seen, mut found) = (0, Vec::new());
    let next = loop {
        let mut last = Vec::new();
        let flow = context.txn.scan_stripe(stripe, after.as_deref(), |key, kind| {
            seen += 1;
            if options.is_of_kind(kind) && options.matches(key) {
                found.push(key.to_vec());
            }
            if seen < options.count {
                return ControlFlow::Continue(());
            }
            last = key.to_vec();
            ControlFlow::Break(())
        })?;
        if flow.is_break() {
            break (cursors.keep(&last) << 8) | u64::from(stripe);
        }
        let Some(following) = stripe.checked_add(1) else { break 0 };
        (stripe, after) = (following, None);
        if seen >= options.count {
            break u64::from(stripe);
        }
    };
    write_reply(context.out, next, &found);
    Ok(Flow::Done)
}

fn hscan(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    scan_elements(context, args, Kind::Hash)
}

fn sscan(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    scan_elements(context, args, Kind::Set)
}

fn scan_elements(context: &mut Context<'_, '_>, args: &[&[u8]], kind: Kind) -> Result<Flow> {
    let [_, key, cursor, words @ ..] = args else { return Ok(Flow::Done) };
    let cursor = read_cursor(cursor)?;
    let Some(entry) = context.txn.lookup_kind(key, kind)? else {
        write_reply(context.out, 0, &[]);
        return Ok(Flow::Done);
    };
    let options = Options::read(words, Some(kind))?;
    let count = count_of(&entry);
    let mut found = Vec::new();
    let mut see = |name: &[u8], payload: &[u8]| {
        if options.matches(name) {
            found.push(name.to_vec());
            if kind == Kind::Hash && !options.is_without_values {
                found.push(Payload::read(payload).value.to_vec());
            }
        }
    };
    let (mut seen, mut last, mut next) = (0, None, 0);
    match u32::try_from(cursor) {
        Ok(0) if count <= FEW && kind == Kind::Hash => {
            fields::each(context.txn, key, count, |name, payload| {
                see(name, payload);
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(from) => {
            let most = if from == 0 && count <= FEW { u64::MAX } else { options.count };
            elements::each_from(context.txn, key, from, |sk, value| {
                let digest = elements::digest(sk);
                // Elements with one digest come in one step.
                if seen >= most && last != Some(digest) {
                    next = u64::from(digest);
                    return Ok(ControlFlow::Break(()));
                }
                seen += 1;
                last = Some(digest);
                let (name, payload) = elements::split(sk, value);
                see(name, payload);
                Ok(ControlFlow::Continue(()))
            })?;
        }
        // Behind the last digest.
        Err(_) => {}
    }
    write_reply(context.out, next, &found);
    Ok(Flow::Done)
}

/// How many elements a key has: every head begins with that.
fn count_of(entry: &Entry) -> u64 {
    entry.body.first_chunk().map_or(0, |count| u64::from_le_bytes(*count))
}

fn zscan(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, cursor, words @ ..] = args else { return Ok(Flow::Done) };
    let cursor = read_cursor(cursor)?;
    let Some(entry) = context.txn.lookup_kind(key, Kind::SortedSet)? else {
        write_reply(context.out, 0, &[]);
        return Ok(Flow::Done);
    };
    let options = Options::read(words, Some(Kind::SortedSet))?;
    let cursors = &context.server.cursors;
    let most = if cursor == 0 && count_of(&entry) <= FEW { u64::MAX } else { options.count };
    let from = cursors.find(cursor).unwrap_or_default();
    let (mut seen, mut next, mut found) = (0, 0, Vec::new());
    sorted_sets::each_member(context.txn, key, &from, |member, score| {
        if seen >= most {
            next = cursors.keep(member);
            return Ok(ControlFlow::Break(()));
        }
        seen += 1;
        if options.matches(member) {
            found.push(member.to_vec());
            found.push(double_text(score).into_bytes());
        }
        Ok(ControlFlow::Continue(()))
    })?;
    write_reply(context.out, next, &found);
    Ok(Flow::Done)
}
