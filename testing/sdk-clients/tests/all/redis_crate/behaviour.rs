//! What must hold with many clients at once.

use redis::{Commands, Connection, Script};

use crate::redis_crate::support::{Server, ask, send};

const LIMIT: i64 = 3;

/// 100 purchases at once, on as many connections; each says whether it got its hint.
#[track_caller]
fn check_purchases(key: &str, buy: impl Fn(&mut Connection) -> bool + Sync) {
    let mut server = Server::start();
    let bought = server.at_once(100, |mut connection| buy(&mut connection));
    assert_eq!(bought.iter().filter(|bought| **bought).count() as i64, LIMIT);
    server.kill_and_restart();
    let mut connection = server.connect();
    assert_eq!(send::<i64>(&mut connection, &["GET", key]), LIMIT);
    assert!(!buy(&mut connection));
}

#[test]
fn a_hundred_hint_purchases_at_once_by_a_script_never_exceed_the_limit() {
    let script = Script::new(
        "if tonumber(redis.call('GET', KEYS[1]) or '0') >= tonumber(ARGV[1]) then return 0 end
         redis.call('INCR', KEYS[1])
         return redis.call('EXPIRE', KEYS[1], 3600)",
    );
    check_purchases("hints_used:s1", |connection| {
        script.key("hints_used:s1").arg(LIMIT).invoke(connection).unwrap()
    });
}

#[test]
fn a_hundred_hint_purchases_at_once_by_watch_never_exceed_the_limit() {
    let key = "hints_used:s1";
    check_purchases(key, |connection| {
        redis::transaction(connection, &[key], |connection, steps| {
            let used: Option<i64> = connection.get(key)?;
            if used.unwrap_or(0) >= LIMIT {
                redis::cmd("UNWATCH").exec(connection)?;
                return Ok(Some(false));
            }
            let done: Option<(i64, bool)> =
                steps.incr(key, 1).expire(key, 3600).query(connection)?;
            Ok(done.map(|_| true))
        })
        .unwrap()
    });
}

#[test]
fn one_of_a_hundred_who_ask_at_once_generates_an_explanation() {
    let mut server = Server::start();
    let asked = server.at_once(100, |mut connection| {
        let lock = "SET explanation:pending:t9 generating NX EX 30";
        ask::<Option<String>>(&mut connection, lock).is_some()
    });
    assert_eq!(asked.iter().filter(|generates| **generates).count(), 1);
    let mut connection = server.connect();
    let left_s: i64 = ask(&mut connection, "TTL explanation:pending:t9");
    assert!((1..=30).contains(&left_s), "{left_s}");
    // The generating client replaces the lock by the explanation, in one step.
    let mut both = redis::pipe();
    both.atomic().set_ex("explanation:cache:t9", "{}", 3600).del("explanation:pending:t9");
    assert_eq!(both.query::<((), i64)>(&mut connection).unwrap().1, 1);
    server.kill_and_restart();
    let mut connection = server.connect();
    let there: i64 = ask(&mut connection, "EXISTS explanation:cache:t9 explanation:pending:t9");
    assert_eq!(there, 1);
}

#[test]
fn a_flags_percentage_is_sticky_and_monotone() {
    let enabled = Script::new(
        "local share = string.match(redis.call('GET', KEYS[1]), '^percentage:(%d+)$')
         local found = {}
         for user = 1, 1000 do
             local digest = redis.sha1hex(KEYS[1] .. ':' .. user)
             if tonumber(string.sub(digest, 1, 8), 16) % 100 < tonumber(share) then
                 found[#found + 1] = user
             end
         end
         return found",
    );
    let users = |connection: &mut Connection, share: i64| -> Vec<i64> {
        let key = "feature_flag:ai_explanations";
        send::<()>(connection, &["SET", key, &format!("percentage:{share}"), "EX", "300"]);
        enabled.key(key).invoke(connection).unwrap()
    };
    let mut server = Server::start();
    let mut connection = server.connect();
    let shares = [0, 25, 50, 100];
    let found = shares.map(|share| users(&mut connection, share));
    assert_eq!((found[0].len(), found[3].len()), (0, 1000));
    assert!((150..350).contains(&found[1].len()), "{}", found[1].len());
    assert!(found[1].iter().all(|user| found[2].contains(user)));
    server.kill_and_restart();
    assert_eq!(shares.map(|share| users(&mut server.connect(), share)), found);
}
