//! Functions: libraries that are loaded once and stay.

use std::thread;

use crate::support::{Client, bulk, error, int, ok};
use kstone::Database;
use kstone_redis::{Redis, Value};

const GREET: &str = "#!lua name=greet\n\
    local function text(name) return 'hello ' .. name end\n\
    redis.register_function('hello', function(keys, args) return text(args[1]) end)\n\
    redis.register_function{function_name = 'count', description = 'counts', \
    callback = function(keys) return redis.call('incr', keys[1]) end}\n\
    redis.register_function{function_name = 'look', flags = {'no-writes'}, \
    callback = function(keys) return redis.call('get', keys[1]) end}";

fn load(client: &mut Client, text: &str) -> Value {
    client.call(&["FUNCTION", "LOAD", text])
}

fn library(name: &str, function: &str, reply: &str) -> String {
    format!(
        "#!lua name={name}\nredis.register_function('{function}', function() return '{reply}' end)"
    )
}

#[test]
fn a_library_is_loaded_once_and_its_functions_are_called_by_name() {
    let mut client = Client::new();
    assert_eq!(load(&mut client, GREET), bulk("greet"));
    assert_eq!(client.say("FCALL hello 0 you"), bulk("hello you"));
    assert_eq!(client.say("FCALL HELLO 0 you"), bulk("hello you"));
    assert_eq!(client.say("FCALL count 1 n"), int(1));
    assert_eq!(client.say("FCALL_RO look 1 n"), bulk("1"));
    assert_eq!(
        error(client.say("FCALL_RO count 1 n")),
        "ERR Can not execute a script with write flag using *_ro command."
    );
    assert_eq!(error(load(&mut client, GREET)), "ERR Library 'greet' already exists");
    let other = library("other", "Hello", "x");
    assert_eq!(error(load(&mut client, &other)), "ERR Function Hello already exists");
    assert_eq!(client.call(&["FUNCTION", "LOAD", "REPLACE", GREET]), bulk("greet"));
    assert_eq!(client.say("FUNCTION DELETE greet"), ok());
    assert_eq!(error(client.say("FCALL hello 0")), "ERR Function not found");
    assert_eq!(error(client.say("FUNCTION DELETE greet")), "ERR Library not found");
}

#[test]
fn what_is_wrong_with_a_library_is_said_and_leaves_the_old_one() {
    let mut client = Client::new();
    assert_eq!(load(&mut client, &library("lib", "f", "old")), bulk("lib"));
    let missing = "attempted to access nonexistent global variable";
    for (code, message) in [
        ("", "No functions registered"),
        ("local x =", "Error compiling function: user_function:2: unexpected symbol"),
        ("redis.register_function()", "wrong number of arguments to redis.register_function"),
        ("redis.register_function('f')", "only applicable to Lua table"),
        ("redis.register_function('f', 1)", "must be a function"),
        ("redis.register_function('a b', function() end)", "can only contain letters"),
        ("redis.register_function{function_name='f'}", "must get a callback argument"),
        ("redis.register_function{callback=function() end}", "must get a function name"),
        ("redis.register_function{what=1}", "unknown argument given"),
        ("redis.register_function{flags='x'}", "must be a table"),
        ("redis.register_function{flags={'x'}}", "unknown flag given"),
        ("for i = 1, 2 do redis.register_function('f', function() end) end", "already exists in"),
        ("redis.call('ping')", missing),
        ("math.random()", missing),
        ("x = 1", "Attempt to modify a readonly table"),
        ("redis.x = 1", "Attempt to modify a readonly table"),
        ("while true do end", "FUNCTION LOAD timeout"),
    ] {
        let text = format!("#!lua name=lib\n{code}");
        let message_given = error(client.call(&["FUNCTION", "LOAD", "REPLACE", &text]));
        assert!(message_given.contains(message), "{code}: {message_given}");
        assert_eq!(client.say("FCALL f 0"), bulk("old"), "{code}");
    }
    for (text, message) in [
        ("redis.call()", "ERR Missing library metadata"),
        ("#!lua name=x", "ERR Invalid library metadata"),
        ("#!lua\n", "ERR Library name was not given"),
        ("#!perl name=x\n", "ERR Engine 'perl' not found"),
        ("#!lua name=x name=y\n", "name argument was given multiple times"),
    ] {
        let given = error(load(&mut client, text));
        assert!(given.contains(message), "{text}: {given}");
    }
}

#[test]
fn a_function_cannot_reach_what_only_loading_may() {
    let mut client = Client::new();
    let text = "#!lua name=lib\n\
        local kept = redis\n\
        redis.register_function('inner', function() redis.register_function('x', kept) end)\n\
        redis.register_function('kept', function() kept.register_function('x', function() end) end)\n\
        redis.register_function('change', function() kept.x = 1 end)";
    assert_eq!(load(&mut client, text), bulk("lib"));
    for (function, message) in [
        ("inner", "attempt to call field 'register_function' (a nil value)"),
        ("kept", "can only be called on FUNCTION LOAD command"),
        ("change", "Attempt to modify a readonly table"),
    ] {
        let given = error(client.call(&["FCALL", function, "0"]));
        assert!(given.contains(message), "{function}: {given}");
        assert!(given.contains(&format!("script: {function}, on @user_function:")), "{given}");
    }
}

#[test]
fn libraries_are_listed_with_their_functions() {
    let mut client = Client::new();
    load(&mut client, &library("one", "f", "1"));
    load(&mut client, GREET);
    let Value::Array(all) = client.say("FUNCTION LIST") else { panic!("no list") };
    assert_eq!(all.len(), 2);
    let one = Value::Array(vec![Value::Map(vec![
        (bulk("library_name"), bulk("one")),
        (bulk("engine"), bulk("LUA")),
        (
            bulk("functions"),
            Value::Array(vec![Value::Map(vec![
                (bulk("name"), bulk("f")),
                (bulk("description"), Value::Null),
                (bulk("flags"), Value::Set(vec![])),
            ])]),
        ),
        (bulk("library_code"), bulk(library("one", "f", "1"))),
    ])]);
    assert_eq!(client.say("FUNCTION LIST LIBRARYNAME on* WITHCODE"), one);
    assert_eq!(error(client.say("FUNCTION LIST x")), "ERR Unknown argument x");
    let Value::Map(stats) = client.say("FUNCTION STATS") else { panic!("no stats") };
    assert_eq!(stats[0], (bulk("running_script"), Value::Null));
    let counts = vec![(bulk("libraries_count"), int(2)), (bulk("functions_count"), int(4))];
    let engines = Value::Map(vec![(bulk("LUA"), Value::Map(counts))]);
    assert_eq!(stats[1], (bulk("engines"), engines));
}

#[test]
fn libraries_are_dumped_and_restored() {
    let mut client = Client::new();
    load(&mut client, &library("one", "f", "1"));
    load(&mut client, &library("two", "g", "2"));
    let Value::Bulk(dump) = client.say("FUNCTION DUMP") else { panic!("no dump") };
    let restore = |client: &mut Client, policy: &[&[u8]]| {
        client.call(&[&[&b"FUNCTION"[..], b"RESTORE", &dump], policy].concat())
    };
    assert_eq!(error(restore(&mut client, &[])), "ERR Library one already exists");
    assert_eq!(client.say("FUNCTION FLUSH"), ok());
    assert_eq!(restore(&mut client, &[]), ok());
    assert_eq!(client.say("FCALL g 0"), bulk("2"));
    assert_eq!(client.say("FUNCTION FLUSH"), ok());
    load(&mut client, &library("other", "F", "x"));
    load(&mut client, &library("one", "h", "x"));
    let taken = "ERR Function f already exists";
    assert_eq!(error(restore(&mut client, &[b"REPLACE"])), taken);
    assert_eq!(client.say("FCALL h 0"), bulk("x"));
    assert_eq!(restore(&mut client, &[b"FLUSH"]), ok());
    assert_eq!(client.say("FCALL f 0"), bulk("1"));
    assert_eq!(error(client.say("FCALL h 0")), "ERR Function not found");
    let damaged = client.say("FUNCTION RESTORE nonsense");
    assert_eq!(error(damaged), "ERR DUMP payload version or checksum are wrong");
}

#[test]
fn functions_are_there_again_after_a_restart_and_flushing_keys_leaves_them() {
    let database = Database::memory().unwrap();
    let client = |database: &Database| {
        let redis = Redis::open(database).unwrap();
        Client { session: redis.session(), redis }
    };
    let mut first = client(&database);
    load(&mut first, GREET);
    load(&mut first, &library("gone", "g", "x"));
    assert_eq!(first.say("FLUSHALL"), ok());
    assert_eq!(first.say("FUNCTION DELETE gone"), ok());
    drop(first);
    let mut second = client(&database);
    assert_eq!(second.say("FCALL hello 0 again"), bulk("hello again"));
    assert_eq!(error(second.say("FCALL g 0")), "ERR Function not found");
    assert_eq!(second.say("FUNCTION FLUSH"), ok());
    drop(second);
    assert_eq!(error(client(&database).say("FCALL hello 0")), "ERR Function not found");
}

#[test]
fn a_function_that_takes_too_long_is_shown_and_can_be_killed() {
    let mut client = Client::new();
    let text = "#!lua name=lib\nredis.register_function('spin', function() while true do end end)";
    load(&mut client, text);
    assert_eq!(client.say("CONFIG SET busy-reply-threshold 1"), ok());
    let mut other = client.another();
    let running = thread::spawn(move || other.say("FCALL spin 0 a"));
    while !matches!(client.say("PING"), Value::Error(_)) {
        thread::yield_now();
    }
    let refused = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or \
                   SHUTDOWN NOSAVE.";
    assert_eq!(error(client.say("GET a")), refused);
    assert_eq!(error(client.say("SCRIPT KILL")), refused);
    let Value::Map(stats) = client.say("FUNCTION STATS") else { panic!("no stats") };
    let Value::Map(script) = &stats[0].1 else { panic!("nothing runs: {stats:?}") };
    assert_eq!(script[0], (bulk("name"), bulk("spin")));
    assert_eq!(script[1].1, crate::support::bulks(&["FCALL", "spin", "0", "a"]));
    assert_eq!(client.say("FUNCTION KILL"), ok());
    assert!(error(running.join().unwrap()).starts_with("ERR Script killed by user"));
    assert_eq!(client.say("EXISTS a"), int(0));
}
