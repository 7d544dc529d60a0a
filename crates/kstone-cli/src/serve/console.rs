//! The console and the REST API of a server: their socket, and what is said about it.
//!
//! Their usual port is also that of many a web server under development. So when nobody asked for it
//! by name and it is taken, the server says so and goes on without it.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use kstone::Database;
use kstone_console::server_status::ServerStatus;
use kstone_console::{Console, ConsoleOptions, Erasures, Token};
use kstone_core::env::{SystemClock, SystemRandom};
use kstone_keyspace::Governor;
use kstone_keyspace::erasure::Eraser;
use kstone_learn::Platform;
use kstone_redis::Redis;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::settings::{Listen, Settings};
use super::{answered, asked, signals, url_of};
use crate::output::Output;

const FLAG: &str = "--console";
const USUAL: &str = "127.0.0.1:8080";

/// The socket, if it could be opened.
pub struct ConsoleDoor(Option<(TcpListener, SocketAddr)>);

/// What the console shows.
pub struct Shown<'s> {
    pub db: &'s Database,
    pub redis: &'s Redis,
    pub platform: Option<Arc<Platform>>,
    pub governor: Option<Arc<Governor>>,
    pub eraser: Option<Arc<Eraser>>,
    pub vitals: Arc<dyn ServerStatus>,
}

/// Opens its socket.
pub async fn listen(settings: &Settings, out: &mut Output) -> Result<ConsoleDoor> {
    let needs = settings.console_token.is_none().then_some("--console-token TOKEN");
    let listening = match &settings.console {
        Some(Listen::Off) => None,
        Some(Listen::At(address)) => Some(super::listen(address, FLAG, needs).await?),
        None => match super::listen(USUAL, FLAG, needs).await {
            Ok(listening) => Some(listening),
            Err(error) => {
                out.complain(&format!("no console at {USUAL}: {error:#}"));
                None
            }
        },
    };
    Ok(ConsoleDoor(listening))
}

impl ConsoleDoor {
    /// Whether it is served at all.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Where it is found.
    pub fn url(&self) -> Option<String> {
        self.0.as_ref().map(|(_, at)| url_of("http", *at))
    }

    /// The line about it.
    pub fn line(&self, settings: &Settings) -> Option<String> {
        let token = if settings.console_token.is_some() { "a token" } else { "no token" };
        let answered = answered(settings.console_durability);
        self.url().map(|url| format!("console   {url}  durability {answered}, {token}"))
    }

    /// Opens the door.
    pub fn serve(
        self,
        settings: &Settings,
        shown: Shown<'_>,
        stop: &signals::Stop,
        doors: &mut JoinSet<Result<()>>,
        runtime: &Handle,
    ) -> Result<()> {
        let Some((listener, _)) = self.0 else { return Ok(()) };
        let token = settings.console_token.as_ref().and_then(|token| Token::new(&token.0));
        if settings.console_token.is_some() && token.is_none() {
            bail!("--console-token is empty: give a token, or leave it out");
        }
        let keys = shown.redis.keys(0).context("Redis has no databases")?;
        let engine = shown.platform.as_ref().map(|platform| platform.mastery.clone());
        let console = Console {
            items: Arc::new(shown.db.with_durability(settings.console_durability)),
            keys: Arc::new(keys),
            platform: shown.platform,
            governor: shown.governor,
            erasures: shown.eraser.map(|eraser| Erasures::new(eraser, engine)),
            status: shown.vitals,
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(SystemRandom),
            options: ConsoleOptions {
                token,
                has_rate_limits: settings.has_rest_limits,
                ..ConsoleOptions::default()
            },
        };
        let served = kstone_console::serve(listener, Arc::new(console), asked(stop.clone()));
        doors.spawn_on(async { served.await.context("the console failed") }, runtime);
        Ok(())
    }
}
