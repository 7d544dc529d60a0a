//! Runs a script: checks its permissions, runs the commands that it calls, writes its reply.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::lua::{self, Failure, HOST, Host, Interpreter, Raised, Returned};
use super::running::{Execution, Origin};
use super::shebang;
use crate::command_spec::{Caller, Command, Context, Flow, Run, flag};
use crate::commands;
use crate::fault::{Fault, Result};
use crate::reply::{Tree, Value};
use crate::server::acl::Denied;
use crate::server::task_handoff::HandoffTimer;
use crate::server::{Server, config};
use crate::session::Client;
use crate::store::Txn;

/// A script that is about to run.
pub(super) struct ScriptCall<'a> {
    pub(super) origin: Origin,
    /// The function's name, or the script's digest.
    pub(super) name: &'a str,
    /// What the script says about itself, if anything.
    pub(super) flags: Option<u32>,
    /// Whether the command is one of those that end in `_RO`.
    pub(super) is_read_only: bool,
    /// The command.
    pub(super) command: &'a [&'a [u8]],
    /// The keys in it.
    pub(super) keys: &'a [&'a [u8]],
}

/// Some of a command's arguments.
type Words<'a> = &'a [&'a [u8]];

/// The keys and the other arguments of EVAL and FCALL.
pub(super) fn keys_and_args<'a>(
    args: &'a [&'a [u8]],
    not_a_number: Fault,
) -> Result<(Words<'a>, Words<'a>)> {
    let count = args.get(2).and_then(|count| crate::args::parse_integer(count));
    let count = count.ok_or(not_a_number)?;
    let rest = args.get(3..).unwrap_or_default();
    let Ok(count) = usize::try_from(count) else {
        return Err(Fault::fixed("ERR Number of keys can't be negative"));
    };
    rest.split_at_checked(count)
        .ok_or(Fault::fixed("ERR Number of keys can't be greater than number of args"))
}

/// Runs a script and replies. `work` calls into the interpreter.
pub(super) fn execute(
    context: &mut Context<'_, '_>,
    call: &ScriptCall<'_>,
    interpreter: &mut Interpreter,
    work: impl FnOnce(&mut Interpreter) -> std::result::Result<mlua::Value, Raised>,
) -> Result<Flow> {
    let server = context.server;
    check(server, call)?;
    let flags = call.flags.unwrap_or(0);
    let started_ms = server.engine.now_ms();
    let running = &server.scripts.running;
    let guard = running.begin(call.origin, call.name, call.command, started_ms);
    let db = context.txn.db();
    let mut client = context.client.clone();
    client.resp3 = false;
    let mut host = Script {
        server,
        txn: &mut *context.txn,
        client,
        execution: Arc::clone(&guard.execution),
        is_read_only: call.is_read_only || flags & shebang::flag::NO_WRITES != 0,
        allows_oom: flags & shebang::flag::ALLOW_OOM != 0,
        was_out_of_memory: server.is_out_of_memory(),
        handoff_timer: HandoffTimer::default(),
        keys: call.keys,
        has_read: false,
    };
    let returned = HOST.set(&mut host, || work(interpreter));
    let is_resp3 = host.client.resp3;
    context.txn.select(db);
    drop(guard);
    match returned {
        Ok(value) => Ok(reply(context, interpreter, &value, is_resp3)),
        Err(raised) => Ok(fail(context, call.name, &raised)),
    }
}

/// Whether a script with these flags may run now.
fn check(server: &Server, call: &ScriptCall<'_>) -> Result<()> {
    // What a script without a first line will do, nobody knows before it does it.
    let Some(flags) = call.flags else { return Ok(()) };
    let writes = flags & shebang::flag::NO_WRITES == 0;
    if writes && call.is_read_only {
        return Err(Fault::fixed(
            "ERR Can not execute a script with write flag using *_ro command.",
        ));
    }
    if writes && server.lacks_replicas() {
        return Err(Fault::NO_REPLICAS);
    }
    if writes && flags & shebang::flag::ALLOW_OOM == 0 && server.is_out_of_memory() {
        return Err(Fault::fixed(
            "OOM allow-oom flag is not set on the script, can not run it when used memory > \
             'maxmemory'",
        ));
    }
    Ok(())
}

/// Says what a script returned.
fn reply(
    context: &mut Context<'_, '_>,
    interpreter: &Interpreter,
    value: &mlua::Value,
    is_resp3: bool,
) -> Flow {
    let start = context.out.position();
    let errors = match interpreter.reply(value, is_resp3, context.out) {
        Ok(errors) => errors,
        Err(error) => {
            context.out.rewind(start);
            let message = format!("ERR the reply could not be read: {error}");
            let message = lua::on_one_line(message.as_bytes());
            context.out.error(&message);
            vec![Returned { message, is_counted: false }]
        }
    };
    for error in errors.iter().filter(|error| !error.is_counted) {
        context.server.stats.error(&String::from_utf8_lossy(&error.message));
    }
    if errors.is_empty() { Flow::Done } else { Flow::Failed }
}

/// Says what a script raised.
fn fail(context: &mut Context<'_, '_>, name: &str, raised: &Raised) -> Flow {
    let mut message = raised.message.clone();
    if raised.is_bare {
        message.truncate(100);
        message.splice(..0, format!("ERR Error running script {name}, ").into_bytes());
    } else if let Some((source, line)) = &raised.place {
        message.extend_from_slice(format!(" script: {name}, on ").as_bytes());
        message.extend_from_slice(source);
        message.push(b':');
        message.extend_from_slice(line);
        message.push(b'.');
    }
    let message = lua::on_one_line(&message);
    context.out.error(&message);
    if !raised.is_counted {
        context.server.stats.error(&String::from_utf8_lossy(&message));
    }
    Flow::Failed
}

/// What a running script works with.
struct Script<'c, 's> {
    server: &'s Server,
    txn: &'c mut Txn<'s>,
    /// A client of its own: what it selects is gone with it.
    client: Client,
    execution: Arc<Execution>,
    is_read_only: bool,
    allows_oom: bool,
    /// As it was when the script began.
    was_out_of_memory: bool,
    handoff_timer: HandoffTimer,
    /// Those that the script was called with.
    keys: &'c [&'c [u8]],
    has_read: bool,
}

impl Script<'_, '_> {
    /// The command, if the script may run it now.
    fn admit(&self, args: &[&[u8]]) -> std::result::Result<&'static Command, Refused> {
        let refused = |command, text| Err(Refused { command, fault: Fault::fixed(text) });
        let Some(command) = commands::lookup(args) else {
            return refused(None, "ERR Unknown Redis command called from script");
        };
        let named = Some(command);
        if !command.takes(args.len()) {
            let text = "ERR Wrong number of args calling Redis command from script";
            return refused(named, text);
        }
        if command.has(flag::NOSCRIPT) {
            return refused(named, "ERR This Redis command is not allowed from script");
        }
        if !self.client.user.is_all_powerful()
            && let Err(denied) = self.client.user.check(command, args)
        {
            let text = match &denied {
                Denied::Command => "can't run this command or subcommand",
                Denied::Key(_) => {
                    "can't access at least one of the keys mentioned in the command arguments"
                }
                Denied::Channel(_) => "can't publish to the channel mentioned in the command",
            };
            self.server.note_denied(&self.client, command, denied, "lua");
            let fault = Fault::new(format!("ERR The user executing the script {text}"));
            return Err(Refused { command: named, fault });
        }
        let writes = command.has(flag::WRITE);
        if self.is_read_only && (writes || command.has(flag::MAY_REPLICATE)) {
            let text = "ERR Write commands are not allowed from read-only scripts.";
            return refused(named, text);
        }
        // Once it has written, a script is not stopped halfway.
        if self.execution.has_written.load(Ordering::Relaxed) {
            return Ok(command);
        }
        if writes && self.server.lacks_replicas() {
            return Err(Refused { command: named, fault: Fault::NO_REPLICAS });
        }
        if command.has(flag::DENYOOM) && self.was_out_of_memory && !self.allows_oom {
            return Err(Refused { command: named, fault: Fault::OUT_OF_MEMORY });
        }
        Ok(command)
    }

    fn run(&mut self, command: &'static Command, args: &[&[u8]]) -> Value {
        let Run::Keys(run) = command.run else {
            return Fault::fixed("ERR This Redis command is not allowed from script").into();
        };
        // A script that reads anything has read the keys that it was called with.
        if command.has(flag::READONLY) && !std::mem::replace(&mut self.has_read, true) {
            self.client.note_keys_read(self.server, self.keys.iter().copied());
        }
        let mut out = Tree::new();
        let db = self.client.db;
        let begun = self.server.engine.monotonic();
        self.txn.select(db);
        let (server, client) = (self.server, &mut self.client);
        let flow = Context::new(server, self.txn, client, &mut out, Caller::Script)
            .run_or_roll_back(run, args);
        let took = self.server.engine.monotonic().saturating_sub(begun);
        let reply = match flow {
            Ok(Flow::Block(block)) => block.on_timeout.reply(),
            Ok(Flow::Done | Flow::Failed | Flow::Close) => out.into_value(),
            Err(fault) => {
                self.server.stats.error(fault.message());
                fault.into()
            }
        };
        let usec = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let is_tracked = self.server.config.is_on(config::LATENCY_TRACKING);
        let has_failed = matches!(reply, Value::Error(_));
        self.server.stats.called(commands::index_of(command), usec, has_failed, is_tracked);
        if !self.server.monitors.is_idle()
            && command.flags & (flag::SKIP_MONITOR | flag::ADMIN) == 0
        {
            self.server.monitor(db, "lua", args);
        }
        reply
    }
}

/// Why a script may not run a command.
struct Refused {
    command: Option<&'static Command>,
    fault: Fault,
}

impl Host for Script<'_, '_> {
    fn call(&mut self, args: &[&[u8]]) -> std::result::Result<(Value, bool), Failure> {
        let command = self.admit(args).map_err(|refused| {
            let stats = &self.server.stats;
            stats.error(refused.fault.message());
            if let Some(command) = refused.command {
                stats.rejected(command);
            }
            let message = refused.fault.message().as_bytes().to_vec();
            Failure::Reply { message, is_counted: true }
        })?;
        if command.has(flag::WRITE) {
            self.execution.has_written.store(true, Ordering::Release);
        }
        Ok((self.run(command, args), self.client.resp3))
    }

    fn set_protocol(&mut self, version: u8) {
        self.client.resp3 = version == 3;
    }

    fn may_run(&self, args: &[&[u8]]) -> Option<bool> {
        commands::lookup(args).map(|command| self.client.user.check(command, args).is_ok())
    }

    fn is_killed(&mut self) -> bool {
        let most_ms = self.server.config.size(config::BUSY_REPLY_THRESHOLD);
        let so_far_ms = self.server.engine.now_ms().saturating_sub(self.execution.started_ms);
        self.handoff_timer.check(&self.server.task_handoff, so_far_ms);
        if most_ms > 0 && so_far_ms >= most_ms {
            self.server.scripts.running.is_taking_too_long(&self.execution);
        }
        self.execution.is_killed()
    }
}
