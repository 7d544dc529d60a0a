//! Servers to talk to: both doors in a process that can be killed, and Redis's own server.

use std::io::{self, BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kstone::{Database, DatabaseOptions, Durability};
use kstone_core::env::Env;

use crate::server::Door;

/// How long a server may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The command of `kstone-door-tests` that serves a folder at both doors.
pub const CHILD: &str = "doors-of-a-folder";

/// A server in a process of its own; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Where Redis's protocol is spoken.
    pub redis: SocketAddr,
    /// Where DynamoDB's is, if at all.
    pub dynamo: Option<SocketAddr>,
}

impl Process {
    /// Serves a folder at both doors: `program` is `kstone-door-tests`.
    ///
    /// # Errors
    /// If the program does not start, or ends before it listens.
    pub fn doors(program: &Path, folder: &Path, durability: Durability) -> io::Result<Process> {
        let durability = match durability {
            Durability::Sync => "sync",
            _ => "interval",
        };
        let mut child = Command::new(program)
            .arg(CHILD)
            .arg(folder)
            .arg(durability)
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()?;
        let Some(out) = child.stdout.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let mut addresses = line.split_whitespace().filter_map(|word| word.parse().ok());
        match (addresses.next(), addresses.next()) {
            (Some(redis), dynamo @ Some(_)) => Ok(Process { child, redis, dynamo }),
            _ => {
                let _ = child.kill();
                Err(io::Error::other(format!("the doors ended: {:?}", child.wait())))
            }
        }
    }

    /// Starts `redis-server` at a free port, without files; `None` if it is not installed.
    ///
    /// # Errors
    /// If it does not listen in time.
    pub fn redis_server() -> io::Result<Option<Process>> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null())
            .spawn();
        let child = match child {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let redis = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut process = Process { child, redis, dynamo: None };
        let began = Instant::now();
        while TcpStream::connect(redis).is_err() {
            if let Some(status) = process.child.try_wait()? {
                return Err(io::Error::other(format!("redis-server ended: {status}")));
            }
            if began.elapsed() > START_TIMEOUT {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(process))
    }

    /// Ends it at once, as `kill -9` does, and waits until it is gone.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// How many bytes of memory it has, or had at most; 0 where the system does not say.
    pub fn memory_bytes(&self, what: Memory) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let name = match what {
            Memory::Now => "VmRSS:",
            Memory::Peak => "VmHWM:",
        };
        let line = status.unwrap_or_default();
        let line = line.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }
}

/// Which memory is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// What it has.
    Now,
    /// The most it ever had.
    Peak,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// What [`CHILD`] does: serves the database in a folder at both doors until it is killed.
///
/// # Errors
/// If the folder cannot be opened or served.
pub fn child(folder: &Path, durability: &str) -> Result<(), String> {
    let durability = match durability {
        "sync" => Durability::Sync,
        "interval" => Durability::Interval,
        other => return Err(format!("no durability is called {other}")),
    };
    let options = DatabaseOptions { durability, ..DatabaseOptions::default() };
    let database = Database::open_with(Env::system(), folder, options);
    let database = database.map_err(|error| error.to_string())?;
    let redis = Door::redis(&database).map_err(|error| error.to_string())?;
    let dynamo = Door::dynamo(database).map_err(|error| error.to_string())?;
    println!("{} {}", redis.address(), dynamo.address());
    loop {
        std::thread::park();
    }
}
