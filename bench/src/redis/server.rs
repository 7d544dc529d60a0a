//! The two servers: how each is started, talked to, and ended.

use crate::{Outcome, machine};
use serde::Serialize;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A server that is not ready by then will never be.
const START_MAX: Duration = Duration::from_secs(120);

/// Names a server in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// Ours.
    Keystone,
    /// Redis itself.
    Redis,
}

/// When a write is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Within a second.
    Interval,
    /// Before the reply.
    Sync,
}

impl Durability {
    /// Both.
    pub const ALL: [Durability; 2] = [Durability::Interval, Durability::Sync];

    /// What we call it.
    pub fn ours(self) -> &'static str {
        match self {
            Durability::Interval => "interval",
            Durability::Sync => "sync",
        }
    }

    /// What Redis calls it.
    fn theirs(self) -> &'static str {
        match self {
            Durability::Interval => "everysec",
            Durability::Sync => "always",
        }
    }
}

/// The version of the redis-server that plays.
pub fn redis_version() -> Outcome<String> {
    let said = Command::new("redis-server").arg("--version").output()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let version = said.split_whitespace().find(|word| word.starts_with("v="));
    Ok(format!("redis-server {}", version.unwrap_or("?").trim_start_matches("v=")))
}

/// A server that runs; it is killed when it goes out of scope.
pub struct Server {
    /// Which.
    pub name: Name,
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it keeps its data.
    pub dir: PathBuf,
    /// From its start to its first PONG.
    pub start_ms: f64,
}

impl Server {
    /// Starts a server on a folder of its own under `dir` and waits until it answers. With a
    /// memory budget, ours keeps no more than that in memory.
    pub fn start(
        name: Name,
        program: &Path,
        durability: Durability,
        dir: &Path,
        memory_budget: Option<u64>,
    ) -> Outcome<Server> {
        let of_name = match name {
            Name::Keystone => "keystone",
            Name::Redis => "redis",
        };
        let dir = dir.join(format!("{of_name}-{}", durability.ours()));
        Server::start_in(name, program, durability, dir, memory_budget)
    }

    fn start_in(
        name: Name,
        program: &Path,
        durability: Durability,
        dir: PathBuf,
        memory_budget: Option<u64>,
    ) -> Outcome<Server> {
        // Free now and, but for bad luck, in a moment too.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        std::fs::create_dir_all(&dir)?;
        let log_path = dir.with_extension("log");
        let log = File::options().create(true).append(true).open(&log_path)?;
        let mut command = match name {
            Name::Keystone => {
                let mut command = Command::new(program);
                command.arg("serve").arg("--data").arg(&dir);
                command.args(["--dynamodb", "off", "--redis", &format!("127.0.0.1:{port}")]);
                command.args(["--dapr-http", "off", "--dapr-grpc", "off"]);
                command.args(["--redis-durability", durability.ours()]);
                if let Some(bytes) = memory_budget {
                    let budget = format!("{}MiB", (bytes >> 20).max(1));
                    command.args(["--memory-budget", &budget]);
                }
                command
            }
            Name::Redis => {
                let mut command = Command::new("redis-server");
                command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""]);
                command.args(["--appendonly", "yes", "--appendfsync", durability.theirs()]);
                command.arg("--dir").arg(&dir);
                command
            }
        };
        command.stdout(log.try_clone()?).stderr(log);
        let start = Instant::now();
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let mut server = Server { name, child: command.spawn()?, address, dir, start_ms: 0.0 };
        loop {
            if server.call(&["PING"]).is_ok_and(|answer| answer.starts_with("+PONG")) {
                server.start_ms = start.elapsed().as_secs_f64() * 1e3;
                return Ok(server);
            }
            let ended = server.child.try_wait()?;
            if ended.is_some() || start.elapsed() > START_MAX {
                let said = std::fs::read_to_string(&log_path).unwrap_or_default();
                return Err(format!("{name:?} did not start: {said}").into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends it as an operator would, and starts it again on the same data.
    pub fn restart(
        mut self,
        program: &Path,
        durability: Durability,
        memory_budget: Option<u64>,
    ) -> Outcome<Server> {
        Command::new("kill").arg(self.child.id().to_string()).status()?;
        self.child.wait()?;
        Server::start_in(self.name, program, durability, self.dir.clone(), memory_budget)
    }

    /// Calls a command on a connection of its own; the first line of its answer.
    pub fn call(&self, words: &[&str]) -> Outcome<String> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(START_MAX))?;
        stream.write_all(&encode(words))?;
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        while !answer.contains(&b'\n') {
            match stream.read(&mut piece)? {
                0 => return Err("the server closed the connection".into()),
                read => answer.extend_from_slice(&piece[..read]),
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Sends many commands, each of which is answered by one line, in pipelines.
    pub fn pour(&self, commands: impl Iterator<Item = Vec<u8>>) -> Outcome<()> {
        const AT_ONCE: usize = 512;
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        let mut commands = commands.peekable();
        let mut piece = vec![0; 64 << 10];
        while commands.peek().is_some() {
            let mut batch = Vec::new();
            let mut expected = 0;
            for command in commands.by_ref().take(AT_ONCE) {
                batch.extend_from_slice(&command);
                expected += 1;
            }
            stream.write_all(&batch)?;
            while expected > 0 {
                let read = stream.read(&mut piece)?;
                if read == 0 {
                    return Err("the server closed the connection".into());
                }
                let lines = piece[..read].iter().filter(|&&byte| byte == b'\n').count();
                if piece[..read].contains(&b'-') && piece[..read].windows(4).any(|at| at == b"-ERR")
                {
                    return Err(String::from_utf8_lossy(&piece[..read]).into_owned().into());
                }
                expected -= lines.min(expected);
            }
        }
        Ok(())
    }

    /// The processor time that it has used.
    pub fn cpu(&self) -> Outcome<Duration> {
        Ok(machine::cpu_time(&self.child.id().to_string())?)
    }

    /// The memory that it has now, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        machine::memory_bytes(&self.child.id().to_string(), "VmRSS:")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command as it is sent.
pub fn encode(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}
