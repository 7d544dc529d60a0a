//! Fields read or written together with their expiry: HGETEX, HSETEX, HGETDEL.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::hashes::expiry::{Scale, named_fields, set_or_delete};
use crate::commands::hashes::{Hash, check_len, pairs};
use crate::fault::{Fault, Result};
use crate::store::fields;

/// What happens to the expiry of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expiry {
    /// HGETEX leaves it, HSETEX takes it away.
    Unsaid,
    At(u64),
    Persist,
    Keep,
}

/// Which fields have to be there for HSETEX to do anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldCondition {
    Always,
    AllNew,
    AllThere,
}

#[derive(Debug)]
struct Options<'a, 'b> {
    expiry: Expiry,
    condition: FieldCondition,
    /// What follows the number of fields.
    words: &'b [&'a [u8]],
}

impl<'a, 'b> Options<'a, 'b> {
    /// Reads the options, which may come before and behind the fields; each field has so many
    /// words.
    fn read(
        args: &'b [&'a [u8]],
        words_of_field: usize,
        now_ms: u64,
        command: &str,
    ) -> Result<Options<'a, 'b>> {
        const NO_FIELDS: Fault = Fault::fixed("ERR missing FIELDS argument");
        const TWICE: Fault = Fault::fixed("ERR FIELDS keyword specified multiple times");
        const BAD_COUNT: Fault = Fault::fixed("ERR invalid number of fields");
        const TOO_FEW: Fault = Fault::fixed("ERR wrong number of arguments");
        const BOTH: Fault = Fault::fixed("ERR Only one of FXX or FNX arguments can be specified");
        let is_set = words_of_field == 2;
        let other = if is_set { "KEEPTTL" } else { "PERSIST" };
        let several = || {
            Fault::new(format!(
                "ERR Only one of EX, PX, EXAT, PXAT or {other} arguments can be specified"
            ))
        };
        let mut options =
            Options { expiry: Expiry::Unsaid, condition: FieldCondition::Always, words: &[] };
        let mut rest = args;
        while let [word, behind @ ..] = rest {
            rest = behind;
            let scale = match word.to_ascii_lowercase().as_slice() {
                b"ex" => Scale { is_ms: false, is_absolute: false },
                b"px" => Scale { is_ms: true, is_absolute: false },
                b"exat" => Scale { is_ms: false, is_absolute: true },
                b"pxat" => Scale { is_ms: true, is_absolute: true },
                b"fields" => {
                    let [count, behind @ ..] = behind else { return Err(BAD_COUNT) };
                    if !options.words.is_empty() {
                        return Err(TWICE);
                    }
                    let count = args::parse_integer(count).and_then(|n| usize::try_from(n).ok());
                    let count = count.filter(|count| *count > 0).ok_or(BAD_COUNT)?;
                    let len = count.checked_mul(words_of_field);
                    let split = len.and_then(|len| behind.split_at_checked(len));
                    (options.words, rest) = split.ok_or(TOO_FEW)?;
                    continue;
                }
                b"fnx" | b"fxx" if is_set => {
                    if options.condition != FieldCondition::Always {
                        return Err(BOTH);
                    }
                    options.condition = if args::is(word, "fnx") {
                        FieldCondition::AllNew
                    } else {
                        FieldCondition::AllThere
                    };
                    continue;
                }
                _ if args::is(word, other) => {
                    if options.expiry != Expiry::Unsaid {
                        return Err(several());
                    }
                    options.expiry = if is_set { Expiry::Keep } else { Expiry::Persist };
                    continue;
                }
                _ => {
                    return Err(Fault::new(format!("ERR unknown argument: {}", args::shown(word))));
                }
            };
            let [time, behind @ ..] = behind else { return Err(TOO_FEW) };
            if options.expiry != Expiry::Unsaid {
                return Err(several());
            }
            options.expiry = Expiry::At(scale.read(time, now_ms, command)?);
            rest = behind;
        }
        if options.words.is_empty() { Err(NO_FIELDS) } else { Ok(options) }
    }
}

pub(super) fn hgetex(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, rest @ ..] = args else { return Ok(Flow::Done) };
    let now_ms = context.txn.now_ms();
    let hash = Hash::find(context.txn, key)?;
    let options = Options::read(rest, 1, now_ms, "hgetex")?;
    context.out.array(options.words.len());
    let Some(mut hash) = hash else {
        options.words.iter().for_each(|_| context.out.null());
        return Ok(Flow::Done);
    };
    let mut changes = 0;
    for name in options.words {
        let field = fields::get(context.txn, key, name)?;
        context.out.bulk_or_null(field.as_ref().map(|field| field.value.as_ref()));
        let Some(field) = field else { continue };
        match options.expiry {
            Expiry::At(at_ms) => {
                set_or_delete(context, &mut hash, name, &field, at_ms)?;
                changes += 1;
            }
            Expiry::Persist if field.expires_at_ms.is_some() => {
                fields::set_expiry(context.txn, key, &mut hash.head, name, &field, None)?;
                changes += 1;
            }
            Expiry::Unsaid | Expiry::Persist | Expiry::Keep => {}
        }
    }
    if changes > 0 {
        let event = match options.expiry {
            Expiry::At(at_ms) if at_ms <= now_ms => "hdel",
            Expiry::At(_) => "hexpire",
            Expiry::Unsaid | Expiry::Persist | Expiry::Keep => "hpersist",
        };
        hash.changed(context.txn, event, changes)?;
    }
    Ok(Flow::Done)
}

pub(super) fn hsetex(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, rest @ ..] = args else { return Ok(Flow::Done) };
    let now_ms = context.txn.now_ms();
    let options = Options::read(rest, 2, now_ms, "hsetex")?;
    check_len(pairs(options.words))?;
    let mut hash = Hash::find_or_new(context.txn, key)?;
    for (name, _) in pairs(options.words).filter(|_| options.condition != FieldCondition::Always) {
        let is_there = hash.head.count > 0 && fields::get(context.txn, key, name)?.is_some();
        if is_there != (options.condition == FieldCondition::AllThere) {
            return context.out.reply_integer(0);
        }
    }
    let expires_at_ms = match options.expiry {
        Expiry::At(at_ms) => Some(at_ms),
        Expiry::Unsaid | Expiry::Persist | Expiry::Keep => None,
    };
    let is_over = expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
    let mut changes = 0;
    for (name, value) in pairs(options.words) {
        if is_over {
            let old = fields::delete(context.txn, key, &mut hash.head, name)?;
            changes += u64::from(old.is_some());
            continue;
        }
        let mut at_ms = expires_at_ms;
        if options.expiry == Expiry::Keep && hash.head.next_expiry_ms.is_some() {
            at_ms = fields::get(context.txn, key, name)?.and_then(|field| field.expires_at_ms);
        }
        fields::set(context.txn, key, &mut hash.head, name, value, at_ms)?;
        changes += 1;
    }
    if is_over && changes > 0 {
        hash.changed(context.txn, "hdel", changes)?;
    } else if changes > 0 {
        hash.changed(context.txn, "hset", changes)?;
        if expires_at_ms.is_some() {
            context.txn.notify('h', "hexpire", key);
        }
    }
    context.out.reply_integer(1)
}

pub(super) fn hgetdel(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, words @ ..] = args else { return Ok(Flow::Done) };
    let hash = Hash::find(context.txn, key)?;
    let names = named_fields(words)?;
    context.out.array(names.len());
    let Some(mut hash) = hash else {
        names.iter().for_each(|_| context.out.null());
        return Ok(Flow::Done);
    };
    let mut changes = 0;
    for name in names {
        let old = fields::delete(context.txn, key, &mut hash.head, name)?;
        changes += u64::from(old.is_some());
        context.out.bulk_or_null(old.as_ref().map(|old| old.value.as_ref()));
    }
    if changes > 0 {
        hash.changed(context.txn, "hdel", changes)?;
    }
    Ok(Flow::Done)
}
