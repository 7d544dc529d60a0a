//! Redis's own servers for the tests: one, or a cluster. They end when they are dropped.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// How long anything may take that a test waits for.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// How long a node must be silent before its cluster takes it for dead.
const NODE_TIMEOUT_MS: u64 = 1000;

/// Waits until something is so.
///
/// # Panics
/// If it does not become so.
pub(super) async fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Whether the programs are there; says so if they are not.
pub(super) fn are_installed() -> bool {
    let is_there = |program| {
        let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    };
    let both = is_there("redis-server") && is_there("redis-cli");
    if !both {
        eprintln!("skipped: redis-server or redis-cli is not on the PATH");
    }
    both
}

/// One server.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    pub port: u16,
    options: Vec<String>,
}

impl Server {
    /// Starts a server without files, and waits until it answers.
    pub async fn start() -> Server {
        let [port] = free_ports();
        let server = Server::spawn(port, Vec::new());
        wait_until("the server listens", || server.listens()).await;
        server
    }

    fn spawn(port: u16, options: Vec<String>) -> Server {
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .args(&options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Server { child, port, options }
    }

    /// Starts it once more at the same port, empty.
    pub fn start_again(&mut self) {
        *self = Server::spawn(self.port, self.options.clone());
    }

    fn listens(&self) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
    }

    /// What a command answers, asked with Redis's own client.
    pub fn say(&self, words: &[&str]) -> String {
        let port = self.port.to_string();
        let asked = Command::new("redis-cli").args(["-p", &port]).args(words).output().unwrap();
        String::from_utf8_lossy(&asked.stdout).into_owned()
    }

    /// The value of a field of INFO.
    pub fn info(&self, section: &str, field: &str) -> Option<String> {
        let all = self.say(&["INFO", section]);
        let found = all.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        found.map(|value| value.trim().to_owned())
    }

    /// Whether it is a master.
    pub fn is_master(&self) -> bool {
        self.info("replication", "role").is_some_and(|role| role == "master")
    }

    /// Makes it hang: its connections stay open, and nobody answers.
    pub fn stop(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
    }

    /// Ends it at once, as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Three masters, each with a replica.
#[derive(Debug)]
pub(super) struct Cluster {
    pub nodes: Vec<Server>,
    /// After the servers, so that they end before their folders do.
    _folders: Vec<TempDir>,
}

impl Cluster {
    /// Starts the servers, and waits until they are a cluster with up-to-date replicas.
    pub async fn start() -> Cluster {
        let ports: [u16; 12] = free_ports();
        let folders: Vec<TempDir> = (0..6).map(|_| TempDir::new().unwrap()).collect();
        let nodes: Vec<Server> = folders
            .iter()
            .zip(ports.chunks(2))
            .map(|(folder, ports)| {
                let (bus, silence) = (ports[1].to_string(), NODE_TIMEOUT_MS.to_string());
                let folder = folder.path().display().to_string();
                let mut options = vec!["--cluster-enabled", "yes", "--cluster-port", &bus];
                options.extend(["--dir", &folder]);
                options.extend(["--cluster-config-file", "nodes.conf"]);
                options.extend(["--cluster-node-timeout", &silence]);
                options.extend(["--cluster-replica-validity-factor", "0"]);
                options.extend(["--repl-diskless-sync-delay", "0"]);
                Server::spawn(ports[0], options.into_iter().map(str::to_owned).collect())
            })
            .collect();
        let cluster = Cluster { nodes, _folders: folders };
        wait_until("the nodes listen", || cluster.nodes.iter().all(Server::listens)).await;
        let created = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(cluster.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)))
            .args(["--cluster-replicas", "1", "--cluster-yes"])
            .output()
            .unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stdout));
        wait_until("the cluster is whole", || cluster.is_whole()).await;
        cluster
    }

    fn is_whole(&self) -> bool {
        let is_up = |node: &Server| node.say(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
        let follows = |node: &&Server| {
            node.info("replication", "master_link_status").is_some_and(|status| status == "up")
        };
        self.nodes.iter().all(is_up) && self.nodes.iter().filter(follows).count() == 3
    }

    /// Where to find it: two of the nodes.
    pub fn url(&self) -> String {
        let seeds: Vec<String> =
            self.nodes.iter().take(2).map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("redis-cluster://{}", seeds.join(","))
    }
}

/// Ports that nothing listens at; all different.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
