//! The Dapr door of a server: its three sockets.
//!
//! Its usual ports are also those of a Dapr sidecar, which may well run on the same machine. So when
//! nobody asked for them by name and one is taken, the server says so and goes on without it.

use std::sync::Arc;

use anyhow::{Context, Result};
use kstone_core::env::SystemClock;
use kstone_dapr::{Door, DoorOptions, State};
use tokio::runtime::Handle;

use super::backend::Backend;
use super::dapr_socket::ComponentSocket;
use super::doors::Doors;
use super::durability_name;
use super::process_status::OpenDoor;
use super::settings::{Listen, Settings};
use super::sockets::{self, Socket};
use crate::output::Output;

const HTTP: sockets::Door = door("--dapr-http");
const GRPC: sockets::Door = door("--dapr-grpc");

const fn door(flag: &'static str) -> sockets::Door {
    sockets::Door {
        flag,
        secret: "--dapr-api-token TOKEN",
        secret_is: "token",
        variable: "KSTONE_DAPR_API_TOKEN",
    }
}

/// The sockets that could be opened.
pub struct DaprSockets {
    http: Option<Socket>,
    grpc: Option<Socket>,
    component: Option<ComponentSocket>,
}

/// Whether it is to be served nowhere.
pub fn is_off(settings: &Settings) -> bool {
    settings.dapr_http == Some(Listen::Off)
        && settings.dapr_grpc == Some(Listen::Off)
        && settings.dapr_component_socket.is_none()
}

/// Opens its sockets.
pub async fn listen(settings: &Settings, out: &mut Output) -> Result<DaprSockets> {
    let has_token = settings.dapr_api_token.is_some();
    let (http, grpc) = (settings.dapr_http.as_ref(), settings.dapr_grpc.as_ref());
    let http = HTTP.listen_if_free(http, ("Dapr", "127.0.0.1:3500"), has_token, out).await?;
    let grpc = GRPC.listen_if_free(grpc, ("Dapr", "127.0.0.1:50001"), has_token, out).await?;
    let component = match &settings.dapr_component_socket {
        Some(path) => Some(ComponentSocket::open(path).await?),
        None => None,
    };
    Ok(DaprSockets { http, grpc, component })
}

impl DaprSockets {
    /// Where it is found, over HTTP and over gRPC.
    pub fn urls(&self) -> (Option<String>, Option<String>) {
        let url = |socket: &Option<Socket>| socket.as_ref().map(|socket| socket.url("http"));
        (url(&self.http), url(&self.grpc))
    }

    /// Where it is found, all of it.
    fn addresses(&self) -> Vec<String> {
        let (http, grpc) = self.urls();
        let component = self.component.as_ref().map(|it| it.path().display().to_string());
        let grpc = grpc.map(|url| format!("gRPC {}", url.trim_start_matches("http://")));
        http.into_iter().chain(grpc).chain(component).collect()
    }

    /// A line for each socket.
    fn lines(&self, settings: &Settings) -> Vec<String> {
        let token = if settings.dapr_api_token.is_some() { "a token" } else { "no token" };
        let durability = durability_name(settings.dapr_durability);
        let (http, grpc) = self.urls();
        let mut lines: Vec<String> = [http.zip(Some("dapr     ")), grpc.zip(Some("dapr grpc"))]
            .into_iter()
            .flatten()
            .map(|(url, name)| format!("{name} {url}  durability {durability}, {token}"))
            .collect();
        if let Some(socket) = &self.component {
            let (path, kind) = (socket.path().display(), socket.component_type());
            lines.push(format!("component {path}  durability {durability}, type {kind}"));
        }
        lines
    }
}

/// Opens the door.
pub fn open(
    sockets: DaprSockets,
    settings: &Settings,
    backend: &Backend,
    doors: &mut Doors,
    threads: &Handle,
) -> Result<()> {
    let addresses = sockets.addresses();
    if addresses.is_empty() {
        return Ok(());
    }
    doors.lines.extend(sockets.lines(settings));
    // Where nothing is in force, keys are split as the product's own catalogues say.
    let in_force = backend.governor.as_ref().map(|governor| Arc::clone(governor.keyspace()));
    let shipped = || kstone_keyspace::shipped().map(Arc::new);
    let keyspace = in_force.map_or_else(shipped, Ok).context("the catalogues have problems")?;
    let durability = settings.dapr_durability;
    let db = Arc::new(backend.db.with_durability(durability));
    let state = State::new(db, keyspace, Arc::new(SystemClock::new()));
    let options = DoorOptions {
        stores: settings.dapr_stores.clone(),
        key_prefix: settings.dapr_key_prefix.clone(),
        api_token: settings.dapr_api_token.as_ref().map(|token| token.0.clone()),
        ..DoorOptions::default()
    };
    let meter = Arc::clone(&options.meter);
    doors.shown.push(OpenDoor::metered("Dapr", addresses.join(", "), durability, meter));
    let door = Door::new(state, options);
    if let Some(socket) = sockets.http {
        let serving = door.clone().serve_http(socket.listener, doors.stop_asked());
        doors.open(serving, threads);
    }
    if let Some(socket) = sockets.grpc {
        let serving = door.clone().serve_grpc(socket.listener, doors.stop_asked());
        doors.open(serving, threads);
    }
    if let Some(socket) = sockets.component {
        doors.open(socket.serve(door, doors.stop_asked()), threads);
    }
    Ok(())
}
