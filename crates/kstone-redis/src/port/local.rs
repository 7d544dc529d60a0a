//! The port to the keys of this process, served by sessions.

use std::sync::Arc;

use bytes::Bytes;
use kstone_core::sync::Mutex;
use kstone_ports::capabilities::{Capabilities, Capability};
use kstone_ports::items::PurgeReport;
use kstone_ports::keys::{
    ErrorReply, Keys, KeysPage, PortCommand, PurgeKeys, Reply, ScanKeys, Watch,
};
use kstone_ports::{Error, PortFuture, Result};

use crate::Redis;
use crate::reply::{Tree, Value};
use crate::session::{CommandOutcome, Pipeline, Session};
use crate::store::databases::DATABASES;

/// Most idle sessions that are kept for the next call.
const IDLE_MAX: usize = 16;

/// One database of the keys of this process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LocalKeys {
    redis: Redis,
    db: u8,
    /// Idle sessions, for all databases. One that was left in the middle of something is
    /// not among them.
    idle: Arc<Mutex<Vec<Session>>>,
}

impl Redis {
    /// The port to one of the 16 databases; `None` if there is no such one. It may do everything,
    /// whatever the users of the door may.
    pub fn keys(&self, db: u8) -> Option<LocalKeys> {
        LocalKeys { redis: self.clone(), db: 0, idle: Arc::default() }.at(db)
    }
}

impl LocalKeys {
    /// Whose keys they are.
    pub(crate) fn redis(&self) -> &Redis {
        &self.redis
    }

    /// The same for another database, if there is such one.
    fn at(&self, db: u8) -> Option<LocalKeys> {
        (usize::from(db) < DATABASES).then(|| LocalKeys { db, ..self.clone() })
    }

    fn session(&self) -> Session {
        match self.idle.lock().pop() {
            Some(mut session) => {
                session.enter(self.db);
                session
            }
            None => Session::inside(Arc::clone(&self.redis.server), self.db),
        }
    }

    fn give_back(&self, session: Session) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX && !session.is_killed() {
            idle.push(session);
        }
    }

    /// A session that was not served may still be counted among those who wait.
    fn give_back_if_served(&self, session: Session, done: &Result<Value>) {
        if matches!(done, Ok(_) | Err(Error::Reply(_))) {
            self.give_back(session);
        }
    }

    async fn one(&self, session: &mut Session, given: &[Bytes]) -> Result<Value> {
        let value = execute(session, given).await?;
        self.durable(session).await?;
        Ok(reply(value)?)
    }

    /// Waits for the disk, if replies promise that.
    async fn durable(&self, session: &Session) -> Result<()> {
        if self.redis.is_sync() {
            let synced = self.redis.server.engine.durable(session.seq()).await;
            synced.map_err(|error| Error::OutcomeUnknown(error.to_string()))?;
        }
        Ok(())
    }

    /// MULTI, the commands, EXEC. `None` if something that was watched has changed.
    async fn exec(
        &self,
        session: &mut Session,
        commands: &[Vec<Bytes>],
    ) -> Result<Option<Vec<Reply>>> {
        let plain = |name: &'static str| [Bytes::from_static(name.as_bytes())];
        reply(execute(session, &plain("MULTI")).await?)?;
        for given in commands {
            reply(execute(session, given).await?)?;
        }
        let done = execute(session, &plain("EXEC")).await?;
        self.durable(session).await?;
        match reply(done)? {
            Value::Array(replies) => Ok(Some(replies.into_iter().map(reply).collect())),
            _ => Ok(None),
        }
    }
}

/// Executes one command; returns its reply, which may be an error.
pub(crate) async fn execute(session: &mut Session, given: &[Bytes]) -> Result<Value> {
    let args: Vec<&[u8]> = given.iter().map(AsRef::as_ref).collect();
    let mut out = Tree::new();
    // It may have been idle for long, which is not the command's fault.
    session.start_commands();
    match session.execute(&args, &mut out).await {
        CommandOutcome::Replied => Ok(out.into_value()),
        CommandOutcome::Paused(left) => Err(Error::Unavailable(format!(
            "clients are paused (CLIENT PAUSE) for another {} ms",
            left.as_millis()
        ))),
        CommandOutcome::Waiting(_) | CommandOutcome::Close => {
            Err(Error::Refused("ERR the port to keys does not wait".to_owned()))
        }
    }
}

/// Executes the first few of some commands: as many as can be done together, at least one.
async fn execute_some(session: &mut Session, commands: &[Vec<Bytes>]) -> Result<Vec<Reply>> {
    let mut pipeline = Pipeline::new();
    for given in commands {
        if !pipeline.push(given.iter().map(AsRef::as_ref)) {
            break;
        }
    }
    let mut out = Tree::new();
    session.start_commands();
    if session.execute_together(&pipeline, &mut out).await > 0 {
        return Ok(out.into_values().into_iter().map(reply).collect());
    }
    let one = commands.first().map(Vec::as_slice).unwrap_or_default();
    Ok(vec![reply(execute(session, one).await?)])
}

pub(crate) fn reply(value: Value) -> Reply {
    match value {
        Value::Error(message) => Err(ErrorReply::new(String::from_utf8_lossy(&message))),
        value => Ok(value),
    }
}

impl Keys for LocalKeys {
    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[Capability::ExactExpiry, Capability::Purge])
    }

    fn name(&self) -> String {
        "this database".to_owned()
    }

    fn database(&self, db: u8) -> Option<Arc<dyn Keys>> {
        self.at(db).map(|keys| Arc::new(keys) as Arc<dyn Keys>)
    }

    fn db(&self) -> u8 {
        self.db
    }

    fn command<'a>(&'a self, args: &'a [Bytes]) -> PortFuture<'a, Value> {
        Box::pin(async move {
            PortCommand::of(args)?;
            let mut session = self.session();
            let done = self.one(&mut session, args).await;
            self.give_back_if_served(session, &done);
            done
        })
    }

    fn pipeline<'a>(&'a self, commands: &'a [Vec<Bytes>]) -> PortFuture<'a, Vec<Reply>> {
        Box::pin(async move {
            for given in commands {
                PortCommand::of(given)?;
            }
            let mut session = self.session();
            let mut replies = Vec::with_capacity(commands.len());
            while let Some(rest) = commands.get(replies.len()..).filter(|rest| !rest.is_empty()) {
                match execute_some(&mut session, rest).await {
                    Ok(more) => replies.extend(more),
                    // What was done cannot be taken back.
                    Err(error) if !replies.is_empty() => {
                        return Err(Error::OutcomeUnknown(error.to_string()));
                    }
                    Err(error) => return Err(error),
                }
            }
            self.durable(&session).await?;
            self.give_back(session);
            Ok(replies)
        })
    }

    fn transaction<'a>(&'a self, commands: &'a [Vec<Bytes>]) -> PortFuture<'a, Vec<Reply>> {
        Box::pin(async move {
            PortCommand::all_of_one_slot(commands, None)?;
            let mut session = self.session();
            let done = self.exec(&mut session, commands).await?;
            self.give_back(session);
            // Nothing was watched.
            Ok(done.unwrap_or_default())
        })
    }

    fn watch<'a>(&'a self, keys: &'a [Bytes]) -> PortFuture<'a, Box<dyn Watch>> {
        Box::pin(async move {
            let mut given = vec![Bytes::from_static(b"MGET")];
            given.extend_from_slice(keys);
            let slot = PortCommand::of(&given)?.slot;
            if let Some(name) = given.first_mut() {
                *name = Bytes::from_static(b"WATCH");
            }
            let mut session = self.session();
            reply(execute(&mut session, &given).await?)?;
            Ok(Box::new(LocalWatch { keys: self.clone(), slot, session }) as Box<dyn Watch>)
        })
    }

    fn scan<'a>(&'a self, request: &'a ScanKeys) -> PortFuture<'a, KeysPage> {
        Box::pin(async move {
            let after = request.after.clone().unwrap_or_else(|| Bytes::from_static(b"0"));
            let count = request.count.max(1).to_string().into_bytes();
            let mut given = vec![Bytes::from_static(b"SCAN"), after];
            given.extend([Bytes::from_static(b"COUNT"), Bytes::from(count)]);
            if let Some(pattern) = &request.pattern {
                given.extend([Bytes::from_static(b"MATCH"), pattern.clone()]);
            }
            if let Some(kind) = request.kind {
                given.extend([b"TYPE", kind.as_bytes()].map(Bytes::from_static));
            }
            let mut session = self.session();
            let done = self.one(&mut session, &given).await;
            self.give_back_if_served(session, &done);
            Ok(page(done?))
        })
    }

    fn settle(&self) -> PortFuture<'_, ()> {
        Box::pin(async move {
            // A writer shares the gate until its commit, so its exclusive holder comes after all writers.
            drop(self.redis.server.locks.exclude().await);
            Ok(())
        })
    }

    fn purge<'a>(&'a self, request: &'a PurgeKeys) -> PortFuture<'a, PurgeReport> {
        Box::pin(async move { crate::purge::purge(self, request).await })
    }
}

/// What SCAN answers: where to go on, and the keys.
fn page(value: Value) -> KeysPage {
    let Value::Array(parts) = value else { return KeysPage::default() };
    let mut parts = parts.into_iter();
    let (Some(Value::Bulk(next)), Some(Value::Array(keys))) = (parts.next(), parts.next()) else {
        return KeysPage::default();
    };
    let keys = keys.into_iter().filter_map(|key| match key {
        Value::Bulk(key) => Some(Bytes::from(key)),
        _ => None,
    });
    KeysPage { keys: keys.collect(), next: (next != b"0").then(|| next.into()) }
}

#[derive(Debug)]
struct LocalWatch {
    keys: LocalKeys,
    slot: Option<u16>,
    session: Session,
}

impl Watch for LocalWatch {
    fn command<'a>(&'a mut self, args: &'a [Bytes]) -> PortFuture<'a, Value> {
        Box::pin(async move {
            let command = PortCommand::of(args)?;
            if command.slot.is_some() && command.slot != self.slot {
                return Err(Error::Refused(
                    "CROSSSLOT the command is on another slot than the watched keys".to_owned(),
                ));
            }
            self.keys.one(&mut self.session, args).await
        })
    }

    fn commit<'a>(
        mut self: Box<Self>,
        commands: &'a [Vec<Bytes>],
    ) -> PortFuture<'a, Option<Vec<Reply>>> {
        Box::pin(async move {
            PortCommand::all_of_one_slot(commands, self.slot)?;
            let done = self.keys.exec(&mut self.session, commands).await?;
            self.keys.give_back(self.session);
            Ok(done)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use kstone::Database;

    use super::*;

    #[test]
    fn settling_waits_for_who_is_about_to_commit() {
        let redis = Redis::open(&Database::memory().unwrap()).unwrap();
        let keys = redis.keys(0).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let writer = redis.server.locks.try_share().unwrap();
        let mut settled = keys.settle();
        assert!(settled.as_mut().poll(&mut context).is_pending());
        drop(writer);
        assert_eq!(settled.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    }
}
