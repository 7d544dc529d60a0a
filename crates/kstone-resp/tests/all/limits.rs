//! Limits on clients: malformed input, maxclients, output buffers, idle timeout.

use std::io::{ErrorKind, Write as _};
use std::time::{Duration, Instant};

use crate::support::{Door, Wire};

/// Writes until the connection is closed; false if that does not happen in time.
fn is_cut_off(wire: &mut Wire, bytes: &[u8]) -> bool {
    wire.0.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        match wire.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return true,
            Ok(_) => {}
        }
    }
    false
}

#[test]
fn nonsense_is_answered_with_an_error_and_the_end() {
    let door = Door::open();
    let mut wire = door.connect();
    wire.exchange("*1\n+\n", "-ERR Protocol error: expected '$', got '+'\r\n");
    wire.expect_end();
    let mut wire = door.connect();
    wire.exchange("SET a \"b\n", "-ERR Protocol error: unbalanced quotes in request\r\n");
    wire.expect_end();
}

#[test]
fn a_line_may_have_quotes() {
    let door = Door::open();
    let mut wire = door.connect();
    wire.exchange("SET a \"b \\x41\"\nGET 'a'\n", "+OK\r\n$3\r\nb A\r\n");
}

#[test]
fn nobody_gets_in_when_maxclients_are_there() {
    let door = Door::open();
    let mut first = door.connect();
    first.exchange("CONFIG SET maxclients 1\n", "+OK\r\n");
    let mut second = door.connect();
    second.expect("-ERR max number of clients reached\r\n");
    second.expect_end();
    first.exchange("PING\n", "+PONG\r\n");
}

#[test]
fn a_client_that_does_not_read_its_replies_is_cut_off_at_its_limit() {
    let door = Door::open();
    let mut wire = door.connect();
    wire.exchange("CONFIG SET client-output-buffer-limit \"normal 1000000 0 0\"\n", "+OK\r\n");
    let value = "x".repeat(100_000);
    wire.exchange(&format!("SET a {value}\n"), "+OK\r\n");
    assert!(is_cut_off(&mut wire, "GET a\r\n".repeat(100).as_bytes()));
    let mut other = door.connect();
    other.exchange("PING\n", "+PONG\r\n");
}

#[test]
fn a_client_that_writes_much_before_it_reads_gets_all_its_replies() {
    let door = Door::open();
    let mut wire = door.connect();
    let count = 100_000;
    wire.send(&"ECHO 0123456789012345678901234567890123456789\n".repeat(count));
    wire.expect(&"$40\r\n0123456789012345678901234567890123456789\r\n".repeat(count));
}

#[test]
fn who_does_nothing_for_too_long_is_disconnected() {
    let door = Door::open();
    let mut idle = door.connect();
    idle.exchange("CONFIG SET timeout 1\n", "+OK\r\n");
    let mut listener = door.connect();
    listener.exchange("SUBSCRIBE a\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n");
    idle.expect_end();
    // Who listens is not idle.
    let mut publisher = door.connect();
    publisher.exchange("PUBLISH a b\n", ":1\r\n");
    listener.expect("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n");
}

#[test]
fn a_killed_client_is_closed_also_while_it_waits() {
    let door = Door::open();
    let mut waiting = door.connect();
    waiting.exchange("CLIENT SETNAME w\nBLPOP l 0\n", "+OK\r\n");
    door.wait_for_blocked(1);
    let mut killer = door.connect();
    killer.exchange("CLIENT KILL TYPE normal\n", ":1\r\n");
    waiting.expect_end();
    killer.exchange("LPUSH l a\nLLEN l\n", ":1\r\n:1\r\n");
}

#[test]
fn the_port_can_be_changed_while_it_serves() {
    let door = Door::open();
    let mut wire = door.connect();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    wire.send(&format!("CONFIG SET port {port}\n"));
    let refused = "-ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen \
                   on this port. Check server logs.\r\n";
    wire.expect(refused);
    drop(taken);
    wire.exchange(&format!("CONFIG SET port {port}\n"), "+OK\r\n");
    let end = Instant::now() + Duration::from_secs(20);
    let stream = loop {
        match std::net::TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
    };
    let mut other = Wire(stream);
    other.exchange("PING\n", "+PONG\r\n");
}

#[test]
fn resp3_is_spoken_from_the_reply_to_hello_on() {
    let door = Door::open();
    let mut wire = door.connect();
    wire.exchange("HELLO 3\n", "%7\r\n$6\r\nserver\r\n");
    let mut wire = door.connect();
    wire.exchange("GET a\nHELLO 2\n", "$-1\r\n*14\r\n");
}

#[test]
fn a_client_that_has_not_said_who_it_is_must_read_its_replies() {
    let door = Door::open();
    door.redis.require_password("secret");
    let mut stranger = door.connect();
    // The error repeats what it does not understand, so that the sockets are soon full.
    let line = format!("{} {}\r\n", "a".repeat(128), "b".repeat(128));
    assert!(is_cut_off(&mut stranger, line.repeat(100).as_bytes()));
    let mut known = door.connect();
    known.exchange("AUTH secret\nPING\n", "+OK\r\n+PONG\r\n");
}

#[test]
fn nothing_behind_a_line_of_http_is_carried_out() {
    let door = Door::open();
    for line in ["POST / HTTP/1.1", "post /", "Host: 127.0.0.1", "*1\n$4\nPoSt"] {
        let mut page = door.connect();
        page.exchange(&format!("SET a before\n{line}\nSET a behind\n"), "+OK\r\n");
        page.expect_end();
        let mut other = door.connect();
        other.exchange("GET a\n", "$6\r\nbefore\r\n");
    }
}

#[test]
fn what_was_carried_out_is_answered_when_the_server_stops() {
    let mut door = Door::open();
    let (mut wire, mut other) = (door.connect(), door.connect());
    let value = "x".repeat(8_000_000);
    wire.exchange(&format!("*3\n$3\nSET\n$1\na\n$8000000\n{value}\n"), "+OK\r\n");
    // More than sockets hold.
    wire.send("GET a\nGET a\nGET a\nGET a\nSET done 1\n");
    loop {
        other.send("EXISTS done\n");
        let mut reply = [0; 4];
        std::io::Read::read_exact(&mut other.0, &mut reply).unwrap();
        if &reply == b":1\r\n" {
            break;
        }
    }
    door.stop.take().unwrap().send(()).unwrap();
    other.expect_end();
    let reply = format!("$8000000\r\n{value}\r\n");
    (0..4).for_each(|_| wire.expect(&reply));
    wire.expect("+OK\r\n");
    wire.expect_end();
}
