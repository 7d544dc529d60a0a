//! Which commands the port accepts: those that touch nothing but keys that they name, and do not wait.

use bytes::Bytes;

use crate::keys::slot_of;
use crate::{Error, Result};

/// Where a command's keys stand among its arguments; the command's name is 0.
#[derive(Debug, Clone, Copy)]
enum KeyPositions {
    /// It has none.
    None,
    /// From `first` to `last` (0: to the end), every `step`-th.
    Range { first: usize, last: usize, step: usize },
    /// Argument `count` says how many keys follow it; `also` is one more, 0 if there is none.
    Counted { count: usize, also: usize },
    /// The first half of what follows STREAMS.
    Streams,
    /// The first argument, and the one behind the last STORE.
    Sort,
    /// The first argument, and the one behind the last STORE or STOREDIST.
    Radius,
}

const fn one(position: usize) -> KeyPositions {
    KeyPositions::Range { first: position, last: position, step: 1 }
}

const FIRST_TWO: KeyPositions = KeyPositions::Range { first: 1, last: 2, step: 1 };
const ALL: KeyPositions = KeyPositions::Range { first: 1, last: 0, step: 1 };
const FROM_SECOND: KeyPositions = KeyPositions::Range { first: 2, last: 0, step: 1 };
const EVERY_OTHER: KeyPositions = KeyPositions::Range { first: 1, last: 0, step: 2 };
const COUNTED: KeyPositions = KeyPositions::Counted { count: 1, also: 0 };
const STORE_AND_COUNTED: KeyPositions = KeyPositions::Counted { count: 2, also: 1 };

/// The commands, by where their keys are.
#[rustfmt::skip]
const COMMANDS: &[(KeyPositions, &[&str])] = &[
    (KeyPositions::None, &["echo", "ping", "time"]),
    (one(1), &[
        "append", "bitcount", "bitfield", "bitfield_ro", "bitpos", "decr", "decrby", "dump", "expire",
        "expireat", "expiretime", "geoadd", "geodist", "geohash", "geopos", "georadius_ro",
        "georadiusbymember_ro", "geosearch", "get", "getbit", "getdel", "getex", "getrange", "getset",
        "hdel", "hexists", "hexpire", "hexpireat", "hexpiretime", "hget", "hgetall", "hgetdel",
        "hgetex", "hincrby", "hincrbyfloat", "hkeys", "hlen", "hmget", "hmset", "hpersist",
        "hpexpire", "hpexpireat", "hpexpiretime", "hpttl", "hrandfield", "hscan", "hset", "hsetex",
        "hsetnx", "hstrlen", "httl", "hvals", "incr", "incrby", "incrbyfloat", "lindex", "linsert",
        "llen", "lpop", "lpos", "lpush", "lpushx", "lrange", "lrem", "lset", "ltrim", "persist",
        "pexpire", "pexpireat", "pexpiretime", "pfadd", "psetex", "pttl", "restore", "rpop", "rpush",
        "rpushx", "sadd", "scard", "set", "setbit", "setex", "setnx", "setrange", "sismember",
        "smembers", "smismember", "sort_ro", "spop", "srandmember", "srem", "sscan", "strlen", "substr", "ttl",
        "type", "xack", "xadd", "xautoclaim", "xclaim", "xdel", "xlen", "xpending", "xrange",
        "xrevrange", "xsetid", "xtrim", "zadd", "zcard", "zcount", "zincrby", "zlexcount", "zmscore",
        "zpopmax", "zpopmin", "zrandmember", "zrange", "zrangebylex", "zrangebyscore", "zrank", "zrem",
        "zremrangebylex", "zremrangebyrank", "zremrangebyscore", "zrevrange", "zrevrangebylex",
        "zrevrangebyscore", "zrevrank", "zscan", "zscore",
    ]),
    (one(2), &[
        "memory|usage", "object|encoding", "object|freq", "object|idletime", "object|refcount",
        "xgroup|create", "xgroup|createconsumer", "xgroup|delconsumer", "xgroup|destroy",
        "xgroup|setid", "xinfo|consumers", "xinfo|groups", "xinfo|stream",
    ]),
    (FIRST_TWO, &[
        "copy", "geosearchstore", "lcs", "lmove", "rename", "renamenx", "rpoplpush", "smove",
        "zrangestore",
    ]),
    (ALL, &[
        "del", "exists", "mget", "pfcount", "pfmerge", "sdiff", "sdiffstore", "sinter", "sinterstore",
        "sunion", "sunionstore", "touch", "unlink",
    ]),
    (FROM_SECOND, &["bitop"]),
    (EVERY_OTHER, &["mset", "msetnx"]),
    (COUNTED, &["lmpop", "sintercard", "zdiff", "zinter", "zintercard", "zmpop", "zunion"]),
    (STORE_AND_COUNTED, &["zdiffstore", "zinterstore", "zunionstore"]),
    (KeyPositions::Streams, &["xread", "xreadgroup"]),
    (KeyPositions::Sort, &["sort"]),
    (KeyPositions::Radius, &["georadius", "georadiusbymember"]),
];

/// Programs, and what others may listen to: these may reach further than the keys that they name.
#[rustfmt::skip]
const UNCONFINED: &[(KeyPositions, &[&str])] = &[
    (KeyPositions::None, &["publish"]),
    (KeyPositions::Counted { count: 2, also: 0 }, SCRIPTS),
];
const SCRIPTS: &[&str] = &["eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro"];

/// Commands whose first argument is a part of their name.
const WITH_SUBCOMMANDS: [&str; 4] = ["memory", "object", "xgroup", "xinfo"];

/// A command as the port understands it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortCommand {
    /// Its name, in lower case; of a subcommand `object|encoding`.
    pub name: &'static str,
    /// The positions of the arguments that are keys; the command's name is 0.
    pub keys: Vec<usize>,
    /// The slot that they are all in; `None` if it names none.
    pub slot: Option<u16>,
    /// Whether it touches nothing but the keys that it names, and tells nobody.
    pub is_confined: bool,
}

impl PortCommand {
    /// Finds out what a command asks for. `given` begins with its name.
    ///
    /// # Errors
    /// If the port does not accept it.
    pub fn of(given: &[Bytes]) -> Result<PortCommand> {
        let asked = asked_name(given);
        let find = |table: &'static [(KeyPositions, &'static [&'static str])]| {
            let mut rows = table.iter();
            rows.find_map(|(keys, names)| {
                names.iter().find(|name| asked == **name).map(|name| (*keys, *name))
            })
        };
        let (found, is_confined) = match find(COMMANDS) {
            None => (find(UNCONFINED), false),
            found => (found, true),
        };
        let Some((positions, name)) = found else {
            return Err(refused(
                &asked,
                "it names no key, waits, or reaches further than its keys",
            ));
        };
        check_options(name, given)?;
        let keys = positions.find(given);
        let mut slots = keys.iter().filter_map(|at| given.get(*at)).map(|key| slot_of(key));
        let slot = slots.next();
        if slot.is_none() && !matches!(positions, KeyPositions::None) {
            return Err(refused(name, "it names no key"));
        }
        if slots.any(|other| Some(other) != slot) {
            return Err(cross_slot());
        }
        Ok(PortCommand { name, keys, slot, is_confined })
    }

    /// Finds out what several commands on one slot ask for: on `slot`, if that is given.
    ///
    /// # Errors
    /// If the port does not accept one of them, or they are on several slots.
    pub fn all_of_one_slot(commands: &[Vec<Bytes>], slot: Option<u16>) -> Result<Vec<PortCommand>> {
        let asked: Vec<PortCommand> =
            commands.iter().map(|given| PortCommand::of(given)).collect::<Result<_>>()?;
        let mut slots = slot.into_iter().chain(asked.iter().filter_map(|one| one.slot));
        let first = slots.next();
        match slots.all(|slot| Some(slot) == first) {
            true => Ok(asked),
            false => Err(cross_slot()),
        }
    }

    /// The names of all commands that the port accepts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        COMMANDS.iter().chain(UNCONFINED).flat_map(|(_, names)| names.iter().copied())
    }
}

/// In lower case, with the subcommand.
fn asked_name(given: &[Bytes]) -> String {
    let text = |arg: &Bytes| String::from_utf8_lossy(arg).to_ascii_lowercase();
    let name = given.first().map(text).unwrap_or_default();
    match given.get(1) {
        Some(sub) if WITH_SUBCOMMANDS.contains(&&*name) => format!("{name}|{}", text(sub)),
        _ => name,
    }
}

fn cross_slot() -> Error {
    Error::Refused("CROSSSLOT Keys in request don't hash to the same slot".to_owned())
}

fn refused(name: &str, reason: &str) -> Error {
    let name = name.to_ascii_uppercase().replace('|', " ");
    Error::Refused(format!("ERR {name} is no command for the port to keys: {reason}"))
}

fn is(arg: &[u8], word: &str) -> bool {
    arg.eq_ignore_ascii_case(word.as_bytes())
}

/// Refuses the options with which a command reaches further, or waits.
fn check_options(name: &str, given: &[Bytes]) -> Result<()> {
    let has = |from: usize, word| given.iter().skip(from).any(|arg| is(arg, word));
    let reason = match name {
        "copy" if has(3, "db") => "it reaches further than the keys of this database",
        "sort" | "sort_ro" if has(2, "get") || has(2, "by") && !sorts_by_nothing(given) => {
            "it reads keys that it does not name"
        }
        "xread" | "xreadgroup" if has(1, "block") && blocks(given) => {
            "it waits, and others share the connection"
        }
        _ => return Ok(()),
    };
    Err(refused(name, reason))
}

/// Whether XREAD is to wait: the option stands before the keys.
fn blocks(given: &[Bytes]) -> bool {
    let options = stream_options(given);
    options.into_iter().any(|at| given.get(at).is_some_and(|arg| is(arg, "block")))
}

/// The positions of the options of XREAD and XREADGROUP, the last of which is STREAMS. A group may be
/// called like an option, so their values are passed over.
fn stream_options(given: &[Bytes]) -> Vec<usize> {
    let (mut found, mut at) = (Vec::new(), 1);
    while let Some(arg) = given.get(at) {
        found.push(at);
        at += match () {
            () if is(arg, "group") => 3,
            () if is(arg, "count") || is(arg, "block") => 2,
            () if is(arg, "noack") => 1,
            () => break,
        };
    }
    found
}

/// Whether SORT looks up no weights: a pattern without `*` names no other key.
fn sorts_by_nothing(given: &[Bytes]) -> bool {
    let by = given.iter().enumerate().skip(2).filter(|(_, arg)| is(arg, "by"));
    by.filter_map(|(at, _)| given.get(at + 1)).all(|pattern| !pattern.contains(&b'*'))
}

impl KeyPositions {
    fn find(self, given: &[Bytes]) -> Vec<usize> {
        let end = given.len();
        match self {
            KeyPositions::None => Vec::new(),
            KeyPositions::Range { first, last, step } => {
                let end = if last == 0 { end } else { end.min(last + 1) };
                (first..end).step_by(step).collect()
            }
            KeyPositions::Counted { count, also } => {
                let number = given.get(count).and_then(|arg| std::str::from_utf8(arg).ok());
                let number: usize = number.and_then(|it| it.parse().ok()).unwrap_or_default();
                let also = (also > 0 && also < end).then_some(also);
                let last = count.saturating_add(number).min(end.saturating_sub(1));
                also.into_iter().chain(count + 1..=last).collect()
            }
            KeyPositions::Streams => {
                let last = stream_options(given).pop().unwrap_or_default();
                match given.get(last) {
                    // As many IDs follow as there are keys.
                    Some(arg) if is(arg, "streams") && (end - last) % 2 == 1 => {
                        (last + 1..end).take((end - last) / 2).collect()
                    }
                    _ => Vec::new(),
                }
            }
            KeyPositions::Sort => {
                let (mut at, mut target) = (2, None);
                while let Some(option) = given.get(at) {
                    at += match () {
                        () if is(option, "limit") => 3,
                        () if is(option, "get") || is(option, "by") => 2,
                        () if is(option, "store") && at + 1 < end => {
                            target = Some(at + 1);
                            2
                        }
                        () => 1,
                    };
                }
                first_and(target, end)
            }
            KeyPositions::Radius => {
                let (mut at, mut target) = (5, None);
                while let Some(option) = given.get(at) {
                    if (is(option, "store") || is(option, "storedist")) && at + 1 < end {
                        at += 1;
                        target = Some(at);
                    }
                    at += 1;
                }
                first_and(target, end)
            }
        }
    }
}

/// The first argument, and where the result is stored, if there are such arguments.
fn first_and(target: Option<usize>, end: usize) -> Vec<usize> {
    [Some(1), target].into_iter().flatten().filter(|at| *at < end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<PortCommand> {
        let words: Vec<Bytes> =
            line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        PortCommand::of(&words)
    }

    #[test]
    fn what_names_its_keys_goes_through() {
        for (line, keys) in [
            ("GET a", vec![1]),
            ("MSET {t}a 1 {t}b 2", vec![1, 3]),
            ("ZUNIONSTORE {t}d 2 {t}a {t}b", vec![1, 3, 4]),
            ("XREAD COUNT 1 STREAMS block 0", vec![4]),
            ("XREADGROUP GROUP streams block STREAMS a >", vec![5]),
            ("OBJECT ENCODING a", vec![2]),
            ("EVAL return 1 a", vec![3]),
            ("SORT a BY nosort STORE a", vec![1, 5]),
            ("GEORADIUS {store}a 0 0 1 m STORE store ASC", vec![1, 7]),
            ("COPY {t}db {t}b", vec![1, 2]),
            ("PING", vec![]),
        ] {
            assert_eq!(asked(line).unwrap().keys, keys, "{line}");
        }
        assert!(asked("SET a 1").unwrap().is_confined);
        assert!(!asked("PUBLISH a 1").unwrap().is_confined);
    }

    #[test]
    fn what_reaches_further_is_refused() {
        for line in [
            "KEYS *",
            "SCAN 0",
            "DBSIZE",
            "FLUSHALL",
            "SELECT 1",
            "SWAPDB 0 1",
            "MULTI",
            "EXEC",
            "WATCH a",
            "CONFIG GET a",
            "SUBSCRIBE a",
            "MONITOR",
            "BLPOP a 0",
            "MOVE a 1",
            "COPY a a DB 1",
            "SORT a BY w_*",
            "SORT a GET a",
            "SORT_RO a BY w_*",
            "XREAD BLOCK 0 STREAMS a 0",
            "XREADGROUP GROUP streams c BLOCK 0 STREAMS a >",
            "EVAL return 0",
            "SCRIPT LOAD x",
            "FUNCTION LIST",
            "RANDOMKEY",
            "MIGRATE h 1 a 0 1",
            "PFDEBUG ENCODING a",
            "CLIENT LIST",
            "WAIT 0 0",
        ] {
            assert!(matches!(asked(line), Err(Error::Refused(_))), "{line}: {:?}", asked(line));
        }
        for line in ["NONSENSE", "GET", "ZUNION 0", "XREAD STREAMS"] {
            assert!(matches!(asked(line), Err(Error::Refused(_))), "{line}: {:?}", asked(line));
        }
    }

    #[test]
    fn keys_of_several_slots_are_refused() {
        let refused = asked("MGET a b").unwrap_err();
        assert!(refused.to_string().starts_with("CROSSSLOT"), "{refused}");
        let words = |line: &str| -> Vec<Bytes> {
            line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
        };
        assert!(
            PortCommand::all_of_one_slot(&[words("GET a"), words("GET a"), words("PING")], None)
                .is_ok()
        );
        assert!(PortCommand::all_of_one_slot(&[words("GET a"), words("GET b")], None).is_err());
        assert!(PortCommand::all_of_one_slot(&[words("GET b")], Some(slot_of(b"a"))).is_err());
    }
}
