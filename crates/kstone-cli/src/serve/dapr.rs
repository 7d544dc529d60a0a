//! The Dapr door of a server: its sockets, and what is said about them.
//!
//! Its usual ports are also those of a Dapr sidecar, which may well run on the same machine. So when
//! nobody asked for them by name and one is taken, the server says so and goes on without it.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use kstone::Database;
use kstone_core::env::SystemClock;
use kstone_core::meter::Meter;
use kstone_dapr::{Door, DoorOptions, State};
use kstone_keyspace::Keyspace;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::dapr_socket::ComponentSocket;
use super::settings::{Listen, Settings};
use super::vitals::OpenDoor;
use super::{answered, asked, signals, url_of};
use crate::output::Output;

const HTTP: (&str, &str) = ("--dapr-http", "127.0.0.1:3500");
const GRPC: (&str, &str) = ("--dapr-grpc", "127.0.0.1:50001");

/// The sockets that could be opened.
pub struct Dapr {
    http: Option<(TcpListener, SocketAddr)>,
    grpc: Option<(TcpListener, SocketAddr)>,
    component: Option<ComponentSocket>,
    meter: Arc<Meter>,
}

/// Whether it is to be served nowhere.
pub fn is_off(settings: &Settings) -> bool {
    settings.dapr_http == Some(Listen::Off)
        && settings.dapr_grpc == Some(Listen::Off)
        && settings.dapr_component_socket.is_none()
}

/// Opens its sockets.
pub async fn listen(settings: &Settings, out: &mut Output) -> Result<Dapr> {
    let http = listen_at(settings, settings.dapr_http.as_ref(), HTTP, out).await?;
    let grpc = listen_at(settings, settings.dapr_grpc.as_ref(), GRPC, out).await?;
    let component = match &settings.dapr_component_socket {
        Some(path) => Some(ComponentSocket::open(path).await?),
        None => None,
    };
    Ok(Dapr { http, grpc, component, meter: Arc::default() })
}

async fn listen_at(
    settings: &Settings,
    chosen: Option<&Listen>,
    (flag, usual): (&str, &str),
    out: &mut Output,
) -> Result<Option<(TcpListener, SocketAddr)>> {
    let needs = settings.dapr_api_token.is_none().then_some("--dapr-api-token TOKEN");
    match chosen {
        Some(Listen::Off) => Ok(None),
        Some(Listen::At(address)) => super::listen(address, flag, needs).await.map(Some),
        None => match super::listen(usual, flag, needs).await {
            Ok(listening) => Ok(Some(listening)),
            Err(error) => {
                out.complain(&format!("no Dapr at {usual}: {error:#}"));
                Ok(None)
            }
        },
    }
}

impl Dapr {
    /// Where it is found, over HTTP and over gRPC.
    pub fn urls(&self) -> (Option<String>, Option<String>) {
        let url = |socket: &Option<(TcpListener, SocketAddr)>| {
            socket.as_ref().map(|(_, at)| url_of("http", *at))
        };
        (url(&self.http), url(&self.grpc))
    }

    /// All of its sockets as one door, if there are any.
    pub fn door(&self, settings: &Settings) -> Option<OpenDoor> {
        let (http, grpc) = self.urls();
        let component = self.component.as_ref().map(|it| it.path().display().to_string());
        let grpc = grpc.map(|url| format!("gRPC {}", url.trim_start_matches("http://")));
        let at: Vec<String> = http.into_iter().chain(grpc).chain(component).collect();
        let (durability, meter) = (settings.dapr_durability, Arc::clone(&self.meter));
        (!at.is_empty()).then(|| OpenDoor::metered("Dapr", at.join(", "), durability, meter))
    }

    /// A line for each socket.
    pub fn lines(&self, settings: &Settings) -> Vec<String> {
        let token = if settings.dapr_api_token.is_some() { "a token" } else { "no token" };
        let answered = answered(settings.dapr_durability);
        let (http, grpc) = self.urls();
        let mut lines: Vec<String> = [http.zip(Some("dapr     ")), grpc.zip(Some("dapr grpc"))]
            .into_iter()
            .flatten()
            .map(|(url, name)| format!("{name} {url}  durability {answered}, {token}"))
            .collect();
        if let Some(socket) = &self.component {
            let (path, kind) = (socket.path().display(), socket.component_type());
            lines.push(format!("component {path}  durability {answered}, type {kind}"));
        }
        lines
    }

    /// Opens the door.
    pub fn serve(
        self,
        settings: &Settings,
        db: &Database,
        keyspace: Option<Arc<Keyspace>>,
        stop: &signals::Stop,
        doors: &mut JoinSet<Result<()>>,
        runtime: &Handle,
    ) -> Result<()> {
        if self.http.is_none() && self.grpc.is_none() && self.component.is_none() {
            return Ok(());
        }
        // Where nothing is in force, keys are split as the product's own catalogues say.
        let shipped = || kstone_keyspace::shipped().map(Arc::new);
        let keyspace = keyspace.map_or_else(shipped, Ok).context("the catalogues have problems")?;
        let db = db.with_durability(settings.dapr_durability);
        let clock = Arc::new(SystemClock::new());
        let state = State::new(Arc::new(db), keyspace, clock);
        let options = DoorOptions {
            stores: settings.dapr_stores.clone(),
            key_prefix: settings.dapr_key_prefix.clone(),
            api_token: settings.dapr_api_token.as_ref().map(|token| token.0.clone()),
            meter: Arc::clone(&self.meter),
            ..DoorOptions::default()
        };
        let door = Door::new(state, options);
        if let Some((listener, _)) = self.http {
            let served = door.clone().serve_http(listener, asked(stop.clone()));
            doors.spawn_on(async { served.await.context("the Dapr door failed") }, runtime);
        }
        if let Some((listener, _)) = self.grpc {
            let served = door.clone().serve_grpc(listener, asked(stop.clone()));
            doors.spawn_on(async { served.await.context("the Dapr door failed") }, runtime);
        }
        if let Some(socket) = self.component {
            let stop = asked(stop.clone());
            doors.spawn_on(async { socket.serve(door, stop).await }, runtime);
        }
        Ok(())
    }
}
