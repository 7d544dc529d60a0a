//! Lists the commands that there are, for tests of those who confine them.

use crate::command_spec::Keys;
use crate::commands;

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

/// All commands and subcommands there are, whether or not the port accepts them.
pub fn known_commands() -> impl Iterator<Item = KnownCommand> {
    commands::each().map(|command| KnownCommand {
        name: command.name,
        args_min: command.arity.unsigned_abs() as usize,
        names_keys: !matches!(command.keys, Keys::None),
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kstone_core::env::{Random as _, SeededRandom};
    use kstone_ports::keys::PortCommand;

    use super::*;

    /// Commands that name keys and that the port does not accept: they wait, or reach further.
    const NOT_ACCEPTED: [&str; 12] = [
        "blmove",
        "blmpop",
        "blpop",
        "brpop",
        "brpoplpush",
        "bzmpop",
        "bzpopmax",
        "bzpopmin",
        "migrate",
        "move",
        "pfdebug",
        "restore-asking",
    ];

    #[test]
    fn the_port_accepts_every_command_on_keys_but_those_that_wait_or_reach_further() {
        let accepted: Vec<&str> = PortCommand::names().collect();
        for command in known_commands().filter(|command| command.names_keys) {
            let (name, is_accepted) = (command.name, accepted.contains(&command.name));
            let is_left_out = NOT_ACCEPTED.contains(&name) || name == "watch";
            assert_eq!(is_accepted, !is_left_out, "{name}");
        }
        for name in accepted {
            assert!(known_commands().any(|command| command.name == name), "there is no {name}");
        }
    }

    #[test]
    fn the_port_finds_the_keys_that_the_commands_find() {
        const WORDS: [&str; 12] =
            ["k", "k", "k", "1", "2", "3", "STREAMS", "STORE", "COUNT", "LIMIT", "STOREDIST", "x"];
        let random = SeededRandom::new(1);
        for name in PortCommand::names() {
            let command = commands::each().find(|command| command.name == name).unwrap();
            for _ in 0..200 {
                let mut args: Vec<String> = name.split('|').map(str::to_owned).collect();
                let least = command.arity.unsigned_abs() as usize;
                let len = least.max(args.len()) + (random.next_u64() % 6) as usize;
                while args.len() < len {
                    let at = random.next_u64() as usize % WORDS.len();
                    args.push(WORDS[at].to_owned());
                }
                let given: Vec<Bytes> = args.iter().cloned().map(Bytes::from).collect();
                let Ok(found) = PortCommand::of(&given) else { continue };
                let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
                let expected: Vec<usize> = command.keys.positions(&args).collect();
                assert_eq!(found.keys, expected, "{given:?}");
            }
        }
    }
}
