//! What one node is sent at once: [`Part`].

use std::sync::Arc;

use kstone_ports::keys::Value;
use redis::Pipeline;

use crate::node::{NoReply, Node};
use crate::reads::only_reads;
use crate::reply::verdict;
use crate::store::{Again, Failure, Job, lost};

/// The commands of one round that go to one node as one message.
#[derive(Debug)]
pub(crate) struct Part {
    pub node: Arc<Node>,
    /// Whether each command begins with ASKING.
    pub asking: bool,
    /// Their positions among all.
    pub jobs: Vec<usize>,
    pub message: Pipeline,
}

impl Part {
    pub async fn send(self) -> (Part, Result<Vec<redis::Value>, NoReply>) {
        let replies = self.node.send(&self.message).await;
        (self, replies)
    }

    /// Notes what is done, and what is to be sent again.
    pub fn sort(
        self,
        jobs: &[Job<'_>],
        replies: Result<Vec<redis::Value>, NoReply>,
        done: &mut [Option<Result<Value, Failure>>],
        again: &mut Vec<(usize, Again)>,
    ) {
        // Every other reply is that to ASKING.
        let (skip, step) = if self.asking { (1, 2) } else { (0, 1) };
        let mut replies = replies.map(|all| all.into_iter().skip(skip).step_by(step));
        for at in self.jobs {
            let Some(job) = jobs.get(at) else { continue };
            let outcome = match &mut replies {
                Ok(replies) => {
                    let reply = replies.next().unwrap_or_default();
                    let verdict = verdict(reply, job.given, &job.command, &self.node.address);
                    match Again::after(verdict) {
                        Err(reply) => Ok(reply.map_err(Failure::Reply)),
                        Ok(again) => Err(again),
                    }
                }
                Err(NoReply::NotSent(why)) => Err(Again::unsent(why.clone())),
                Err(NoReply::Lost(why)) if only_reads(&job.command) => {
                    Err(Again::lost_read(&self.node.address, why))
                }
                Err(NoReply::Lost(why)) => Ok(Err(Failure::Unknown(lost(&self.node.address, why)))),
            };
            match outcome {
                Ok(outcome) => {
                    if let Some(slot) = done.get_mut(at) {
                        *slot = Some(outcome);
                    }
                }
                Err(one) => again.push((at, one)),
            }
        }
    }
}
