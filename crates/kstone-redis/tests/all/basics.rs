//! What every client relies on.

use crate::support::{Client, bulk, error, int, ok};

#[test]
fn what_was_set_is_there_until_it_is_deleted() {
    let mut client = Client::new();
    assert_eq!(client.say("SET a 1"), ok());
    assert_eq!(client.say("GET a"), bulk("1"));
    assert_eq!(client.another().say("GET a"), bulk("1"));
    assert_eq!(client.say("DEL a b"), int(1));
    assert_eq!(client.say("EXISTS a"), int(0));
    assert_eq!(client.say("DBSIZE"), int(0));
}

#[test]
fn databases_are_apart_and_are_flushed_alone() {
    let mut client = Client::new();
    assert_eq!(client.say("SET a 1"), ok());
    assert_eq!(client.say("SELECT 3"), ok());
    assert_eq!(client.say("EXISTS a"), int(0));
    assert_eq!(client.say("SET a 2"), ok());
    assert_eq!(client.say("FLUSHDB"), ok());
    assert_eq!(client.say("DBSIZE"), int(0));
    assert_eq!(client.say("SELECT 0"), ok());
    assert_eq!(client.say("GET a"), bulk("1"));
    assert_eq!(client.say("FLUSHALL"), ok());
    assert_eq!(client.say("DBSIZE"), int(0));
}

#[test]
fn a_transaction_is_all_or_nothing_and_watches() {
    let mut client = Client::new();
    assert_eq!(client.say("WATCH a"), ok());
    assert_eq!(client.another().say("SET a 1"), ok());
    assert_eq!(client.say("MULTI"), ok());
    assert_eq!(client.say("SET b 1"), kstone_redis::Value::Simple("QUEUED".into()));
    assert_eq!(client.say("EXEC"), kstone_redis::Value::NullArray);
    assert_eq!(client.say("EXISTS b"), int(0));
    assert_eq!(client.say("MULTI"), ok());
    assert!(error(client.say("SET b")).starts_with("ERR wrong number of arguments for 'set'"));
    assert!(error(client.say("EXEC")).starts_with("EXECABORT"));
}

#[test]
fn an_unknown_command_says_so_with_its_arguments() {
    let mut client = Client::new();
    let expected = "ERR unknown command 'nonsense', with args beginning with: 'a' 'b' ";
    assert_eq!(error(client.say("nonsense a b")), expected);
}
