//! What a reply means: as the value that our own engine would give, or as a reason to ask again.

use bytes::Bytes;
use kstone_ports::Error;
use kstone_ports::keys::{ErrorReply, PortCommand, Reply};

use crate::form::{Form, reply_of};

/// What a reply means for the command that it answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// The command was executed, or refused for good.
    Done(Reply),
    /// Not executed: the slot is at this node now.
    Moved(String),
    /// Not executed: the key is at this node already, while the slot moves there.
    Ask(String),
    /// Not executed, for a reason that passes.
    NotNow(ErrorReply),
}

/// What the reply to a command means. `asked` is the address of who replied.
pub(crate) fn verdict(
    reply: redis::Value,
    given: &[Bytes],
    command: &PortCommand,
    asked: &str,
) -> Verdict {
    match reply_of(reply, Form::of(command.name, given)) {
        Err(error) => verdict_of_error(error, command.slot, asked),
        value => Verdict::Done(value),
    }
}

/// What an error of a command on `slot` means.
pub(crate) fn verdict_of_error(error: ErrorReply, slot: Option<u16>, asked: &str) -> Verdict {
    let redirect = || {
        let mut words = error.message().split(' ').skip(1);
        // A script may say MOVED too, but hardly of this slot.
        words.next()?.parse().ok().filter(|it| Some(*it) == slot)?;
        Some(endpoint(words.next()?, asked))
    };
    let to = match error.code() {
        "MOVED" => redirect().map(Verdict::Moved),
        "ASK" => redirect().map(Verdict::Ask),
        "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "READONLY" => None,
        _ => return Verdict::Done(Err(error)),
    };
    match to {
        Some(redirected) => redirected,
        None if error.code() == "MOVED" || error.code() == "ASK" || in_script(&error) => {
            Verdict::Done(Err(error))
        }
        None => Verdict::NotNow(error),
    }
}

/// Whether a script failed in the middle: what it did before has been done.
fn in_script(error: &ErrorReply) -> bool {
    error.message().contains("script:") || error.message().contains("@user_")
}

/// A node that tells of another may leave out the host, which then is its own.
pub(crate) fn endpoint(named: &str, asked: &str) -> String {
    match named.strip_prefix(':').filter(|port| !port.contains(':')) {
        Some(port) => format!("{}:{port}", asked.rsplit_once(':').map_or(asked, |it| it.0)),
        None => match named.rsplit_once(':') {
            // As nodes write IPv6 here.
            Some((host, port)) if host.contains(':') && !host.starts_with('[') => {
                format!("[{host}]:{port}")
            }
            _ => named.to_owned(),
        },
    }
}

/// The error that one command fails with when its reply is an error.
pub(crate) fn error_of(error: ErrorReply) -> Error {
    let message = error.message();
    match error.code() {
        _ if in_script(&error) => Error::Reply(error),
        "OOM" | "BUSY" | "TRYAGAIN" => Error::Throttled(message.to_owned()),
        "LOADING" | "CLUSTERDOWN" | "MASTERDOWN" | "READONLY" | "NOREPLICAS" | "MISCONF" => {
            Error::Unavailable(message.to_owned())
        }
        "MOVED" | "ASK" => Error::Unavailable(format!(
            "{message}: this is a node of a cluster, whose URL begins with redis-cluster://"
        )),
        "NOAUTH" | "WRONGPASS" => Error::Unavailable(message.to_owned()),
        "ERR" => match message.get("ERR ".len()..).unwrap_or_default() {
            rest if rest.starts_with("unknown command")
                || rest.starts_with("unknown subcommand") =>
            {
                Error::Unsupported(message.to_owned())
            }
            rest if rest.starts_with("max number of clients") => {
                Error::Throttled(message.to_owned())
            }
            _ => Error::Reply(error),
        },
        _ => Error::Reply(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(message: &str) -> Verdict {
        verdict_of_error(ErrorReply::new(message), Some(7), "10.0.0.1:6379")
    }

    #[test]
    fn redirects_are_followed_and_passing_troubles_waited_for() {
        assert_eq!(meaning("MOVED 7 10.0.0.2:1"), Verdict::Moved("10.0.0.2:1".to_owned()));
        assert_eq!(meaning("MOVED 7 :2"), Verdict::Moved("10.0.0.1:2".to_owned()));
        assert_eq!(meaning("ASK 7 ::1:2"), Verdict::Ask("[::1]:2".to_owned()));
        assert!(matches!(meaning("MOVED 8 10.0.0.2:1"), Verdict::Done(Err(_))));
        assert!(matches!(meaning("CLUSTERDOWN Hash slot not served"), Verdict::NotNow(_)));
        assert!(matches!(meaning("WRONGTYPE Operation"), Verdict::Done(Err(_))));
        assert!(matches!(meaning("READONLY x script: 1, on @user_script"), Verdict::Done(Err(_))));
    }

    #[test]
    fn an_error_says_what_the_caller_can_do() {
        let error = |message: &str| error_of(ErrorReply::new(message));
        assert!(matches!(error("OOM command not allowed"), Error::Throttled(_)));
        assert!(matches!(error("OOM not allowed script: 1"), Error::Reply(_)));
        assert!(matches!(error("CLUSTERDOWN The cluster is down"), Error::Unavailable(_)));
        assert!(matches!(error("ERR unknown command 'HGETEX'"), Error::Unsupported(_)));
        assert!(matches!(error("ERR syntax error"), Error::Reply(_)));
    }
}
