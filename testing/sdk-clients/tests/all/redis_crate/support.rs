//! A server that can be killed, and the check that every kind of key goes through.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{Client, Connection, FromRedisValue};
use tempfile::TempDir;

/// How far the clock of a test and that of its server may lie apart.
const CLOCKS_APART: Duration = Duration::from_secs(1);

/// A door in a process of its own; killed when dropped.
pub struct Server {
    folder: TempDir,
    child: Child,
    client: Client,
}

impl Server {
    pub fn start() -> Server {
        let folder = TempDir::new().unwrap();
        let (child, client) = start(&folder);
        Server { folder, child, client }
    }

    /// Ends the process as `kill -9` does, and starts another on the same folder.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        (self.child, self.client) = start(&self.folder);
    }

    pub fn connect(&self) -> Connection {
        self.client.get_connection().unwrap()
    }

    /// Does the same on so many connections at a time, and gives all answers.
    pub fn at_once<T: Send>(&self, times: usize, work: impl Fn(Connection) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let begin = || scope.spawn(|| work(self.connect()));
            let threads: Vec<_> = (0..times).map(|_| begin()).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start(folder: &TempDir) -> (Child, Client) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kstone-clients"))
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    (child, Client::open(url.trim()).unwrap())
}

/// Sends one command, its words separated by spaces.
pub fn ask<T: FromRedisValue>(connection: &mut Connection, command: &str) -> T {
    send(connection, &command.split(' ').collect::<Vec<_>>())
}

/// Sends one command.
pub fn send<T: FromRedisValue>(connection: &mut Connection, words: &[&str]) -> T {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word);
    }
    command.query(connection).unwrap()
}

/// Writes a key and checks it, then again after the server was killed. `ttl_s` is how long the key
/// was given; `None` is for ever.
#[track_caller]
pub fn survives(
    key: &str,
    ttl_s: Option<u64>,
    write: impl Fn(&mut Connection),
    check: impl Fn(&mut Connection),
) {
    let mut server = Server::start();
    let mut connection = server.connect();
    let begun = Instant::now();
    write(&mut connection);
    check(&mut connection);
    expect_ttl(&mut connection, key, ttl_s, begun);
    let expires: i64 = send(&mut connection, &["PEXPIRETIME", key]);
    server.kill_and_restart();
    let mut connection = server.connect();
    check(&mut connection);
    assert_eq!(send::<i64>(&mut connection, &["PEXPIRETIME", key]), expires, "{key}");
    expect_ttl(&mut connection, key, ttl_s, begun);
}

/// The key was written after `begun` with this TTL, and not later than now.
#[track_caller]
fn expect_ttl(connection: &mut Connection, key: &str, ttl_s: Option<u64>, begun: Instant) {
    let left_ms: i64 = send(connection, &["PTTL", key]);
    let Some(ttl_s) = ttl_s else { return assert_eq!(left_ms, -1, "{key}") };
    let left = Duration::from_millis(u64::try_from(left_ms).unwrap());
    let given = Duration::from_secs(ttl_s);
    // What has passed is read here from one clock and in the server from another, and on a virtual
    // machine the clocks of two cores may lie apart.
    let least = given.saturating_sub(begun.elapsed() + CLOCKS_APART);
    let most = given + CLOCKS_APART;
    assert!((least..=most).contains(&left), "{key} has {left:?} left of {given:?}");
}
