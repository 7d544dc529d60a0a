//! Keys that are watched on a connection of their own: [`RemoteWatch`].

use std::sync::Arc;

use bytes::Bytes;
use kstone_ports::keys::{Reply, Value, Watch};
use kstone_ports::{Error, PortFuture, Result};
use redis::{Pipeline, cmd};

use crate::exec::{Executed, executed, message};
use crate::keys::{jobs_of_one_slot, torn};
use crate::node::{Connection, NoReply, Node, packed};
use crate::patience::Patience;
use crate::reads::only_reads;
use crate::reply::{Verdict, error_of, verdict};
use crate::store::{Again, Job, Store, Target, lost};

/// Keys of one slot that are watched until this is dropped, and its connection closed with it.
#[derive(Debug)]
pub(crate) struct RemoteWatch {
    node: Arc<Node>,
    connection: Connection,
    slot: Option<u16>,
    /// Whether the slot is still moving to this node.
    asking: bool,
}

/// Begins to watch `job`'s keys: its command is WATCH, whatever its name.
pub(crate) async fn watch(store: &Store, job: &Job<'_>) -> Result<RemoteWatch> {
    let mut command = cmd("WATCH");
    for key in job.given.iter().skip(1) {
        command.arg(key.as_ref());
    }
    let mut patience = Patience::of(store.options.patience);
    let mut target: Option<Target> = None;
    loop {
        let slots = store.slots().await?;
        let asking = target.as_ref().is_some_and(|it| it.asking);
        let node = match target {
            Some(target) => Some(store.node(target.address)),
            None => slots.owner(job.command.slot).cloned(),
        };
        let again = match node {
            None => Again::unsent("CLUSTERDOWN no node of the cluster has the slot".to_owned()),
            Some(node) => match begin(&node, &command, asking, job).await {
                Ok(connection) => {
                    return Ok(RemoteWatch { node, connection, slot: job.command.slot, asking });
                }
                Err(begun) => begun?,
            },
        };
        if !store.prepare(slots.version, &again, &mut patience).await {
            return Err(again.why);
        }
        target = again.to;
    }
}

/// A connection of a node that watches; or why not yet, or why not at all.
async fn begin(
    node: &Node,
    command: &redis::Cmd,
    asking: bool,
    job: &Job<'_>,
) -> Result<Connection, Result<Again>> {
    let unsent = |it| match it {
        NoReply::NotSent(why) => Ok(Again::unsent(why)),
        NoReply::Lost(why) => Ok(Again::lost_read(&node.address, &why)),
    };
    let connection = node.alone().await.map_err(unsent)?;
    let mut message = Pipeline::with_capacity(2);
    if asking {
        message.add_command(cmd("ASKING"));
    }
    message.add_command(command.clone());
    let reply = connection.send(&message).await.map_err(unsent)?.pop().unwrap_or_default();
    match Again::after(verdict(reply, job.given, &job.command, &node.address)) {
        Err(Ok(_)) => Ok(connection),
        Err(Err(error)) => Err(Err(error_of(error))),
        Ok(again) => Err(Ok(again)),
    }
}

impl RemoteWatch {
    async fn execute(&mut self, args: &[Bytes]) -> Result<Value> {
        let job = Job::of(args)?;
        if job.command.slot.is_some() && job.command.slot != self.slot {
            return Err(Error::Refused(
                "CROSSSLOT the command is on another slot than the watched keys".to_owned(),
            ));
        }
        let mut message = Pipeline::with_capacity(2);
        if self.asking {
            message.add_command(cmd("ASKING"));
        }
        message.add_command(packed(args));
        let reply = match self.connection.send(&message).await {
            Ok(mut replies) => replies.pop().unwrap_or_default(),
            Err(NoReply::NotSent(why)) => return Err(Error::Unavailable(why)),
            Err(NoReply::Lost(why)) if only_reads(&job.command) => {
                return Err(Error::Unavailable(why));
            }
            Err(NoReply::Lost(why)) => return Err(lost(&self.node.address, &why)),
        };
        match Again::after(verdict(reply, args, &job.command, &self.node.address)) {
            Err(reply) => reply.map_err(error_of),
            // The watch stays behind, so the caller has to begin again.
            Ok(again) => Err(Error::Conflict(format!("the watch is over: {}", again.why))),
        }
    }

    /// `None` if nothing was done and the caller has to begin again: a key changed, or the watch
    /// ended in another way.
    async fn end(self, commands: &[Vec<Bytes>]) -> Result<Option<Vec<Reply>>> {
        let jobs = jobs_of_one_slot(commands, self.slot)?;
        let message = message(&jobs, self.asking);
        let address = &self.node.address;
        let replies = match self.connection.send(&message).await {
            Ok(replies) => replies,
            Err(NoReply::NotSent(_)) => return Ok(None),
            Err(NoReply::Lost(why)) => return Err(lost(address, &why)),
        };
        match executed(replies, &jobs, self.slot, self.asking, address) {
            Executed::Replies(replies) => {
                self.node.give_back(self.connection);
                Ok(Some(replies))
            }
            Executed::Changed => {
                self.node.give_back(self.connection);
                Ok(None)
            }
            Executed::Not(Verdict::Done(Err(error))) => Err(error_of(error)),
            Executed::Not(_) => Ok(None),
            Executed::Torn(error) => Err(torn(&error)),
        }
    }
}

impl Watch for RemoteWatch {
    fn command<'a>(&'a mut self, args: &'a [Bytes]) -> PortFuture<'a, Value> {
        Box::pin(self.execute(args))
    }

    fn commit<'a>(
        self: Box<Self>,
        commands: &'a [Vec<Bytes>],
    ) -> PortFuture<'a, Option<Vec<Reply>>> {
        Box::pin((*self).end(commands))
    }
}
