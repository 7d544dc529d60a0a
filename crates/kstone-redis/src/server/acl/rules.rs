//! Parses the rules of ACL SETUSER.

use crate::args;
use crate::command_spec::Command;
use crate::commands;
use crate::server::acl::selector::Selector;
use crate::server::acl::{CATEGORIES, User, hash};

/// A rule that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleError {
    /// The rule, and what is wrong with it.
    Rule(String, &'static str),
    /// A parenthesis without its other half.
    Unmatched(String),
}

impl From<RuleError> for crate::fault::Fault {
    fn from(error: RuleError) -> Self {
        crate::fault::Fault::new(match error {
            RuleError::Rule(rule, why) => {
                format!("ERR Error in ACL SETUSER modifier '{rule}': {why}")
            }
            RuleError::Unmatched(rule) => {
                format!("ERR Unmatched parenthesis in acl selector starting at '{rule}'.")
            }
        })
    }
}

const SYNTAX: &str = "Syntax error";
const UNKNOWN: &str = "Unknown command or category name in ACL";
const BAD_HASH: &str = "The password hash must be exactly 64 characters and contain only lowercase \
                        hexadecimal characters";
const NO_PASSWORD: &str = "The password you are trying to remove from the user does not exist";
const ALL_KEYS: &str = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid \
                        and does not have any effect. Try 'resetkeys' to start with an empty list \
                        of patterns";
const ALL_CHANNELS: &str = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not \
                            valid and does not have any effect. Try 'resetchannels' to start with \
                            an empty list of channels";
const FIRST_ARG_OF_SUBCOMMAND: &str = "Allowing first-arg of a subcommand is not supported";

/// The rules, where a selector that came in several pieces is one.
pub(super) fn joined(rules: &[&[u8]]) -> Result<Vec<Vec<u8>>, RuleError> {
    let mut whole: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<Vec<u8>> = None;
    for rule in rules {
        let mut piece = match open.take() {
            Some(mut begun) => {
                begun.push(b' ');
                begun.extend_from_slice(rule);
                begun
            }
            None => rule.to_vec(),
        };
        if piece.starts_with(b"(") && !piece.ends_with(b")") {
            open = Some(std::mem::take(&mut piece));
        } else {
            whole.push(piece);
        }
    }
    match open {
        Some(begun) => {
            let first = begun.split(|byte| *byte == b' ').next().unwrap_or_default();
            Err(RuleError::Unmatched(args::shown(first).into_owned()))
        }
        None => Ok(whole),
    }
}

impl User {
    /// Applies one rule.
    pub(super) fn apply(&mut self, rule: &[u8], all_channels: bool) -> Result<(), RuleError> {
        let fail = |why| Err(RuleError::Rule(args::shown(rule).into_owned(), why));
        let lower = rule.to_ascii_lowercase();
        match &*lower {
            b"" => {}
            b"on" => self.is_on = true,
            b"off" => self.is_on = false,
            b"skip-sanitize-payload" => self.sanitize = Some(false),
            b"sanitize-payload" => self.sanitize = Some(true),
            b"nopass" => {
                self.no_password = true;
                self.passwords.clear();
            }
            b"resetpass" => {
                self.no_password = false;
                self.passwords.clear();
            }
            b"clearselectors" => self.selectors.truncate(1),
            b"reset" => *self = User::new(&self.name, all_channels),
            _ => match (rule.first(), rule.get(1..).unwrap_or_default()) {
                (Some(b'>'), password) => self.add_password(hash(password)),
                (Some(b'#'), given) => match as_hash(given) {
                    Some(hash) => self.add_password(hash),
                    None => return fail(BAD_HASH),
                },
                (Some(sign @ (b'<' | b'!')), given) => {
                    let hash = if *sign == b'<' { Some(hash(given)) } else { as_hash(given) };
                    let Some(hash) = hash else { return fail(BAD_HASH) };
                    let Some(place) = self.passwords.iter().position(|have| *have == hash) else {
                        return fail(NO_PASSWORD);
                    };
                    self.passwords.remove(place);
                }
                (Some(b'('), rest) if rest.ends_with(b")") => {
                    let inner = rest.get(..rest.len() - 1).unwrap_or_default();
                    let mut selector = Selector::new(all_channels);
                    for rule in inner.split(|byte| *byte == b' ').filter(|rule| !rule.is_empty()) {
                        if let Err(why) = selector.apply(rule) {
                            return fail(why);
                        }
                    }
                    self.selectors.push(selector);
                }
                _ => {
                    let Some(own) = self.selectors.first_mut() else { return fail(SYNTAX) };
                    if let Err(why) = own.apply(rule) {
                        return fail(why);
                    }
                }
            },
        }
        Ok(())
    }

    fn add_password(&mut self, hash: String) {
        self.no_password = false;
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
    }
}

fn as_hash(given: &[u8]) -> Option<String> {
    let is_hash =
        given.len() == 64 && given.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hash.then(|| args::shown(given).into_owned())
}

impl Selector {
    fn apply(&mut self, rule: &[u8]) -> Result<(), &'static str> {
        let lower = rule.to_ascii_lowercase();
        match &*lower {
            b"allkeys" | b"~*" => self.set_all_keys(true),
            b"resetkeys" => self.set_all_keys(false),
            b"allchannels" | b"&*" => self.set_all_channels(true),
            b"resetchannels" => self.set_all_channels(false),
            b"allcommands" | b"+@all" => self.set_all_commands(true),
            b"nocommands" | b"-@all" => self.set_all_commands(false),
            _ => match (rule.first(), rule.get(1..).unwrap_or_default()) {
                (Some(b'~'), pattern) => self.add_key_rule(pattern, true, true)?,
                (Some(b'%'), rest) => {
                    let Some(end) = rest.iter().position(|byte| *byte == b'~') else {
                        return Err(SYNTAX);
                    };
                    let (mut read, mut write) = (false, false);
                    for letter in rest.get(..end).unwrap_or_default().to_ascii_uppercase() {
                        match letter {
                            b'R' if !read => read = true,
                            b'W' if !write => write = true,
                            _ => return Err(SYNTAX),
                        }
                    }
                    self.add_key_rule(rest.get(end + 1..).unwrap_or_default(), read, write)?;
                }
                (Some(b'&'), pattern) => {
                    if has_space(pattern) {
                        return Err(SYNTAX);
                    }
                    if !self.add_channels(pattern) {
                        return Err(ALL_CHANNELS);
                    }
                }
                (Some(sign @ (b'+' | b'-')), what) => {
                    self.apply_command(*sign == b'+', &args::shown(what).to_ascii_lowercase())?;
                }
                _ => return Err(SYNTAX),
            },
        }
        Ok(())
    }

    fn add_key_rule(
        &mut self,
        pattern: &[u8],
        read: bool,
        write: bool,
    ) -> Result<(), &'static str> {
        if has_space(pattern) {
            return Err(SYNTAX);
        }
        if self.add_keys(pattern, read, write) { Ok(()) } else { Err(ALL_KEYS) }
    }

    fn apply_command(&mut self, is_on: bool, what: &str) -> Result<(), &'static str> {
        if let Some(category) = what.strip_prefix('@') {
            let category = CATEGORIES.into_iter().find(|have| *have == category).ok_or(UNKNOWN)?;
            self.set_category(category, is_on);
            return Ok(());
        }
        if let Some(command) = by_full_name(what) {
            self.set_command(command, is_on);
            return Ok(());
        }
        let Some((name, arg)) = what.rsplit_once('|').filter(|_| is_on) else {
            return Err(UNKNOWN);
        };
        let command = by_full_name(name).ok_or(UNKNOWN)?;
        if command.name.contains('|') {
            return Err(FIRST_ARG_OF_SUBCOMMAND);
        }
        if arg.is_empty() {
            return Err(SYNTAX);
        }
        if !command.subcommands.is_empty() {
            return Err(UNKNOWN);
        }
        self.allow_first_arg(command, arg);
        Ok(())
    }
}

/// A command or a subcommand, as `config|get`.
fn by_full_name(name: &str) -> Option<&'static Command> {
    match name.split_once('|') {
        None => commands::named(name.as_bytes()),
        Some((name, sub)) => {
            commands::subcommand(commands::named(name.as_bytes())?, sub.as_bytes())
        }
    }
}

fn has_space(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0)
}
