//! DEBUG, as far as client libraries' tests need it.

use crate::args;
use crate::command_spec::{Context, Flow};
use crate::commands;
use crate::fault::{Fault, Result};

pub(super) fn debug(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let name = given.get(1).copied().unwrap_or_default();
    match &*name.to_ascii_lowercase() {
        b"log" | b"jmap" | b"quicklist-packed-threshold" => context.out.ok(),
        b"object" => {
            let key = given.get(2).copied().unwrap_or_default();
            let Some(entry) = context.txn.lookup(key)? else {
                return Err(Fault::NO_SUCH_KEY);
            };
            let len = entry.body.len();
            context.out.simple(&format!(
                "Value at:0x0 refcount:1 encoding:{} serializedlength:{len} lru:0 lru_seconds_idle:0",
                entry.kind.name()
            ));
        }
        b"sleep" => {
            let seconds = args::float(given.get(2).copied().unwrap_or_default())?;
            sleep(context, seconds);
            context.out.ok();
        }
        // Everything is in the log already, and what is in it is what is served.
        b"reload" | b"loadaof" => context.out.ok(),
        b"protocol" => return protocol(context, given),
        b"help" => {
            return commands::help(
                context,
                "DEBUG",
                &[
                    ("LOG <message>", "Nothing."),
                    ("OBJECT <key>", "What a key is."),
                    ("PROTOCOL <type>", "An example of a type of reply."),
                    ("RELOAD", "Nothing: what is served is what is stored."),
                    ("SLEEP <seconds>", "Keep the keyspace for some time."),
                ],
            );
        }
        _ => return Err(commands::unknown_subcommand(given)),
    }
    Ok(Flow::Done)
}

/// Keeps the locks that it has for so long, on this thread.
fn sleep(context: &Context<'_, '_>, seconds: f64) {
    let clock = || context.server.engine.monotonic().as_secs_f64();
    let end = clock() + seconds.clamp(0.0, 60.0);
    context.server.task_handoff.hand_off();
    while clock() < end {
        std::thread::park_timeout(std::time::Duration::from_secs_f64((end - clock()).max(0.0)));
    }
}

/// An example of each type of reply.
fn protocol(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    let out = &mut *context.out;
    match &*given.get(2).copied().unwrap_or_default().to_ascii_lowercase() {
        b"string" => out.bulk(b"Hello World"),
        b"integer" => out.integer(12345),
        b"double" => out.double(1.5),
        b"null" => out.null(),
        b"array" => {
            out.array(3);
            (0..3).for_each(|number| out.integer(number));
        }
        b"set" => {
            out.set(3);
            (0..3).for_each(|number| out.integer(number));
        }
        b"map" => {
            out.map(3);
            for number in 0..3 {
                out.integer(number);
                out.boolean(number == 1);
            }
        }
        b"attrib" => out.bulk(b"Some real reply following the attribute"),
        b"push" => {
            out.push(2);
            out.bulk(b"server-cpu-usage");
            out.integer(42);
        }
        b"verbatim" => out.verbatim("txt", b"This is a verbatim\nstring"),
        b"true" => out.boolean(true),
        b"false" => out.boolean(false),
        b"bignum" => out.big_number("1234567999999999999999999999999999999"),
        _ => {
            return Err(Fault::fixed(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(Flow::Done)
}
