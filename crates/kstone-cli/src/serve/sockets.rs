//! The sockets of the doors. They are opened before the database, so that a port that is taken costs
//! nothing.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result, anyhow, bail};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::dapr::DaprSockets;
use super::redis::RedisSocket;
use super::server_file::ServerFile;
use super::settings::{Listen, Settings};
use super::{console, dapr, dynamodb, redis};
use crate::output::Output;

/// The sockets that are open, by door.
pub struct Sockets {
    pub dynamodb: Option<Socket>,
    pub redis: Option<RedisSocket>,
    pub dapr: DaprSockets,
    pub console: Option<Socket>,
}

impl Sockets {
    /// Opens all that the settings ask for.
    pub fn open(settings: &Settings, runtime: &Runtime, out: &mut Output) -> Result<Sockets> {
        Ok(Sockets {
            dynamodb: runtime.block_on(dynamodb::listen(settings))?,
            redis: redis::listen(settings)?,
            dapr: runtime.block_on(dapr::listen(settings, out))?,
            console: runtime.block_on(console::listen(settings, out))?,
        })
    }

    /// Where the server is found.
    pub fn notice(&self) -> ServerFile {
        let (dapr_http, dapr_grpc) = self.dapr.urls();
        ServerFile {
            pid: std::process::id(),
            dynamodb: self.dynamodb.as_ref().map(|socket| socket.url("http")),
            redis: self.redis.as_ref().map(RedisSocket::url),
            dapr_http,
            dapr_grpc,
            console: self.console.as_ref().map(|socket| socket.url("http")),
        }
    }
}

/// An open socket.
pub struct Socket {
    pub listener: TcpListener,
    at: SocketAddr,
}

/// How a door's address is chosen, and what protects it from other machines.
pub struct Door {
    /// The flag with the address.
    pub flag: &'static str,
    /// The flag with the secret that clients must know, and its value: `--access-key ID:SECRET`.
    pub secret: &'static str,
    /// What the secret is.
    pub secret_is: &'static str,
    /// The environment variable that has it.
    pub variable: &'static str,
}

impl Door {
    /// Opens a socket at this address. Other machines must not reach one without a secret.
    pub async fn listen(&self, address: &str, has_secret: bool) -> Result<Socket> {
        let flag = self.flag;
        let found = tokio::net::lookup_host(address).await;
        let found: Vec<SocketAddr> =
            found.with_context(|| format!("{flag} {address}: no such host"))?.collect();
        if !has_secret && found.iter().any(|at| !at.ip().is_loopback()) {
            bail!(
                "{flag} {address} can be reached from other machines, so it needs a {}: give {} \
                 (or set {}), or listen on 127.0.0.1",
                self.secret_is,
                self.secret,
                self.variable
            );
        }
        let listener = TcpListener::bind(&*found).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                let port = found.first().map_or(0, SocketAddr::port);
                anyhow!(
                    "port {port} is taken: another process listens on {address}; stop it, or \
                     choose another port with {flag} {}",
                    address.replace(&format!(":{port}"), &format!(":{}", port.saturating_add(1)))
                )
            }
            _ => anyhow!("cannot listen on {flag} {address}: {error}"),
        })?;
        let at = listener.local_addr()?;
        Ok(Socket { listener, at })
    }

    /// The same at the address that was chosen. If none was, at the usual one; when that one is
    /// taken, the server says so and goes on without this door.
    pub async fn listen_if_free(
        &self,
        chosen: Option<&Listen>,
        (name, usual): (&str, &str),
        has_secret: bool,
        out: &mut Output,
    ) -> Result<Option<Socket>> {
        match chosen {
            Some(Listen::Off) => Ok(None),
            Some(Listen::At(address)) => self.listen(address, has_secret).await.map(Some),
            None => match self.listen(usual, has_secret).await {
                Ok(socket) => Ok(Some(socket)),
                Err(error) => {
                    out.complain(&format!("no {name} at {usual}: {error:#}"));
                    Ok(None)
                }
            },
        }
    }
}

impl Socket {
    /// How this machine reaches it.
    pub fn url(&self, scheme: &str) -> String {
        let mut at = self.at;
        if at.ip().is_unspecified() {
            at.set_ip(match at {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("{scheme}://{at}")
    }
}
