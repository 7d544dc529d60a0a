//! The command line of a program of long tests: `program COMMAND --name value …`.

use std::process::ExitCode;

/// Why a command did not succeed.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The words make no sense. The help is shown as well.
    Usage(String),
    /// A test failed, or could not be run.
    Test(String),
}

impl From<String> for Failure {
    fn from(what: String) -> Self {
        Failure::Test(what)
    }
}

impl Failure {
    /// There is no such command.
    pub fn no_command(name: &str) -> Self {
        Failure::Usage(format!("there is no command {name}"))
    }
}

/// Carries out the command that this process was started with, given with the words behind it.
pub fn main(
    help: &str,
    carry_out: impl FnOnce(&str, &[String]) -> Result<(), Failure>,
) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.split_first() {
        None => Err(Failure::Usage("which command?".to_owned())),
        Some((command, _)) if ["--help", "-h", "help"].contains(&command.as_str()) => {
            print!("{help}");
            Ok(())
        }
        Some((command, rest)) => carry_out(command, rest),
    };
    match done {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(what)) => eprintln!("{what}\n\n{help}"),
        Err(Failure::Test(what)) => eprintln!("{what}"),
    }
    ExitCode::FAILURE
}

/// `--name value` pairs.
#[derive(Debug)]
pub struct Flags<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Flags<'a> {
    /// Refuses a name that is not among the known ones, and one without a value.
    pub fn parse(words: &'a [String], known: &[&str]) -> Result<Self, Failure> {
        let pairs = words.chunks(2).map(|pair| match pair {
            [name, value] => match name.strip_prefix("--").filter(|name| known.contains(name)) {
                Some(name) => Ok((name, value.as_str())),
                None => Err(Failure::Usage(format!("there is no flag {name} here"))),
            },
            _ => Err(Failure::Usage(format!("cannot make sense of {pair:?}"))),
        });
        pairs.collect::<Result<_, _>>().map(Flags)
    }

    /// The value of a flag, if it is there.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The value of a flag as a number.
    pub fn number(&self, name: &str, default: u64) -> Result<u64, Failure> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| Failure::Usage(format!("--{name} needs a number")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn flags_have_the_values_that_were_given_or_the_default() {
        let words = words("--seed 7 --dir here");
        let flags = Flags::parse(&words, &["seed", "dir", "rounds"]).unwrap();
        assert_eq!(flags.number("seed", 0), Ok(7));
        assert_eq!(flags.number("rounds", 200), Ok(200));
        assert_eq!((flags.text("dir"), flags.text("rounds")), (Some("here"), None));
        assert!(matches!(flags.number("dir", 0), Err(Failure::Usage(_))));
    }

    #[test]
    fn a_flag_that_is_not_known_or_has_no_value_is_refused() {
        for text in ["--sede 7", "seed 7", "--seed"] {
            let refused = Flags::parse(&words(text), &["seed"]).map(drop);
            assert!(matches!(refused, Err(Failure::Usage(_))), "{text}");
        }
    }
}
