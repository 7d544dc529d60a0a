//! Expiry of single fields: HEXPIRE, HTTL, HPERSIST and their variants.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::hashes::Hash;
use crate::fault::{Fault, Result};
use crate::store::fields::{self, Field};

/// No field can be made to expire later than that.
const EXPIRES_AT_MS_MAX: u64 = 0x3fff_ffff_ffff;

/// What a time is counted in, and from when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) is_ms: bool,
    pub(super) is_absolute: bool,
}

impl Scale {
    /// The time in an argument, in milliseconds since 1970.
    pub(super) fn read(self, arg: &[u8], now_ms: u64, command: &str) -> Result<u64> {
        const NEGATIVE: Fault = Fault::fixed("ERR invalid expire time, must be >= 0");
        let given = u64::try_from(args::integer(arg)?).map_err(|_| NEGATIVE)?;
        let scaled = if self.is_ms { Some(given) } else { given.checked_mul(1000) };
        let since_ms = if self.is_absolute { 0 } else { now_ms };
        scaled
            .and_then(|ms| ms.checked_add(since_ms))
            .filter(|at| *at <= EXPIRES_AT_MS_MAX)
            .ok_or_else(|| Fault::new(format!("ERR invalid expire time in '{command}' command")))
    }

    /// A time as the reply shows it; the last moment of a second is still in it.
    fn show(self, at_ms: u64, now_ms: u64) -> i64 {
        let ms = if self.is_absolute { at_ms } else { at_ms.saturating_sub(now_ms) };
        (if self.is_ms { ms } else { ms.div_ceil(1000) }) as i64
    }
}

const SECONDS: Scale = Scale { is_ms: false, is_absolute: false };
const MILLISECONDS: Scale = Scale { is_ms: true, is_absolute: false };
const AT_SECOND: Scale = Scale { is_ms: false, is_absolute: true };
const AT_MILLISECOND: Scale = Scale { is_ms: true, is_absolute: true };

/// On which fields a new expiry takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    /// Those that do not expire.
    IfNone,
    /// Those that expire.
    IfSome,
    /// Those that would expire earlier.
    IfLater,
    /// Those that would expire later or not at all.
    IfEarlier,
}

impl Condition {
    fn read(arg: &[u8]) -> Option<Condition> {
        let known = [
            ("nx", Condition::IfNone),
            ("xx", Condition::IfSome),
            ("gt", Condition::IfLater),
            ("lt", Condition::IfEarlier),
        ];
        known.iter().find(|(name, _)| args::is(arg, name)).map(|(_, condition)| *condition)
    }

    fn is_met(self, was_ms: Option<u64>, at_ms: u64) -> bool {
        match self {
            Condition::Always => true,
            Condition::IfNone => was_ms.is_none(),
            Condition::IfSome => was_ms.is_some(),
            Condition::IfLater => was_ms.is_some_and(|was_ms| at_ms > was_ms),
            Condition::IfEarlier => was_ms.is_none_or(|was_ms| at_ms < was_ms),
        }
    }
}

/// The fields that `FIELDS n field …` names.
fn named<'a, 'b>(words: &'b [&'a [u8]], bad_count: &'static str) -> Result<&'b [&'a [u8]]> {
    const NO_FIELDS: Fault =
        Fault::fixed("ERR Mandatory argument FIELDS is missing or not at the right position");
    const MISMATCH: Fault =
        Fault::fixed("ERR The `numfields` parameter must match the number of arguments");
    let [keyword, count, names @ ..] = words else { return Err(NO_FIELDS) };
    if !args::is(keyword, "fields") {
        return Err(NO_FIELDS);
    }
    let count = args::parse_integer(count).filter(|count| *count > 0);
    let count = count.ok_or(Fault::fixed(bad_count))?;
    if usize::try_from(count) == Ok(names.len()) { Ok(names) } else { Err(MISMATCH) }
}

/// The same with the error of most commands.
pub(super) fn named_fields<'a, 'b>(words: &'b [&'a [u8]]) -> Result<&'b [&'a [u8]]> {
    named(words, "ERR Number of fields must be a positive integer")
}

fn expire(
    context: &mut Context<'_, '_>,
    args: &[&[u8]],
    scale: Scale,
    command: &str,
) -> Result<Flow> {
    const BAD_COUNT: &str = "ERR Parameter `numFields` should be greater than 0";
    let [_, key, time, words @ ..] = args else { return Ok(Flow::Done) };
    let hash = Hash::find(context.txn, key)?;
    let now_ms = context.txn.now_ms();
    let at_ms = scale.read(time, now_ms, command)?;
    let condition = words.first().and_then(|word| Condition::read(word));
    let words = words.get(usize::from(condition.is_some())..).unwrap_or_default();
    let names = named(words, BAD_COUNT)?;
    context.out.array(names.len());
    let Some(mut hash) = hash else {
        names.iter().for_each(|_| context.out.integer(-2));
        return Ok(Flow::Done);
    };
    let condition = condition.unwrap_or(Condition::Always);
    let mut changes = 0;
    for name in names {
        let Some(field) = fields::get(context.txn, key, name)? else {
            context.out.integer(-2);
            continue;
        };
        if !condition.is_met(field.expires_at_ms, at_ms) {
            context.out.integer(0);
            continue;
        }
        changes += 1;
        let is_gone = set_or_delete(context, &mut hash, name, &field, at_ms)?;
        context.out.integer(if is_gone { 2 } else { 1 });
    }
    if changes > 0 {
        hash.changed(context.txn, if at_ms <= now_ms { "hdel" } else { "hexpire" }, changes)?;
    }
    Ok(Flow::Done)
}

/// Makes a field expire; if its time is over, it is deleted, and the answer is true.
pub(super) fn set_or_delete(
    context: &mut Context<'_, '_>,
    hash: &mut Hash<'_>,
    name: &[u8],
    field: &Field,
    at_ms: u64,
) -> Result<bool> {
    let is_gone = at_ms <= context.txn.now_ms();
    if is_gone {
        fields::delete(context.txn, hash.key, &mut hash.head, name)?;
    } else {
        fields::set_expiry(context.txn, hash.key, &mut hash.head, name, field, Some(at_ms))?;
    }
    Ok(is_gone)
}

fn ttl(context: &mut Context<'_, '_>, args: &[&[u8]], scale: Scale) -> Result<Flow> {
    let [_, key, words @ ..] = args else { return Ok(Flow::Done) };
    let hash = Hash::find(context.txn, key)?;
    let names = named_fields(words)?;
    let now_ms = context.txn.now_ms();
    context.out.array(names.len());
    for name in names {
        let field = match hash {
            Some(_) => fields::get(context.txn, key, name)?,
            None => None,
        };
        context.out.integer(match field {
            None => -2,
            Some(field) => field.expires_at_ms.map_or(-1, |at_ms| scale.show(at_ms, now_ms)),
        });
    }
    Ok(Flow::Done)
}

pub(super) fn hpersist(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, words @ ..] = args else { return Ok(Flow::Done) };
    let hash = Hash::find(context.txn, key)?;
    let names = named_fields(words)?;
    context.out.array(names.len());
    let Some(mut hash) = hash else {
        names.iter().for_each(|_| context.out.integer(-2));
        return Ok(Flow::Done);
    };
    let mut changes = 0;
    for name in names {
        let done = match fields::get(context.txn, key, name)? {
            None => -2,
            Some(Field { expires_at_ms: None, .. }) => -1,
            Some(field) => {
                fields::set_expiry(context.txn, key, &mut hash.head, name, &field, None)?;
                changes += 1;
                1
            }
        };
        context.out.integer(done);
    }
    if changes > 0 {
        hash.changed(context.txn, "hpersist", changes)?;
    }
    Ok(Flow::Done)
}

pub(super) fn hexpire(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    expire(context, args, SECONDS, "hexpire")
}

pub(super) fn hpexpire(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    expire(context, args, MILLISECONDS, "hpexpire")
}

pub(super) fn hexpireat(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    expire(context, args, AT_SECOND, "hexpireat")
}

pub(super) fn hpexpireat(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    expire(context, args, AT_MILLISECOND, "hpexpireat")
}

pub(super) fn httl(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    ttl(context, args, SECONDS)
}

pub(super) fn hpttl(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    ttl(context, args, MILLISECONDS)
}

pub(super) fn hexpiretime(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    ttl(context, args, AT_SECOND)
}

pub(super) fn hpexpiretime(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    ttl(context, args, AT_MILLISECOND)
}
