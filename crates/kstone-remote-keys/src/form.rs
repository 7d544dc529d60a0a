//! The forms of replies: [`Form`].
//!
//! Our engine gives its replies at the port as lists such as RESP2 has them, but says of their parts
//! what they are: a hash is a map, a score is a number. On the wire of RESP2 a map is a list, a
//! number is a text, and the library that reads it shows no list and no value as one nothing. What
//! was lost follows from the command.

use bytes::Bytes;
use kstone_ports::keys::{ErrorReply, Reply, Value};

/// What the reply to a command is, beyond what the wire tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// What it looks like.
    Plain,
    /// A list, or none.
    List,
    /// A list of lists, any of which may be none.
    Lists,
    /// Keys and values in turn.
    Map,
    /// A list of maps.
    Maps,
    /// Each element once.
    Set,
    /// A number, or nothing.
    Score,
    /// A list of numbers or nothings.
    Scores,
    /// Members and their numbers in turn.
    Scored,
    /// A key, and a list of pairs of a member and its number.
    KeyAndScored,
}

impl Form {
    /// Of the reply to a command, by its name in lower case.
    pub fn of(name: &str, given: &[Bytes]) -> Form {
        let has =
            |word: &str| given.iter().skip(2).any(|it| it.eq_ignore_ascii_case(word.as_bytes()));
        match name {
            "lpop" | "rpop" if given.len() > 2 => Form::List,
            "lmpop" | "xread" | "xreadgroup" => Form::List,
            "zrank" | "zrevrank" if has("withscore") => Form::Scored,
            "geopos" => Form::Lists,
            "hgetall" | "lcs" | "xinfo|stream" => Form::Map,
            "xinfo|groups" | "xinfo|consumers" => Form::Maps,
            "smembers" | "sinter" | "sunion" | "sdiff" => Form::Set,
            "spop" if given.len() > 2 => Form::Set,
            "zscore" | "zincrby" => Form::Score,
            "zadd" if has("incr") => Form::Score,
            "zmscore" => Form::Scores,
            "zpopmin" | "zpopmax" => Form::Scored,
            "zmpop" => Form::KeyAndScored,
            _ if name.starts_with('z') && has("withscores") => Form::Scored,
            _ => Form::Plain,
        }
    }
}

/// A reply as our engine would give it.
pub(crate) fn reply_of(value: redis::Value, form: Form) -> Reply {
    match value {
        redis::Value::ServerError(error) => Err(error_reply(&error)),
        redis::Value::Nil if matches!(form, Form::List | Form::KeyAndScored | Form::Scored) => {
            Ok(Value::NullArray)
        }
        value => Ok(formed(value_of(value, form == Form::Lists), form)),
    }
}

fn error_reply(error: &redis::ServerError) -> ErrorReply {
    match error.details() {
        Some(details) => ErrorReply::new(format!("{} {details}", error.code())),
        None => ErrorReply::new(error.code()),
    }
}

/// A value in its form. What does not fit it stays as it is.
fn formed(value: Value, form: Form) -> Value {
    let values = match (value, form) {
        (value, Form::Plain | Form::List | Form::Lists) => return value,
        (value, Form::Score) => return number(value),
        (Value::Array(values), _) => values,
        (value, _) => return value,
    };
    let each = |form| values.iter().cloned().map(|it| formed(it, form)).collect();
    match form {
        Form::Map if values.len() % 2 == 0 => Value::Map(pairs(values)),
        Form::Maps => Value::Array(each(Form::Map)),
        Form::Set => Value::Set(values),
        Form::Scores => Value::Array(each(Form::Score)),
        Form::Scored => Value::Array(with_numbers(values)),
        Form::KeyAndScored => match <[Value; 2]>::try_from(values) {
            Ok([key, Value::Array(members)]) => {
                let members = members.into_iter().map(|it| formed(it, Form::Scored));
                Value::Array(vec![key, Value::Array(members.collect())])
            }
            Ok(other) => Value::Array(other.into()),
            Err(values) => Value::Array(values),
        },
        _ => Value::Array(values),
    }
}

/// The pairs of a map; what a stream is made of are maps too.
fn pairs(values: Vec<Value>) -> Vec<(Value, Value)> {
    let mut values = values.into_iter();
    let mut pairs = Vec::with_capacity(values.len() / 2);
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        let holds_maps =
            matches!(&key, Value::Bulk(key) if key == b"groups" || key == b"consumers");
        let is_list_of_lists = matches!(&value, Value::Array(all)
            if !all.is_empty() && all.iter().all(|it| matches!(it, Value::Array(_))));
        let form = if holds_maps && is_list_of_lists { Form::Maps } else { Form::Plain };
        pairs.push((key, formed(value, form)));
    }
    pairs
}

/// Every second one as a number.
fn with_numbers(values: Vec<Value>) -> Vec<Value> {
    let numbered = |(at, value)| if at % 2 == 1 { number(value) } else { value };
    values.into_iter().enumerate().map(numbered).collect()
}

/// The number that a text is.
fn number(value: Value) -> Value {
    let parsed = match &value {
        Value::Bulk(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
        _ => None,
    };
    parsed.map_or(value, Value::Double)
}

/// What the library read. With `nil_is_list`, nothing is no list rather than no value.
fn value_of(value: redis::Value, nil_is_list: bool) -> Value {
    let one = |value| value_of(value, nil_is_list);
    let all = |values: Vec<redis::Value>| values.into_iter().map(one).collect();
    match value {
        redis::Value::Nil if nil_is_list => Value::NullArray,
        redis::Value::Nil => Value::Null,
        redis::Value::Int(number) => Value::Integer(number),
        redis::Value::BulkString(bytes) => Value::Bulk(bytes),
        redis::Value::Array(values) => Value::Array(all(values)),
        redis::Value::SimpleString(text) => Value::Simple(text),
        redis::Value::Okay => Value::Simple("OK".to_owned()),
        redis::Value::ServerError(error) => {
            Value::Error(error_reply(&error).message().as_bytes().to_vec())
        }
        // RESP2 has none of the following: only a server that ignores what was agreed sends them.
        redis::Value::Set(values) => Value::Set(all(values)),
        redis::Value::Push { data, .. } => Value::Push(all(data)),
        redis::Value::Map(pairs) => {
            Value::Map(pairs.into_iter().map(|(key, value)| (one(key), one(value))).collect())
        }
        redis::Value::Attribute { data, .. } => one(*data),
        redis::Value::Double(number) => Value::Double(number),
        redis::Value::Boolean(truth) => Value::Boolean(truth),
        redis::Value::VerbatimString { text, .. } => {
            Value::Verbatim("txt".to_owned(), text.into_bytes())
        }
        redis::Value::BigNumber(digits) => {
            Value::BigNumber(String::from_utf8_lossy(&digits).into_owned())
        }
        // The library may learn of more.
        other => Value::Simple(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> Vec<Bytes> {
        line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
    }

    fn read(line: &str, reply: &str) -> Value {
        let given = given(line);
        let name = line.split(' ').next().unwrap_or_default().to_ascii_lowercase();
        let reply = redis::parse_redis_value(reply.as_bytes()).unwrap();
        reply_of(reply, Form::of(&name, &given)).unwrap()
    }

    #[test]
    fn the_command_tells_what_the_wire_does_not() {
        let bulk = |text: &str| Value::bulk(text);
        let pair = "*2\r\n$1\r\na\r\n$1\r\n2\r\n";
        assert_eq!(read("HGETALL h", pair), Value::Map(vec![(bulk("a"), bulk("2"))]));
        assert_eq!(read("SMEMBERS s", pair), Value::Set(vec![bulk("a"), bulk("2")]));
        let scored = Value::Array(vec![bulk("a"), Value::Double(2.0)]);
        assert_eq!(read("ZRANGE z 0 -1 WithScores", pair), scored);
        assert_eq!(read("LRANGE l 0 -1", pair), Value::Array(vec![bulk("a"), bulk("2")]));
        assert_eq!(read("ZSCORE z a", "$4\r\n-inf\r\n"), Value::Double(f64::NEG_INFINITY));
        assert_eq!(read("LPOP l", "$-1\r\n"), Value::Null);
        assert_eq!(read("LPOP l 2", "*-1\r\n"), Value::NullArray);
        // A member may be called like an option.
        assert_eq!(read("ZADD z 1 incr", ":1\r\n"), Value::Integer(1));
    }
}
