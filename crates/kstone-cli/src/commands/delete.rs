//! `kstone delete`: removes one item and says whether it was there.

use anyhow::Result;
use kstone_core::{Durability, Engine, WriteBatch};

use crate::Outcome;
use crate::args::Delete;
use crate::database::TABLE;
use crate::keys;
use crate::output::Output;

pub fn run(engine: &Engine, args: &Delete, out: &mut Output) -> Result<Outcome> {
    let target = &args.target;
    let key = keys::typed_key(&target.pk, target.sk.as_deref(), target.hex)?;
    let mut batch = WriteBatch::new();
    batch.delete(TABLE, &key)?;
    let locked = engine.lock([&key])?;
    let was_there = locked.get(TABLE, &key)?.is_some();
    if was_there {
        locked.commit(&batch, Durability::Sync)?.wait()?;
    }
    out.line(format!("{{{},\"deleted\":{was_there}}}", keys::fields(&key)))?;
    Ok(Outcome::Done)
}
