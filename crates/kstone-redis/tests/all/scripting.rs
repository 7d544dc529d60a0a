//! Scripts: what they see, what they may do, and what becomes of what they did.

use std::thread;

use crate::support::{Client, bulk, bulks, error, int, ok};
use kstone_ports::keys::Value;

fn eval(client: &mut Client, script: &str) -> Value {
    client.call(&["EVAL", script, "0"])
}

/// The error of a script, up to where the script is named.
#[track_caller]
fn raised(client: &mut Client, script: &str) -> String {
    let message = error(eval(client, script));
    message.split(" script: ").next().unwrap_or_default().to_owned()
}

#[test]
fn what_a_script_returns_becomes_a_reply() {
    let mut client = Client::new();
    for (script, reply) in [
        ("return 'text'", bulk("text")),
        ("return 3.99", int(3)),
        ("return -3.99", int(-3)),
        ("return true", int(1)),
        ("return false", Value::Null),
        ("return nil", Value::Null),
        ("return {ok='fine'}", Value::Simple("fine".into())),
        ("return {err='MY error'}", Value::Error(b"MY error".to_vec())),
        ("return {1, {2, 'a'}, nil, 4}", {
            Value::Array(vec![int(1), Value::Array(vec![int(2), bulk("a")])])
        }),
        ("return {double=1.5}", Value::Double(1.5)),
        ("return {big_number='12345678901234567890'}", {
            Value::BigNumber("12345678901234567890".into())
        }),
        ("return {map={a=1}}", Value::Map(vec![(bulk("a"), int(1))])),
        ("return {set={a=true}}", Value::Set(vec![bulk("a")])),
        ("return {verbatim_string={format='txt', string='x'}}", {
            Value::Verbatim("txt".into(), b"x".to_vec())
        }),
        ("return _G", Value::Array(vec![])),
        ("return setmetatable({}, {__index = function() error('never') end})", {
            Value::Array(vec![])
        }),
    ] {
        assert_eq!(eval(&mut client, script), reply, "{script}");
    }
}

#[test]
fn a_table_in_itself_is_replied_to_some_depth() {
    let mut client = Client::new();
    let mut reply = eval(&mut client, "local a = {}; a[1] = a; return a");
    let mut depth = 0;
    while let Value::Array(items) = &mut reply {
        assert_eq!(items.len(), 1);
        reply = items.remove(0);
        depth += 1;
    }
    assert!(depth > 100);
    assert_eq!(error(reply), "ERR reached lua stack limit");
}

#[test]
fn a_script_gets_its_keys_and_arguments_and_the_replies_of_commands() {
    let mut client = Client::new();
    let script = "return {KEYS[1], KEYS[2], ARGV[1], #ARGV}";
    let reply = client.call(&["EVAL", script, "2", "a", "b", "c", "d"]);
    assert_eq!(reply, Value::Array(vec![bulk("a"), bulk("b"), bulk("c"), int(2)]));
    assert_eq!(client.say("SET n 5"), ok());
    for (script, reply) in [
        ("return redis.call('incr', 'n')", int(6)),
        ("return redis.call('get', 'n')", bulk("6")),
        ("return redis.call('get', 'none') == false and 'yes'", bulk("yes")),
        ("return redis.call('set', 'n', 7).ok", bulk("OK")),
        ("return redis.call('set', 'n', 9007199254740991) and redis.call('get', 'n')", {
            bulk("9007199254740991")
        }),
        ("return redis.call('mget', 'n', 'none')[2] == false and 'yes'", bulk("yes")),
        ("return redis.pcall('incr', 'n', 'x').err", {
            bulk("ERR Wrong number of args calling Redis command from script")
        }),
        ("return redis.pcall('lpush', 'n', 'x').err", {
            bulk("WRONGTYPE Operation against a key holding the wrong kind of value")
        }),
    ] {
        assert_eq!(eval(&mut client, script), reply, "{script}");
    }
}

#[test]
fn replies_come_in_the_protocol_that_the_script_chose() {
    let mut client = Client::new();
    client.say("HSET h a 1");
    let script = "local h = redis.call('hgetall', 'h') return h[1] .. h[2]";
    assert_eq!(eval(&mut client, script), bulk("a1"));
    let script = "redis.setresp(3) return redis.call('hgetall', 'h').map.a";
    assert_eq!(eval(&mut client, script), bulk("1"));
    let script = "redis.setresp(3) return redis.call('get', 'none') == nil and 'yes'";
    assert_eq!(eval(&mut client, script), bulk("yes"));
    // The next script begins as ever.
    let script = "return redis.call('get', 'none') == false and 'yes'";
    assert_eq!(eval(&mut client, script), bulk("yes"));
}

#[test]
fn an_error_says_what_went_wrong_and_where() {
    let mut client = Client::new();
    let message = error(eval(&mut client, "local x = nil\nreturn x.y"));
    let Value::Bulk(digest) = client.call(&["SCRIPT", "LOAD", "local x = nil\nreturn x.y"]) else {
        panic!("no digest");
    };
    assert_eq!(
        message,
        format!(
            "ERR user_script:2: attempt to index local 'x' (a nil value) script: {}, on \
             @user_script:2.",
            String::from_utf8(digest).unwrap()
        )
    );
    for (script, message) in [
        ("error('oh')", "ERR user_script:1: oh"),
        ("error({err='MY oh'})", "MY oh"),
        ("return redis.call('nonsense')", "ERR Unknown Redis command called from script"),
        ("return redis.call()", {
            "ERR Please specify at least one argument for this redis lib call"
        }),
        ("return redis.call('get', {})", {
            "ERR Lua redis lib command arguments must be strings or integers"
        }),
        ("return redis.call('eval', 'return 1', 0)", {
            "ERR This Redis command is not allowed from script"
        }),
        ("return redis.call('select', 99)", "ERR DB index is out of range"),
        ("redis.sha1hex()", "ERR wrong number of arguments"),
        ("pairs(nil)", "ERR user_script:1: bad argument #1 to 'pairs' (table expected, got nil)"),
    ] {
        assert_eq!(raised(&mut client, script), message, "{script}");
    }
    assert_eq!(
        error(eval(&mut client, "for")),
        "ERR Error compiling script (new function): user_script:1: '<name>' expected near '<eof>'"
    );
}

#[test]
fn an_error_can_be_caught_and_is_then_a_text() {
    let mut client = Client::new();
    for (script, reply) in [
        ("local ok, e = pcall(redis.call, 'nonsense') return e", {
            "ERR Unknown Redis command called from script"
        }),
        ("local ok, e = pcall(error, 'text') return e", "text"),
        (
            "local ok, e = xpcall(function() redis.call('nonsense') end, function(e) return e.err end) \
          return e",
            "ERR Unknown Redis command called from script",
        ),
        (
            "local co = coroutine.create(function() redis.call('nonsense') end) \
          local ok, e = coroutine.resume(co) return e.err",
            { "ERR Unknown Redis command called from script" },
        ),
    ] {
        assert_eq!(eval(&mut client, script), bulk(reply), "{script}");
    }
}

#[test]
fn what_a_script_wrote_before_it_failed_stays() {
    let mut client = Client::new();
    assert!(raised(&mut client, "redis.call('set', 'a', 1) error('oh')").contains("oh"));
    assert_eq!(client.say("GET a"), bulk("1"));
}

#[test]
fn a_script_in_a_transaction_is_part_of_it() {
    let mut client = Client::new();
    client.say("MULTI");
    client.call(&["EVAL", "redis.call('select', 3) return redis.call('set', 'a', 1)", "0"]);
    client.say("SET b 2");
    assert_eq!(client.say("EXEC"), Value::Array(vec![ok(), ok()]));
    assert_eq!(client.say("EXISTS a b"), int(1));
    client.say("SELECT 3");
    assert_eq!(client.say("GET a"), bulk("1"));
}

#[test]
fn scripts_are_found_by_their_digest_until_they_are_flushed() {
    let mut client = Client::new();
    let digest = match client.call(&["SCRIPT", "LOAD", "return 'loaded'"]) {
        Value::Bulk(digest) => String::from_utf8(digest).unwrap(),
        other => panic!("no digest: {other:?}"),
    };
    assert_eq!(digest, "b534286061d4b9e4026607613b95c06c06015ae8");
    assert_eq!(client.call(&["EVALSHA", &digest.to_uppercase(), "0"]), bulk("loaded"));
    let none = "0".repeat(40);
    let reply = client.call(&["SCRIPT", "EXISTS", &digest, &none]);
    assert_eq!(reply, Value::Array(vec![int(1), int(0)]));
    assert_eq!(client.say("SCRIPT FLUSH"), ok());
    assert!(error(client.call(&["EVALSHA", &digest, "0"])).starts_with("NOSCRIPT"));
}

#[test]
fn thousands_of_scripts_can_be_loaded() {
    let mut client = Client::new();
    for number in 0..9000 {
        let script = format!("return {number}");
        assert!(matches!(client.call(&["SCRIPT", "LOAD", &script]), Value::Bulk(_)), "{number}");
    }
    assert_eq!(eval(&mut client, "return 8999"), int(8999));
}

#[test]
fn a_script_that_says_that_it_does_not_write_may_not() {
    let mut client = Client::new();
    let refused = "ERR Write commands are not allowed from read-only scripts.";
    let script = "#!lua flags=no-writes\nreturn redis.call('set', 'a', 1)";
    assert_eq!(raised(&mut client, script), refused);
    let reply = client.call(&["EVAL_RO", "return redis.call('del', 'a')", "0"]);
    assert!(error(reply).starts_with(refused));
    let reply = error(client.call(&["EVAL_RO", "#!lua\nreturn 1", "0"]));
    assert_eq!(reply, "ERR Can not execute a script with write flag using *_ro command.");
    assert_eq!(client.call(&["EVAL_RO", "return redis.call('get', 'a')", "0"]), Value::Null);
}

#[test]
fn nothing_that_scripts_share_can_be_changed_by_one() {
    let mut client = Client::new();
    let refused = "Attempt to modify a readonly table";
    for script in [
        "a = 1",
        "redis = nil",
        "_G.a = 1",
        "_G = {}",
        "redis.call = nil",
        "string.rep = nil",
        "cjson.encode = nil",
        "setmetatable(_G, {})",
        "setmetatable(redis, {})",
        "getmetatable(_G).__index = {}",
        "getmetatable('').__index = {}",
        "getmetatable(redis).__newindex = nil",
        "rawset(_G, 'a', 1)",
        "rawset(redis, 'call', 1)",
        "rawset(getmetatable(_G), '__index', 1)",
        "table.insert(redis, 1)",
        "table.insert(_G, 1, 1)",
        "setfenv(0, {})",
        "getfenv(pcall).a = 1",
        "rawset(getfenv(pcall), 'a', 1)",
    ] {
        let message = raised(&mut client, script);
        assert!(message.contains(refused), "{script}: {message}");
    }
    let script = "local _, all = pairs(redis) all.call = 'mine' return type(redis.call)";
    assert_eq!(eval(&mut client, script), bulk("function"));
    let script = "for name in pairs(_G) do if name == 'cjson' then return 'found' end end";
    assert_eq!(eval(&mut client, script), bulk("found"));
    for script in ["return print", "return dofile", "return debug", "return os", "return require"] {
        let message = raised(&mut client, script);
        assert!(message.contains("nonexistent global variable"), "{script}: {message}");
    }
    let script = "return loadstring(string.dump(function() return 1 end))()";
    assert!(raised(&mut client, script).contains("attempt to call a nil value"));
    let script = "return load(coroutine.wrap(function() \
                  coroutine.yield(string.dump(function() end)) end))()";
    assert!(raised(&mut client, script).contains("attempt to call a nil value"));
    assert_eq!(eval(&mut client, "return loadstring('return 1 + 1')()"), int(2));
    assert_eq!(eval(&mut client, "return ('x'):rep(3)"), bulk("xxx"));
    // What a script puts into its own environment is gone with it.
    assert_eq!(eval(&mut client, "local e = {}; setfenv(1, e); a = 1; return e.a"), int(1));
    assert!(raised(&mut client, "return a").contains("nonexistent global variable 'a'"));
}

#[test]
fn whatever_a_script_does_the_server_goes_on() {
    let mut client = Client::new();
    for script in [
        "local function f() return pcall(f) end f()",
        "local function f(s) return s:gsub('.', f) end f('x')",
        "local function f() return coroutine.wrap(f)() end f()",
        "local function f(n) return 1 + f(n) end f(1)",
        "return pcall(function() return unpack({}, 1, 7000) end)",
        "local t = {} for i = 1, 7999 do t[i] = 'x' end redis.pcall(unpack(t))",
        "error(setmetatable({}, {__index = function() error('x') end}))",
        "error(setmetatable({}, {__tostring = function() error('x') end}))",
        "error(nil)",
        "error(coroutine.create(function() end))",
        "cjson.decode_max_depth(2147483647) cjson.decode(('['):rep(100000))",
        "cjson.encode_max_depth(2147483647) local a = {} a.a = a cjson.encode(a)",
        "cmsgpack.unpack(('\\145'):rep(100000))",
        "table.sort({3, 2, 1, 5, 4}, function() return true end)",
        "string.rep('x', -1):byte(1, -1)",
    ] {
        eval(&mut client, script);
        assert_eq!(eval(&mut client, "return 'alive'"), bulk("alive"), "{script}");
    }
}

#[test]
fn json_goes_both_ways() {
    let mut client = Client::new();
    for (script, reply) in [
        ("return cjson.encode({1, 'a', true, cjson.null, {x = 0.5}})", {
            r#"[1,"a",true,null,{"x":0.5}]"#
        }),
        (r#"return cjson.encode('"\\/' .. '\n\1\127é')"#, r#""\"\\\/\n\u0001\u007fé""#),
        ("return cjson.encode({})", "{}"),
        ("return cjson.encode({[1]=1, [3]=3})", "[1,null,3]"),
        ("return cjson.encode(10^15) .. cjson.encode(123456789012345)", "1e+151.2345678901234e+14"),
        (r#"return cjson.decode('{"a":[1,{"b":"\\u00e9\\ud83d\\ude00"}]}').a[2].b"#, "é😀"),
        ("return table.concat(cjson.decode('[0.0, -5e3, -1, 0.3e-3, 1023.2, 0e10]'), ' ')", {
            "0 -5000 -1 0.0003 1023.2 0"
        }),
        ("return cjson.encode(cjson.decode('[[],{},[{}]]'))", "[{},{},[{}]]"),
    ] {
        assert_eq!(eval(&mut client, script), bulk(reply), "{script}");
    }
    for (script, message) in [
        ("cjson.decode('[1,')", "Expected value but found T_END at character 4"),
        ("cjson.decode('{\"a\" 1}')", "Expected colon but found T_NUMBER at character 6"),
        ("cjson.decode('nope')", "Expected value but found invalid token at character 1"),
        ("cjson.decode('\"abc')", {
            "Expected value but found unexpected end of string at character 5"
        }),
        ("cjson.decode(('['):rep(1001))", "Found too many nested data structures (1001)"),
        ("cjson.encode({[1]=1, [100]=1})", "Cannot serialise table: excessively sparse array"),
        ("cjson.encode(0/0)", "Cannot serialise number: must not be NaN or Inf"),
        ("cjson.encode(redis.call)", "Cannot serialise function: type not supported"),
        ("local a = {}; a.a = a; cjson.encode(a)", "Cannot serialise, excessive nesting (1001)"),
    ] {
        let raised = raised(&mut client, script);
        assert!(raised.contains(message), "{script}: {raised}");
    }
    let script = "local t = {} for i = 1, 20000 do t['k' .. i] = i end \
                  local n = 0 for _ in pairs(cjson.decode(cjson.encode(t))) do n = n + 1 end \
                  return n";
    assert_eq!(eval(&mut client, script), int(20000));
}

#[test]
fn message_pack_goes_both_ways() {
    let mut client = Client::new();
    let hex =
        "local h = '' for i = 1, #p do h = h .. string.format('%02x', p:byte(i)) end return h";
    for (value, packed) in [
        ("0.1", "cb3fb999999999999a"),
        ("0.5", "ca3f000000"),
        ("-1099511627776", "d3ffffff0000000000"),
        ("127", "7f"),
        ("-33", "d0df"),
        ("65536", "ce00010000"),
        ("'abc'", "a3616263"),
        ("{1, 2}", "920102"),
        ("{a = true}", "81a161c3"),
        ("nil", "c0"),
    ] {
        let script = format!("local p = cmsgpack.pack({value}) {hex}");
        assert_eq!(eval(&mut client, &script), bulk(packed), "{value}");
    }
    let script = "local t = {} for i = 1, 20000 do t['k' .. i] = i end \
                  return cmsgpack.unpack(cmsgpack.pack(t)).k20000";
    assert_eq!(eval(&mut client, script), int(20000));
    let script = "return {cmsgpack.unpack_limit(cmsgpack.pack('a', 'b', 'c'), 2)}";
    assert_eq!(eval(&mut client, script), Value::Array(vec![int(4), bulk("a"), bulk("b")]));
    for bad in ["\\193", "\\217", "\\220\\255\\255", "\\223\\255\\255\\255\\255"] {
        let raised = raised(&mut client, &format!("cmsgpack.unpack('{bad}')"));
        assert!(raised.contains("in input."), "{bad}: {raised}");
    }
}

#[test]
fn bits_and_structures_are_as_scripts_expect_them() {
    let mut client = Client::new();
    for (script, reply) in [
        ("return {bit.band(0xff, 0x0f), bit.bor(1, 2, 4), bit.bxor(1, 3), bit.bnot(0)}", {
            Value::Array(vec![int(15), int(7), int(2), int(-1)])
        }),
        ("return {bit.lshift(1, 31), bit.rshift(-1, 28), bit.arshift(-8, 2), bit.rol(1, 33)}", {
            Value::Array(vec![int(-2147483648), int(15), int(-2), int(2)])
        }),
        ("return bit.tohex(255) .. bit.tohex(255, -4)", bulk("000000ff00FF")),
        ("return {struct.unpack('>I2shd', struct.pack('>I2shd', 513, 'abc', -2, 0.5))}", {
            Value::Array(vec![int(513), bulk("abc"), int(-2), int(0), int(17)])
        }),
        ("return struct.size('<!4 bi')", int(8)),
        ("return {struct.unpack('Bc0', struct.pack('Bc0', 3, 'xyz'))}", {
            Value::Array(vec![bulk("xyz"), int(5)])
        }),
    ] {
        assert_eq!(eval(&mut client, script), reply, "{script}");
    }
    for script in ["struct.pack('i99', 1)", "struct.unpack('I4', 'abc')", "struct.pack('c4', 'x')"]
    {
        assert!(error(eval(&mut client, script)).starts_with("ERR user_script:1: "), "{script}");
    }
}

#[test]
fn a_seed_gives_the_same_numbers_again() {
    let mut client = Client::new();
    let script = "math.randomseed(ARGV[1]) return tostring(math.random()) .. math.random(1000)";
    let one = client.call(&["EVAL", script, "0", "7"]);
    assert_eq!(client.call(&["EVAL", script, "0", "7"]), one);
    assert_ne!(client.call(&["EVAL", script, "0", "8"]), one);
}

/// Starts something on another client that does not end by itself, and waits until the server is
/// busy with it.
fn busy(client: &mut Client, command: &'static [&'static str]) -> thread::JoinHandle<Value> {
    assert_eq!(client.say("CONFIG SET busy-reply-threshold 1"), ok());
    let mut other = client.another();
    let running = thread::spawn(move || other.call(command));
    while !matches!(client.say("PING"), Value::Error(_)) {
        thread::yield_now();
    }
    running
}

#[test]
fn a_script_that_takes_too_long_makes_others_wait_no_longer_and_can_be_killed() {
    let mut client = Client::new();
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "coroutine.wrap(function() while true do end end)()",
        "while true do xpcall(function() while true do end end, function(e) return e end) end",
        "while true do redis.call('get', 'a') end",
    ] {
        let command: &'static [&'static str] = vec!["EVAL", script, "0"].leak();
        let running = busy(&mut client, command);
        let refused = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or \
                       SHUTDOWN NOSAVE.";
        assert_eq!(error(client.say("SET a 1")), refused);
        assert_eq!(client.say("MULTI"), ok());
        assert_eq!(error(client.say("GET a")), refused);
        assert!(error(client.say("EXEC")).starts_with("EXECABORT"));
        assert_eq!(error(client.say("FUNCTION KILL")), refused);
        assert_eq!(client.say("SCRIPT KILL"), ok());
        let reply = error(running.join().unwrap());
        assert!(reply.starts_with("ERR Script killed by user with SCRIPT KILL..."), "{reply}");
        assert_eq!(client.say("EXISTS a"), int(0), "{script}");
    }
    assert!(error(client.say("SCRIPT KILL")).starts_with("NOTBUSY"));
}

#[test]
fn a_script_that_has_written_cannot_be_killed() {
    let mut client = Client::new();
    let script = "redis.call('set', 'a', 1) for i = 1, 50000000 do end return 'done'";
    let running = busy(&mut client, vec!["EVAL", script, "0"].leak());
    // It may have come to its end by itself, on a machine that is slow to get here.
    let refused = error(client.say("SCRIPT KILL"));
    assert!(refused.starts_with("UNKILLABLE") || refused.starts_with("NOTBUSY"), "{refused}");
    assert_eq!(running.join().unwrap(), bulk("done"));
    assert_eq!(client.say("GET a"), bulk("1"));
}

#[test]
fn a_script_serves_those_who_wait_after_its_end() {
    let mut client = Client::new();
    let mut other = client.another();
    let waiting = thread::spawn(move || other.say("BLPOP list 0"));
    while !info(&mut client).contains("blocked_clients:1") {
        thread::yield_now();
    }
    let script = "redis.call('rpush', 'list', 'a') redis.call('lpush', 'list', 'b') return 1";
    assert_eq!(eval(&mut client, script), int(1));
    assert_eq!(waiting.join().unwrap(), bulks(&["list", "b"]));
}

fn info(client: &mut Client) -> String {
    match client.say("INFO") {
        Value::Bulk(text) | Value::Verbatim(_, text) => String::from_utf8(text).unwrap(),
        other => panic!("no text: {other:?}"),
    }
}
