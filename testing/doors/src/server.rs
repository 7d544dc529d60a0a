//! Servers to talk to: a door in this process, a door in a process that can be killed, and
//! DynamoDB Local.

use std::future::pending;
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kstone::Database;
use kstone_dynamo::{DoorOptions, serve};
use kstone_redis::Redis;

/// How long a server may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A door in this process; closed when dropped.
#[derive(Debug)]
pub struct Door {
    address: SocketAddr,
    // Dropping it ends the tasks.
    _runtime: tokio::runtime::Runtime,
}

impl Door {
    /// Serves the database in DynamoDB's protocol.
    ///
    /// # Errors
    /// If there is no free port, or no threads.
    pub fn dynamo(database: Database) -> io::Result<Door> {
        Door::open(|listener| serve(listener, database, DoorOptions::default(), pending()))
    }

    /// Serves the keys of the database in Redis's protocol.
    ///
    /// # Errors
    /// If there is no free port, or no threads.
    pub fn redis(database: &Database) -> io::Result<Door> {
        let redis = Redis::open(database).map_err(io::Error::other)?;
        Door::open(|listener| kstone_resp::serve(listener, redis, pending()))
    }

    /// Opens it at a free port of loopback.
    fn open<S>(serve: impl FnOnce(tokio::net::TcpListener) -> S) -> io::Result<Door>
    where
        S: Future<Output: Send> + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = runtime.block_on(tokio::net::TcpListener::bind(any))?;
        let address = listener.local_addr()?;
        runtime.spawn(serve(listener));
        Ok(Door { address, _runtime: runtime })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A server in a process of its own; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    address: SocketAddr,
}

/// How a door's process is started: the program, and its arguments before the folder.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    is_kstone: bool,
}

/// The command of `kstone-door-tests` that serves a folder.
pub const CHILD: &str = "door-of-a-folder";

impl Program {
    /// `kstone serve`.
    pub fn kstone(path: PathBuf) -> Self {
        Program { path, is_kstone: true }
    }

    /// This program's own door.
    pub fn proofs(path: PathBuf) -> Self {
        Program { path, is_kstone: false }
    }
}

impl Process {
    /// Serves the database in a folder at a free port, and waits until it listens.
    ///
    /// # Errors
    /// If the program does not start, or ends before it listens.
    pub fn door(program: &Program, folder: &Path) -> io::Result<Process> {
        let mut command = Command::new(&program.path);
        match program.is_kstone {
            true => {
                let words = ["serve", "--dynamodb", "127.0.0.1:0", "--redis", "off"];
                command.args(words).args(["--dapr-http", "off", "--dapr-grpc", "off"]);
                command.args(["--console", "off", "--data"]).arg(folder)
            }
            false => command.arg(CHILD).arg(folder),
        };
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn()?;
        let Some(out) = child.stdout.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let mut out = BufReader::new(out);
        let mut said = String::new();
        loop {
            let mut line = String::new();
            if out.read_line(&mut line)? == 0 {
                let status = child.wait()?;
                return Err(io::Error::other(format!("the door ended ({status}): {said}")));
            }
            if let Some(address) = address_in(&line) {
                // What it says later must not fill the pipe and stop it.
                std::thread::spawn(move || io::copy(&mut out, &mut io::sink()));
                return Ok(Process { child, address });
            }
            said.push_str(&line);
        }
    }

    /// Starts DynamoDB Local from its jar, in memory, and waits until it listens.
    ///
    /// # Errors
    /// If there is no `java`, or it does not listen in time.
    pub fn dynamodb_local(jar: &Path) -> io::Result<Process> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let libraries = jar.parent().unwrap_or(Path::new(".")).join("DynamoDBLocal_lib");
        let child = Command::new("java")
            .arg(format!("-Djava.library.path={}", libraries.display()))
            .args(["-Xmx512m", "-jar"])
            .arg(jar)
            .args(["-inMemory", "-sharedDb", "-disableTelemetry", "-port", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("start java: {error}")))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut process = Process { child, address };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = process.child.try_wait()? {
                return Err(io::Error::other(format!("DynamoDB Local ended: {status}")));
            }
            if began.elapsed() > START_TIMEOUT {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(process)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it at once, as `kill -9` does, and waits until it is gone.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// The address of a line such as `DynamoDB door at http://127.0.0.1:8000`.
fn address_in(line: &str) -> Option<SocketAddr> {
    line.split_whitespace()
        .map(|word| word.trim_start_matches("http://").trim_end_matches(['/', '.', ',']))
        .find_map(|word| word.parse().ok())
}

/// What [`CHILD`] does: serves the database in a folder until it is killed.
///
/// # Errors
/// If the folder cannot be opened or served.
pub fn child(folder: &Path) -> Result<(), String> {
    let database = Database::open(folder).map_err(|error| error.to_string())?;
    let door = Door::dynamo(database).map_err(|error| error.to_string())?;
    println!("DynamoDB door at http://{}", door.address());
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_what_a_server_says() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 8000));
        for line in ["DynamoDB  http://127.0.0.1:8000\n", "listening at 127.0.0.1:8000."] {
            assert_eq!(address_in(line), Some(address), "{line}");
        }
        assert_eq!(address_in("ready in 3 ms"), None);
    }
}
