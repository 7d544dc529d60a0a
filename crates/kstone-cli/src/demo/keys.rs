//! The demo's Redis keys, and commands that show them.

use anyhow::{Result, bail};
use bytes::Bytes;
use kstone_ports::keys::Keys;
use kstone_redis::{Redis, Session, Value, double_text};

/// What is written if it is not there, so that the next start shows the same: their patterns let
/// them end, the first after ten minutes.
const KEYS: [&[&str]; 2] = [
    &["ZADD", "leaderboard:level:3", "1240", "ada", "1175", "grace", "990", "alan"],
    &["ZADD", "srs:ada:spring", "1736935800", "q17", "1736849400", "q4", "1737540600", "q9"],
];

/// What there is to ask.
const QUESTIONS: [(&str, &[&str]); 2] = [
    (
        "Redis: the best three of a level",
        &["ZREVRANGE", "leaderboard:level:3", "0", "2", "WITHSCORES"],
    ),
    (
        "Redis: at most 20 questions that a learner was due to review by 2025-01-15, 10:30",
        &["ZRANGEBYSCORE", "srs:ada:spring", "-inf", "1736937000", "LIMIT", "0", "20"],
    ),
];

/// Something to ask with `redis-cli`, and the answer.
pub struct Question {
    pub about: &'static str,
    /// What follows `redis-cli`.
    pub command: String,
    /// As `redis-cli` shows it in a terminal.
    pub answer: String,
}

/// Writes the keys that are not there, and asks. To be called before a password is required.
pub fn prepare(redis: &Redis) -> Result<Vec<Question>> {
    let mut session = redis.session();
    for words in KEYS {
        let key = words.get(1).copied().unwrap_or_default();
        if call(&mut session, &["EXISTS", key])? == Value::Integer(0) {
            call(&mut session, words)?;
        }
    }
    let ask = |(about, words): (&'static str, &[&str])| {
        let answer = shown(&call(&mut session, words)?);
        Ok(Question { about, command: words.join(" "), answer })
    };
    QUESTIONS.into_iter().map(ask).collect()
}

/// Writes the keys that have ended meanwhile. The port needs no password.
pub async fn write_again(keys: &dyn Keys) -> Result<(), kstone_ports::Error> {
    for words in KEYS {
        let words: Vec<Bytes> =
            words.iter().map(|word| Bytes::from_static(word.as_bytes())).collect();
        let exists = [Bytes::from_static(b"EXISTS"), words.get(1).cloned().unwrap_or_default()];
        if keys.command(&exists).await? == Value::Integer(0) {
            keys.command(&words).await?;
        }
    }
    Ok(())
}

fn call(session: &mut Session, words: &[&str]) -> Result<Value> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    match session.call(&words) {
        Value::Error(message) => bail!("{}", String::from_utf8_lossy(&message)),
        value => Ok(value),
    }
}

/// As `redis-cli` shows a list of texts and scores.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) if items.is_empty() => "(empty array)".to_owned(),
        Value::Array(items) => {
            let line = |(at, item)| format!("{}) {}", at + 1, shown(item));
            items.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
        }
        Value::Bulk(text) => format!("{:?}", String::from_utf8_lossy(text)),
        // A score: a text, to clients of RESP2.
        Value::Double(number) => format!("\"{}\"", double_text(*number)),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kstone::Database;

    #[test]
    fn the_keys_answer_the_same_at_every_start_and_leave_what_is_there() {
        let redis = Redis::open(&Database::memory().unwrap()).unwrap();
        let answers = |redis: &Redis| -> Vec<String> {
            prepare(redis).unwrap().into_iter().map(|question| question.answer).collect()
        };
        let first = answers(&redis);
        let board = "1) \"ada\"\n2) \"1240\"\n3) \"grace\"\n4) \"1175\"\n5) \"alan\"\n6) \"990\"";
        assert_eq!(first, [board, "1) \"q4\"\n2) \"q17\""]);
        assert_eq!(answers(&redis), first);
        call(&mut redis.session(), &["ZADD", "leaderboard:level:3", "2000", "me"]).unwrap();
        assert!(answers(&redis)[0].starts_with("1) \"me\"\n2) \"2000\""));
    }

    #[tokio::test]
    async fn a_key_that_ended_is_written_again_also_behind_a_password() {
        let redis = Redis::open(&Database::memory().unwrap()).unwrap();
        let shown = prepare(&redis).unwrap();
        call(&mut redis.session(), &["DEL", "leaderboard:level:3"]).unwrap();
        redis.require_password("secret");
        write_again(&redis.keys(0).unwrap()).await.unwrap();
        let mut session = redis.session();
        call(&mut session, &["AUTH", "secret"]).unwrap();
        let board = call(&mut session, QUESTIONS[0].1).unwrap();
        assert_eq!(super::shown(&board), shown[0].answer);
    }
}
