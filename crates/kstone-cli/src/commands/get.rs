//! `kstone get`: one item.

use anyhow::Result;
use kstone_core::Engine;

use crate::Outcome;
use crate::args::Get;
use crate::commands::record;
use crate::database::{self, TABLE};
use crate::output::Output;
use crate::{json, keys};

pub fn run(engine: &Engine, args: &Get, out: &mut Output) -> Result<Outcome> {
    let target = &args.target;
    let key = keys::typed_key(&target.pk, target.sk.as_deref(), target.hex)?;
    let Some(found) = engine.get(TABLE, &key)? else {
        out.complain(&format!("not found: {}", keys::shown(&key)));
        return Ok(Outcome::No);
    };
    let answer = if args.record {
        record::line(&key, &found)?
    } else {
        json::text(&database::decode(&found.value)?)
    };
    out.line(if out.is_terminal { json::pretty(&answer) } else { answer })?;
    Ok(Outcome::Done)
}
