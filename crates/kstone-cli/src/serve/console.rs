//! The console and the REST API of a server.
//!
//! Their usual port is also that of many a web server under development. So when nobody asked for it
//! by name and it is taken, the server says so and goes on without it.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use kstone_console::{Console, ConsoleOptions, Erasures, Token};
use kstone_core::env::{SystemClock, SystemRandom};
use tokio::runtime::Handle;

use super::backend::Backend;
use super::doors::Doors;
use super::durability_name;
use super::process_status::ProcessStatus;
use super::settings::Settings;
use super::sockets::{Door, Socket};
use crate::output::Output;

const DOOR: Door = Door {
    flag: "--console",
    secret: "--console-token TOKEN",
    secret_is: "token",
    variable: "KSTONE_CONSOLE_TOKEN",
};

/// Opens its socket.
pub async fn listen(settings: &Settings, out: &mut Output) -> Result<Option<Socket>> {
    let (chosen, usual) = (settings.console.as_ref(), ("console", "127.0.0.1:8080"));
    DOOR.listen_if_free(chosen, usual, settings.console_token.is_some(), out).await
}

/// Opens the door. It shows those that are open by then.
pub fn open(
    socket: Option<Socket>,
    settings: &Settings,
    backend: &Backend,
    doors: &mut Doors,
    threads: &Handle,
) -> Result<()> {
    let (Some(socket), Some(redis)) = (socket, &backend.redis) else { return Ok(()) };
    let token = settings.console_token.as_ref().and_then(|token| Token::new(&token.0));
    if settings.console_token.is_some() && token.is_none() {
        bail!("--console-token is empty: give a token, or leave it out");
    }
    let (url, durability) = (socket.url("http"), settings.console_durability);
    let with = if token.is_some() { "a token" } else { "no token" };
    doors
        .lines
        .push(format!("console   {url}  durability {}, {with}", durability_name(durability)));
    let engine = backend.platform.as_ref().map(|platform| platform.mastery.clone());
    let eraser = backend.eraser.clone();
    let status = ProcessStatus::new(&backend.db, settings, std::mem::take(&mut doors.shown));
    let console = Console {
        items: Arc::new(backend.db.with_durability(durability)),
        keys: Arc::new(redis.keys(0).context("Redis has no databases")?),
        platform: backend.platform.clone(),
        governor: backend.governor.clone(),
        erasures: eraser.map(|eraser| Erasures::new(eraser, engine)),
        status: Arc::new(status),
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(SystemRandom),
        options: ConsoleOptions {
            token,
            has_rate_limits: settings.has_rest_limits,
            ..ConsoleOptions::default()
        },
    };
    let serving = kstone_console::serve(socket.listener, Arc::new(console), doors.stop_asked());
    doors.open(serving, threads);
    Ok(())
}
