//! The description of a command: its name, how many arguments it takes, which of them are keys, its
//! flags, and the function that runs it.
//!
//! The commands themselves are in [`crate::commands`], one file or folder for each family.

pub(crate) mod access;
mod keys;

pub(crate) use keys::Keys;

use std::future::Future;
use std::pin::Pin;

use kstone_core::{Durable, Engine, Seq};

use crate::fault::Result;
use crate::reply::{Sink, Value};
use crate::server::Server;
use crate::session::{Client, Session};
use crate::store::Txn;

/// Flags of a command, as `COMMAND` lists them, and what it locks.
pub(crate) mod flag {
    /// Changes keys.
    pub(crate) const WRITE: u32 = 1;
    /// Reads keys.
    pub(crate) const READONLY: u32 = 1 << 1;
    /// Refused when memory is short.
    pub(crate) const DENYOOM: u32 = 1 << 2;
    /// For administrators.
    pub(crate) const ADMIN: u32 = 1 << 3;
    /// Publishes or subscribes.
    pub(crate) const PUBSUB: u32 = 1 << 4;
    /// Not from scripts.
    pub(crate) const NOSCRIPT: u32 = 1 << 5;
    /// May wait.
    pub(crate) const BLOCKING: u32 = 1 << 6;
    /// Allowed while data is loaded.
    pub(crate) const LOADING: u32 = 1 << 7;
    /// Allowed on a replica whose data is old.
    pub(crate) const STALE: u32 = 1 << 8;
    /// Not shown to MONITOR.
    pub(crate) const SKIP_MONITOR: u32 = 1 << 9;
    /// Not kept in the slow log.
    pub(crate) const SKIP_SLOWLOG: u32 = 1 << 10;
    /// Constant or logarithmic time.
    pub(crate) const FAST: u32 = 1 << 11;
    /// Allowed before a client has authenticated.
    pub(crate) const NO_AUTH: u32 = 1 << 12;
    /// May replicate something else than itself.
    pub(crate) const MAY_REPLICATE: u32 = 1 << 13;
    /// Allowed while a script runs for too long.
    pub(crate) const ALLOW_BUSY: u32 = 1 << 14;
    /// Not inside MULTI.
    pub(crate) const NO_MULTI: u32 = 1 << 15;
    /// Which arguments are keys cannot be told from their positions alone.
    pub(crate) const MOVABLE_KEYS: u32 = 1 << 16;
    /// Not listed by `COMMAND`: works with the whole keyspace and has it for itself while it runs.
    pub(crate) const EXCLUSIVE: u32 = 1 << 24;
    /// Not listed: touches no key, and needs no lock.
    pub(crate) const UNLOCKED: u32 = 1 << 25;
    /// Works without the keys, whatever state they are in.
    pub(crate) const NO_DATA: u32 = LOADING | STALE | UNLOCKED;
}

/// A command's name, in lower case; a subcommand's is `config|get`.
pub(crate) type CommandName = &'static str;

/// A command or a subcommand.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: CommandName,
    /// How many arguments with the name itself; if negative, at least so many.
    pub(crate) arity: i32,
    /// [`flag`]s.
    pub(crate) flags: u32,
    /// Which arguments are keys.
    pub(crate) keys: Keys,
    /// The ACL categories that its flags do not imply, separated by spaces: `string`, `dangerous`.
    pub(crate) categories: &'static str,
    /// What it does.
    pub(crate) run: Run,
    /// Its subcommands.
    pub(crate) subcommands: &'static [Command],
}

/// A command as it was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) command: &'static Command,
    /// They begin with the command's name.
    pub(crate) args: &'a [&'a [u8]],
}

impl<'a> Request<'a> {
    /// The keys among the arguments.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.command.keys_in(self.args)
    }
}

/// Runs a command on keys. The arguments begin with its name.
pub(crate) type RunOnKeys = fn(&mut Context<'_, '_>, &[&[u8]]) -> Result<Flow>;

/// How a command is executed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Run {
    /// On keys, under their locks; also from scripts and inside MULTI.
    Keys(RunOnKeys),
    /// On the connection that it came by.
    #[expect(clippy::type_complexity, reason = "it is read here and nowhere else")]
    Session(fn(&mut Session, &[&[u8]], &mut (dyn Sink + Send)) -> Result<Flow>),
    /// On the connection, and it may have to wait for locks (EXEC, EVAL).
    #[expect(clippy::type_complexity, reason = "it is read here and nowhere else")]
    Waiting(
        for<'a> fn(
            &'a mut Session,
            &'a [&'a [u8]],
            &'a mut (dyn Sink + Send),
        ) -> Pin<Box<dyn Future<Output = Result<Flow>> + Send + 'a>>,
    ),
    /// Only its subcommands do anything.
    Subcommands,
}

/// How a command ends.
#[derive(Debug)]
pub(crate) enum Flow {
    /// It has replied.
    Done,
    /// It has replied with an error, and counted it. What it changed stays: a script that fails
    /// halfway has done half.
    Failed,
    /// It has not replied, and waits for one of its keys, or for the disk.
    Block(Block),
    /// It has replied, and the connection is to be closed.
    Close,
}

/// A reply of one value, which ends the command.
impl dyn Sink + Send + '_ {
    pub(crate) fn reply_ok(&mut self) -> Result<Flow> {
        self.ok();
        Ok(Flow::Done)
    }

    pub(crate) fn reply_simple(&mut self, text: &str) -> Result<Flow> {
        self.simple(text);
        Ok(Flow::Done)
    }

    pub(crate) fn reply_integer(&mut self, number: i64) -> Result<Flow> {
        self.integer(number);
        Ok(Flow::Done)
    }

    pub(crate) fn reply_bulk(&mut self, bytes: &[u8]) -> Result<Flow> {
        self.bulk(bytes);
        Ok(Flow::Done)
    }

    pub(crate) fn reply_bulk_or_null(&mut self, bytes: Option<&[u8]>) -> Result<Flow> {
        self.bulk_or_null(bytes);
        Ok(Flow::Done)
    }

    pub(crate) fn reply_bulks(&mut self, items: &[&[u8]]) -> Result<Flow> {
        self.bulks(items);
        Ok(Flow::Done)
    }

    pub(crate) fn reply_text(&mut self, text: &str) -> Result<Flow> {
        self.verbatim("txt", text.as_bytes());
        Ok(Flow::Done)
    }

    pub(crate) fn reply_null(&mut self) -> Result<Flow> {
        self.null();
        Ok(Flow::Done)
    }

    pub(crate) fn reply_null_array(&mut self) -> Result<Flow> {
        self.null_array();
        Ok(Flow::Done)
    }
}

/// What a command waits for.
#[derive(Debug)]
pub(crate) struct Block {
    /// One of these has to be signalled ([`Txn::signal`]); then the command is run again.
    pub(crate) keys: Vec<Vec<u8>>,
    /// When to give up, in milliseconds since 1970; `None` is never.
    pub(crate) until_ms: Option<u64>,
    /// What to run again, if not the command as it came: `$` of XREAD means "now" only once.
    pub(crate) again: Option<Vec<Vec<u8>>>,
    /// What ends the wait beside the keys.
    pub(crate) durable: Option<Durable>,
    /// The reply when the wait is over and the command was not run again.
    pub(crate) on_timeout: TimeoutReply,
}

impl Block {
    /// Waits for a key.
    pub(crate) fn on(keys: Vec<Vec<u8>>, until_ms: Option<u64>) -> Block {
        let on_timeout = TimeoutReply::Fixed(Value::NullArray);
        Block { keys, until_ms, again: None, durable: None, on_timeout }
    }
}

/// The reply of a command whose wait ended without its being run again.
#[derive(Debug)]
pub(crate) enum TimeoutReply {
    /// This.
    Fixed(Value),
    /// Whether the disk has everything up to a number, and that no replica has: WAITAOF.
    Acknowledged(Engine, Seq),
}

impl TimeoutReply {
    /// The reply.
    pub(crate) fn reply(&self) -> Value {
        match self {
            TimeoutReply::Fixed(value) => value.clone(),
            TimeoutReply::Acknowledged(engine, seq) => {
                let local = i64::from(engine.durable_seq() >= *seq);
                Value::Array(vec![Value::Integer(local), Value::Integer(0)])
            }
        }
    }
}

/// On whose behalf a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A client.
    Client,
    /// EXEC, on behalf of a client.
    Multi,
    /// A script or a function.
    Script,
    /// The command of a blocked client, run again after another command wrote its key: it must not
    /// reply unless it can be served, and returns [`Flow::Block`] again otherwise.
    Waiter,
}

impl Caller {
    /// Whether a command that finds nothing may wait.
    pub(crate) fn may_block(self) -> bool {
        matches!(self, Caller::Client | Caller::Waiter)
    }
}

/// What a command on keys works with.
pub(crate) struct Context<'c, 's> {
    pub(crate) server: &'s Server,
    /// The keys.
    pub(crate) txn: &'c mut Txn<'s>,
    /// The client: its database, protocol, user.
    pub(crate) client: &'c mut Client,
    /// Where the reply goes.
    pub(crate) out: &'c mut (dyn Sink + Send),
    pub(crate) caller: Caller,
    /// For [`Caller::Waiter`]: the key that was signalled, the only one it is to be served from.
    pub(crate) ready: Option<&'c [u8]>,
}

impl<'c, 's> Context<'c, 's> {
    #[inline]
    pub(crate) fn new(
        server: &'s Server,
        txn: &'c mut Txn<'s>,
        client: &'c mut Client,
        out: &'c mut (dyn Sink + Send),
        caller: Caller,
    ) -> Context<'c, 's> {
        Context { server, txn, client, out, caller, ready: None }
    }

    /// Runs one of several commands that share the transaction, and has the policy, if there is
    /// one, judge what it wrote: it fails if that breaks a rule.
    pub(crate) fn run_and_check(&mut self, run: RunOnKeys, args: &[&[u8]]) -> Result<Flow> {
        let ran = run(self, args);
        self.server.check_command(self.txn, ran)
    }

    /// The same, and if it fails, undoes what it wrote.
    pub(crate) fn run_or_roll_back(&mut self, run: RunOnKeys, args: &[&[u8]]) -> Result<Flow> {
        self.txn.set_savepoint();
        let ran = self.run_and_check(run, args);
        if ran.is_err() {
            self.txn.roll_back();
        }
        ran
    }

    /// Waits for one of these keys, or replies that there is nothing where a command cannot wait.
    pub(crate) fn wait_for(&mut self, keys: &[&[u8]], until_ms: Option<u64>) -> Flow {
        if !self.caller.may_block() {
            self.out.null_array();
            return Flow::Done;
        }
        Flow::Block(Block::on(keys.iter().map(|key| key.to_vec()).collect(), until_ms))
    }

    /// Whether a command that takes from the first of several keys may take from this one: who
    /// waited takes from the key that became ready, whatever the others hold by now.
    pub(crate) fn may_take_from(&self, key: &[u8]) -> bool {
        self.ready.is_none_or(|ready| ready == key)
    }
}

impl Command {
    /// A command without keys or subcommands.
    pub(crate) const fn new(
        name: CommandName,
        arity: i32,
        flags: u32,
        categories: &'static str,
        run: Run,
    ) -> Command {
        Command { name, arity, flags, keys: Keys::None, categories, run, subcommands: &[] }
    }

    /// A command on keys.
    pub(crate) const fn on_keys(
        name: CommandName,
        arity: i32,
        flags: u32,
        keys: Keys,
        categories: &'static str,
        run: RunOnKeys,
    ) -> Command {
        Command { name, arity, flags, keys, categories, run: Run::Keys(run), subcommands: &[] }
    }

    /// A command of which only the subcommands do anything.
    pub(crate) const fn group(name: CommandName, subcommands: &'static [Command]) -> Command {
        let (keys, categories, run) = (Keys::None, "", Run::Subcommands);
        Command { name, arity: -2, flags: 0, keys, categories, run, subcommands }
    }

    /// The keys in these arguments.
    #[inline]
    pub(crate) fn keys_in<'k>(
        &self,
        args: &'k [&'k [u8]],
    ) -> impl Iterator<Item = &'k [u8]> + use<'k> {
        self.keys.positions(args).filter_map(|at| args.get(at).copied())
    }

    /// Whether it has all of these flags.
    pub(crate) fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// Whether so many arguments, the name included, are right.
    pub(crate) fn takes(&self, args: usize) -> bool {
        match usize::try_from(self.arity) {
            Ok(exactly) => args == exactly,
            Err(_) => args >= self.arity.unsigned_abs() as usize,
        }
    }
}
