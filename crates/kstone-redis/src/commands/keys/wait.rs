//! WAIT and WAITAOF: wait until a client's writes have reached replicas or the disk.

use crate::args;
use crate::command_spec::{Block, Command, Flow, Keys, Run, TimeoutReply, flag::*};
use crate::fault::{Fault, Result};
use crate::reply::{Out, Value, write_value};
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
    run: Run::Session(waitaof),
    subcommands: &[],
};

/// How a command that waits would wait, given for how long, in milliseconds; 0 is for ever.
fn block(session: &Session, timeout: &[u8], on_timeout: TimeoutReply) -> Result<Block> {
    let ms = match args::parse_integer(timeout) {
        None => return Err(Fault::fixed("ERR timeout is not an integer or out of range")),
        Some(ms) => u64::try_from(ms).map_err(|_| Fault::NEGATIVE_TIMEOUT)?,
    };
    let until_ms = (ms > 0).then(|| session.server.engine.now_ms().saturating_add(ms));
    Ok(Block { on_timeout, ..Block::on(Vec::new(), until_ms) })
}

/// Waits for replicas. There are none, and none can come, so who wants one waits until its time is
/// over.
fn wait(session: &mut Session, args: &[&[u8]], out: Out<'_>) -> Result<Flow> {
    let [_, replicas, timeout] = args else { return Err(Fault::SYNTAX) };
    let replicas = args::integer(replicas)?;
    let block = block(session, timeout, TimeoutReply::Fixed(Value::Integer(0)))?;
    if replicas > 0 {
        return Ok(Flow::Block(block));
    }
    out.reply_integer(0)
}

/// Waits until everything that this client wrote is on disk here, and on that of replicas.
fn waitaof(session: &mut Session, args: &[&[u8]], out: Out<'_>) -> Result<Flow> {
    let [_, local, replicas, timeout] = args else { return Err(Fault::SYNTAX) };
    let local = args::integer(local)?;
    if !(0..=1).contains(&local) {
        return Err(Fault::fixed("ERR value is out of range, must be between 0 and 1"));
    }
    let replicas = args::integer(replicas)?;
    if replicas < 0 {
        return Err(Fault::MUST_BE_POSITIVE);
    }
    let (engine, seq) = (&session.server.engine, session.seq());
    let mut block = block(session, timeout, TimeoutReply::Acknowledged(engine.clone(), seq))?;
    if replicas == 0 {
        if local == 0 || engine.durable_seq() >= seq {
            write_value(&block.on_timeout.reply(), out);
            return Ok(Flow::Done);
        }
        // The disk is asked now, whatever the server's own interval is.
        block.durable = Some(engine.durable(seq));
    }
    Ok(Flow::Block(block))
}
