//! [`RemoteKeys`]: the port to keys on servers that speak Redis's protocol.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kstone_ports::capabilities::{Capabilities, Capability};
use kstone_ports::items::PurgeReport;
use kstone_ports::keys::{
    ErrorReply, Keys, KeysPage, PortCommand, PurgeKeys, Reply, ScanKeys, Value, Watch,
};
use kstone_ports::{Error, PortFuture, Result};

use crate::address::Address;
use crate::exec::{Executed, executed, message};
use crate::node::NoReply;
use crate::options::RemoteOptions;
use crate::patience::Patience;
use crate::reads::only_reads;
use crate::reply::error_of;
use crate::scan::scan;
use crate::store::{Again, Failure, Job, Store, Target};
use crate::watch::watch;

/// How many databases a server has.
const DATABASES: usize = 16;

/// One database of a server, or of a cluster. Cheap to clone; clones and the handles to other
/// databases share their connections.
#[derive(Debug, Clone)]
pub struct RemoteKeys {
    /// By database, made when first asked for.
    stores: Arc<[OnceLock<Arc<Store>>; DATABASES]>,
    store: Arc<Store>,
}

impl RemoteKeys {
    /// The keys at a URL: `redis://[user:password@]host[:port][/database]` is one server,
    /// `redis-cluster://[user:password@]host[:port][,host[:port]…]` is a cluster of which some nodes
    /// are named. Nothing is sent yet: the first call connects.
    ///
    /// # Errors
    /// If the URL is wrong.
    pub fn open(url: &str, options: RemoteOptions) -> Result<RemoteKeys> {
        let store = Arc::new(Store::new(Address::parse(url)?, options));
        Ok(RemoteKeys { stores: Arc::default(), store })
    }

    async fn pipelined(&self, commands: &[Vec<Bytes>]) -> Result<Vec<Reply>> {
        let jobs = commands.iter().map(|given| Job::of(given)).collect::<Result<Vec<_>>>()?;
        let outcomes = self.store.run(&jobs).await;
        let mut replies = Vec::with_capacity(outcomes.len());
        let (mut unknown, mut not_done, mut was_any_done) = (None, None, false);
        for outcome in outcomes {
            replies.push(match outcome {
                Ok(value) => {
                    was_any_done = true;
                    Ok(value)
                }
                Err(Failure::Reply(error)) => {
                    was_any_done = true;
                    Err(error)
                }
                Err(Failure::NotDone(error)) => {
                    let reply = ErrorReply::new(not_done_message(&error));
                    not_done.get_or_insert(error);
                    Err(reply)
                }
                Err(Failure::Unknown(error)) => {
                    let reply = ErrorReply::new(error.to_string());
                    unknown.get_or_insert(error);
                    Err(reply)
                }
            });
        }
        match (unknown, not_done) {
            (Some(unknown), _) => Err(unknown),
            (None, Some(error)) if !was_any_done => Err(error),
            _ => Ok(replies),
        }
    }

    async fn transacted(&self, commands: &[Vec<Bytes>]) -> Result<Vec<Reply>> {
        let jobs = jobs_of_one_slot(commands, None)?;
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let slot = jobs.iter().find_map(|job| job.command.slot);
        let mut patience = Patience::of(self.store.options.patience);
        let mut target: Option<Target> = None;
        loop {
            let slots = self.store.slots().await?;
            let asking = target.as_ref().is_some_and(|it| it.asking);
            let node = match target {
                Some(target) => Some(self.store.node(target.address)),
                None => slots.owner(slot).cloned(),
            };
            let again = match node {
                None => Again::unsent("CLUSTERDOWN no node of the cluster has the slot".to_owned()),
                Some(node) => match node.send(&message(&jobs, asking)).await {
                    Ok(replies) => match executed(replies, &jobs, slot, asking, &node.address) {
                        Executed::Replies(replies) => return Ok(replies),
                        // Nothing was watched.
                        Executed::Changed => return Ok(Vec::new()),
                        Executed::Torn(error) => return Err(torn(&error)),
                        Executed::Not(verdict) => match Again::after(verdict) {
                            Ok(again) => again,
                            Err(Ok(_)) => return Ok(Vec::new()),
                            Err(Err(error)) => return Err(error_of(error)),
                        },
                    },
                    Err(NoReply::NotSent(why)) => Again::unsent(why),
                    Err(NoReply::Lost(why)) if jobs.iter().all(|it| only_reads(&it.command)) => {
                        Again::lost_read(&node.address, &why)
                    }
                    Err(NoReply::Lost(why)) => return Err(self.store.lost(&node.address, &why)),
                },
            };
            if !self.store.prepare(slots.version, &again, &mut patience).await {
                return Err(again.why);
            }
            target = again.to;
        }
    }
}

/// The commands of a transaction, if the port accepts them and they are of one slot.
pub(crate) fn jobs_of_one_slot(commands: &[Vec<Bytes>], slot: Option<u16>) -> Result<Vec<Job<'_>>> {
    let asked = PortCommand::all_of_one_slot(commands, slot)?;
    Ok(commands.iter().zip(asked).map(|(given, command)| Job { given, command }).collect())
}

/// A server that does not know or allow MULTI has executed the commands as they came.
pub(crate) fn torn(error: &ErrorReply) -> Error {
    Error::OutcomeUnknown(format!("the store did not begin a transaction: {error}"))
}

/// What stands for a command that was not executed, among others that were.
fn not_done_message(error: &Error) -> String {
    let message = error.to_string();
    let has_code = message
        .split(' ')
        .next()
        .is_some_and(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase()));
    if has_code { message } else { format!("CLUSTERDOWN not executed: {message}") }
}

impl Keys for RemoteKeys {
    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[Capability::ExactExpiry])
    }

    fn name(&self) -> String {
        self.store.name()
    }

    fn database(&self, db: u8) -> Option<Arc<dyn Keys>> {
        if db == self.db() {
            return Some(Arc::new(self.clone()));
        }
        let made = self.stores.get(usize::from(db)).filter(|_| !self.store.address.is_cluster)?;
        let store = made.get_or_init(|| {
            let address = Address { db, ..self.store.address.clone() };
            Arc::new(Store::new(address, self.store.options.clone()))
        });
        Some(Arc::new(RemoteKeys { stores: Arc::clone(&self.stores), store: Arc::clone(store) }))
    }

    fn db(&self) -> u8 {
        self.store.address.db
    }

    fn command<'a>(&'a self, args: &'a [Bytes]) -> PortFuture<'a, Value> {
        Box::pin(async move {
            let mut outcomes = self.store.run(&[Job::of(args)?]).await;
            let never = || Err(Failure::NotDone(Error::Unavailable("it was not sent".to_owned())));
            outcomes.pop().unwrap_or_else(never).map_err(Failure::into_error)
        })
    }

    fn pipeline<'a>(&'a self, commands: &'a [Vec<Bytes>]) -> PortFuture<'a, Vec<Reply>> {
        Box::pin(self.pipelined(commands))
    }

    fn transaction<'a>(&'a self, commands: &'a [Vec<Bytes>]) -> PortFuture<'a, Vec<Reply>> {
        Box::pin(self.transacted(commands))
    }

    fn watch<'a>(&'a self, keys: &'a [Bytes]) -> PortFuture<'a, Box<dyn Watch>> {
        Box::pin(async move {
            let mut given = vec![Bytes::from_static(b"MGET")];
            given.extend_from_slice(keys);
            let watch = watch(&self.store, &Job::of(&given)?).await?;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }

    fn scan<'a>(&'a self, request: &'a ScanKeys) -> PortFuture<'a, KeysPage> {
        Box::pin(scan(&self.store, request))
    }

    /// A server executes one command after another, so that what was acknowledged is there; what a
    /// caller has not yet sent, no server can wait for.
    fn settle(&self) -> PortFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn purge<'a>(&'a self, _request: &'a PurgeKeys) -> PortFuture<'a, PurgeReport> {
        Box::pin(async move {
            Err(Error::Unsupported(format!(
                "{} can delete keys, but not remove their bytes from files and memory",
                self.name()
            )))
        })
    }
}
