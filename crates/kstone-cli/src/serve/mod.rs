//! `kstone serve`: one process that has the database open and serves it at its doors.
//!
//! The order matters: sockets first (a port that is taken costs nothing), then the database, then
//! the doors; and back the same way, so that whoever got an answer finds it after the restart.

mod files;
pub mod notice;
pub mod settings;
mod signals;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use kstone::{Database, DatabaseOptions};
use kstone_core::Options;
use kstone_core::env::Env;
use kstone_dynamo::{Credential, DoorOptions};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::Outcome;
use crate::args::Serve;
use crate::database;
use crate::demo;
use crate::output::Output;
use notice::Notice;
use settings::{AccessKey, Listen, Settings};

pub fn run(args: &Serve, out: &mut Output) -> Result<Outcome> {
    let started = Instant::now();
    let settings = Settings::of(args)?;
    let Listen::At(address) = &settings.dynamodb else {
        bail!("nothing to serve: --dynamodb is off, and it is the only door");
    };
    let stop = signals::watch()?;
    let runtime = Runtime::new().context("cannot start the threads of the server")?;
    let (listener, at) = runtime.block_on(listen(address, "--dynamodb", &settings.keys))?;
    let url = url_of(at);

    let db = open(&settings)?;
    let demo = if settings.demo { demo::prepare(&db)? } else { None };
    let posted = match &settings.dir {
        Some(dir) => {
            let notice = Notice { pid: std::process::id(), dynamodb: Some(url.clone()) };
            Some(notice.post(dir).with_context(|| format!("cannot write to {}", dir.display()))?)
        }
        None => None,
    };

    let mut options = DoorOptions { keys: credentials(&settings.keys), ..DoorOptions::default() };
    options.connections_max = files::connections_max(options.connections_max, &Options::default());
    let door = kstone_dynamo::serve(
        listener,
        db.with_durability(settings.dynamodb_durability),
        options,
        asked(stop.clone()),
    );
    let door = runtime.spawn(door);
    for line in lines(&settings, &url) {
        say(out, &line);
    }
    say(out, &format!("ready in {} ms", started.elapsed().as_millis()));
    match demo.map(|demo| demo.show(&url, &settings, out)) {
        // It is no reason to stop serving; and a server that is being stopped need not answer.
        Some(Err(error)) if !*stop.borrow() => out.complain(&format!("no tour: {error:#}")),
        None if settings.demo => say(out, "the table `workflows` here is not the demo's"),
        _ => {}
    }

    let served = runtime.block_on(async {
        // A door that ends by itself has failed; it does not wait to be asked.
        let ended = door.await.context("the DynamoDB door ended")?;
        ended.context("the DynamoDB door failed")
    });
    if *stop.borrow() {
        say(out, "stopping");
    }
    // Connections that outlived the door's patience may still write until here.
    runtime.shutdown_timeout(LAST_WORK);
    // Writes that nobody waited for are on disk too when a server was stopped in peace.
    let synced = db.engine().sync();
    drop(posted);
    drop(db);
    served?;
    synced.context("the last writes may not be on disk")?;
    say(out, "stopped");
    Ok(Outcome::Done)
}

/// How long work that is under way in threads may take when the server is stopped.
const LAST_WORK: Duration = Duration::from_secs(10);

/// Nobody may be reading any more; the server goes on.
fn say(out: &mut Output, line: &str) {
    let _ = out.line(line);
    let _ = out.flush();
}

fn lines(settings: &Settings, url: &str) -> Vec<String> {
    let version = env!("CARGO_PKG_VERSION");
    let place = match &settings.dir {
        Some(dir) => format!("data in {}", dir.display()),
        None => "data in memory only".to_owned(),
    };
    let answered = match settings.dynamodb_durability {
        kstone::Durability::Sync => "sync",
        kstone::Durability::Interval => "interval",
        kstone::Durability::Os => "os",
    };
    let keys = match settings.keys.len() {
        0 => "any access key".to_owned(),
        1 => "1 access key".to_owned(),
        n => format!("{n} access keys"),
    };
    vec![
        format!("KeystoneDB {version}, {place}"),
        format!("dynamodb  {url}  durability {answered}, {keys}"),
    ]
}

fn open(settings: &Settings) -> Result<Database> {
    let mut engine = Options::default();
    if let Some(budget) = settings.memory_budget {
        engine.memory_budget_bytes = budget.0;
    }
    let options = DatabaseOptions { engine, ..DatabaseOptions::default() };
    match &settings.dir {
        Some(dir) => Database::open_with(Env::system(), dir, options)
            .map_err(|error| database::explain(dir, error)),
        None => Ok(Database::open_with(Env::memory(), "memory", options)?),
    }
}

fn credentials(keys: &[AccessKey]) -> Vec<Credential> {
    let credential =
        |key: &AccessKey| Credential { access_key: key.id.clone(), secret_key: key.secret.clone() };
    keys.iter().map(credential).collect()
}

/// Completes when the server is to stop; never if nobody can ask it to.
async fn asked(mut stop: signals::Stop) {
    if stop.wait_for(|asked| *asked).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Opens the socket of a door. `flag` is how its address is changed.
async fn listen(
    address: &str,
    flag: &str,
    keys: &[AccessKey],
) -> Result<(TcpListener, SocketAddr)> {
    let found = tokio::net::lookup_host(address).await;
    let found: Vec<SocketAddr> =
        found.with_context(|| format!("{flag} {address}: no such host"))?.collect();
    if keys.is_empty() && found.iter().any(|at| !at.ip().is_loopback()) {
        bail!(
            "{flag} {address} can be reached from other machines, so it needs a key: give \
             --access-key ID:SECRET (or set KSTONE_ACCESS_KEY), or listen on 127.0.0.1"
        );
    }
    let listener = TcpListener::bind(&*found).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            let port = found.first().map_or(0, SocketAddr::port);
            anyhow!(
                "port {port} is taken: another process listens on {address}; stop it, or choose \
                 another port with {flag} {}",
                address.replace(&format!(":{port}"), &format!(":{}", port.saturating_add(1)))
            )
        }
        _ => anyhow!("cannot listen on {flag} {address}: {error}"),
    })?;
    let at = listener.local_addr()?;
    Ok((listener, at))
}

/// How this machine reaches it.
fn url_of(mut at: SocketAddr) -> String {
    if at.ip().is_unspecified() {
        at.set_ip(match at {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{at}")
}
