//! A door on a port of its own, and clients that write and read bytes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use kstone::Database;
use kstone_redis::Redis;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// A door on a port of its own.
pub struct Door {
    pub redis: Redis,
    address: SocketAddr,
    pub stop: Option<oneshot::Sender<()>>,
    _runtime: Runtime,
}

impl Door {
    pub fn open() -> Door {
        Door::with_threads(2)
    }

    /// A door whose executor has so many threads.
    pub fn with_threads(threads: usize) -> Door {
        let redis = Redis::open(&Database::memory().unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build();
        let runtime = runtime.unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            let _ = stopped.await;
        };
        runtime.spawn(kstone_resp::serve(listener, redis.clone(), shutdown));
        Door { redis, address, stop: Some(stop), _runtime: runtime }
    }

    pub fn connect(&self) -> Wire {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Wire(stream)
    }

    #[track_caller]
    pub fn wait_for_blocked(&self, clients: usize) {
        let end = Instant::now() + Duration::from_secs(20);
        while self.redis.blocked_clients() != clients {
            assert!(Instant::now() < end, "{} clients wait", self.redis.blocked_clients());
            thread::yield_now();
        }
    }
}

/// A client that writes and reads bytes.
pub struct Wire(pub TcpStream);

impl Wire {
    pub fn send(&mut self, lines: &str) {
        self.0.write_all(lines.replace('\n', "\r\n").as_bytes()).unwrap();
    }

    #[track_caller]
    pub fn expect(&mut self, reply: &str) {
        let mut bytes = vec![0; reply.len()];
        self.0.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), reply);
    }

    /// Sends lines, and expects this reply.
    #[track_caller]
    pub fn exchange(&mut self, lines: &str, reply: &str) {
        self.send(lines);
        self.expect(reply);
    }

    #[track_caller]
    pub fn expect_end(&mut self) {
        assert_eq!(self.0.read(&mut [0]).unwrap_or(0), 0);
    }
}
