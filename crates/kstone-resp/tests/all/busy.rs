//! Scripts that do not end, over real sockets.

use std::io::Read as _;

use crate::support::{Door, Wire};

/// The next line of a reply.
fn line(wire: &mut Wire) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n") {
        let mut byte = [0];
        wire.0.read_exact(&mut byte).unwrap();
        text.extend(byte);
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn the_only_thread_of_an_executor_is_free_for_others_while_a_script_runs() {
    let door = Door::with_threads(1);
    let (mut running, mut other) = (door.connect(), door.connect());
    other.exchange("CONFIG SET busy-reply-threshold 5\n", "+OK\r\n");
    let script = "while true do end";
    running.send(&format!("*3\n$4\nEVAL\n${}\n{script}\n$1\n0\n", script.len()));
    loop {
        other.send("GET a\n");
        let reply = line(&mut other);
        if reply.starts_with("-BUSY ") {
            break;
        }
        // The script has not begun yet.
        assert_eq!(reply, "$-1\r\n");
    }
    let mut late = door.connect();
    late.send("PING\n");
    assert!(line(&mut late).starts_with("-BUSY "));
    other.exchange("SCRIPT KILL\n", "+OK\r\n");
    assert!(line(&mut running).starts_with("-ERR Script killed by user"));
    late.exchange("PING\n", "+PONG\r\n");
}
