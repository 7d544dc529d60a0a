//! Random commands from templates.
//!
//! In a template `{…}` stands for something drawn (see `Draw::fill`), `(a|b)` for one of several,
//! `[a|b]` for one of several or nothing, `+(a)` for one to three times.

use crate::dice::Dice;
use crate::redis::Command;

/// Commands whose reply depends on nothing but the keys. `{s}` `{l}` `{t}` `{z}` `{h}` `{x}` are
/// mostly keys that hold a string, list, set, sorted set, hash, stream; `{k}` is any.
pub const TEMPLATES: &[&str] = &[
    "SET {s} {v} [NX|XX] [GET] [KEEPTTL|PXAT {at}]",
    "SETNX {s} {v}",
    "GETSET {s} {v}",
    "GETDEL {s}",
    "GETEX {s} [PERSIST|PXAT {at}|EXAT {at}]",
    "GET {s}",
    "MGET +({k})",
    "MSET +({s} {v})",
    "MSETNX +({s} {v})",
    "APPEND {s} {v}",
    "STRLEN {s}",
    "SETRANGE {s} {small} {v}",
    "GETRANGE {s} {i} {i}",
    "SUBSTR {s} {i} {i}",
    "(INCR|DECR) {s}",
    "(INCRBY|DECRBY) {s} {n}",
    "INCRBYFLOAT {s} {d}",
    "SETBIT {s} {small} (0|1|2)",
    "GETBIT {s} {small}",
    "BITCOUNT {s} [{i} {i} [BIT|BYTE]]",
    "BITPOS {s} (0|1) [{i} [{i} [BIT|BYTE]]]",
    "BITOP (AND|OR|XOR|NOT) {s} +({s})",
    "BITFIELD {s} +(SET u8 {small} {n}|GET i5 {small}|INCRBY i16 #{small} {n}|OVERFLOW SAT)",
    "BITFIELD_RO {s} GET u4 {small}",
    "LCS {s} {s} [LEN|IDX [WITHMATCHLEN]]",
    "(LPUSH|RPUSH) {l} +({m})",
    "(LPUSHX|RPUSHX) {l} +({m})",
    "(LPOP|RPOP) {l} [{small}]",
    "LLEN {l}",
    "LRANGE {l} {i} {i}",
    "LINDEX {l} {i}",
    "LSET {l} {i} {m}",
    "LINSERT {l} (BEFORE|AFTER) {m} {v}",
    "LREM {l} {i} {m}",
    "LTRIM {l} {i} {i}",
    "LPOS {l} {m} [RANK {i}] [COUNT {small}] [MAXLEN {small}]",
    "LMOVE {l} {l} (LEFT|RIGHT) (LEFT|RIGHT)",
    "RPOPLPUSH {l} {l}",
    "LMPOP (1|2) {l} {l} (LEFT|RIGHT) [COUNT {small}]",
    "SADD {t} +({m})",
    "SREM {t} +({m})",
    "SMEMBERS {t}",
    "SCARD {t}",
    "SISMEMBER {t} {m}",
    "SMISMEMBER {t} +({m})",
    "SMOVE {t} {t} {m}",
    "(SINTER|SUNION|SDIFF) +({t})",
    "(SINTERSTORE|SUNIONSTORE|SDIFFSTORE) {t} +({t})",
    "SINTERCARD 2 {t} {t} [LIMIT {small}]",
    "SPOP {t} 100",
    "SRANDMEMBER {t} 100",
    "HSET {h} +({m} {v})",
    "HMSET {h} +({m} {v})",
    "HSETNX {h} {m} {v}",
    "HGET {h} {m}",
    "HMGET {h} +({m})",
    "HDEL {h} +({m})",
    "HLEN {h}",
    "HSTRLEN {h} {m}",
    "HEXISTS {h} {m}",
    "(HGETALL|HKEYS|HVALS) {h}",
    "HINCRBY {h} {m} {n}",
    "HINCRBYFLOAT {h} {m} {d}",
    "HRANDFIELD {h} 100 [WITHVALUES]",
    "ZADD {z} [NX|XX|GT|LT] [CH] +({d} {m})",
    "ZADD {z} [XX] INCR {d} {m}",
    "ZINCRBY {z} {d} {m}",
    "ZREM {z} +({m})",
    "ZCARD {z}",
    "ZSCORE {z} {m}",
    "ZMSCORE {z} +({m})",
    "(ZRANK|ZREVRANK) {z} {m}",
    "(ZCOUNT|ZREMRANGEBYSCORE) {z} {bound} {bound}",
    "(ZLEXCOUNT|ZREMRANGEBYLEX) {zlex} {lex} {lex}",
    "ZREMRANGEBYRANK {z} {i} {i}",
    "ZRANGE {z} {i} {i} [REV] [WITHSCORES]",
    "ZRANGE {z} {bound} {bound} BYSCORE [REV] [LIMIT {small} {i}] [WITHSCORES]",
    "ZRANGE {zlex} {lex} {lex} BYLEX [REV] [LIMIT {small} {i}]",
    "ZREVRANGE {z} {i} {i} [WITHSCORES]",
    "(ZRANGEBYSCORE|ZREVRANGEBYSCORE) {z} {bound} {bound} [WITHSCORES] [LIMIT {small} {i}]",
    "(ZRANGEBYLEX|ZREVRANGEBYLEX) {zlex} {lex} {lex} [LIMIT {small} {i}]",
    "ZADD {zlex} 0 {m} 0 {m}",
    "ZRANGESTORE {z} {z} {i} {i} [REV]",
    "(ZPOPMIN|ZPOPMAX) {z} [{small}]",
    "ZMPOP (1|2) {z} {z} (MIN|MAX) [COUNT {small}]",
    "(ZUNION|ZINTER) 2 {z} {z} [WEIGHTS {n} {n}] [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]",
    "(ZUNIONSTORE|ZINTERSTORE) {z} 2 {z} (z1|t1) [WEIGHTS {n} {n}] [AGGREGATE (SUM|MIN|MAX)]",
    "ZDIFF 2 {z} {z} [WITHSCORES]",
    "ZDIFFSTORE {z} 2 {z} {z}",
    "ZINTERCARD 2 {z} {z} [LIMIT {small}]",
    "XADD {x} [NOMKSTREAM] [MAXLEN [=|~] {small}] {id} +({m} {v})",
    "XLEN {x}",
    "(XRANGE {x} {from} {to}|XREVRANGE {x} {to} {from}) [COUNT {small}]",
    "XDEL {x} +({id})",
    "XTRIM {x} (MAXLEN|MINID) = {small}",
    "XREAD COUNT {small} STREAMS {x} {id}",
    "XGROUP CREATE {x} g ({id}|0|$) [MKSTREAM]",
    "XGROUP (SETID {x} g {id}|DESTROY {x} g|CREATECONSUMER {x} g c|DELCONSUMER {x} g c)",
    "XREADGROUP GROUP g (c|e) COUNT {small} STREAMS {x} (>|0)",
    "XACK {x} g +({id})",
    "XPENDING {x} g",
    "XCLAIM {x} g e 0 {id} JUSTID",
    "XAUTOCLAIM {x} g e 0 0 JUSTID",
    "XSETID {x} {id}",
    "(DEL|UNLINK|EXISTS|TOUCH) +({k})",
    "TYPE {k}",
    "(RENAME|RENAMENX) {k} {k}",
    "COPY {k} {k} [REPLACE]",
    "(PEXPIREAT|EXPIREAT) {k} {at} [NX|XX|GT|LT]",
    "(PEXPIRETIME|EXPIRETIME) {k}",
    "PERSIST {k}",
    "DBSIZE",
    "KEYS (*|l*|[a-m]?|?1|nothing)",
    "MOVE {k} 1",
    "SORT {l} [LIMIT {small} {small}] [ASC|DESC] ALPHA [STORE {l}]",
    "SORT {t} BY nosort GET # STORE {l}",
    "PFADD {p} +({m})",
    "PFCOUNT +({p})",
    "PFMERGE {p} +({p})",
    "GEOADD {g} [NX|XX] [CH] {lon} {lat} {m}",
    "(GEOPOS|GEOHASH) {g} +({m})",
    "GEODIST {g} {m} {m} [km|mi]",
    "GEOSEARCH {g} FROMLONLAT {lon} {lat} BYRADIUS 4000 km ASC",
    "(HSCAN|SSCAN|ZSCAN) {k} 0 COUNT 1000",
    "SELECT (0|1)",
    "FLUSHDB",
    "ECHO {v}",
];

/// What nobody should ask: the errors have to be the same too.
pub const WRONG: &[&str] = &[
    "(SET|GET|HSET|LPUSH|ZADD|XADD|LRANGE|EXPIRE|COPY|OBJECT|ZRANGE|NOSUCH) +({k})",
    "(EXPIREAT|INCRBY|LINDEX|SETRANGE|HINCRBY|ZADD|LPOP|XTRIM|GETEX) {k} {v} {v}",
];

/// Commands for which time matters; only where the test decides what time it is.
pub const TIMED: &[&str] = &[
    "SET {s} {v} (EX {small}|PX {ms}) [GET]",
    "(SETEX|PSETEX) {s} {ms} {v}",
    "GETEX {s} PX {ms}",
    "(EXPIRE {k} {small}|PEXPIRE {k} {ms}) [NX|XX|GT|LT]",
    "(TTL|PTTL) {k}",
];

/// Fills templates in.
#[derive(Debug)]
pub struct Draw<'a> {
    dice: &'a Dice,
    /// Around which moment keys expire, in milliseconds since 1970.
    now_ms: u64,
}

impl<'a> Draw<'a> {
    /// Draws with these dice.
    pub fn new(dice: &'a Dice, now_ms: u64) -> Self {
        Draw { dice, now_ms }
    }

    /// A command from one of these templates.
    pub fn command(&self, templates: &[&str]) -> Command {
        let mut words = Vec::new();
        self.expand(*self.dice.pick(templates), &mut words);
        Command(words)
    }

    fn expand(&self, template: &str, into: &mut Vec<Vec<u8>>) {
        let mut rest = template.trim_start();
        while !rest.is_empty() {
            let (is_repeated, body) = match rest.strip_prefix("+(") {
                Some(_) => (true, &rest[1..]),
                None => (false, rest),
            };
            // A pattern of KEYS has brackets of its own.
            let is_group = body.starts_with('(') || body.starts_with('[');
            let end = if is_group { closing(body) } else { word_end(body) };
            let (piece, next) = body.split_at(end);
            rest = next.trim_start();
            if !is_group {
                into.push(self.word(piece));
                continue;
            }
            let choices = split(&piece[1..piece.len() - 1]);
            if piece.starts_with('[') && self.dice.one_in(2) {
                continue;
            }
            let times = if is_repeated { 1 + self.dice.below(3) } else { 1 };
            for _ in 0..times {
                let choice = choices[self.dice.below(choices.len())];
                match choice.starts_with("[a-m]") {
                    true => into.push(choice.as_bytes().to_vec()),
                    false => self.expand(choice, into),
                }
            }
        }
    }

    /// A word with what is in braces drawn.
    fn word(&self, word: &str) -> Vec<u8> {
        let Some((before, rest)) = word.split_once('{') else { return word.as_bytes().to_vec() };
        let (name, after) = rest.split_once('}').unwrap_or((rest, ""));
        [before.as_bytes(), &self.fill(name), after.as_bytes()].concat()
    }

    /// Something of a kind.
    fn fill(&self, name: &str) -> Vec<u8> {
        const KINDS: [&str; 6] = ["s", "l", "t", "z", "h", "x"];
        let dice = self.dice;
        let text = match name {
            "k" => format!("{}{}", dice.pick(&KINDS), dice.below(3)),
            "s" | "l" | "t" | "z" | "h" | "x" | "p" | "g" if dice.one_in(25) => {
                format!("{}{}", dice.pick(&KINDS), dice.below(3))
            }
            "s" | "l" | "t" | "z" | "h" | "x" | "p" | "g" => format!("{name}{}", dice.below(3)),
            // By name only where all have the same score.
            "zlex" => "same".to_owned(),
            "v" => return self.value(),
            "m" => match dice.below(12) {
                0 => return self.value(),
                1 => dice.below(40).to_string(),
                _ => format!("m{}", dice.below(8)),
            },
            "i" => (dice.below(13) as i64 - 6).to_string(),
            "n" => match dice.below(12) {
                0 => i64::MAX.to_string(),
                1 => i64::MIN.to_string(),
                _ => (dice.below(41) as i64 - 20).to_string(),
            },
            "small" => dice.below(9).to_string(),
            "ms" => (1 + dice.below(3000)).to_string(),
            "d" => match dice.below(14) {
                0 => "inf".to_owned(),
                1 => "-inf".to_owned(),
                2 => "1e300".to_owned(),
                3 => "nan".to_owned(),
                4..6 => format!("{}.{}", dice.below(20) as i64 - 10, dice.below(100)),
                _ => (dice.below(21) as i64 - 10).to_string(),
            },
            "bound" => match dice.below(8) {
                0 => "-inf".to_owned(),
                1 => "+inf".to_owned(),
                2 => format!("({}", dice.below(21) as i64 - 10),
                _ => (dice.below(21) as i64 - 10).to_string(),
            },
            "lex" => match dice.below(8) {
                0 => "-".to_owned(),
                1 => "+".to_owned(),
                2..4 => format!("(m{}", dice.below(8)),
                _ => format!("[m{}", dice.below(8)),
            },
            "id" => match dice.below(6) {
                0 => format!("{}", 1 + dice.below(9)),
                1 => format!("{}-*", 1 + dice.below(9)),
                _ => format!("{}-{}", dice.below(9), dice.below(4)),
            },
            "from" => dice.pick(&["-", "2", "(3-1", "5-0"]).to_string(),
            "to" => dice.pick(&["+", "7", "(8-1", "3-3"]).to_string(),
            "at" => match dice.below(8) {
                0 => "1".to_owned(),
                _ => (self.now_ms + 3_600_000 * (1 + dice.below(4) as u64)).to_string(),
            },
            "lon" => format!("{}.{}", dice.below(40) as i64 - 20, dice.below(1000)),
            "lat" => format!("{}.{}", dice.below(40) as i64 - 20, dice.below(1000)),
            other => panic!("no template knows {other}"),
        };
        text.into_bytes()
    }

    fn value(&self) -> Vec<u8> {
        let dice = self.dice;
        match dice.below(10) {
            0 => Vec::new(),
            1 => (0..dice.below(20)).map(|_| dice.below(256) as u8).collect(),
            2 => dice.pick(&["9223372036854775807", "1.5", "-0", " 1", "1e3"]).as_bytes().to_vec(),
            // Long enough that a type would change its shape in memory.
            3 => vec![b'a' + dice.below(3) as u8; 65 + dice.below(200)],
            4..7 => dice.below(100).to_string().into_bytes(),
            _ => format!("v{}", dice.below(6)).into_bytes(),
        }
    }
}

/// Where the bracket that opens the text is closed, one behind it.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

fn word_end(text: &str) -> usize {
    text.find(' ').unwrap_or(text.len())
}

/// The choices of a group: split at `|`, not inside a group within.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0, 0);
    let mut choices = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'|' if depth == 0 => {
                choices.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    choices.push(&text[start..]);
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_makes_commands_without_braces() {
        let dice = Dice::new(1);
        let draw = Draw::new(&dice, 1_700_000_000_000);
        for template in TEMPLATES.iter().chain(TIMED).chain(WRONG) {
            for _ in 0..20 {
                let command = draw.command(&[template]);
                let name = command.name();
                assert!(name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'));
                let is_filled = |word: &Vec<u8>| !word.starts_with(b"{") && !word.contains(&b'|');
                let words = command.0.iter();
                assert!(words.filter(|word| word.is_ascii()).all(is_filled), "{command}");
            }
        }
    }

    #[test]
    fn what_is_optional_is_sometimes_there() {
        let dice = Dice::new(2);
        let draw = Draw::new(&dice, 0);
        let drawn = |_| draw.command(&["A [b|c [d]] +(e)"]).to_string();
        let all: std::collections::BTreeSet<String> = (0..500).map(drawn).collect();
        assert_eq!(all.len(), 4 * 3, "{all:?}");
    }
}
