//! CLIENT TRACKING, CACHING, TRACKINGINFO and GETREDIR.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::fault::{Fault, Result};
use crate::server::clients::state;
use crate::server::tracking::Mode;

pub(super) fn tracking(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let mut mode = Mode::default();
    let mut rest = given.get(3..).unwrap_or_default();
    while let [option, more @ ..] = rest {
        rest = more;
        match (&*option.to_ascii_lowercase(), more) {
            (b"redirect", [id, more @ ..]) => {
                rest = more;
                if mode.redirect != 0 {
                    return Err(Fault::fixed(
                        "ERR A client can only redirect to a single other client",
                    ));
                }
                let id = u64::try_from(args::integer(id)?).unwrap_or(0);
                if context.server.clients.get(id).is_none() {
                    return Err(Fault::fixed(
                        "ERR The client ID you want redirect to does not exist",
                    ));
                }
                mode.redirect = id;
            }
            (b"bcast", _) => mode.broadcast = true,
            (b"optin", _) => mode.opt_in = true,
            (b"optout", _) => mode.opt_out = true,
            (b"noloop", _) => mode.no_loop = true,
            (b"prefix", [prefix, more @ ..]) => {
                rest = more;
                mode.prefixes.push(prefix.to_vec());
            }
            _ => return Err(Fault::SYNTAX),
        }
    }
    let switch = given.get(2).copied().unwrap_or_default();
    if args::is(switch, "off") {
        context.server.tracking.stop(&context.client.peer);
        context.client.tracking = None;
    } else if args::is(switch, "on") {
        start(context, mode)?;
    } else {
        return Err(Fault::SYNTAX);
    }
    context.out.reply_ok()
}

fn start(context: &mut Context<'_, '_>, mut mode: Mode) -> Result<()> {
    const SWITCHED: &str = "before disabling tracking for this client, and then re-enabling it \
                            with a different mode.";
    if !mode.broadcast && !mode.prefixes.is_empty() {
        return Err(Fault::fixed("ERR PREFIX option requires BCAST mode to be enabled"));
    }
    let before = context.client.tracking.as_deref();
    if before.is_some_and(|before| before.broadcast != mode.broadcast) {
        return Err(Fault::new(format!("ERR You can't switch BCAST mode on/off {SWITCHED}")));
    }
    if mode.broadcast && (mode.opt_in || mode.opt_out) {
        return Err(Fault::fixed("ERR OPTIN and OPTOUT are not compatible with BCAST"));
    }
    if mode.opt_in && mode.opt_out {
        return Err(Fault::fixed("ERR You can't specify both OPTIN mode and OPTOUT mode"));
    }
    let is_other = |before: &Mode| mode.opt_in && before.opt_out || mode.opt_out && before.opt_in;
    if before.is_some_and(is_other) {
        return Err(Fault::new(format!("ERR You can't switch OPTIN/OPTOUT mode {SWITCHED}")));
    }
    if mode.broadcast {
        let had = before.map(|before| before.prefixes.clone()).unwrap_or_default();
        check_prefixes(&had, &mode.prefixes)?;
        if mode.prefixes.is_empty() && had.is_empty() {
            mode.prefixes.push(Vec::new());
        }
        mode.prefixes.extend(had);
        mode.prefixes.sort();
        mode.prefixes.dedup();
    }
    context.server.tracking.start(&context.client.peer, &mode);
    context.client.tracking = Some(Box::new(mode));
    Ok(())
}

/// No prefix of a client may be the beginning of another of its prefixes.
fn check_prefixes(had: &[Vec<u8>], new: &[Vec<u8>]) -> Result<()> {
    let overlap = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
    let clash = |one: &[u8], other: &[u8], which: &str| {
        let (one, other) = (args::shown(one).into_owned(), args::shown(other).into_owned());
        Err(Fault::new(format!(
            "ERR Prefix '{one}' overlaps with {which} prefix '{other}'. Prefixes for a single \
             client must not overlap."
        )))
    };
    for (place, prefix) in new.iter().enumerate() {
        if let Some(other) = had.iter().find(|other| overlap(prefix, other)) {
            return clash(prefix, other, "an existing");
        }
        let mut later = new.iter().skip(place + 1);
        if let Some(other) = later.find(|other| overlap(prefix, other)) {
            return clash(prefix, other, "another provided");
        }
    }
    Ok(())
}

pub(super) fn caching(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let Some(mode) = &mut context.client.tracking else {
        return Err(Fault::fixed(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
             or OPTOUT mode enabled",
        ));
    };
    let switch = given.get(2).copied().unwrap_or_default();
    if args::is(switch, "yes") {
        if !mode.opt_in {
            return Err(Fault::fixed(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
        mode.caching = Some(true);
    } else if args::is(switch, "no") {
        if !mode.opt_out {
            return Err(Fault::fixed(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
        mode.caching = Some(false);
    } else {
        return Err(Fault::SYNTAX);
    }
    context.out.reply_ok()
}

pub(super) fn redirect(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let redirect = context.client.tracking.as_ref().map(|mode| mode.redirect as i64);
    context.out.reply_integer(redirect.unwrap_or(-1))
}

pub(super) fn info(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let mode = context.client.tracking.as_deref();
    let off = Mode::default();
    let shown = mode.unwrap_or(&off);
    let mut flags = vec![if mode.is_some() { "on" } else { "off" }];
    let more = [
        (shown.broadcast, "bcast"),
        (shown.opt_in, "optin"),
        (shown.opt_in && shown.caching == Some(true), "caching-yes"),
        (shown.opt_out, "optout"),
        (shown.opt_out && shown.caching == Some(false), "caching-no"),
        (shown.no_loop, "noloop"),
        (context.client.peer.is(state::BROKEN_REDIRECT), "broken_redirect"),
    ];
    flags.extend(more.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| *name));
    let out = &mut *context.out;
    out.map(3);
    out.bulk(b"flags");
    out.set(flags.len());
    for flag in flags {
        out.bulk(flag.as_bytes());
    }
    out.bulk(b"redirect");
    out.integer(mode.map_or(-1, |mode| mode.redirect as i64));
    out.bulk(b"prefixes");
    let prefixes: Vec<&[u8]> = shown.prefixes.iter().map(Vec::as_slice).collect();
    out.reply_bulks(&prefixes)
}
