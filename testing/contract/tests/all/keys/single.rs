//! The contract on one server of Redis, and what becomes of calls when it goes away.

use std::sync::Arc;
use std::time::Duration;

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
    let answer = watch.commit(&[words("SET a 2")]).await;
    assert!(matches!(answer, Ok(None) | Err(Error::OutcomeUnknown(_))), "{answer:?}");
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

#[tokio::test(flavor = "multi_thread")]
async fn a_write_without_a_reply_is_not_sent_again() {
    if !are_installed() {
        return;
    }
    let server = Server::start().await;
    let url = format!("redis://127.0.0.1:{}", server.port);
    let reply_timeout = Duration::from_millis(100);
    let options = RemoteOptions { reply_timeout, ..RemoteOptions::default() };
    let keys = RemoteKeys::open(&url, options).unwrap();
    assert_eq!(keys.command(&words("INCR n")).await, Ok(Value::Integer(1)));
    server.say(&["CLIENT", "PAUSE", "60000", "WRITE"]);
    let answer = keys.command(&words("INCR n")).await;
    assert!(matches!(answer, Err(Error::OutcomeUnknown(_))), "{answer:?}");
    let answer = keys.transaction(&[words("INCR m"), words("INCR m")]).await;
    assert!(matches!(answer, Err(Error::OutcomeUnknown(_))), "{answer:?}");
    // One command whose fate is not known makes that of the whole pipeline unknown.
    let answer = keys.pipeline(&[words("GET n"), words("INCR m")]).await;
    assert!(matches!(answer, Err(Error::OutcomeUnknown(_))), "{answer:?}");
    server.say(&["CLIENT", "UNPAUSE"]);
    // A read is sent until it is answered.
    server.say(&["CLIENT", "PAUSE", "400", "ALL"]);
    let at_most = |value: Value, most: &[&str]| {
        assert!(
            value == Value::Null || most.iter().any(|it| value == Value::bulk(it)),
            "{value:?}"
        );
    };
    at_most(keys.command(&words("GET n")).await.unwrap(), &["1", "2"]);
    at_most(keys.command(&words("GET m")).await.unwrap(), &["1", "2", "3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_given_and_not_told() {
    if !are_installed() {
        return;
    }
    let server = Server::start().await;
    server.say(&["ACL", "SETUSER", "ann", "on", ">p@ss", "~*", "+@all"]);
    server.say(&["CONFIG", "SET", "requirepass", "secret"]);
    let at = format!("127.0.0.1:{}", server.port);
    let open = |url: String| RemoteKeys::open(&url, RemoteOptions::default()).unwrap();
    for url in [format!("redis://:secret@{at}"), format!("redis://ann:p%40ss@{at}")] {
        let keys = open(url);
        keys.command(&words("SET a 1")).await.unwrap();
        let told = format!("{keys:?} {}", keys.name());
        assert!(!told.contains("secret") && !told.contains("p@ss"), "{told}");
    }
    for url in [format!("redis://{at}"), format!("redis://ann:wrong@{at}")] {
        let answer = open(url).command(&words("GET a")).await;
        let Err(Error::Unavailable(why)) = answer else { panic!("{answer:?}") };
        assert!(!why.contains("wrong@"), "{why}");
    }
}
