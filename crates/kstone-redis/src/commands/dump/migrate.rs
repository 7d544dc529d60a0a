//! MIGRATE: moves keys to another server.
//!
//! As with Redis, nothing else happens to the keys meanwhile, so that what is removed here is
//! exactly what has arrived there. If the connection breaks, a key may be at both places, but never
//! at none.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::payload;
use crate::RemoteCommands;
use crate::args;
use crate::command_spec::{Command, Flow, Keys, Run, flag::*};
use crate::fault::{Fault, Result};
use crate::reply::{Sink, Value};
use crate::server::Server;
use crate::session::Session;

pub(super) const MIGRATE: Command = Command {
    name: "migrate",
    arity: -6,
    flags: WRITE | MOVABLE_KEYS,
    keys: Keys::Found { listed: (3, 3, 1), find: find_keys },
    categories: "keyspace dangerous",
    run: Run::Waiting(migrate),
    subcommands: &[],
};

/// How long to wait if the client does not care.
const TIMEOUT_MS: u64 = 1000;

fn find_keys(args: &[&[u8]]) -> Vec<usize> {
    let listed = args.iter().skip(6).position(|arg| args::is(arg, "keys"));
    match (args.get(3), listed) {
        (Some([]), Some(at)) => (at + 7..args.len()).collect(),
        (Some([]) | None, _) => Vec::new(),
        (Some(_), _) => vec![3],
    }
}

/// A command with its arguments.
type Words = Vec<Vec<u8>>;

/// What is asked for.
#[derive(Debug, Default)]
struct Request<'a> {
    host: &'a [u8],
    port: u16,
    db: i64,
    timeout: Duration,
    copy: bool,
    replace: bool,
    /// What to say first: AUTH with a password, and perhaps a user before it.
    login: Vec<&'a [u8]>,
    keys: Vec<&'a [u8]>,
}

impl<'a> Request<'a> {
    fn parse(args: &[&'a [u8]]) -> Result<Request<'a>> {
        let [_, host, port, key, db, timeout, options @ ..] = args else {
            return Err(Fault::SYNTAX);
        };
        let mut request = Request { host, keys: vec![key], ..Request::default() };
        let mut rest = options;
        while let [option, after @ ..] = rest {
            rest = after;
            match after {
                _ if args::is(option, "copy") => request.copy = true,
                _ if args::is(option, "replace") => request.replace = true,
                [password, after @ ..] if args::is(option, "auth") => {
                    (request.login, rest) = (vec![*password], after);
                }
                [user, password, after @ ..] if args::is(option, "auth2") => {
                    (request.login, rest) = (vec![*user, *password], after);
                }
                keys if args::is(option, "keys") => {
                    if !key.is_empty() {
                        return Err(Fault::fixed(
                            "ERR When using MIGRATE KEYS option, the key argument must be set to \
                             the empty string",
                        ));
                    }
                    request.keys = keys.to_vec();
                    break;
                }
                _ => return Err(Fault::SYNTAX),
            }
        }
        let timeout_ms = u64::try_from(args::integer(timeout)?).ok().filter(|ms| *ms > 0);
        request.timeout = Duration::from_millis(timeout_ms.unwrap_or(TIMEOUT_MS));
        request.db = args::integer(db)?;
        request.port = u16::try_from(args::integer(port)?)
            .map_err(|_| Fault::fixed("ERR Invalid TCP port specified"))?;
        Ok(request)
    }

    /// The commands to send before those that restore keys.
    fn greeting(&self) -> Vec<Words> {
        let mut commands = Vec::new();
        if !self.login.is_empty() {
            let words = [&b"AUTH"[..]].into_iter().chain(self.login.iter().copied());
            commands.push(words.map(<[u8]>::to_vec).collect());
        }
        commands.push(vec![b"SELECT".to_vec(), self.db.to_string().into_bytes()]);
        commands
    }
}

fn migrate<'a>(
    session: &'a mut Session,
    args: &'a [&'a [u8]],
    out: &'a mut (dyn Sink + Send),
) -> Pin<Box<dyn Future<Output = Result<Flow>> + Send + 'a>> {
    Box::pin(async move {
        const IO_FAULT: Fault = Fault::fixed("IOERR error or timeout writing to target instance");
        let request = Request::parse(args)?;
        let server = Arc::clone(&session.server);
        let _alone = server.scripts.running.unless_busy(server.locks.exclude()).await?;
        let (keys, mut restores) = dump(&server, session.client.db, &request)?;
        if keys.is_empty() {
            return out.reply_simple("NOKEY");
        }
        let mut commands = request.greeting();
        let greetings = commands.len();
        commands.append(&mut restores);
        let remote = RemoteCommands {
            host: args::shown(request.host).into_owned(),
            port: request.port,
            timeout: request.timeout,
            commands,
        };
        let Some(run) = server.run_remote_commands.get() else { return Err(IO_FAULT) };
        let replies = run(remote).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotConnected => {
                Fault::fixed("IOERR error or timeout connecting to the client")
            }
            _ => IO_FAULT,
        })?;
        let refused = replies.iter().find_map(|reply| match reply {
            Value::Error(message) => Some(args::shown(message)),
            _ => None,
        });
        let is_error = |reply: &Value| matches!(reply, Value::Error(_));
        let is_welcome = !replies.iter().take(greetings).any(is_error);
        if is_welcome && !request.copy {
            let mut txn = server.begin(session.client.db);
            for (key, reply) in keys.iter().zip(replies.iter().skip(greetings)) {
                if !is_error(reply)
                    && let Some(entry) = txn.lookup(key)?
                {
                    txn.remove(key, &entry);
                    txn.notify_counted('g', "del", key, 1);
                }
            }
            let (seq, ready) = server.commit(txn)?;
            session.note_seq(seq);
            session.note_seq(server.serve_blocked(ready));
        }
        match refused {
            Some(message) => {
                let message = format!("ERR Target instance replied with error: {message}");
                Err(Fault::new(message))
            }
            None => out.reply_ok(),
        }
    })
}

/// The keys that are there, and the commands that restore them elsewhere.
fn dump<'a>(server: &Server, db: u8, request: &Request<'a>) -> Result<(Vec<&'a [u8]>, Vec<Words>)> {
    let mut txn = server.begin(db);
    let (mut keys, mut commands) = (Vec::new(), Vec::new());
    for key in &request.keys {
        let Some(entry) = txn.lookup(key)? else { continue };
        // Zero would be for ever.
        let left_ms =
            entry.expires_at_ms.map_or(0, |at_ms| at_ms.saturating_sub(txn.now_ms()).max(1));
        let payload = payload::write(&mut txn, key, &entry)?;
        let time = left_ms.to_string().into_bytes();
        let mut command = vec![b"RESTORE".to_vec(), key.to_vec(), time, payload];
        if request.replace {
            command.push(b"REPLACE".to_vec());
        }
        keys.push(*key);
        commands.push(command);
    }
    // What had expired goes. The caller has the whole keyspace to itself.
    let (_, ready) = server.commit(txn)?;
    server.serve_blocked(ready);
    Ok((keys, commands))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&[u8]> {
        line.split(' ').map(|word| word.trim_matches('"').as_bytes()).collect()
    }

    #[test]
    fn keys_are_the_third_argument_or_a_list_at_the_end() {
        assert_eq!(find_keys(&words("migrate host 1 key 0 100 copy")), [3]);
        assert_eq!(find_keys(&words("migrate host 1 \"\" 0 100 replace keys a b")), [8, 9]);
        assert!(find_keys(&words("migrate host 1 \"\" 0 100")).is_empty());
    }

    #[test]
    fn options_are_read_in_any_order() {
        let line = words("migrate host 6379 \"\" 2 0 replace auth2 u p copy keys a b");
        let request = Request::parse(&line).unwrap();
        assert!(request.copy && request.replace);
        assert_eq!(request.keys, [b"a", b"b"]);
        assert_eq!(request.timeout, Duration::from_secs(1));
        let greeting = request.greeting();
        assert_eq!(greeting[0], [b"AUTH".to_vec(), b"u".to_vec(), b"p".to_vec()]);
        assert_eq!(greeting[1], [b"SELECT".to_vec(), b"2".to_vec()]);
        assert!(Request::parse(&words("migrate h 1 k 0 100 keys a")).is_err());
        assert!(Request::parse(&words("migrate h 1 k 0 100 auth")).is_err());
    }
}
