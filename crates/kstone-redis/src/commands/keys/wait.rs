//! WAIT and WAITAOF: until what a client wrote is where it wants it.

use std::future::Future;
use std::pin::Pin;

use crate::args;
use crate::command::{Command, Flow, Keys, Run, flag::*};
use crate::fault::{Fault, Result};
use crate::reply::Sink;
use crate::session::Session;

pub(super) const WAIT: Command = Command {
    name: "wait",
    arity: 3,
    flags: NOSCRIPT | BLOCKING,
    keys: Keys::None,
    categories: "connection",
    run: Run::Session(wait),
    subcommands: &[],
};

pub(super) const WAITAOF: Command = Command {
    name: "waitaof",
    arity: 4,
    flags: NOSCRIPT | BLOCKING,
    keys: Keys::None,
    categories: "connection",
    run: Run::Waiting(waitaof),
    subcommands: &[],
};

/// A time to wait, in milliseconds.
fn check_timeout(arg: &[u8]) -> Result<()> {
    match args::parse_integer(arg) {
        None => Err(Fault::fixed("ERR timeout is not an integer or out of range")),
        Some(ms) if ms < 0 => Err(Fault::NEGATIVE_TIMEOUT),
        Some(_) => Ok(()),
    }
}

/// There are no replicas, and none can come: the answer is known at once, so nobody waits for it.
fn wait(_: &mut Session, args: &[&[u8]], out: &mut (dyn Sink + Send)) -> Result<Flow> {
    let [_, replicas, timeout] = args else { return Err(Fault::SYNTAX) };
    args::integer(replicas)?;
    check_timeout(timeout)?;
    out.integer(0);
    Ok(Flow::Done)
}

/// Waits until everything that this client wrote is on disk. That takes as long as one write to the
/// disk, so the given time is not waited for.
fn waitaof<'a>(
    session: &'a mut Session,
    args: &'a [&'a [u8]],
    out: &'a mut (dyn Sink + Send),
) -> Pin<Box<dyn Future<Output = Result<Flow>> + Send + 'a>> {
    Box::pin(async move {
        let [_, local, replicas, timeout] = args else { return Err(Fault::SYNTAX) };
        let local = args::integer(local)?;
        if !(0..=1).contains(&local) {
            return Err(Fault::fixed("ERR value is out of range, must be between 0 and 1"));
        }
        if args::integer(replicas)? < 0 {
            return Err(Fault::MUST_BE_POSITIVE);
        }
        check_timeout(timeout)?;
        let (engine, seq) = (session.server.engine.clone(), session.seq());
        if local == 1 {
            engine.durable(seq).await?;
        }
        out.array(2);
        out.integer(i64::from(engine.durable_seq() >= seq));
        out.integer(0);
        Ok(Flow::Done)
    })
}
