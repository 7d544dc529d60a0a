//! The contents of a server, read key by key; and replies in a form that two servers share.

use std::collections::BTreeMap;

use kstone_redis::{Value, double_text};

use crate::redis::Command;

/// Key by key (with its database): type, expiry and contents, as text.
pub type Contents = BTreeMap<String, String>;

/// How many databases are looked at.
const DATABASES: u32 = 2;

/// Everything that is there, asked for as a client does. Database 0 is selected afterwards.
///
/// # Errors
/// What `ask` says.
pub fn read<E>(mut ask: impl FnMut(&Command) -> Result<Value, E>) -> Result<Contents, E> {
    let mut contents = Contents::new();
    for database in 0..DATABASES {
        ask(&Command::of(&format!("SELECT {database}")))?;
        let Value::Array(keys) = ask(&Command::of("KEYS *"))? else { continue };
        for key in keys {
            let Value::Bulk(key) = key else { continue };
            let mut about = |words: &[&str]| {
                let mut command = Command(words.iter().map(|w| w.as_bytes().to_vec()).collect());
                command.0.insert(1, key.clone());
                let reply = ask(&command)?;
                Ok(text(&plain(&command, reply)))
            };
            let kind = about(&["TYPE"])?;
            let held = match kind.as_str() {
                "+string" => about(&["GET"])?,
                "+list" => about(&["LRANGE", "0", "-1"])? + &about(&["LLEN"])?,
                "+set" => about(&["SMEMBERS"])? + &about(&["SCARD"])?,
                "+hash" => about(&["HGETALL"])? + &about(&["HLEN"])?,
                "+zset" => {
                    let by_score = about(&["ZRANGE", "0", "-1", "WITHSCORES"])?;
                    by_score + &about(&["ZCARD"])?
                }
                _ => {
                    let entries = about(&["XRANGE", "-", "+"])? + &about(&["XLEN"])?;
                    entries + &about(&["XPENDING", "g"])?
                }
            };
            let expiry = about(&["PEXPIRETIME"])?;
            let name = format!("{database} {}", key.escape_ascii());
            contents.insert(name, format!("{kind} {held} expires {expiry}"));
        }
    }
    ask(&Command::of("SELECT 0"))?;
    Ok(contents)
}

/// Where two differ, for people.
pub fn difference(ours: &Contents, theirs: &Contents) -> Option<String> {
    let keys = ours.keys().chain(theirs.keys());
    let first = keys.into_iter().find(|key| ours.get(*key) != theirs.get(*key))?;
    Some(format!("key {first}:\n  {:?}\n  {:?}", ours.get(first), theirs.get(first)))
}

/// A reply as RESP2 would bring it, in an order that does not depend on the server.
pub fn plain(command: &Command, reply: Value) -> Value {
    let mut reply = older(reply);
    let name = command.name();
    let has = |word: &str| command.0.iter().any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    if name.starts_with('Z') {
        unsign_zero(&mut reply);
    }
    if let Value::Array(items) = &mut reply {
        match name.as_str() {
            "SMEMBERS" | "SINTER" | "SUNION" | "SDIFF" | "HKEYS" | "HVALS" | "KEYS" | "SPOP"
            | "SRANDMEMBER" => items.sort_by_key(text),
            "HRANDFIELD" if !has("WITHVALUES") => items.sort_by_key(text),
            "HGETALL" | "HRANDFIELD" => sort_pairs(items),
            "SSCAN" => {
                if let Some(Value::Array(found)) = items.get_mut(1) {
                    found.sort_by_key(text);
                }
            }
            "HSCAN" | "ZSCAN" => {
                if let Some(Value::Array(found)) = items.get_mut(1) {
                    sort_pairs(found);
                }
            }
            _ => {}
        }
    }
    reply
}

/// Redis forgets the sign of a score of -0 in a small sorted set, and keeps it in a large one.
fn unsign_zero(reply: &mut Value) {
    match reply {
        Value::Bulk(text) if text == b"-0" => *text = b"0".to_vec(),
        Value::Array(items) => items.iter_mut().for_each(unsign_zero),
        _ => {}
    }
}

fn sort_pairs(items: &mut Vec<Value>) {
    let mut pairs: Vec<Vec<Value>> = items.chunks(2).map(<[Value]>::to_vec).collect();
    pairs.sort_by_key(|pair| pair.iter().map(text).collect::<Vec<_>>());
    *items = pairs.concat();
}

/// What a client that speaks RESP2 sees of it.
fn older(reply: Value) -> Value {
    let all = |items: Vec<Value>| Value::Array(items.into_iter().map(older).collect());
    match reply {
        Value::Array(items) | Value::Set(items) | Value::Push(items) => all(items),
        Value::Map(pairs) => all(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect()),
        Value::Double(number) => Value::Bulk(double_text(number).into_bytes()),
        Value::Boolean(value) => Value::Integer(value.into()),
        Value::BigNumber(digits) => Value::Bulk(digits.into_bytes()),
        Value::Verbatim(_, text) => Value::Bulk(text),
        other => other,
    }
}

/// A reply as a line.
pub fn text(reply: &Value) -> String {
    match reply {
        Value::Simple(text) => format!("+{text}"),
        Value::Error(message) => format!("-{}", message.escape_ascii()),
        Value::Integer(number) => number.to_string(),
        Value::Bulk(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Value::Null => "nil".to_owned(),
        Value::NullArray => "nil list".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" "))
        }
        other => format!("{other:?}"),
    }
}
