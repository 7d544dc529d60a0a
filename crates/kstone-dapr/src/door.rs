//! The Dapr door: its options, its access token, and the entry points of its protocols.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use kstone_core::meter::Meter;
use tokio::net::{TcpListener, UnixListener};

use crate::error::{Error, Result};
use crate::grpc;
use crate::http;
use crate::server::{self, Protocol};
use crate::state::State;
use crate::store::{KeyPrefix, Store};

/// The header, or gRPC metadata, that carries the token.
pub(crate) const API_TOKEN: &str = "dapr-api-token";
/// The features of the store, as metadata calls list them.
pub(crate) const CAPABILITIES: [&str; 5] =
    ["ETAG", "TRANSACTIONAL", "TTL", "QUERY_API", "PARTITION_KEY"];
/// The component type of the store in metadata calls.
pub(crate) const COMPONENT_TYPE: &str = "state.kstone";
/// The runtime version in metadata calls.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How the door is served.
#[derive(Clone)]
pub struct DoorOptions {
    /// The names of the state store. All of them are the same state.
    pub stores: Vec<String>,
    /// The prefix of each key.
    pub key_prefix: KeyPrefix,
    /// What clients must send as `dapr-api-token`. Without one, every request passes: then listen
    /// on loopback only.
    pub api_token: Option<String>,
    /// How many connections are open at a time, on each port; more wait to be accepted.
    pub connections_max: usize,
    /// How long a request may be.
    pub body_bytes_max: usize,
    /// How long a client may take to send a request's head, and then its body; and how long a
    /// connection may be idle.
    pub read_timeout: Duration,
    /// How long requests that are under way may take to finish when the door is closed.
    pub shutdown_timeout: Duration,
    /// Counts requests and connections; other handles to it read the counts.
    pub meter: Arc<Meter>,
}

impl Default for DoorOptions {
    fn default() -> Self {
        DoorOptions {
            // The name that Dapr's own quickstarts use.
            stores: vec!["statestore".to_owned()],
            key_prefix: KeyPrefix::None,
            api_token: None,
            connections_max: 1024,
            // What a sidecar takes by default. A transaction's items have the same limit.
            body_bytes_max: 4 * 1024 * 1024,
            read_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(10),
            meter: Arc::new(Meter::default()),
        }
    }
}

impl std::fmt::Debug for DoorOptions {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DoorOptions").field("stores", &self.stores).finish_non_exhaustive()
    }
}

/// The door: state with a name. Cloning gives another handle to the same.
#[derive(Debug, Clone)]
pub struct Door {
    state: State,
    options: Arc<DoorOptions>,
}

impl Door {
    /// A door to this state.
    pub fn new(state: State, options: DoorOptions) -> Door {
        Door { state, options: Arc::new(options) }
    }

    /// Serves Dapr's HTTP API at a socket until `shutdown` completes; then finishes the requests
    /// that are under way, for as long as the options allow.
    ///
    /// # Errors
    /// None that a client could cause: only if the socket itself fails.
    pub async fn serve_http(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let options = Arc::clone(&self.options);
        let answer = move |request| http::answer(self.clone(), request);
        server::run(listener, &options, Protocol::Http1, answer, shutdown).await;
        Ok(())
    }

    /// Serves Dapr's gRPC API in the same way.
    ///
    /// # Errors
    /// None that a client could cause: only if the socket itself fails.
    pub async fn serve_grpc(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let options = Arc::clone(&self.options);
        let answer = move |request| grpc::answer(self.clone(), request);
        server::run(listener, &options, Protocol::Http2, answer, shutdown).await;
        Ok(())
    }

    /// Serves the store as a component that a Dapr sidecar plugs in, at a socket in its folder of
    /// components. Whoever may open the socket may ask: a sidecar sends no token.
    ///
    /// # Errors
    /// None that a client could cause: only if the socket itself fails.
    pub async fn serve_component(
        self,
        listener: UnixListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let options = Arc::clone(&self.options);
        let answer = move |request| grpc::answer_sidecar(self.clone(), request);
        server::run(listener, &options, Protocol::Http2, answer, shutdown).await;
        Ok(())
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn options(&self) -> &DoorOptions {
        &self.options
    }

    /// The store with this name.
    pub(crate) fn store(&self, name: &str) -> Result<Store<'_>> {
        match self.options.stores.iter().any(|store| store == name) {
            true => Ok(Store::new(&self.state, name, &self.options.key_prefix)),
            false => Err(Error::NoSuchStore(name.to_owned())),
        }
    }

    /// Whether a client's token is the right one, compared in constant time.
    pub(crate) fn accepts_token(&self, token: Option<&[u8]>) -> bool {
        let Some(secret) = &self.options.api_token else { return true };
        let (secret, token) = (secret.as_bytes(), token.unwrap_or_default());
        let differs = secret.iter().zip(token).fold(0, |differs, (a, b)| differs | (a ^ b));
        secret.len() == token.len() && differs == 0
    }
}
