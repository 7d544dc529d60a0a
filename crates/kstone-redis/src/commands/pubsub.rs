//! PUBLISH, SUBSCRIBE, PUBSUB and their variants.

use std::sync::Arc;

use crate::command_spec::{Command, Context, Flow, Run, flag::*};
use crate::fault::Result;
use crate::reply::{Sink, write_value};
use crate::server::pubsub::Topic;

const PUBLISH: u32 = PUBSUB | FAST | MAY_REPLICATE | NO_DATA;
const SUBSCRIBE: u32 = PUBSUB | NOSCRIPT | NO_DATA;
const LIST: u32 = PUBSUB | NO_DATA;

pub(super) const COMMANDS: &[Command] = &[
    Command::new("publish", 3, PUBLISH, "", Run::Keys(publish)),
    Command::new("spublish", 3, PUBLISH, "", Run::Keys(spublish)),
    Command::new("subscribe", -2, SUBSCRIBE, "", Run::Keys(subscribe)),
    Command::new("unsubscribe", -1, SUBSCRIBE, "", Run::Keys(unsubscribe)),
    Command::new("psubscribe", -2, SUBSCRIBE, "", Run::Keys(psubscribe)),
    Command::new("punsubscribe", -1, SUBSCRIBE, "", Run::Keys(punsubscribe)),
    Command::new("ssubscribe", -2, SUBSCRIBE, "", Run::Keys(ssubscribe)),
    Command::new("sunsubscribe", -1, SUBSCRIBE, "", Run::Keys(sunsubscribe)),
    Command::group(
        "pubsub",
        &[
            Command::new("pubsub|channels", -2, LIST, "", Run::Keys(channels)),
            Command::new("pubsub|help", 2, NO_DATA, "", Run::Keys(help)),
            Command::new("pubsub|numpat", 2, LIST, "", Run::Keys(patterns)),
            Command::new("pubsub|numsub", -2, LIST, "", Run::Keys(subscribers)),
            Command::new("pubsub|shardchannels", -2, LIST, "", Run::Keys(shard_channels)),
            Command::new("pubsub|shardnumsub", -2, LIST, "", Run::Keys(shard_subscribers)),
        ],
    ),
];

fn publish(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, channel, message] = args else { return Ok(Flow::Done) };
    let sent = context.server.publish(channel, message);
    write_sent(context, sent);
    Ok(Flow::Done)
}

fn spublish(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    let [_, channel, message] = args else { return Ok(Flow::Done) };
    let sent = context.server.pubsub.publish_to_shard(
        channel,
        message,
        context.server.delivery_limit(true),
    );
    write_sent(context, sent);
    Ok(Flow::Done)
}

/// A publisher that listens itself gets the message before the reply.
fn write_sent(context: &mut Context<'_, '_>, sent: usize) {
    if context.caller == crate::command_spec::Caller::Client {
        for message in context.client.peer.take() {
            write_value(&message, context.out);
        }
    }
    context.out.integer(sent as i64);
}

/// Tells a client that it has subscribed or unsubscribed. This is a message, not a reply.
fn confirm(out: &mut dyn Sink, word: &str, name: Option<&[u8]>, left: usize) {
    out.push(3);
    out.bulk(word.as_bytes());
    out.bulk_or_null(name);
    out.integer(left as i64);
}

fn begin(context: &mut Context<'_, '_>, args: &[&[u8]], topic: Topic) -> Result<Flow> {
    let peer = Arc::clone(&context.client.peer);
    for name in args.iter().skip(1) {
        let count = context.server.pubsub.subscribe(&peer, topic, name);
        confirm(context.out, topic.words().0, Some(name), count);
    }
    Ok(Flow::Done)
}

fn end(context: &mut Context<'_, '_>, args: &[&[u8]], topic: Topic) -> Result<Flow> {
    let peer = Arc::clone(&context.client.peer);
    let word = topic.words().1;
    let pubsub = &context.server.pubsub;
    if args.len() > 1 {
        for name in args.iter().skip(1) {
            let left = pubsub.unsubscribe(&peer, topic, name);
            confirm(context.out, word, Some(name), left);
        }
        return Ok(Flow::Done);
    }
    let gone = pubsub.unsubscribe_all(&peer, topic);
    for (name, left) in &gone {
        confirm(context.out, word, Some(name), *left);
    }
    if gone.is_empty() {
        let left = pubsub.unsubscribe(&peer, topic, b"");
        confirm(context.out, word, None, left);
    }
    Ok(Flow::Done)
}

fn subscribe(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    begin(context, args, Topic::Channel)
}

fn unsubscribe(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    end(context, args, Topic::Channel)
}

fn psubscribe(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    begin(context, args, Topic::Pattern)
}

fn punsubscribe(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    end(context, args, Topic::Pattern)
}

fn ssubscribe(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    begin(context, args, Topic::Shard)
}

fn sunsubscribe(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    end(context, args, Topic::Shard)
}

fn list(context: &mut Context<'_, '_>, args: &[&[u8]], topic: Topic) -> Result<Flow> {
    if args.len() > 3 {
        return Err(crate::commands::unknown_subcommand(args));
    }
    let names = context.server.pubsub.channels(topic, args.get(2).copied());
    context.out.array(names.len());
    for name in names {
        context.out.bulk(&name);
    }
    Ok(Flow::Done)
}

fn channels(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    list(context, args, Topic::Channel)
}

fn shard_channels(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    list(context, args, Topic::Shard)
}

fn patterns(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.out.reply_integer(context.server.pubsub.topics(Topic::Pattern) as i64)
}

fn count(context: &mut Context<'_, '_>, args: &[&[u8]], topic: Topic) -> Result<Flow> {
    let names = args.get(2..).unwrap_or_default();
    context.out.array(2 * names.len());
    for name in names {
        context.out.bulk(name);
        context.out.integer(context.server.pubsub.subscribers(topic, name) as i64);
    }
    Ok(Flow::Done)
}

fn subscribers(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    count(context, args, Topic::Channel)
}

fn shard_subscribers(context: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<Flow> {
    count(context, args, Topic::Shard)
}

fn help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    crate::commands::help(
        context,
        "PUBSUB",
        &[
            ("CHANNELS [<pattern>]", "The channels that somebody has subscribed to."),
            ("NUMPAT", "How many patterns somebody has subscribed to."),
            ("NUMSUB [<channel> ...]", "How many have subscribed to each channel."),
            ("SHARDCHANNELS [<pattern>]", "The shard channels that somebody has subscribed to."),
            ("SHARDNUMSUB [<channel> ...]", "How many have subscribed to each shard channel."),
        ],
    )
}
