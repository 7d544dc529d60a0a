//! Answers calls about persons from a database that this process has open.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use kstone::Database;
use kstone_core::env::SystemRandom;
use kstone_core::sync::Mutex;
use kstone_keyspace::erasure::{
    Eraser, ErasureRecord, ErasureState, PersonalDataLocation, Progress,
};
use kstone_keyspace::index::Location;
use kstone_keyspace::{Governor, Keyspace, Subject, SubjectSource};
use kstone_redis::Redis;
use serde_json::{Value as Json, json};
use tokio::runtime::Builder;

use super::{Call, Person, ProgressBar, SOCKET, key};
use crate::commands::count_anew;
use crate::json as items;
use crate::output::Output;
use crate::tables::Governed;

/// How often progress is reported.
const SHOWN_EVERY: Duration = Duration::from_millis(100);

/// An open database with everything that erasing takes. The governor's counts are kept before it closes.
pub struct LocalDatabase {
    eraser: Eraser,
    governed: Governed,
    db: Database,
}

impl LocalDatabase {
    /// Puts the keyspace in force that the database is governed by.
    pub fn open(dir: &Path, db: Database, out: &mut Output) -> Result<LocalDatabase> {
        let Some(governor) = Governor::resume(&db)? else {
            bail!(
                "{0} was never governed by a keyspace, so nobody knows whose data is in it: kstone \
                 keyspace recount --data {0} --keyspace FILE",
                dir.display()
            );
        };
        // Left over from a server that was killed: only this process has the folder open now.
        let _ = std::fs::remove_file(dir.join(SOCKET));
        let governed = Governed(Arc::clone(&governor));
        if !governor.is_counted()
            && let Some(said) = count_anew(&governor, &db, out)?
        {
            out.note(&said);
        }
        let redis = Redis::open(&db)?;
        let key = key::load_or_make(dir)?;
        let eraser = Eraser::embedded(&db, &redis, governor, key, Arc::new(SystemRandom))?;
        Ok(LocalDatabase { eraser, governed, db })
    }

    pub fn ask(&self, call: &Call, show: &mut (dyn FnMut(&ProgressBar) + Send)) -> Result<Json> {
        answer(call, &self.eraser, &self.governed.0, &self.db, show)
    }
}

/// Answers a call. Takes as long as it takes: this is for a thread that may wait.
pub fn answer(
    call: &Call,
    eraser: &Eraser,
    governor: &Governor,
    db: &Database,
    show: &mut (dyn FnMut(&ProgressBar) + Send),
) -> Result<Json> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let keyspace = governor.keyspace();
    match call {
        Call::List(person) => {
            let subject = subject_of(person, keyspace)?;
            let holdings = runtime.block_on(eraser.stores().holdings(&subject))?;
            Ok(holdings.iter().map(shown).collect())
        }
        Call::Export(person) => {
            let subject = subject_of(person, keyspace)?;
            Ok(runtime.block_on(eraser.stores().export(&subject, db.engine().now_ms()))?)
        }
        Call::Admit(person) => {
            let subject = subject_of(person, keyspace)?;
            Ok(json!({ "was_erased": runtime.block_on(governor.admit_again(&subject))? }))
        }
        Call::Erase(person) => {
            let subject = subject_of(person, keyspace)?;
            let receipt =
                watched(db, show, |progress| runtime.block_on(eraser.erase(&subject, progress)))?;
            Ok(serde_json::to_value(receipt)?)
        }
        Call::Resume => {
            let receipts = watched(db, show, |progress| runtime.block_on(eraser.resume(progress)))?;
            Ok(serde_json::to_value(receipts)?)
        }
        Call::Erasures => {
            let erasures = runtime.block_on(eraser.erasures())?;
            let erasures: Vec<Json> = erasures.iter().map(listed).collect();
            Ok(json!({ "public_key": eraser.public_key(), "erasures": erasures }))
        }
        Call::Receipt { id } => match runtime.block_on(eraser.erasure(id))? {
            Some(ErasureRecord { state: ErasureState::Done(receipt), .. }) => {
                Ok(serde_json::to_value(receipt)?)
            }
            Some(_) => bail!("erasure {id} is not over: kstone erase resume"),
            None => bail!("there was no erasure {id}"),
        },
        Call::Metrics => Ok(items::text(&governor.metrics().item()).into()),
        Call::Docs => {
            let metrics = governor.metrics();
            Ok(keyspace.docs(|pattern| metrics.usage(&pattern.full_name())).into())
        }
    }
}

/// Does the work, and reports progress meanwhile.
fn watched<T: Send, E: Send + Into<anyhow::Error>>(
    db: &Database,
    show: &mut (dyn FnMut(&ProgressBar) + Send),
    work: impl FnOnce(&(dyn Fn(Progress) + Sync)) -> Result<T, E>,
) -> Result<T> {
    let now = Mutex::new(ProgressBar::of(Progress::Refusing));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                let bar = now.lock().clone();
                show(&with_stripes(bar, db));
                std::thread::park_timeout(SHOWN_EVERY);
            }
        });
        let done = work(&|progress| *now.lock() = ProgressBar::of(progress));
        is_over.store(true, Ordering::Release);
        watching.thread().unpark();
        done.map_err(Into::into)
    })
}

/// While files are rewritten, the engine knows how far it is.
fn with_stripes(bar: ProgressBar, db: &Database) -> ProgressBar {
    if bar != ProgressBar::of(Progress::Purging) {
        return bar;
    }
    let progress = db.engine().purge_progress();
    ProgressBar { done: progress.stripes_done, all: progress.stripes, ..bar }
}

/// The person that the command names.
fn subject_of(person: &Person, keyspace: &Keyspace) -> Result<Subject> {
    let (name, id) = match person.subject.split_once('=') {
        Some((name, id)) => (Some(name), id),
        None => (None, person.subject.as_str()),
    };
    if let Some(name) = name {
        let mut names: Vec<&str> = keyspace
            .patterns()
            .iter()
            .filter_map(|pattern| match &pattern.subject {
                SubjectSource::Placeholder(name) | SubjectSource::Field(name) => {
                    Some(name.as_str())
                }
                _ => None,
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        if !names.contains(&name) {
            bail!("no pattern names persons by `{name}`; these do: {}", names.join(", "));
        }
    }
    match id.is_empty() {
        true => Err(anyhow!("the id is empty: --subject student_id=12345")),
        false => Ok(Subject::canonical(id, person.tenant.as_deref())),
    }
}

fn shown(holding: &PersonalDataLocation) -> Json {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let place = match &holding.location {
        Location::Key { db, key } => json!({ "store": "redis", "db": db, "key": text(key) }),
        Location::Member { db, key, member } => {
            json!({ "store": "redis", "db": db, "key": text(key), "member": text(member) })
        }
        Location::Item { table, pk, sk } => json!({
            "store": "items",
            "table": table,
            "pk": text(pk),
            "sk": sk.as_deref().map(text),
        }),
    };
    json!({
        "pattern": holding.pattern,
        "tenant": holding.tenant,
        "place": place,
        "expires_at_ms": holding.expires_at_ms,
        "is_shared": holding.is_shared,
    })
}

fn listed(record: &ErasureRecord) -> Json {
    let (state, receipt) = match &record.state {
        ErasureState::Running => ("running", None),
        ErasureState::Sealed(_) => ("sealed", None),
        ErasureState::Done(receipt) => ("done", Some(receipt)),
    };
    json!({
        "id": record.id,
        "began_ms": record.began_ms,
        "state": state,
        "finished_ms": receipt.map(|signed| signed.receipt.finished_ms),
    })
}
