//! One server: [`Node`], with a connection that all calls share and a few that one call has alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kstone_core::sync::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, ProtocolVersion, RedisConnectionInfo};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::address::Address;
use crate::options::RemoteOptions;

/// Most idle connections for watching that are kept for the next who watches.
const IDLE_MAX: usize = 4;

/// Why a message has no replies.
#[derive(Debug, Clone)]
pub(crate) enum NoReply {
    /// It never left: nothing was done.
    NotSent(String),
    /// It left, or may have, and the connection broke or the time was over: nobody knows what was done.
    Lost(String),
}

/// A connection to a node. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    inner: MultiplexedConnection,
    /// Set by the task that reads when the connection ends, so that the next call does not write
    /// into a connection that is known to be closed and have to say that the outcome is unknown.
    is_closed: Arc<AtomicBool>,
    reply_timeout: Duration,
}

impl Connection {
    /// Sends some commands as one message, and returns their replies in order.
    pub async fn send(&self, commands: &Pipeline) -> Result<Vec<redis::Value>, NoReply> {
        if !self.is_open() {
            return Err(NoReply::NotSent("the connection was closed".to_owned()));
        }
        let mut inner = self.inner.clone();
        let replies = inner.send_packed_commands(commands, 0, commands.len());
        let lost = match timeout(self.reply_timeout, replies).await {
            Ok(Ok(replies)) if replies.len() == commands.len() => return Ok(replies),
            Ok(Ok(replies)) => format!("{} replies to {} commands", replies.len(), commands.len()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no reply within {} ms", self.reply_timeout.as_millis()),
        };
        // Whoever comes next takes another connection; who waits here still may get replies.
        self.is_closed.store(true, Ordering::Release);
        Err(NoReply::Lost(lost))
    }

    /// Whether it was not seen to end.
    pub fn is_open(&self) -> bool {
        !self.is_closed.load(Ordering::Acquire)
    }
}

/// A server of the store.
pub(crate) struct Node {
    /// `host:port`.
    pub address: String,
    info: RedisConnectionInfo,
    options: RemoteOptions,
    shared: tokio::sync::Mutex<Shared>,
    idle: Mutex<Vec<Connection>>,
}

impl std::fmt::Debug for Node {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Node").field(&self.address).finish()
    }
}

/// The connection of a node that all calls share.
#[derive(Debug, Default)]
struct Shared {
    connection: Option<Connection>,
    /// When a connection could not be made, and why: those who waited for that attempt need not make
    /// one of their own, and a node that does not answer holds each up only once.
    failed: Option<(Instant, String)>,
}

impl Node {
    /// A node that nobody has connected to yet.
    pub fn new(address: String, store: &Address, options: &RemoteOptions) -> Node {
        // RESP2, because its lists are those of our engine at the port: RESP3 nests them differently.
        let mut info = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP2)
            .set_db(i64::from(store.db))
            .set_skip_set_lib_name();
        if let Some(user) = &store.user {
            info = info.set_username(user);
        }
        if let Some(password) = &store.password {
            info = info.set_password(password);
        }
        Node {
            address,
            info,
            options: options.clone(),
            shared: tokio::sync::Mutex::default(),
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Sends some commands as one message on the connection that all share.
    pub async fn send(&self, commands: &Pipeline) -> Result<Vec<redis::Value>, NoReply> {
        match self.shared().await?.send(commands).await {
            // It was seen to end in between.
            Err(NoReply::NotSent(_)) => self.shared().await?.send(commands).await,
            sent => sent,
        }
    }

    async fn shared(&self) -> Result<Connection, NoReply> {
        let began = Instant::now();
        let mut shared = self.shared.lock().await;
        if let Some(connection) = shared.connection.as_ref().filter(|it| it.is_open()) {
            return Ok(connection.clone());
        }
        if let Some((_, why)) = shared.failed.as_ref().filter(|(when, _)| *when >= began) {
            return Err(NoReply::NotSent(why.clone()));
        }
        match self.connect().await {
            Ok(connection) => {
                shared.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(why) => {
                shared.connection = None;
                shared.failed = Some((Instant::now(), why.clone()));
                Err(NoReply::NotSent(why))
            }
        }
    }

    /// A connection for one call alone.
    pub async fn alone(&self) -> Result<Connection, NoReply> {
        loop {
            let idle = self.idle.lock().pop();
            match idle {
                Some(connection) if connection.is_open() => return Ok(connection),
                Some(_) => (),
                None => return self.connect().await.map_err(NoReply::NotSent),
            }
        }
    }

    /// Keeps a connection that one call had alone, and left without a watch, for the next.
    pub fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX && connection.is_open() {
            idle.push(connection);
        }
    }

    async fn connect(&self) -> Result<Connection, String> {
        let limit = self.options.connect_timeout;
        let failed = |why: String| format!("cannot connect to {}: {why}", self.address);
        match timeout(limit, self.connect_at_leisure()).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(why)) => Err(failed(why)),
            Err(_) => Err(failed(format!("no answer within {} ms", limit.as_millis()))),
        }
    }

    async fn connect_at_leisure(&self) -> Result<Connection, String> {
        let stream = TcpStream::connect(&self.address).await.map_err(|it| it.to_string())?;
        stream.set_nodelay(true).map_err(|it| it.to_string())?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let made = MultiplexedConnection::new_with_config(&self.info, stream, config).await;
        let (inner, driver) = made.map_err(|it| it.to_string())?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        // Ends with the connection, or when the last clone of `inner` is dropped.
        tokio::spawn(async move {
            driver.await;
            closed.store(true, Ordering::Release);
        });
        Ok(Connection { inner, is_closed, reply_timeout: self.options.reply_timeout })
    }
}

/// A command as the wire wants it. `given` begins with its name.
pub(crate) fn packed(given: &[Bytes]) -> Cmd {
    let mut command = Cmd::new();
    for arg in given {
        command.arg(arg.as_ref());
    }
    command
}
