//! `kstone get`: one record.

use anyhow::{Result, bail};
use kstone_core::Engine;

use crate::Outcome;
use crate::args::Get;
use crate::commands::record;
use crate::database::TABLE;
use crate::output::Output;
use crate::{json, keys};

pub fn run(engine: &Engine, args: &Get, out: &mut Output) -> Result<Outcome> {
    let target = &args.target;
    let key = keys::typed_key(&target.pk, target.sk.as_deref(), target.hex)?;
    let Some(found) = engine.get(TABLE, &key)? else {
        out.complain(&format!("not found: {}", keys::shown(&key)));
        return Ok(Outcome::No);
    };
    if args.raw {
        out.raw(&found.value)?;
        return Ok(Outcome::Done);
    }
    let answer = if args.record {
        record::line(&key, &found)
    } else if let Some(value) = json::from_stored(&found.value) {
        value
    } else {
        bail!(
            "the value of {} is {} bytes that are not JSON; --raw writes them as they are, \
             --record shows them in hexadecimal",
            keys::shown(&key),
            found.value.len()
        );
    };
    out.line(if out.is_terminal { json::pretty(&answer) } else { answer })?;
    Ok(Outcome::Done)
}
