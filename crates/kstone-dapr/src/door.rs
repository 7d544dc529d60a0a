//! The Dapr door: its options, its access token, and the entry points of its protocols.

use std::future::Future;
use std::sync::Arc;

use kstone_core::meter::Meter;
use kstone_door::body::BodyLimits;
use kstone_door::{DoorFrame, HttpVersion, Limits};
use subtle::ConstantTimeEq as _;
use tokio::net::{TcpListener, UnixListener};

use crate::error::{Error, Result};
use crate::grpc;
use crate::http;
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
    /// How many connections each port has, and how long each may take.
    pub limits: Limits,
    /// How long a request may be.
    pub body_bytes_max: usize,
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
            limits: Limits::default(),
            // What a sidecar takes by default. A transaction's items have the same limit.
            body_bytes_max: 4 * 1024 * 1024,
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
    /// One memory for the bodies of all ports.
    bodies: BodyLimits,
}

impl Door {
    /// A door to this state.
    pub fn new(state: State, options: DoorOptions) -> Door {
        let bodies = BodyLimits::new(options.body_bytes_max, options.limits.read_timeout);
        Door { state, options: Arc::new(options), bodies }
    }

    /// Serves Dapr's HTTP API at a socket until `shutdown` completes; then finishes the requests
    /// that are under way, for as long as the options allow.
    pub async fn serve_http(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let frame = self.frame();
        let answer = move |request, _| http::answer(self.clone(), request);
        frame.serve_http(listener, HttpVersion::Http1, answer, shutdown).await;
    }

    /// Serves Dapr's gRPC API in the same way.
    pub async fn serve_grpc(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let frame = self.frame();
        let answer = move |request, _| grpc::answer(self.clone(), request);
        frame.serve_http(listener, HttpVersion::Http2, answer, shutdown).await;
    }

    /// Serves the store as a component that a Dapr sidecar plugs in, at a socket in its folder of
    /// components. Every process that may open the socket may ask: a sidecar sends no token.
    pub async fn serve_component(self, listener: UnixListener, shutdown: impl Future<Output = ()>) {
        let frame = self.frame();
        let answer = move |request, ()| grpc::answer_sidecar(self.clone(), request);
        frame.serve_http(listener, HttpVersion::Http2, answer, shutdown).await;
    }

    fn frame(&self) -> DoorFrame {
        DoorFrame::new(self.options.limits, Arc::clone(&self.options.meter))
    }

    pub(crate) fn bodies(&self) -> &BodyLimits {
        &self.bodies
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
        secret.as_bytes().ct_eq(token.unwrap_or_default()).into()
    }
}
