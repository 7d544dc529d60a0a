//! SRANDMEMBER and SPOP.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::sets::{Set, write_members};
use crate::fault::{Fault, Result};
use crate::store::elements;

/// More members than that, with repetition, are no reply but an attack.
const DRAWN_MAX: u64 = 1 << 24;

pub(super) fn spop(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let (key, wanted) = match args {
        [_, key] => (*key, None),
        [_, key, wanted] => {
            let wanted = args::integer(wanted).map_err(|_| Fault::MUST_BE_POSITIVE)?;
            (*key, Some(u64::try_from(wanted).map_err(|_| Fault::MUST_BE_POSITIVE)?))
        }
        _ => return Err(Fault::SYNTAX),
    };
    let Some(mut set) = Set::find(context.txn, key)? else {
        match wanted {
            None => context.out.null(),
            Some(_) => context.out.set(0),
        }
        return Ok(Flow::Done);
    };
    let wanted = match wanted {
        Some(0) => {
            context.out.set(0);
            return Ok(Flow::Done);
        }
        Some(wanted) if wanted >= set.count => {
            write_members(context, key, set)?;
            let removed = std::mem::take(&mut set.count);
            if let Some(entry) = context.txn.lookup(key)? {
                context.txn.remove(key, &entry);
            }
            context.txn.changed_or_emptied('s', "spop", key, set.count == 0, removed);
            return Ok(Flow::Done);
        }
        wanted => wanted,
    };
    let mut popped = Vec::new();
    let random = &context.server.random;
    elements::sample(context.txn, key, set.count, wanted.unwrap_or(1), random, |member, _| {
        popped.push(member.to_vec());
    })?;
    if wanted.is_some() {
        context.out.set(popped.len());
    }
    for member in &popped {
        set.remove(context.txn, key, member)?;
        context.out.bulk(member);
    }
    set.put_head(context.txn, key)?;
    context.txn.changed_or_emptied('s', "spop", key, set.count == 0, popped.len() as u64);
    Ok(Flow::Done)
}

pub(super) fn srandmember(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let (key, wanted) = match args {
        [_, key] => (*key, None),
        [_, key, wanted] => (*key, Some(random_count(wanted)?)),
        _ => return Err(Fault::SYNTAX),
    };
    let set = Set::find(context.txn, key)?;
    let Context { txn, out, server, .. } = context;
    let random = &server.random;
    match (set, wanted) {
        (None, None) => out.null(),
        (None, Some(_)) | (_, Some(0)) => out.array(0),
        (Some(set), None) => {
            let found = elements::random(txn, key, set.count, random)?;
            out.bulk_or_null(found.as_ref().map(|(member, _)| member.as_slice()));
        }
        (Some(set), Some(wanted)) if wanted > 0 => {
            let wanted = wanted.unsigned_abs().min(set.count);
            out.array(wanted as usize);
            elements::sample(txn, key, set.count, wanted, random, |member, _| out.bulk(member))?;
        }
        (Some(set), Some(wanted)) => {
            let wanted = drawn(wanted)?;
            out.array(wanted as usize);
            elements::draw(txn, key, set.count, wanted, random, |member, _| out.bulk(member))?;
        }
    }
    Ok(Flow::Done)
}

/// How many are wanted; if negative, any of them again and again.
pub(in crate::commands) fn random_count(arg: &[u8]) -> Result<i64> {
    const OUT_OF_RANGE: Fault = Fault::fixed(
        "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
    );
    match args::integer(arg)? {
        i64::MIN => Err(OUT_OF_RANGE),
        count => Ok(count),
    }
}

/// How many are wanted with repetition.
pub(in crate::commands) fn drawn(count: i64) -> Result<u64> {
    const TOO_MANY: Fault = Fault::fixed("ERR value is out of range");
    let wanted = count.unsigned_abs();
    if wanted > DRAWN_MAX { Err(TOO_MANY) } else { Ok(wanted) }
}
