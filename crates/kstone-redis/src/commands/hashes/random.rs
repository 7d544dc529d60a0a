//! HRANDFIELD.

use std::ops::ControlFlow;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands::hashes::Hash;
use crate::commands::sets::{drawn, random_count};
use crate::fault::{Fault, Result};
use crate::store::elements;
use crate::store::fields::{self, Payload};

pub(super) fn hrandfield(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    const TOO_MANY: Fault = Fault::fixed("ERR value is out of range");
    let (key, wanted, with_values) = match args {
        [_, key] => (*key, None, false),
        [_, key, wanted] => (*key, Some(random_count(wanted)?), false),
        [_, key, wanted, option] => {
            let wanted = random_count(wanted)?;
            if !args::is(option, "withvalues") {
                return Err(Fault::SYNTAX);
            }
            if wanted.unsigned_abs() > i64::MAX as u64 / 2 {
                return Err(TOO_MANY);
            }
            (*key, Some(wanted), true)
        }
        [_, _, wanted, ..] => {
            random_count(wanted)?;
            return Err(Fault::SYNTAX);
        }
        _ => return Ok(Flow::Done),
    };
    let hash = Hash::find(context.txn, key)?;
    let is_nested = with_values && context.client.resp3;
    let Context { txn, out, server, .. } = context;
    let random = &server.random;
    let (hash, wanted) = match (hash, wanted) {
        (None, None) => {
            return out.reply_null();
        }
        (None, Some(_)) | (_, Some(0)) => {
            out.array(0);
            return Ok(Flow::Done);
        }
        (Some(hash), None) => {
            let found = elements::random(txn, key, hash.head.count, random)?;
            return out.reply_bulk_or_null(found.as_ref().map(|(name, _)| name.as_slice()));
        }
        (Some(hash), Some(wanted)) => (hash, wanted),
    };
    let count = hash.head.count;
    let many = if wanted < 0 { drawn(wanted)? } else { wanted.unsigned_abs().min(count) };
    out.array(many as usize * if with_values && !is_nested { 2 } else { 1 });
    let mut write_reply = |name: &[u8], payload: &[u8]| {
        if is_nested {
            out.array(2);
        }
        out.bulk(name);
        if with_values {
            out.bulk(Payload::read(payload).value);
        }
    };
    if wanted < 0 {
        elements::draw(txn, key, count, many, random, write_reply)?;
    } else if many == count {
        fields::each(txn, key, count, |name, payload| {
            write_reply(name, payload);
            Ok(ControlFlow::Continue(()))
        })?;
    } else {
        elements::sample(txn, key, count, many, random, write_reply)?;
    }
    Ok(Flow::Done)
}
