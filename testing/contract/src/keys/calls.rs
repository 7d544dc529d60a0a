//! Single commands: what is refused, what is apart, what is large, and what ends.

use std::time::Duration;

use bytes::Bytes;
use kstone_ports::Error;
use kstone_ports::capabilities::Capability;
use kstone_ports::keys::{PurgeKeys, Value};
use tokio::time::{Instant, sleep};

use super::{Shelf, bulk, int, ok};

pub(super) async fn what_the_port_does_not_accept_is_refused(shelf: Shelf) {
    shelf.expect([("SET @a 1", ok()), ("SET @b 1", ok())]).await;
    for line in [
        "KEYS *",
        "SCAN 0",
        "FLUSHALL",
        "FLUSHDB",
        "SELECT 1",
        "MULTI",
        "CONFIG GET a",
        "SUBSCRIBE a",
        "BLPOP $a 0",
        "XREAD BLOCK 0 STREAMS $a 0",
        "SORT $a BY w_*",
        "EVAL return 0",
        "NONSENSE",
        "GET",
    ] {
        shelf.expect_refused(line).await;
    }
    // Keys of several slots, by a single command, a transaction or a watch.
    shelf.expect_refused("MGET @a @b").await;
    shelf.expect_refused("RENAME @a @b").await;
    let both = shelf.lines(["INCR @a", "INCR @b"]);
    let answer = shelf.keys.transaction(&both).await;
    assert!(matches!(&answer, Err(Error::Refused(why)) if why.starts_with("CROSSSLOT")));
    let watched = [shelf.apart("a"), shelf.apart("b")].map(Bytes::from);
    assert!(matches!(shelf.keys.watch(&watched).await, Err(Error::Refused(_))));
    // One that is not accepted refuses the whole pipeline.
    let pipeline = shelf.lines(["INCR @a", "FLUSHALL"]);
    assert!(matches!(shelf.keys.pipeline(&pipeline).await, Err(Error::Refused(_))));
    shelf.expect([("GET @a", bulk("1")), ("GET @b", bulk("1"))]).await;
}

pub(super) async fn databases_are_apart(shelf: Shelf) {
    let keys = &shelf.keys;
    assert!(keys.database(16).is_none());
    assert_eq!(keys.database(keys.db()).map(|it| it.db()), Some(keys.db()));
    // A cluster has no other.
    let Some(other) = keys.database(keys.db() ^ 1) else { return };
    assert_eq!(other.db(), keys.db() ^ 1);
    shelf.expect([("SET $a here", ok())]).await;
    assert_eq!(other.command(&shelf.words("GET $a")).await, Ok(Value::Null));
    assert_eq!(other.command(&shelf.words("SET $a there")).await, Ok(ok()));
    shelf.expect([("GET $a", bulk("here"))]).await;
    assert_eq!(other.command(&shelf.words("DEL $a")).await, Ok(int(1)));
}

pub(super) async fn a_value_may_be_a_mebibyte(shelf: Shelf) {
    let large: Vec<u8> = (0..1 << 20).map(|at| (at % 251) as u8).collect();
    let mut given = shelf.words("SET $large x");
    given[2] = large.clone().into();
    assert_eq!(shelf.keys.command(&given).await, Ok(ok()));
    let read = shelf.say("GET $large").await.unwrap();
    assert!(read == Value::Bulk(large), "other bytes came back");
    shelf.expect([("STRLEN $large", int(1 << 20)), ("DEL $large", int(1))]).await;
}

pub(super) async fn a_key_is_gone_when_its_time_is_over(shelf: Shelf) {
    if !shelf.keys.capabilities().has(Capability::ExactExpiry) {
        return;
    }
    let life = Duration::from_millis(150);
    let began = Instant::now();
    shelf.expect([("SET $a x PX 150", ok())]).await;
    let said = Instant::now();
    let left = shelf.say("PTTL $a").await.unwrap();
    assert!(matches!(left, Value::Integer(left) if (-2..=150).contains(&left)), "{left:?}");
    loop {
        let asked = Instant::now();
        let value = shelf.say("GET $a").await.unwrap();
        if value == Value::Null {
            // Clocks count whole milliseconds.
            assert!(began.elapsed() + Duration::from_millis(2) >= life, "it ended too early");
            break;
        }
        let late = asked.saturating_duration_since(said + life);
        assert!(late < Duration::from_millis(20), "it was shown {late:?} too long");
        sleep(Duration::from_millis(5)).await;
    }
    shelf.expect([("EXISTS $a", int(0)), ("PTTL $a", int(-2)), ("SETNX $a y", int(1))]).await;
    shelf
        .expect([("PEXPIRE $a 100000", int(1)), ("PERSIST $a", int(1)), ("PTTL $a", int(-1))])
        .await;
}

pub(super) async fn only_who_can_purge_does(shelf: Shelf) {
    if shelf.keys.capabilities().has(Capability::Purge) {
        return;
    }
    shelf.expect([("SET $a x", ok())]).await;
    let key = Bytes::from(shelf.key("a"));
    let request = PurgeKeys { keys: vec![(shelf.keys.db(), key)], ..PurgeKeys::default() };
    assert!(matches!(shelf.keys.purge(&request).await, Err(Error::Unsupported(_))));
    shelf.expect([("GET $a", bulk("x"))]).await;
    assert_eq!(shelf.keys.settle().await, Ok(()));
}
