//! `kstone serve --demo`: a school that learns, the workflows of the learning platform, a few Redis
//! keys, and what to ask them.

mod keys;
mod school;
mod tour;

use std::future::Future;
use std::sync::Arc;

use anyhow::{Context, Result};
use kstone::ops::{BatchWrite, WriteRequest};
use kstone::{Database, Durability, Item};
use kstone_mastery::engine::MasteryEngine;
use kstone_platform::time::Timestamp;
use kstone_redis::Redis;
use kstone_workflows as workflows;
use tokio::runtime::Runtime;

use crate::demo::school::DemoSchool;
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

/// The demo's school, whose learners are cached in these keys.
pub fn school(redis: &Redis) -> Option<DemoSchool> {
    Some(DemoSchool::new(Arc::new(redis.keys(0)?)))
}

/// Fills the school unless that was done, shows where to look first, and keeps it alive. The doors
/// are open meanwhile. Ends early when `stop` does.
pub fn open_school(
    school: DemoSchool,
    engine: MasteryEngine,
    db: &Database,
    console: Option<(&str, bool)>,
    stop: impl Future<Output = ()>,
    runtime: &Runtime,
    out: &mut Output,
) -> Result<()> {
    if !school.is_filled(db)? {
        let (learners, classes) = school.size();
        out.line(format!(
            "\nfilling a school: {learners} learners in {classes} classes, 60 days …"
        ))?;
        out.flush()?;
    }
    let filled = async {
        let Some(filled) = school.fill(db, engine.now()).await? else { return Ok(None) };
        anyhow::Ok(Some((filled, school.sample_learner(&engine).await?)))
    };
    let filled = runtime.block_on(async {
        tokio::select! {
            filled = filled => filled.map(Some),
            () = stop => Ok(None),
        }
    });
    match filled.context("cannot fill the demo's school")? {
        Some(Some((filled, learner))) => {
            tour::show_school(console, &school, &filled, learner.as_ref(), out)?;
            runtime.spawn(school.keep_alive(engine));
        }
        Some(None) => out.line("the learners here are not the demo's")?,
        None => {}
    }
    Ok(out.flush()?)
}
