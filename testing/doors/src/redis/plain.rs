//! A plain model of Redis's commands: maps in memory, and a clock that the test sets.
//!
//! It knows fewer commands than the door ([`knows`]), and of an error only its first word.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kstone_redis::{Value, double_text};

use crate::redis::Command;

/// What it can carry out.
const KNOWN: &[&str] = &[
    "SET",
    "SETNX",
    "GETSET",
    "GETDEL",
    "GET",
    "SETEX",
    "PSETEX",
    "MSET",
    "MSETNX",
    "APPEND",
    "STRLEN",
    "INCR",
    "DECR",
    "INCRBY",
    "DECRBY",
    "LPUSH",
    "RPUSH",
    "LPUSHX",
    "RPUSHX",
    "LPOP",
    "RPOP",
    "LLEN",
    "LRANGE",
    "LINDEX",
    "LSET",
    "LINSERT",
    "LREM",
    "LTRIM",
    "LMOVE",
    "RPOPLPUSH",
    "SADD",
    "SREM",
    "SMEMBERS",
    "SCARD",
    "SISMEMBER",
    "SMOVE",
    "SINTER",
    "SUNION",
    "SDIFF",
    "SINTERSTORE",
    "SUNIONSTORE",
    "SDIFFSTORE",
    "SPOP",
    "SRANDMEMBER",
    "HSET",
    "HMSET",
    "HSETNX",
    "HGET",
    "HMGET",
    "HDEL",
    "HLEN",
    "HEXISTS",
    "HGETALL",
    "HKEYS",
    "HVALS",
    "HINCRBY",
    "ZADD",
    "ZINCRBY",
    "ZREM",
    "ZCARD",
    "ZSCORE",
    "ZRANK",
    "ZREVRANK",
    "ZCOUNT",
    "ZREMRANGEBYSCORE",
    "ZRANGE",
    "ZPOPMIN",
    "ZPOPMAX",
    "DEL",
    "UNLINK",
    "EXISTS",
    "TOUCH",
    "TYPE",
    "RENAME",
    "RENAMENX",
    "COPY",
    "PEXPIREAT",
    "EXPIREAT",
    "PEXPIRE",
    "EXPIRE",
    "TTL",
    "PTTL",
    "PEXPIRETIME",
    "PERSIST",
    "KEYS",
    "FLUSHDB",
    "FLUSHALL",
    "SELECT",
];

/// Whether the model can carry it out.
pub fn knows(command: &Command) -> bool {
    let has = |word: &str| command.0.iter().any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    match command.name().as_str() {
        "KEYS" => has("*"),
        "ZRANGE" => !has("BYSCORE") && !has("BYLEX"),
        name => KNOWN.contains(&name),
    }
}

type Bytes = Vec<u8>;

#[derive(Debug, Clone, PartialEq)]
enum StoredValue {
    Text(Bytes),
    List(VecDeque<Bytes>),
    Set(BTreeSet<Bytes>),
    Hash(BTreeMap<Bytes, Bytes>),
    Sorted(BTreeMap<Bytes, f64>),
}

impl StoredValue {
    fn is_empty(&self) -> bool {
        match self {
            StoredValue::Text(_) => false,
            StoredValue::List(list) => list.is_empty(),
            StoredValue::Set(set) => set.is_empty(),
            StoredValue::Hash(hash) => hash.is_empty(),
            StoredValue::Sorted(sorted) => sorted.is_empty(),
        }
    }
}

#[derive(Debug, Clone)]
struct Entry {
    held: StoredValue,
    at_ms: Option<u64>,
}

/// The model: two databases, and the time.
#[derive(Debug)]
pub struct PlainRedis {
    databases: [BTreeMap<Bytes, Entry>; 2],
    selected: usize,
    /// What time it is, in milliseconds since 1970.
    pub now_ms: u64,
}

/// The reply, or the first word of an error.
type Reply = Result<Value, &'static str>;

const WRONG_TYPE: &str = "WRONGTYPE";
const ERR: &str = "ERR";

fn int(number: usize) -> Reply {
    Ok(Value::Integer(number as i64))
}

fn ok() -> Reply {
    Ok(Value::Simple("OK".to_owned()))
}

fn bulk(bytes: Option<&Bytes>) -> Value {
    bytes.map_or(Value::Null, Value::bulk)
}

fn bulks<'a>(all: impl IntoIterator<Item = &'a Bytes>) -> Value {
    Value::Array(all.into_iter().map(Value::bulk).collect())
}

fn whole(text: &[u8]) -> Result<i64, &'static str> {
    let text = std::str::from_utf8(text).map_err(|_| ERR)?;
    let number: i64 = text.parse().map_err(|_| ERR)?;
    // No sign or zero more than needed.
    if number.to_string() == text { Ok(number) } else { Err(ERR) }
}

fn score(text: &[u8]) -> Result<f64, &'static str> {
    let number: f64 = std::str::from_utf8(text).map_err(|_| ERR)?.parse().map_err(|_| ERR)?;
    if number.is_nan() { Err(ERR) } else { Ok(number) }
}

/// The places from one index to another, as LRANGE means them.
fn places(len: usize, from: i64, to: i64) -> std::ops::Range<usize> {
    let len = len as i64;
    let from = if from < 0 { (from + len).max(0) } else { from };
    let to = if to < 0 { to + len } else { to.min(len - 1) };
    if from > to || from >= len { 0..0 } else { from as usize..to as usize + 1 }
}

macro_rules! typed {
    ($name:ident, $kind:ident, $of:ty) => {
        /// What the key holds, if it holds this.
        fn $name(&mut self, key: &[u8]) -> Result<Option<&mut $of>, &'static str> {
            match self.keys().get_mut(key).map(|entry| &mut entry.held) {
                Some(StoredValue::$kind(held)) => Ok(Some(held)),
                Some(_) => Err(WRONG_TYPE),
                None => Ok(None),
            }
        }
    };
}

macro_rules! made {
    ($name:ident, $find:ident, $kind:ident, $of:ty) => {
        /// The same, made if there is nothing.
        fn $name(&mut self, key: &[u8]) -> Result<&mut $of, &'static str> {
            if self.$find(key)?.is_none() {
                self.put(key, StoredValue::$kind(Default::default()), None);
            }
            self.$find(key)?.ok_or(ERR)
        }
    };
}

impl PlainRedis {
    /// Empty.
    pub fn new(now_ms: u64) -> PlainRedis {
        PlainRedis { databases: Default::default(), selected: 0, now_ms }
    }

    /// The reply; `None` if the model does not know the command.
    pub fn carry_out(&mut self, command: &Command) -> Option<Value> {
        let (now_ms, words) = (self.now_ms, command.words());
        for keys in &mut self.databases {
            keys.retain(|_, entry| entry.at_ms.is_none_or(|at_ms| at_ms > now_ms));
        }
        let name = command.name();
        if !KNOWN.contains(&name.as_str()) {
            return None;
        }
        let reply = self.answer(&name, words.get(1..).unwrap_or_default());
        for keys in &mut self.databases {
            keys.retain(|_, entry| !entry.held.is_empty());
        }
        Some(reply.unwrap_or_else(|word| Value::Error(word.as_bytes().to_vec())))
    }

    fn keys(&mut self) -> &mut BTreeMap<Bytes, Entry> {
        &mut self.databases[self.selected]
    }

    fn put(&mut self, key: &[u8], held: StoredValue, at_ms: Option<u64>) {
        self.keys().insert(key.to_vec(), Entry { held, at_ms });
    }

    typed!(text, Text, Bytes);
    typed!(list, List, VecDeque<Bytes>);
    typed!(set, Set, BTreeSet<Bytes>);
    typed!(hash, Hash, BTreeMap<Bytes, Bytes>);
    typed!(sorted, Sorted, BTreeMap<Bytes, f64>);
    made!(list_made, list, List, VecDeque<Bytes>);
    made!(set_made, set, Set, BTreeSet<Bytes>);
    made!(hash_made, hash, Hash, BTreeMap<Bytes, Bytes>);
    made!(sorted_made, sorted, Sorted, BTreeMap<Bytes, f64>);

    fn answer(&mut self, name: &str, args: &[&[u8]]) -> Reply {
        match name {
            "LPUSH" | "RPUSH" | "LPUSHX" | "RPUSHX" | "LPOP" | "RPOP" | "LLEN" | "LRANGE"
            | "LINDEX" | "LSET" | "LINSERT" | "LREM" | "LTRIM" | "LMOVE" | "RPOPLPUSH" => {
                self.list_command(name, args)
            }
            "SADD" | "SREM" | "SMEMBERS" | "SCARD" | "SISMEMBER" | "SMOVE" | "SPOP"
            | "SRANDMEMBER" => self.set_command(name, args),
            "SINTER" | "SUNION" | "SDIFF" => Ok(bulks(&self.combined(name, args)?)),
            "SINTERSTORE" | "SUNIONSTORE" | "SDIFFSTORE" => {
                let (to, of) = args.split_first().ok_or(ERR)?;
                let set = self.combined(name.trim_end_matches("STORE"), of)?;
                let len = set.len();
                self.put(to, StoredValue::Set(set), None);
                int(len)
            }
            _ if name.starts_with('H') => self.hash_command(name, args),
            _ if name.starts_with('Z') => self.sorted_command(name, args),
            _ => match args {
                [] | [b"*"] => self.all_keys(name),
                [key, rest @ ..] => self.text_command(name, key, rest),
            },
        }
    }

    fn all_keys(&mut self, name: &str) -> Reply {
        match name {
            "KEYS" => Ok(bulks(self.keys().keys())),
            "FLUSHDB" => {
                self.keys().clear();
                ok()
            }
            _ => {
                self.databases = Default::default();
                ok()
            }
        }
    }

    fn text_command(&mut self, name: &str, key: &[u8], rest: &[&[u8]]) -> Reply {
        let first = rest.first().copied();
        let number = || whole(first.ok_or(ERR)?);
        match name {
            "SET" => self.set_text(key, rest),
            "SETEX" | "PSETEX" => {
                let ms = number()? as u64 * if name == "SETEX" { 1000 } else { 1 };
                let value = rest.get(1).ok_or(ERR)?.to_vec();
                self.put(key, StoredValue::Text(value), Some(self.now_ms + ms));
                ok()
            }
            "SETNX" if self.keys().contains_key(key) => int(0),
            "SETNX" => {
                self.put(key, StoredValue::Text(first.ok_or(ERR)?.to_vec()), None);
                int(1)
            }
            "GET" => Ok(bulk(self.text(key)?.as_deref())),
            "GETSET" | "GETDEL" => {
                let old = bulk(self.text(key)?.as_deref());
                match first {
                    Some(value) => self.put(key, StoredValue::Text(value.to_vec()), None),
                    None => drop(self.keys().remove(key)),
                }
                Ok(old)
            }
            "MSET" | "MSETNX" => {
                let all = [&[key], rest].concat();
                let is_taken = |pair: &[&[u8]]| self.databases[self.selected].contains_key(pair[0]);
                if name == "MSETNX" && all.chunks(2).any(is_taken) {
                    return int(0);
                }
                for pair in all.chunks(2) {
                    self.put(pair[0], StoredValue::Text(pair[1].to_vec()), None);
                }
                if name == "MSET" { ok() } else { int(1) }
            }
            "APPEND" => {
                let value = first.ok_or(ERR)?;
                if let Some(text) = self.text(key)? {
                    text.extend_from_slice(value);
                    return int(text.len());
                }
                self.put(key, StoredValue::Text(value.to_vec()), None);
                int(value.len())
            }
            "STRLEN" => int(self.text(key)?.map_or(0, |text| text.len())),
            "INCR" | "DECR" | "INCRBY" | "DECRBY" => {
                let by = if rest.is_empty() { 1 } else { number()? };
                let by = match name.starts_with("DECR") {
                    true => by.checked_neg().ok_or(ERR)?,
                    false => by,
                };
                let old = self.text(key)?.map_or(Ok(0), |text| whole(text))?;
                let new = old.checked_add(by).ok_or(ERR)?;
                let text = new.to_string().into_bytes();
                match self.text(key)? {
                    Some(held) => *held = text,
                    None => self.put(key, StoredValue::Text(text), None),
                }
                Ok(Value::Integer(new))
            }
            "SELECT" => {
                self.selected = whole(key)? as usize;
                ok()
            }
            _ => self.key_command(name, key, rest),
        }
    }

    fn set_text(&mut self, key: &[u8], rest: &[&[u8]]) -> Reply {
        let (value, options) = rest.split_first().ok_or(ERR)?;
        let has = |option: &str| options.contains(&option.as_bytes());
        let after = |option: &str| {
            let place = options.iter().position(|word| *word == option.as_bytes());
            place.and_then(|place| options.get(place + 1)).map(|word| whole(word)).transpose()
        };
        let now_ms = self.now_ms;
        let mut at_ms = after("PXAT")?.map(|at_ms| at_ms as u64);
        for (option, unit_ms) in [("EX", 1000), ("PX", 1)] {
            match after(option)? {
                Some(0) => return Err(ERR),
                Some(time) => at_ms = Some(now_ms + time as u64 * unit_ms),
                None => {}
            }
        }
        let old = match has("GET") {
            true => Some(bulk(self.text(key)?.as_deref())),
            false => None,
        };
        let is_there = self.keys().contains_key(key);
        if has("NX") && is_there || has("XX") && !is_there {
            return Ok(old.unwrap_or(Value::Null));
        }
        if has("KEEPTTL") {
            at_ms = self.keys().get(key).and_then(|entry| entry.at_ms);
        }
        self.put(key, StoredValue::Text(value.to_vec()), at_ms);
        old.map_or_else(ok, Ok)
    }

    fn key_command(&mut self, name: &str, key: &[u8], rest: &[&[u8]]) -> Reply {
        let now_ms = self.now_ms;
        match name {
            "DEL" | "UNLINK" | "EXISTS" | "TOUCH" => {
                let mut count = 0;
                for key in [&[key], rest].concat() {
                    count += usize::from(match name {
                        "EXISTS" | "TOUCH" => self.keys().contains_key(key),
                        _ => self.keys().remove(key).is_some(),
                    });
                }
                int(count)
            }
            "TYPE" => Ok(Value::Simple(
                match self.keys().get(key).map(|entry| &entry.held) {
                    None => "none",
                    Some(StoredValue::Text(_)) => "string",
                    Some(StoredValue::List(_)) => "list",
                    Some(StoredValue::Set(_)) => "set",
                    Some(StoredValue::Hash(_)) => "hash",
                    Some(StoredValue::Sorted(_)) => "zset",
                }
                .to_owned(),
            )),
            "RENAME" | "RENAMENX" | "COPY" => {
                let to = *rest.first().ok_or(ERR)?;
                if name == "COPY" && key == to {
                    return Err(ERR);
                }
                let Some(entry) = self.keys().get(key).cloned() else {
                    return if name == "COPY" { int(0) } else { Err(ERR) };
                };
                let may_replace = name == "RENAME" || rest.len() > 1;
                if !may_replace && self.keys().contains_key(to) {
                    return int(0);
                }
                if name != "COPY" {
                    self.keys().remove(key);
                }
                self.keys().insert(to.to_vec(), entry);
                if name == "RENAME" { ok() } else { int(1) }
            }
            "EXPIRE" | "PEXPIRE" | "EXPIREAT" | "PEXPIREAT" => {
                let time = whole(rest.first().ok_or(ERR)?)? as u64;
                let ms = if name.starts_with('P') { time } else { time * 1000 };
                let at_ms = if name.ends_with("AT") { ms } else { now_ms + ms };
                let Some(entry) = self.keys().get_mut(key) else { return int(0) };
                let may = match (rest.get(1).copied(), entry.at_ms) {
                    (Some(b"NX"), old) => old.is_none(),
                    (Some(b"XX"), old) => old.is_some(),
                    (Some(b"GT"), old) => old.is_some_and(|old| at_ms > old),
                    (Some(b"LT"), old) => old.is_none_or(|old| at_ms < old),
                    _ => true,
                };
                if may {
                    entry.at_ms = Some(at_ms);
                }
                int(may.into())
            }
            "TTL" | "PTTL" | "PEXPIRETIME" => {
                Ok(Value::Integer(match self.keys().get(key).map(|entry| entry.at_ms) {
                    None => -2,
                    Some(None) => -1,
                    Some(Some(at_ms)) => match name {
                        "TTL" => ((at_ms - now_ms + 500) / 1000) as i64,
                        "PTTL" => (at_ms - now_ms) as i64,
                        _ => at_ms as i64,
                    },
                }))
            }
            "PERSIST" => {
                let entry = self.keys().get_mut(key);
                int(entry.is_some_and(|entry| entry.at_ms.take().is_some()).into())
            }
            _ => Err("the model does not know"),
        }
    }

    fn list_command(&mut self, name: &str, args: &[&[u8]]) -> Reply {
        let (key, rest) = args.split_first().ok_or(ERR)?;
        let at = |n: usize| rest.get(n).copied().ok_or(ERR);
        let number = |n: usize| whole(at(n)?);
        match name {
            "LPUSH" | "RPUSH" | "LPUSHX" | "RPUSHX" => {
                if name.ends_with('X') && self.list(key)?.is_none() {
                    return int(0);
                }
                let list = self.list_made(key)?;
                for value in rest {
                    match name.starts_with('L') {
                        true => list.push_front(value.to_vec()),
                        false => list.push_back(value.to_vec()),
                    }
                }
                int(list.len())
            }
            "LPOP" | "RPOP" => {
                let count = rest.first().map(|count| whole(count)).transpose()?;
                let Some(list) = self.list(key)? else {
                    return Ok(if count.is_some() { Value::NullArray } else { Value::Null });
                };
                let mut pop = || if name == "LPOP" { list.pop_front() } else { list.pop_back() };
                match count {
                    None => Ok(bulk(pop().as_ref())),
                    Some(count) => Ok(bulks(&(0..count).map_while(|_| pop()).collect::<Vec<_>>())),
                }
            }
            "LMOVE" | "RPOPLPUSH" => {
                let to = at(0)?;
                let from_left = name == "LMOVE" && at(1)? == b"LEFT";
                let to_left = name != "LMOVE" || at(2)? == b"LEFT";
                if self.list(key)?.is_none() {
                    return Ok(Value::Null);
                }
                self.list(to)?;
                let list = self.list_made(key)?;
                let moved = if from_left { list.pop_front() } else { list.pop_back() };
                let moved = moved.ok_or(ERR)?;
                let list = self.list_made(to)?;
                match to_left {
                    true => list.push_front(moved.clone()),
                    false => list.push_back(moved.clone()),
                }
                Ok(Value::bulk(moved))
            }
            _ => {
                let empty = &mut VecDeque::new();
                let found = self.list(key)?;
                let is_there = found.is_some();
                let list = found.unwrap_or(empty);
                let place = |n: i64| {
                    let n = if n < 0 { n + list.len() as i64 } else { n };
                    usize::try_from(n).ok().filter(|n| *n < list.len())
                };
                match name {
                    "LLEN" => int(list.len()),
                    "LINDEX" => Ok(bulk(place(number(0)?).and_then(|n| list.get(n)))),
                    "LRANGE" => Ok(bulks(list.range(places(list.len(), number(0)?, number(1)?)))),
                    "LSET" => {
                        let n = place(number(0)?).ok_or(ERR)?;
                        list[n] = at(1)?.to_vec();
                        ok()
                    }
                    "LINSERT" => {
                        let Some(n) = list.iter().position(|value| value == rest[1]) else {
                            return Ok(Value::Integer(if is_there { -1 } else { 0 }));
                        };
                        list.insert(n + usize::from(at(0)? == b"AFTER"), at(2)?.to_vec());
                        int(list.len())
                    }
                    "LREM" => {
                        let (count, value) = (number(0)?, at(1)?);
                        let all = list.iter().enumerate().filter(|(_, held)| *held == value);
                        let mut all: Vec<usize> = all.map(|(n, _)| n).collect();
                        if count < 0 {
                            all.reverse();
                        }
                        if count != 0 {
                            all.truncate(count.unsigned_abs() as usize);
                        }
                        all.sort_unstable();
                        all.iter().rev().for_each(|n| drop(list.remove(*n)));
                        int(all.len())
                    }
                    _ => {
                        let kept = places(list.len(), number(0)?, number(1)?);
                        *list = list.range(kept).cloned().collect();
                        ok()
                    }
                }
            }
        }
    }

    fn set_command(&mut self, name: &str, args: &[&[u8]]) -> Reply {
        let (key, rest) = args.split_first().ok_or(ERR)?;
        if name == "SADD" {
            let set = self.set_made(key)?;
            return int(rest.iter().filter(|member| set.insert(member.to_vec())).count());
        }
        if name == "SMOVE" {
            let [to, member] = rest else { return Err(ERR) };
            let Some(from) = self.set(key)? else { return int(0) };
            let has = from.contains(*member);
            self.set(to)?;
            if !has {
                return int(0);
            }
            self.set_made(key)?.remove(*member);
            self.set_made(to)?.insert(member.to_vec());
            return int(1);
        }
        let empty = &mut BTreeSet::new();
        let set = self.set(key)?.unwrap_or(empty);
        match name {
            "SREM" => int(rest.iter().filter(|member| set.remove(**member)).count()),
            "SCARD" => int(set.len()),
            "SISMEMBER" => int(set.contains(*rest.first().ok_or(ERR)?).into()),
            "SPOP" => Ok(bulks(&std::mem::take(set))),
            _ => Ok(bulks(&*set)),
        }
    }

    fn combined(&mut self, name: &str, keys: &[&[u8]]) -> Result<BTreeSet<Bytes>, &'static str> {
        let mut sets = Vec::new();
        for key in keys {
            sets.push(self.set(key)?.cloned().unwrap_or_default());
        }
        let combine = |one: BTreeSet<Bytes>, other: BTreeSet<Bytes>| match name {
            "SINTER" => &one & &other,
            "SUNION" => &one | &other,
            _ => &one - &other,
        };
        Ok(sets.into_iter().reduce(combine).unwrap_or_default())
    }

    fn hash_command(&mut self, name: &str, args: &[&[u8]]) -> Reply {
        let (key, rest) = args.split_first().ok_or(ERR)?;
        let first = rest.first().copied().unwrap_or_default();
        match name {
            "HSET" | "HMSET" => {
                let hash = self.hash_made(key)?;
                let pairs = rest.chunks(2).map(|pair| (pair[0].to_vec(), pair[1].to_vec()));
                let new = pairs.filter(|(f, v)| hash.insert(f.clone(), v.clone()).is_none());
                let new = new.count();
                return if name == "HSET" { int(new) } else { ok() };
            }
            "HSETNX" => {
                let hash = self.hash_made(key)?;
                let is_new = !hash.contains_key(first);
                hash.entry(first.to_vec()).or_insert_with(|| rest[1].to_vec());
                return int(is_new.into());
            }
            "HINCRBY" => {
                let by = whole(rest[1])?;
                let old = self.hash(key)?.and_then(|hash| hash.get(first));
                let new = old.map_or(Ok(0), |old| whole(old))?.checked_add(by).ok_or(ERR)?;
                self.hash_made(key)?.insert(first.to_vec(), new.to_string().into_bytes());
                return Ok(Value::Integer(new));
            }
            _ => {}
        }
        let empty = &mut BTreeMap::new();
        let hash = self.hash(key)?.unwrap_or(empty);
        match name {
            "HGET" => Ok(bulk(hash.get(first))),
            "HMGET" => Ok(Value::Array(rest.iter().map(|f| bulk(hash.get(*f))).collect())),
            "HDEL" => int(rest.iter().filter(|field| hash.remove(**field).is_some()).count()),
            "HLEN" => int(hash.len()),
            "HEXISTS" => int(hash.contains_key(first).into()),
            "HKEYS" => Ok(bulks(hash.keys())),
            "HVALS" => Ok(bulks(hash.values())),
            _ => Ok(bulks(hash.iter().flat_map(|(field, value)| [field, value]))),
        }
    }

    fn sorted_command(&mut self, name: &str, args: &[&[u8]]) -> Reply {
        let (key, rest) = args.split_first().ok_or(ERR)?;
        let first = rest.first().copied().unwrap_or_default();
        match name {
            "ZADD" => return self.add_sorted(key, rest),
            "ZINCRBY" => return self.add_sorted(key, &[b"INCR", rest[0], rest[1]]),
            _ => {}
        }
        let empty = &mut BTreeMap::new();
        let sorted = self.sorted(key)?.unwrap_or(empty);
        let mut order: Vec<(Bytes, f64)> = sorted.iter().map(|(m, s)| (m.clone(), *s)).collect();
        order.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(&other.0)));
        let with_scores = |all: &[(Bytes, f64)]| {
            let pairs = all.iter().flat_map(|(member, score)| {
                [Value::bulk(member), Value::bulk(double_text(*score))]
            });
            Value::Array(pairs.collect())
        };
        match name {
            "ZREM" => int(rest.iter().filter(|member| sorted.remove(**member).is_some()).count()),
            "ZCARD" => int(sorted.len()),
            "ZSCORE" => {
                let score = sorted.get(first);
                Ok(score.map_or(Value::Null, |score| Value::bulk(double_text(*score))))
            }
            "ZRANK" | "ZREVRANK" => {
                if name == "ZREVRANK" {
                    order.reverse();
                }
                let place = order.iter().position(|(member, _)| member == first);
                Ok(place.map_or(Value::Null, |place| Value::Integer(place as i64)))
            }
            "ZCOUNT" | "ZREMRANGEBYSCORE" => {
                let bound = |text: &[u8]| match text.strip_prefix(b"(") {
                    Some(rest) => score(rest).map(|score| (score, true)),
                    None => score(text).map(|score| (score, false)),
                };
                let ((from, after), (to, before)) = (bound(first)?, bound(rest[1])?);
                let is_in = |score: f64| {
                    (score > from || score == from && !after)
                        && (score < to || score == to && !before)
                };
                let count = sorted.values().filter(|score| is_in(**score)).count();
                if name != "ZCOUNT" {
                    sorted.retain(|_, score| !is_in(*score));
                }
                int(count)
            }
            "ZPOPMIN" | "ZPOPMAX" => {
                if name == "ZPOPMAX" {
                    order.reverse();
                }
                let count = if rest.is_empty() { 1 } else { whole(first)? as usize };
                order.truncate(count);
                sorted.retain(|held, _| !order.iter().any(|(member, _)| member == held));
                Ok(with_scores(&order))
            }
            _ => {
                let has = |word: &[u8]| rest.contains(&word);
                if has(b"REV") {
                    order.reverse();
                }
                let asked = places(order.len(), whole(first)?, whole(rest[1])?);
                let asked = &order[asked];
                Ok(match has(b"WITHSCORES") {
                    true => with_scores(asked),
                    false => bulks(asked.iter().map(|(member, _)| member)),
                })
            }
        }
    }

    fn add_sorted(&mut self, key: &[u8], rest: &[&[u8]]) -> Reply {
        const OPTIONS: [&[u8]; 6] = [b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"];
        let options = rest.iter().take_while(|word| OPTIONS.contains(word)).count();
        let (options, pairs) = rest.split_at(options);
        let has = |option: &[u8]| options.contains(&option);
        let mut scored = Vec::new();
        for pair in pairs.chunks(2) {
            scored.push((score(pair[0])?, pair[1].to_vec()));
        }
        if self.sorted(key)?.is_none() && has(b"XX") {
            return if has(b"INCR") { Ok(Value::Null) } else { int(0) };
        }
        let sorted = self.sorted_made(key)?;
        let (mut added, mut changed, mut last) = (0, 0, None);
        for (mut score, member) in scored {
            let old = sorted.get(&member).copied();
            if has(b"INCR") {
                score += old.unwrap_or(0.0);
                if score.is_nan() {
                    return Err(ERR);
                }
            }
            let may = match old {
                None => !has(b"XX"),
                Some(old) => {
                    !has(b"NX") && (!has(b"GT") || score > old) && (!has(b"LT") || score < old)
                }
            };
            if !may {
                continue;
            }
            last = Some(score);
            added += usize::from(old.is_none());
            changed += usize::from(old.is_some_and(|old| old != score));
            sorted.insert(member, score);
        }
        match has(b"INCR") {
            true => Ok(last.map_or(Value::Null, |score| Value::bulk(double_text(score)))),
            false => int(if has(b"CH") { added + changed } else { added }),
        }
    }
}
