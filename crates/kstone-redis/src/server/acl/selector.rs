//! A selector of an ACL user: a set of commands, keys and channels that are allowed together.

use crate::command_spec::{Command, access, flag};
use crate::commands;
use crate::glob;

/// Why something is not allowed; the later, the closer it came to being allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Denied {
    Command,
    /// The key.
    Key(Vec<u8>),
    /// The channel.
    Channel(Vec<u8>),
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Selector {
    all_commands: bool,
    all_keys: bool,
    all_channels: bool,
    /// By [`commands::index_of`].
    allowed: Vec<bool>,
    /// Commands that are allowed with these first arguments only.
    first_args: Vec<(usize, String)>,
    /// Whether it began with every command, and which rules came then: for showing.
    begins_with_all: bool,
    rules: Vec<String>,
    keys: Vec<KeyPattern>,
    channels: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyPattern {
    pattern: Vec<u8>,
    read: bool,
    write: bool,
}

impl Selector {
    /// Allows nothing.
    pub(super) fn new(all_channels: bool) -> Selector {
        Selector {
            all_commands: false,
            all_keys: false,
            all_channels,
            allowed: vec![false; commands::each().count()],
            first_args: Vec::new(),
            begins_with_all: false,
            rules: Vec::new(),
            keys: Vec::new(),
            channels: Vec::new(),
        }
    }

    pub(super) fn is_all(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    pub(super) fn allow_all(&mut self) {
        self.set_all_commands(true);
        self.set_all_keys(true);
        self.set_all_channels(true);
    }

    pub(super) fn set_all_commands(&mut self, is_on: bool) {
        self.all_commands = is_on;
        self.begins_with_all = is_on;
        self.allowed.fill(is_on);
        self.first_args.clear();
        self.rules.clear();
    }

    pub(super) fn set_all_keys(&mut self, is_on: bool) {
        self.all_keys = is_on;
        self.keys.clear();
    }

    pub(super) fn set_all_channels(&mut self, is_on: bool) {
        self.all_channels = is_on;
        self.channels.clear();
    }

    /// False if every key is allowed already.
    pub(super) fn add_keys(&mut self, pattern: &[u8], read: bool, write: bool) -> bool {
        if self.all_keys {
            return false;
        }
        match self.keys.iter_mut().find(|have| have.pattern == pattern) {
            Some(have) => {
                have.read |= read;
                have.write |= write;
            }
            None => self.keys.push(KeyPattern { pattern: pattern.to_vec(), read, write }),
        }
        true
    }

    /// False if every channel is allowed already.
    pub(super) fn add_channels(&mut self, pattern: &[u8]) -> bool {
        if self.all_channels {
            return false;
        }
        if !self.channels.iter().any(|have| have == pattern) {
            self.channels.push(pattern.to_vec());
        }
        true
    }

    /// Allows or forbids a command with all its subcommands.
    pub(super) fn set_command(&mut self, command: &'static Command, is_on: bool) {
        self.all_commands &= is_on;
        for each in std::iter::once(command).chain(command.subcommands) {
            let index = commands::index_of(each);
            self.allow(index, is_on);
            self.first_args.retain(|(at, _)| *at != index);
        }
        self.note_rule(is_on, command.name);
        // What was said of its subcommands no longer counts.
        let prefix = format!("{}|", command.name);
        self.rules.retain(|rule| !rule.get(1..).is_some_and(|rule| rule.starts_with(&prefix)));
    }

    /// Allows or forbids a category.
    pub(super) fn set_category(&mut self, category: &str, is_on: bool) {
        self.all_commands &= is_on;
        for (index, command) in commands::each().enumerate() {
            if is_in(command, category) {
                self.allow(index, is_on);
            }
        }
        self.note_rule(is_on, &format!("@{category}"));
    }

    /// Allows a command with one first argument.
    pub(super) fn allow_first_arg(&mut self, command: &'static Command, arg: &str) {
        let index = commands::index_of(command);
        self.first_args.push((index, arg.to_ascii_lowercase()));
        self.note_rule(true, &format!("{}|{arg}", command.name));
    }

    fn allow(&mut self, index: usize, is_on: bool) {
        if let Some(allowed) = self.allowed.get_mut(index) {
            *allowed = is_on;
        }
    }

    fn note_rule(&mut self, is_on: bool, what: &str) {
        self.rules.retain(|rule| rule.get(1..) != Some(what));
        self.rules.push(format!("{}{what}", if is_on { '+' } else { '-' }));
    }

    pub(super) fn check(&self, command: &'static Command, args: &[&[u8]]) -> Result<(), Denied> {
        if !self.all_commands && !command.has(flag::NO_AUTH) {
            let index = commands::index_of(command);
            let is_allowed = self.allowed.get(index).copied().unwrap_or(false)
                || args.get(1).is_some_and(|arg| {
                    let arg = String::from_utf8_lossy(arg).to_ascii_lowercase();
                    self.first_args.iter().any(|(at, have)| *at == index && *have == arg)
                });
            if !is_allowed {
                return Err(Denied::Command);
            }
        }
        if !self.all_keys {
            for (order, position) in command.keys.positions(args).enumerate() {
                let Some(key) = args.get(position) else { continue };
                let access = access::of(command, args, order);
                if !self.allows_key(key, access.reads, access.writes) {
                    return Err(Denied::Key(key.to_vec()));
                }
            }
        }
        if !self.all_channels {
            for (channel, is_pattern) in channels_of(command, args) {
                if !self.allows_channel(channel, is_pattern) {
                    return Err(Denied::Channel(channel.to_vec()));
                }
            }
        }
        Ok(())
    }

    fn allows_key(&self, key: &[u8], reads: bool, writes: bool) -> bool {
        self.keys.iter().any(|have| {
            (have.read || !reads) && (have.write || !writes) && glob::matches(&have.pattern, key)
        })
    }

    /// Whether every key may be read.
    pub(super) fn reads_every_key(&self) -> bool {
        self.all_keys || self.keys.iter().any(|have| have.read && have.pattern == b"*")
    }

    fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.channels
            .iter()
            .any(|have| if is_pattern { have == channel } else { glob::matches(have, channel) })
    }

    /// The commands, as rules.
    pub(crate) fn show_commands(&self) -> String {
        let first = if self.begins_with_all { "+@all" } else { "-@all" };
        std::iter::once(first)
            .chain(self.rules.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }

    pub(crate) fn show_keys(&self) -> String {
        if self.all_keys {
            return "~*".to_owned();
        }
        let shown: Vec<String> = self
            .keys
            .iter()
            .map(|key| {
                let pattern = String::from_utf8_lossy(&key.pattern);
                match (key.read, key.write) {
                    (true, false) => format!("%R~{pattern}"),
                    (false, true) => format!("%W~{pattern}"),
                    _ => format!("~{pattern}"),
                }
            })
            .collect();
        shown.join(" ")
    }

    pub(crate) fn show_channels(&self) -> String {
        if self.all_channels {
            return "&*".to_owned();
        }
        let shown: Vec<String> = self
            .channels
            .iter()
            .map(|channel| format!("&{}", String::from_utf8_lossy(channel)))
            .collect();
        shown.join(" ")
    }

    /// All of it, as rules.
    pub(super) fn show(&self) -> String {
        let mut words = vec![self.show_keys()];
        if !self.all_channels {
            words.push("resetchannels".to_owned());
        }
        words.push(self.show_channels());
        words.push(self.show_commands());
        words.retain(|word| !word.is_empty());
        words.join(" ")
    }
}

/// The channels that a command is about, and whether they are patterns.
fn channels_of<'a>(command: &Command, args: &[&'a [u8]]) -> Vec<(&'a [u8], bool)> {
    let all = |is_pattern| args.iter().skip(1).map(move |arg| (*arg, is_pattern)).collect();
    match command.name {
        "publish" | "spublish" => args.get(1).map(|arg| (*arg, false)).into_iter().collect(),
        "subscribe" | "ssubscribe" => all(false),
        "psubscribe" => all(true),
        _ => Vec::new(),
    }
}

/// Whether a command is in a category.
pub(crate) fn is_in(command: &Command, category: &str) -> bool {
    let is_scripting = command.categories.split(' ').any(|have| have == "scripting");
    match category {
        "all" => true,
        "read" if command.has(flag::READONLY) && !is_scripting => true,
        "write" if command.has(flag::WRITE) && !is_scripting => true,
        "admin" | "dangerous" if command.has(flag::ADMIN) => true,
        "pubsub" if command.has(flag::PUBSUB) => true,
        "fast" => command.has(flag::FAST),
        "slow" => !command.has(flag::FAST),
        "blocking" if command.has(flag::BLOCKING) => true,
        _ => command.categories.split(' ').any(|have| have == category),
    }
}

/// The categories of a command.
pub(crate) fn categories_of(command: &Command) -> Vec<&'static str> {
    super::CATEGORIES.into_iter().filter(|category| is_in(command, category)).collect()
}
