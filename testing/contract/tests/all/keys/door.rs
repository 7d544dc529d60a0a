//! The contract through our own door for Redis's protocol.

use std::sync::Arc;

use kstone::Database;
use kstone_redis::Redis;
use kstone_remote_keys::{RemoteKeys, RemoteOptions};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

#[tokio::test(flavor = "multi_thread")]
async fn our_own_door_keeps_the_contract_of_keys() {
    let redis = Redis::open(&Database::memory().unwrap()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(kstone_resp::serve(listener, redis, async {
        let _ = stopped.await;
    }));
    let keys = RemoteKeys::open(&url, RemoteOptions::default()).unwrap();
    kstone_contract::keys::check(Arc::new(keys), "door").await;
    let _ = stop.send(());
    served.await.unwrap().unwrap();
}
