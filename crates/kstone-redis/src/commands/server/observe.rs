//! SLOWLOG, LATENCY and MONITOR.

use std::sync::Arc;

use crate::args;
use crate::command_spec::{Caller, Command, Context, Flow, Run, flag::*};
use crate::commands;
use crate::fault::{Fault, Result};
use crate::server::config;

const FLAGS: u32 = ADMIN | NO_DATA;
const LATENCY_FLAGS: u32 = FLAGS | NOSCRIPT;
pub(super) const SLOWLOG: &[Command] = &[
    Command::new("slowlog|get", -2, FLAGS, "", Run::Keys(slowlog_get)),
    Command::new("slowlog|help", 2, NO_DATA, "", Run::Keys(slowlog_help)),
    Command::new("slowlog|len", 2, FLAGS, "", Run::Keys(slowlog_len)),
    Command::new("slowlog|reset", 2, FLAGS, "", Run::Keys(slowlog_reset)),
];

pub(super) const LATENCY: &[Command] = &[
    Command::new("latency|doctor", 2, LATENCY_FLAGS, "", Run::Keys(latency_doctor)),
    Command::new("latency|graph", 3, LATENCY_FLAGS, "", Run::Keys(latency_graph)),
    Command::new("latency|help", 2, NO_DATA, "", Run::Keys(latency_help)),
    Command::new("latency|histogram", -2, LATENCY_FLAGS, "", Run::Keys(latency_histogram)),
    Command::new("latency|history", 3, LATENCY_FLAGS, "", Run::Keys(latency_history)),
    Command::new("latency|latest", 2, LATENCY_FLAGS, "", Run::Keys(latency_latest)),
    Command::new("latency|reset", -2, LATENCY_FLAGS, "", Run::Keys(latency_reset)),
];

pub(super) fn monitor(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    if context.caller != Caller::Client {
        return Err(Fault::fixed("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    context.server.monitors.add(&Arc::clone(&context.client.peer));
    context.out.reply_ok()
}

fn slowlog_get(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let most = match given.get(2..).unwrap_or_default() {
        [] => 10,
        [count] => match args::parse_integer(count) {
            Some(-1) => usize::MAX,
            Some(count @ 0..) => usize::try_from(count).unwrap_or(usize::MAX),
            _ => return Err(Fault::fixed("ERR count should be greater than or equal to -1")),
        },
        _ => return Err(commands::unknown_subcommand(given)),
    };
    let entries = context.server.slowlog.newest(most);
    let out = &mut *context.out;
    out.array(entries.len());
    for entry in entries {
        out.array(6);
        out.integer(entry.id as i64);
        out.integer((entry.at_ms / 1000) as i64);
        out.integer(entry.usec as i64);
        let args: Vec<&[u8]> = entry.args.iter().map(Vec::as_slice).collect();
        out.bulks(&args);
        out.bulk(entry.address.as_bytes());
        out.bulk(&entry.client);
    }
    Ok(Flow::Done)
}

fn slowlog_len(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.out.reply_integer(context.server.slowlog.len() as i64)
}

fn slowlog_reset(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.server.slowlog.clear();
    context.out.reply_ok()
}

fn slowlog_help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let lines = [
        ("GET [<count>]", "The newest entries, 10 if not told otherwise, -1 for all."),
        ("LEN", "How many entries there are."),
        ("RESET", "Forget them."),
    ];
    commands::help(context, "SLOWLOG", &lines)
}

fn latency_latest(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let events = context.server.latency.all();
    context.out.array(events.len());
    for (name, event) in events {
        let (at, took) = event.samples.back().copied().unwrap_or_default();
        context.out.array(4);
        context.out.bulk(name.as_bytes());
        context.out.integer(at as i64);
        context.out.integer(took as i64);
        context.out.integer(event.worst_ms as i64);
    }
    Ok(Flow::Done)
}

fn latency_history(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let name = args::shown(given.get(2).copied().unwrap_or_default());
    let event = context.server.latency.get(&name).unwrap_or_default();
    context.out.array(event.samples.len());
    for (at, took) in event.samples {
        context.out.array(2);
        context.out.integer(at as i64);
        context.out.integer(took as i64);
    }
    Ok(Flow::Done)
}

fn latency_reset(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let names = given.get(2..).unwrap_or_default();
    let latency = &context.server.latency;
    let reset = match names {
        [] => latency.reset(None),
        names => names.iter().map(|name| latency.reset(Some(&args::shown(name)))).sum(),
    };
    context.out.reply_integer(reset as i64)
}

fn latency_graph(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let name = args::shown(given.get(2).copied().unwrap_or_default());
    let Some(event) = context.server.latency.get(&name) else {
        return Err(Fault::new(format!("ERR No samples available for event '{name}'")));
    };
    let took = |&(_, took): &(u64, u64)| took;
    let high = event.samples.iter().map(took).max().unwrap_or(0);
    let low = event.samples.iter().map(took).min().unwrap_or(0);
    let mut text = format!(
        "{name} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        event.worst_ms,
        "-".repeat(80)
    );
    for (at, took) in event.samples {
        let ago = context.txn.now_ms() / 1000 - at.min(context.txn.now_ms() / 1000);
        let bar = "#".repeat((took * 60 / high.max(1)) as usize);
        text.push_str(&format!("{ago:>6}s ago {took:>6} ms {bar}\n"));
    }
    context.out.reply_text(&text)
}

fn latency_doctor(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let events = context.server.latency.all();
    let is_off = context.server.config.number(config::LATENCY_THRESHOLD) == 0;
    let mut text = String::new();
    if events.is_empty() && is_off {
        text.push_str(
            "Latency is not watched. CONFIG SET latency-monitor-threshold <milliseconds> begins \
             to.\n",
        );
    } else if events.is_empty() {
        text.push_str("Nothing took longer than latency-monitor-threshold so far.\n");
    }
    for (name, event) in events {
        let samples = event.samples.len().max(1) as u64;
        let average = event.samples.iter().map(|(_, took)| took).sum::<u64>() / samples;
        text.push_str(&format!(
            "{name}: {samples} seconds with something slow, {average} ms on average, {} ms at \
             worst. SLOWLOG GET shows which commands.\n",
            event.worst_ms
        ));
    }
    context.out.reply_text(&text)
}

fn latency_histogram(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let names = given.get(2..).unwrap_or_default();
    let is_asked = |name: &str| {
        let parent = name.split('|').next().unwrap_or_default();
        names.is_empty() || names.iter().any(|have| args::is(have, name) || args::is(have, parent))
    };
    let mark = context.out.later();
    let mut shown = 0;
    for (place, command) in commands::each().enumerate() {
        let stats = context.server.stats.at(place);
        let Some(counts) = stats.and_then(|stats| stats.histogram()) else { continue };
        let calls: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        if calls == 0 || !is_asked(command.name) {
            continue;
        }
        shown += 1;
        context.out.bulk(command.name.as_bytes());
        context.out.map(2);
        context.out.bulk(b"calls");
        context.out.integer(calls as i64);
        context.out.bulk(b"histogram_usec");
        let buckets = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        context.out.map(buckets.clone().count());
        let mut so_far = 0i64;
        for (power, count) in buckets {
            so_far += i64::from(*count);
            context.out.integer(1i64 << power);
            context.out.integer(so_far);
        }
    }
    context.out.map_at(mark, shown);
    Ok(Flow::Done)
}

fn latency_help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let lines = [
        ("DOCTOR", "What was slow, in words."),
        ("GRAPH <event>", "An event's samples as a drawing."),
        ("HISTOGRAM [<command> ...]", "How long commands took."),
        ("HISTORY <event>", "An event's samples: when, and how many milliseconds."),
        ("LATEST", "The last sample of every event."),
        ("RESET [<event> ...]", "Forget events, all if none is named."),
    ];
    commands::help(context, "LATENCY", &lines)
}
