//! Keys that go from one server to another, over real sockets.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;

use kstone::Database;
use kstone_redis::{Redis, Session, Value};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A server on a port of its own, and a client of it that needs no socket.
struct Server {
    address: SocketAddr,
    client: Session,
    runtime: Runtime,
}

impl Server {
    fn open() -> Server {
        let redis = Redis::open(&Database::memory().unwrap()).unwrap();
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(kstone_resp::serve(listener, redis.clone(), std::future::pending()));
        // It is ready when it answers.
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(b"PING\r\n").unwrap();
        stream.read_exact(&mut [0; 7]).unwrap();
        Server { address, client: redis.session(), runtime }
    }

    /// The reply to a command whose words have no spaces. Other servers are reached by this one's
    /// own executor, as they are when a command comes by a socket.
    fn say(&mut self, line: &str) -> Value {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let _entered = self.runtime.enter();
        self.client.call(&words)
    }
}

fn ok() -> Value {
    Value::Simple("OK".to_owned())
}

fn error(value: Value) -> String {
    match value {
        Value::Error(message) => String::from_utf8(message).unwrap(),
        other => panic!("not an error: {other:?}"),
    }
}

#[test]
fn keys_move_to_another_server_with_their_values_and_expiries() {
    let (mut here, mut there) = (Server::open(), Server::open());
    here.say("SET a 1");
    here.say("PEXPIREAT a 99999999999999");
    here.say("RPUSH b 1 2 3");
    let port = there.address.port();
    assert_eq!(here.say(&format!("MIGRATE 127.0.0.1 {port}  2 5000 KEYS a b none")), ok());
    assert_eq!(here.say("DBSIZE"), Value::Integer(0));
    there.say("SELECT 2");
    assert_eq!(there.say("DBSIZE"), Value::Integer(2));
    assert_eq!(there.say("LLEN b"), Value::Integer(3));
    let Value::Integer(left_ms) = there.say("PTTL a") else { panic!("no time") };
    assert!(left_ms > 1_000_000);
    let nothing = Value::Simple("NOKEY".to_owned());
    assert_eq!(here.say(&format!("MIGRATE 127.0.0.1 {port} a 2 5000")), nothing);
}

#[test]
fn a_key_that_is_not_taken_there_stays_here() {
    let (mut here, mut there) = (Server::open(), Server::open());
    let port = there.address.port();
    for key in ["a", "b", "c"] {
        here.say(&format!("SET {key} here"));
    }
    there.say("SET b there");
    let message = error(here.say(&format!("MIGRATE 127.0.0.1 {port}  0 5000 KEYS a b c")));
    assert_eq!(
        message,
        "ERR Target instance replied with error: BUSYKEY Target key name already exists."
    );
    assert_eq!(here.say("GET b"), Value::bulk("here"));
    assert_eq!(here.say("EXISTS a c"), Value::Integer(0));
    assert_eq!(here.say(&format!("MIGRATE 127.0.0.1 {port} b 0 5000 COPY REPLACE")), ok());
    assert_eq!(there.say("GET b"), Value::bulk("here"));
    assert_eq!(here.say("EXISTS b"), Value::Integer(1));
    let message = error(here.say(&format!("MIGRATE 127.0.0.1 {port} b 99 5000")));
    assert!(message.contains("DB index is out of range"), "{message}");
    assert_eq!(here.say("EXISTS b"), Value::Integer(1));
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let mut here = Server::open();
    here.say("SET a 1");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let message = error(here.say(&format!("MIGRATE 127.0.0.1 {free} a 0 5000")));
    assert_eq!(message, "IOERR error or timeout connecting to the client");
    assert_eq!(here.say("EXISTS a"), Value::Integer(1));
}
