//! Publishing and subscribing, and what happens to keys.

use crate::support::{Client, bulk, error, int, ok};
use kstone_ports::keys::Value;

fn message(words: &[&str]) -> Value {
    Value::Push(words.iter().map(bulk).collect())
}

#[test]
fn a_message_reaches_who_listens_to_the_channel_or_to_a_pattern() {
    let mut publisher = Client::new();
    let (mut one, mut two) = (publisher.another(), publisher.another());
    let confirmed = |word, name, count| Value::Push(vec![bulk(word), bulk(name), int(count)]);
    assert_eq!(one.say("SUBSCRIBE news"), confirmed("subscribe", "news", 1));
    assert_eq!(two.say("PSUBSCRIBE n*"), confirmed("psubscribe", "n*", 1));
    assert_eq!(publisher.say("PUBLISH news hello"), int(2));
    assert_eq!(one.session.messages(), [message(&["message", "news", "hello"])]);
    assert_eq!(two.session.messages(), [message(&["pmessage", "n*", "news", "hello"])]);
    assert_eq!(two.say("PUNSUBSCRIBE"), confirmed("punsubscribe", "n*", 0));
    assert_eq!(publisher.say("PUBLISH news again"), int(1));
    drop(one);
    assert_eq!(publisher.say("PUBLISH news again"), int(0));
    assert_eq!(publisher.say("PUBSUB NUMPAT"), int(0));
}

#[test]
fn who_has_subscribed_may_do_little_else_without_resp3() {
    let mut client = Client::new();
    client.say("SUBSCRIBE a");
    assert!(error(client.say("GET a")).contains("only (P|S)SUBSCRIBE"));
    assert_eq!(client.say("PING"), Value::Array(vec![bulk("pong"), bulk("")]));
    client.say("UNSUBSCRIBE");
    assert_eq!(client.say("GET a"), Value::Null);
    client.say("HELLO 3");
    client.say("SUBSCRIBE a");
    assert_eq!(client.say("GET a"), Value::Null);
}

#[test]
fn shard_channels_are_a_world_of_their_own() {
    let mut client = Client::new();
    let mut other = client.another();
    other.say("SSUBSCRIBE a");
    assert_eq!(client.say("PUBLISH a x"), int(0));
    assert_eq!(client.say("SPUBLISH a x"), int(1));
    assert_eq!(other.session.messages(), [message(&["smessage", "a", "x"])]);
}

#[test]
fn events_of_keys_are_published_as_far_as_they_are_asked_for() {
    let mut client = Client::new();
    let mut listener = client.another();
    listener.say("PSUBSCRIBE *");
    client.say("SET a 1");
    assert_eq!(listener.session.messages(), []);
    assert_eq!(client.say("CONFIG SET notify-keyspace-events KEg$"), ok());
    client.say("SET a 1");
    client.say("LPUSH l 1");
    client.say("DEL a");
    let messages = listener.session.messages();
    let expected = [
        ["pmessage", "*", "__keyspace@0__:a", "set"],
        ["pmessage", "*", "__keyevent@0__:set", "a"],
        ["pmessage", "*", "__keyspace@0__:a", "del"],
        ["pmessage", "*", "__keyevent@0__:del", "a"],
    ];
    assert_eq!(messages, expected.map(|words| message(&words)));
}

#[test]
fn a_subscriber_that_does_not_read_is_cut_off_at_its_limit() {
    let mut client = Client::new();
    let mut slow = client.another();
    slow.say("SUBSCRIBE a");
    let limit = ["CONFIG", "SET", "client-output-buffer-limit", "pubsub 100000 0 0"];
    assert_eq!(client.call(&limit), ok());
    let long = "x".repeat(1000);
    let sent = (0..1000).take_while(|_| {
        client.call(&["PUBLISH", "a", &long]);
        !slow.session.is_killed()
    });
    assert!((90..110).contains(&sent.count()));
}
