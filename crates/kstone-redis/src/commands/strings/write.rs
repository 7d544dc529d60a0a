//! Writing whole strings, and their expiry with them.

use kstone::policy::RequestedTtl;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::strings::read::write_reply;
use crate::fault::{Fault, Result};
use crate::store::Entry;
use crate::store::strings::StringValue;

pub(super) fn set(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, value, options @ ..] = args else { return Err(Fault::SYNTAX) };
    let options = Options::parse(options, OptionsOf::Set)?;
    let expires_at_ms = options.expiry.expires_at_ms(context, "set")?;
    let old = context.txn.lookup(key)?;
    if options.get {
        let old = old.clone().map(|old| StringValue::from_entry(old)?.ok_or(Fault::WRONG_TYPE));
        write_reply(context, key, old.transpose()?.as_ref())?;
    }
    let is_wanted = match options.write_if {
        WriteIf::Always => true,
        WriteIf::New => old.is_none(),
        WriteIf::Existing => old.is_some(),
    };
    if is_wanted {
        let kept = old.as_ref().and_then(|old| old.expires_at_ms);
        let expires_at_ms = if options.keeps_expiry { kept } else { expires_at_ms };
        store(context, key, old.as_ref(), value, expires_at_ms)?;
        if options.keeps_expiry {
            context.txn.note_life(RequestedTtl::Keep);
        }
        if options.expiry != Expiry::None {
            context.txn.notify('g', "expire", key);
        }
    }
    match is_wanted {
        _ if options.get => {}
        true => context.out.ok(),
        false => context.out.null(),
    }
    Ok(Flow::Done)
}

pub(super) fn setnx(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, value] = args else { return Err(Fault::SYNTAX) };
    let is_new = context.txn.lookup(key)?.is_none();
    if is_new {
        store(context, key, None, value, None)?;
    }
    context.out.reply_integer(i64::from(is_new))
}

pub(super) fn setex(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, time, value] = args else { return Err(Fault::SYNTAX) };
    set_expiring(context, "setex", key, Expiry::Given(Unit::Seconds, time), value)
}

pub(super) fn psetex(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, time, value] = args else { return Err(Fault::SYNTAX) };
    set_expiring(context, "psetex", key, Expiry::Given(Unit::Millis, time), value)
}

fn set_expiring(
    context: &mut Context<'_, '_>,
    name: &str,
    key: &[u8],
    expiry: Expiry<'_>,
    value: &[u8],
) -> Result<Flow> {
    let expires_at_ms = expiry.expires_at_ms(context, name)?;
    let old = context.txn.lookup(key)?;
    store(context, key, old.as_ref(), value, expires_at_ms)?;
    context.txn.notify('g', "expire", key);
    context.out.reply_ok()
}

pub(super) fn getset(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, value] = args else { return Err(Fault::SYNTAX) };
    let old = context.txn.string(key)?;
    write_reply(context, key, old.as_ref())?;
    store(context, key, old.as_ref().map(|old| &old.entry), value, None)?;
    Ok(Flow::Done)
}

pub(super) fn getdel(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key] = args else { return Err(Fault::SYNTAX) };
    let old = context.txn.string(key)?;
    write_reply(context, key, old.as_ref())?;
    if let Some(old) = old {
        context.txn.remove(key, &old.entry);
        context.txn.notify_counted('g', "del", key, 1);
    }
    Ok(Flow::Done)
}

pub(super) fn getex(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, options @ ..] = args else { return Err(Fault::SYNTAX) };
    let options = Options::parse(options, OptionsOf::GetEx)?;
    let Some(value) = context.txn.string(key)? else {
        return context.out.reply_null();
    };
    let expires_at_ms = options.expiry.expires_at_ms(context, "getex")?;
    write_reply(context, key, Some(&value))?;
    let entry = &value.entry;
    let txn = &mut *context.txn;
    match expires_at_ms {
        Some(at_ms) if options.expiry.is_absolute() && at_ms <= txn.now_ms() => {
            txn.remove(key, entry);
            txn.notify('g', "del", key);
        }
        Some(at_ms) => {
            txn.put_head(key, entry.kind, &entry.body, expires_at_ms)?;
            txn.note_end(at_ms);
            txn.notify('g', "expire", key);
        }
        None if options.persists && entry.expires_at_ms.is_some() => {
            txn.put_head(key, entry.kind, &entry.body, None)?;
            txn.note_life(RequestedTtl::Never);
            txn.notify('g', "persist", key);
        }
        None => return Ok(Flow::Done),
    }
    txn.touch(key);
    txn.count_changes(1);
    Ok(Flow::Done)
}

pub(super) fn mset(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    set_many(context, pairs(args, "mset")?)?;
    context.out.reply_ok()
}

pub(super) fn msetnx(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let pairs = pairs(args, "msetnx")?;
    for [key, _] in pairs {
        if context.txn.lookup(key)?.is_some() {
            return context.out.reply_integer(0);
        }
    }
    set_many(context, pairs)?;
    context.out.reply_integer(1)
}

fn pairs<'p, 'a>(args: &'p [&'a [u8]], name: &str) -> Result<&'p [[&'a [u8]; 2]]> {
    match args.get(1..).unwrap_or_default().as_chunks() {
        (pairs, []) => Ok(pairs),
        _ => Err(Fault::new(format!("ERR wrong number of arguments for '{name}' command"))),
    }
}

fn set_many(context: &mut Context<'_, '_>, pairs: &[[&[u8]; 2]]) -> Result<()> {
    for [key, value] in pairs {
        let old = context.txn.lookup(key)?;
        store(context, key, old.as_ref(), value, None)?;
    }
    Ok(())
}

/// Makes a key this string, and tells.
fn store(
    context: &mut Context<'_, '_>,
    key: &[u8],
    old: Option<&Entry>,
    value: &[u8],
    expires_at_ms: Option<u64>,
) -> Result<()> {
    context.txn.set_string(key, old, value, expires_at_ms)?;
    context.txn.note_whole();
    context.txn.changed('$', "set", key, 1);
    Ok(())
}

/// When a key is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteIf {
    Always,
    New,
    Existing,
}

/// How an expiry is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    Millis,
    AtSeconds,
    AtMillis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expiry<'a> {
    None,
    Given(Unit, &'a [u8]),
}

impl Expiry<'_> {
    /// When it is, in milliseconds since 1970.
    fn expires_at_ms(&self, context: &Context<'_, '_>, name: &str) -> Result<Option<u64>> {
        let Expiry::Given(unit, number) = *self else { return Ok(None) };
        let number = args::integer(number)?;
        let millis = match unit {
            Unit::Seconds | Unit::AtSeconds => number.checked_mul(1000),
            Unit::Millis | Unit::AtMillis => Some(number),
        };
        let now_ms = context.txn.now_ms() as i64;
        let at_ms = match unit {
            _ if number <= 0 => None,
            Unit::Seconds | Unit::Millis => millis.and_then(|millis| millis.checked_add(now_ms)),
            Unit::AtSeconds | Unit::AtMillis => millis,
        };
        match at_ms {
            Some(at_ms) => Ok(Some(at_ms.unsigned_abs())),
            None => Err(Fault::new(format!("ERR invalid expire time in '{name}' command"))),
        }
    }

    fn is_absolute(&self) -> bool {
        matches!(self, Expiry::Given(Unit::AtSeconds | Unit::AtMillis, _))
    }
}

/// Whose options are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionsOf {
    Set,
    GetEx,
}

/// What may come after the value of SET and the key of GETEX.
#[derive(Debug)]
struct Options<'a> {
    write_if: WriteIf,
    get: bool,
    keeps_expiry: bool,
    persists: bool,
    expiry: Expiry<'a>,
}

impl<'a> Options<'a> {
    fn parse(options: &[&'a [u8]], whose: OptionsOf) -> Result<Options<'a>> {
        let mut parsed = Options {
            write_if: WriteIf::Always,
            get: false,
            keeps_expiry: false,
            persists: false,
            expiry: Expiry::None,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let is = |name| args::is(option, name);
            let write_if = match whose {
                OptionsOf::Set if is("nx") => Some(WriteIf::New),
                OptionsOf::Set if is("xx") => Some(WriteIf::Existing),
                _ => None,
            };
            if let Some(write_if) = write_if {
                if parsed.write_if != WriteIf::Always && parsed.write_if != write_if {
                    return Err(Fault::SYNTAX);
                }
                parsed.write_if = write_if;
            } else if whose == OptionsOf::Set && is("get") {
                parsed.get = true;
            } else if whose == OptionsOf::Set && is("keepttl") && parsed.expiry == Expiry::None {
                parsed.keeps_expiry = true;
            } else if whose == OptionsOf::GetEx && is("persist") && parsed.expiry == Expiry::None {
                parsed.persists = true;
            } else {
                let unit = Unit::parse(option).ok_or(Fault::SYNTAX)?;
                let number = options.next().ok_or(Fault::SYNTAX)?;
                let is_other = matches!(parsed.expiry, Expiry::Given(other, _) if other != unit);
                if parsed.keeps_expiry || parsed.persists || is_other {
                    return Err(Fault::SYNTAX);
                }
                parsed.expiry = Expiry::Given(unit, number);
            }
        }
        Ok(parsed)
    }
}

impl Unit {
    fn parse(option: &[u8]) -> Option<Unit> {
        let units = [
            ("ex", Unit::Seconds),
            ("px", Unit::Millis),
            ("exat", Unit::AtSeconds),
            ("pxat", Unit::AtMillis),
        ];
        units.into_iter().find(|(name, _)| args::is(option, name)).map(|(_, unit)| unit)
    }
}
