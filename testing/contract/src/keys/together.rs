//! Several commands: pipelines, transactions, watches, and callers at the same time.

use bytes::Bytes;
use kstone_ports::Error;
use kstone_ports::keys::Value;

use super::{Shelf, bulk, int, list, ok};

pub(super) async fn each_of_a_pipeline_is_answered_in_order(shelf: Shelf) {
    let mut commands: Vec<Vec<Bytes>> =
        (0..300).map(|at| shelf.words(&format!("SET @key{at} {at}"))).collect();
    commands.insert(70, shelf.words("LPUSH @key3 x"));
    commands.insert(71, shelf.words("PING"));
    commands.extend((0..300).map(|at| shelf.words(&format!("GET @key{at}"))));
    let replies = shelf.keys.pipeline(&commands).await.unwrap();
    assert_eq!(replies.len(), 602);
    assert_eq!(replies[70].as_ref().unwrap_err().code(), "WRONGTYPE");
    assert_eq!(replies[71], Ok(Value::Simple("PONG".to_owned())));
    assert_eq!((&replies[0], &replies[301]), (&Ok(ok()), &Ok(ok())));
    for at in 0..300 {
        assert_eq!(replies[302 + at], Ok(bulk(&at.to_string())), "{at}");
    }
    assert_eq!(shelf.keys.pipeline(&[]).await, Ok(Vec::new()));
}

pub(super) async fn a_pipeline_keeps_the_order_on_a_key(shelf: Shelf) {
    let mut commands = Vec::new();
    for at in 0..50 {
        commands.push(shelf.words(&format!("RPUSH @one {at}")));
        commands.push(shelf.words(&format!("RPUSH @two {at}")));
    }
    let replies = shelf.keys.pipeline(&commands).await.unwrap();
    assert_eq!((&replies[98], &replies[99]), (&Ok(int(50)), &Ok(int(50))));
    shelf.expect([("LRANGE @one 48 -1", list(["48", "49"]))]).await;
    shelf.expect([("LRANGE @two 0 1", list(["0", "1"]))]).await;
}

pub(super) async fn a_transaction_is_of_one_slot(shelf: Shelf) {
    let commands = shelf.lines(["INCR $n", "LPUSH $n x", "LPOP $none 2", "PING", "GET $n"]);
    let replies = shelf.keys.transaction(&commands).await.unwrap();
    assert_eq!(replies[0], Ok(int(1)));
    assert_eq!(replies[1].as_ref().unwrap_err().code(), "WRONGTYPE");
    assert_eq!(replies[2], Ok(Value::NullArray));
    assert_eq!(replies[3], Ok(Value::Simple("PONG".to_owned())));
    assert_eq!(replies[4], Ok(bulk("1")));
    // One that cannot even be begun leaves all undone.
    let answer = shelf.keys.transaction(&shelf.lines(["INCR $n", "SET $n"])).await;
    assert!(matches!(answer, Err(Error::Reply(_))), "{answer:?}");
    shelf.expect([("GET $n", bulk("1"))]).await;
    assert_eq!(shelf.keys.transaction(&[]).await, Ok(Vec::new()));
}

pub(super) async fn nobody_sees_half_a_transaction(shelf: Shelf) {
    shelf.expect([("MSET $a 0 $b 0", ok())]).await;
    let writer = shelf.clone();
    let writing = tokio::spawn(async move {
        for _ in 0..200 {
            writer.keys.transaction(&writer.lines(["INCR $a", "INCR $b"])).await.unwrap();
        }
    });
    while !writing.is_finished() {
        let Ok(Value::Array(both)) = shelf.say("MGET $a $b").await else { panic!("no list") };
        assert_eq!(both[0], both[1]);
    }
    writing.await.unwrap();
    shelf.expect([("MGET $a $b", list(["200", "200"]))]).await;
}

pub(super) async fn of_two_who_watch_one_commits(shelf: Shelf) {
    let key = [Bytes::from(shelf.key("n"))];
    let (mut one, mut other) =
        (shelf.keys.watch(&key).await.unwrap(), shelf.keys.watch(&key).await.unwrap());
    assert_eq!(one.command(&shelf.words("GET $n")).await, Ok(Value::Null));
    assert_eq!(other.command(&shelf.words("GET $n")).await, Ok(Value::Null));
    let done = one.commit(&shelf.lines(["SET $n 1", "GET $n"])).await.unwrap();
    assert_eq!(done, Some(vec![Ok(ok()), Ok(bulk("1"))]));
    assert_eq!(other.commit(&shelf.lines(["SET $n 2"])).await, Ok(None));
    shelf.expect([("GET $n", bulk("1"))]).await;
    // Another slot than that of the watched keys is refused.
    let mut watch = shelf.keys.watch(&key).await.unwrap();
    let answer = watch.command(&shelf.words("GET @elsewhere")).await;
    assert!(matches!(answer, Err(Error::Refused(_))), "{answer:?}");
    let answer = watch.commit(&shelf.lines(["SET @elsewhere 2"])).await;
    assert!(matches!(answer, Err(Error::Refused(_))), "{answer:?}");
    // Who only watched, and went away, is in nobody's way; nor does anything of it remain.
    drop(shelf.keys.watch(&key).await.unwrap());
    shelf.expect([("SET $n 3", ok())]).await;
    let watch = shelf.keys.watch(&key).await.unwrap();
    assert!(watch.commit(&shelf.lines(["INCR $n"])).await.unwrap().is_some());
    shelf.expect([("GET $n", bulk("4"))]).await;
}

pub(super) async fn increments_of_many_add_up(shelf: Shelf) {
    let tasks: Vec<_> = (0..64)
        .map(|at| {
            let shelf = shelf.clone();
            tokio::spawn(async move {
                for _ in 0..20 {
                    shelf.say("INCR $n").await.unwrap();
                    shelf.say(&format!("INCR @n{}", at % 8)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    shelf.expect([("GET $n", bulk("1280")), ("GET @n7", bulk("160"))]).await;
}
