//! The Redis door of a folder, in a process that a test can kill: `kstone-clients FOLDER`. It says
//! where it listens, replies when things are on disk, and ends when its standard input does.
#![allow(clippy::disallowed_methods, reason = "a process of its own")]

use std::error::Error;
use std::io;

use kstone::{Database, Durability};
use kstone_redis::Redis;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("kstone-clients FOLDER")?;
    let database = Database::open(folder)?.with_durability(Durability::Sync);
    let redis = Redis::open(&database)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("redis://{}", listener.local_addr()?);
        let end = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink()));
        kstone_resp::serve(listener, redis, async {
            let _ = end.await;
        })
        .await
    })?;
    Ok(())
}
