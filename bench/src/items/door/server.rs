//! The servers: how each is started, asked one thing, and ended.

use super::kstone::{self, Mode};
use super::load::{content_length, split_head};
use super::request::Signer;
use super::{bare, dynamodb_local};
use crate::items::embedded;
use crate::{Outcome, child, machine};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A server that is not ready by then will never be.
const START_MAX: Duration = Duration::from_secs(60);

/// Names a server on the command line and in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerName {
    /// Ours.
    Keystone,
    /// Ours, checking signatures.
    KeystoneSigned,
    /// Ours, keeping nothing; only to see what it takes.
    KeystoneMemory,
    /// hyper that answers the same bytes.
    Bare,
    /// Dynoxide's server.
    Dynoxide,
    /// Amazon's server for development.
    DynamodbLocal,
}

/// What the servers need to be there; found once, before the first is started.
#[derive(Default)]
pub struct Setup {
    /// Our own program.
    pub kstone: Option<PathBuf>,
    /// Where DynamoDB Local is.
    pub dynamodb_local: Option<PathBuf>,
}

impl ServerName {
    /// Every server that plays, ours first.
    pub const ALL: &[ServerName] = &[
        ServerName::Keystone,
        ServerName::KeystoneSigned,
        ServerName::Bare,
        ServerName::Dynoxide,
        ServerName::DynamodbLocal,
    ];

    /// The name that is printed and parsed.
    pub fn as_str(self) -> &'static str {
        match self {
            ServerName::Keystone => "keystone",
            ServerName::KeystoneSigned => "keystone-signed",
            ServerName::KeystoneMemory => "keystone-memory",
            ServerName::Bare => "bare-hyper",
            ServerName::Dynoxide => "dynoxide",
            ServerName::DynamodbLocal => "dynamodb-local",
        }
    }

    /// Whether it is KeystoneDB; the rest are peers.
    pub fn is_ours(self) -> bool {
        self.as_str().starts_with("keystone")
    }

    /// Whether it keeps what it is given.
    pub fn stores(self) -> bool {
        self != ServerName::Bare
    }

    fn command(self, setup: &Setup, dir: &Path, port: u16) -> Outcome<Command> {
        let ours = |mode| {
            let program = setup.kstone.as_ref().ok_or("kstone was not built")?;
            kstone::command(program, &mode, port)
        };
        match self {
            ServerName::Keystone => ours(Mode::Data(dir)),
            ServerName::KeystoneSigned => ours(Mode::Signed(dir)),
            ServerName::KeystoneMemory => ours(Mode::Memory),
            ServerName::Bare | ServerName::Dynoxide => {
                let request = Serve { server: self, dir: dir.to_owned(), port };
                let mut command = Command::new(std::env::current_exe()?);
                command.args([child::SUBCOMMAND, "server"]);
                command.arg(serde_json::to_string(&request)?);
                Ok(command)
            }
            ServerName::DynamodbLocal => {
                let home = setup.dynamodb_local.as_ref().ok_or("DynamoDB Local was not found")?;
                Ok(dynamodb_local::command(home, dir, port))
            }
        }
    }
}

/// What a child of ours is to serve.
#[derive(Serialize, Deserialize)]
struct Serve {
    server: ServerName,
    dir: PathBuf,
    port: u16,
}

/// Serves in this process until it is killed.
pub fn serve(request: &str) -> Outcome<()> {
    let Serve { server, dir, port } = serde_json::from_str(request)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        match server {
            ServerName::Bare => bare::serve(listener).await,
            ServerName::Dynoxide => {
                dynoxide::server::serve_on(listener, embedded::open_dynoxide(Some(&dir))?).await;
                Ok(())
            }
            _ => Err("that one is a program of its own".into()),
        }
    })
}

/// A server that runs; it is killed when it goes out of scope.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    /// From its start to its first right answer.
    pub start_ms: f64,
}

impl Server {
    /// Starts a server on the database in `dir` and waits until it answers.
    pub fn start(name: ServerName, setup: &Setup, dir: &Path) -> Outcome<Self> {
        // Free now and, but for bad luck, in a moment too.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        std::fs::create_dir_all(dir)?;
        let log_path = dir.with_extension("log");
        let log = File::options().create(true).append(true).open(&log_path)?;
        let mut command = name.command(setup, dir, port)?;
        command.stdout(log.try_clone()?).stderr(log);
        let start = Instant::now();
        let mut server = Server {
            child: command.spawn()?,
            address: (Ipv4Addr::LOCALHOST, port).into(),
            start_ms: 0.0,
        };
        loop {
            if server.call("ListTables", "{}").is_ok() {
                server.start_ms = start.elapsed().as_secs_f64() * 1e3;
                return Ok(server);
            }
            let ended = server.child.try_wait()?;
            if ended.is_some() || start.elapsed() > START_MAX {
                let said = std::fs::read_to_string(&log_path).unwrap_or_default();
                return Err(format!("{} did not start: {said}", name.as_str()).into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What signs requests to this server.
    pub fn signer(&self) -> Signer {
        Signer::new(self.address.to_string())
    }

    /// Calls an operation on a connection of its own; an error unless it answers 200.
    pub fn call(&self, operation: &str, body: &str) -> Outcome<serde_json::Value> {
        let mut caller = Caller::connect(self)?;
        caller.call(operation, body)
    }

    /// The processor time that it has used.
    pub fn cpu(&self) -> Outcome<Duration> {
        Ok(machine::cpu_time(&self.pid().to_string())?)
    }

    /// The memory that it has now, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        machine::memory_bytes(&self.pid().to_string(), "VmRSS:")
    }

    /// The most memory that it has had, in bytes.
    pub fn peak_memory_bytes(&self) -> u64 {
        machine::memory_bytes(&self.pid().to_string(), "VmHWM:")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection for calls one after the other: to set up and to check, never timed.
pub struct Caller {
    stream: TcpStream,
    signer: Signer,
    answer: Vec<u8>,
}

impl Caller {
    /// Connects to a server.
    pub fn connect(server: &Server) -> Outcome<Self> {
        let stream = TcpStream::connect(server.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(START_MAX))?;
        Ok(Caller { stream, signer: server.signer(), answer: vec![] })
    }

    /// Calls an operation; an error unless it answers 200.
    pub fn call(&mut self, operation: &str, body: &str) -> Outcome<serde_json::Value> {
        self.stream.write_all(&self.signer.sign(operation, body))?;
        self.answer.clear();
        let mut piece = [0; 16 << 10];
        loop {
            let read = self.stream.read(&mut piece)?;
            if read == 0 {
                return Err("the server closed the connection".into());
            }
            self.answer.extend_from_slice(&piece[..read]);
            let Some((head, body)) = split_head(&self.answer) else { continue };
            let body_len = content_length(head).ok_or("an answer without a length")?;
            if body.len() < body_len {
                continue;
            }
            if !head.starts_with(b"HTTP/1.1 200 ") {
                let answer = String::from_utf8_lossy(&self.answer);
                return Err(format!("{operation}: {answer}").into());
            }
            return Ok(serde_json::from_slice(body)?);
        }
    }
}
