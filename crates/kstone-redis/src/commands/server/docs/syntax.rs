//! Parses the syntax of a command, written as a text, into its arguments.
//!
//! `[…]` is optional, `(…)` is a group, `|` separates alternatives, and `...` follows what can be
//! repeated. A word in capitals is a literal token; if a value or a choice follows, it introduces
//! that. Any other word is a value.

use std::borrow::Cow;
use std::iter::Peekable;

/// One argument of a command, or several that belong together.
#[derive(Debug)]
pub(super) struct Argument<'s> {
    /// The word of a value.
    word: &'s str,
    pub(super) kind: ArgumentKind<'s>,
    /// What introduces it, or is all of it.
    pub(super) token: Option<&'s str>,
    is_optional: bool,
    is_repeated: bool,
    /// What introduces it is repeated with it.
    is_token_repeated: bool,
}

/// What an argument is.
#[derive(Debug)]
pub(super) enum ArgumentKind<'s> {
    Value,
    Token,
    OneOf(Vec<Argument<'s>>),
    All(Vec<Argument<'s>>),
}

/// Reads a syntax.
pub(super) fn parse(syntax: &str) -> Vec<Argument<'_>> {
    sequence(&mut words(syntax).peekable())
}

/// The words, and what stands between them.
fn words(syntax: &str) -> impl Iterator<Item = &str> {
    let is_mark = |c: char| "[]()|".contains(c);
    syntax.split_whitespace().flat_map(move |piece| {
        piece.split_inclusive(is_mark).flat_map(move |piece| {
            let (word, mark) = piece.split_at(piece.trim_end_matches(is_mark).len());
            [word, mark].into_iter().filter(|part| !part.is_empty())
        })
    })
}

fn sequence<'s>(words: &mut Peekable<impl Iterator<Item = &'s str>>) -> Vec<Argument<'s>> {
    let mut arguments = Vec::new();
    while let Some(word) = words.next_if(|word| !["]", ")", "|"].contains(word)) {
        let argument = match word {
            "[" => Argument { is_optional: true, ..group(words) },
            "(" => group(words),
            token if is_token(token) => introduced(token, words),
            word => Argument::new(word, ArgumentKind::Value),
        };
        let is_repeated = words.next_if_eq(&"...").is_some();
        let is_token_repeated = is_repeated && word == "(" && argument.token.is_some();
        arguments.push(Argument {
            is_repeated: argument.is_repeated || is_repeated,
            is_token_repeated: argument.is_token_repeated || is_token_repeated,
            ..argument
        });
    }
    arguments
}

/// What a token introduces, or the token alone.
fn introduced<'s>(
    token: &'s str,
    words: &mut Peekable<impl Iterator<Item = &'s str>>,
) -> Argument<'s> {
    let next = words.next_if(|next| *next == "(" || next.starts_with(|c: char| c.is_lowercase()));
    let argument = match next {
        None => Argument::new("", ArgumentKind::Token),
        Some("(") => group(words),
        Some(word) => Argument::new(word, ArgumentKind::Value),
    };
    Argument { token: Some(token), ..argument }
}

/// What is between brackets, up to the closing one.
fn group<'s>(words: &mut Peekable<impl Iterator<Item = &'s str>>) -> Argument<'s> {
    let mut choices = Vec::new();
    loop {
        let mut choice = sequence(words);
        choices.push(match choice.pop() {
            Some(only) if choice.is_empty() => only,
            last => {
                choice.extend(last);
                Argument::new("", ArgumentKind::All(choice))
            }
        });
        if words.next() != Some("|") {
            break;
        }
    }
    match choices.pop() {
        Some(only) if choices.is_empty() => only,
        last => {
            choices.extend(last);
            Argument::new("", ArgumentKind::OneOf(choices))
        }
    }
}

fn is_token(word: &str) -> bool {
    !word.contains(|c: char| c.is_lowercase())
}

impl<'s> Argument<'s> {
    fn new(word: &'s str, kind: ArgumentKind<'s>) -> Argument<'s> {
        let (is_optional, is_repeated, is_token_repeated) = (false, false, false);
        Argument { word, kind, token: None, is_optional, is_repeated, is_token_repeated }
    }

    /// What the argument is called: several are called by all of their names.
    pub(super) fn name(&self) -> Cow<'s, str> {
        match &self.kind {
            ArgumentKind::Value => Cow::Borrowed(self.word),
            ArgumentKind::Token => Cow::Owned(self.token.unwrap_or_default().to_ascii_lowercase()),
            ArgumentKind::OneOf(inner) | ArgumentKind::All(inner) => {
                let names: Vec<Cow<'_, str>> = inner.iter().map(Argument::name).collect();
                Cow::Owned(names.join("-"))
            }
        }
    }

    /// Its type, as Redis calls it.
    pub(super) fn kind(&self) -> &'static str {
        match (&self.kind, self.word) {
            (ArgumentKind::Token, _) => "pure-token",
            (ArgumentKind::OneOf(_), _) => "oneof",
            (ArgumentKind::All(_), _) => "block",
            (
                ArgumentKind::Value,
                "key" | "key1" | "key2" | "source" | "destination" | "destkey" | "sourcekey"
                | "newkey" | "dst" | "src",
            ) => "key",
            (
                ArgumentKind::Value,
                "seconds" | "milliseconds" | "ms" | "ttl" | "count" | "cursor" | "numkeys"
                | "numfields" | "index" | "index1" | "index2" | "db" | "destination-db" | "offset"
                | "bit" | "bits" | "len" | "rank" | "limit" | "port" | "client-id" | "decrement"
                | "min-idle-time" | "entries-added" | "entries-read" | "protover" | "slot"
                | "numreplicas" | "numlocal" | "frequency" | "num-matches",
            ) => "integer",
            (
                ArgumentKind::Value,
                "increment" | "score" | "weight" | "timeout" | "longitude" | "latitude" | "radius"
                | "width" | "height",
            ) => "double",
            (ArgumentKind::Value, "unix-time-seconds" | "unix-time-milliseconds") => "unix-time",
            (ArgumentKind::Value, "pattern") => "pattern",
            (ArgumentKind::Value, _) => "string",
        }
    }

    /// Its flags, as Redis calls them.
    pub(super) fn flags(&self) -> Vec<&'static str> {
        let flags = [
            (self.is_optional, "optional"),
            (self.is_repeated, "multiple"),
            (self.is_token_repeated, "multiple_token"),
        ];
        flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, flag)| flag).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands;
    use crate::commands::server::docs::table;

    /// Every argument with its type, flags and token.
    fn shown(arguments: &[Argument<'_>]) -> String {
        let one = |argument: &Argument<'_>| {
            let token = argument.token.map(|token| format!("{token} ")).unwrap_or_default();
            let inner = match &argument.kind {
                ArgumentKind::OneOf(inner) | ArgumentKind::All(inner) => {
                    format!("<{}>", shown(inner))
                }
                ArgumentKind::Value | ArgumentKind::Token => String::new(),
            };
            let flags: String = argument.flags().iter().map(|flag| format!(" {flag}")).collect();
            format!("{token}{}:{}{flags}{inner}", argument.name(), argument.kind())
        };
        arguments.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_syntax_is_read_as_arguments() {
        let cases = [
            ("", ""),
            ("key value", "key:key, value:string"),
            ("[NX|XX]", "nx-xx:oneof optional<NX nx:pure-token, XX xx:pure-token>"),
            ("key ... timeout", "key:key multiple, timeout:double"),
            (
                "[COUNT count [ANY]]",
                "count-any:block optional<COUNT count:integer, ANY any:pure-token optional>",
            ),
            ("(field value) ...", "field-value:block multiple<field:string, value:string>"),
            ("[(GET pattern) ...]", "GET pattern:pattern optional multiple multiple_token"),
            ("[WEIGHTS weight ...]", "WEIGHTS weight:double optional multiple"),
            (
                "[OVERFLOW (WRAP|SAT)]",
                "OVERFLOW wrap-sat:oneof optional<WRAP wrap:pure-token, SAT sat:pure-token>",
            ),
            ("(*|id)", "*-id:oneof<* *:pure-token, id:string>"),
            (
                "(host port|NO ONE)",
                "host-port-no-one:oneof<host-port:block<host:string, port:integer>, no-one:block<NO no:pure-token, ONE one:pure-token>>",
            ),
        ];
        for (syntax, arguments) in cases {
            assert_eq!(shown(&parse(syntax)), arguments, "{syntax}");
        }
    }

    /// The arguments as a syntax again.
    fn written(arguments: &[Argument<'_>], between: &str) -> String {
        let one = |argument: &Argument<'_>| {
            let inner = match &argument.kind {
                ArgumentKind::Value => argument.word.to_owned(),
                ArgumentKind::Token => String::new(),
                ArgumentKind::All(inner) => written(inner, " "),
                ArgumentKind::OneOf(inner) => written(inner, "|"),
            };
            let token = argument.token.unwrap_or_default();
            let is_choice = matches!(argument.kind, ArgumentKind::OneOf(_));
            let is_group = is_choice && (!argument.is_optional || !token.is_empty());
            let is_group = is_group || (inner.contains([' ', '|']) && argument.is_repeated);
            let inner = if is_group { format!("({inner})") } else { inner };
            let whole = [token, &inner].join(" ").trim().to_owned();
            let whole = match argument.is_repeated {
                true if argument.is_token_repeated => format!("({whole}) ..."),
                true => format!("{whole} ..."),
                false => whole,
            };
            if argument.is_optional { format!("[{whole}]") } else { whole }
        };
        arguments.iter().map(one).collect::<Vec<_>>().join(between)
    }

    #[test]
    fn the_syntax_of_every_command_is_read_as_it_is_written() {
        for command in commands::each() {
            let syntax = table::of(command.name).syntax;
            let plain = syntax.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(written(&parse(syntax), " "), plain, "{}", command.name);
        }
    }

    /// The fewest words that a client has to say.
    fn fewest(arguments: &[Argument<'_>]) -> usize {
        let one = |argument: &Argument<'_>| {
            let token = usize::from(argument.token.is_some());
            match &argument.kind {
                _ if argument.is_optional => 0,
                ArgumentKind::Token => 1,
                ArgumentKind::Value => 1 + token,
                ArgumentKind::All(inner) => fewest(inner) + token,
                ArgumentKind::OneOf(inner) => {
                    let each = inner.iter().map(|one| fewest(std::slice::from_ref(one)));
                    each.min().unwrap_or_default() + token
                }
            }
        };
        arguments.iter().map(one).sum()
    }

    #[test]
    fn a_syntax_asks_for_as_many_words_as_the_command_does() {
        let mut differ = Vec::new();
        for command in commands::each().filter(|command| command.subcommands.is_empty()) {
            let name = command.name.split('|').count();
            let words = name + fewest(&parse(table::of(command.name).syntax));
            if words != command.arity.unsigned_abs() as usize {
                differ.push((command.name, words, command.arity));
            }
        }
        assert_eq!(differ, []);
    }
}
