//! DUMP, RESTORE and MIGRATE: a key as bytes that another server can restore.

mod from_redis;
mod migrate;
mod payload;
mod to_redis;

use crate::args;
use crate::command_spec::{Command, Context, Flow, Keys, flag::*};
use crate::fault::{Fault, Result};
use payload::{Dump, Payload};

pub(super) const COMMANDS: &[Command] = &[
    Command::on_keys("dump", 2, READONLY, Keys::FIRST, "keyspace", dump),
    restore_command("restore"),
    restore_command("restore-asking"),
    migrate::MIGRATE,
];

const fn restore_command(name: &'static str) -> Command {
    Command::on_keys(name, -4, WRITE | DENYOOM, Keys::FIRST, "keyspace dangerous", restore)
}

fn dump(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key] = args else { return Err(Fault::SYNTAX) };
    match context.txn.lookup(key)? {
        None => context.out.null(),
        Some(entry) => {
            let payload = payload::write(context.txn, key, &entry)?;
            context.out.bulk(&payload);
        }
    }
    Ok(Flow::Done)
}

/// What RESTORE was told beside key, time and payload.
#[derive(Debug, Default)]
struct Options {
    replace: bool,
    /// The time is a moment, not a duration.
    absolute: bool,
    idle_s: Option<u64>,
    frequency: Option<u8>,
}

impl Options {
    fn parse(given: &[&[u8]]) -> Result<Options> {
        let mut options = Options::default();
        let mut given = given.iter();
        while let Some(option) = given.next() {
            if args::is(option, "replace") {
                options.replace = true;
            } else if args::is(option, "absttl") {
                options.absolute = true;
            } else if args::is(option, "idletime") && options.frequency.is_none() {
                let idle_s = args::integer(given.next().ok_or(Fault::SYNTAX)?)?;
                options.idle_s = Some(
                    u64::try_from(idle_s)
                        .map_err(|_| Fault::fixed("ERR Invalid IDLETIME value, must be >= 0"))?,
                );
            } else if args::is(option, "freq") && options.idle_s.is_none() {
                let frequency = args::integer(given.next().ok_or(Fault::SYNTAX)?)?;
                options.frequency = Some(u8::try_from(frequency).map_err(|_| {
                    Fault::fixed("ERR Invalid FREQ value, must be >= 0 and <= 255")
                })?);
            } else {
                return Err(Fault::SYNTAX);
            }
        }
        Ok(options)
    }
}

fn restore(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, time, payload, options @ ..] = args else { return Err(Fault::SYNTAX) };
    let options = Options::parse(options)?;
    let old = context.txn.lookup(key)?;
    if old.is_some() && !options.replace {
        return Err(Fault::fixed("BUSYKEY Target key name already exists."));
    }
    let time_ms = u64::try_from(args::integer(time)?)
        .map_err(|_| Fault::fixed("ERR Invalid TTL value, must be >= 0"))?;
    let payload = Payload::read(payload)?;
    if let Payload::Redis(value) = &payload {
        from_redis::check(value)?;
    }
    let expires_at_ms = match time_ms {
        0 => None,
        at_ms if options.absolute => Some(at_ms),
        in_ms => Some(context.txn.now_ms().saturating_add(in_ms)),
    };
    if let Some(old) = &old {
        context.txn.remove(key, old);
    }
    if expires_at_ms.is_some_and(|at_ms| at_ms <= context.txn.now_ms()) {
        // It would be gone at once; what it replaces goes all the same.
        if old.is_some() {
            context.txn.notify_counted('g', "del", key, 1);
        }
        return context.out.reply_ok();
    }
    match payload {
        Payload::Own(dump) => put(context, key, &dump, expires_at_ms)?,
        Payload::Redis(value) => from_redis::put(context.txn, key, value, expires_at_ms)?,
        Payload::Stream(stream) => stream.put(context.txn, key, expires_at_ms)?,
    }
    if let Some(idle_s) = options.idle_s {
        context.txn.set_idle_s(key, idle_s);
    }
    context.txn.signal(key);
    context.txn.changed('g', "restore", key, 1);
    context.out.reply_ok()
}

fn put(
    context: &mut Context<'_, '_>,
    key: &[u8],
    dump: &Dump<'_>,
    expires_at_ms: Option<u64>,
) -> Result<()> {
    context.txn.put_made_head(key, dump.kind, dump.body, expires_at_ms)?;
    for (sk, value) in dump.parts() {
        context.txn.put_copied_part(key, sk, value.to_vec());
    }
    Ok(())
}
