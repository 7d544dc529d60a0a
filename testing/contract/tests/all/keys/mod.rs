//! The contract of keys on each store.

mod cluster;
mod door;
mod servers;
mod single;

/// The contract on the keys of this process.
mod local {
    use std::sync::Arc;

    use kstone::Database;
    use kstone_redis::Redis;

    #[tokio::test(flavor = "multi_thread")]
    async fn our_engine_keeps_the_contract_of_keys() {
        let redis = Redis::open(&Database::memory().unwrap()).unwrap();
        kstone_contract::keys::check(Arc::new(redis.keys(0).unwrap()), "local").await;
    }
}
