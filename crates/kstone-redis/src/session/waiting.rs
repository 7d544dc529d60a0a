//! Blocked commands: BLPOP and similar, WAITAOF.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use kstone_core::Durable;
use tokio::sync::oneshot;

use crate::command_spec::{Block, Request};
use crate::fault::Fault;
use crate::reply::{Out, write_value};
use crate::server::Server;
use crate::server::blocked::{Served, Waiter};
use crate::session::Session;

/// A command that waits for a key or for the disk. Await [`Waiting::served`], and after
/// [`Waiting::left`] end the wait with [`Waiting::time_out`]. Dropping it ends the wait.
#[derive(Debug)]
pub struct Waiting {
    pub(super) server: Arc<Server>,
    waiter: Arc<Waiter>,
    receiver: oneshot::Receiver<Served>,
    /// When to give up, in milliseconds since 1970.
    pub(super) until_ms: Option<u64>,
    /// What ends the wait if the command is not served.
    durable: Option<Durable>,
}

/// How long it is until then, one millisecond added: `until_ms` was counted from a clock reading
/// that was rounded down, and no wait may end early.
pub(super) fn left_of(server: &Server, until_ms: Option<u64>) -> Option<Duration> {
    let now_ms = server.engine.now_ms();
    until_ms.map(|at_ms| Duration::from_millis(at_ms.saturating_add(1).saturating_sub(now_ms)))
}

impl Waiting {
    /// How long to wait at most; `None` is for ever.
    pub fn left(&self) -> Option<Duration> {
        left_of(&self.server, self.until_ms)
    }

    /// Waits until the command is served, and writes its reply. May be cancelled and called again.
    pub async fn served(&mut self, session: &mut Session, out: Out<'_>) {
        let Waiting { server, waiter, receiver, durable, .. } = self;
        let served = poll_fn(|context| {
            if let Poll::Ready(served) = Pin::new(&mut *receiver).poll(context) {
                return Poll::Ready(served);
            }
            if let Some(durable) = durable
                && let Poll::Ready(synced) = Pin::new(durable).poll(context)
                && server.blocked.give_up(waiter)
            {
                let reply = match synced {
                    Ok(()) => waiter.on_timeout(),
                    Err(error) => Fault::from(error).into(),
                };
                return Poll::Ready(Ok(Served { reply, seq: 0 }));
            }
            Poll::Pending
        });
        // The sender is dropped unused only if serving failed halfway.
        let Ok(served) = served.await else { return out.null() };
        session.note_seq(served.seq);
        write_value(&served.reply, out);
    }

    /// Ends the wait when its time is over: writes the reply for a timeout, or the command's own
    /// reply if it has just been served.
    pub async fn time_out(mut self, session: &mut Session, out: Out<'_>) {
        if self.server.blocked.give_up(&self.waiter) {
            write_value(&self.waiter.on_timeout(), out);
        } else {
            self.served(session, out).await;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.server.blocked.give_up(&self.waiter);
    }
}

impl Session {
    /// Begins to wait. The keys of the command are still locked.
    pub(super) fn wait(&self, request: Request<'_>, mut block: Block) -> Waiting {
        let (until_ms, again) = (block.until_ms, block.again.take());
        let durable = block.durable.take();
        let args = again.unwrap_or_else(|| request.args.iter().map(|arg| arg.to_vec()).collect());
        let (server, client) = (Arc::clone(&self.server), self.client.clone());
        let (waiter, receiver) = server.blocked.add(request.command, args, client, block);
        Waiting { server, waiter, receiver, until_ms, durable }
    }
}
