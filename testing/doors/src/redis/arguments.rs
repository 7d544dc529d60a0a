//! What the fuzz targets of the Redis library do with any bytes, and inputs to start from. The long
//! run is in `fuzz/`, the short one in this crate's tests; the target for what comes over the wire
//! is `kstone_resp::fuzzing`.
//!
//! Nothing here may panic, hang, or take memory out of proportion to the input.

use std::cell::RefCell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use kstone::Database;
use kstone_redis::{Redis, Session, Tree, Value};

use crate::dice::Dice;
use crate::redis::Command;
use crate::redis::contents;
use crate::redis::draw::{Draw, TEMPLATES, TIMED, WRONG};

/// How many inputs a database sees: enough to find what others wrote, few enough that it does not
/// grow.
const INPUTS_MAX: usize = 200;

/// Not asked: they stop or change the machine, wait, reach other machines, or run programs that may
/// never end.
const NEVER: &[&str] = &[
    "SHUTDOWN",
    "DEBUG",
    "CONFIG",
    "MIGRATE",
    "FAILOVER",
    "REPLICAOF",
    "SLAVEOF",
    "EVAL",
    "EVAL_RO",
    "EVALSHA",
    "EVALSHA_RO",
    "FCALL",
    "FCALL_RO",
    "FUNCTION",
    "SCRIPT",
    "ACL",
    "CLIENT",
    "BGREWRITEAOF",
    "BGSAVE",
    "SAVE",
    "MONITOR",
    "AUTH",
    "RESET",
    "QUIT",
];

thread_local! {
    static CLIENT: RefCell<Option<(Session, usize)>> = const { RefCell::new(None) };
}

/// Commands, one in each line, their words separated by spaces. Each has one reply, or waits.
///
/// # Panics
/// If it has none.
pub fn commands(bytes: &[u8]) {
    with_session(|session| {
        let mut is_open = false;
        for line in bytes.split(|byte| *byte == b'\n').take(64) {
            let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').take(64).collect();
            let name = String::from_utf8_lossy(words.first().copied().unwrap_or_default());
            let name = name.to_uppercase();
            if NEVER.contains(&name.as_str()) {
                continue;
            }
            is_open = (is_open || name == "MULTI") && name != "EXEC" && name != "DISCARD";
            let _ = ask(session, &words);
        }
        if is_open {
            let _ = ask(session, &[b"DISCARD"]);
        }
        for words in [&["UNWATCH"][..], &["UNSUBSCRIBE"], &["PUNSUBSCRIBE"], &["SUNSUBSCRIBE"]] {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            let _ = ask(session, &words);
        }
    });
}

/// A dumped value without its checksum, the version in the first byte: restored with the right
/// checksum. What is accepted can be read, and is the same after it was dumped and restored again.
///
/// # Panics
/// If it is not.
pub fn restore(bytes: &[u8]) {
    let Some((&version, payload)) = bytes.split_first() else { return };
    let version = if version == b'K' { 0x4b01 } else { u16::from(version) };
    with_session(|session| {
        let _ = ask(session, &[b"FLUSHALL"]);
        let restored = |session: &mut Session, payload: &[u8]| {
            let reply = ask(session, &[b"RESTORE", b"value", b"0", payload, b"REPLACE"]);
            matches!(reply, Some(Value::Simple(_)))
        };
        if !restored(session, &sealed(payload, version)) {
            return;
        }
        let first = read(session);
        let Some(Value::Bulk(again)) = ask(session, &[b"DUMP", b"value"]) else {
            // What has nothing in it is not there.
            assert!(first.is_empty(), "what was restored cannot be dumped: {first:?}");
            return;
        };
        assert!(restored(session, &again), "what was dumped cannot be restored: {first:?}");
        assert_eq!(read(session), first, "a value changed on its way");
    });
}

fn read(session: &mut Session) -> contents::Contents {
    let read = |command: &Command| ask(session, &command.words()).ok_or(());
    contents::read(read).unwrap_or_default()
}

fn with_session(run: impl FnOnce(&mut Session)) {
    CLIENT.with_borrow_mut(|client| {
        let kept = client.take().filter(|(_, uses)| *uses < INPUTS_MAX);
        let (mut session, uses) = kept.unwrap_or_else(|| (fresh(), 0));
        run(&mut session);
        *client = Some((session, uses + 1));
    });
}

fn fresh() -> Session {
    let open = || Redis::open(&Database::memory()?);
    let redis = open().unwrap_or_else(|error| panic!("{error}"));
    let mut session = redis.session();
    // A string of half a gigabyte is allowed otherwise, and SETBIT makes one in a few bytes.
    let limit = session.call(&[b"CONFIG", b"SET", b"proto-max-bulk-len", b"1mb"]);
    assert_eq!(limit, Value::Simple("OK".to_owned()));
    session
}

/// The reply; `None` if the command waits or the server is paused.
fn ask(session: &mut Session, words: &[&[u8]]) -> Option<Value> {
    let mut out = Tree::new();
    let is_done = {
        let mut done = pin!(session.execute(words, &mut out));
        // Nobody else has the locks: what can go on does so at once, or lets others go first.
        let mut context = Context::from_waker(Waker::noop());
        (0..3).any(|_| matches!(done.as_mut().poll(&mut context), Poll::Ready(_)))
    };
    assert!(is_done, "a command waits for nobody: {words:?}");
    out.into_values().into_iter().next()
}

/// A payload with version and checksum behind it.
fn sealed(payload: &[u8], version: u16) -> Vec<u8> {
    let bytes = [payload, &version.to_le_bytes()].concat();
    let crc = bytes.iter().fold(0_u64, |crc, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0x95ac_9329_ac4b_c9b5 } else { 0 }
        })
    });
    [bytes, crc.to_le_bytes().to_vec()].concat()
}

/// Inputs to start from, each with its target's name.
///
/// # Panics
/// If the library does not list its commands.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut session = fresh();
    let Value::Array(names) = session.call(&[b"COMMAND", b"LIST"]) else {
        panic!("COMMAND LIST is no list");
    };
    let dice = Dice::new(1);
    let draw = Draw::new(&dice, 4_000_000_000_000);
    let words = "{k} {k} {v} {i} {n} {d} {m} {id} {at} {bound} {lex} {small}";
    let words: Vec<&str> = words.split(' ').collect();
    let line = |command: &Command| command.0.join(&b' ');
    for name in &names {
        let Value::Bulk(name) = name else { continue };
        for count in 0..8 {
            let drawn = (0..count).map(|_| draw.command(&words).0.concat());
            let all = std::iter::once(name.clone()).chain(drawn).collect();
            seeds.push(("redis_commands", line(&Command(all))));
        }
    }
    for templates in [TEMPLATES, TIMED, WRONG] {
        for _ in 0..100 {
            let lines: Vec<Vec<u8>> = (0..12).map(|_| line(&draw.command(templates))).collect();
            seeds.push(("redis_commands", lines.join(&b'\n')));
        }
    }
    for n in 0..600 {
        session.call(&draw.command(TEMPLATES).words());
        if n % 20 != 19 {
            continue;
        }
        let Value::Array(keys) = session.call(&[b"KEYS", b"*"]) else { continue };
        for key in keys {
            let Value::Bulk(key) = key else { continue };
            let Value::Bulk(dumped) = session.call(&[b"DUMP", &key]) else { continue };
            let Some((payload, seal)) = dumped.split_last_chunk::<10>() else { continue };
            let version = if seal[1] == 0 { seal[0] } else { b'K' };
            seeds.push(("redis_restore", [&[version], payload].concat()));
        }
    }
    seeds
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_here_is_what_the_library_dumps() {
        let mut session = fresh();
        session.call(&[b"RPUSH", b"list", b"a", b"b"]);
        let Value::Bulk(dumped) = session.call(&[b"DUMP", b"list"]) else { panic!("no dump") };
        let (payload, seal) = dumped.split_last_chunk::<10>().unwrap();
        let version = u16::from_le_bytes([seal[0], seal[1]]);
        assert_eq!(sealed(payload, version), dumped);
    }
}
