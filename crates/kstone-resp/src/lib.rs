//! The Redis door of KeystoneDB: RESP2 and RESP3 over TCP.
//!
//! `connection` moves the bytes, `parse` finds commands in them, a [`kstone_redis::Session`]
//! executes them, `encode` writes their replies; `durability` holds replies back until what they
//! show is durable, and `turn_queue` keeps the order between connections.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod connection;
mod durability;
mod encode;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod parse;
mod remote_commands;
mod turn_queue;

use std::future::Future;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use kstone_redis::Redis;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use connection::Connection;
use durability::DurabilityNotifier;
use turn_queue::{Turn, TurnQueue};

/// How often clients that do nothing are looked for.
const IDLE_CHECK: Duration = Duration::from_secs(1);
/// How long to wait before accepting again when there is no room for another connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// How long connections may take to end what they are doing when the server stops.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// Serves the keys at a socket until `shutdown` completes. Connections then end what they are
/// doing.
///
/// # Errors
/// None that a client could cause: only if the socket itself cannot be used.
pub async fn serve(
    mut listener: TcpListener,
    redis: Redis,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    redis.set_task_handoff(hand_off_tasks);
    redis.run_remote_commands_with(remote_commands::run);
    let address = listener.local_addr()?;
    let mut other_ports = listen_elsewhere(&redis, address);
    let (mut connections, turn_queue) = (JoinSet::new(), Arc::default());
    let durability = redis.is_sync().then(|| Arc::new(DurabilityNotifier::new(redis.clone())));
    let mut idle_check = interval(IDLE_CHECK);
    idle_check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let common = (&redis, &turn_queue, &durability);
                    accept(stream, peer, common, &mut connections);
                },
                // Too many open files, or a client that has gone already: neither ends the server.
                Err(_) => sleep(ACCEPT_AGAIN).await,
            },
            Some(other) = other_ports.recv() => {
                if let Ok(other) = TcpListener::from_std(other) {
                    listener = other;
                }
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            _ = idle_check.tick() => redis.close_idle(),
        }
    }
    drop(listener);
    redis.close_all();
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(CLOSING_MAX, all).await;
    Ok(())
}

/// Lets CONFIG SET change the port.
fn listen_elsewhere(
    redis: &Redis,
    address: SocketAddr,
) -> mpsc::UnboundedReceiver<std::net::TcpListener> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let ip: IpAddr = address.ip();
    redis.note_address(address, move |port| {
        let listener = std::net::TcpListener::bind((ip, port))?;
        listener.set_nonblocking(true)?;
        sender.send(listener).map_err(io::Error::other)
    });
    receiver
}

fn accept(
    stream: TcpStream,
    peer: SocketAddr,
    (redis, turn_queue, durability): (&Redis, &Arc<TurnQueue>, &Option<Arc<DurabilityNotifier>>),
    connections: &mut JoinSet<()>,
) {
    let local = stream.local_addr().map(|local| local.to_string()).unwrap_or_default();
    let Some(session) = redis.accept(peer.to_string(), local) else {
        // A new socket has room for it; tokio may not know of that yet.
        if let Ok(mut stream) = stream.into_std() {
            let _ = stream.write_all(b"-ERR max number of clients reached\r\n");
        }
        return;
    };
    let _ = stream.set_nodelay(true);
    if let Some(time) = redis.keepalive() {
        let keepalive = TcpKeepalive::new().with_time(time).with_interval(time / 3);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
    }
    let turn = Turn::new(turn_queue);
    connections.spawn(Connection::new(stream, durability.clone(), session, turn).run());
}

/// How long it takes at most until another thread has taken over this one's tasks.
const HANDOFF: Duration = Duration::from_millis(1);

/// Lets another thread take over this one's tasks, for good: this one is busy for long, for example
/// with a script. An executor with one thread has no other.
fn hand_off_tasks() {
    use tokio::runtime::{Handle, RuntimeFlavor};
    let has_others = Handle::try_current()
        .is_ok_and(|handle| handle.runtime_flavor() != RuntimeFlavor::CurrentThread);
    if has_others {
        // The thread that takes the tasks over while this one blocks keeps them afterwards.
        #[expect(
            clippy::disallowed_methods,
            reason = "tokio does not tell when that has happened"
        )]
        tokio::task::block_in_place(|| std::thread::sleep(HANDOFF));
    }
}
