//! The Redis door of a server, and its threads.

use std::num::NonZero;

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::backend::Backend;
use super::doors::Doors;
use super::process_status::OpenDoor;
use super::settings::{Listen, Settings};
use super::sockets::{Door, Socket};
use super::{THREADS, durability_name};

const DOOR: Door = Door {
    flag: "--redis",
    secret: "--redis-password PASSWORD",
    secret_is: "password",
    variable: "KSTONE_REDIS_PASSWORD",
};

/// The open socket, and the threads that serve it.
pub struct RedisSocket {
    socket: Socket,
    threads: Runtime,
}

impl RedisSocket {
    /// How this machine reaches it.
    pub fn url(&self) -> String {
        self.socket.url("redis")
    }
}

/// Opens its socket.
pub fn listen(settings: &Settings) -> Result<Option<RedisSocket>> {
    let Listen::At(address) = &settings.redis else { return Ok(None) };
    let threads = start_threads().context(THREADS)?;
    let listening = DOOR.listen(address, settings.redis_password.is_some());
    let socket = threads.block_on(listening)?;
    Ok(Some(RedisSocket { socket, threads }))
}

/// The threads of the Redis door. Its commands take microseconds, so threads that hand work to each
/// other, or stand in each other's way, cost more than they give: one processor is left to what
/// goes on beside the commands (the log, flushes, compaction, the network).
fn start_threads() -> std::io::Result<Runtime> {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = processors.saturating_sub(1).max(1);
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("kstone-redis")
        .enable_all()
        .build()
}

/// Opens the door, and hands on its threads, which have to outlive it. Clients may ask the server
/// to stop.
pub fn open(
    socket: Option<RedisSocket>,
    settings: &Settings,
    backend: &Backend,
    ask_to_stop: watch::Sender<bool>,
    doors: &mut Doors,
) -> Option<Runtime> {
    let (RedisSocket { socket, threads }, redis) = socket.zip(backend.redis.clone())?;
    if let Some(password) = &settings.redis_password {
        redis.require_password(&password.0);
    }
    redis.shutdown_with(move || {
        let _ = ask_to_stop.send(true);
    });
    let (url, durability) = (socket.url("redis"), settings.redis_durability);
    let password = if settings.redis_password.is_some() { "a password" } else { "no password" };
    let line = format!("redis     {url}  durability {}, {password}", durability_name(durability));
    doors.lines.push(line);
    doors.shown.push(OpenDoor::redis(url, durability, redis.clone()));
    let stop = doors.stop_asked();
    let serving = async {
        let served = kstone_resp::serve(socket.listener, redis, stop).await;
        served.context("the Redis door failed")
    };
    doors.open_fallible(serving, threads.handle());
    Some(threads)
}
