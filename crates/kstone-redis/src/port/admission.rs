//! Which commands the port accepts: those that name the keys they touch.

use bytes::Bytes;

use crate::args;
use crate::command_spec::{Command, Keys, access, flag};
use crate::commands;
use kstone_ports::keys::slot_of;
use kstone_ports::{Error, Result};

/// Commands without keys that say nothing about the store and change nothing in it.
const WITHOUT_KEYS: [&str; 4] = ["echo", "ping", "publish", "time"];
/// Commands that name keys and reach further: another database, another server, the connection.
const FURTHER: [&str; 3] = ["migrate", "move", "watch"];

/// A command as the port understands it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortCommand {
    /// Its name, in lower case; of a subcommand `object|encoding`.
    pub name: &'static str,
    /// The keys that it names.
    pub keys: Vec<NamedKey>,
    /// The slot that they are all in; `None` if it names none.
    pub slot: Option<u16>,
    /// Whether it runs a program, which may touch keys that it does not name.
    pub runs_script: bool,
}

/// An argument that is a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedKey {
    /// Which argument; the command's name is 0.
    pub position: usize,
    /// Whether what is there may show in the reply or in another key.
    pub is_read: bool,
    /// Whether it is changed.
    pub is_written: bool,
}

impl PortCommand {
    /// Finds out what a command asks for. `given` begins with its name.
    ///
    /// # Errors
    /// If there is no such command, or the port does not do it.
    pub fn of(given: &[Bytes]) -> Result<PortCommand> {
        let given: Vec<&[u8]> = given.iter().map(AsRef::as_ref).collect();
        let command = commands::find(&given)?;
        refuse_further(command, &given)?;
        let keys = command.keys.positions(&given).enumerate().map(|(order, position)| {
            let access = access::of(command, &given, order);
            NamedKey { position, is_read: access.reads, is_written: access.writes }
        });
        let asked = PortCommand {
            name: command.name,
            keys: keys.collect(),
            slot: None,
            runs_script: command.categories == "scripting",
        };
        let mut slots = asked.keys.iter().filter_map(|key| given.get(key.position));
        let Some(first) = slots.next() else {
            return match WITHOUT_KEYS.contains(&command.name) {
                true => Ok(asked),
                false => Err(refused(command, "it names no key")),
            };
        };
        let slot = slot_of(first);
        if slots.any(|key| slot_of(key) != slot) {
            return Err(Error::Refused(CROSS_SLOT.to_owned()));
        }
        Ok(PortCommand { slot: Some(slot), ..asked })
    }

    /// Whether any of its keys is changed. A script counts.
    pub fn writes(&self) -> bool {
        self.runs_script || self.keys.iter().any(|key| key.is_written)
    }
}

/// As a cluster says it.
const CROSS_SLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";

/// Finds out what several commands on one slot ask for.
pub(super) fn of_one_slot(commands: &[Vec<Bytes>], slot: Option<u16>) -> Result<Vec<PortCommand>> {
    let asked: Vec<PortCommand> =
        commands.iter().map(|given| PortCommand::of(given)).collect::<Result<_>>()?;
    let mut slots = slot.into_iter().chain(asked.iter().filter_map(|one| one.slot));
    let first = slots.next();
    match slots.all(|slot| Some(slot) == first) {
        true => Ok(asked),
        false => Err(Error::Refused(CROSS_SLOT.to_owned())),
    }
}

fn refuse_further(command: &'static Command, given: &[&[u8]]) -> Result<()> {
    let has = |word| given.iter().skip(2).any(|arg| args::is(arg, word));
    let reason = match command.name {
        _ if command.has(flag::ADMIN) => "it is for who runs the server",
        name if FURTHER.contains(&name) => "it reaches further than the keys of this database",
        "copy" if given.iter().skip(3).any(|arg| args::is(arg, "db")) => {
            "it reaches further than the keys of this database"
        }
        "sort" | "sort_ro" if has("get") || has("by") && !sorts_by_nothing(given) => {
            "it reads keys that it does not name"
        }
        "xread" | "xreadgroup" if !blocks(given) => return Ok(()),
        _ if command.has(flag::BLOCKING) => "it waits, and others share the connection",
        _ => return Ok(()),
    };
    Err(refused(command, reason))
}

/// Whether XREAD is to wait: the option stands before the keys.
fn blocks(given: &[&[u8]]) -> bool {
    let options = given.iter().take_while(|arg| !args::is(arg, "streams"));
    options.into_iter().any(|arg| args::is(arg, "block"))
}

/// Whether SORT looks up no weights: a pattern without `*` names no other key.
fn sorts_by_nothing(given: &[&[u8]]) -> bool {
    let by = given.iter().enumerate().skip(2).filter(|(_, arg)| args::is(arg, "by"));
    by.filter_map(|(at, _)| given.get(at + 1)).all(|pattern| !pattern.contains(&b'*'))
}

fn refused(command: &Command, reason: &str) -> Error {
    let name = command.name.to_ascii_uppercase().replace('|', " ");
    Error::Refused(format!("ERR {name} is no command for the port to keys: {reason}"))
}

/// A command or subcommand that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownCommand {
    /// Its name, in lower case; of a subcommand `object|encoding`.
    pub name: &'static str,
    /// The least number of arguments that it takes, its name included.
    pub args_min: usize,
    /// Whether arguments of it are keys.
    pub names_keys: bool,
}

/// All commands and subcommands there are, whether or not the port lets them through.
pub fn known_commands() -> impl Iterator<Item = KnownCommand> {
    commands::each().map(|command| KnownCommand {
        name: command.name,
        args_min: command.arity.unsigned_abs() as usize,
        names_keys: !matches!(command.keys, Keys::None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<PortCommand> {
        let words: Vec<Bytes> =
            line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        PortCommand::of(&words)
    }

    #[test]
    fn what_names_its_keys_goes_through() {
        for (line, keys) in [
            ("GET a", vec![1]),
            ("MSET {t}a 1 {t}b 2", vec![1, 3]),
            ("ZUNIONSTORE {t}d 2 {t}a {t}b", vec![1, 3, 4]),
            ("XREAD COUNT 1 STREAMS block 0", vec![4]),
            ("OBJECT ENCODING a", vec![2]),
            ("EVAL return 1 a", vec![3]),
            ("SORT a BY nosort STORE a", vec![1, 5]),
            ("COPY {t}db {t}b", vec![1, 2]),
            ("PING", vec![]),
        ] {
            let found = asked(line).unwrap();
            let positions: Vec<usize> = found.keys.iter().map(|key| key.position).collect();
            assert_eq!(positions, keys, "{line}");
        }
        assert!(asked("SET a 1").unwrap().writes() && !asked("GET a").unwrap().writes());
    }

    #[test]
    fn what_reaches_further_is_refused() {
        for line in [
            "KEYS *",
            "SCAN 0",
            "DBSIZE",
            "FLUSHALL",
            "SELECT 1",
            "SWAPDB 0 1",
            "MULTI",
            "EXEC",
            "WATCH a",
            "CONFIG GET a",
            "SUBSCRIBE a",
            "MONITOR",
            "BLPOP a 0",
            "MOVE a 1",
            "COPY a a DB 1",
            "SORT a BY w_*",
            "SORT a GET a",
            "SORT_RO a BY w_*",
            "XREAD BLOCK 0 STREAMS a 0",
            "EVAL return 0",
            "SCRIPT LOAD x",
            "FUNCTION LIST",
            "RANDOMKEY",
            "MIGRATE h 1 a 0 1",
            "PFDEBUG ENCODING a",
            "CLIENT LIST",
            "WAIT 0 0",
        ] {
            assert!(matches!(asked(line), Err(Error::Refused(_))), "{line}: {:?}", asked(line));
        }
        assert!(matches!(asked("NONSENSE"), Err(Error::Reply(_))));
        assert!(matches!(asked("GET"), Err(Error::Reply(_))));
    }

    #[test]
    fn keys_of_several_slots_are_refused() {
        let refused = asked("MGET a b").unwrap_err();
        assert!(refused.to_string().starts_with("CROSSSLOT"), "{refused}");
        let words = |line: &str| -> Vec<Bytes> {
            line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
        };
        assert!(of_one_slot(&[words("GET a"), words("GET a"), words("PING")], None).is_ok());
        assert!(of_one_slot(&[words("GET a"), words("GET b")], None).is_err());
        assert!(of_one_slot(&[words("GET b")], Some(slot_of(b"a"))).is_err());
    }
}
