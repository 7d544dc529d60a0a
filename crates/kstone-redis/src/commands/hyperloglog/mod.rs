//! HyperLogLog: how many different elements were added, in 12 KiB at most, with an error of less
//! than one percent. The counters are strings, laid out as Redis lays them out ([`sketch`]), so
//! that they can be read, copied and dumped as such.

mod sketch;

use crate::args;
use crate::command_spec::{Command, CommandName, Context, Flow, Keys, RunOnKeys, flag::*};
use crate::fault::{Fault, Result};
use crate::server::config::table::{ParameterIndex, index_of};
use crate::store::Entry;
use sketch::{Registers, Run as SketchRun, Sketch};

pub(super) const COMMANDS: &[Command] = &[
    command("pfadd", -2, WRITE | DENYOOM | FAST, Keys::FIRST, pfadd),
    command("pfcount", -2, READONLY | MAY_REPLICATE, Keys::ALL, pfcount),
    command("pfdebug", 3, WRITE | DENYOOM | ADMIN, Keys::SECOND, pfdebug),
    command("pfmerge", -2, WRITE | DENYOOM, Keys::ALL, pfmerge),
    command("pfselftest", 1, ADMIN | UNLOCKED, Keys::None, pfselftest),
];

/// A counter that would be longer becomes dense.
const SPARSE_LEN_MAX: ParameterIndex = index_of("hll-sparse-max-bytes");

const fn command(name: CommandName, arity: i32, flags: u32, keys: Keys, run: RunOnKeys) -> Command {
    Command::on_keys(name, arity, flags, keys, "hyperloglog", run)
}

fn sparse_len_max(context: &Context<'_, '_>) -> usize {
    context.server.config.size(SPARSE_LEN_MAX) as usize
}

/// The counter of a key, if there is one.
fn read(context: &mut Context<'_, '_>, key: &[u8]) -> Result<Option<(Entry, Sketch)>> {
    let Some(value) = context.txn.string(key)? else { return Ok(None) };
    let sketch = Sketch::from_bytes(context.txn.string_bytes(key, &value)?.into())?;
    Ok(Some((value.entry, sketch)))
}

/// Writes a counter over what was found there.
fn write(
    context: &mut Context<'_, '_>,
    key: &[u8],
    old: Option<&Entry>,
    sketch: &Sketch,
) -> Result<()> {
    let expires_at_ms = old.and_then(|old| old.expires_at_ms);
    context.txn.set_string(key, old, sketch.as_bytes(), expires_at_ms)?;
    context.txn.touch(key);
    Ok(())
}

fn pfadd(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, key, elements @ ..] = args else { return Err(Fault::SYNTAX) };
    let (old, mut sketch) = match read(context, key)? {
        Some((old, sketch)) => (Some(old), sketch),
        None => (None, Sketch::new()),
    };
    let sparse_len_max = sparse_len_max(context);
    let mut changes = u64::from(old.is_none());
    for element in elements {
        changes += u64::from(sketch.add(element, sparse_len_max)?);
    }
    if changes > 0 {
        sketch.forget_count();
        write(context, key, old.as_ref(), &sketch)?;
        context.txn.notify_counted('$', "pfadd", key, changes);
    }
    context.out.reply_integer(i64::from(changes > 0))
}

fn pfcount(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let count = match args {
        [_, key] => count_one(context, key)?,
        _ => merged(context, args.get(1..).unwrap_or_default())?.0.count(),
    };
    context.out.reply_integer(count as i64)
}

/// Counting takes a while, so the result is kept with the counter.
fn count_one(context: &mut Context<'_, '_>, key: &[u8]) -> Result<u64> {
    let Some((old, mut sketch)) = read(context, key)? else { return Ok(0) };
    if let Some(count) = sketch.known_count() {
        return Ok(count);
    }
    let count = sketch.registers()?.count();
    sketch.note_count(count);
    write(context, key, Some(&old), &sketch)?;
    context.txn.count_changes(1);
    Ok(count)
}

/// What the counters of these keys have in common, and whether one of them is dense.
fn merged(context: &mut Context<'_, '_>, keys: &[&[u8]]) -> Result<(Registers, bool)> {
    let mut all = Registers::new();
    let mut is_dense = false;
    for key in keys {
        if let Some((_, sketch)) = read(context, key)? {
            is_dense |= sketch.is_dense();
            all.merge(&sketch.registers()?);
        }
    }
    Ok((all, is_dense))
}

fn pfmerge(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, target, ..] = args else { return Err(Fault::SYNTAX) };
    let (all, is_dense) = merged(context, args.get(1..).unwrap_or_default())?;
    let (old, mut sketch) = match read(context, target)? {
        Some((old, sketch)) => (Some(old), sketch),
        None => (None, Sketch::new()),
    };
    if is_dense {
        sketch.make_dense()?;
    }
    let sparse_len_max = sparse_len_max(context);
    for (index, value) in all.iter().filter(|(_, value)| *value > 0) {
        sketch.raise(index, value, sparse_len_max)?;
    }
    sketch.forget_count();
    write(context, target, old.as_ref(), &sketch)?;
    context.txn.notify_counted('$', "pfadd", target, 1);
    context.out.reply_ok()
}

fn pfdebug(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, what, key] = args else { return Err(Fault::SYNTAX) };
    let Some((old, mut sketch)) = read(context, key)? else {
        return Err(Fault::fixed("ERR The specified key does not exist"));
    };
    let was_dense = sketch.is_dense();
    let converts = args::is(what, "getreg") || args::is(what, "todense");
    if converts && !was_dense {
        sketch.make_dense()?;
        write(context, key, Some(&old), &sketch)?;
        context.txn.count_changes(1);
    }
    if args::is(what, "getreg") {
        let registers = sketch.registers()?;
        context.out.array(registers.iter().count());
        for (_, value) in registers.iter() {
            context.out.integer(value.into());
        }
    } else if args::is(what, "todense") {
        context.out.integer(i64::from(!was_dense));
    } else if args::is(what, "encoding") {
        context.out.simple(if was_dense { "dense" } else { "sparse" });
    } else if args::is(what, "decode") {
        if was_dense {
            return Err(Fault::fixed("ERR HLL encoding is not sparse"));
        }
        let runs = sketch.runs().map(|run| match run {
            SketchRun::Zeros { len, is_long: false } => format!("z:{len}"),
            SketchRun::Zeros { len, is_long: true } => format!("Z:{len}"),
            SketchRun::Values { value, len } => format!("v:{value},{len}"),
        });
        let text = runs.collect::<Vec<_>>().join(" ");
        context.out.bulk(text.as_bytes());
    } else {
        let what = args::shown(what);
        return Err(Fault::new(format!("ERR Unknown PFDEBUG subcommand '{what}'")));
    }
    Ok(Flow::Done)
}

/// Checks that both layouts agree and that the error is what it should be.
fn pfselftest(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    /// Enough for both layouts; more would hold up others.
    const ELEMENTS: u64 = 100_000;
    const ERROR: f64 = 1.04 / 128.0;

    let (mut sketch, mut dense) = (Sketch::new(), Sketch::new());
    dense.make_dense()?;
    let sparse_len_max = sparse_len_max(context);
    let mut checkpoint = 1;
    for element in 1..=ELEMENTS {
        let bytes = element.to_le_bytes();
        sketch.add(&bytes, sparse_len_max)?;
        dense.add(&bytes, sparse_len_max)?;
        if element != checkpoint {
            continue;
        }
        let count = sketch.registers()?.count();
        if count != dense.registers()?.count() {
            return Err(Fault::fixed("ERR TESTFAILED dense/sparse disagree"));
        }
        let off = count.abs_diff(element);
        if off as f64 > (ERROR * 6.0 * element as f64).ceil() {
            return Err(Fault::new(format!(
                "ERR TESTFAILED Too big error. card:{element} abserr:{off}"
            )));
        }
        checkpoint *= 10;
    }
    context.out.reply_ok()
}
