//! `kstone serve`: one process that has the database open and serves it at its doors.
//!
//! The order matters: sockets first (a port that is taken costs nothing), then the database, then
//! the doors; and back the same way, so that whoever got an answer finds it after the restart.

mod console;
mod control;
mod dapr;
mod dapr_socket;
mod files;
mod governing;
pub mod notice;
mod platform;
pub mod settings;
mod signals;
mod vitals;

use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use kstone::{Database, DatabaseOptions};
use kstone_core::Options;
use kstone_core::env::Env;
use kstone_dynamo::{Credential, DoorOptions};
use kstone_redis::Redis;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Outcome;
use crate::args::Serve;
use crate::database;
use crate::demo;
use crate::output::Output;
use notice::Notice;
use settings::{AccessKey, Listen, Settings};
use vitals::{OpenDoor, ServerVitals};

pub fn run(args: &Serve, out: &mut Output) -> Result<Outcome> {
    let started = Instant::now();
    let settings = Settings::of(args)?;
    let others_off = settings.dynamodb == Listen::Off && settings.redis == Listen::Off;
    if others_off && dapr::is_off(&settings) && settings.console == Some(Listen::Off) {
        bail!(
            "nothing to serve: --dynamodb is off, and --redis, --dapr-http, --dapr-grpc and --console \
             too"
        );
    }
    if settings.demo && settings.dynamodb == Listen::Off {
        bail!("--demo shows what to ask DynamoDB's door, and --dynamodb is off");
    }
    let (ask_to_stop, stop) = signals::watch()?;
    let runtime = Runtime::new().context(THREADS)?;
    let dynamodb = match &settings.dynamodb {
        Listen::At(address) => {
            let needs = settings.keys.is_empty().then_some("--access-key ID:SECRET");
            Some(runtime.block_on(listen(address, "--dynamodb", needs))?)
        }
        Listen::Off => None,
    };
    let redis = match &settings.redis {
        Listen::At(address) => {
            let needs = settings.redis_password.is_none().then_some("--redis-password PASSWORD");
            let runtime = redis_runtime().context(THREADS)?;
            let (listener, at) = runtime.block_on(listen(address, "--redis", needs))?;
            Some((runtime, listener, at))
        }
        Listen::Off => None,
    };
    let dapr = runtime.block_on(dapr::listen(&settings, out))?;
    let console = runtime.block_on(console::listen(&settings, out))?;
    let console_url = console.url();
    let url = dynamodb.as_ref().map(|(_, at)| url_of("http", *at));
    let redis_url = redis.as_ref().map(|(_, _, at)| url_of("redis", *at));

    let db = open(&settings)?;
    let (governor, ruled) = governing::begin(&settings, &db, out)?;
    let mut demo = if settings.demo { demo::prepare(&db)? } else { None };
    let posted = match &settings.dir {
        Some(dir) => {
            let pid = std::process::id();
            let (dapr_http, dapr_grpc) = dapr.urls();
            let (dynamodb, redis) = (url.clone(), redis_url.clone());
            let console = console.url();
            let notice = Notice { pid, dynamodb, redis, dapr_http, dapr_grpc, console };
            Some(notice.post(dir).with_context(|| format!("cannot write to {}", dir.display()))?)
        }
        None => None,
    };

    let mut doors = JoinSet::new();
    let mut open_doors = Vec::new();
    if let Some((listener, _)) = dynamodb {
        let mut options =
            DoorOptions { keys: credentials(&settings.keys), ..DoorOptions::default() };
        options.connections_max =
            files::connections_max(options.connections_max, &Options::default());
        let (at, meter) = (url.clone().unwrap_or_default(), Arc::clone(&options.meter));
        let durability = settings.dynamodb_durability;
        open_doors.push(OpenDoor::metered("DynamoDB", at, durability, meter));
        let db = db.with_durability(settings.dynamodb_durability);
        let door = kstone_dynamo::serve(listener, db, options, asked(stop.clone()));
        let door = async { door.await.context("the DynamoDB door failed") };
        doors.spawn_on(door, runtime.handle());
    }
    let (mut without_door, mut redis_threads) = (None, None);
    if redis.is_none() {
        // Keys whose time is over go also while nobody can ask for them.
        without_door = match governor.is_some() || console.is_open() {
            // Who erases a person asks for keys too, and the console shows them.
            true => Some(Redis::open(&db)?),
            false => Redis::open_if_any(&db)?,
        };
    }
    let mut keys = without_door.clone();
    if let Some((threads, listener, _)) = redis {
        let redis = Redis::open(&db.with_durability(settings.redis_durability))?;
        // Somebody may have a key of the same name: it is no reason not to serve.
        if let Some(Err(error)) = demo.as_mut().map(|demo| demo.prepare_keys(&redis)) {
            out.complain(&format!("no tour of Redis: {error:#}"));
        }
        if let Some(password) = &settings.redis_password {
            redis.require_password(&password.0);
        }
        redis.shutdown_with(move || {
            let _ = ask_to_stop.send(true);
        });
        keys = Some(redis.clone());
        let at = redis_url.clone().unwrap_or_default();
        open_doors.push(OpenDoor::redis(at, settings.redis_durability, redis.clone()));
        let door = kstone_resp::serve(listener, redis, asked(stop.clone()));
        let door = async { door.await.context("the Redis door failed") };
        doors.spawn_on(door, redis_threads.insert(threads).handle());
    }
    let mut lines = lines(&settings, url.as_deref(), redis_url.as_deref());
    lines.extend(dapr.lines(&settings));
    lines.extend(console.line(&settings));
    lines.extend(ruled);
    if let Some(governor) = &governor {
        governing::keep_saved(Arc::clone(governor), keys.clone(), runtime.handle());
    }
    let (mut eraser, mut platform, mut control) = (None, None, None);
    if let (Some(governor), Some(redis)) = (&governor, &keys) {
        let no_erasure = |error| format!("no erasure while this server runs: {error:#}");
        // Without it everything else can be served.
        match control::eraser(settings.dir.as_deref(), &db, redis, governor) {
            Ok(made) => eraser = Some(made),
            Err(error) => out.complain(&no_erasure(error)),
        }
        if console.is_open() || settings.demo {
            let eraser = eraser.as_ref();
            platform = platform::start(&settings, &db, redis, governor, eraser, &runtime)?;
        }
        if let (Some(dir), Some(eraser)) = (&settings.dir, &eraser) {
            let control_of = (Arc::clone(eraser), Arc::clone(governor), platform.clone());
            match control::serve(dir, &db, control_of, runtime.handle()) {
                Ok(socket) => control = Some(socket),
                Err(error) => out.complain(&no_erasure(error)),
            }
        }
    }
    if let Some(redis) = &keys {
        open_doors.extend(dapr.door(&settings));
        let vitals = Arc::new(ServerVitals::new(&db, &settings, open_doors));
        let (governor, platform) = (governor.clone(), platform.clone());
        let shown = console::Shown { db: &db, redis, platform, governor, eraser, vitals };
        console.serve(&settings, shown, &stop, &mut doors, runtime.handle())?;
    }
    let school = keys.as_ref().filter(|_| settings.demo).and_then(demo::school);
    drop(keys);
    let keyspace = governor.as_ref().map(|governor| Arc::clone(governor.keyspace()));
    dapr.serve(&settings, &db, keyspace, &stop, &mut doors, runtime.handle())?;
    for line in lines {
        say(out, &line);
    }
    say(out, &format!("ready in {} ms", started.elapsed().as_millis()));
    let url = url.unwrap_or_default();
    match demo.map(|demo| demo.show(&url, redis_url.as_deref(), &settings, out)) {
        // It is no reason to stop serving; and a server that is being stopped need not answer.
        Some(Err(error)) if !*stop.borrow() => out.complain(&format!("no tour: {error:#}")),
        None if settings.demo => say(out, "the table `workflows` here is not the demo's"),
        _ => {}
    }
    if let (Some(school), Some(platform)) = (school, &platform) {
        let console = console_url.as_deref().map(|url| (url, settings.console_token.is_none()));
        let engine = platform.mastery.clone();
        let stop = asked(stop.clone());
        // It is no reason to stop serving.
        if let Err(error) = demo::open_school(school, engine, &db, console, stop, &runtime, out) {
            out.complain(&format!("{error:#}"));
        }
    }

    let served = runtime.block_on(async {
        // A door that ends by itself has failed; it does not wait to be asked, nor for the others.
        while let Some(ended) = doors.join_next().await {
            ended.context("a door ended")??;
        }
        anyhow::Ok(())
    });
    if *stop.borrow() {
        say(out, "stopping");
    }
    if let Some(platform) = platform {
        let _ = runtime.block_on(async { timeout(LAST_WORK, platform.stop()).await });
    }
    // Connections that outlived the door's patience may still write until here.
    for runtime in redis_threads.into_iter().chain([runtime]) {
        runtime.shutdown_timeout(LAST_WORK);
    }
    drop(without_door);
    drop(control);
    let saved = governor.map_or(Ok(()), |governor| governor.close());
    // Writes that nobody waited for are on disk too when a server was stopped in peace.
    let synced = db.engine().sync();
    drop(posted);
    drop(db);
    served?;
    synced.context("the last writes may not be on disk")?;
    saved.context("the last counts of declared keys are not kept")?;
    say(out, "stopped");
    Ok(Outcome::Done)
}

const THREADS: &str = "cannot start the threads of the server";

/// The threads of the Redis door. Its commands take microseconds, so threads that hand work to each
/// other, or stand in each other's way, cost more than they give: one processor is left to what
/// goes on beside the commands (the log, flushes, compaction, the network).
fn redis_runtime() -> std::io::Result<Runtime> {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = processors.saturating_sub(1).max(1);
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("kstone-redis")
        .enable_all()
        .build()
}

/// How long work that is under way in threads may take when the server is stopped.
const LAST_WORK: Duration = Duration::from_secs(10);

/// Nobody may be reading any more; the server goes on.
fn say(out: &mut Output, line: &str) {
    let _ = out.line(line);
    let _ = out.flush();
}

fn lines(settings: &Settings, dynamodb: Option<&str>, redis: Option<&str>) -> Vec<String> {
    let version = env!("CARGO_PKG_VERSION");
    let place = match &settings.dir {
        Some(dir) => format!("data in {}", dir.display()),
        None => "data in memory only".to_owned(),
    };
    let mut lines = vec![format!("KeystoneDB {version}, {place}")];
    if let Some(url) = dynamodb {
        let keys = match settings.keys.len() {
            0 => "any access key".to_owned(),
            1 => "1 access key".to_owned(),
            n => format!("{n} access keys"),
        };
        let answered = answered(settings.dynamodb_durability);
        lines.push(format!("dynamodb  {url}  durability {answered}, {keys}"));
    }
    if let Some(url) = redis {
        let password = if settings.redis_password.is_some() { "a password" } else { "no password" };
        let answered = answered(settings.redis_durability);
        lines.push(format!("redis     {url}  durability {answered}, {password}"));
    }
    lines
}

fn answered(durability: kstone::Durability) -> &'static str {
    match durability {
        kstone::Durability::Sync => "sync",
        kstone::Durability::Interval => "interval",
        kstone::Durability::Os => "os",
    }
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

/// Opens the socket of a door. `flag` is how its address is changed; `needs` is what other machines
/// would have to be asked for, if they are asked for nothing.
async fn listen(
    address: &str,
    flag: &str,
    needs: Option<&str>,
) -> Result<(TcpListener, SocketAddr)> {
    let found = tokio::net::lookup_host(address).await;
    let found: Vec<SocketAddr> =
        found.with_context(|| format!("{flag} {address}: no such host"))?.collect();
    if let Some(needs) = needs
        && found.iter().any(|at| !at.ip().is_loopback())
    {
        let name = needs.split(' ').next().unwrap_or_default().trim_start_matches("--");
        let (what, variable) = match name {
            "access-key" => ("key", "KSTONE_ACCESS_KEY"),
            "dapr-api-token" => ("token", "KSTONE_DAPR_API_TOKEN"),
            "console-token" => ("token", "KSTONE_CONSOLE_TOKEN"),
            _ => ("password", "KSTONE_REDIS_PASSWORD"),
        };
        bail!(
            "{flag} {address} can be reached from other machines, so it needs a {what}: give \
             {needs} (or set {variable}), or listen on 127.0.0.1"
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
fn url_of(scheme: &str, mut at: SocketAddr) -> String {
    if at.ip().is_unspecified() {
        at.set_ip(match at {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("{scheme}://{at}")
}
