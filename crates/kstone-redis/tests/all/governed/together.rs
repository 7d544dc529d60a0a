//! Several commands in one commit, and clients that wait: what breaks a rule fails alone.

use kstone_redis::{Pipeline, Value};

use crate::governed::Governed;
use crate::support::{bulk, bulks, error, int, ok};

#[test]
fn in_a_multi_the_command_that_breaks_a_rule_fails_alone() {
    let mut governed = Governed::new();
    governed.do_("SET number:a 1");
    governed.rules.asked();
    for line in [
        "MULTI",
        "SET hour:a v",
        "INCR number:a",
        "SET number:a text",
        "HSET h a 1",
        "HSET h b 2",
        "RENAME h no:h",
        "HSET h a 3",
        "PTTL hour:a",
        "EXEC",
    ] {
        governed.do_(line);
    }
    assert_eq!(governed.say("GET number:a"), bulk("2"));
    assert_eq!(governed.say("HMGET h a b"), bulks(&["3", "2"]));
    assert_eq!(governed.say("EXISTS no:h"), int(0));
    let asked = governed.rules.asked();
    let fields: Vec<_> = asked.iter().filter(|asked| asked.key == "h").collect();
    // Each command showed what it wrote itself.
    let fields: Vec<_> = fields.iter().map(|asked| asked.fields.clone()).collect();
    let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    assert_eq!(fields, [pair("a", "1"), pair("b", "2"), pair("a", "3")]);
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}

#[test]
fn a_multi_says_which_command_broke_a_rule() {
    let mut governed = Governed::new();
    for line in ["MULTI", "SET a 1", "SET no:b 1", "INCR a", "PTTL a"] {
        governed.do_(line);
    }
    let Value::Array(replies) = governed.say("EXEC") else { panic!("no replies") };
    assert_eq!((&replies[0], &replies[2]), (&ok(), &int(2)));
    assert_eq!(error(replies[1].clone()), "ERR no:b breaks a rule: nothing is written here");
    let writes = governed.rules.counted().iter().filter(|counted| counted.is_write).count();
    assert_eq!(writes, 2);
}

#[test]
fn a_script_is_told_by_the_call_that_breaks_a_rule() {
    let mut governed = Governed::new();
    let script = "redis.call('set', 'hour:a', 'v')
                  local told = redis.pcall('set', 'no:a', 'v')
                  redis.call('incr', 'n')
                  redis.call('incr', 'n')
                  return {told.err, redis.call('pttl', 'hour:a')}";
    let reply = governed.client.call(&["EVAL", script, "0"]);
    let told = bulk("ERR no:a breaks a rule: nothing is written here");
    assert_eq!(reply, Value::Array(vec![told, int(3_600_000)]));
    assert_eq!(governed.say("GET n"), bulk("2"));
    // As in Redis, what was done before the error stays.
    let script = "redis.call('set', 'b', 'v') redis.call('set', 'no:b', 'v')";
    let told = error(governed.client.call(&["EVAL", script, "0"]));
    assert!(told.contains("no:b breaks a rule"), "{told}");
    assert_eq!(governed.say("EXISTS b no:b"), int(1));
    let library = "#!lua name=lib\nredis.register_function('put', function(keys)
                   redis.call('set', keys[1], 'v') return redis.call('pttl', keys[1]) end)";
    governed.client.call(&["FUNCTION", "LOAD", library]);
    assert_eq!(governed.say("FCALL put 1 hour:f"), int(3_600_000));
    assert!(error(governed.say("FCALL put 1 no:f")).contains("no:f breaks a rule"));
    for line in ["MULTI", "SET c 1", "FCALL put 1 hour:g", "INCR c", "EXEC"] {
        governed.do_(line);
    }
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}

#[test]
fn in_a_pipeline_what_breaks_a_rule_fails_alone_and_the_rest_is_done_together() {
    let mut governed = Governed::new();
    governed.do_("SET list v");
    governed.rules.asked();
    let commands = [
        "SET a 1",
        "INCR a",
        "SET no:a 1",
        "INCR a",
        "HSET h f 1",
        "HSET h g 2",
        "HDEL h f",
        "SET hour:a 1",
        "PTTL hour:a",
        "INCR list",
        "RPUSH three:l 1 2 3 4",
        "LLEN three:l",
    ];
    let mut pipeline = Pipeline::new();
    for command in commands {
        assert!(pipeline.push(command.split(' ').map(str::as_bytes)), "{command}");
    }
    let (done, replies) = governed.client.together(&pipeline);
    assert_eq!(done, commands.len());
    assert_eq!(replies[1], int(2));
    assert_eq!(error(replies[2].clone()), "ERR no:a breaks a rule: nothing is written here");
    assert_eq!(replies[3], int(3));
    assert_eq!(replies[8], int(3_600_000));
    error(replies[9].clone());
    assert_eq!(replies[11], int(3));
    let fields: Vec<_> = governed.rules.asked().into_iter().filter(|a| a.key == "h").collect();
    let shown: Vec<_> =
        fields.iter().map(|a| (a.fields.len(), a.removed.len(), a.members_after)).collect();
    assert_eq!(shown, [(1, 0, Some(1)), (1, 0, Some(2)), (0, 1, Some(1))]);
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}

#[test]
fn who_waits_for_a_key_is_governed_when_it_gets_it() {
    let mut governed = Governed::new();
    let redis = governed.client.redis.clone();
    let waits = |line: &'static str| {
        let mut session = redis.session();
        let thread = std::thread::spawn(move || {
            session.call(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
        });
        while redis.blocked_clients() == 0 {
            std::thread::yield_now();
        }
        thread
    };
    let waiter = waits("BLMOVE from hour:to LEFT RIGHT 0");
    governed.do_("RPUSH from a");
    assert_eq!(waiter.join().unwrap(), bulk("a"));
    assert_eq!(governed.say("PTTL hour:to"), int(3_600_000));
    let waiter = waits("BLMOVE from no:to LEFT RIGHT 0");
    governed.do_("RPUSH from b");
    assert!(error(waiter.join().unwrap()).contains("no:to breaks a rule"));
    assert_eq!(governed.say("LRANGE from 0 -1"), bulks(&["b"]));
    let waiter = waits("BLPOP other 0");
    governed.do_("RPUSH other c");
    assert_eq!(waiter.join().unwrap(), bulks(&["other", "c"]));
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}

#[test]
fn a_policy_that_comes_later_governs_from_then_on() {
    let (mut client, database, _) = crate::support::Client::with_clock();
    assert_eq!(client.say("SET no:a 1"), ok());
    let rules = std::sync::Arc::new(crate::governed::policy::Rules::default());
    database.govern(std::sync::Arc::clone(&rules) as _).unwrap();
    error(client.say("SET no:a 2"));
    assert_eq!(client.say("GET no:a"), bulk("1"));
    assert_eq!(client.say("DEL no:a"), int(1));
    assert_eq!(rules.released(), [(0, "no:a".to_owned())]);
}
