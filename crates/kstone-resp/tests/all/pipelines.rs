//! Commands that are sent together.

use std::io::{BufRead, BufReader, Write as _};
use std::thread;

use crate::support::Door;

/// The replies to these commands, sent so many at a time.
fn replies(commands: &[String], together: usize) -> String {
    let door = Door::open();
    let client = door.connect();
    let mut reader = BufReader::new(client.0.try_clone().unwrap());
    let mut said = String::new();
    for commands in commands.chunks(together) {
        let lines = commands.join("\r\n") + "\r\n";
        let mut stream = client.0.try_clone().unwrap();
        // Both directions at once, lest both sides wait for the other to read.
        let writer = thread::spawn(move || stream.write_all(lines.as_bytes()).unwrap());
        commands.iter().for_each(|_| read_reply(&mut reader, &mut said));
        writer.join().unwrap();
    }
    said
}

/// Reads one reply, with whatever is in it.
fn read_reply(reader: &mut impl BufRead, said: &mut String) {
    let start = said.len();
    reader.read_line(said).unwrap();
    let head = said[start..].trim_end().to_owned();
    let len: i64 = head[1..].parse().unwrap_or(-1);
    match &head[..1] {
        "$" if len >= 0 => {
            reader.read_line(said).unwrap();
        }
        "*" => (0..len).for_each(|_| read_reply(reader, said)),
        _ => {}
    }
}

fn random_commands(seed: u64, count: usize) -> Vec<String> {
    let mut state = seed;
    let mut random = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut commands = Vec::new();
    for n in 0..count {
        let key = format!("k{}", random(4));
        commands.push(match random(28) {
            0..=2 => format!("SET {key} {n}"),
            3..=4 => format!("GET {key}"),
            5 => format!("INCR {key}"),
            6 => format!("APPEND {key} {n}"),
            7..=9 => format!("RPUSH l{key} {n} x"),
            10 => format!("LPOP l{key}"),
            11 => format!("RPOP l{key} 2"),
            12..=13 => format!("LRANGE l{key} 0 3"),
            14 => format!("LTRIM l{key} 1 -1"),
            15 => format!("LLEN {key}"),
            16 => format!("DEL {key} l{key}"),
            17 => format!("EXPIRE {key} 1000"),
            18 => format!("TTL {key}"),
            19 => "MULTI".to_owned(),
            20 => "EXEC".to_owned(),
            21 => "PING".to_owned(),
            22 => format!("GET {key} too many"),
            23 => "nonsense".to_owned(),
            24 => format!("SELECT {}", random(2)),
            25 => format!("BLPOP l{key} 0.001"),
            26 => format!("MSET {key} a l{key} b"),
            _ => "DBSIZE".to_owned(),
        });
    }
    commands.push("DISCARD".to_owned());
    commands
}

#[test]
fn what_is_sent_together_is_answered_as_if_it_came_one_by_one() {
    for seed in 1..4 {
        let commands = random_commands(seed, 600);
        let alone = replies(&commands, 1);
        for together in [3, 50, 601] {
            assert_eq!(replies(&commands, together), alone, "seed {seed}, {together} together");
        }
    }
}

#[test]
fn a_pipeline_wakes_who_waits_between_its_commands() {
    let door = Door::open();
    let (mut waiting, mut client) = (door.connect(), door.connect());
    waiting.send("BLPOP l 0\n");
    door.wait_for_blocked(1);
    client.send("RPUSH l a b\nLLEN l\nRPUSH l c\nLRANGE l 0 -1\n");
    client.expect(":2\r\n:1\r\n:2\r\n*2\r\n$1\r\nb\r\n$1\r\nc\r\n");
    waiting.expect("*2\r\n$1\r\nl\r\n$1\r\na\r\n");
}

#[test]
fn a_very_long_pipeline_is_answered_while_it_comes() {
    let door = Door::open();
    let mut client = door.connect();
    let mut stream = client.0.try_clone().unwrap();
    let value = "x".repeat(1000);
    let lines = format!("SET k {value}\r\nGET k\r\n").repeat(5000);
    let writer = thread::spawn(move || stream.write_all(lines.as_bytes()).unwrap());
    let reply = format!("+OK\r\n$1000\r\n{value}\r\n");
    for _ in 0..5000 {
        client.expect(&reply);
    }
    writer.join().unwrap();
}

#[test]
fn a_pipeline_that_takes_long_yield_to_others_also_on_one_thread() {
    let door = Door::with_threads(1);
    let (mut waiting, mut client) = (door.connect(), door.connect());
    client.exchange("SETBIT big 8000000 1\n", ":0\r\n");
    waiting.send("BLPOP l 0\nGET end\n");
    door.wait_for_blocked(1);
    let count = 60;
    client.send(&format!("RPUSH l a\n{}SET end 1\n", "BITCOUNT big\n".repeat(count)));
    // A client woken by the first command does not wait for the last one.
    waiting.expect("*2\r\n$1\r\nl\r\n$1\r\na\r\n$-1\r\n");
    client.expect(&format!(":1\r\n{}+OK\r\n", ":1\r\n".repeat(count)));
}
