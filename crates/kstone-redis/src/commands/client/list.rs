//! CLIENT LIST, INFO and KILL.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};
use crate::server::clients::{Peer, state};

/// What CLIENT LIST and KILL call a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Normal,
    Pubsub,
    /// Masters and replicas: there are none, but for clients that see all commands.
    Replica,
    Master,
}

impl Type {
    fn parse(name: &[u8]) -> Result<Type> {
        match &*name.to_ascii_lowercase() {
            b"normal" => Ok(Type::Normal),
            b"pubsub" => Ok(Type::Pubsub),
            b"replica" | b"slave" => Ok(Type::Replica),
            b"master" => Ok(Type::Master),
            _ => Err(Fault::new(format!("ERR Unknown client type '{}'", args::shown(name)))),
        }
    }

    fn of(peer: &Peer) -> Type {
        if peer.is(state::PUBSUB) { Type::Pubsub } else { Type::Normal }
    }
}

pub(super) fn info(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let mut text = context.server.show_client(&context.client.peer);
    text.push('\n');
    context.out.reply_text(&text)
}

pub(super) fn list(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let server = context.server;
    let peers = match given.get(2..).unwrap_or_default() {
        [] => server.clients.all(),
        [option, name] if args::is(option, "type") => {
            let wanted = Type::parse(name)?;
            let mut peers = server.clients.all();
            peers.retain(|peer| Type::of(peer) == wanted);
            peers
        }
        [option, ids @ ..] if args::is(option, "id") && !ids.is_empty() => {
            let mut peers = Vec::new();
            for id in ids {
                let Some(id) = args::parse_integer(id) else {
                    return Err(Fault::fixed("ERR Invalid client ID"));
                };
                peers.extend(u64::try_from(id).ok().and_then(|id| server.clients.get(id)));
            }
            peers
        }
        _ => return Err(Fault::SYNTAX),
    };
    let mut text = String::new();
    for peer in peers {
        text.push_str(&server.show_client(&peer));
        text.push('\n');
    }
    context.out.reply_text(&text)
}

pub(super) fn kill(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let (mut id, mut kind, mut user) = (None, None, None);
    let (mut address, mut local_address) = (None, None);
    let mut skips_me = true;
    let is_old_form = given.len() == 3;
    if is_old_form {
        address = given.get(2).copied();
        skips_me = false;
    } else {
        for pair in given.get(2..).unwrap_or_default().chunks(2) {
            let [option, value] = pair else { return Err(Fault::SYNTAX) };
            match &*option.to_ascii_lowercase() {
                b"id" => match args::parse_integer(value) {
                    Some(wanted @ 1..) => id = Some(wanted.unsigned_abs()),
                    _ => return Err(Fault::fixed("ERR client-id should be greater than 0")),
                },
                b"type" => kind = Some(Type::parse(value)?),
                b"addr" => address = Some(*value),
                b"laddr" => local_address = Some(*value),
                b"user" => {
                    let name = args::shown(value).into_owned();
                    if context.server.acl.user(&name).is_none() {
                        return Err(Fault::new(format!("ERR No such user '{name}'")));
                    }
                    user = Some(name);
                }
                b"skipme" if args::is(value, "yes") => skips_me = true,
                b"skipme" if args::is(value, "no") => skips_me = false,
                _ => return Err(Fault::SYNTAX),
            }
        }
    }
    let (mut killed, mut is_me) = (0, false);
    for peer in context.server.clients.all() {
        let is_meant = address.is_none_or(|address| peer.address.as_bytes() == address)
            && local_address.is_none_or(|address| peer.local_address.as_bytes() == address)
            && kind.is_none_or(|kind| Type::of(&peer) == kind)
            && id.is_none_or(|id| peer.id == id)
            && user.as_ref().is_none_or(|user| *peer.user.lock() == *user)
            && !(skips_me && peer.id == context.client.id);
        if !is_meant {
            continue;
        }
        killed += 1;
        if peer.id == context.client.id {
            is_me = true;
        } else {
            // It is gone for everybody at once, and its door closes the connection.
            context.server.clients.remove(peer.id);
            // First, so that its door never sees the end of its wait as a reply.
            peer.kill();
            context.server.blocked.unblock(peer.id, true);
        }
    }
    if !is_old_form {
        context.out.integer(killed);
    } else if killed == 0 {
        return Err(Fault::fixed("ERR No such client"));
    } else {
        context.out.ok();
    }
    Ok(if is_me { Flow::Close } else { Flow::Done })
}
