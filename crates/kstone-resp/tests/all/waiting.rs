//! Commands that wait, over real sockets.

use std::net::Shutdown;

use crate::support::{Door, Wire};

#[test]
fn what_was_sent_before_is_answered_and_what_was_sent_behind_waits() {
    let door = Door::open();
    let (mut waiting, mut other) = (door.connect(), door.connect());
    waiting.exchange("PING\nBLPOP l 0\nLLEN l\n", "+PONG\r\n");
    door.wait_for_blocked(1);
    waiting.send("PING\n");
    other.exchange("RPUSH l a b\n", ":2\r\n");
    waiting.expect("*2\r\n$1\r\nl\r\n$1\r\na\r\n:1\r\n+PONG\r\n");
    door.wait_for_blocked(0);
}

#[test]
fn a_client_that_hangs_up_is_forgotten_and_takes_nothing() {
    let door = Door::open();
    let mut other = door.connect();
    for close in [|wire: &Wire| wire.0.shutdown(Shutdown::Write).unwrap(), |_: &Wire| {}] {
        let mut waiting = door.connect();
        waiting.send("BLPOP l 0\nPING\n");
        door.wait_for_blocked(1);
        close(&waiting);
        drop(waiting);
        door.wait_for_blocked(0);
    }
    other.exchange("RPUSH l a\nLLEN l\n", ":1\r\n:1\r\n");
}

#[test]
fn the_time_over_is_told_once_and_the_connection_goes_on() {
    let door = Door::open();
    let mut client = door.connect();
    client.exchange("BLPOP l 0.01\nBLMOVE l m LEFT LEFT 0.01\nPING\n", "*-1\r\n*-1\r\n+PONG\r\n");
    client.exchange("RPUSH l a\nBLPOP l 0.01\n", ":1\r\n*2\r\n$1\r\nl\r\n$1\r\na\r\n");
}

#[test]
fn who_waits_for_replicas_or_for_the_disk_holds_up_nobody_else() {
    let door = Door::open();
    let (mut waiting, mut other) = (door.connect(), door.connect());
    waiting.exchange("SET a 1\nWAIT 1 0\nPING\n", "+OK\r\n");
    door.wait_for_blocked(1);
    other.send("GET a\nWAITAOF 1 0 0\nWAITAOF 1 1 10\nWAIT 1 10\n");
    other.expect("$1\r\n1\r\n*2\r\n:1\r\n:0\r\n*2\r\n:1\r\n:0\r\n:0\r\n");
    door.wait_for_blocked(1);
    drop(waiting);
    door.wait_for_blocked(0);
}

#[test]
fn a_door_that_closes_does_not_wait_for_who_waits() {
    let mut door = Door::open();
    let mut waiting = door.connect();
    waiting.send("BLPOP l 0\n");
    door.wait_for_blocked(1);
    door.stop.take().unwrap().send(()).unwrap();
    waiting.expect_end();
    door.wait_for_blocked(0);
}
