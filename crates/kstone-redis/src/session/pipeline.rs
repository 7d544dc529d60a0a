//! Collects commands that a client sent together and that may be executed as one batch.

use crate::command_spec::{Command, Keys, Request, Run, flag};
use crate::commands;

/// Most commands in a pipeline: other clients wait for the same keys.
const COMMANDS_MAX: usize = 64;
/// Most bytes of requests, and of replies, in a pipeline: what is written has to fit into one
/// commit.
pub(super) const BYTES_MAX: usize = 1 << 20;

/// Commands that came together and may be executed as one batch.
#[derive(Debug)]
pub struct Pipeline<'a> {
    commands: Vec<&'static Command>,
    args: Vec<&'a [u8]>,
    /// Where each command's arguments end.
    ends: Vec<usize>,
    bytes: usize,
}

impl<'a> Pipeline<'a> {
    /// No commands, and room for a few.
    pub fn new() -> Self {
        const FEW: usize = 16;
        Pipeline {
            commands: Vec::with_capacity(FEW),
            args: Vec::with_capacity(4 * FEW),
            ends: Vec::with_capacity(FEW),
            bytes: 0,
        }
    }

    /// How many commands there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no command.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a command, whose arguments begin with its name; false if it has to be executed alone.
    pub fn push(&mut self, args: impl Iterator<Item = &'a [u8]>) -> bool {
        let start = self.args.len();
        self.args.extend(args);
        let given = self.args.get(start..).unwrap_or_default();
        let bytes = given.iter().map(|arg| arg.len()).sum::<usize>();
        let command = commands::find(given).ok().filter(|command| is_light(command));
        match command {
            Some(command) if self.len() < COMMANDS_MAX && self.bytes + bytes <= BYTES_MAX => {
                self.bytes += bytes;
                self.commands.push(command);
                self.ends.push(self.args.len());
                true
            }
            _ => {
                self.args.truncate(start);
                false
            }
        }
    }

    /// The commands with their arguments.
    pub(super) fn iter(&self) -> impl Iterator<Item = Request<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(self.ends.iter().copied());
        let args = ranges.map(|(start, end)| self.args.get(start..end).unwrap_or_default());
        self.commands.iter().zip(args).map(|(command, args)| Request { command, args })
    }
}

impl Default for Pipeline<'_> {
    fn default() -> Self {
        Pipeline::new()
    }
}

/// Whether a command touches the keys it names and no others, never waits, and writes about as much
/// as it was given.
fn is_light(command: &Command) -> bool {
    const HEAVY: u32 = flag::EXCLUSIVE | flag::UNLOCKED | flag::BLOCKING | flag::MOVABLE_KEYS;
    const LIGHT: [&str; 4] = ["set", "setex", "psetex", "mset"];
    command.flags & HEAVY == 0
        && matches!(command.run, Run::Keys(_))
        && !matches!(command.keys, Keys::None)
        && (command.has(flag::READONLY) || command.has(flag::FAST) || LIGHT.contains(&command.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push<'a>(pipeline: &mut Pipeline<'a>, line: &'a str) -> bool {
        pipeline.push(line.split(' ').map(str::as_bytes))
    }

    #[test]
    fn a_pipeline_takes_only_what_may_be_done_together() {
        let mut pipeline = Pipeline::new();
        for line in ["GET a", "SET a 1", "LPUSH l a b", "LRANGE l 0 -1"] {
            assert!(push(&mut pipeline, line), "{line}");
        }
        for line in
            ["PING", "BLPOP l 0", "KEYS *", "RENAME a b", "GET", "nonsense", "MULTI", "SORT l"]
        {
            assert!(!push(&mut pipeline, line), "{line}");
        }
        let args: Vec<usize> = pipeline.iter().map(|request| request.args.len()).collect();
        assert_eq!(args, [2, 3, 4, 4]);
    }

    #[test]
    fn a_pipeline_has_an_end() {
        let mut pipeline = Pipeline::new();
        assert_eq!((0..1000).take_while(|_| push(&mut pipeline, "GET a")).count(), COMMANDS_MAX);
        let long = format!("SET a {}", "x".repeat(BYTES_MAX));
        assert!(!push(&mut Pipeline::new(), &long));
    }
}
