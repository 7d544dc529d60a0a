//! TIME, LOLWUT, SAVE and its variants, LASTSAVE, SHUTDOWN.

use std::sync::atomic::Ordering;

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};

pub(super) fn time(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let now_ms = context.txn.now_ms();
    let micros = (now_ms % 1000) * 1000;
    context
        .out
        .reply_bulks(&[(now_ms / 1000).to_string().as_bytes(), micros.to_string().as_bytes()])
}

pub(super) fn lolwut(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let drawing =
        "  _____\n /     \\\n/_______\\   the keystone\n\\       /\n \\     /    Redis ver. ";
    let text = format!("{drawing}{}\n  \\___/\n", super::REDIS_VERSION);
    context.out.reply_text(&text)
}

/// Everything that was acknowledged is in the log: saving is waiting until it is on disk.
pub(super) fn save(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    sync(context)?;
    context.out.reply_ok()
}

pub(super) fn background_save(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    match given.get(1) {
        None => {}
        Some(option) if args::is(option, "schedule") && given.len() == 2 => {}
        Some(_) => return Err(Fault::SYNTAX),
    }
    sync(context)?;
    context.out.reply_simple("Background saving started")
}

/// The log is rewritten all the time, by compaction.
pub(super) fn rewrite(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.out.reply_simple("Background append only file rewriting started")
}

pub(super) fn last_save(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let saved_ms = context.server.saved_ms.load(Ordering::Relaxed);
    context.out.reply_integer((saved_ms / 1000) as i64)
}

fn sync(context: &Context<'_, '_>) -> Result<()> {
    context.server.engine.sync()?;
    context.server.saved_ms.store(context.txn.now_ms(), Ordering::Relaxed);
    Ok(())
}

pub(super) fn shutdown(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    for option in given.iter().skip(1) {
        match &*option.to_ascii_lowercase() {
            b"save" | b"nosave" | b"now" | b"force" => {}
            b"abort" if given.len() == 2 => {
                return Err(Fault::fixed("ERR No shutdown in progress."));
            }
            _ => return Err(Fault::SYNTAX),
        }
    }
    // What was acknowledged is kept whatever the client says: this is no cache.
    sync(context)?;
    match &*context.server.shutdown_hook.lock() {
        Some(stop) => {
            (stop.0)();
            Ok(Flow::Close)
        }
        None => Err(Fault::fixed("ERR Errors trying to SHUTDOWN. Check logs.")),
    }
}
