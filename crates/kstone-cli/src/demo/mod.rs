//! `kstone serve --demo`: the workflows of the learning platform to play with, and what to ask
//! them.

mod keys;
mod tour;

use anyhow::{Context, Result};
use kstone::ops::{BatchWrite, WriteRequest};
use kstone::{Database, Durability, Item};
use kstone_learn::time::Timestamp;
use kstone_learn::workflows;
use kstone_redis::Redis;

use crate::output::Output;
use crate::serve::settings::Settings;

/// In the default table: whether the demo has made its table, so that it never touches one that
/// somebody else has made, and finishes one whose filling was interrupted.
const MARK: &str = "kstone demo";

const TABLE: &str = "workflows";
/// When the first image arrives. No clock is asked, so that every start shows the same.
const START: &str = "2025-01-15T10:30:00Z";
/// A few hundred items.
const IMAGES: u32 = 20;

/// What DynamoDB takes at a time.
const BATCH: usize = 25;

/// The table is there.
#[derive(Default)]
pub struct Demo {
    /// What to ask Redis's door, which may be closed.
    questions: Vec<keys::Question>,
}

/// Makes the table and fills it, unless it is there from an earlier start. `None` if there is one
/// of that name which is not the demo's.
pub fn prepare(db: &Database) -> Result<Option<Demo>> {
    let table_exists = db.describe_table(TABLE).is_ok();
    let mark = db.get(MARK)?;
    let is_filling = mark.as_ref().is_some_and(|mark| mark.get("filling").is_some());
    if table_exists && !is_filling {
        return Ok(mark.map(|_| Demo::default()));
    }
    db.put(MARK, Item::new().with("filling", TABLE))?;
    if !table_exists {
        db.create_table(&workflows::table_spec(TABLE)).context("cannot make the demo's table")?;
    }
    // One sync for all of it, by the mark.
    let quick = db.with_durability(Durability::Os);
    let mut items = items()?.into_iter().map(WriteRequest::Put).peekable();
    while items.peek().is_some() {
        let batch: Vec<WriteRequest> = items.by_ref().take(BATCH).collect();
        let tables = vec![(TABLE.to_owned(), batch)];
        quick.batch_write(&BatchWrite { tables, ..BatchWrite::default() }).wait()?;
    }
    db.put(MARK, Item::new().with("filled", TABLE))?;
    Ok(Some(Demo::default()))
}

fn items() -> Result<Vec<Item>> {
    let entities = workflows::sample(START.parse::<Timestamp>()?, IMAGES)?;
    Ok(entities.iter().map(workflows::AnyEntity::to_item).collect::<Result<_, _>>()?)
}

impl Demo {
    /// Writes a few Redis keys too. To be called before a password is required.
    pub fn prepare_keys(&mut self, redis: &Redis) -> Result<()> {
        self.questions = keys::prepare(redis).context("cannot write the demo's Redis keys")?;
        Ok(())
    }

    /// Prints what to ask the server, with what it answers.
    pub fn show(
        &self,
        url: &str,
        redis_url: Option<&str>,
        settings: &Settings,
        out: &mut Output,
    ) -> Result<()> {
        tour::show(url, settings.keys.is_empty(), out)?;
        if let Some(url) = redis_url {
            tour::show_redis(url, settings.redis_password.is_none(), &self.questions, out)?;
        }
        Ok(out.flush()?)
    }
}
