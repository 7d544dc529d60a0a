//! The servers of a store, and the way of a command to the right one: [`Store`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use kstone_core::sync::Mutex;
use kstone_ports::keys::{ErrorReply, PortCommand, Value};
use kstone_ports::{Error, Result};
use redis::{Pipeline, cmd};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::address::Address;
use crate::node::{NoReply, Node, packed};
use crate::options::RemoteOptions;
use crate::part::Part;
use crate::patience::Patience;
use crate::reply::{Verdict, error_of};
use crate::slots::{Ranges, Slots};

/// One command on its way.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// The command, beginning with its name.
    pub given: &'a [Bytes],
    /// What the port makes of it.
    pub command: PortCommand,
}

impl Job<'_> {
    /// If the port accepts the command.
    pub fn of(given: &[Bytes]) -> Result<Job<'_>> {
        Ok(Job { given, command: PortCommand::of(given)? })
    }
}

/// Why a command has no value.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// It was answered with an error.
    Reply(ErrorReply),
    /// It was certainly not executed, and will not be.
    NotDone(Error),
    /// It was executed, or it was not.
    Unknown(Error),
}

impl Failure {
    /// What the caller of one command gets.
    pub fn into_error(self) -> Error {
        match self {
            Failure::Reply(reply) => error_of(reply),
            Failure::NotDone(error) | Failure::Unknown(error) => error,
        }
    }
}

/// Where something is sent that does not go where its slot is thought to be.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub address: String,
    /// Whether the slot is still moving to there, so that each command must begin with ASKING.
    pub asking: bool,
}

/// What is done about something that was certainly not executed.
#[derive(Debug)]
pub(crate) struct Again {
    /// Where to; where the slot is, if this is `None`.
    pub to: Option<Target>,
    /// What the caller gets if there is no next time.
    pub why: Error,
    /// What happened.
    pub cause: Cause,
}

/// Why something was not executed, or may be executed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The slot is elsewhere.
    Moved,
    /// The key is elsewhere, while its slot is on the way.
    Asked,
    /// The node is starting, or the slot is on the way.
    Busy,
    /// The node is not in charge, or its cluster is not whole.
    NotInCharge,
    /// Nothing could be sent.
    Unreachable,
    /// It was sent, and changes nothing.
    LostRead,
}

impl Again {
    /// After a node said this of a command; `Err` if that was its last word.
    pub fn after(verdict: Verdict) -> Result<Again, kstone_ports::keys::Reply> {
        let redirect = |address: String, asking| Again {
            why: Error::Unavailable(format!(
                "the slot is at {address} (the URL of a cluster begins with redis-cluster://)"
            )),
            to: Some(Target { address, asking }),
            cause: if asking { Cause::Asked } else { Cause::Moved },
        };
        match verdict {
            Verdict::Done(reply) => Err(reply),
            Verdict::Moved(address) => Ok(redirect(address, false)),
            Verdict::Ask(address) => Ok(redirect(address, true)),
            Verdict::NotNow(error) => {
                let cause = match error.code() {
                    "TRYAGAIN" | "LOADING" => Cause::Busy,
                    _ => Cause::NotInCharge,
                };
                Ok(Again { to: None, why: error_of(error), cause })
            }
        }
    }

    /// After nothing was sent.
    pub fn unsent(why: String) -> Again {
        Again { to: None, why: Error::Unavailable(why), cause: Cause::Unreachable }
    }

    /// After the reply to what only reads was lost.
    pub fn lost_read(address: &str, why: &str) -> Again {
        let why = Error::Unavailable(format!("{address} did not answer: {why}"));
        Again { to: None, why, cause: Cause::LostRead }
    }
}

/// The servers of one store.
#[derive(Debug)]
pub(crate) struct Store {
    pub address: Address,
    pub options: RemoteOptions,
    nodes: Mutex<HashMap<String, Arc<Node>>>,
    slots: Mutex<Arc<Slots>>,
    /// Whether a node kept silent since the cluster was last asked. Nobody says MOVED for a node that
    /// hangs, so the next call asks whether another has taken its place.
    is_doubtful: AtomicBool,
    /// Held by who asks the cluster for its slots. How often that was done: each time another node
    /// comes first, because one that is cut off from the others goes on telling what was.
    asked: tokio::sync::Mutex<usize>,
}

impl Store {
    /// A store that nobody has connected to yet.
    pub fn new(address: Address, options: RemoteOptions) -> Store {
        let store = Store {
            address,
            options,
            nodes: Mutex::new(HashMap::new()),
            slots: Mutex::new(Arc::default()),
            is_doubtful: AtomicBool::new(false),
            asked: tokio::sync::Mutex::default(),
        };
        if !store.address.is_cluster {
            let only = store.address.seeds.first().cloned().unwrap_or_default();
            *store.slots.lock() = Arc::new(Slots::all_at(store.node(only)));
        }
        store
    }

    /// The node at an address.
    pub fn node(&self, address: String) -> Arc<Node> {
        let new = || Arc::new(Node::new(address.clone(), &self.address, &self.options));
        Arc::clone(self.nodes.lock().entry(address.clone()).or_insert_with(new))
    }

    /// Who is thought to have which slot, after the cluster was asked at least once.
    pub async fn slots(&self) -> Result<Arc<Slots>> {
        let slots = Arc::clone(&self.slots.lock());
        if slots.version > 0 && !self.is_doubtful.swap(false, Ordering::Relaxed) {
            return Ok(slots);
        }
        match self.refresh(slots.version).await {
            // What was is a better guess than nothing.
            Err(error) if slots.version == 0 => Err(error),
            _ => Ok(Arc::clone(&self.slots.lock())),
        }
    }

    /// A node kept silent: what [`lost`] says, and the next call finds out whether it is replaced.
    pub fn lost(&self, address: &str, why: &str) -> Error {
        self.is_doubtful.store(true, Ordering::Relaxed);
        lost(address, why)
    }

    /// Asks the cluster who has which slot, unless somebody did since the answer with this version.
    ///
    /// # Errors
    /// If no node of the cluster gives an answer.
    pub async fn refresh(&self, outdated: u64) -> Result<()> {
        if !self.address.is_cluster {
            return Ok(());
        }
        let mut asked = self.asked.lock().await;
        let known = Arc::clone(&self.slots.lock());
        if known.version > outdated {
            return Ok(());
        }
        let masters = known.masters().iter().map(|it| &it.address);
        let mut candidates: Vec<&String> = masters.chain(&known.replicas).collect();
        candidates.extend(&self.address.seeds);
        candidates.sort_unstable();
        candidates.dedup();
        let first = *asked % candidates.len().max(1);
        candidates.rotate_left(first);
        *asked += 1;
        let mut question = Pipeline::with_capacity(1);
        question.add_command(cmd("CLUSTER").arg("SLOTS").to_owned());
        let mut why = "no node is known".to_owned();
        for address in candidates {
            let node = self.node(address.clone());
            let answer = timeout(self.options.connect_timeout, node.send(&question)).await;
            let ranges = match answer {
                Ok(Ok(replies)) => match replies.first() {
                    Some(redis::Value::ServerError(error)) => Err(error.to_string()),
                    reply => reply
                        .and_then(|it| Ranges::of(it, address))
                        .ok_or_else(|| "it knows of no slots".to_owned()),
                },
                Ok(Err(NoReply::NotSent(why) | NoReply::Lost(why))) => Err(why),
                Err(_) => Err("no answer in time".to_owned()),
            };
            match ranges {
                Ok(ranges) => {
                    let new = Slots::of(known.version + 1, ranges, |it| self.node(it));
                    self.forget_others(&new);
                    *self.slots.lock() = Arc::new(new);
                    return Ok(());
                }
                Err(problem) => why = format!("{address}: {problem}"),
            }
        }
        Err(Error::Unavailable(format!("{} does not answer: {why}", self.name())))
    }

    /// Drops the nodes that are no masters, and with them their connections.
    fn forget_others(&self, slots: &Slots) {
        self.nodes.lock().retain(|_, node| slots.masters().iter().any(|it| Arc::ptr_eq(it, node)));
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        self.address.without_password()
    }

    /// Makes ready for the next attempt; `false` if there should be none.
    pub async fn prepare(&self, version: u64, again: &Again, patience: &mut Patience) -> bool {
        if !self.address.is_cluster {
            // One server that cannot be reached, or that is a replica, stays so for longer than a call.
            return matches!(again.cause, Cause::Busy | Cause::LostRead)
                && patience.after_refusal().await;
        }
        let may_go_on = match again.cause {
            Cause::Moved | Cause::Asked => patience.after_redirect().await,
            _ => patience.after_refusal().await,
        };
        let is_outdated = !matches!(again.cause, Cause::Asked | Cause::Busy);
        // A cluster of which nobody answers has no more to tell.
        may_go_on && (!is_outdated || self.refresh(version).await.is_ok())
    }

    /// Executes commands, each for itself: those of one slot in order. The answer to each is at its
    /// position.
    pub async fn run(&self, jobs: &[Job<'_>]) -> Vec<Result<Value, Failure>> {
        let mut done: Vec<Option<Result<Value, Failure>>> = vec![None; jobs.len()];
        let mut open: Vec<(usize, Option<Target>)> = (0..jobs.len()).map(|at| (at, None)).collect();
        let mut patience = Patience::of(self.options.patience);
        while !open.is_empty() {
            let slots = match self.slots().await {
                Ok(slots) => slots,
                Err(error) => {
                    finish(&mut done, open.into_iter().map(|(at, _)| (at, error.clone())));
                    break;
                }
            };
            let mut again = self.round(jobs, &slots, open, &mut done).await;
            again.sort_unstable_by_key(|(at, _)| *at);
            // One that has to wait holds up the others: they may be on its slot, and come after it.
            let waits = |it: &&(usize, Again)| it.1.to.is_none();
            let first = again.iter().find(waits).or_else(|| again.first());
            let is_unknown =
                |it: &Option<Result<Value, Failure>>| matches!(it, Some(Err(Failure::Unknown(_))));
            let is_any_unknown = done.iter().any(is_unknown);
            if is_any_unknown {
                self.is_doubtful.store(true, Ordering::Relaxed);
            }
            let goes_on = match first {
                None => break,
                // The call fails as a whole, so nothing more should be done of it.
                Some(_) if is_any_unknown => false,
                Some((_, again)) => self.prepare(slots.version, again, &mut patience).await,
            };
            if !goes_on {
                finish(&mut done, again.into_iter().map(|(at, again)| (at, again.why)));
                break;
            }
            open = again.into_iter().map(|(at, again)| (at, again.to)).collect();
        }
        let never = || Err(Failure::NotDone(Error::Unavailable("it was not sent".to_owned())));
        done.into_iter().map(|it| it.unwrap_or_else(never)).collect()
    }

    /// Sends commands to their nodes, all nodes at once. Notes what is done, and returns the rest.
    async fn round(
        &self,
        jobs: &[Job<'_>],
        slots: &Slots,
        open: Vec<(usize, Option<Target>)>,
        done: &mut [Option<Result<Value, Failure>>],
    ) -> Vec<(usize, Again)> {
        let mut again = Vec::new();
        let mut parts: Vec<Part> = Vec::new();
        for (at, target) in open {
            let Some(job) = jobs.get(at) else { continue };
            let asking = target.as_ref().is_some_and(|it| it.asking);
            let node = match target {
                Some(target) => Some(self.node(target.address)),
                None => slots.owner(job.command.slot).cloned(),
            };
            let Some(node) = node else {
                let why = "CLUSTERDOWN no node of the cluster has the slot".to_owned();
                again.push((at, Again::unsent(why)));
                continue;
            };
            let is_same = |it: &&mut Part| Arc::ptr_eq(&it.node, &node) && it.asking == asking;
            let part = match parts.iter_mut().find(is_same) {
                Some(part) => part,
                None => {
                    parts.push(Part { node, asking, jobs: Vec::new(), message: Pipeline::new() });
                    let Some(part) = parts.last_mut() else { continue };
                    part
                }
            };
            if asking {
                part.message.add_command(cmd("ASKING"));
            }
            part.message.add_command(packed(job.given));
            part.jobs.push(at);
        }
        let mut sending = JoinSet::new();
        let last = parts.pop();
        for part in parts {
            sending.spawn(part.send());
        }
        // Mostly there is only one, and it needs no task of its own.
        let mut sent = match last {
            Some(part) => vec![part.send().await],
            None => Vec::new(),
        };
        while let Some(ended) = sending.join_next().await {
            match ended {
                Ok(one) => sent.push(one),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
        for (part, replies) in sent {
            part.sort(jobs, replies, done, &mut again);
        }
        again
    }
}

/// Notes that these are not done.
fn finish(done: &mut [Option<Result<Value, Failure>>], rest: impl Iterator<Item = (usize, Error)>) {
    for (at, error) in rest {
        if let Some(slot) = done.get_mut(at) {
            *slot = Some(Err(Failure::NotDone(error)));
        }
    }
}

/// What was sent to a node may have been executed.
pub(crate) fn lost(address: &str, why: &str) -> Error {
    Error::OutcomeUnknown(format!("{address} did not answer: {why}"))
}
