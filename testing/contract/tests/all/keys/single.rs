//! The contract on one server of Redis, and what becomes of calls when it goes away.

use std::sync::Arc;

use bytes::Bytes;
use kstone_ports::Error;
use kstone_ports::keys::{Keys, Value};
use kstone_remote_keys::{RemoteKeys, RemoteOptions};

use super::servers::{Server, are_installed, wait_until};

fn words(line: &str) -> Vec<Bytes> {
    line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_redis_server_keeps_the_contract_of_keys() {
    if !are_installed() {
        return;
    }
    let server = Server::start().await;
    let url = format!("redis://127.0.0.1:{}/2", server.port);
    let keys = RemoteKeys::open(&url, RemoteOptions::default()).unwrap();
    assert_eq!((keys.name(), keys.db()), (url, 2));
    kstone_contract::keys::check(Arc::new(keys), "single").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_unavailable_until_one_is_back() {
    if !are_installed() {
        return;
    }
    let mut server = Server::start().await;
    let url = format!("redis://127.0.0.1:{}", server.port);
    let keys = RemoteKeys::open(&url, RemoteOptions::default()).unwrap();
    keys.command(&words("SET a 1")).await.unwrap();
    let watch = keys.watch(&words("a")).await.unwrap();
    // A connection that the server closes is replaced, and nobody notices.
    server.say(&["CLIENT", "KILL", "TYPE", "normal"]);
    assert_eq!(keys.command(&words("GET a")).await, Ok(Value::bulk("1")));
    // But what was watched on it may have changed.
    assert_eq!(watch.commit(&[words("SET a 2")]).await, Ok(None));
    server.kill();
    assert!(matches!(keys.command(&words("GET a")).await, Err(Error::Unavailable(_))));
    let answer = keys.transaction(&[words("INCR a")]).await;
    assert!(matches!(answer, Err(Error::Unavailable(_) | Error::OutcomeUnknown(_))), "{answer:?}");
    let answer = keys.pipeline(&[words("INCR a"), words("INCR b")]).await;
    assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
    server.start_again();
    wait_until("the server is back", || server.say(&["PING"]).contains("PONG")).await;
    assert_eq!(keys.command(&words("INCR a")).await, Ok(Value::Integer(1)));
}
