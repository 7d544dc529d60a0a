//! Expiry of keys: EXPIRE, TTL, PERSIST and their variants.

use kstone::policy::RequestedTtl;

use crate::args;
use crate::command_spec::{Command, CommandName, Context, Flow, Keys, RunOnKeys, flag::*};
use crate::fault::{Fault, Result};

pub(super) const COMMANDS: &[Command] = &[
    change("expire", -3, |context, args| expire(context, args, Unit::Seconds, From::Now)),
    change("pexpire", -3, |context, args| expire(context, args, Unit::Millis, From::Now)),
    change("expireat", -3, |context, args| expire(context, args, Unit::Seconds, From::Epoch)),
    change("pexpireat", -3, |context, args| expire(context, args, Unit::Millis, From::Epoch)),
    change("persist", 2, persist),
    question("ttl", |context, args| ttl(context, args, Unit::Seconds, From::Now)),
    question("pttl", |context, args| ttl(context, args, Unit::Millis, From::Now)),
    question("expiretime", |context, args| ttl(context, args, Unit::Seconds, From::Epoch)),
    question("pexpiretime", |context, args| ttl(context, args, Unit::Millis, From::Epoch)),
];

const fn change(name: CommandName, arity: i32, run: RunOnKeys) -> Command {
    Command::on_keys(name, arity, WRITE | FAST, Keys::FIRST, "keyspace", run)
}

const fn question(name: CommandName, run: RunOnKeys) -> Command {
    Command::on_keys(name, 2, READONLY | FAST, Keys::FIRST, "keyspace", run)
}

/// What a client counts time in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    Millis,
}

/// Where a client counts time from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Now,
    Epoch,
}

/// When an expiry may be changed.
#[derive(Debug, Clone, Copy, Default)]
struct Conditions {
    /// Only if there is none.
    nx: bool,
    /// Only if there is one.
    xx: bool,
    /// Only if the key stays longer. Without an expiry it stays for ever.
    gt: bool,
    /// Only if the key goes earlier.
    lt: bool,
}

impl Conditions {
    fn parse(options: &[&[u8]]) -> Result<Conditions> {
        let mut given = Conditions::default();
        for option in options {
            match () {
                () if args::is(option, "nx") => given.nx = true,
                () if args::is(option, "xx") => given.xx = true,
                () if args::is(option, "gt") => given.gt = true,
                () if args::is(option, "lt") => given.lt = true,
                () => {
                    let option = args::shown(option);
                    return Err(Fault::new(format!("ERR Unsupported option {option}")));
                }
            }
        }
        if given.nx && (given.xx || given.gt || given.lt) {
            return Err(Fault::fixed(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if given.gt && given.lt {
            return Err(Fault::fixed("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(given)
    }

    fn allow(self, at_ms: i64, now_at_ms: Option<u64>) -> bool {
        let now_at_ms = now_at_ms.map(|at_ms| i64::try_from(at_ms).unwrap_or(i64::MAX));
        match now_at_ms {
            None => !self.xx && !self.gt,
            Some(have) if self.gt => at_ms > have,
            Some(have) if self.lt => at_ms < have,
            Some(_) => !self.nx,
        }
    }
}

/// When a key is to go, in milliseconds since 1970; possibly in the past, even before 1970.
fn moment(
    context: &Context<'_, '_>,
    command: &[u8],
    time: &[u8],
    unit: Unit,
    from: From,
) -> Result<i64> {
    let time = args::integer(time)?;
    let in_ms = match unit {
        Unit::Seconds => time.checked_mul(1000),
        Unit::Millis => Some(time),
    };
    let base_ms = match from {
        From::Now => i64::try_from(context.txn.now_ms()).unwrap_or(i64::MAX),
        From::Epoch => 0,
    };
    in_ms.and_then(|in_ms| in_ms.checked_add(base_ms)).ok_or_else(|| invalid_expiry(command))
}

/// The error for a time that no clock will show.
pub(super) fn invalid_expiry(command: &[u8]) -> Fault {
    let command = args::shown(command).to_ascii_lowercase();
    Fault::new(format!("ERR invalid expire time in '{command}' command"))
}

fn expire(context: &mut Context<'_, '_>, args: &[&[u8]], unit: Unit, from: From) -> Result<Flow> {
    let [command, key, time, options @ ..] = args else { return Err(Fault::SYNTAX) };
    let conditions = Conditions::parse(options)?;
    let at_ms = moment(context, command, time, unit, from)?;
    let found = context.txn.lookup(key)?;
    let Some(entry) = found.filter(|entry| conditions.allow(at_ms, entry.expires_at_ms)) else {
        return context.out.reply_integer(0);
    };
    match u64::try_from(at_ms) {
        Ok(at_ms) if at_ms > context.txn.now_ms() => {
            context.txn.put_head(key, entry.kind, &entry.body, Some(at_ms))?;
            context.txn.note_end(at_ms);
            context.txn.touch(key);
            context.txn.notify('g', "expire", key);
        }
        _ => {
            context.txn.remove(key, &entry);
            context.txn.notify('g', "del", key);
        }
    }
    context.txn.count_changes(1);
    context.out.reply_integer(1)
}

fn persist(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key] = args else { return Err(Fault::SYNTAX) };
    let found = context.txn.lookup(key)?;
    let Some(entry) = found.filter(|entry| entry.expires_at_ms.is_some()) else {
        return context.out.reply_integer(0);
    };
    context.txn.put_head(key, entry.kind, &entry.body, None)?;
    context.txn.note_life(RequestedTtl::Never);
    context.txn.changed('g', "persist", key, 1);
    context.out.reply_integer(1)
}

fn ttl(context: &mut Context<'_, '_>, args: &[&[u8]], unit: Unit, from: From) -> Result<Flow> {
    let [_, key] = args else { return Err(Fault::SYNTAX) };
    let answer = match context.txn.lookup_quietly(key)? {
        None => -2,
        Some(entry) => match entry.expires_at_ms {
            None => -1,
            Some(at_ms) => {
                let base_ms = if from == From::Now { context.txn.now_ms() } else { 0 };
                let left_ms = i64::try_from(at_ms.saturating_sub(base_ms)).unwrap_or(i64::MAX);
                match unit {
                    Unit::Millis => left_ms,
                    Unit::Seconds => left_ms.saturating_add(500) / 1000,
                }
            }
        },
    };
    context.out.reply_integer(answer)
}
