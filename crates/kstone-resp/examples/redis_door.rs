//! Only the Redis door, for trying clients on it: `door PORT [FOLDER]`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "an example")]

use kstone::{Database, DatabaseOptions, Durability};
use kstone_core::env::Env;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let port: u16 = args.next().ok_or("door PORT [FOLDER]")?.parse()?;
    let options = DatabaseOptions { durability: Durability::Interval, ..Default::default() };
    let database = match args.next() {
        Some(dir) => Database::open_with(Env::system(), dir, options)?,
        None => Database::open_with(Env::memory(), "memory", options)?,
    };
    let redis = kstone_redis::Redis::open(&database)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        let stop = async {
            let _ = tokio::signal::ctrl_c().await;
        };
        kstone_resp::serve(listener, redis, stop).await
    })?;
    Ok(())
}
