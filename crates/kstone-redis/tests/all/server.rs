//! What clients may ask the server about itself and about each other.

use crate::support::{Client, bulk, bulks, error, int, ok};
use kstone_ports::keys::Value;

fn text(value: Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Verbatim(_, bytes) => String::from_utf8(bytes).unwrap(),
        Value::Simple(text) => text,
        other => panic!("no text: {other:?}"),
    }
}

fn pairs(value: Value) -> Vec<(String, Value)> {
    let Value::Map(pairs) = value else { panic!("no map: {value:?}") };
    pairs.into_iter().map(|(name, value)| (text(name), value)).collect()
}

#[test]
fn parameters_are_changed_all_together_or_not_at_all() {
    let mut client = Client::new();
    assert_eq!(client.say("CONFIG SET maxmemory 10mb slowlog-max-len 5"), ok());
    let expected =
        vec![("maxmemory".to_owned(), bulk("10485760")), ("slowlog-max-len".to_owned(), bulk("5"))];
    assert_eq!(pairs(client.say("CONFIG GET maxmemory slowlog-max-len")), expected);
    let refused = error(client.say("CONFIG SET maxmemory 1 appendonly no"));
    assert!(refused.contains("'appendonly'"), "{refused}");
    assert_eq!(pairs(client.say("CONFIG GET maxmemory slowlog-max-len")), expected);
    assert!(error(client.say("CONFIG SET nonsense 1")).contains("Unknown option"));
    assert!(error(client.say("CONFIG SET daemonize yes")).contains("immutable"));
    assert!(error(client.say("CONFIG SET hz 1 hz 2")).contains("duplicate"));
}

#[test]
fn info_counts_commands_and_errors_by_name() {
    let mut client = Client::new();
    client.say("SET a 1");
    client.say("LPUSH a 1");
    client.say("SET a");
    let info = text(client.say("INFO commandstats errorstats"));
    let line = |start: &str| {
        info.lines().find(|line| line.starts_with(start)).map(str::to_owned).unwrap_or_default()
    };
    let set = line("cmdstat_set:");
    assert!(set.contains("calls=1,") && set.contains("rejected_calls=1,"), "{set}");
    assert!(line("cmdstat_lpush:").ends_with("failed_calls=1"), "{info}");
    assert_eq!(line("errorstat_WRONGTYPE:"), "errorstat_WRONGTYPE:count=1");
    assert_eq!(client.say("CONFIG RESETSTAT"), ok());
    assert!(!text(client.say("INFO errorstats")).contains("errorstat_"));
}

#[test]
fn clients_see_each_other_and_can_close_each_other() {
    let mut client = Client::new();
    let mut other = client.another();
    assert_eq!(other.say("CLIENT SETNAME other"), ok());
    let list = text(client.say("CLIENT LIST"));
    assert_eq!(list.lines().count(), 2);
    assert!(list.contains("name=other"), "{list}");
    assert!(list.contains("cmd=client|list"), "{list}");
    let Value::Integer(id) = other.say("CLIENT ID") else { panic!() };
    assert_eq!(client.say(&format!("CLIENT KILL ID {id}")), int(1));
    assert!(other.session.is_killed());
    assert_eq!(text(client.say("CLIENT LIST")).lines().count(), 1);
}

#[test]
fn a_client_that_wants_no_replies_gets_none_until_it_asks() {
    let mut client = Client::new();
    assert_eq!(client.say("CLIENT REPLY OFF"), Value::Null);
    assert_eq!(client.say("SET a 1"), Value::Null);
    assert_eq!(client.say("CLIENT REPLY ON"), ok());
    assert_eq!(client.say("CLIENT REPLY SKIP"), Value::Null);
    assert_eq!(client.say("GET a"), Value::Null);
    assert_eq!(client.say("GET a"), bulk("1"));
}

#[test]
fn users_may_do_what_their_rules_say_and_nothing_else() {
    let mut admin = Client::new();
    let rules = "ACL SETUSER bob on >secret +get +set +subscribe ~mine:* %R~shared:* &news";
    assert_eq!(admin.say(rules), ok());
    let mut bob = admin.another();
    assert!(error(bob.say("AUTH bob wrong")).starts_with("WRONGPASS"));
    assert_eq!(bob.say("AUTH bob secret"), ok());
    assert_eq!(bob.say("ACL WHOAMI"), Value::Error(NO_WHOAMI.into()));
    assert_eq!(bob.say("SET mine:1 x"), ok());
    assert_eq!(bob.say("GET shared:1"), Value::Null);
    assert!(error(bob.say("SET shared:1 x")).starts_with("NOPERM"));
    assert!(error(bob.say("DEL mine:1")).contains("'del'"));
    assert!(error(bob.say("SUBSCRIBE olds")).contains("channels"));
    // A change counts at once, also for who is connected already.
    assert_eq!(admin.say("ACL SETUSER bob +del"), ok());
    assert_eq!(bob.say("DEL mine:1"), int(1));
    let Value::Array(log) = admin.say("ACL LOG") else { panic!() };
    assert_eq!(log.len(), 5);
    assert_eq!(admin.say("ACL DELUSER bob"), int(1));
    assert!(bob.session.is_killed());
}

const NO_WHOAMI: &str = "NOPERM this user has no permissions to run the 'acl|whoami' command";

#[test]
fn a_password_is_asked_for_before_anything_else() {
    let mut client = Client::new();
    assert_eq!(client.say("CONFIG SET requirepass secret"), ok());
    let mut stranger = client.another();
    assert!(error(stranger.say("GET a")).starts_with("NOAUTH"));
    assert!(error(stranger.say("HELLO 3")).starts_with("NOAUTH"));
    assert_eq!(stranger.say("AUTH secret"), ok());
    assert_eq!(stranger.say("GET a"), Value::Null);
    // Nobody reads passwords in the logs.
    assert_eq!(stranger.say("CONFIG SET slowlog-log-slower-than 0"), ok());
    stranger.say("AUTH secret");
    let log = format!("{:?}", stranger.say("SLOWLOG GET"));
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn what_a_client_has_read_is_invalidated_when_another_changes_it() {
    let mut reader = Client::new();
    let mut writer = reader.another();
    reader.say("HELLO 3");
    assert_eq!(reader.say("CLIENT TRACKING ON"), ok());
    reader.say("GET a");
    assert_eq!(writer.say("SET a 1"), ok());
    let told = Value::Push(vec![bulk("invalidate"), bulks(&["a"])]);
    assert_eq!(reader.session.messages(), [told]);
    // Once is enough until it is read again.
    assert_eq!(writer.say("SET a 2"), ok());
    assert_eq!(reader.session.messages(), []);
    reader.say("GET a");
    assert_eq!(writer.say("FLUSHALL"), ok());
    let told = Value::Push(vec![bulk("invalidate"), Value::Null]);
    assert_eq!(reader.session.messages(), [told]);
}

#[test]
fn broadcasts_tell_of_prefixes_and_not_of_own_changes() {
    let mut client = Client::new();
    let mut other = client.another();
    client.say("HELLO 3");
    assert_eq!(client.say("CLIENT TRACKING ON BCAST PREFIX a: PREFIX b: NOLOOP"), ok());
    assert!(error(client.say("CLIENT TRACKING ON BCAST PREFIX a:b")).contains("overlaps"));
    client.say("SET a:1 x");
    other.say("SET c:1 x");
    assert_eq!(client.session.messages(), []);
    other.say("MSET a:1 x b:1 y c:1 z");
    let told = |key| Value::Push(vec![bulk("invalidate"), bulks(&[key])]);
    assert_eq!(client.session.messages(), [told("a:1"), told("b:1")]);
}

#[test]
fn the_keys_of_a_command_are_found() {
    let mut client = Client::new();
    assert_eq!(client.say("COMMAND GETKEYS MSET a 1 b 2"), bulks(&["a", "b"]));
    assert_eq!(client.say("COMMAND GETKEYS EVAL x 2 a b c"), bulks(&["a", "b"]));
    assert!(error(client.say("COMMAND GETKEYS PING")).contains("no key arguments"));
    assert_eq!(client.say("COMMAND INFO nonsense"), Value::Array(vec![Value::NullArray]));
    let Value::Integer(count) = client.say("COMMAND COUNT") else { panic!() };
    assert!(count > 200, "{count}");
}

#[test]
fn every_command_is_described_once() {
    let mut client = Client::new();
    let Value::Array(names) = client.say("COMMAND LIST") else { panic!() };
    let mut names: Vec<String> = names.into_iter().map(text).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
    assert_eq!(pairs(client.say("COMMAND DOCS GET")).len(), 1);
}

#[test]
fn what_a_command_is_for_and_takes_is_said() {
    let mut client = Client::new();
    let field = |docs: &Value, name: &str| {
        let found = pairs(docs.clone()).into_iter().find(|(key, _)| key == name);
        found.unwrap_or_else(|| panic!("no {name} in {docs:?}")).1
    };
    let docs = field(&client.say("COMMAND DOCS hGet nonsense"), "hget");
    assert_eq!(field(&docs, "summary"), bulk("Answers the value of one field of a hash"));
    assert_eq!(field(&docs, "since"), bulk("2.0.0"));
    assert_eq!(field(&docs, "group"), bulk("hash"));
    assert_eq!(field(&docs, "complexity"), bulk("O(1)"));
    let Value::Array(arguments) = field(&docs, "arguments") else { panic!("{docs:?}") };
    let names: Vec<Value> = arguments.iter().map(|argument| field(argument, "name")).collect();
    assert_eq!(names, [bulk("key"), bulk("field")]);
    assert_eq!(field(&arguments[0], "type"), bulk("key"));

    // redis-cli reads flags as states and everything else as texts.
    let docs = field(&client.say("COMMAND DOCS SORT_RO"), "sort_ro");
    let Value::Array(arguments) = field(&docs, "arguments") else { panic!("{docs:?}") };
    let token = ("token".to_owned(), bulk("GET"));
    let get = arguments.iter().find(|one| pairs((*one).clone()).contains(&token)).unwrap();
    let flags = ["optional", "multiple", "multiple_token"].map(|flag| Value::Simple(flag.into()));
    assert_eq!(field(get, "flags"), Value::Set(flags.to_vec()));

    let docs = field(&client.say("COMMAND DOCS config"), "config");
    let get = field(&field(&docs, "subcommands"), "config|get");
    assert_eq!(field(&get, "summary"), bulk("Answers the settings whose names match"));
}

#[test]
fn reset_makes_a_client_as_it_was_at_first() {
    let mut client = Client::new();
    client.say("HELLO 3 SETNAME me");
    client.say("SELECT 5");
    client.say("MULTI");
    assert_eq!(client.say("RESET"), Value::Simple("RESET".into()));
    assert_eq!(client.say("CLIENT GETNAME"), Value::Null);
    assert!(text(client.say("CLIENT INFO")).contains(" db=0 "));
    assert!(error(client.say("EXEC")).contains("EXEC without MULTI"));
}
