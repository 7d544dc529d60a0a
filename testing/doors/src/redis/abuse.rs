//! Abusive and careless clients: the server's memory stays bounded, they get clear errors, and everybody
//! else is served, at both doors.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use kstone_redis::Value;

use crate::http::Connection;
use crate::redis::server::{Memory, Process};
use crate::redis::wire::Wire;

const MIB: u64 = 1 << 20;
/// Nobody else waits longer than this; machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// The result of one kind of abuse, in a sentence.
pub type Finding = Result<String, String>;

/// A well-behaved client that asks both doors meanwhile.
struct Bystander<'p> {
    process: &'p Process,
    /// The most memory there was before.
    before_bytes: u64,
}

impl<'p> Bystander<'p> {
    fn of(process: &'p Process) -> Self {
        Bystander { process, before_bytes: process.memory_bytes(Memory::Peak) }
    }

    /// A client that comes now is served at the Redis door.
    fn ask_redis(&self) -> Result<(), String> {
        let began = Instant::now();
        let reply = Wire::connect(self.process.redis).and_then(|mut wire| {
            wire.say("SET other 1")?;
            wire.say("GET other")
        });
        match reply {
            Ok(Value::Bulk(text)) if text == b"1" && began.elapsed() < PATIENCE => Ok(()),
            other => Err(format!("others got {other:?} after {:?}", began.elapsed())),
        }
    }

    /// And one at the DynamoDB door.
    fn ask_dynamo(&self) -> Result<(), String> {
        let Some(address) = self.process.dynamo else { return Ok(()) };
        match Connection::new(address).post("DynamoDB_20120810.ListTables", b"{}") {
            Ok(answer) if answer.status == 200 => Ok(()),
            other => Err(format!("the other door answers {other:?}")),
        }
    }

    /// How much more memory there ever was, if it is no more than this.
    fn growth(&self, bytes_max: u64) -> Finding {
        let peak = self.process.memory_bytes(Memory::Peak);
        let growth = peak.saturating_sub(self.before_bytes);
        match growth <= bytes_max {
            true => Ok(format!("{} MiB more memory at most", growth / MIB)),
            false => Err(format!("{} MiB more memory, {} expected", growth / MIB, bytes_max / MIB)),
        }
    }
}

fn told(error: io::Error) -> String {
    error.to_string()
}

/// A client asks for a megabyte many times and reads nothing until others were served. Then it gets
/// every reply.
///
/// # Errors
/// What is not as it should be.
pub fn slow_reader(process: &Process, replies: usize) -> Finding {
    let mut wire = Wire::connect(process.redis).map_err(told)?;
    let value = "x".repeat(MIB as usize);
    wire.say(&format!("SET large {value}")).map_err(told)?;
    wire.say("GET large").map_err(told)?;
    let others = Bystander::of(process);
    wire.send("GET large\r\n".repeat(replies).as_bytes()).map_err(told)?;
    // The server has stopped reading from it when its replies no longer become more.
    await_quiet(process);
    others.ask_redis()?;
    others.ask_dynamo()?;
    // As much as is kept for one client, and what its vector grows by.
    let seen = others.growth(192 * MIB)?;
    for n in 0..replies {
        match wire.reply().map_err(told)? {
            Value::Bulk(bytes) if bytes.len() == value.len() => {}
            other => return Err(format!("reply {n} is {other:?}")),
        }
    }
    others.growth(192 * MIB)?;
    Ok(format!("{replies} unread replies of 1 MiB: {seen}"))
}

/// A subscriber does not read what is published: it is cut off, as `client-output-buffer-limit`
/// says.
///
/// # Errors
/// What is not as it should be.
pub fn slow_subscriber(process: &Process, messages: usize) -> Finding {
    let mut subscriber = Wire::connect(process.redis).map_err(told)?;
    subscriber.say("SUBSCRIBE news").map_err(told)?;
    let mut publisher = Wire::connect(process.redis).map_err(told)?;
    let others = Bystander::of(process);
    let message = format!("PUBLISH news {}", "x".repeat(MIB as usize));
    let mut received = 0;
    for _ in 0..messages {
        match publisher.say(&message).map_err(told)? {
            Value::Integer(1) => received += 1,
            Value::Integer(0) => break,
            other => return Err(format!("PUBLISH says {other:?}")),
        }
    }
    if received == messages {
        return Err(format!("nobody cut off who has not read {messages} MiB"));
    }
    others.ask_redis()?;
    let seen = others.growth(192 * MIB)?;
    Ok(format!("a subscriber that does not read was cut off after {received} MiB: {seen}"))
}

/// Clients announce arguments of half a gigabyte and send a little of them; one announces more than
/// is allowed and is told so.
///
/// # Errors
/// What is not as it should be.
pub fn announced_arguments(process: &Process, clients: usize) -> Finding {
    let others = Bystander::of(process);
    let announce = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$536870912\r\n";
    let mut waiting = Vec::new();
    for _ in 0..clients {
        let mut wire = Wire::connect(process.redis).map_err(told)?;
        wire.send(announce).map_err(told)?;
        wire.send(&[b'x'; 1000]).map_err(told)?;
        waiting.push(wire);
    }
    let mut many = Wire::connect(process.redis).map_err(told)?;
    many.send(b"*1048576\r\n$1\r\na\r\n").map_err(told)?;
    waiting.push(many);
    for (sent, expected) in [
        (&b"*2\r\n$3\r\nGET\r\n$536870913\r\n"[..], "ERR Protocol error: invalid bulk length"),
        (b"*1048577\r\n", "ERR Protocol error: invalid multibulk length"),
    ] {
        let mut wire = Wire::connect(process.redis).map_err(told)?;
        wire.send(sent).map_err(told)?;
        match wire.reply().map_err(told)? {
            Value::Error(message) if message == expected.as_bytes() => {}
            other => return Err(format!("instead of {expected}: {other:?}")),
        }
        if wire.reply().is_ok() {
            return Err("a connection goes on after what makes no sense".to_owned());
        }
    }
    others.ask_redis()?;
    others.ask_dynamo()?;
    let seen = others.growth(32 * MIB + clients as u64 * 64 * 1024)?;
    Ok(format!("{clients} arguments of 512 MiB announced: {seen}"))
}

/// So many clients at once, or as many as this process may have. Each is served.
///
/// # Errors
/// What is not as it should be.
pub fn many_connections(process: &Process, clients: usize) -> Finding {
    let others = Bystander::of(process);
    let mut streams: Vec<TcpStream> = Vec::new();
    for _ in 0..clients {
        match TcpStream::connect(process.redis) {
            Ok(stream) => streams.push(stream),
            // No more files are allowed here: some are needed below.
            Err(_) if streams.len() > 100 => {
                streams.truncate(streams.len() - 20);
                break;
            }
            Err(error) => return Err(told(error)),
        }
    }
    // All ask before anybody is listened to.
    for stream in &mut streams {
        stream.set_read_timeout(Some(PATIENCE)).map_err(told)?;
        stream.write_all(b"PING\r\n").map_err(told)?;
    }
    for (n, stream) in streams.iter_mut().enumerate() {
        let mut reply = [0; 7];
        stream.read_exact(&mut reply).map_err(|error| format!("client {n}: {error}"))?;
        if reply != *b"+PONG\r\n" {
            return Err(format!("client {n} got {}", reply.escape_ascii()));
        }
    }
    let count = streams.len();
    let seen = others.growth(16 * MIB + count as u64 * 32 * 1024)?;
    // There is room again as soon as they have gone.
    drop(streams);
    let mut wire = Wire::connect(process.redis).map_err(told)?;
    let end = Instant::now() + PATIENCE;
    loop {
        let clients = wire.say("INFO clients").map_err(told)?;
        let Value::Bulk(text) = clients else { return Err(format!("INFO says {clients:?}")) };
        if String::from_utf8_lossy(&text).contains("connected_clients:1\r\n") {
            break;
        }
        if Instant::now() > end {
            return Err(format!("clients that have gone stay: {}", text.escape_ascii()));
        }
    }
    others.ask_dynamo()?;
    Ok(format!("{count} clients at once: {seen}"))
}

/// A script that never ends: others are told, the other door goes on, and the script can be killed.
///
/// # Errors
/// What is not as it should be.
pub fn endless_script(process: &Process) -> Finding {
    let others = Bystander::of(process);
    let mut admin = Wire::connect(process.redis).map_err(told)?;
    admin.say("CONFIG SET busy-reply-threshold 100").map_err(told)?;
    let mut script = Wire::connect(process.redis).map_err(told)?;
    script.send(b"EVAL 'while true do end' 0\r\n").map_err(told)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match admin.say("GET other").map_err(told)? {
            Value::Error(message) if message.starts_with(b"BUSY ") => break,
            other if Instant::now() > end => return Err(format!("GET says {other:?}")),
            _ => {}
        }
    }
    for _ in 0..20 {
        others.ask_dynamo()?;
    }
    let killed = admin.say("SCRIPT KILL").map_err(told)?;
    if killed != Value::Simple("OK".to_owned()) {
        return Err(format!("SCRIPT KILL says {killed:?}"));
    }
    match script.reply().map_err(told)? {
        Value::Error(message) if message.starts_with(b"ERR Error running script") => {}
        Value::Error(message) if String::from_utf8_lossy(&message).contains("killed") => {}
        other => return Err(format!("who ran the script got {other:?}")),
    }
    others.ask_redis()?;
    let seen = others.growth(16 * MIB)?;
    Ok(format!("a script without end was killed, others were told: {seen}"))
}

/// A script that takes all memory it can get.
///
/// # Errors
/// What is not as it should be.
pub fn hungry_script(process: &Process) -> Finding {
    let others = Bystander::of(process);
    let mut script = Wire::connect(process.redis).map_err(told)?;
    let source = "local t = {} while true do t[#t+1] = string.rep('x', 1048576 + #t) end";
    script.send(format!("EVAL \"{source}\" 0\r\n").as_bytes()).map_err(told)?;
    match script.reply().map_err(told)? {
        Value::Error(message) if String::from_utf8_lossy(&message).contains("memory") => {}
        other => return Err(format!("who ran the script got {other:?}")),
    }
    let after = script.say("EVAL return('next') 0").map_err(told)?;
    if after != Value::bulk("next") {
        return Err(format!("the next script got {after:?}"));
    }
    others.ask_redis()?;
    others.ask_dynamo()?;
    let seen = others.growth(1152 * MIB)?;
    Ok(format!("a script that takes memory without end was stopped: {seen}"))
}

/// Waits until the server's memory has not become more for a while.
fn await_quiet(process: &Process) {
    let (mut last, mut since) = (0, Instant::now());
    let end = Instant::now() + PATIENCE;
    while since.elapsed() < Duration::from_millis(200) && Instant::now() < end {
        let now = process.memory_bytes(Memory::Now);
        if now > last + MIB {
            (last, since) = (now, Instant::now());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How much of it there is.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Unread replies of a megabyte.
    pub replies: usize,
    /// Clients at once.
    pub connections: usize,
    /// Clients that announce half a gigabyte.
    pub announced: usize,
}

/// All of it, one after the other, on one server.
///
/// # Errors
/// What is not as it should be.
pub fn run(plan: &Plan, process: &Process) -> Result<Vec<String>, String> {
    Ok(vec![
        many_connections(process, plan.connections)?,
        announced_arguments(process, plan.announced)?,
        slow_subscriber(process, 200)?,
        slow_reader(process, plan.replies)?,
        endless_script(process)?,
        hungry_script(process)?,
    ])
}
