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
use kstone_base::time::Timestamp;
use kstone_mastery::engine::MasteryEngine;
use kstone_workflows as workflows;
use tokio::runtime::Runtime;

use crate::demo::school::DemoSchool;
use crate::output::Output;
use crate::serve::backend::Backend;
use crate::serve::server_file::ServerFile;
use crate::serve::settings::Settings;
use crate::serve::signals::{self, Stop};

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

/// The demo of a server. One that nobody asked for does nothing.
#[derive(Default)]
pub struct Demo {
    is_on: bool,
    has_table: bool,
    /// What to ask Redis's door, which may be closed.
    questions: Vec<keys::Question>,
}

impl Demo {
    /// Makes the table and the Redis keys, before the doors are open.
    pub fn prepare(
        settings: &Settings,
        backend: &Backend,
        notice: &ServerFile,
        out: &mut Output,
    ) -> Result<Demo> {
        if !settings.demo {
            return Ok(Demo::default());
        }
        let mut demo =
            Demo { is_on: true, has_table: prepare_table(&backend.db)?, questions: vec![] };
        let redis = backend.redis.as_ref().filter(|_| demo.has_table && notice.redis.is_some());
        match redis.map(keys::prepare).transpose() {
            Ok(questions) => demo.questions = questions.unwrap_or_default(),
            // Somebody may have a key of the same name: it is no reason not to serve.
            Err(error) => {
                let error = error.context("cannot write the demo's Redis keys");
                out.complain(&format!("no tour of Redis: {error:#}"));
            }
        }
        Ok(demo)
    }

    /// Prints what to ask the server, with what it answers, and opens the school. What fails is no
    /// reason to stop serving.
    pub fn show(
        &self,
        settings: &Settings,
        notice: &ServerFile,
        backend: &Backend,
        stop: &Stop,
        runtime: &Runtime,
        out: &mut Output,
    ) {
        if !self.is_on {
            return;
        }
        if !self.has_table {
            let _ = out.line(format!("the table `{TABLE}` here is not the demo's"));
            let _ = out.flush();
        } else if let Err(error) = self.show_tour(settings, notice, out) {
            // A server that is being stopped need not answer.
            if !*stop.borrow() {
                out.complain(&format!("no tour: {error:#}"));
            }
        }
        let keys = backend.redis.as_ref().and_then(|redis| redis.keys(0));
        if let (Some(keys), Some(platform)) = (keys, &backend.platform) {
            let console = notice.console.as_deref();
            let console = console.map(|url| (url, settings.console_token.is_none()));
            let school = DemoSchool::new(Arc::new(keys));
            let (engine, stop) = (platform.mastery.clone(), signals::asked(stop.clone()));
            let opened = open_school(school, engine, &backend.db, console, stop, runtime, out);
            if let Err(error) = opened {
                out.complain(&format!("{error:#}"));
            }
        }
        let _ = out.flush();
    }

    fn show_tour(&self, settings: &Settings, notice: &ServerFile, out: &mut Output) -> Result<()> {
        let url = notice.dynamodb.as_deref().unwrap_or_default();
        tour::show(url, settings.keys.is_empty(), out)?;
        if let Some(url) = &notice.redis {
            tour::show_redis(url, settings.redis_password.is_none(), &self.questions, out)?;
        }
        Ok(out.flush()?)
    }
}

/// Makes the table and fills it, unless it is there from an earlier start. False if there is one of
/// that name which is not the demo's.
fn prepare_table(db: &Database) -> Result<bool> {
    let table_exists = db.describe_table(TABLE).is_ok();
    let mark = db.get(MARK)?;
    let is_filling = mark.as_ref().is_some_and(|mark| mark.get("filling").is_some());
    if table_exists && !is_filling {
        return Ok(mark.is_some());
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
    Ok(true)
}

fn items() -> Result<Vec<Item>> {
    let entities = workflows::sample(START.parse::<Timestamp>()?, IMAGES)?;
    Ok(entities.iter().map(workflows::AnyEntity::to_item).collect::<Result<_, _>>()?)
}

/// Fills the school unless that was done, shows where to look first, and keeps it alive. The doors
/// are open meanwhile. Ends early when `stop` does.
fn open_school(
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
